"""Figure 7 of the first paper: the implicit fairness function of three groups over the simplex of their weights.

For each data set the simplex is swept once, each solution a start for its neighbour; every metric is evaluated on the
way. The local minima of the grid are starts for badr's search, besides the other strategies' weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fairfront import metrics
from fairfront.datasets import GroupedData, info
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import Scalarization, three_group_weights
from fairfront.plotting import (
    Html,
    barycentric,
    draw_simplex,
    legend_below,
    mark_minima,
    mark_strategies,
    panels,
    simplex_explorer,
    style,
)
from fairfront.risks import Array, GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance, require_classification, thinned
from fairfront.studies.landscapes import SAME, VARIES, judge, pair_row
from fairfront.studies.parameters import ModelParameters, meta, split
from fairfront.studies.strategies import NAMES, Comparison, Rivals, metric_for

__all__ = [
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_explorer",
    "figure_three_groups",
    "grid_minima",
    "measure",
    "run",
    "sweep",
    "table_pairs",
    "units",
]

TITLE = "Three groups: the simplex of weights"
LAMBDA = ("lambda_1", "lambda_2", "lambda_3")
LOSS = ("loss_1", "loss_2", "loss_3")
_SHOWN_RESOLUTION = 50  # of the interactive page: 1,326 points


@dataclass(frozen=True, kw_only=True)
class Parameters(ModelParameters):
    """What the study can be told; ``fairfront describe three_groups`` shows the same in a table."""

    partition: tuple[str, ...] = field(
        default=("compas:age", "acs2012-employment:race", "german:gender+age"),
        metadata=meta(
            help="DATA:ATTRIBUTE or DATA:ATTRIBUTE+ATTRIBUTE; the smallest cells are merged to three groups",
            distinct=True,
        ),
    )
    metric: tuple[str, ...] = field(
        default=("demographic_parity", "equalized_odds", "individual_fairness"),
        metadata=meta(help="unfairness metrics, one column of the figure each", choices=metrics.names, distinct=True),
    )
    loss: str = field(
        default="squared_hinge",
        metadata=meta(help="loss of the models: the smoothed SVM of the figure", choices=("squared_hinge", "logistic")),
    )
    resolution: int | None = field(
        default=None, metadata=meta(help="weights are multiples of 1/resolution", low=4, high=1000)
    )
    rows: int | None = field(
        default=None, metadata=meta(help="data sets with more rows are thinned to so many; 0: never", low=0)
    )

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        require_classification("partition", *(Instance.parse(words).data for words in self.partition))
        if self.rows is not None and 0 < self.rows < 100:
            raise ArgumentError("rows", f"must be 0 or at least 100, got {self.rows}")


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return tuple(dict.fromkeys(Instance.parse(words).data for words in parameters.partition))


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts into which the study's work falls: a partition each."""
    return split(parameters, "partition")


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
        front: a row per partition and point of the simplex (partition, lambda_1..3, loss_1..3, a column per metric).
        strategies: a row per partition, metric and strategy (name, lambda_1..3, loss_1..3, unfairness).
        minima: every local minimum that is one on the grid too (partition, metric, lambda_1..3, unfairness).
        pairs: a row per partition and metric, see :func:`fairfront.studies.landscapes.pair_row`.
        groups: title, rows, and the three groups with their sizes.
    """
    parameters = parameters.resolved()
    assert parameters.resolution is not None and parameters.rows is not None
    weights = three_group_weights(parameters.resolution)
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in ("front", "strategies", "minima", "pairs", "groups")}
    for words in progress(parameters.partition, "simplexes", len(parameters.partition)):
        data = Instance.parse(words, seed=parameters.seed, groups=3).load(0.0)
        risks = _thinned(data, parameters)
        chosen = {
            name: metric_for(name, loss=parameters.loss, variant=parameters.variant) for name in parameters.metric
        }
        bound = {name: metric.bind(risks.y, risks.groups, 3) for name, metric in chosen.items()}
        losses, values = sweep(risks, bound, weights)
        front = pd.DataFrame(np.hstack([weights, losses]), columns=[*LAMBDA, *LOSS]).assign(**values)
        front.insert(0, "partition", words)
        tables["front"].append(front)
        tables["groups"].append(pd.DataFrame([_group_row(words, data, risks)]))
        rivals = Rivals(risks)
        for name, metric in bound.items():
            starts = tuple(weights[grid_minima(weights, values[name])])
            found = _confirmed(rivals.compare(metric, starts=starts), weights, values[name])
            pair = {"partition": words, "metric": name}
            largest = float(values[name].max())
            tables["strategies"].append(pd.DataFrame([pair | row for row in _strategy_rows(found)]))
            tables["minima"].append(pd.DataFrame([pair | row for row in _minimum_rows(found)]))
            tables["pairs"].append(pd.DataFrame([pair | pair_row(chosen[name], 3, largest, found)]))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}


def sweep(
    risks: GroupRisks, bound: dict[str, BoundMetric], weights: Array, *, tolerance: float = 1e-7
) -> tuple[Array, dict[str, Array]]:
    """Return the group risks and the metrics of the scalarised models, each warm-started from the one before.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    bound : dict of str to BoundMetric
        Metrics, bound to the stored rows.
    weights : array of shape (m, S)
        Weights, neighbours one after the other.
    tolerance : float, default 1e-7
        Largest entry of the lower gradient. The risks' error is of the order of its square, the metrics' of its own.

    Returns
    -------
    losses : array of shape (m, S)
    values : dict of str to array of shape (m,)
    """
    solver = Scalarization(risks, tolerance=tolerance)
    losses, values = np.empty(weights.shape), {name: np.empty(len(weights)) for name in bound}
    for k, lam in enumerate(weights):
        point = solver.solve(lam).point
        losses[k] = point.losses
        for name, metric in bound.items():
            values[name][k] = metric.value(point.scores)
    return losses, values


def grid_minima(weights: Array, values: Array) -> NDArray[np.int64]:
    """Return the points of the simplex's grid whose value is below that of all their neighbours, the lowest first.

    Parameters
    ----------
    weights : array of shape (m, 3)
        All multiples of 1/R in the simplex, in any order.
    values : array of shape (m,)
    """
    resolution = round((np.sqrt(8 * len(weights) + 1) - 3) / 2)
    first, second = np.rint(weights[:, :2] * resolution).astype(int).T
    table = np.full((resolution + 3, resolution + 3), np.inf)
    table[first + 1, second + 1] = values
    steps = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
    lowest = np.min([table[first + 1 + i, second + 1 + j] for i, j in steps], axis=0)
    found = np.flatnonzero(values < lowest)
    return found[np.argsort(values[found], kind="stable")]


def _thinned(data: GroupedData, parameters: Parameters) -> GroupRisks:
    """Return the risks of all rows, or of as many as asked for."""
    X, y, groups = thinned(data, parameters.rows or 0, seed=parameters.seed)
    return GroupRisks(
        X, y, groups, loss=parameters.loss, l2=parameters.l2, penalize_intercept=parameters.penalize_intercept
    )


def _confirmed(found: Comparison, weights: Array, values: Array) -> Comparison:
    """Return the comparison with one end point of badr's search a cell, none that a neighbour on the grid undercuts.

    A local search can stop on a flat slope; there some point of the grid nearby is lower.
    """
    solution, step = found.bilevel, float(np.abs(np.diff(weights, axis=0)).max())
    slack = 1e-6 * float(np.ptp(values))

    def is_minimum(lam: Array, value: float) -> bool:
        near = np.abs(weights - lam).max(axis=1) <= step * (1 + 1e-9)
        return bool(value <= values[near].min() + slack)

    kept: list[int] = []
    for k, (lam, value) in enumerate(zip(solution.local_minima, solution.minimum_values, strict=True)):
        apart = all(np.abs(lam - solution.local_minima[other]).max() > step for other in kept)
        if apart and (k == 0 or is_minimum(lam, float(value))):
            kept.append(k)
    confirmed = dataclasses.replace(
        solution, local_minima=solution.local_minima[kept], minimum_values=solution.minimum_values[kept]
    )
    return dataclasses.replace(found, bilevel=confirmed)


def _group_row(words: str, data: GroupedData, risks: GroupRisks) -> dict[str, Any]:
    names = {f"group_{a}": name for a, name in enumerate(data.group_names, start=1)}
    sizes = {f"rows_{a}": int(size) for a, size in enumerate(risks.group_sizes, start=1)}
    title = info(data.name).title
    return {"partition": words, "title": title, "rows": risks.n_rows, "of": data.n_rows, **names, **sizes}


def _strategy_rows(found: Comparison) -> Iterator[dict[str, Any]]:
    for name, strategy in found.strategies.items():
        numbers = np.concatenate([strategy.model.weights, strategy.model.losses]).tolist()
        yield {
            "name": name,
            **dict(zip((*LAMBDA, *LOSS), numbers, strict=True)),
            "unfairness": found.unfairness[name],
        }


def _minimum_rows(found: Comparison) -> Iterator[dict[str, Any]]:
    solution = found.bilevel
    for lam, value in zip(solution.local_minima, solution.minimum_values, strict=True):
        yield {**dict(zip(LAMBDA, lam.tolist(), strict=True)), "unfairness": float(value)}


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_pairs(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per partition and metric with what the claim asks of it.

    Columns: data, badr's weights, and those of :func:`fairfront.studies.landscapes.judge`.
    """
    pairs, judged = tables["pairs"], judge(tables["pairs"])
    badr = tables["strategies"].query("name == 'badr'")
    judged.insert(0, "data", pairs.partition.map(tables["groups"].set_index("partition").title))
    judged.insert(4, "badr's weights", [" ".join(f"{w:.2f}" for w in lam) for lam in badr[list(LAMBDA)].to_numpy()])
    return judged


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    pairs, groups = table_pairs(tables), tables["groups"]
    samples = "; ".join(
        f"{row['title']} ({row['rows']:,} of {row['of']:,} rows: "
        f"1 {row['group_1']}, 2 {row['group_2']}, 3 {row['group_3']})"
        for row in groups.to_dict("records")
    )
    lam = tables["strategies"].query("name == 'badr'")[list(LAMBDA)].to_numpy()
    positive = (lam > 1e-6).sum(axis=1)
    free, best = pairs[~pairs.reached], pairs.nlargest(1, "gain").iloc[0]
    change = pairs["balanced - uniform"]
    points = len(tables["front"]) // len(groups)
    return {
        "setting": (
            f"{samples}; profile {parameters.profile}; variant {parameters.variant}; {parameters.loss} loss, "
            f"l2 {parameters.l2:g}, intercept {'penalised' if parameters.penalize_intercept else 'free'}; "
            f"{points:,} weights each"
        ),
        "points": f"{points:,}",
        "pairs": f"{len(pairs)}",
        "several": f"{int((pairs.minima > 1).sum())} of {len(pairs)}",
        "minima_range": f"{pairs.minima.min()} to {pairs.minima.max()}",
        "vertices": f"{int((positive == 1).sum())} of {len(pairs)}",
        "edges": f"{int((positive == 2).sum())} of {len(pairs)}",
        "inside": f"{int((positive == 3).sum())} of {len(pairs)}",
        "free": f"{len(free)} of {len(pairs)}",
        "reached": f"{int(pairs.reached.sum())} of {len(pairs)}",
        "gain_largest": f"{pairs.gain.max():.0%}",
        "gain_at": f"{best.metric} on {best.data}, against {best['next fairest']}",
        "varies_least": f"{pairs.varies.min():.0%}",
        "varies_largest": f"{pairs.varies.max():.0%}",
        "balanced_worse": f"{int((change > SAME).sum())} of {len(pairs)}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claim."""
    pairs = table_pairs(tables)
    data = "; ".join(
        f"{row.title}, {row.rows:,} of {row.of:,} rows in 3 groups by {words.partition(':')[2].replace('+', ' x ')}"
        for row, words in zip(tables["groups"].itertuples(), parameters.partition, strict=True)
    )
    several, free, change = pairs.minima > 1, ~pairs.reached, pairs["balanced - uniform"]
    parts = {
        "the metric varies little somewhere": bool((pairs.varies >= VARIES).all()),
        "some functions have one minimum": bool(several.all()),
        "badr's optimum is also found by "
        + (", ".join(sorted(set(pairs[pairs.reached]["next fairest"]))) or "none"): bool(free.all()),
        "balanced weights are always fairer than uniform ones": bool((change > SAME).any()),
    }
    measured = (
        f"of {len(pairs)} pairs: the best weights remove {pairs.varies.min():.0%} to {pairs.varies.max():.0%} of the "
        f"largest unfairness; several local minima in {several.sum()}; badr's optimum reached by no other strategy in "
        f"{free.sum()}; balanced less fair than uniform in {(change > SAME).sum()}"
    )
    if parameters.loss != "squared_hinge":
        parts["another loss than the figure's smoothed SVM"] = False
    failing = [reason for reason, holds in parts.items() if not holds]
    if not failing:
        return (Measurement("badr-fig7", measured, "reproduced", "", data),)
    verdict = "reproduced in part" if parts["the metric varies little somewhere"] and free.any() else "not reproduced"
    return (Measurement("badr-fig7", measured, verdict, "; ".join(failing), data),)


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_three_groups(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw Figure 7: the normalised metric over the simplex, a row per partition and a column per metric."""
    groups = tables["groups"].set_index("partition")
    partitions, chosen = list(groups.index), list(parameters.metric)
    with style():
        figure, axes = panels(len(partitions), len(chosen), width=2.7, height=2.35)
        for row, words in enumerate(partitions):
            front = tables["front"][tables["front"].partition == words]
            for column, metric in enumerate(chosen):
                ax = axes[row, column]
                mesh = draw_simplex(ax, front[list(LAMBDA)], front[metric], ("1", "2", "3"))
                minima, strategies = (
                    frame[(frame.partition == words) & (frame.metric == metric)]
                    for frame in (tables["minima"], tables["strategies"])
                )
                xy = barycentric(minima[list(LAMBDA)])
                mark_minima(ax, xy[:, 0], xy[:, 1], size=13, colour="#cc0000")
                places = barycentric(strategies[list(LAMBDA)])
                mark_strategies(ax, dict(zip(strategies.name, map(tuple, places), strict=True)))
                if row == 0:
                    ax.set_title(metric.replace("_", " "))
            group = groups.loc[words].to_dict()
            words_of_groups = "\n".join(f"{a} {_short(group[f'group_{a}'])}" for a in (1, 2, 3))
            axes[row, 0].text(-0.2, 0.43, f"{group['title']}\n{words_of_groups}", fontsize=7.5, ha="right", va="center")
        figure.colorbar(mesh, ax=list(axes[:, -1]), label="normalised unfairness", aspect=40, extend="max")
        legend_below(axes[0, 0], 4)
    return figure


def _short(group: str) -> str:
    """Return a group's name with a line for each merged cell."""
    return group.replace(" + ", "\n   + ").replace(" & ", ", ")


def figure_explorer(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Html:
    """Return the interactive page of Figure 7: pointing at weights shows the risks and the metric there."""
    return simplex_explorer(
        [_explored(tables, row, parameters) for row in tables["groups"].itertuples()],
        name="simplex-explorer",
        label="Unfairness over the simplex of three groups' weights, with the strategies and the local minima",
        fallback="With JavaScript this page shows the weights, risks and metric under the pointer; the figure above "
        "holds the same maps.",
    )


def _explored(tables: dict[str, pd.DataFrame], group: Any, parameters: Parameters) -> dict[str, Any]:
    front = tables["front"][tables["front"].partition == group.partition]
    resolution = round((np.sqrt(8 * len(front) + 1) - 3) / 2)
    step = max(resolution // _SHOWN_RESOLUTION, 1)
    step = step if resolution % step == 0 else 1
    places = np.rint(front[list(LAMBDA)].to_numpy() * resolution).astype(int)
    kept = (places % step == 0).all(axis=1)
    shown = front[kept]

    def listed(table: str, metric: str) -> list[dict[str, Any]]:
        frame = tables[table][(tables[table].partition == group.partition) & (tables[table].metric == metric)]
        return [
            {"weights": [round(row[name], 4) for name in LAMBDA], "value": _rounded(row["unfairness"])}
            | ({"name": row["name"]} if "name" in row else {})
            for row in frame.to_dict("records")
        ]

    return {
        "title": group.title,
        "groups": [group.group_1, group.group_2, group.group_3],
        "resolution": resolution // step,
        "points": (places[kept][:, :2] // step).tolist(),
        "losses": [[_rounded(v) for v in row] for row in shown[list(LOSS)].to_numpy()],
        "metrics": [
            {
                "name": metric.replace("_", " "),
                "values": [_rounded(v) for v in shown[metric]],
                "strategies": sorted(listed("strategies", metric), key=lambda row: NAMES.index(row["name"])),
                "minima": listed("minima", metric),
            }
            for metric in parameters.metric
        ],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
