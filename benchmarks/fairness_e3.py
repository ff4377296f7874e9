"""E3 of the second paper on the real Dutch Census: ``python -m benchmarks.fairness_e3 --seeds 0,1,2,3,4 --json FILE``.

Eighteen groups (sex x age), every two of them within 0.1 in their positive rate (m = 306), a ReLU network 128-64, the
paper's selected parameters (B.4), its batches of 72, its epochs (as many batches as the smallest group fills) and its
objective (the mean over the balanced batch).  The file is read from the folder that FAIRFRONT_DATA names.

Reported is, per seed, the mean over the last five epochs of the loss (all rows, unweighted) and of the largest
constraint value; and Table 2's own number, the largest over the pairs of the constraint averaged over the seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from fairfront.constrained.training import TrainingResult
from fairfront.errors import FairfrontError
from fairfront.runs.progress import shown
from fairfront.studies import experiments
from fairfront.studies.experiments import TAIL, Data

# As Table 2 spells them, and as the package does.
METHODS = {"SPBM": "spbm", "SSL-ALM": "ssl-alm", "Adam": "adam"}
# The project's bounds: mean loss at most, largest violation at most (for Adam: ranges).
REACHED = {
    "SPBM": lambda loss, violation: loss <= 0.472 and violation <= 0.010,
    "SSL-ALM": lambda loss, violation: loss <= 0.482 and violation <= 0.015,
    "Adam": lambda loss, violation: 0.39 <= loss <= 0.40 and 0.49 <= violation <= 0.50,
}


def run(data: Data, method: str, seed: int, *, epochs: int = 40, objective: str | None = None) -> TrainingResult:
    """Train one method from one seed in the paper's selected configuration."""
    return experiments.train("E3", METHODS[method], seed, data=data, epochs=epochs, objective=objective)


def tail(result: TrainingResult) -> tuple[float, float]:
    """Return loss and largest constraint value, each a mean over the last epochs."""
    last = result.history.tail(TAIL)
    return last["objective"].mean(), last["max_constraint"].mean()


def main() -> None:
    parser = argparse.ArgumentParser(description="E3 on the real Dutch Census (FAIRFRONT_DATA)")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--unbiased", action="store_true", help="note 7's objective instead of the paper's")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = experiments.rows("E3")
    rows = data.rows
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    objective = "population" if arguments.unbiased else None
    records, summary = [], []
    for method in arguments.methods.split(","):
        final = []
        with shown(True) as progress:
            for seed in progress(seeds, method, len(seeds)):
                started = time.process_time()
                result = run(data, method, seed, epochs=arguments.epochs, objective=objective)
                loss, largest = tail(result)
                final.append(result.constraints[-TAIL:].mean(0))
                spent = time.process_time() - started
                records.append(
                    {"method": method, "seed": seed, "loss": loss, "violation": largest, "cpu_seconds": spent}
                )
        mine = pd.DataFrame(records).query("method == @method")
        summary.append(
            {
                "method": method,
                "loss": mine["loss"].mean(),
                "loss_std": mine["loss"].std(ddof=0),
                "violation": mine["violation"].mean(),
                "violation_worst_seed": mine["violation"].max(),
                "violation_table_2": max(0.0, np.mean(final, axis=0).max()),
            }
        )
        summary[-1]["reached"] = bool(REACHED[method](summary[-1]["loss"], summary[-1]["violation"]))
    print(f"{len(rows)} rows, {rows.X.shape[1]} columns, {arguments.epochs} epochs, seeds {arguments.seeds}")
    print(pd.DataFrame(records).to_string(index=False, float_format="%.4f"))
    print(pd.DataFrame(summary).to_string(index=False, float_format="%.4f"))
    if arguments.json:
        content = {"rows": len(rows), "epochs": arguments.epochs, "runs": records, "summary": summary}
        arguments.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except FairfrontError as error:
        raise SystemExit(f"error: {error}") from error
