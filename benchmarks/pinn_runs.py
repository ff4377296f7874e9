"""Train one physics-informed network at the full length of its configuration, and say what came of it.

python -m benchmarks.pinn_runs --experiment E6 --configuration solved --method spbm --seed 0 --json FILE
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["main", "trained"]

_POINTS = 60  # of a kept history
_DIGITS = 5


def trained(
    experiment: str, configuration: str, method: str, seed: int, change: str = "none", iterations: int | None = None
) -> dict[str, Any]:
    """Return what one run came to: final numbers, its processor time in seconds, and a thinned history."""
    import torch

    from fairfront import pde
    from fairfront.studies.pinn_benchmark import settings

    torch.set_num_threads(1)
    start = time.process_time()
    chosen = settings(experiment, configuration, method, change, iterations)
    result = pde.train(pde.EXPERIMENTS[experiment], method, chosen, seed=seed, evaluate_every=25)
    spent = time.process_time() - start
    history, last = result.history, result.evaluation
    kept = history.iloc[:: -max(1, len(history) // _POINTS)].iloc[::-1]
    columns = ["epoch", "loss", "max_violation", "relative_l2"]
    return {
        "experiment": experiment,
        "configuration": configuration,
        "method": method,
        "change": change,
        "seed": seed,
        "iterations": int(history.iteration.iloc[-1]),
        "epoch": float(history.epoch.iloc[-1]),
        "loss": last.loss,
        "max_violation": last.max_violation,
        "relative_l2": last.relative_l2,
        "collapsed": bool(last.collapse),
        "feasible": last.feasible(),
        "cpu_s": round(spent, 1),
        "history": {name: [float(f"{value:.{_DIGITS}g}") for value in kept[name]] for name in columns},
    }


def main(command: Sequence[str] | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pinn_runs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--experiment", default="E6", choices=("E6", "E7", "E8"))
    parser.add_argument("--configuration", default="solved", choices=("paper", "solved"))
    parser.add_argument("--method", default="spbm", choices=("spbm", "ssl-alm", "ssw", "adam-reg"))
    parser.add_argument("--change", default="none", help="what is taken away: none, primal, scale or points")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, help="steps; default: the configuration's own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    arguments = parser.parse_args(command)
    figures = trained(
        arguments.experiment,
        arguments.configuration,
        arguments.method,
        arguments.seed,
        arguments.change,
        arguments.iterations,
    )
    print({key: value for key, value in figures.items() if key != "history"}, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
