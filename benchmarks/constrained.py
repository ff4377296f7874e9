"""Constrained training, ours beside the peers: the same rows, network, statistics and machine, on one thread.

    python -m benchmarks.constrained --groups 6,18,32,100 --peer humancompatible-train --json FILE
    python -m benchmarks.constrained --epoch --json FILE
    python -m benchmarks.constrained --batched --json FILE
    python -m benchmarks.constrained --memory --json FILE

A step is: clear the gradients, forward, mean cross-entropy, the groups' positive rates, one backward, one update, for
m = R (R - 1) constraints between R groups (network 64-16 and 64 to 72 rows; 256-128 and 400 rows above 36 groups).
Methods are timed in turn, a few steps at a time, in fresh processes of both sides in turn; the least time of each (on a
CPU the processor's) counts: what else the machine does only ever adds to it.

``ours_us`` is SPBM in the flat buffer with the compiled dual step, by `PairwiseGroups.binary` where that is faster.
It is compared with torch's Adam as it comes (``ratio_stock_adam``) and with Adam of the same flavour, in one fused
buffer (``ratio_same_adam``), so that a faster Adam is not claimed for SPBM.  A peer's ratio is to the stock Adam of its
own process.

``--epoch`` is an epoch of E2's shape, 98,925 rows x 50 in 983 batches of 72, the feed included.  ``--batched`` trains
stacks of networks of that shape (processor time) and extrapolates to E2's grid of 360 configurations x 5 seeds x 40
epochs.
``--memory`` compares the peak of resident memory at m = 9900 with plain Adam's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import BenchmarkError, one_core, peer_python, run_side

__all__ = ["main", "row"]

PEERS = ("humancompatible-train", "cooper", "all", "none")
GRID_RUNS, GRID_EPOCHS, GRID_TAIL = 360 * 5, 40, 5

Say = Callable[[str], None]


def _least(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the first result with each time replaced by the least over all."""
    times = {key: min(result[key] for result in results) for key, v in results[0].items() if isinstance(v, float)}
    return results[0] | times


def row(groups: int, ours: dict[str, Any], peers: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Return the figures for one number of groups.

    Parameters
    ----------
    groups : int
        R.
    ours, peers : dict
        Least times in microseconds by variant; ``peers`` is empty where none was run.
    wanted : str
        The peer asked for: its own methods are kept, or with "all" everybody's.
    """
    spbm = min(ours[name] for name in ("spbm", "spbm_compiled", "spbm_binary") if name in ours)
    unflat = min(ours.get("spbm_unflat_compiled", ours["spbm_unflat"]), ours["spbm_unflat"])
    kept = {name: us for name, us in peers.items() if " " in name and (wanted == "all" or name.startswith(wanted))}
    return {
        "groups": groups,
        "m": groups * (groups - 1),
        "stock_adam_us": ours["stock_adam"],
        "same_adam_us": ours["same_adam"],
        "ours_us": spbm,
        "ratio_stock_adam": spbm / ours["stock_adam"],
        "ratio_same_adam": spbm / ours["same_adam"],
        # Both through autograd and neither compiled.
        **({"ratio_penalized_adam": ours["spbm"] / ours["penalized_adam"]} if "penalized_adam" in ours else {}),
        "unflat_us": unflat,
        "ratio_unflat_stock_adam": unflat / ours["stock_adam"],
        "ours": {name: us for name, us in ours.items() if isinstance(us, float)},
        "peers": {
            name: {"us": us, "ratio_stock_adam": us / peers["stock_adam"], "over_ours": us / spbm}
            for name, us in kept.items()
        },
    }


def steps(arguments: argparse.Namespace, python: Path | None, say: Say) -> dict[str, Any]:
    """Time the steps for every number of groups."""
    rows = []
    for groups in arguments.groups:
        measured: dict[str, list[dict[str, Any]]] = {"ours": [], "peers": []}
        settings = ["step", str(groups), str(arguments.blocks), arguments.device]
        for _ in range(arguments.rounds):
            measured["ours"].append(run_side(sys.executable, "ours_constrained", settings))
            if python is not None:
                measured["peers"].append(run_side(python, "peers_constrained", settings))
        peers = _least(measured["peers"]) if measured["peers"] else {}
        rows.append(row(groups, _least(measured["ours"]), peers, arguments.peer))
        say(_line(rows[-1]))
    return {"rows": rows, "blocks": arguments.blocks, "rounds": arguments.rounds, "device": arguments.device}


def _line(figures: dict[str, Any]) -> str:
    peers = "".join(f"; {name} {peer['ratio_stock_adam']:.2f}x" for name, peer in figures["peers"].items())
    return (
        f"m = {figures['m']:5d}: stock Adam {figures['stock_adam_us']:7.1f} us, SPBM {figures['ours_us']:7.1f} us = "
        f"{figures['ratio_stock_adam']:.2f}x stock, {figures['ratio_same_adam']:.2f}x same-flavour Adam, "
        f"{figures['ratio_unflat_stock_adam']:.2f}x stock without the buffer{peers}"
    )


def epoch(arguments: argparse.Namespace, python: Path | None, say: Say) -> dict[str, Any]:
    """Time an epoch of E2's shape on both sides."""
    ours, peer = [], []
    for _ in range(arguments.rounds):
        ours.append(run_side(sys.executable, "ours_constrained", ["epoch", "3"]))
        if python is not None:
            peer.append(run_side(python, "peers_constrained", ["epoch", "1"]))
    result: dict[str, Any] = {"ours_s": min(r["seconds"] for r in ours), "steps": ours[0]["steps"]}
    if peer:
        result |= {
            "peer_s": min(r["seconds"] for r in peer),
            "peer_feed_s": min(r["feed_seconds"] for r in peer),
            "peer_steps": peer[0]["steps"],
        }
        result["ratio"] = result["ours_s"] / result["peer_s"]
    say(json.dumps(result))
    return result


def memory(arguments: argparse.Namespace, python: Path | None, say: Say) -> dict[str, Any]:
    """Compare peaks of resident memory at m = 9900."""
    peaks = {
        method: min(
            run_side(sys.executable, "ours_constrained", ["memory", "100", method])["peak_mb"]
            for _ in range(arguments.rounds)
        )
        for method in ("adam", "spbm")
    }
    result = {f"{method}_mb": peak for method, peak in peaks.items()} | {"ratio": peaks["spbm"] / peaks["adam"]}
    say(json.dumps(result))
    return result


def batched(arguments: argparse.Namespace, python: Path | None, say: Say) -> dict[str, Any]:
    """Train stacks of networks of E2's shape, and extrapolate."""
    import torch

    from benchmarks.steps import epoch_rows
    from fairfront.constrained import PairwiseGroups, SPBMParameters
    from fairfront.constrained.batched import Job, StackedMLP, StackedTraining, train_batched
    from fairfront.constrained.networks import mlp
    from fairfront.constrained.sampling import GroupSampler, feed

    torch.set_num_threads(1)
    x, y, groups = epoch_rows()
    constraint = PairwiseGroups(6, epsilon=0.1)

    def jobs(size: int) -> list[Job]:
        """Return a part of E2's grid that mixes all of its choices."""
        return [
            Job(
                parameters=SPBMParameters(
                    phi=("ql", "qr")[i % 2],
                    rule=("adapt", "alm")[i // 2 % 2],
                    gamma=(0.9, 0.99, 0.999)[i % 3],
                    kappa=(0.1, 0.5, 0.9)[i % 3],
                    rho=(0.5, 1.0, 2.0)[i % 3],
                    mu=(1.0, 2.0)[i // 4 % 2],
                ),
                lr=(0.001, 0.005, 0.01, 0.02, 0.05)[i % 5],
            )
            for i in range(size)
        ]

    rows = []
    for size in arguments.stacks:
        generator = torch.Generator().manual_seed(0)
        network = mlp(50, (64, 16), generator=generator)
        sampler = GroupSampler(groups, 72, generator=generator, epoch="smallest")
        chosen = jobs(size)
        training = StackedTraining(
            StackedMLP([network] * size), chosen, constraint, sampler.batch_groups, sampler.weights()
        )
        least, block = float("inf"), max(2, 40 // size)
        batches = feed(sampler.epoch(), x, y)
        for _ in range(sampler.steps // block):
            start = time.process_time()
            for _ in range(block):
                training.step(*next(batches))
            least = min(least, (time.process_time() - start) / block)
        rows.append({"stack": size, "ms_a_model_step": 1e3 * least / size})
        say(f"{size:4d} networks: {rows[-1]['ms_a_model_step']:.4f} ms a model-step")
    # With the sampler and the feed; evaluations apart, because the selection needs those of the last epochs only.
    size, epochs, settings = 20, 3, {"hidden": (64, 16), "batch_size": 72, "epoch": "smallest", "stack": 20}
    spent, evaluation = [], []
    for _ in range(arguments.rounds):
        start = time.process_time()
        train_batched(x, y, groups, jobs(size), constraint=constraint, epochs=epochs, evaluate_last=1, **settings)
        whole = time.process_time() - start
        start = time.process_time()
        training.evaluate(x, y, groups)
        evaluation.append((time.process_time() - start) / len(chosen))
        spent.append((whole / size - evaluation[-1]) / epochs)
    result = {
        "stacks": rows,
        "seconds_a_run_epoch": min(spent),
        "seconds_an_evaluation": min(evaluation),
        "measured_run_epochs": size * epochs,
        "grid_run_epochs": GRID_RUNS * GRID_EPOCHS,
        "grid_core_hours_extrapolated": _hours(min(spent), min(evaluation), GRID_TAIL),
        "grid_core_hours_extrapolated_all_evaluated": _hours(min(spent), min(evaluation), GRID_EPOCHS),
    }
    say(
        f"{min(spent) * 1e3:.1f} ms a run and epoch, {min(evaluation) * 1e3:.1f} ms an evaluation (least of "
        f"{arguments.rounds} measurements of {size * epochs} run-epochs); for E2's grid, extrapolated, "
        f"{result['grid_core_hours_extrapolated']:.2f} core-hours with its last {GRID_TAIL} epochs evaluated, "
        f"{result['grid_core_hours_extrapolated_all_evaluated']:.2f} with all"
    )
    return result


def _hours(training: float, evaluation: float, evaluated: int) -> float:
    return GRID_RUNS * (GRID_EPOCHS * training + evaluated * evaluation) / 3600


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is no comma list of numbers >= 2")
    return numbers


def main(argv: Sequence[str] | None = None) -> None:
    summary, *_ = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constrained", description=summary)
    parser.add_argument("--groups", type=_numbers, default=[6, 18, 32, 100], help="numbers of groups (6,18,32,100)")
    parser.add_argument("--peer", choices=PEERS, default="all", help="whom to compare with; none: ours alone")
    parser.add_argument("--epoch", action="store_true", help="an epoch of E2's shape instead")
    parser.add_argument("--batched", action="store_true", help="stacks of networks instead")
    parser.add_argument("--memory", action="store_true", help="peak memory at m = 9900 instead")
    parser.add_argument("--stacks", type=_numbers, default=[2, 5, 20, 40], help="networks a stack (2,5,20,40)")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side, in turn (default 2)")
    parser.add_argument("--blocks", type=int, default=120, help="blocks of four steps a process (default 120)")
    parser.add_argument("--device", default="cpu", help="of the steps: cpu or cuda (default cpu)")
    parser.add_argument("--core", type=int, help="core to run on (default: the last one)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    arguments = parser.parse_args(argv)
    mode = next((run for run in (epoch, batched, memory) if getattr(arguments, run.__name__)), steps)
    try:
        # The peers' environment is looked for before anything is timed.
        needed = arguments.peer != "none" and mode in (steps, epoch)
        python = peer_python("constrained") if needed else None
        with one_core(arguments.core):
            result = mode(arguments, python, print)
    except BenchmarkError as error:
        raise SystemExit(f"error: {error}") from error
    if arguments.json:
        arguments.json.write_text(json.dumps({"benchmark": mode.__name__} | result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
