"""E1 to E5 of the second paper: loss, violation and accuracy against epochs, and Table 2 beside the paper's values.

Every method is trained at the configuration that the paper selected for it (appendix B.4), from every seed, on the rows
at hand; where these are not the paper's, every caption, table and verdict says so.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from fairfront.datasets.records import benchmark_records
from fairfront.errors import ArgumentError
from fairfront.plotting import METHODS, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies import experiments
from fairfront.studies.experiments import EXPERIMENTS, SOURCES
from fairfront.studies.hypergrids import TOLERANCE
from fairfront.studies.parameters import StudyParameters, meta
from fairfront.threads import one_torch_thread

__all__ = [
    "PAPER",
    "TITLE",
    "Parameters",
    "conditions",
    "datasets",
    "facts",
    "figure_constraints",
    "figure_curves",
    "figure_table_2",
    "measure",
    "run",
    "table_2",
    "table_conditions",
    "table_configurations",
    "table_recorded",
    "table_rows",
    "table_shown",
    "table_targets",
    "units",
]

TITLE = "The fairness benchmark: E1 to E5"

PAPER: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "E1": {
        "adam": (0.186, 0.004, 52.39, 1.1),
        "spbm": (0.373, 0.001, 0.0, 0.003),
        "ssl-alm": (0.373, 0.0, 0.0, 0.0),
        "ssw": (0.383, 0.007, 0.0, 0.035),
    },
    "E2": {
        "adam": (0.305, 0.002, 0.210, 0.002),
        "spbm": (0.350, 0.003, 0.002, 0.007),
        "ssl-alm": (0.351, 0.003, 0.0, 0.006),
        "ssw": (0.623, 0.013, 0.0, 0.006),
    },
    "E3": {
        "adam": (0.394, 0.0, 0.497, 0.001),
        "spbm": (0.470, 0.002, 0.006, 0.005),
        "ssl-alm": (0.478, 0.004, 0.003, 0.012),
        "ssw": (0.669, 0.011, 0.0, 0.009),
    },
    "E4": {
        "adam": (0.161, 0.036, 0.167, 0.054),
        "spbm": (0.016, 0.004, 0.0, 0.013),
        "ssl-alm": (1.380, 0.025, 0.0, 0.006),
        "ssw": (2.203, 0.014, 0.0, 0.020),
    },
    "E5": {
        "adam": (0.0, 0.0, 0.0, 0.002),
        "spbm": (0.001, 0.0, 0.0, 0.002),
        "ssl-alm": (4.577, 0.004, 0.0, 0.009),
        "ssw": (4.587, 0.002, 0.0, 0.008),
    },
}
"""Table 2: experiment -> method -> loss, its deviation, violation, its deviation."""

# What counts as the paper's number: within this much of its loss, or this share of it; of its violation, this share of
# the bound, or of it.
_LOSS, _SHARE, _VIOLATION = 0.01, 0.05, 0.1
_SAME = 1.01  # "matches": a loss not above the other's by more than 1 %
_PAPER_SEEDS = 5
_KEPT = 20_000  # constraint values kept of a run; of a larger one the last epochs alone
_OVERRIDES = ("phi", "gamma", "rule", "kappa", "mu", "eta", "rho", "constraint_lr", "beta")


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe fairness_benchmark`` shows the same in a table."""

    experiment: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(help="experiments; none: those whose rows are at hand", choices=experiments.names, distinct=True),
    )
    methods: tuple[str, ...] = field(
        default=("spbm", "ssl-alm", "ssw", "adam"),
        metadata=meta(help="methods", choices=experiments.METHODS, distinct=True),
    )
    seeds: tuple[int, ...] | None = field(
        default=None,
        metadata=meta(
            help="seeds of the initial networks and the batches, each counted from seed",
            low=0,
            high=2**31,
            distinct=True,
        ),
    )
    source: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(help="where rows come from; none: each experiment's first source at hand", choices=SOURCES),
    )
    epochs: int | None = field(default=None, metadata=meta(help="evaluations of a run", low=1, high=10_000))
    share: tuple[float, ...] | None = field(
        default=None,
        metadata=meta(help="share of the paper's steps: one for all, or one for each of E1 to E5", low=1e-5, high=100),
    )
    limit: int | None = field(default=None, metadata=meta(help="at most so many rows of a table", low=500))
    images: int | None = field(default=None, metadata=meta(help="at most so many images", low=500))
    objective: str = field(
        default="balanced",
        metadata=meta(
            help="balanced: the paper's, a mean over the balanced batch; population: unbiased (note 7)",
            choices=("balanced", "population"),
        ),
    )
    e5_network: str | None = field(default=None, metadata=meta(help="the network of E5", choices=("resnet18", "conv")))
    lr: float | None = field(default=None, metadata=meta(help="none: the selected one", low=1e-6, high=1.0))
    phi: str | None = field(default=None, metadata=meta(help="SPBM; none: as selected", choices=("ql", "qr")))
    gamma: float | None = field(default=None, metadata=meta(help="SPBM; none: as selected", low=0.0, high=0.99999))
    rule: str | None = field(
        default=None, metadata=meta(help="SPBM; none: as selected", choices=("adapt", "alm", "constant"))
    )
    kappa: float | None = field(default=None, metadata=meta(help="SPBM; none: as selected", low=0.0, high=0.99999))
    mu: float | None = field(default=None, metadata=meta(help="smoothing; none: as selected", low=0.0, high=1e3))
    eta: float | None = field(default=None, metadata=meta(help="SSL-ALM; none: as selected", low=1e-6, high=1e3))
    rho: float | None = field(
        default=None, metadata=meta(help="SSL-ALM, SPBM (alm); none: as selected", low=0.0, high=1e3)
    )
    constraint_lr: float | None = field(default=None, metadata=meta(help="SSw; none: as selected", low=1e-6, high=1.0))
    beta: float | None = field(default=None, metadata=meta(help="Adam (reg.); none: 1", low=0.0, high=1e6))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None and len(self.share) not in (1, len(EXPERIMENTS)):
            raise ArgumentError("share", f"{len(self.share)} numbers", "one for all, or one for each of E1 to E5")

    def resolved(self) -> Self:
        """Return the same parameters with the profile's sizes, the experiments at hand, and their sources.

        Raises
        ------
        DataError
            If the rows of an experiment that is asked for are absent.
        """
        filled = super().resolved()
        wanted = filled.source or ()
        chosen = filled.experiment
        if chosen is None:
            chosen = tuple(filter(_any_here, EXPERIMENTS))
        sources = tuple(dict.fromkeys(experiments.source(name, _wanted(name, wanted)) for name in chosen))
        return dataclasses.replace(filled, experiment=chosen, source=sources)

    @property
    def variant(self) -> str:
        """What differs from the paper's configurations, in words."""
        given = {name: getattr(self, name) for name in ("lr", *_OVERRIDES) if getattr(self, name) is not None}
        changes = [f"{name} {value}" for name, value in given.items()]
        if self.objective != "balanced":
            changes.append("unbiased objective")
        return ", ".join(changes) or "paper"


def _any_here(name: str) -> bool:
    return any(map(experiments.is_at_hand, EXPERIMENTS[name].sources))


def _wanted(name: str, sources: tuple[str, ...]) -> str | None:
    """Return the first of some sources that an experiment has; None if it has none of them."""
    return next((source for source in sources if source in EXPERIMENTS[name].sources), None)


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the tables that the study reads; images are named by its parameter `source`."""
    sources = parameters.resolved().source or ()
    return tuple(SOURCES[source].data for source in sources if SOURCES[source].is_table)


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts: one experiment, method and seed each."""
    parameters = parameters.resolved()
    assert parameters.experiment is not None and parameters.seeds is not None and parameters.source is not None
    parts = []
    for name, method, seed in itertools.product(parameters.experiment, parameters.methods, parameters.seeds):
        own = _wanted(name, parameters.source)
        assert own is not None
        part = dataclasses.replace(parameters, experiment=(name,), methods=(method,), seeds=(seed,), source=(own,))
        parts.append(part)
    return tuple(parts)


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Returns
    -------
    dict of DataFrame
        history: a row per experiment, method, seed and epoch: loss (all rows, unweighted), max_violation (the largest
        g_i; <= 0 when all constraints hold), mean_violation (mean over i of [g_i]_+), accuracy.
        constraints: experiment, method, seed, epoch, constraint (its name), value (g_i); of a run of more than 20,000
        values those of the last epochs alone.
        runs: a row per experiment, method and seed: source, title, as_paper (whether rows and network are the paper's),
        rows, network, m, epsilon, steps, share (of the steps of the paper's epochs), lr, settings, seconds (of
        processor time).
    """
    parts = [_train(unit, progress) for unit in units(parameters)]
    return {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}


def _train(unit: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:

    assert unit.experiment and unit.seeds and unit.source and unit.epochs and unit.share
    (name,), (method,), (source,) = unit.experiment, unit.methods, unit.source
    seed = unit.seed + unit.seeds[0]
    experiment = EXPERIMENTS[name]
    data = experiments.rows(name, source, limit=unit.limit if SOURCES[source].is_table else unit.images)
    share = unit.share[0 if len(unit.share) == 1 else list(EXPERIMENTS).index(name)]
    whole = experiments.steps_of_paper(name, data)
    steps = max(unit.epochs, round(share * whole))
    architecture = unit.e5_network if name == "E5" else experiment.network
    _, selected = experiments.configuration(name, method)
    takes = {item.name for item in dataclasses.fields(selected)}
    overrides = {key: value for key in _OVERRIDES if key in takes and (value := getattr(unit, key)) is not None}
    if method == "adam":
        overrides.pop("beta", None)
    started = time.process_time()
    with one_torch_thread():
        result = experiments.train(
            name,
            method,
            seed,
            data=data,
            epochs=unit.epochs,
            steps=steps,
            lr=unit.lr,
            architecture=architecture,
            objective=unit.objective,
            options={"progress": lambda items, words, total=None: progress(items, f"{name}, {method}", total)},
            **overrides,
        )
    seconds = time.process_time() - started
    key = {"experiment": name, "method": method, "seed": seed}
    epochs = result.history.epoch.to_numpy()
    history = pd.DataFrame(
        {
            **key,
            "epoch": epochs,
            "loss": result.history.objective,
            "max_violation": result.history.max_constraint,
            "mean_violation": np.clip(result.constraints, 0.0, None).mean(axis=1),
            "accuracy": result.history.accuracy,
        }
    )
    kept = slice(None) if result.constraints.size <= _KEPT else slice(-_tail(unit.epochs), None)
    values, m = result.constraints[kept], len(result.names)
    constraints = pd.DataFrame(
        {
            **key,
            "epoch": np.repeat(epochs[kept], m),
            "constraint": np.tile(np.array(result.names), len(values)),
            "value": values.ravel(),
        }
    )
    lr, parameters = experiments.configuration(name, method, **overrides)
    runs = pd.DataFrame(
        [
            {
                **key,
                "source": source,
                "title": data.title,
                "as_paper": data.as_paper and architecture == experiment.network,
                "rows": len(data.rows),
                "network": experiment.architecture
                if architecture == experiment.network
                else "small convolutional network",
                "m": m,
                "epsilon": experiment.epsilon,
                "steps": int(result.history.step.iloc[-1]),
                "share": result.history.step.iloc[-1] / whole,
                "lr": lr if unit.lr is None else unit.lr,
                "settings": _words(method, parameters),
                "seconds": seconds,
            }
        ]
    )
    return {"history": history, "constraints": constraints, "runs": runs}


def _words(method: str, parameters: Any) -> str:
    """Return a method's own parameters in words."""
    shown = {
        "spbm": ("phi", "gamma", "rule", "kappa" if parameters.__dict__.get("rule") == "adapt" else "rho", "mu"),
        "ssl-alm": ("eta", "rho", "mu"),
        "ssw": ("constraint_lr", "mu"),
        "adam": (),
        "adam-reg": ("beta",),
    }[method]
    values = {name: getattr(parameters, name) for name in shown}
    return ", ".join(
        f"{name} {value}" if isinstance(value, str) else f"{name} {value:g}" for name, value in values.items()
    )


def _tail(epochs: int) -> int:
    """Return how many last epochs are averaged: the paper's 5 of 40, or the same share."""
    return max(1, math.ceil(experiments.TAIL * epochs / 40))


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_2(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return Table 2 with the paper's values: a row per experiment and method.

    Columns experiment, method, seeds; loss and its deviation over the seeds; violation, the caption's: the largest over
    i of g_i averaged over the seeds (and the last epochs), at least 0; the deviation over the seeds and the largest
    violation of a single seed; the paper's loss and violation (NaN for a method that its table does not have). All are
    means over the last epochs.
    """
    key = ["experiment", "method"]
    last = _last(tables["history"])
    per_seed = last.groupby([*key, "seed"], sort=False)[["loss", "max_violation", "accuracy"]].mean()
    runs = per_seed.groupby(key, sort=False)
    mean, deviation = runs.mean(), runs.std(ddof=0)
    constraints = _last(tables["constraints"]).groupby([*key, "constraint"], sort=False, observed=True).value.mean()
    largest = constraints.groupby(key, sort=False).max().reindex(mean.index)
    paper = [PAPER.get(name, {}).get(method, (math.nan,) * 4) for name, method in mean.index]
    frame = pd.DataFrame(
        {
            "seeds": runs.size(),
            "loss": mean.loss,
            "loss_sd": deviation.loss,
            "violation": largest.clip(lower=0.0),
            "violation_sd": deviation.max_violation,
            "violation_worst": runs.max_violation.max(),
            "accuracy": mean.accuracy,
            "paper_loss": [loss for loss, _, _, _ in paper],
            "paper_violation": [violation for _, _, violation, _ in paper],
        }
    )
    return frame.reset_index()


def _last(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last epochs, those that the paper averages over."""
    last = int(frame.epoch.max())
    return frame[frame.epoch > last - _tail(last)]


def table_shown(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return `table_2` in words, as the chapter shows it."""
    rows = table_2(tables).to_dict("records")
    return pd.DataFrame(
        {
            "experiment": row["experiment"],
            "method": METHODS[row["method"]].label,
            "loss": _plus_minus(row["loss"], row["loss_sd"]),
            "the paper's loss": _printed(row["paper_loss"]),
            "violation": _plus_minus(row["violation"], row["violation_sd"]),
            "the paper's violation": _printed(row["paper_violation"]),
            "worst seed": f"{row['violation_worst']:.3f}",
            "accuracy": f"{row['accuracy']:.3f}",
        }
        for row in rows
    )


def _plus_minus(value: float, deviation: float) -> str:
    return f"{value:.3f} ± {deviation:.3f}"


def _printed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def conditions(frame: pd.DataFrame) -> dict[str, dict[str, bool]]:
    """Return what the paper's Table 2 says of each experiment, in words that hold or do not hold on any rows.

    Parameters
    ----------
    frame : DataFrame
        `table_2`.

    Returns
    -------
    dict of dict
        Experiment -> statement -> whether it holds; only statements on methods that were run.
    """
    found: dict[str, dict[str, bool]] = {}
    for name, mine_of in frame.groupby("experiment", sort=False):
        epsilon = EXPERIMENTS[str(name)].epsilon
        rows = mine_of.set_index("method")
        loss, violation = rows.loss.to_dict(), rows.violation.to_dict()
        mine: dict[str, bool] = {}
        if "spbm" in loss:
            mine["SPBM is feasible within 10 %"] = violation["spbm"] <= TOLERANCE * epsilon
        if {"spbm", "ssl-alm"} <= set(loss):
            if name in ("E4", "E5"):
                mine["SPBM's loss is less than half of SSL-ALM's"] = loss["spbm"] < 0.5 * loss["ssl-alm"]
            else:
                mine["SPBM's loss is within 1 % of SSL-ALM's, or below"] = loss["spbm"] <= _SAME * loss["ssl-alm"]
        if {"spbm", "ssw"} <= set(loss):
            mine["SSw is feasible, at a larger loss than SPBM's"] = (
                violation["ssw"] <= TOLERANCE * epsilon and loss["ssw"] > loss["spbm"]
            )
        if {"spbm", "adam"} <= set(loss):
            if name == "E4":
                mine["SPBM's loss is below Adam's"] = loss["spbm"] < loss["adam"]
            elif name != "E5":
                mine["Adam's loss is the lowest"] = loss["adam"] == min(loss.values())
            if name != "E5":
                mine["Adam violates the constraints"] = violation["adam"] > TOLERANCE * epsilon
        found[str(name)] = {words: bool(holds) for words, holds in mine.items()}
    return found


def table_conditions(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per experiment and statement of `conditions`: whether it holds."""
    return pd.DataFrame(
        {"experiment": name, "what Table 2 says": words, "holds": holds}
        for name, mine in conditions(table_2(tables)).items()
        for words, holds in mine.items()
    )


def table_rows(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per experiment: the rows, whether they are the paper's, network, m, steps, their share."""
    runs = tables["runs"].groupby("experiment", sort=False).first().reset_index()
    return pd.DataFrame(
        {
            "experiment": runs.experiment,
            "rows": runs.title,
            "the paper's": np.where(runs.as_paper, "yes", "no"),
            "network": runs.network,
            "m": runs.m,
            "bound": runs.epsilon,
            "steps": runs.steps,
            "share of the paper's steps": runs.share.round(3),
        }
    )


def table_configurations(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per experiment and method: learning rate, the method's parameters."""
    runs = tables["runs"].groupby(["experiment", "method"], sort=False)
    first = runs.first().reset_index()
    return pd.DataFrame(
        {
            "experiment": first.experiment,
            "method": [METHODS[method].label for method in first.method],
            "learning rate": first.lr,
            "parameters": first.settings,
        }
    )


def table_recorded() -> pd.DataFrame:
    """Return a row per recorded full run, experiment and method: loss, violation, the paper's, date, seeds, rows."""
    return pd.DataFrame(
        {
            "experiment": record["figures"]["experiment"],
            "method": METHODS[row["method"]].label,
            "loss": _plus_minus(row["loss"], row["loss_sd"]),
            "violation": f"{row['violation']:.3f}",
            "the paper's loss": f"{row['paper_loss']:.3f}",
            "the paper's violation": f"{row['paper_violation']:.3f}",
            "seeds": row["seeds"],
            "rows": record["figures"]["rows"],
            "date": record["date"],
        }
        for record in benchmark_records("fairness")
        for row in record["figures"]["table"]
    )


def table_targets() -> pd.DataFrame:
    """Return a row per target of the recorded full runs: target, measured, whether it is met."""
    return pd.DataFrame(
        {
            "experiment": record["figures"]["experiment"],
            "figure": row["key"],
            "target": f"{'>=' if row['sense'] == 'at_least' else '<='} {row['target']:g}",
            "measured": row["measured"],
            "met": row["met"],
        }
        for record in benchmark_records("fairness")
        for row in record["targets"]
    )


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    runs, held = tables["runs"], table_conditions(tables)
    names = [str(name) for name in runs.experiment.unique()]
    first = runs.groupby("experiment", sort=False).first()
    of_paper = [name for name in names if first.as_paper[name]]
    seeds, epochs = runs.seed.nunique(), int(tables["history"].epoch.max())
    frame = table_2(tables).set_index(["experiment", "method"])
    failing = [f"{name}: {words}" for name, words in held.loc[~held.holds, ["experiment", held.columns[1]]].to_numpy()]
    recorded = benchmark_records("fairness")
    sources = "; ".join(f"{name} on {first.title[name]}" for name in names)
    return {
        "setting": (
            f"{sources}; profile {parameters.profile}; variant {parameters.variant}; "
            f"{seeds} seed{'s' if seeds > 1 else ''}; means over the last {_tail(epochs)} of {epochs} epochs"
        ),
        "experiments": ", ".join(names),
        "rows_of_paper": ", ".join(of_paper) or "none of the experiments",
        "shares": ", ".join(f"{name} {first.share[name]:.1%}" for name in names),
        "seeds": f"{seeds}",
        "epochs": f"{epochs}",
        "tail": f"{_tail(epochs)}",
        "runs": f"{len(runs)}",
        "minutes": f"{runs.seconds.sum() / 60:.1f}",
        "held": f"{int(held.holds.sum())} of {len(held)}",
        "failing": "; ".join(failing) or "none",
        "spbm": "; ".join(
            f"{name} {frame.loss[name, 'spbm']:.3f} at {frame.violation[name, 'spbm']:.3f}"
            for name in names
            if (name, "spbm") in frame.index
        )
        or "not run",
        "adam": "; ".join(
            f"{name} {frame.loss[name, 'adam']:.3f} at {frame.violation[name, 'adam']:.3f}"
            for name in names
            if (name, "adam") in frame.index
        )
        or "not run",
        "binding": "; ".join(_binding(tables, name) for name in names if "spbm" in set(runs.method)) or "not run",
        "recorded": ", ".join(record["figures"]["experiment"] for record in recorded),
        "recorded_on": ", ".join(sorted({record["date"] for record in recorded})),
        "recorded_by": "; ".join(record["command"] for record in recorded) or "none",
        "recorded_cost": ", ".join(
            f"{record['figures']['experiment']} {record['figures']['cpu_seconds'] / 60:.0f} min" for record in recorded
        ),
        "recorded_met": (
            f"{sum(row['met'] for record in recorded for row in record['targets'])} of "
            f"{sum(len(record['targets']) for record in recorded)}"
        ),
    }


def _final(tables: dict[str, pd.DataFrame], name: str, method: str) -> pd.Series:
    """Return each constraint's value at the end, a mean over the seeds and the last epochs, in units of the bound."""
    last = _last(tables["constraints"].query("experiment == @name and method == @method"))
    return last.groupby("constraint", observed=True).value.mean() / EXPERIMENTS[name].epsilon


def _binding(tables: dict[str, pd.DataFrame], name: str) -> str:
    final = _final(tables, name, "spbm")
    return f"{name} {int((final > -TOLERANCE).sum()):,} of {len(final):,}"


def _numbers(frame: pd.DataFrame) -> str:
    parts = [f"{METHODS[str(row.method)].label} {row.loss:.3f}/{row.violation:.3f}" for row in frame.itertuples()]
    return "; ".join(parts)


def _differs(frame: pd.DataFrame, epsilon: float) -> list[str]:
    """Return where numbers are not the paper's."""
    found = []
    for row in frame.to_dict("records"):
        if math.isnan(row["paper_loss"]):
            continue
        label = METHODS[row["method"]].label
        if abs(row["loss"] - row["paper_loss"]) > max(_LOSS, _SHARE * row["paper_loss"]):
            found.append(f"{label}'s loss {row['loss']:.3f} for {row['paper_loss']:.3f}")
        off = abs(row["violation"] - row["paper_violation"])
        if off > max(_VIOLATION * epsilon, _SHARE * row["paper_violation"]):
            found.append(f"{label}'s violation {row['violation']:.3f} for {row['paper_violation']:.3f}")
    return found


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims; nothing where a configuration is not the paper's."""
    if parameters.variant != "paper":
        return ()
    frame = table_2(tables)
    held = conditions(frame)
    names = [str(name) for name in tables["runs"].experiment.unique()]
    found = [_table_2_row(tables, frame, held[name], name) for name in names]
    if len(parameters.resolved().experiment or ()) > 1:
        found += [_absent(name) for name in EXPERIMENTS if name not in names and not _any_here(name)]
    if losses := _pairs(frame, ("E4", "E5"), "ssl-alm"):
        feasible = {name: held[name]["SPBM is feasible within 10 %"] for name in losses}
        better = all(mine < 0.5 * other for mine, other in losses.values())
        measured = "; ".join(f"{name}: SPBM {mine:.3f}, SSL-ALM {other:.3f}" for name, (mine, other) in losses.items())
        failing = ", ".join(name for name in losses if not feasible[name])
        measured += f"; SPBM not feasible on {failing}" if failing else ""
        found.append(_judged("spbm-t2-multiclass", tables, losses, better and not failing, measured))
    if losses := _pairs(frame, ("E4",), "adam"):
        mine, other = losses["E4"]
        measured = f"loss of SPBM {mine:.3f}, of Adam {other:.3f}"
        found.append(_judged("spbm-t2-adam-e4", tables, losses, mine < other, measured))
    return (*found, _convergence(tables))


def _short(tables: dict[str, pd.DataFrame], name: str) -> str:
    """Return why an experiment's runs are not the paper's length; "" where they are."""
    share = float(tables["runs"].query("experiment == @name").share.min())
    return "" if share > 0.99 else f"{share:.1%} of the paper's steps"


def _reasons(tables: dict[str, pd.DataFrame], name: str) -> list[str]:
    """Return in what the runs of an experiment differ from the paper's."""
    runs = tables["runs"].query("experiment == @name")
    reasons = [] if runs.as_paper.all() else ["not the paper's rows, or not its network: numbers do not compare"]
    seeds = runs.seed.nunique()
    reasons += [short] if (short := _short(tables, name)) else []
    return reasons + ([f"{seeds} of {_PAPER_SEEDS} seeds"] if seeds < _PAPER_SEEDS else [])


def _table_2_row(
    tables: dict[str, pd.DataFrame], table: pd.DataFrame, held: Mapping[str, bool], name: str
) -> Measurement:
    frame = table.query("experiment == @name")
    runs = tables["runs"].query("experiment == @name")
    failing = [words for words, holds in held.items() if not holds]
    reasons, data = _reasons(tables, name), str(runs.title.iloc[0])
    missing = [METHODS[method].label for method in PAPER[name] if method not in set(frame.method)]
    reasons += [f"without {', '.join(missing)}"] if missing else []
    claim, measured = f"spbm-table2-{name.lower()}", _numbers(frame) + " (loss/violation)"
    if not held:  # none of the table's statements is about these methods alone
        return Measurement(claim, measured, "not testable", "; ".join(reasons), data)
    if failing:
        reason = "; ".join([f"does not hold: {', '.join(failing)}", *reasons])
        if _short(tables, name):  # what a fraction of the steps does not reach, all of them may
            return Measurement(claim, measured, "not testable", reason, data)
        # One statement of several, of the paper's five numbers on others' rows
        verdict = "reproduced in part" if len(failing) == 1 and "SPBM" not in failing[0] else "not reproduced"
        return Measurement(claim, measured, verdict, reason, data)
    if runs.as_paper.all():
        reasons += _differs(frame, EXPERIMENTS[name].epsilon)
    return Measurement(claim, measured, "reproduced in part" if reasons else "reproduced", "; ".join(reasons), data)


def _absent(name: str) -> Measurement:
    missing = SOURCES[EXPERIMENTS[name].sources[0]]
    reason = f"{missing.title} is not at hand: `fairfront data fetch {missing.data}`"
    return Measurement(f"spbm-table2-{name.lower()}", "", "not testable", reason, missing.title)


def _pairs(frame: pd.DataFrame, names: tuple[str, ...], rival: str) -> dict[str, tuple[float, float]]:
    """Return SPBM's and a rival's loss for each of some experiments that has both."""
    loss = frame.set_index(["experiment", "method"]).loss
    return {
        name: (float(loss[name, "spbm"]), float(loss[name, rival]))
        for name in names
        if (name, "spbm") in loss.index and (name, rival) in loss.index
    }


def _judged(
    claim: str, tables: dict[str, pd.DataFrame], losses: Mapping[str, tuple[float, float]], holds: bool, measured: str
) -> Measurement:
    reasons = [f"{name}: {reason}" for name in losses for reason in _reasons(tables, name)]
    titles = [str(tables["runs"].query("experiment == @name").title.iloc[0]) for name in losses]
    if not holds:
        reasons.insert(0, "it is not so")
    if not holds and any(_short(tables, name) for name in losses):
        verdict = "not testable"
    else:
        verdict = ("reproduced in part" if reasons else "reproduced") if holds else "not reproduced"
    return Measurement(claim, measured, verdict, "; ".join(reasons), "; ".join(titles))


def _convergence(tables: dict[str, pd.DataFrame]) -> Measurement:
    runs = tables["runs"]
    names = [str(name) for name in runs.experiment.unique()]
    settled = {name: _settled(tables, name) for name in names if "spbm" in set(runs.method)}
    measured = "; ".join(
        f"{name}: SPBM's violation stays within 10 % of the bound "
        + ("never" if epoch is None else f"from epoch {epoch} of {last} on")
        for name, (epoch, last) in settled.items()
    )
    reasons = ["the paper's figures print no numbers", "E6 to E8 in pinn_benchmark"]
    reasons += [f"without {name}" for name in EXPERIMENTS if name not in names]
    failing = [name for name, (epoch, _) in settled.items() if epoch is None]
    if not settled:
        verdict = "not testable"
    elif failing:
        short = any(_short(tables, name) for name in failing)
        reasons.insert(0, f"does not settle: {', '.join(failing)}")
        verdict = "not testable" if short else "not reproduced"
    else:
        verdict = "reproduced in part"
    titles = runs.groupby("experiment", sort=False).title.first()
    data = "; ".join(f"{name}: {title}" for name, title in titles.items())
    return Measurement("spbm-convergence", measured or "SPBM was not run", verdict, "; ".join(reasons), data)


def _settled(tables: dict[str, pd.DataFrame], name: str) -> tuple[int | None, int]:
    """Return from which epoch on SPBM's violation, a mean over the seeds, is within 10 % of the bound; the last one."""
    mine = tables["history"].query("experiment == @name and method == 'spbm'")
    mean = mine.groupby("epoch").max_violation.mean()
    late = np.flatnonzero(mean.to_numpy() > TOLERANCE * EXPERIMENTS[name].epsilon)
    first = 0 if late.size == 0 else int(late[-1]) + 1
    last = int(mean.index[-1])
    return (int(mean.index[first]) if first < len(mean) else None), last


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_curves(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw Figures 2 to 6: loss, largest violation and accuracy against epochs, a row an experiment."""
    history = tables["history"]
    names = [str(name) for name in history.experiment.unique()]
    panes = {"loss": "loss", "max_violation": "largest violation", "accuracy": "accuracy"}
    with style():
        figure, axes = panels(len(names), len(panes), width=2.75, height=1.95)
        for row, name in enumerate(names):
            mine = history[history.experiment == name]
            for column, (key, words) in enumerate(panes.items()):
                ax = axes[row, column]
                for method, mark in METHODS.items():
                    curves = mine[mine.method == method].pivot_table(index="epoch", columns="seed", values=key)
                    if curves.empty:
                        continue
                    mean, spread = curves.mean(axis=1), curves.std(axis=1, ddof=0)
                    dots = {"marker": mark.marker, "markersize": 4, "markevery": max(1, len(mean) // 5)}
                    ax.plot(curves.index, mean, color=mark.colour, label=mark.label, **dots)
                    ax.fill_between(curves.index, mean - spread, mean + spread, color=mark.colour, alpha=0.2, lw=0)
                if row == 0:
                    ax.set_title(words)
                if row == len(names) - 1:
                    ax.set_xlabel("epoch")
                ax.xaxis.get_major_locator().set_params(integer=True)
            _violation_axis(axes[row, 1], EXPERIMENTS[name].epsilon)
            if mine.loss.max() > 8 * max(mine.loss.min(), 1e-9):
                axes[row, 0].set_yscale("log")
                decades = math.log10(mine.loss.max() / max(mine.loss.min(), 1e-9))
                axes[row, 0].yaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0)))
                axes[row, 0].yaxis.set_major_formatter("{x:g}")
                axes[row, 0].yaxis.set_minor_locator(NullLocator())
            axes[row, 0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=12)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _violation_axis(ax: Axes, epsilon: float) -> None:
    """Mark the bound and its tolerance, and compress what lies far beyond them."""
    low, high = ax.get_ylim()
    ax.axhspan(low, 0.0, color="#009E73", alpha=0.08, lw=0)
    ax.axhline(0.0, color="#000000", linewidth=0.8, linestyle="--")
    ax.set_ylim(low, max(high, 0.3 * epsilon))
    if high > 8 * epsilon:
        _symlog(ax, "y", epsilon, low, high)


def _symlog(ax: Axes, which: Literal["x", "y"], threshold: float, low: float, high: float) -> None:
    """Make an axis linear up to a threshold and logarithmic beyond it, with few ticks, in plain numbers."""
    if which == "x":
        ax.set_xscale("symlog", linthresh=threshold)
        ax.set_xlim(low, high)
    else:
        ax.set_yscale("symlog", linthresh=threshold)
        ax.set_ylim(low, high)
    steps = [threshold * 10.0**power for power in range(6)]
    inside = [tick for tick in (*(-step for step in reversed(steps)), 0.0, *steps) if low <= tick <= high]
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_ticks(inside, [f"{tick:g}" for tick in inside])
    axis.set_minor_locator(NullLocator())


def figure_table_2(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw Table 2: what was measured (filled, with its deviation) beside the paper's values (hollow)."""
    frame = table_2(tables)
    names = [str(name) for name in frame.experiment.unique()]
    shown = [method for method in METHODS if method in set(frame.method)]
    with style():
        figure, axes = panels(2, len(names), width=max(1.75, 4.5 / len(names)), height=1.75)
        for column, name in enumerate(names):
            rows, epsilon = frame[frame.experiment == name].set_index("method"), EXPERIMENTS[name].epsilon
            for row, (key, unit) in enumerate((("loss", 1.0), ("violation", epsilon))):
                ax = axes[row, column]
                for place, method in enumerate(shown):
                    if method not in rows.index:
                        continue
                    mark, mine = METHODS[method], rows.loc[method]
                    ax.errorbar(
                        mine[key] / unit,
                        place,
                        xerr=mine[f"{key}_sd"] / unit,
                        marker=mark.marker,
                        color=mark.colour,
                        markersize=mark.size,
                        capsize=2,
                    )
                    ax.plot(
                        mine[f"paper_{key}"] / unit,
                        place + 0.28,
                        marker="D",
                        markersize=5,
                        markerfacecolor="none",
                        markeredgecolor="#000000",
                        linestyle="none",
                    )
                ax.set_ylim(len(shown) - 0.4, -0.6)
                ax.set_yticks(
                    range(len(shown)), [METHODS[m].label for m in shown] if column == 0 else [""] * len(shown)
                )
                ax.set_xlabel("loss" if key == "loss" else "violation / bound")
                if row == 0:
                    ax.set_title(name)
                if key == "violation":
                    ax.axvspan(-TOLERANCE, TOLERANCE, color="#009E73", alpha=0.12, lw=0)
                    _symlog(ax, "x", 1.0, -0.3, 1.5 * max(1.0, ax.get_xlim()[1]))
                else:
                    high = ax.get_xlim()[1]
                    ax.set_xlim(-0.05 * high, 1.03 * high)
        handles = [
            axes[0, 0].plot([], [], "o", color="#555555", label="measured")[0],
            axes[0, 0].plot([], [], "D", mfc="none", mec="#000000", ms=5, label="the paper's Table 2")[0],
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def figure_constraints(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw every constraint's value at the end, in units of the bound, in ascending order: which ones bind."""
    runs = tables["runs"]
    names = [str(name) for name in runs.experiment.unique()]
    with style():
        figure, axes = panels(1, len(names), width=max(1.9, 4.5 / len(names)), height=2.6)
        for column, name in enumerate(names):
            ax = axes[0, column]
            for method, mark in METHODS.items():
                if method in set(runs[runs.experiment == name].method):
                    final = np.sort(_final(tables, name, method).to_numpy())
                    share = np.arange(1, len(final) + 1) / len(final)
                    dots = mark.marker if len(final) <= 30 else None
                    ax.plot(share, final, color=mark.colour, marker=dots, markersize=3.5, label=mark.label)
            ax.axhline(0.0, color="#000000", linewidth=0.8, linestyle="--")
            ax.set_title(f"{name}, m = {runs[runs.experiment == name].m.iloc[0]:,}")
            low, high = ax.get_ylim()
            if high - low > 8.0:
                _symlog(ax, "y", 1.0, 1.2 * low, 1.2 * high)
            ax.set(xlim=(0.0, 1.03), xlabel="share of them")
        axes[0, 0].set_ylabel("value / bound")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
