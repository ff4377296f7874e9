"""Table 3 of the first paper: the seven unfairness metrics, each against its definition, and what they tell apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from fairfront import metrics
from fairfront.datasets import GroupedData, info
from fairfront.errors import ArgumentError
from fairfront.metrics import Metric, hard
from fairfront.metrics.base import VARIANTS
from fairfront.pareto import Scalarization, two_group_weights, uniform_weights
from fairfront.plotting import FRONT, PATH, legend_below, panels, style
from fairfront.risks import Array, GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance
from fairfront.studies.parameters import StudyParameters, meta, split
from fairfront.theory import seven_metrics as theory

__all__ = [
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_hard",
    "figure_renumbering",
    "figure_sharpness",
    "measure",
    "run",
    "table_checks",
    "table_hard",
    "table_renumbering",
    "units",
]

TITLE = "The seven metrics"
SHARPNESS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
PARTS = ("definitions", "front")
SHARPENED = ("demographic_parity", "equal_opportunity", "equalized_odds")


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe seven_metrics`` shows the same in a table."""

    partition: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="partitions, DATA:ATTRIBUTE or DATA:ATTRIBUTE+ATTRIBUTE")
    )
    front: str = field(
        default="acs2012-income:gender", metadata=meta(help="partition in two groups, for smooth against hard values")
    )
    l2: float = field(default=1e-2, metadata=meta(help="weight of |w|^2/2 in each group's risk", low=1e-6, high=1e3))
    points: int | None = field(default=None, metadata=meta(help="points of the front", low=5, high=100000))
    rows: int | None = field(
        default=None, metadata=meta(help="most rows for the definitions, which take all pairs", low=50, high=20000)
    )
    orders: int | None = field(default=None, metadata=meta(help="most renumberings of the groups", low=2, high=5040))
    part: str = field(default="all", metadata=meta(help="one part of the tables alone", choices=("all", *PARTS)))

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        for words in (*(self.partition or ()), self.front):
            Instance.parse(words)


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    words = (*(parameters.resolved().partition or ()), parameters.front)
    return tuple(dict.fromkeys(part.partition(":")[0] for part in words))


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts into which the study's work falls: the definitions on a partition each, and the front."""
    if parameters.part == "front":
        return (dataclasses.replace(parameters, partition=()),)
    definitions = split(dataclasses.replace(parameters, part="definitions"), "partition")
    if parameters.part == "definitions":
        return definitions
    return (*definitions, dataclasses.replace(parameters, part="front", partition=()))


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
        checks: a row per partition, metric, variant and check (value, derivative, floor).
        renumbering: least, largest and own value under renumberings of the groups.
        hard: smooth values (cited and paper) and the hard counterpart along a front of two groups.
        sharpness: smooth values of one model as rho grows, and the hard value that they approach.
    """
    parameters = parameters.resolved()
    assert parameters.partition is not None and parameters.rows and parameters.orders
    checks: list[dict[str, Any]] = []
    renumbering: list[dict[str, Any]] = []
    partitions = parameters.partition if parameters.part != "front" else ()
    for words in progress(partitions, "definitions", len(partitions)):
        data = Instance.parse(words, seed=parameters.seed).load(0.0)
        risks, scores = _uniform(data, parameters.l2)
        generator = np.random.default_rng(parameters.seed)
        few = _subset(risks, parameters.rows, generator)
        for metric in _metrics(data.task):
            case = {"partition": words, "groups": data.n_groups, "metric": metric.name, "variant": metric.variant}
            try:
                checks += [case | row for row in _checks(metric, risks, scores, few, generator)]
            except ArgumentError as error:  # a group without a row that the metric needs
                checks.append(
                    case
                    | {"check": "not defined", "measured": np.nan, "bound": np.nan, "holds": True}
                    | {"note": str(error)}
                )
                continue
            values = theory.renumbered(metric, scores, risks.y, risks.groups, most=parameters.orders)
            own = metric.bind(risks.y, risks.groups, risks.n_groups).value(scores)
            renumbering.append(
                case | {"own": own, "least": values.min(), "largest": values.max(), "orders": len(values)}
            )
    along, sharpness = _along_front(parameters) if parameters.part != "definitions" else ([], [])
    return {
        "checks": pd.DataFrame(checks),
        "renumbering": pd.DataFrame(renumbering),
        "hard": pd.DataFrame(along),
        "sharpness": pd.DataFrame(sharpness),
    }


def _uniform(data: GroupedData, l2: float) -> tuple[GroupRisks, Array]:
    """Return the risks, and the scores of the model at uniform weights, in the risks' order."""
    loss = "logistic" if data.task == "classification" else "squared"
    risks = GroupRisks.from_data(data, loss=loss, l2=l2, penalize_intercept=False)
    return risks, Scalarization(risks).solve(uniform_weights(risks.n_groups)).point.scores


def _subset(risks: GroupRisks, rows: int, generator: np.random.Generator) -> Array:
    """Return at most about ``rows`` rows: of each group and label as many as its share, and at least two."""
    cells: dict[tuple[int, bool], list[int]] = {}
    above = risks.y > np.median(risks.y) if risks.loss.task == "regression" else risks.y == 1
    for i, (group, side) in enumerate(zip(risks.groups, above, strict=True)):
        cells.setdefault((int(group), bool(side)), []).append(i)
    chosen = [
        generator.choice(members, min(len(members), max(2, round(len(members) * rows / risks.n_rows))), replace=False)
        for members in cells.values()
    ]
    return np.sort(np.concatenate(chosen))


def _metrics(task: str) -> Iterator[Metric]:
    for name in metrics.names():
        for variant in VARIANTS:
            try:
                yield metrics.get(name, variant=variant, task=task)  # type: ignore[arg-type]
            except ArgumentError:
                continue


def _checks(
    metric: Metric, risks: GroupRisks, scores: Array, few: Array, generator: np.random.Generator
) -> Iterator[dict[str, Any]]:
    z, y, groups = scores[few], risks.y[few], risks.groups[few]
    bound, whole = metric.bind(y, groups, risks.n_groups), metric.bind(risks.y, risks.groups, risks.n_groups)
    for name, check in (
        ("definition", theory.value_is_definition(bound, z, y, groups)),
        ("derivative", theory.gradient_is_right(whole, scores, generator)),
        ("floor", theory.floor_is_least(bound, y, risks.n_groups, generator)),
    ):
        yield {"check": name, "measured": check.measured, "bound": check.bound, "holds": check.holds, "note": ""}


def _along_front(parameters: Parameters) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return smooth and hard values along a front, and those of its middle as the smooth ones sharpen."""
    data = Instance.parse(parameters.front, seed=parameters.seed).load(0.0)
    if data.n_groups != 2 or data.task != "classification":
        raise ArgumentError(
            "front", f"{parameters.front} has {data.n_groups} groups ({data.task}), needs two classes, two groups"
        )
    risks, scores = _uniform(data, parameters.l2)
    solver, y, groups = Scalarization(risks), risks.y, risks.groups
    smooth = {
        (name, variant): metrics.get(name, variant=variant).bind(y, groups, 2)
        for name in metrics.names()
        for variant in VARIANTS
    }
    assert parameters.points is not None
    along = []
    for weights in two_group_weights(parameters.points):
        z = solver.solve(weights).point.scores
        for name in metrics.names():
            row = {"lambda_1": float(weights[0]), "metric": name}
            row |= {variant: smooth[name, variant].value(z) for variant in VARIANTS}
            along.append(row | {"hard": _hard(name, z, risks)})
    sharpness = [
        {
            "metric": name,
            "rho": rho,
            "smooth": metrics.get(name, rho=rho).bind(y, groups, 2).value(scores),
            # Demographic parity is about distances from the mean rate: for two groups half of their difference.
            "hard": _hard(name, scores, risks) * (0.5 if name == "demographic_parity" else 1.0),
        }
        for name in SHARPENED
        for rho in SHARPNESS
    ]
    return along, sharpness


def _hard(name: str, z: Array, risks: GroupRisks) -> float:
    """Return the hard counterpart's value, NaN where there is none."""
    if name not in hard.COUNTERPARTS:
        return float("nan")
    if name == "group_variance":
        return hard.group_loss_difference(risks.loss.value(z, risks.y), risks.groups)
    if name == "equalized_odds":  # the mean of both gaps, as the smooth metric
        return hard.equalized_odds_difference(risks.y, hard.predicted(z), risks.groups, agg="mean")
    return hard.COUNTERPARTS[name](risks.y, hard.predicted(z), risks.groups)


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_checks(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the worst of each check by metric and variant, over the partitions."""
    frame = tables["checks"][tables["checks"].check != "not defined"]
    wide = frame.pivot_table(index=["metric", "variant"], columns="check", values="measured", aggfunc="max", sort=False)
    return wide[["definition", "derivative", "floor"]].rename_axis(columns=None).reset_index()


def table_renumbering(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what renumbering does to disparate mistreatment and HSIC on every partition of three groups or more."""
    frame = tables["renumbering"]
    mine = frame[frame.metric.isin(["disparate_mistreatment", "hsic"]) & (frame.groups > 2)]
    return mine[["partition", "groups", "metric", "variant", "own", "least", "largest"]].reset_index(drop=True)


def table_hard(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, for each metric, how its smooth values go with the hard ones along the front.

    Rank correlation, and the hard value at the smooth metric's minimum beside the least and the largest hard value.
    """
    rows = []
    for name, mine in tables["hard"].dropna().groupby("metric", sort=False):
        for variant in VARIANTS:
            rows.append(
                {
                    "metric": name,
                    "variant": variant,
                    "rank correlation": float(spearmanr(mine[variant], mine.hard).statistic),
                    "hard at the smooth minimum": float(mine.hard.iloc[int(mine[variant].to_numpy().argmin())]),
                    "least hard": float(mine.hard.min()),
                    "largest hard": float(mine.hard.max()),
                }
            )
    return pd.DataFrame(rows)


def _most_moved(published: pd.DataFrame) -> dict[str, str]:
    """Return in words where renumbering moves a published value most; dashes where no partition has three groups."""
    if not len(published):
        return {f"renumber_{name}": "-" for name in ("where", "least", "largest", "factor")}
    worst = published.nlargest(1, "factor").iloc[0]
    return {
        "renumber_where": f"{Instance.parse(worst.partition).title}, {str(worst.metric).replace('_', ' ')}",
        "renumber_least": f"{worst.least:.2g}",
        "renumber_largest": f"{worst.largest:.2g}",
        "renumber_factor": f"{worst.factor:,.0f}",
    }


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    done = tables["checks"][tables["checks"].check != "not defined"]
    numbers, hardly = table_renumbering(tables), table_hard(tables)
    published = numbers[numbers.variant == "paper"]
    factor = published.largest / published.least.clip(lower=1e-300)
    cited = tables["renumbering"][tables["renumbering"].variant == "cited"]
    sharp = tables["sharpness"]
    last = sharp[sharp.rho == max(SHARPNESS)]
    where = ", ".join(f"{Instance.parse(w).title}" for w in parameters.partition or ())
    by = {check: done[done.check == check].measured.max() for check in ("definition", "derivative", "floor")}
    weakest = hardly.nsmallest(1, "rank correlation").iloc[0]
    return {
        "setting": (
            f"{where}; all rows, model at uniform weights, l2 {parameters.l2:g}; "
            f"profile {parameters.profile}; both variants"
        ),
        "setting_front": (
            f"{Instance.parse(parameters.front).title}, all rows, logistic, l2 {parameters.l2:g}, "
            f"{parameters.points} points; profile {parameters.profile}; variants cited and paper"
        ),
        "cases": f"{len(done):,}",
        "skipped": f"{int((tables['checks'].check == 'not defined').sum())}",
        "off_definition": f"{by['definition']:.0e}",
        "off_derivative": f"{by['derivative']:.0e}",
        "off_floor": f"{by['floor']:.0e}",
        **_most_moved(published.assign(factor=factor)),
        "renumber_cited": f"{((cited.largest - cited.least) / cited.largest.clip(lower=1e-12)).max():.0e}",
        "sharp_left": f"{(last.smooth - last.hard).abs().max():.3f}",
        "sharp_first": f"{(sharp[sharp.rho == 1.0].smooth - last.hard.to_numpy()).abs().max():.3f}",
        "weakest": f"{str(weakest.metric).replace('_', ' ')}, variant {weakest.variant}",
        "weakest_rank": f"{weakest['rank correlation']:.2f}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claim; one part of them alone says nothing."""
    if parameters.part != "all":
        return ()
    done = tables["checks"][tables["checks"].check != "not defined"]
    data = "; ".join(info(name).title for name in datasets(parameters))
    names = done.metric.nunique()
    measured = (
        f"{names} metrics, {len(done)} checks of values, derivatives and floors on "
        f"{done.partition.nunique()} partitions"
    )
    bad = done[~done.holds]
    if len(bad) or names < len(metrics.names()):
        where = ", ".join(sorted(set(bad.metric + "/" + bad.check))) or "a metric is missing"
        return (Measurement("badr-table3", measured, "not reproduced", where, data),)
    numbers = table_renumbering(tables)
    published = numbers[numbers.variant == "paper"]
    moved = published[published.largest > 1.01 * published.least]
    if len(moved):
        factor = (moved.largest / moved.least).max()
        measured += (
            f", all within tolerance; renumbering the groups moves a published value by a factor of up to {factor:,.0f}"
        )
        reason = (
            "as published, disparate mistreatment sees no label and, like HSIC, depends on how more than two groups "
            "are numbered; the definitions that the table cites do not"
        )
        return (Measurement("badr-table3", measured, "reproduced in part", reason, data),)
    return (Measurement("badr-table3", f"{measured}, all within tolerance", "reproduced", "", data),)


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_hard(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw smooth values (left axis, as shares of their range) and hard ones along the front, a panel a metric."""
    frame = tables["hard"]
    names = list(metrics.names())
    with style():
        figure, axes = panels(2, 4, width=2.35, height=2.3)
        for ax, name in zip(axes.flat, names, strict=False):
            mine = frame[frame.metric == name]
            for variant, colour, line in (("cited", FRONT, "-"), ("paper", PATH, "--")):
                values = mine[variant]
                ax.plot(mine.lambda_1, _share(values), color=colour, linestyle=line, label=f"smooth, {variant}")
            if mine.hard.notna().all():
                ax.plot(mine.lambda_1, _share(mine.hard), color="#000000", linewidth=1.0, label="hard")
            ax.set(title=name.replace("_", " "), xlabel=r"$\lambda_1$", ylim=(-0.05, 1.05))
        for ax in axes.flat[len(names) :]:
            ax.axis("off")
        for ax in axes[:, 0]:
            ax.set_ylabel("share of the range")
        axes[1, 3].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
    return figure


def _share(values: pd.Series) -> pd.Series:
    return (values - values.min()) / max(float(values.max() - values.min()), 1e-300)


def figure_sharpness(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw how the smooth values approach the hard ones as rho grows."""
    frame = tables["sharpness"]
    with style():
        figure, axes = panels(1, len(SHARPENED), height=2.5)
        for ax, name in zip(axes[0], SHARPENED, strict=True):
            mine = frame[frame.metric == name]
            ax.semilogx(mine.rho, mine.smooth, color=FRONT, marker="o", label="smooth (cited)")
            ax.axhline(mine.hard.iloc[0], color="#000000", linewidth=1.2, linestyle="--", label="hard")
            ax.set(title=name.replace("_", " "), xlabel=r"sharpness $\rho$", ylim=(0, None))
        axes[0, 0].set_ylabel("unfairness")
        legend_below(axes[0, 0], 2)
    return figure


def figure_renumbering(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the range of values under renumbering, over the value at the data's own numbering."""
    frame = table_renumbering(tables)
    with style():
        figure, axes = panels(1, 2, width=3.8, height=0.9 + 0.32 * frame.partition.nunique() + 0.8)
        for ax, name in zip(axes[0], ("disparate_mistreatment", "hsic"), strict=True):
            labels = list(frame.partition.unique())
            for variant, colour, shift in (("cited", FRONT, 0.12), ("paper", PATH, -0.12)):
                mine = frame[(frame.metric == name) & (frame.variant == variant)]
                heights = np.array([len(labels) - 1 - labels.index(p) for p in mine.partition]) + shift
                low, high = (mine[c] / mine.own.clip(lower=1e-300) for c in ("least", "largest"))
                ax.hlines(heights, low.clip(lower=1e-6), high, color=colour, linewidth=4, label=variant)
                marker, size = ("o", 6) if variant == "cited" else ("|", 9)  # the cited ranges have no length
                shade = colour if variant == "cited" else "#000000"
                ax.plot(np.ones(len(mine)), heights, marker, color=shade, markersize=size)
            ax.set_xscale("log")
            ax.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=7)
            if ax is not axes[0, 0]:
                ax.tick_params(labelleft=False)
            ax.set(title=name.replace("_", " "), xlabel="value / value at own numbers", ylim=(-0.5, len(labels) - 0.5))
        legend_below(axes[0, 0], 2)
    return figure
