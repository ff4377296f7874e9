"""Figure 8 of the first paper: the unfairness of every strategy, on training and on test rows, over many partitions.

Each data set is cut by every sensitive attribute and by the intersections of several.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from fairfront import metrics
from fairfront.datasets import info
from fairfront.errors import ArgumentError
from fairfront.plotting import STRATEGIES, legend_below, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance, Unfit, expanded, loaded, partitions, require_classification
from fairfront.studies.parameters import ModelParameters, meta, split
from fairfront.studies.strategies import compare, metric_for

__all__ = [
    "FIVE",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_cdf",
    "figure_fairest",
    "measure",
    "run",
    "summary",
    "table_fairest",
    "table_medians",
    "units",
]

TITLE = "Any number of groups: fairness on training and test rows"
FIVE = ("badr", "minimax", "one-group", "balanced", "uniform")
"""The strategies of the paper's figure."""
ALIKE = 0.1
"""Medians that differ by at most this share count as matching."""
_WIDER_TAIL = ("equal_opportunity", "demographic_parity", "group_variance")  # of minimax, on test rows, says the paper
_RESOLUTION = 41  # of the exhaustive search for two groups
_FEW = 20  # instances below which no distribution is judged


@dataclass(frozen=True, kw_only=True)
class Parameters(ModelParameters):
    """What the study can be told; ``fairfront describe many_groups`` shows the same in a table."""

    data: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(help="data sets; NAME/YEAR/* or NAME/*/* is every state (and year) of a survey", distinct=True),
    )
    seeds: tuple[int, ...] | None = field(default=None, metadata=meta(help="seeds of the split", low=0, distinct=True))
    metric: tuple[str, ...] = field(
        default=metrics.names(), metadata=meta(help="unfairness metrics", choices=metrics.names, distinct=True)
    )
    test_size: float = field(default=0.3, metadata=meta(help="share of the test rows", low=0.05, high=0.95))
    least_rows: int = field(default=20, metadata=meta(help="least size of a group", low=1))
    most_attributes: int | None = field(
        default=None, metadata=meta(help="sensitive attributes that are intersected, at most", low=1, high=5)
    )
    merge: bool | None = field(
        default=None, metadata=meta(help="whether the cells of partitions with too small ones are merged")
    )
    vertices: int | None = field(
        default=None, metadata=meta(help="one-group models from which badr's search starts; 0: all", low=0)
    )

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        require_classification("data", *expanded(self.data or ()))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return expanded(parameters.resolved().data or ())


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts into which the study's work falls: a data set and a split each."""
    return split(dataclasses.replace(parameters, data=datasets(parameters)), "data", "seeds")


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Parameters
    ----------
    parameters : Parameters
        One of `units`; fields left at None take their profile's value.
    progress : callable
        ``progress(iterable, description, total=None)`` yields the items and shows where it is.

    Returns
    -------
    dict of DataFrame
        values: a row per instance, metric and strategy: data, partition, groups (how many), rows, seed, metric,
        strategy, train and test (the metric less its floor), train_error, test_error (share of wrong labels).
        skipped: data, partition, seed and reason of the partitions that cannot be used.
    """
    (part,) = units(parameters.resolved())
    assert part.data and part.seeds
    return _run_one(part, part.data[0], part.seeds[0], progress)


def _run_one(parameters: Parameters, name: str, seed: int, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    assert parameters.most_attributes is not None and parameters.merge is not None
    chosen = [
        Instance(data, sensitive, seed)
        for data, sensitive in partitions([name], most_attributes=parameters.most_attributes)
    ]
    found = loaded(chosen, test_size=parameters.test_size, least_rows=parameters.least_rows, merge=parameters.merge)
    values: list[pd.DataFrame] = []
    skipped: list[dict[str, Any]] = []
    for instance, data in progress(found, name, len(chosen)):
        key = {"data": info(name).title, "partition": instance.partition, "seed": seed}
        if isinstance(data, Unfit):
            skipped.append(key | {"reason": data.reason})
            continue
        try:
            frame = compare(
                data,
                parameters.metric,
                variant=parameters.variant,
                loss=parameters.loss,
                l2=parameters.l2,
                penalize_intercept=parameters.penalize_intercept,
                resolution=_RESOLUTION,
                vertices=parameters.vertices or None,
            )
        except ArgumentError as error:  # a metric is not defined on some group's rows
            skipped.append(key | {"reason": str(error)})
            continue
        floors = {
            metric: metric_for(metric, loss=parameters.loss, variant=parameters.variant).floor(data.n_groups)
            for metric in parameters.metric
        }
        floor = frame.metric.map(floors)
        values.append(
            pd.DataFrame(
                {name: [value] * len(frame) for name, value in key.items()}
                | {
                    "groups": data.n_groups,
                    "rows": data.n_rows,
                    "metric": frame.metric,
                    "strategy": frame.strategy,
                    # At the floor the difference is rounding alone.
                    "train": (frame.train_metric - floor).clip(lower=0.0),
                    "test": (frame.test_metric - floor).clip(lower=0.0),
                    "train_error": frame.train_error,
                    "test_error": frame.test_error,
                }
            )
        )
    if not values:
        raise ArgumentError("data", f"{name} has no partition with enough rows in every group", "a lower least_rows")
    columns = ["data", "partition", "seed", "reason"]
    return {"values": pd.concat(values, ignore_index=True), "skipped": pd.DataFrame(skipped, columns=columns)}


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def summary(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the distribution of unfairness, less its floor, of the paper's five strategies.

    Returns
    -------
    DataFrame
        part ("train" or "test"), metric, strategy, low and high (the 5% and 95% quantiles), median, spread (high less
        low).
    """
    values = tables["values"]
    long = values[values.strategy.isin(FIVE)].melt(
        id_vars=["metric", "strategy"], value_vars=["train", "test"], var_name="part", value_name="unfairness"
    )
    found = (
        long.groupby(["part", "metric", "strategy"], sort=False)
        .unfairness.agg(low=lambda v: v.quantile(0.05), median="median", high=lambda v: v.quantile(0.95))
        .reset_index()
    )
    return found.assign(spread=found.high - found.low)


def _wide(found: pd.DataFrame, column: str, *parts: str) -> pd.DataFrame:
    """Return a column of `summary`: a row per metric (and part), a column per strategy."""
    mine = found[found.part.isin(parts)]
    return mine.pivot_table(index=["metric", "part"], columns="strategy", values=column, sort=False)[list(FIVE)]


def _medians(found: pd.DataFrame, part: str) -> pd.DataFrame:
    return _wide(found, "median", part).droplevel("part")


def table_medians(tables: Mapping[str, pd.DataFrame], part: str) -> pd.DataFrame:
    """Return the median unfairness, less its floor, on a part of the rows: a row per metric, a column per strategy."""
    medians = _medians(summary(tables), part)
    return medians.rename(index=lambda name: name.replace("_", " ")).reset_index()


def table_fairest(tables: Mapping[str, pd.DataFrame], part: str) -> pd.DataFrame:
    """Return the share of instances in which each of the five strategies is the fairest on a part of the rows.

    Strategies within a thousandth of the fairest one's distance to the least fair one share the instance.
    """
    values = tables["values"]
    wide = values[values.strategy.isin(FIVE)].pivot_table(
        index=["metric", "data", "partition", "seed"], columns="strategy", values=part, sort=False
    )[list(FIVE)]
    least, largest = wide.min(axis=1), wide.max(axis=1)
    first = wide.sub(least, axis=0).le(1e-3 * (largest - least), axis=0).astype(float)
    shares = first.div(first.sum(axis=1), axis=0).groupby("metric", sort=False).mean()
    return shares.rename(index=lambda name: name.replace("_", " ")).reset_index()


def _count(tables: Mapping[str, pd.DataFrame]) -> int:
    return len(tables["values"][["data", "partition", "seed"]].drop_duplicates())


def _data(tables: Mapping[str, pd.DataFrame]) -> str:
    values = tables["values"]
    return (
        f"{_count(tables)} instances: {values.data.nunique()} data sets, "
        f"{len(values[['data', 'partition']].drop_duplicates())} partitions into {values.groups.min()} to "
        f"{values.groups.max()} groups, {values.seed.nunique()} splits ({', '.join(values.data.unique()[:6])}"
        f"{', ...' if values.data.nunique() > 6 else ''})"
    )


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    fairest = {part: table_fairest(tables, part).set_index("metric") for part in ("train", "test")}
    found = summary(tables)
    medians = {part: _medians(found, part) for part in ("train", "test")}
    behind = {
        name: int((medians["train"]["minimax"] < medians["train"][name]).sum()) for name in ("uniform", "one-group")
    }
    rank = medians["test"].rank(axis=1, method="min")["badr"]
    errors = tables["values"].groupby("strategy").test_error.mean()
    return {
        "setting": f"{_data(tables)}; profile {parameters.profile}; variant {parameters.variant}; "
        f"{parameters.loss} loss, l2 {parameters.l2:g}; test share {parameters.test_size:g}",
        "instances": f"{_count(tables):,}",
        "skipped": f"{len(tables['skipped']):,}",
        "metrics": f"{len(rank)}",
        "minimax_below_uniform": f"{behind['uniform']} of {len(rank)}",
        "minimax_below_one": f"{behind['one-group']} of {len(rank)}",
        "badr_first_test": f"{int((rank == 1).sum())} of {len(rank)}",
        "fairest_train": f"{fairest['train'].badr.min():.0%} to {fairest['train'].badr.max():.0%}",
        "fairest_test": f"{fairest['test'].badr.min():.0%} to {fairest['test'].badr.max():.0%}",
        "one_group_test": f"{fairest['test']['one-group'].min():.0%} to {fairest['test']['one-group'].max():.0%}",
        "error_badr": f"{errors['badr']:.1%}",
        "error_uniform": f"{errors['uniform']:.1%}",
        "error_one": f"{errors['one-group']:.1%}",
        "error_erm": f"{errors['erm']:.1%}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims."""
    found, data, count = summary(tables), _data(tables), _count(tables)
    judged = (_best, _on_test, _one_group, _uniform, _degradation)
    measurements = []
    for judge in judged:
        claim, measured, held, asked, reason = judge(found)
        if count < _FEW:
            verdict, reason = "not testable", f"{count} instances make no distribution: run the profile quick"
        elif held == asked:
            verdict, reason = "reproduced", ""
        else:
            verdict = "reproduced in part" if 2 * held >= asked else "not reproduced"
        measurements.append(Measurement(claim, measured, verdict, reason, data))
    return tuple(measurements)


_Judged = tuple[str, str, int, int, str]  # claim, what was measured, how much of it holds, of how much, what fails


def _named(names: Iterable[Any]) -> str:
    return ", ".join(str(name).replace("_", " ") for name in names) or "none"


def _best(found: pd.DataFrame) -> _Judged:
    medians = _medians(found, "train")
    badr = [m for m, row in medians.iterrows() if row.badr <= min(row.uniform, row["one-group"])]
    minimax = [m for m, row in medians.iterrows() if row.minimax < min(row.uniform, row["one-group"])]
    n = len(medians)
    measured = (
        f"training rows: badr's median is at most that of uniform weights and of one-group fitting in {len(badr)} of "
        f"{n} metrics, minimax's is below both in {len(minimax)} ({_named(minimax)})"
    )
    reason = f"minimax is not below both in {_named([m for m in medians.index if m not in minimax])}"
    return "badr-fig8-best", measured, len(badr) + len(minimax), 2 * n, reason


def _on_test(found: pd.DataFrame) -> _Judged:
    medians, tails = _medians(found, "test"), _wide(found, "high", "test").droplevel("part")
    first = [m for m, row in medians.iterrows() if row.badr <= row[list(FIVE)].min()]
    asked = [m for m in _WIDER_TAIL if m in tails.index]
    wider = [m for m in asked if tails.minimax[m] > tails.badr[m]]
    measured = (
        f"test rows: badr's median is the least of five in {len(first)} of {len(medians)} metrics ({_named(first)}); "
        f"minimax's 95% quantile exceeds badr's in {len(wider)} of {len(asked)} named metrics"
    )
    others = {m: str(medians.loc[m, list(FIVE)].idxmin()) for m in medians.index if m not in first}
    fairer = "; ".join(f"{_named([m])}: {name} has the least median" for m, name in others.items())
    narrow = [m for m in asked if m not in wider]
    reason = "; ".join(filter(None, [fairer, f"no wider tail of minimax in {_named(narrow)}" if narrow else ""]))
    return "badr-fig8-test", measured, len(first) + len(wider), len(medians) + len(asked), reason


def _one_group(found: pd.DataFrame) -> _Judged:
    others = ["badr", "minimax", "uniform"]
    spread, medians = (_wide(found, column, "train", "test") for column in ("spread", "median"))
    wide = (spread["one-group"] > spread[others].max(axis=1)).to_numpy()
    poor = (medians["one-group"] > medians[others].max(axis=1)).to_numpy()
    n = len(wide)
    measured = (
        f"of {n} metrics and parts, one-group fitting has the widest range (5% to 95%) in {wide.sum()} and the largest "
        f"median in {poor.sum()}, against badr, minimax and uniform weights"
    )
    reason = f"its range is not the widest in {n - wide.sum()}, its median not the largest in {n - poor.sum()} of {n}"
    return "badr-fig8-onefit", measured, int(wide.sum() + poor.sum()), 2 * n, reason


def _uniform(found: pd.DataFrame) -> _Judged:
    medians = _medians(found, "train")
    ratio = medians.uniform / medians[["badr", "minimax"]].max(axis=1)
    lower = medians.uniform / medians[["badr", "minimax"]].min(axis=1).clip(lower=np.finfo(float).tiny)
    name = "individual_fairness"
    matches = [name] if name in ratio.index and ratio[name] >= 1 - ALIKE and lower[name] <= 1 + ALIKE else []
    others = [m for m in ratio.index if m != name]
    worse = [m for m in others if ratio[m] > 1 + ALIKE]
    said = f"{lower[name]:.2f} of badr's or minimax's least" if name in ratio.index else "not measured"
    measured = (
        f"training rows, medians of uniform weights: for individual fairness {said}; above both by more than "
        f"{ALIKE:.0%} in {len(worse)} of the other {len(others)} metrics ({_named(worse)})"
    )
    gaps = [
        "" if matches else "individual fairness does not match",
        f"not worse than both in {_named([m for m in others if m not in worse])}" if len(worse) < len(others) else "",
    ]
    return "badr-fig8-uniform", measured, len(matches) + len(worse), 1 + len(others), "; ".join(filter(None, gaps))


def _degradation(found: pd.DataFrame) -> _Judged:
    change = _medians(found, "test") - _medians(found, "train")
    up = int((change > 0).to_numpy().sum())
    least = [m for m, row in change.iterrows() if row.badr <= row.min()]
    cells, n = change.size, len(change)
    measured = (
        f"the median rises from training to test rows in {up} of {cells} pairs of metric and strategy; badr's rises "
        f"least in {len(least)} of {n} metrics ({_named(least)})"
    )
    reason = f"{cells - up} medians do not rise; badr's is not the least rise in {n - len(least)} of {n} metrics"
    return "badr-fig8-degrade", measured, n * up // cells + len(least), 2 * n, reason


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_cdf(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw Figure 8: per metric, the share of instances with at most so much unfairness, on training and test rows."""
    values = tables["values"]
    chosen = list(values.metric.unique())
    columns = min(4, len(chosen))
    with style():
        figure, axes = panels(2 * -(-len(chosen) // columns), columns, width=2.5, height=2.1)
        for ax in axes.flat:
            ax.set_axis_off()
        for k, metric in enumerate(chosen):
            mine = values[(values.metric == metric) & values.strategy.isin(FIVE)]
            positive = mine[["train", "test"]].to_numpy()
            # A logarithmic axis has no 0: what is below is drawn at its left end.
            low = 1e-3 * float(np.median(positive[positive > 0])) if (positive > 0).any() else 1e-12
            low = max(low, 0.7 * float(positive.min()))
            for row, part in enumerate(("train", "test")):
                ax = axes[2 * (k // columns) + row, k % columns]
                ax.set_axis_on()
                for name in FIVE[::-1]:
                    mark = STRATEGIES[name]
                    ax.ecdf(
                        mine[mine.strategy == name][part].clip(lower=low),
                        color=mark.colour,
                        label=mark.label,
                        linewidth=2.2 if name == "badr" else 1.4,
                        linestyle="-" if name in ("badr", "minimax", "one-group") else "--",
                    )
                ax.set_xscale("log")
                ax.xaxis.set_minor_formatter(NullFormatter())  # within one decade the minor labels would overlap
                ax.set_xlim(low, positive.max() * 1.2 if positive.max() > low else low * 10)
                ax.set_title(f"{metric.replace('_', ' ')}, {part}", fontsize=9)
                ax.tick_params(labelsize=7)
                if k % columns == 0:
                    ax.set_ylabel("share of instances", fontsize=8)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(FIVE))
    return figure


def figure_fairest(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw, per metric, the share of instances in which each strategy is the fairest, on training and test rows."""
    with style():
        figure, axes = panels(1, 2, width=3.6, height=2.8)
        for ax, part in zip(axes[0], ("train", "test"), strict=True):
            shares = table_fairest(tables, part).set_index("metric")[::-1]
            left = np.zeros(len(shares))
            for name in FIVE:
                ax.barh(
                    shares.index,
                    shares[name],
                    left=left,
                    color=STRATEGIES[name].colour,
                    edgecolor="white",
                    label=STRATEGIES[name].label,
                )
                left += shares[name].to_numpy()
            ax.set(title=f"{part} rows", xlabel="share of instances", xlim=(0, 1))
            ax.grid(visible=False)
        axes[0, 1].set_yticklabels([])
        legend_below(axes[0, 0], len(FIVE))
    return figure
