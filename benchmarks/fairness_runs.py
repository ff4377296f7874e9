"""Train E1 to E5 at full length by every method, and keep what came of it for the chapter on them.

    python -m benchmarks.fairness_runs --experiments E3                  # five seeds of each method
    python -m benchmarks.fairness_runs --experiments E1,E2 --seeds 0,1
    python -m benchmarks.fairness_runs --experiments E2 --stacked        # E2, E3: seeds of a method at once, no SSw

Each experiment is a record of data/benchmarks/fairness.json, written anew once it is done; what is done of one is in
the store of results, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from benchmarks.harness import ROOT
from benchmarks.record import judged

__all__ = ["main", "one_by_one", "recorded", "stacked"]

Tables: TypeAlias = dict[str, pd.DataFrame]

RECORDS = ROOT / "data" / "benchmarks" / "fairness.json"
_DIGITS = 6
# What the project is held to: E3 as measured by benchmarks.fairness_e3, E1 and E2 on the rows at hand.
TARGETS: dict[str, dict[str, dict[str, float]]] = {
    "E1": {"at_most": {"spbm_violation": 0.2, "spbm_loss_over_ssl_alm": 1.01}},
    "E2": {"at_most": {"spbm_violation": 0.01, "spbm_loss_over_ssl_alm": 1.01}},
    "E3": {
        "at_most": {
            "spbm_loss": 0.472,
            "spbm_violation": 0.010,
            "ssl_alm_loss": 0.482,
            "ssl_alm_violation": 0.015,
            "adam_loss": 0.40,
            "adam_violation": 0.50,
        },
        "at_least": {"adam_loss": 0.39, "adam_violation": 0.49},
    },
}


def one_by_one(experiment: str, methods: tuple[str, ...], seeds: tuple[int, ...], profile: str) -> Tables:
    """Return the study's tables of one experiment."""
    from fairfront import runs
    from fairfront.studies import fairness_benchmark as study

    chosen = study.Parameters(profile=profile, experiment=(experiment,), methods=methods, seeds=seeds)
    return runs.compute(study, chosen).tables


def stacked(experiment: str, seeds: tuple[int, ...], *, steps: int | None = None, epochs: int = 40) -> Tables:
    """Return the same tables from stacks of networks: the same runs but for rounding, without SSw.

    The accuracy is that of the trained networks, in every row.
    """
    import torch

    from fairfront.constrained import PairwiseGroups
    from fairfront.constrained.training import row_hits
    from fairfront.studies import experiments

    methods = ("spbm", "ssl-alm", "adam")
    data = experiments.rows(experiment)
    runs = [(method, seed) for method in methods for seed in seeds]
    jobs = [experiments.job(experiment, method, seed) for method, seed in runs]
    started = time.process_time()
    result = experiments.train_many(experiment, jobs, data=data, epochs=epochs, steps=steps)
    spent = time.process_time() - started
    chosen = experiments.get(experiment)
    whole = experiments.steps_of_paper(experiment, data)
    names = np.array(PairwiseGroups(len(data.groups)).names())
    off = ~np.eye(len(data.groups), dtype=bool)
    tables: dict[str, list[pd.DataFrame]] = {"history": [], "constraints": [], "runs": []}
    for number, (method, seed) in enumerate(runs):
        key = {"experiment": experiment, "method": method, "seed": seed}
        mine, statistics = result.history.query("job == @number"), result.statistics[number]
        values = (statistics[:, :, None] - statistics[:, None, :] - chosen.epsilon)[:, off]
        with torch.no_grad():
            hits = row_hits(result.networks[number](data.rows.X), data.rows.y).double().mean().item()
        curve = {"epoch": mine.epoch.to_numpy(), "loss": mine.objective.to_numpy(), "max_violation": values.max(1)}
        tables["history"].append(pd.DataFrame(key | curve | {"accuracy": hits}))
        each = {"epoch": np.repeat(curve["epoch"], len(names)), "constraint": np.tile(names, len(values))}
        tables["constraints"].append(pd.DataFrame(key | each | {"value": values.ravel()}))
        words = {"title": data.title, "as_paper": data.as_paper, "steps": whole if steps is None else steps}
        tables["runs"].append(pd.DataFrame([key | words | {"seconds": spent / len(runs)}]))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}


def recorded(experiment: str, seeds: tuple[int, ...], tables: Tables, command: str) -> dict[str, Any]:
    """Return the record of one experiment: its row of Table 2, the mean curves, and what the targets came to."""
    from fairfront.studies import fairness_benchmark as study

    table = study.table_2(tables).drop(columns="experiment").to_dict("records")
    made = tables["runs"]
    figures: dict[str, Any] = {"experiment": experiment, "rows": str(made.title.iloc[0])}
    figures |= {"as_paper": bool(made.as_paper.all()), "steps": int(made.steps.iloc[0])}
    figures |= {"cpu_seconds": round(float(made.seconds.sum()), 1), "table": [_rounded(row) for row in table]}
    measured = {f"{row['method'].replace('-', '_')}_{key}": row[key] for row in table for key in ("loss", "violation")}
    if {"spbm_loss", "ssl_alm_loss"} <= measured.keys():
        measured["spbm_loss_over_ssl_alm"] = measured["spbm_loss"] / measured["ssl_alm_loss"]
    mean = tables["history"].groupby(["method", "epoch"], sort=False)[["loss", "max_violation", "accuracy"]].mean()
    figures["curves"] = {
        method: {name: [_number(value) for value in curve[name]] for name in curve}
        for method, curve in mean.groupby("method", sort=False)
    }
    held = {
        sense: {key: bound for key, bound in bounds.items() if key in measured}
        for sense, bounds in TARGETS.get(experiment, {}).items()
    }
    return {
        "name": f"{experiment}, {len(seeds)} seeds",
        "command": command,
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "targets": judged(held, measured),
        "figures": figures,
    }


def _number(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _rounded(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _number(value) if isinstance(value, float) else value for key, value in row.items()}


def main(command: Sequence[str] | None = None) -> None:
    """Run the experiments asked for."""
    from fairfront.errors import FairfrontError
    from fairfront.studies.experiments import names

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fairness_runs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--experiments", default="E3", help="comma list of E1 to E5")
    parser.add_argument("--seeds", default="0,1,2,3,4", help="comma list")
    parser.add_argument("--methods", default="spbm,ssl-alm,ssw,adam", help="comma list")
    parser.add_argument("--profile", default="full", choices=("smoke", "quick", "full"))
    parser.add_argument("--stacked", action="store_true", help="train all seeds of a method at once; without SSw")
    parser.add_argument("--json", type=Path, default=RECORDS, metavar="FILE", help="where the records are kept")
    arguments = parser.parse_args(command)
    chosen = arguments.experiments.split(",")
    if unknown := [name for name in chosen if name not in names()]:
        parser.error(f"--experiments: {', '.join(unknown)}: known are {', '.join(names())}")
    kept = json.loads(arguments.json.read_text("utf-8")) if arguments.json.exists() else []
    records = {record["figures"]["experiment"]: record for record in kept}
    for name in chosen:
        print(f"{name} ...", flush=True)
        said = f"python -m benchmarks.fairness_runs --experiments {name} --seeds {arguments.seeds}"
        if arguments.methods != parser.get_default("methods"):
            said += f" --methods {arguments.methods}"
        try:
            seeds = tuple(int(seed) for seed in arguments.seeds.split(","))
            if arguments.stacked:
                said += " --stacked"
                tables = stacked(name, seeds)
            else:
                tables = one_by_one(name, tuple(arguments.methods.split(",")), seeds, arguments.profile)
            records[name] = recorded(name, seeds, tables, said)
        except (FairfrontError, ValueError) as error:
            raise SystemExit(f"error: {error}") from error
        in_order = [records[known] for known in names() if known in records]
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(in_order, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
