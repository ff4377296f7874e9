"""The published records of Table 2, regression: which are reproduced, and what changes when what is wrong is mended.

Three treatments of each data set and split: as published; the same without the columns that hold the target; and this
package's own way of loading. In each, every strategy, and beside badr's solver the search over random weights that made
the published figures. A run over several data sets and seeds falls into one part for each.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairfront.datasets import GroupedData, info, load
from fairfront.datasets.inventory import at_hand
from fairfront.datasets.published_records import DATA, digest, read_records
from fairfront.plotting import panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies import tradeoff
from fairfront.studies.parameters import StudyParameters, meta, profile_values
from fairfront.studies.strategies import RANDOM

__all__ = [
    "CLOSE",
    "SETS",
    "TITLE",
    "TREATMENTS",
    "Parameters",
    "compared",
    "datasets",
    "facts",
    "figure_search",
    "figure_treatments",
    "leaks",
    "measure",
    "run",
    "table_means",
    "table_records",
    "table_reproduced",
    "table_rows",
    "units",
    "without",
]

TITLE = "Reproduction audit"
SETS = tuple(DATA.values())
"""The data sets of the records."""
TREATMENTS = ("as published", "leaks removed", "loaded here")
"""What is done to a data set: nothing but what the authors did; that without leaking columns; this package's way."""
CLOSE = 1e-6
"""Figures that differ by at most this much are the same: the records have ten digits."""
FIGURES = ("train_rmse", "test_rmse", "train_metric", "test_metric")
_RECORD_COLUMNS = ("data", "seed", "strategy", *FIGURES, "lambda")
_RECORDED = ("uniform", "balanced", "one-group", RANDOM, "minimax")
_SAME_COLUMN = 1.0 - 1e-12  # correlation with the target from which a column holds it


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe reproduction_audit`` shows the same in a table."""

    data: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(help="data sets of the records; default those at hand, by profile", choices=SETS, distinct=True),
    )
    seeds: tuple[int, ...] | None = field(default=None, metadata=meta(help="seeds of the split", low=0, distinct=True))
    draws: int = field(default=200, metadata=meta(help="random weights of the strategy badr-random", low=1))
    resolution: int | None = field(
        default=None, metadata=meta(help="grid of badr's search where there are two groups", low=3)
    )
    records: str | None = field(
        default=None,
        metadata=meta(
            help="SHA-256 of the authors' records; default: of the file at hand, if any; none: no comparison"
        ),
    )

    def resolved(self) -> Self:
        """Return the same parameters with what is at hand filled in."""
        filled: dict[str, Any] = {}
        if self.data is None:
            filled["data"] = tuple(name for name in profile_values(type(self), self.profile)["data"] if at_hand(name))
        if self.records is None:
            filled["records"] = digest()
        return dataclasses.replace(self, **filled).resolved() if filled else super().resolved()


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return parameters.resolved().data or ()


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts: one data set and one seed each."""
    parameters = parameters.resolved()
    return tuple(
        dataclasses.replace(parameters, data=(name,), seeds=(seed,))
        for name in parameters.data or ()
        for seed in parameters.seeds or ()
    )


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
        values: a row per data set, seed, treatment and strategy, with the columns of the study tradeoff.
        samples: a row per data set, seed and treatment: rows, features, groups, group_names, sizes (training rows of
        each; JSON), leaks (columns that hold the target; JSON).
        records: the authors' figures for these data sets and seeds, in the columns of values; without rows where the
        file is not at hand.
    """
    parts = units(parameters)
    values, samples, records = [], [], []
    for part in progress(parts, "data sets and seeds", len(parts)):
        assert part.data is not None and part.seeds is not None
        (name,), (seed,) = part.data, part.seeds
        chosen = tradeoff.Parameters(task="regression", data=(name,), resolution=part.resolution, draws=part.draws)
        for treatment, data in _treated(name, seed).items():
            values.append(tradeoff.judged(data, chosen, seed).assign(treatment=treatment))
            samples.append(_sample(data, seed, treatment))
        records.append(_records(part.records or "", name, seed))
    return {
        "values": pd.concat(values, ignore_index=True),
        "samples": pd.DataFrame(samples),
        "records": pd.concat(records, ignore_index=True),
    }


def leaks(data: GroupedData) -> tuple[str, ...]:
    """Return the columns that hold the target itself, up to scale and shift."""
    columns = data.X[:, 1:]
    moving = columns.std(axis=0) > 0
    correlation = np.zeros(columns.shape[1])
    y = data.y - data.y.mean()
    centred = columns[:, moving] - columns[:, moving].mean(axis=0)
    correlation[moving] = np.abs(y @ centred) / (np.linalg.norm(y) * np.linalg.norm(centred, axis=0))
    return tuple(data.feature_names[1 + k] for k in np.flatnonzero(correlation >= _SAME_COLUMN))


def without(data: GroupedData, columns: tuple[str, ...]) -> GroupedData:
    """Return a data set without some columns: the same rows, split and groups."""
    kept = [k for k, name in enumerate(data.feature_names) if name not in columns]
    return dataclasses.replace(data, X=data.X[:, kept], feature_names=tuple(data.feature_names[k] for k in kept))


def _treated(name: str, seed: int) -> dict[str, GroupedData]:
    attribute = tradeoff.attribute_of(name, "gender")
    published = load(name, sensitive=attribute, seed=seed, as_published=True)
    mended = without(published, leaks(published))
    return dict(zip(TREATMENTS, (published, mended, load(name, sensitive=attribute, seed=seed)), strict=True))


def _sample(data: GroupedData, seed: int, treatment: str) -> dict[str, Any]:
    return {
        "data": data.name,
        "seed": seed,
        "treatment": treatment,
        "rows": data.n_rows,
        "features": data.n_features - 1,
        "groups": data.n_groups,
        "group_names": json.dumps(data.group_names),
        "sizes": json.dumps(np.bincount(data.groups[data.train], minlength=data.n_groups).tolist()),
        "leaks": json.dumps(leaks(data)),
    }


def _records(expected: str, name: str, seed: int) -> pd.DataFrame:
    if not expected or expected == "none":
        kinds = dict.fromkeys(FIGURES, "float64") | {"seed": "int64"}
        return pd.DataFrame({column: pd.Series(dtype=kinds.get(column, "object")) for column in _RECORD_COLUMNS})
    found = read_records(expected)
    return found[(found.data == name) & (found.seed == seed)].reset_index(drop=True)


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def compared(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return each record beside what was computed as published.

    Returns
    -------
    DataFrame
        data, seed, strategy, difference (the largest of the four figures', in absolute value), published and found
        (training metric), solver (badr's training metric on the same rows).
    """
    mine = tables["values"][tables["values"].treatment == TREATMENTS[0]]
    both = tables["records"].merge(mine, on=["data", "seed", "strategy"], suffixes=("_published", ""))
    badr = mine[mine.strategy == "badr"][["data", "seed", "train_metric"]].rename(columns={"train_metric": "solver"})
    both = both.merge(badr, on=["data", "seed"])
    gaps = [(both[f"{figure}_published"] - both[figure]).abs() for figure in FIGURES]
    return pd.DataFrame(
        {
            "data": both.data,
            "seed": both.seed,
            "strategy": both.strategy,
            "difference": pd.concat(gaps, axis=1).max(axis=1) if len(both) else pd.Series(dtype=float),
            "published": both.train_metric_published,
            "found": both.train_metric,
            "solver": both.solver,
        }
    )


def table_records(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the largest difference between records and recomputation: a row per data set, a column per strategy.

    The last column says whether all but minimax are the same to `CLOSE`. Without records the table has no rows.
    """
    both = compared(tables)
    order = [name for name in _RECORDED if name in set(both.strategy)]
    if both.empty:
        return pd.DataFrame(columns=["data", *_RECORDED, "reproduced but for minimax"])
    wide = both.pivot_table(index="data", columns="strategy", values="difference", aggfunc="max", sort=False)[order]
    exact = [name for name in order if name != "minimax"]
    wide = wide.assign(**{"reproduced but for minimax": (wide[exact] <= CLOSE).all(axis=1)})
    return wide.rename(index=lambda name: info(name).title).reset_index()


def table_reproduced(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how the rows were treated: a row per data set and treatment, of the first seed."""
    samples = tables["samples"]
    first = samples[samples.seed == samples.seed.iloc[0]]
    return pd.DataFrame(
        {
            "data": first.data.map(lambda name: info(name).title),
            "treatment": first.treatment,
            "rows": first.rows,
            "features": first.features,
            "groups": first.group_names.map(_short_names),
            "training rows of each": first["sizes"].map(lambda text: ", ".join(map(str, json.loads(text)))),
            "columns that hold the target": first.leaks.map(lambda text: ", ".join(json.loads(text)) or "none"),
        }
    )


def _short_names(text: str) -> str:
    """Return groups in words; one that is merged from more than three cells is all others."""
    return "; ".join(name if name.count(" + ") < 3 else "all others" for name in json.loads(text))


def table_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what the recorded balanced weights say of the number of training rows.

    For two groups of n rows together the weights are (n - n_a)/n: fractions whose least denominator divides n.

    Returns
    -------
    DataFrame
        A row per data set: least denominator, training rows here, whether the former divides the latter.
    """
    records = tables["records"]
    sizes = tables["samples"][tables["samples"].treatment == TREATMENTS[0]].set_index("data")["sizes"]
    rows = []
    for name, one in records[records.strategy == "balanced"].groupby("data", sort=False):
        weight = json.loads(one["lambda"].iloc[0])[0]
        here = sum(json.loads(sizes[name] if isinstance(sizes[name], str) else sizes[name].iloc[0]))
        least = Fraction(weight).limit_denominator(20_000).denominator
        rows.append((info(str(name)).title, least, here, here % least == 0))
    columns = ["data", "least denominator of the recorded weights", "training rows here", "divides"]
    return pd.DataFrame(rows, columns=columns)


def table_means(tables: Mapping[str, pd.DataFrame], figure: str = "test_metric") -> pd.DataFrame:
    """Return the mean of a figure over data sets and seeds: a row per strategy, a column per treatment, the records'.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Of `run`.
    figure : str, default "test_metric"
        One of the four figures.
    """
    values, records = tables["values"], tables["records"]
    wide = values.pivot_table(index="strategy", columns="treatment", values=figure)
    order = [name for name in tradeoff.MARKS if name in wide.index]
    wide = wide.loc[order, [name for name in TREATMENTS if name in wide]]
    if len(records):
        wide.insert(0, "records", records.groupby("strategy")[figure].mean().reindex(order))
    paper = tradeoff.paper_means("regression")
    printed = {"test_metric": "unfairness", "test_rmse": "performance"}.get(figure)
    if printed:
        # What the paper calls badr is the search over random weights.
        wide["paper"] = paper[printed].rename({"badr": RANDOM}).reindex(order)
    return wide.rename(index=lambda name: tradeoff.MARKS[name].label).reset_index()


def _order(tables: Mapping[str, pd.DataFrame], treatment: str, badr: str) -> tuple[str, ...]:
    """Return the five strategies from the fairest on test rows, badr found in the way that is named."""
    values = tables["values"]
    mine = values[(values.treatment == treatment) & values.strategy.isin([badr, *tradeoff.FIVE[1:]])]
    means = mine.groupby("strategy").test_metric.mean().sort_values()
    return tuple(tradeoff.MARKS[str(name)].label for name in means.index)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    values, samples, both = tables["values"], tables["samples"], compared(tables)
    names = list(samples.data.unique())
    titles = ", ".join(info(name).title for name in names)
    absent = [info(name).title for name in SETS if name not in names]
    wide = values.pivot_table(
        index=["data", "seed", "treatment"], columns="strategy", values=["train_metric", "test_metric", "test_rmse"]
    )
    behind = (wide["train_metric"][RANDOM] - wide["train_metric"]["badr"]).groupby("treatment").agg(["median", "max"])
    tests = wide["test_metric"].groupby("treatment").mean()
    growth = (wide["test_rmse"]["badr"] / wide["test_rmse"]["uniform"] - 1).groupby("treatment").mean()
    exact = both[both.strategy != "minimax"]
    same = exact[exact.data != "student"]
    published = both[both.strategy == RANDOM]
    published = published[published.data != "student"]
    less = published.published - published.solver
    return {
        "setting": f"{titles}; {samples.seed.nunique()} splits; demographic parity, variant paper; profile "
        f"{parameters.profile}",
        "sets": titles,
        "absent": ", ".join(absent) or "none",
        "at_hand": "are at hand" if len(both) else "are not at hand here, so that nothing is compared with them",
        "compared": f"{int((exact.difference <= CLOSE).sum())} of {len(exact)}" if len(exact) else "none of none",
        "largest": f"{same.difference.max():.1g}" if len(same) else "nothing",
        "solver_less": f"{int((less >= -1e-9).sum())} of {len(less)}" if len(less) else "none of none",
        "solver_gain": f"{less.max():.3f}" if len(less) else "nothing",
        "random_behind_published": f"{behind['max'][TREATMENTS[0]]:.2g}",
        "random_behind_here": f"{behind['max'][TREATMENTS[2]]:.2g}",
        "growth_published": f"{growth[TREATMENTS[0]]:.1%}",
        "growth_mended": f"{growth[TREATMENTS[1]]:.1%}",
        "growth_here": f"{growth[TREATMENTS[2]]:.1%}",
        "test_solver": _listed(tests["badr"]),
        "test_random": _listed(tests[RANDOM]),
        "level": _level(values, samples),
        "order_published": " < ".join(_order(tables, TREATMENTS[0], RANDOM)),
        "order_solver": " < ".join(_order(tables, TREATMENTS[0], "badr")),
        "order_mended": " < ".join(_order(tables, TREATMENTS[1], "badr")),
        "order_here": " < ".join(_order(tables, TREATMENTS[2], "badr")),
    }


def _listed(means: pd.Series) -> str:
    return ", ".join(f"{means[treatment]:.3f}" for treatment in TREATMENTS)


def _level(values: pd.DataFrame, samples: pd.DataFrame) -> str:
    """Return, for the data sets with a leak, how many times as large the error of uniform weights is without it."""
    leaking = samples[(samples.treatment == TREATMENTS[0]) & (samples.leaks != "[]")].data.unique()
    errors = values[values.strategy == "uniform"].pivot_table(index="data", columns="treatment", values="test_rmse")
    ratios = errors[TREATMENTS[1]] / errors[TREATMENTS[0]]
    return (
        ", ".join(f"{ratios[name]:.1f} times on {info(name).title}" for name in leaking) or "no data set here has one"
    )


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claim on the regression half of Table 2."""
    means = table_means(tables)
    rmse = table_means(tables, "test_rmse")
    words = "; ".join(
        f"{strategy} {first:.4f}/{second:.4f}"
        for strategy, first, second in zip(means.strategy, rmse[TREATMENTS[0]], means[TREATMENTS[0]], strict=True)
    )
    said = facts(tables, parameters)
    both = table_records(tables)
    data = said["setting"]
    claim = "badr-table2-reg"
    if both.empty:
        reason = (
            "the paper prints means over four data sets, whose records are not at hand (put "
            "badr_table2_regression_records.jsonl below FAIRFRONT_DATA), and computed was "
            f"{said['sets']} alone: `fairfront data fetch` the rest"
        )
        return (Measurement(claim, f"as published, RMSE/unfairness: {words}", "not testable", reason, data),)
    done = both[both["reproduced but for minimax"]].data.tolist()
    missing = [info(name).title for name in SETS if info(name).title not in done]
    measured = (
        f"records of uniform, balanced and one-group weights and of badr (the fairest of {parameters.draws} random "
        f"weights) reproduced to {CLOSE:g} in {said['compared']} cases: {', '.join(done) or 'no data set'}; means as "
        f"published, RMSE/unfairness: {words}"
    )
    minimax = compared(tables).query("strategy == 'minimax'").difference
    open_ends = [f"not {', '.join(missing)}"] if missing else []
    if (minimax > CLOSE).any():
        open_ends.append(f"minimax's records differ by up to {minimax.max():.2g}")
    if not open_ends:
        return (Measurement(claim, measured, "reproduced", "", data),)
    verdict = "reproduced in part" if done else "not reproduced"
    return (Measurement(claim, measured, verdict, "; ".join(open_ends), data),)


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_treatments(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw test error and test unfairness of every strategy: a row per data set, a column per treatment."""
    values, records = tables["values"], tables["records"]
    names = list(values.data.unique())
    with style():
        figure, axes = panels(len(names), len(TREATMENTS), width=2.9, height=2.3)
        for row, name in enumerate(names):
            for column, treatment in enumerate(TREATMENTS):
                ax = axes[row, column]
                mine = values[(values.data == name) & (values.treatment == treatment)]
                tradeoff.draw_strategies(ax, mine.assign(performance=mine.test_rmse))
                if column == 0:
                    _draw_records(ax, records[records.data == name])
                if row == 0:
                    ax.set_title(treatment)
                ax.tick_params(labelsize=8)
            axes[row, 0].set_ylabel(f"{info(name).title.split(' (')[0].split(' and ')[0]}\ntest unfairness", fontsize=9)
        for ax in axes[-1]:
            ax.set_xlabel("test RMSE")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _draw_records(ax: Axes, records: pd.DataFrame) -> None:
    """Draw rings where the authors' records are: means over the same splits."""
    means = records.groupby("strategy")[["test_rmse", "test_metric"]].mean()
    ax.plot(
        means.test_rmse,
        means.test_metric,
        linestyle="none",
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor="#555555",
        label="published record",
        zorder=4,
    )


def figure_search(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw by how much the random weights stay behind badr's solver on training rows, split by split."""
    values = tables["values"]
    wide = values.pivot_table(index=["data", "treatment", "seed"], columns="strategy", values="train_metric")
    gap = (wide[RANDOM] - wide["badr"]).rename("gap").reset_index()
    names = list(values.data.unique())
    tints = dict(zip(TREATMENTS, ("#D55E00", "#0072B2", "#009E73"), strict=True))
    markers = dict(zip(TREATMENTS, ("o", "s", "^"), strict=True))
    with style():
        figure, axes = panels(1, 1, width=5.6, height=0.9 + 0.55 * len(names))
        ax = axes[0, 0]
        for shift, treatment in zip((0.22, 0.0, -0.22), TREATMENTS, strict=True):
            mine = gap[gap.treatment == treatment]
            ax.plot(
                mine.gap.clip(lower=1e-12),
                [len(names) - 1 - names.index(name) + shift for name in mine.data],
                linestyle="none",
                marker=markers[treatment],
                color=tints[treatment],
                markersize=6,
                alpha=0.8,
                label=treatment,
            )
        ax.set_xscale("log")
        ax.set_yticks(range(len(names)), [info(name).title for name in names[::-1]])
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_xlabel("training unfairness: best random weights less badr")
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
