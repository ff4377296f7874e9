"""Figure 6 of the first paper: the implicit fairness function of two groups, and where the strategies stand on it.

For each data set the front is traced once; for each metric phi(lambda_1) = M(X w*(lambda)) is evaluated along it, all
its local minima are found by following its derivative, and the strategies of section 5.1.3 are placed on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.datasets import GroupedData, info
from fairfront.errors import ArgumentError
from fairfront.pareto import Front, trace, two_group_weights
from fairfront.plotting import FRONT, STRATEGIES, legend_below, mark_minima, mark_strategies, panels, style
from fairfront.risks import GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance, require_classification
from fairfront.studies.landscapes import SAME, VARIES, judge, pair_row
from fairfront.studies.parameters import ModelParameters, meta, split
from fairfront.studies.strategies import Comparison, Rivals, metric_for

__all__ = [
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_optima",
    "figure_two_groups",
    "measure",
    "run",
    "table_pairs",
    "units",
]

TITLE = "Two groups: the implicit fairness function"


@dataclass(frozen=True, kw_only=True)
class Parameters(ModelParameters):
    """What the study can be told; ``fairfront describe two_groups`` shows the same in a table."""

    data: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="data sets; the figure shows the first three", distinct=True)
    )
    metric: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(
            help="unfairness metrics; the figure shows the first three", choices=metrics.names, distinct=True
        ),
    )
    sensitive: str = field(default="gender", metadata=meta(help="sensitive attribute with two values"))
    points: int | None = field(default=None, metadata=meta(help="values of lambda_1", low=3, high=100000))

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        require_classification("data", *(self.data or ()))
        for name in self.data or ():
            attribute = info(name).attribute(self.sensitive)
            if len(attribute.levels) != 2:
                raise ArgumentError(
                    "sensitive",
                    f"{self.sensitive} has {len(attribute.levels)} values in {name}",
                    "an attribute with two; the studies three_groups and many_groups take more",
                )


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return parameters.resolved().data or ()


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts into which the study's work falls: a data set each."""
    return split(parameters, "data")


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
        curve: the implicit function: a row per data set, metric and point (data, metric, lambda_1, loss_1, loss_2,
        unfairness).
        strategies: a row per data set, metric and strategy (name, lambda_1, loss_1, loss_2, unfairness).
        minima: every local minimum (data, metric, lambda_1, unfairness, interior: not at an end of the interval).
        pairs: a row per data set and metric: the metric's floor, least and largest value along the front, minima,
        badr's lambda_1, the fairest other strategy (rival).
        groups: rows, groups and features of each data set.
    """
    parameters = parameters.resolved()
    assert parameters.data is not None and parameters.metric is not None and parameters.points is not None
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("curve", "strategies", "minima", "pairs", "groups")
    }
    work = [(name, metric) for name in parameters.data for metric in parameters.metric]
    last = ""
    for name, metric_name in progress(work, "implicit fairness functions", len(work)):
        if name != last:
            data = Instance(name, (parameters.sensitive,), parameters.seed).load(0.0)
            risks = GroupRisks.from_data(
                data, loss=parameters.loss, l2=parameters.l2, penalize_intercept=parameters.penalize_intercept
            )
            rivals, last = Rivals(risks), name
            front = trace(risks, two_group_weights(parameters.points))
            tables["groups"].append(_group_row(data))
        metric = metric_for(metric_name, loss=parameters.loss, variant=parameters.variant)
        bound = metric.bind(risks.y, risks.groups, risks.n_groups)
        values = [bound.value(model.point.scores) for model in front.models]
        found = rivals.compare(bound, resolution=max(parameters.points, 21))
        pair = {"data": name, "metric": metric_name}
        tables["curve"] += [pair | row for row in _curve_rows(front, values)]
        tables["strategies"] += [pair | row for row in _strategy_rows(found)]
        tables["minima"] += [pair | row for row in _minimum_rows(found)]
        tables["pairs"].append(pair | pair_row(metric, 2, max(values), found) | {"badr": _first(found)})
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def _first(found: Comparison) -> float:
    return float(found.strategies["badr"].model.weights[0])


def _group_row(data: GroupedData) -> dict[str, Any]:
    sizes = {f"rows_{a}": int(size) for a, size in enumerate(data.group_sizes, start=1)}
    return {
        "data": data.name,
        "title": info(data.name).title,
        "target": data.target,
        "rows": data.n_rows,
        "features": data.n_features,
        "group_1": data.group_names[0],
        "group_2": data.group_names[1],
        **sizes,
    }


def _curve_rows(front: Front, values: list[float]) -> Iterator[dict[str, float]]:
    for model, value in zip(front.models, values, strict=True):
        yield {
            "lambda_1": float(model.weights[0]),
            "loss_1": float(model.losses[0]),
            "loss_2": float(model.losses[1]),
            "unfairness": value,
        }


def _strategy_rows(found: Comparison) -> Iterator[dict[str, Any]]:
    for name, strategy in found.strategies.items():
        model = strategy.model
        yield {
            "name": name,
            "lambda_1": float(model.weights[0]),
            "loss_1": float(model.losses[0]),
            "loss_2": float(model.losses[1]),
            "unfairness": found.unfairness[name],
        }


def _minimum_rows(found: Comparison) -> Iterator[dict[str, Any]]:
    solution = found.bilevel
    for weights, value in zip(solution.local_minima, solution.minimum_values, strict=True):
        first = float(weights[0])
        yield {"lambda_1": first, "unfairness": float(value), "interior": bool(0.0 < first < 1.0)}


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_pairs(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per data set and metric with what the claims ask of it.

    Columns: data, badr's lambda_1, and those of :func:`fairfront.studies.landscapes.judge`.
    """
    pairs, judged = tables["pairs"], judge(tables["pairs"])
    judged.insert(0, "data", pairs.data.map(tables["groups"].set_index("data").title))
    judged.insert(4, "badr's lambda_1", pairs.badr)
    return judged


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    pairs, groups = table_pairs(tables), tables["groups"]
    shown = _shown(tables)
    reached, ends = pairs[pairs.reached], pairs["badr's lambda_1"].isin([0.0, 1.0])
    samples = ", ".join(f"{row.title} ({row.rows:,} rows)" for row in groups.itertuples() if row.data in shown[0])
    best = pairs.nlargest(1, "gain").iloc[0]
    change = pairs["balanced - uniform"]
    return {
        "setting": (
            f"{samples} by {parameters.sensitive}, all rows, no split; profile {parameters.profile}; metrics "
            f"{', '.join(name.replace('_', ' ') for name in shown[1])}, variant {parameters.variant}; "
            f"{parameters.loss} loss, l2 {parameters.l2:g}, intercept "
            f"{'penalised' if parameters.penalize_intercept else 'free'}"
        ),
        "all_setting": (
            f"{', '.join(groups.title)} by {parameters.sensitive}, {pairs.metric.nunique()} metrics, variant "
            f"{parameters.variant}; profile {parameters.profile}"
        ),
        "pairs": f"{len(pairs)}",
        "several": f"{int((pairs.minima > 1).sum())} of {len(pairs)}",
        "inside": f"{int((pairs.inside > 0).sum())} of {len(pairs)}",
        "ends": f"{int(ends.sum())} of {len(pairs)}",
        "reached": f"{len(reached)} of {len(pairs)}",
        "reached_by": ", ".join(f"{name} {count}" for name, count in reached["next fairest"].value_counts().items())
        or "none",
        "varies_least": f"{pairs.varies.min():.0%}",
        "varies_median": f"{pairs.varies.median():.0%}",
        "best_gain": f"{best.gain:.0%}",
        "gain_median": f"{pairs[~pairs.reached].gain.median():.1%}" if (~pairs.reached).any() else "nothing",
        "free": f"{int((~pairs.reached).sum())} of {len(pairs)}",
        "best_gain_at": f"{best.metric} on {best.data}, against {best['next fairest']}",
        "balanced_worse": f"{int((change > SAME).sum())} of {len(pairs)}",
        "balanced_better": f"{int((change < -SAME).sum())} of {len(pairs)}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims."""
    pairs = table_pairs(tables)
    data = "; ".join(
        f"{row.title}, {row.rows:,} rows by {parameters.sensitive}" for row in tables["groups"].itertuples()
    )
    return _varies(pairs, data), _non_trivial(pairs, data), _balanced(pairs, data)


def _varies(pairs: pd.DataFrame, data: str) -> Measurement:
    share = (pairs.varies >= VARIES).mean()
    measured = (
        f"the best weights remove {pairs.varies.min():.0%} to {pairs.varies.max():.0%} of the largest unfairness on "
        f"the front (median {pairs.varies.median():.0%}) in {len(pairs)} pairs of data set and metric"
    )
    if share == 1.0:
        return Measurement("badr-fig6-vary", measured, "reproduced", "", data)
    verdict = "reproduced in part" if share >= 0.5 else "not reproduced"
    return Measurement("badr-fig6-vary", measured, verdict, f"less than {VARIES:.0%} in {1 - share:.0%} of them", data)


def _non_trivial(pairs: pd.DataFrame, data: str) -> Measurement:
    several, free = pairs.minima > 1, ~pairs.reached
    reached = pairs[pairs.reached]["next fairest"].value_counts()
    by = ", ".join(f"{name} in {count}" for name, count in reached.items())
    measured = (
        f"several local minima in {several.sum()} of {len(pairs)} pairs, counting ends of the interval "
        f"({(pairs.inside > 0).sum()} with one inside); badr's weights reached by no other strategy in {free.sum()}"
    )
    if several.all() and free.all():
        return Measurement("badr-fig6-minima", measured, "reproduced", "", data)
    verdict = "reproduced in part" if several.any() and free.any() else "not reproduced"
    reason = f"badr's optimum is also found by {by}" if by else "some functions have one minimum"
    return Measurement("badr-fig6-minima", measured, verdict, reason, data)


def _balanced(pairs: pd.DataFrame, data: str) -> Measurement:
    change = pairs["balanced - uniform"]
    worse, better = int((change > SAME).sum()), int((change < -SAME).sum())
    measured = (
        f"balanced weights are less fair than uniform ones in {worse} of {len(pairs)} pairs, fairer in {better}, the "
        f"same to {SAME:g} of the metric's range in {len(pairs) - worse - better}"
    )
    if worse:
        return Measurement("badr-fig6-balanced", measured, "reproduced", "", data)
    return Measurement("badr-fig6-balanced", measured, "not reproduced", "balanced weights are never less fair", data)


# --- figures ---------------------------------------------------------------------------------------------------------


def _shown(tables: dict[str, pd.DataFrame]) -> tuple[list[str], list[str]]:
    """Return the data sets and the metrics of the figure: the first three of each."""
    pairs = tables["pairs"]
    return list(pairs.data.unique()[:3]), list(pairs.metric.unique()[:3])


def figure_two_groups(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw Figure 6: unfairness along the front against lambda_1, a row per data set and a column per metric."""
    shown, chosen = _shown(tables)
    groups = tables["groups"].set_index("data")
    with style():
        figure, axes = panels(len(shown), len(chosen), height=2.3)
        for row, name in enumerate(shown):
            for column, metric in enumerate(chosen):
                _draw_function(axes[row, column], tables, name, metric)
                if row == 0:
                    axes[row, column].set_title(metric.replace("_", " "))
            axes[row, 0].set_ylabel(groups.title[name])
        for ax in axes[-1]:
            ax.set_xlabel(rf"weight $\lambda_1$ of {groups.group_1[shown[-1]]}")
        legend_below(axes[0, 0], 4)
    return figure


def _draw_function(ax: Axes, tables: dict[str, pd.DataFrame], name: str, metric: str) -> None:
    def mine(table: str) -> pd.DataFrame:
        frame = tables[table]
        return frame[(frame.data == name) & (frame.metric == metric)]

    curve, minima, strategies = mine("curve"), mine("minima"), mine("strategies")
    ax.plot(curve.lambda_1, curve.unfairness, color=FRONT, label="implicit function")
    mark_minima(ax, minima.lambda_1, minima.unfairness)
    mark_strategies(ax, {row["name"]: (row.lambda_1, row.unfairness) for _, row in strategies.iterrows()})
    ax.set_xlim(-0.03, 1.03)
    ax.margins(y=0.15)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.locator_params(axis="y", nbins=5)


def figure_optima(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw where every local minimum is: lambda_1 of each, a row per data set and metric, badr's marked."""
    pairs, minima = tables["pairs"], tables["minima"]
    titles = tables["groups"].set_index("data").title
    shown = list(pairs.data.unique())
    chosen = list(pairs.metric.unique())
    place = {metric: len(chosen) - 1 - i for i, metric in enumerate(chosen)}
    columns = min(3, len(shown))
    with style():
        figure, axes = panels(-(-len(shown) // columns), columns, height=0.7 + 0.24 * len(chosen))
        for ax in axes.flat[len(shown) :]:
            ax.set_axis_off()
        for ax, name in zip(axes.flat, shown, strict=False):
            mine, best = minima[minima.data == name], pairs[pairs.data == name]
            mark_minima(ax, mine.lambda_1, mine.metric.map(place), size=9, zorder=2)
            mark = STRATEGIES["badr"]
            ax.plot(
                best.badr,
                best.metric.map(place),
                linestyle="none",
                marker=mark.marker,
                markersize=11,
                markerfacecolor=mark.colour,
                markeredgecolor="white",
                label=mark.label,
                clip_on=False,
                zorder=4,
            )
            ax.set(title=titles[name], xlabel=r"$\lambda_1$", xlim=(-0.03, 1.03), ylim=(-0.6, len(chosen) - 0.4))
            ax.set_yticks(list(place.values()), [metric.replace("_", " ") for metric in place])
            if ax is not axes[axes.shape[0] - 1, 0] and ax not in axes[:, 0]:
                ax.set_yticklabels([])
        legend_below(axes.flat[0], 2)
    return figure
