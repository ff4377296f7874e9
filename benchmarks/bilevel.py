"""The bilevel problem, ours beside the authors' package: the same rows, function, solver and tolerance, on one core.

    python -m benchmarks.bilevel --rows 20000 --groups 6 --metric disparate_mistreatment --peer badr --json FILE
    python -m benchmarks.bilevel --rows 200000 --groups 2 --metric demographic_parity --floor --json FILE

Both sides minimise the published metric over the weights of l2-regularised logistic regressions (ones column
penalised), by SLSQP from uniform weights with a function tolerance of 1e-10. They run in turn, each time in a fresh
process, and the least time of each side counts: what else the machine does only ever adds to it. The final weights of
both are solved anew here, to 1e-11, so that their values are comparable.

``--peer none`` is ours alone, and with ``--parquet`` ours from a file that is read in blocks at every pass.
``--floor`` compares one evaluation of ours with the passes over the rows that it cannot do without (benchmarks.floor).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import floor, synthetic
from benchmarks.harness import BenchmarkError, one_core, peer_python, run_side
from fairfront import metrics
from fairfront.bilevel import Objective
from fairfront.datasets.blocks import write_blocks
from fairfront.risks import GroupRisks

__all__ = ["compare", "main", "summary"]

# Our name of a metric: the peer's. It has all seven.
PEER_METRICS = {
    "demographic_parity": "DemographicParity",
    "equal_opportunity": "EqualOpportunity",
    "equalized_odds": "EqualizedOdds",
    "disparate_mistreatment": "DisparateMistreatment",
    "hsic": "HSIC",
    "group_variance": "GroupVariance",
    "individual_fairness": "IndividualFairness",
}
PEERS = ("badr", "none")

Runner = Callable[[str, Path], dict[str, Any]]


def compare(arguments: argparse.Namespace, run: Runner, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Run both sides in turn and return what was measured.

    Parameters
    ----------
    arguments : Namespace
        Of the command line: rows, groups, metric, peer, parquet, pairs, seed, l2.
    run : callable
        Side ("ours" or "peer") and folder of the rows to that side's result.
    say : callable, default print
        Told of every run.

    Returns
    -------
    dict
        `summary`, with the arguments.
    """
    sides = ("ours",) if arguments.peer == "none" else ("peer", "ours")
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        synthetic.write(folder, arguments.rows, arguments.groups, seed=arguments.seed)
        if arguments.parquet:
            write_blocks(folder / "rows.parquet", *_read(folder))
        for pair in range(arguments.pairs):
            for side in sides:
                runs[side].append(run(side, folder))
                say(f"pair {pair + 1}: {side} {runs[side][-1]['seconds']:.4f} s")
        X, y, groups = _read(folder)
    values = _exactly(X, y, groups, arguments.metric, arguments.l2, {side: runs[side] for side in sides})
    return {
        "rows": arguments.rows,
        "groups": arguments.groups,
        "metric": arguments.metric,
        "source": "parquet" if arguments.parquet else "memory",
        "peer": arguments.peer,
        "pairs": arguments.pairs,
        "seed": arguments.seed,
        "l2": arguments.l2,
        **summary(runs, values),
    }


def summary(runs: dict[str, list[dict[str, Any]]], values: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return the figures of several runs of each side.

    Parameters
    ----------
    runs : dict of lists
        Results of the sides "ours" and, unless there is no peer, "peer", in the order of running.
    values : dict
        Side: the metric at its last weights, solved exactly, and the largest difference of a coefficient between its
        own model and the exact one.

    Returns
    -------
    dict
        ``ours_s``, ``peer_s``: least time of a run. ``peer_compile_s``: least compile time. ``ratio``: peer_s over
        ours_s. ``ratio_without_compile``: the peer's least time without compilation over ours_s. ``ratio_cpu``: the
        ratio of the least processor times, which the load of the machine hardly moves. ``*_value``: the metric, solved
        exactly. ``*_rss_mb``: least peak of resident memory of the process. ``ours_rss_beyond_rows_mb``: the same less
        the peak when the rows were loaded. ``runs``: all of it.
    """
    figures: dict[str, Any] = {}
    for side, results in runs.items():
        figures[f"{side}_s"] = min(result["seconds"] for result in results)
        figures[f"{side}_cpu_s"] = min(result["cpu_seconds"] for result in results)
        figures[f"{side}_value"], figures[f"{side}_coefficient_error"] = values[side]
        figures[f"{side}_rss_mb"] = min(result["peak_mb"] for result in results)
        if "loaded_mb" in results[0]:
            figures[f"{side}_rss_beyond_rows_mb"] = min(result["peak_mb"] - result["loaded_mb"] for result in results)
    if "peer" in runs:
        figures["peer_compile_s"] = min(result["compile_seconds"] for result in runs["peer"])
        bare = min(result["seconds"] - result["compile_seconds"] for result in runs["peer"])
        figures["ratio"] = figures["peer_s"] / figures["ours_s"]
        figures["ratio_without_compile"] = bare / figures["ours_s"]
        figures["ratio_cpu"] = figures["peer_cpu_s"] / figures["ours_cpu_s"]
    return figures | {"runs": runs}


def _read(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, groups = (np.load(folder / f"{name}.npy") for name in ("X", "y", "groups"))
    return X, y, groups


def _exactly(
    X: np.ndarray, y: np.ndarray, groups: np.ndarray, metric: str, l2: float, runs: dict[str, list[dict[str, Any]]]
) -> dict[str, tuple[float, float]]:
    """Solve the last run's weights of every side from a cold start, to 1e-11."""
    risks = GroupRisks(X, y, groups, loss="logistic", l2=l2)
    unfairness = metrics.get(metric, variant="paper").bind(risks.y, risks.groups)
    values = {}
    for side, results in runs.items():
        weights = np.maximum(results[-1]["weights"], 0.0)
        model = Objective(risks, unfairness).solver.solve(weights / weights.sum())
        error = float(np.abs(model.w - np.asarray(results[-1]["coefficients"])).max())
        values[side] = unfairness.value(model.point.scores), error
    return values


def _parser() -> argparse.ArgumentParser:
    summary_line, *_ = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bilevel", description=summary_line)
    parser.add_argument("--rows", type=int, default=20_000, help="rows (default 20000)")
    parser.add_argument("--groups", type=int, default=2, help="groups (default 2)")
    parser.add_argument("--metric", choices=sorted(PEER_METRICS), default="demographic_parity")
    parser.add_argument("--peer", choices=PEERS, default="badr", help="whom to compare with; none: ours alone")
    parser.add_argument("--parquet", action="store_true", help="ours from a Parquet file in blocks; needs --peer none")
    parser.add_argument("--floor", action="store_true", help="one evaluation over its passes, without a peer")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side, in turn (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the synthetic rows (default 0)")
    parser.add_argument("--l2", type=float, default=1e-2, help="penalty weight (default 0.01)")
    parser.add_argument("--core", type=int, help="core to run on (default: the last one)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser


def main(command: Sequence[str] | None = None) -> int:
    """Run the benchmark as the command line says; returns the exit status."""
    parser = _parser()
    arguments = parser.parse_args(command)
    if arguments.pairs < 1:
        parser.error("--pairs: at least 1")
    if arguments.parquet and arguments.peer != "none":
        parser.error("--parquet: a peer reads no Parquet; add --peer none")
    try:
        with one_core(arguments.core) as core:
            figures = _floor(arguments) if arguments.floor else compare(arguments, _runner(arguments))
    except (BenchmarkError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    figures["core"] = core
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for name, value in figures.items():
        if not isinstance(value, (dict, list)):
            print(f"{name:24}{value:.6g}" if isinstance(value, float) else f"{name:24}{value}")
    return 0


def _runner(arguments: argparse.Namespace) -> Runner:
    pythons = {"ours": Path(sys.executable)}
    if arguments.peer != "none":
        pythons["peer"] = peer_python(arguments.peer)
    scripts = {"ours": ("ours_bilevel", arguments.metric), "peer": ("badr_bilevel", PEER_METRICS[arguments.metric])}

    def run(side: str, folder: Path) -> dict[str, Any]:
        script, metric = scripts[side]
        source = ["parquet"] if arguments.parquet else []
        return run_side(pythons[side], script, [str(folder), metric, repr(arguments.l2), *source])

    return run


def _floor(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        synthetic.write(Path(place), arguments.rows, arguments.groups, seed=arguments.seed)
        results = [
            run_side(sys.executable, "floor_bilevel", [place, arguments.metric, repr(arguments.l2)])
            for _ in range(arguments.pairs)
        ]
    keys = ("rows", "groups", "metric", "seed", "l2")
    return {key: getattr(arguments, key) for key in keys} | floor.summary(results) | {"runs": results}


if __name__ == "__main__":
    sys.exit(main())
