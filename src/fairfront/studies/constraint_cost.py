"""What a constraint costs: time of a training step against the number of constraints (Tables 3 and 6).

Steps of all methods are timed in one process, in turn, forwards in one round and backwards in the next, and compared
within a round: what else the machine does then meets all of them alike. Ratios are of processor times, which on a quiet
machine are the wall's; both are kept. A time is a measurement of the machine of the day, so that no test compares one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fairfront.datasets.records import benchmark_records
from fairfront.plotting import METHODS, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta
from fairfront.theory import Check
from fairfront.threads import one_torch_thread

__all__ = [
    "FLAT",
    "RATIO",
    "TITLE",
    "Parameters",
    "check_gradient",
    "datasets",
    "facts",
    "figure_peers",
    "figure_runtime",
    "measure",
    "run",
    "table_peers",
    "table_ratios",
    "table_seconds",
]

TITLE = "What a constraint costs"
RATIO = 1.3
"""Largest time of a constrained method over regularised Adam's that the paper claims."""
FLAT = 0.10
"""How far a time may be from that at the fewest constraints to be called independent of their number."""

_CONSTRAINED = ("spbm", "ssl-alm", "ssw")
_ORDER = ("adam", "adam-reg", *_CONSTRAINED)
_PAPER = {  # seconds an epoch at the fewest and at the most constraints (Table 6: m = 100 and 9900)
    "adam": (1.74, 1.71),
    "adam-reg": (1.79, 1.84),
    "spbm": (2.20, 2.26),
    "ssl-alm": (1.98, 1.98),
    "ssw": (1.98, 1.96),
}
_CLASSES, _BATCH, _EPOCH = 100, 400, 125  # E5: classes, rows a step, steps an epoch (50,000 images)
_EPSILON, _LR = 0.1, 0.005
_FEW_ROUNDS = 30  # so few say nothing of a median
_WARM_UP = 3
_OVER_STOCK, _OVER_REGULARISED = "over torch's Adam", "over our Adam (reg.)"


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe constraint_cost`` shows the same in a table."""

    groups: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="numbers of groups R; m = R (R - 1)", low=2, high=_CLASSES, distinct=True)
    )
    rounds: int | None = field(default=None, metadata=meta(help="so often every step is timed", low=1, high=10**6))
    hidden: tuple[int, ...] = field(
        default=(256, 128), metadata=meta(help="widths of the network's hidden layers", low=1, high=10_000)
    )
    features: int = field(default=50, metadata=meta(help="features of a row", low=1, high=100_000))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads: none, its rows are synthetic."""
    return ()


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Parameters
    ----------
    parameters : Parameters
        What to compute; fields left at None take their profile's value.
    progress : callable
        ``progress(iterable, description, total=None)`` yields the items and shows where it is.

    Returns
    -------
    dict of DataFrame
        times: a row per round, method and number of constraints: groups, m, method, round, seconds and wall (processor
        and wall time of one whole step: clear the gradients, forward, constraints, backward, update).
        machine: cores, load before and after, torch's version, parameters of the network.
    """
    import torch

    parameters = parameters.resolved()
    assert parameters.groups is not None and parameters.rounds is not None
    load, enabled = os.getloadavg()[0], gc.isenabled()
    with one_torch_thread(), contextlib.ExitStack() as after:
        steps = {groups: _steps(groups, parameters) for groups in parameters.groups}
        for functions in steps.values():
            for step in functions.values():
                for _ in range(_WARM_UP):
                    step()
        gc.collect()
        gc.disable()
        if enabled:
            after.callback(gc.enable)
        rows = []
        for number in progress(range(parameters.rounds), "rounds of steps", parameters.rounds):
            turn = 1 if number % 2 == 0 else -1
            for groups in parameters.groups[::turn]:
                for method in _ORDER[::turn]:
                    step = steps[groups][method]
                    start, spent = time.perf_counter(), time.process_time()
                    step()
                    seconds, wall = time.process_time() - spent, time.perf_counter() - start
                    rows.append((groups, groups * (groups - 1), method, number, seconds, wall))
    machine = {
        "cores": os.cpu_count() or 1,
        "load before": load,
        "load after": os.getloadavg()[0],
        "torch": torch.__version__,
        "weights": sum(part.numel() for part in _network(parameters).parameters()),
    }
    return {
        "times": pd.DataFrame(rows, columns=["groups", "m", "method", "round", "seconds", "wall"]),
        "machine": pd.DataFrame([machine]),
    }


def _network(parameters: Parameters) -> Any:
    import torch

    from fairfront.constrained.networks import mlp

    generator = torch.Generator().manual_seed(parameters.seed)
    return mlp(parameters.features, parameters.hidden, generator=generator, n_outputs=_CLASSES)


def _batch(parameters: Parameters) -> tuple[Any, Any]:
    """Return rows and their classes, equally many of each, as the paper's sampler draws them."""
    import torch

    generator = torch.Generator().manual_seed(parameters.seed + 1)
    classes = torch.arange(_CLASSES).repeat_interleave(_BATCH // _CLASSES)
    return torch.randn(_BATCH, parameters.features, generator=generator), classes


def _steps(groups: int, parameters: Parameters) -> dict[str, Callable[[], object]]:
    """Return one whole step a method, each on a network of its own: E5's batch, its classes merged into groups."""
    import torch

    from fairfront.constrained import SPBM, SSLALM, PairwiseGroups, PenalizedAdam, SSw
    from fairfront.constrained.constraints import group_means
    from fairfront.constrained.moreau import Primal

    rows, classes = _batch(parameters)
    merged = classes * groups // _CLASSES
    constraint = PairwiseGroups(groups, "loss", epsilon=_EPSILON)

    def losses(network: Any) -> Any:
        return torch.nn.functional.cross_entropy(network(rows), classes, reduction="none")

    def adam() -> Callable[[], object]:
        network = _network(parameters)
        primal = Primal(network.parameters(), torch.optim.Adam, _LR, {}, True)

        def step() -> None:
            primal.zero_grad()
            losses(network).mean().backward()
            primal.step(0.0, 0.5)

        return step

    def constrained(method: Any, **options: Any) -> Callable[[], object]:
        network = _network(parameters)
        optimizer = method(network.parameters(), constraint, lr=_LR, flat=True, **options)

        def step() -> object:
            optimizer.zero_grad()
            each = losses(network)
            means, present = group_means(each, groups, merged)
            return optimizer.step(each.mean(), constraint.from_statistics(means, present))

        return step

    # B.4's parameters of E5; regularised Adam's weight is nowhere stated and costs nothing.
    return {
        "adam": adam(),
        "adam-reg": constrained(PenalizedAdam, beta=1.0),
        "spbm": constrained(SPBM, gamma=0.999, kappa=0.9, mu=1.0),
        "ssl-alm": constrained(SSLALM, eta=0.01, rho=1.0, mu=1.0),
        "ssw": constrained(SSw, constraint_lr=0.001, mu=1.0),
    }


def check_gradient(groups: int = 100, seed: int = 0) -> Check:
    """Hold the gradient through R numbers against that through all m = R (R - 1) gaps, in float64.

    Parameters
    ----------
    groups : int, default 100
        R.
    seed : int, default 0
        Of statistics and weights.

    Returns
    -------
    Check
        The largest difference in units of the largest entry.
    """
    import torch

    from fairfront.constrained import PairwiseGroups

    generator = torch.Generator().manual_seed(seed)
    statistics = torch.rand(groups, generator=generator, dtype=torch.float64).requires_grad_()
    weights = torch.rand(groups, groups, generator=generator, dtype=torch.float64).fill_diagonal_(0.0)
    values = PairwiseGroups(groups, epsilon=_EPSILON).from_statistics(statistics)
    through_all = torch.autograd.grad(
        (values.vector() * weights[~torch.eye(groups, dtype=torch.bool)]).sum(), statistics
    )[0]
    error = float((values.pull(weights) - through_all).abs().max() / through_all.abs().max())
    statement = "row sums less column sums of the weights are the gradient through all gaps"
    return Check.at_most(statement, error, 1e-12, groups * (groups - 1))


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def _wide(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return seconds with a row per number of constraints and round, and a column per method."""
    return tables["times"].pivot_table(index=["m", "round"], columns="method", values="seconds")[list(_ORDER)]


def table_ratios(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per number of constraints: each method's time over regularised Adam's, medians over rounds."""
    wide = _wide(tables)
    ratios = wide.div(wide["adam-reg"], axis=0).groupby("m").median()
    return ratios.rename(columns={name: METHODS[name].label for name in _ORDER}).reset_index().rename_axis(columns=None)


def table_seconds(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the paper's table: processor seconds an epoch of 125 steps by number of constraints, medians."""
    seconds = _EPOCH * _wide(tables).groupby("m").median()
    return (
        seconds.rename(columns={name: METHODS[name].label for name in _ORDER}).reset_index().rename_axis(columns=None)
    )


def _growth(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return each method's time over its own at the fewest constraints in the same round, medians, a row per m."""
    wide = _wide(tables)
    fewest = wide.loc[wide.index.get_level_values("m").min()]
    relative = wide.div(fewest.reindex(wide.index.get_level_values("round")).to_numpy())
    return relative.groupby("m").median()


def table_peers() -> pd.DataFrame:
    """Return the recorded comparison: a row per number of constraints and method, its time over the Adams'.

    Columns: m, method, microseconds a step, over torch's Adam (of the same process), over regularised Adam (ours only).
    """
    rows = []
    for record in benchmark_records("constrained"):
        figures = record["figures"]
        ours, m = figures["ours"], figures["m"]
        kept = {
            "torch's Adam": ours["stock_adam"],
            "Adam, one fused buffer": ours["same_adam"],
            "ours, Adam (reg.)": ours["penalized_adam"],
            "ours, SPBM": ours["spbm"],
            "ours, SPBM compiled": figures["ours_us"],
            "ours, SSL-ALM": ours["ssl_alm"],
            "ours, SSw": ours["ssw"],
        }
        rows += [
            {
                "m": m,
                "method": name,
                "us a step": us,
                _OVER_STOCK: us / ours["stock_adam"],
                _OVER_REGULARISED: us / ours["penalized_adam"],
            }
            for name, us in kept.items()
        ]
        rows += [
            {"m": m, "method": name, "us a step": peer["us"], _OVER_STOCK: peer["ratio_stock_adam"]}
            for name, peer in figures["peers"].items()
        ]
    return pd.DataFrame(rows)


def _spread(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Return how far each method's time gets from that at the fewest constraints, relative to it."""
    growth = _growth(tables)
    return {name: float((growth[name] - 1).abs().max()) for name in _ORDER}


def _highest(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Return each constrained method's largest median ratio to regularised Adam."""
    ratios = table_ratios(tables)
    return {name: float(ratios[METHODS[name].label].max()) for name in _CONSTRAINED}


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    machine, times = tables["machine"].iloc[0], tables["times"]
    records, ratios, peers = benchmark_records("constrained"), table_ratios(tables), table_peers()
    at_most = ratios[ratios.m == ratios.m.max()].iloc[0]
    over = {row["method"]: row for row in peers[peers.m == peers.m.max()].to_dict("records")}
    theirs = over.get("humancompatible-train PBM")
    return {
        "setting": (
            f"synthetic rows in the shape of E5: {_BATCH} rows a step, {_CLASSES} classes merged into groups, "
            f"{parameters.features} features, hidden layers {' and '.join(map(str, parameters.hidden))} "
            f"({machine.weights:,} weights); profile {parameters.profile}, {times['round'].nunique()} rounds; "
            "variant: all methods in one fused buffer, one thread"
        ),
        "load": f"{machine['load before']:.1f} before and {machine['load after']:.1f} after, on {machine.cores} cores",
        "wall": f"{times.wall.median() / times.seconds.median():.2f}",
        "rounds": f"{times['round'].nunique()}",
        "m_least": f"{times.m.min():,}",
        "m_most": f"{times.m.max():,}",
        "spbm_ratio": f"{at_most[METHODS['spbm'].label]:.2f}",
        "ratio_highest": "; ".join(f"{METHODS[k].label} {v:.2f}" for k, v in _highest(tables).items()),
        "spread": "; ".join(f"{METHODS[k].label} {v:.0%}" for k, v in _spread(tables).items()),
        "gradient_error": f"{check_gradient().measured:.0e}".replace("0e+00", "0"),
        "recorded": ", ".join(sorted({record["date"] for record in records})),
        "recorded_on": "; ".join(sorted({record["machine"] for record in records})),
        "recorded_load": f"{min(r['load'] for r in records):g} to {max(r['load'] for r in records):g}",
        "recorded_setting": (
            "synthetic rows, one thread, least processor times, the same at every profile; variant: ours in one fused "
            "buffer, SPBM also with compiled parts, the peers as their examples run them"
        ),
        "recorded_m": f"{peers.m.max():,}",
        "recorded_reg": f"{over['ours, SPBM'][_OVER_REGULARISED]:.2f}",
        "recorded_stock": f"{over['ours, SPBM'][_OVER_STOCK]:.2f}",
        "recorded_compiled": f"{over['ours, SPBM compiled'][_OVER_STOCK]:.2f}",
        "recorded_peer": f"{theirs[_OVER_STOCK]:.2f}" if theirs else "(not recorded)",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the times say of the paper's claims."""
    parameters = parameters.resolved()
    rounds = int(tables["times"]["round"].nunique())
    data = f"synthetic rows in the shape of E5, {tables['machine'].weights.iloc[0]:,} weights, one thread"
    few = [f"{rounds} rounds"] if rounds < _FEW_ROUNDS else []
    most = int(tables["times"].m.max())
    few += [] if most == _CLASSES * (_CLASSES - 1) else [f"at most {most} constraints"]
    return (
        _within(tables, few, data),
        _flat(tables, few, data),
        _table(tables, few, data),
    )


def _judged(claim: str, measured: str, data: str, holds: dict[str, bool], few: list[str], why: str) -> Measurement:
    """Return the verdict on what should hold for every constrained method."""
    failing = [METHODS[name].label for name, held in holds.items() if not held]
    if few:
        return Measurement(claim, measured, "not testable", "; ".join(few), data)
    if not failing:
        return Measurement(claim, measured, "reproduced", "", data)
    verdict = "reproduced in part" if len(failing) < len(holds) else "not reproduced"
    return Measurement(claim, measured, verdict, f"{why}: {', '.join(failing)}", data)


def _within(tables: dict[str, pd.DataFrame], few: list[str], data: str) -> Measurement:
    highest = _highest(tables)
    measured = "largest time over regularised Adam's: " + ", ".join(
        f"{METHODS[name].label} {value:.2f}" for name, value in highest.items()
    )
    holds = {name: value <= RATIO for name, value in highest.items()}
    return _judged("spbm-runtime-13", measured, data, holds, few, f"above {RATIO}")


def _flat(tables: dict[str, pd.DataFrame], few: list[str], data: str) -> Measurement:
    spread = {name: value for name, value in _spread(tables).items() if name in _CONSTRAINED}
    m = tables["times"].m
    few = few if m.min() < m.max() else [*few, "a single number of constraints"]
    measured = f"largest change of the time from m = {m.min()} to {m.max()}: " + ", ".join(
        f"{METHODS[name].label} {value:.0%}" for name, value in spread.items()
    )
    holds = {name: value <= FLAT for name, value in spread.items()}
    return _judged("spbm-runtime-flat", measured, data, holds, few, f"more than {FLAT:.0%} apart")


def _table(tables: dict[str, pd.DataFrame], few: list[str], data: str) -> Measurement:
    """Hold the table's pattern against ours: the seconds themselves are another network's on another machine."""
    seconds = table_seconds(tables).iloc[-1]
    measured = "processor seconds an epoch at the most constraints: " + ", ".join(
        f"{METHODS[name].label} {seconds[METHODS[name].label]:.2f}" for name in _ORDER
    )
    reason = "a small network on a processor, the paper's is ResNet-18 on an H200: only ratios can be compared"
    if few:
        return Measurement("spbm-table3", measured, "not testable", "; ".join([*few, reason]), data)
    ours = {name: seconds[METHODS[name].label] / seconds[METHODS["adam-reg"].label] for name in _ORDER}
    theirs = {name: at_most / _PAPER["adam-reg"][1] for name, (_, at_most) in _PAPER.items()}
    apart = {name: (ours[name], theirs[name]) for name in _CONSTRAINED if abs(ours[name] - theirs[name]) > FLAT}
    words = [
        f"{METHODS[name].label} {a:.2f} times regularised Adam, the paper {b:.2f}" for name, (a, b) in apart.items()
    ]
    cheap = all(ours[name] <= RATIO for name in _CONSTRAINED)
    verdict = "reproduced in part" if cheap else "not reproduced"
    return Measurement("spbm-table3", measured, verdict, "; ".join([reason, *words]), data)


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_runtime(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw seconds an epoch and the ratio to regularised Adam against the number of constraints."""
    seconds, ratios = table_seconds(tables), table_ratios(tables)
    with style():
        figure, axes = panels(1, 2, width=3.5, height=2.9)
        for ax, frame in zip(axes[0], (seconds, ratios), strict=True):
            for name in _ORDER:
                mark = METHODS[name]
                ax.plot(
                    frame.m, frame[mark.label], color=mark.colour, marker=mark.marker, markersize=5, label=mark.label
                )
            ax.set(xlabel="constraints $m$", ylim=(0, None))
        axes[0, 0].set_ylabel("processor seconds an epoch")
        axes[0, 1].set_ylabel("time over Adam (reg.)")
        axes[0, 1].axhline(RATIO, color="#777777", linewidth=1, linestyle=":")
        axes[0, 1].set_ylim(0, max(1.45, float(ratios.drop(columns="m").to_numpy().max()) * 1.05))
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def figure_peers(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the recorded time over torch's Adam against the number of constraints, ours and the peers'."""
    peers = table_peers()
    peers = peers[~peers.method.isin(["torch's Adam", "Adam, one fused buffer"])]
    labels = {
        "ours, Adam (reg.)": "adam-reg",
        "ours, SPBM": "spbm",
        "ours, SPBM compiled": "spbm",
        "ours, SSL-ALM": "ssl-alm",
        "ours, SSw": "ssw",
    }
    like = {
        "humancompatible-train PBM": "spbm",
        "humancompatible-train ALM": "ssl-alm",
        "humancompatible-train SSG": "ssw",
    }
    with style():
        figure, axes = panels(1, 1, width=5.4, height=3.3)
        ax = axes[0, 0]
        for method, mine in peers.groupby("method", sort=False):
            known = labels.get(str(method)) or like.get(str(method))
            mark = METHODS[known] if known else None
            ax.plot(
                mine.m,
                mine[_OVER_STOCK],
                color=mark.colour if mark else "#777777",
                marker=mark.marker if mark else "v",
                linestyle=":" if method == "ours, SPBM compiled" else "-" if method in labels else "--",
                markersize=5,
                label=str(method),
            )
        ax.axhline(1.0, color="#000000", linewidth=0.8, linestyle=":")
        ax.set(xscale="log", xlabel="constraints $m$", ylabel="time over torch's Adam", ylim=(0, None))
        figure.legend(loc="outside right center", fontsize=8)
    return figure
