"""Table 1 and the collection of section 5.1 of the first paper: the data sets, their groups, and what is missing.

Whatever file is at hand is loaded and counted; what is not is said to be missing, with where to get it. Every data set
at hand is checked for features that give its target away.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.datasets import image_info, image_names, info, inventory, load, names
from fairfront.datasets.groups import MOST_GROUPS, Partition, merge, partition
from fairfront.datasets.tables import table
from fairfront.plotting import panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta

__all__ = [
    "TABLE_1",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_groups",
    "figure_merging",
    "measure",
    "run",
    "table_1",
]

TITLE = "The data"

TABLE_1: tuple[tuple[str, str, int, int], ...] = (
    ("ACSEmployment", "acs-employment", 3157599, 17),
    ("ACSIncome", "acs-income", 1664500, 11),
    ("ACSTravelTime", "acs-travel-time", 1376075, 16),
    ("Adult", "adult", 32561, 109),
    ("COMPAS", "compas", 6172, 9),
    ("German Credit", "german", 1000, 65),
    ("Arrhythmia", "arrhythmia", 418, 272),
    ("Law School (LSAC)", "lsac", 22387, 10),
    ("Parkinsons Telemonitoring", "parkinsons", 5875, 21),
    ("Communities and Crime", "communities", 1993, 97),
    ("Student Performance", "student", 395, 54),
)
"""The paper's Table 1: its name of a data set, ours, and the paper's n and d."""

_SURVEY = ("acs-employment", "acs-income", "acs-travel-time")
_MERGED = ("adult", ("gender", "race"))


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe the_data`` shows the same in a table."""

    test_size: float = field(
        default=0.3, metadata=meta(help="share of the test rows in the check of the split", low=0.0, high=0.9)
    )
    groups: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="to how many groups cells are merged in the example", low=2, high=MOST_GROUPS)
    )
    seeds: int | None = field(default=None, metadata=meta(help="splits that are checked", low=1, high=1000))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the data sets that are at hand: with other files at hand the result is another one."""
    return tuple(name for name in names() if _at_hand(name))


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Count every data set that is at hand, list the rest, and check features, merging and splits.

    Returns
    -------
    dict of str to DataFrame
        "table": a row a data set of Table 1; "groups": a row a group of every attribute of every data set at hand;
        "leaks": the strongest feature of each; "states": every set of the registry; "merging": the cells of an example,
        merged; "splits": how far the shares of a test set are from those of all rows; "collection": the 785 data sets,
        counted.
    """
    at_hand = datasets(parameters)
    counted: dict[str, tuple[int, int]] = {}
    groups: list[dict[str, object]] = []
    leaks: list[dict[str, object]] = []
    for name in progress(at_hand, "data sets", len(at_hand)):
        data = load(name, sensitive=info(name).sensitive[0].name, test_size=0, seed=parameters.seed)
        counted[name] = data.X.shape
        groups.extend(_groups(name))
        leaks.append({"data": name, **_strongest(data.X, data.y, data.feature_names)})
    return {
        "table": pd.DataFrame([_beside_the_paper(*row, counted.get(row[1])) for row in TABLE_1]),
        "groups": pd.DataFrame(groups),
        "leaks": pd.DataFrame(leaks),
        "states": pd.DataFrame(list(_states())),
        "merging": _merging(parameters),
        "splits": _splits(parameters, progress),
        "collection": pd.DataFrame(list(_collection())),
    }


def table_1(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return Table 1 as the chapter shows it: the paper's numbers, ours, and the groups' sizes."""
    groups = tables["groups"]
    sizes = {
        name: "; ".join(
            f"{attribute}: {', '.join(f'{size:,}' for size in part['rows'])}"
            for attribute, part in rows.groupby("attribute", sort=False)
        )
        for name, rows in groups.groupby("data", sort=False)
    }
    shown = tables["table"]
    return pd.DataFrame(
        {
            "data set": shown["title"],
            "target": shown["target"],
            "n (paper)": shown["paper_n"],
            "n (here)": [f"{value:,.0f}" if value == value else "not at hand" for value in shown["n"]],
            "d (paper)": shown["paper_d"],
            "d (here)": [f"{value:.0f}" if value == value else "" for value in shown["d"]],
            "group sizes (here)": [sizes.get(name, "") for name in shown["data"]],
        }
    )


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what was measured of the claims on Table 1 and on the collection."""
    shown, collection = tables["table"], tables["collection"]
    here = shown[shown.n.notna()]
    same_n, same_d = here[here.n == here.paper_n], here[here.d == here.paper_d]
    absent = shown[shown.n.isna()].title.to_list()
    other_d = ", ".join(
        f"{row.title} {row.d:.0f} for {row.paper_d}" for row in here[here.d != here.paper_d].itertuples()
    )
    reasons = [f"not at hand: {', '.join(absent)}"] if absent else []
    if other_d:
        reasons.append(f"d differs ({other_d}: first values as references, identifiers and leaks left out)")
    whole = len(same_n) == len(same_d) == len(shown)
    table_claim = Measurement(
        claim="badr-table1",
        measured=f"{len(here)} of {len(shown)} at hand: n equal for {len(same_n)}, d equal for {len(same_d)}",
        verdict="reproduced" if whole else "reproduced in part" if len(same_n) else "not testable",
        reason="" if whole else "; ".join(reasons),
        data=", ".join(here.data) or "none",
    )
    total, files = int(collection["data sets"].sum()), int(collection["at hand"].sum())
    least, most = int(collection["fewest groups"].min()), int(collection["most groups"].max())
    counted = total == 785 and (least, most) == (2, MOST_GROUPS)
    collection_claim = Measurement(
        claim="badr-collection",
        measured=f"{total} data sets can be named and loaded by the registry, with {least} to {most} groups",
        verdict="reproduced" if counted and files == total else "reproduced in part" if counted else "not reproduced",
        reason="" if counted and files == total else f"counted by their names; the files of {files} are at hand",
        data="the registry; person files of 2014 to 2018 by state and region",
    )
    return table_claim, collection_claim


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    shown, leaks, states = tables["table"], tables["leaks"], tables["states"]
    here = shown[shown.n.notna()]
    worst = leaks.nlargest(1, "correlation").iloc[0]
    total = int(tables["collection"]["data sets"].sum())
    return {
        "setting": (
            f"the {len(leaks)} data sets at hand ({', '.join(leaks.data)}), all rows; profile {parameters.profile}; "
            "no metric, hence no variant"
        ),
        "merge_setting": (
            f"data set adult, all rows, cells of gender and race; profile {parameters.profile}; "
            "no metric, hence no variant"
        ),
        "at_hand": f"{len(here)} of the {len(shown)}",
        "equal_n": ", ".join(here[here.n == here.paper_n].title) or "none",
        "equal_d": ", ".join(here[here.d == here.paper_d].title) or "none",
        "missing": str(int((states.state == "missing").sum())),
        "total": str(total),
        "strongest": f"{worst.correlation:.2f} ({worst.feature} of {worst.data})",
        "explained": f"{leaks.explained.max():.2f} ({leaks.nlargest(1, 'explained').data.iloc[0]})",
        "split_gap": f"{tables['splits'].gap.max():.4f}",
        "seeds": str(parameters.seeds),
        "profile": parameters.profile,
    }


def figure_groups(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw every group of the first attribute of each data set at hand: its share of the rows, and its mean label."""
    groups = tables["groups"]
    first = groups[groups.attribute == groups.groupby("data").attribute.transform("first")]
    sets = list(first.data.unique())
    with style():
        figure, axes = panels(1, 2, width=3.6, height=max(2.4, 0.34 * len(sets) + 0.8))
        left, right = axes[0]
        for height, name in enumerate(reversed(sets)):
            rows = first[first.data == name]
            shares = rows["rows"].to_numpy() / rows["rows"].sum()
            starts = np.concatenate([[0], np.cumsum(shares)[:-1]])
            colours = [f"C{number % 10}" for number in range(len(rows))]
            left.barh(height, shares, left=starts, color=colours, edgecolor="white", linewidth=0.8)
            low, high = rows["mean"].min(), rows["mean"].max()
            span = rows["spread"].iloc[0]
            right.plot([low / span, high / span], [height, height], color="0.7", zorder=1)
            right.scatter(rows["mean"] / span, [height] * len(rows), s=24, color=colours, zorder=2)
        left.set(xlabel="share of the rows", yticks=range(len(sets)), yticklabels=list(reversed(sets)), xlim=(0, 1))
        right.set(xlabel="mean label / its deviation", yticks=range(len(sets)), yticklabels=[], ylim=left.get_ylim())
    return figure


def figure_merging(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the sizes of the example's cells and of what they are merged to."""
    merging = tables["merging"]
    with style():
        figure, axes = panels(1, 1, width=5.6, height=2.8)
        ax = axes[0, 0]
        for number, (_, rows) in enumerate(merging.groupby("groups", sort=True)):
            ax.scatter([number] * len(rows), rows["rows"], s=30, color=f"C{number}", zorder=2)
            ax.plot([number] * 2, [rows["rows"].min(), rows["rows"].max()], color="0.8", zorder=1)
        counts = sorted(merging.groups.unique())
        ax.set(xticks=range(len(counts)), xticklabels=[f"{count}" for count in counts], xlabel="groups that remain")
        ax.set(yscale="log", ylabel="rows of a group")
    return figure


def _at_hand(name: str) -> bool:
    return inventory.at_hand(name)


def _beside_the_paper(title: str, name: str, n: int, d: int, here: tuple[int, int] | None) -> dict[str, object]:
    known = info(name)
    rows, columns = here or (math.nan, math.nan)
    return {
        "title": title,
        "data": name,
        "task": known.task,
        "target": known.target,
        "paper_n": n,
        "n": float(rows),
        "paper_d": d,
        "d": float(columns),
    }


def _groups(name: str) -> Iterator[dict[str, object]]:
    rows = table(info(name))
    for attribute in info(name).sensitive:
        parts = partition(rows.attributes, [attribute])
        for number in np.flatnonzero(parts.sizes):
            label = rows.target[parts.ids == number]
            yield {
                "data": name,
                "attribute": attribute.name,
                "group": parts.names[number],
                "rows": len(label),
                "mean": float(label.mean()),
                "spread": float(rows.target.std()),
            }


def _strongest(X: np.ndarray, y: np.ndarray, features: tuple[str, ...]) -> dict[str, object]:
    """Return the feature most correlated with the target, and what all explain beyond as many columns of noise."""
    n, d = X.shape
    label = (y - y.mean()) / y.std()
    correlation = np.abs(X[:, 1:].T @ label) / n
    residual = y - X @ np.linalg.lstsq(X, y)[0]
    explained = 1 - residual.var() / y.var() * (n - 1) / (n - d)
    strongest = int(np.argmax(correlation))
    return {
        "feature": features[strongest + 1],
        "correlation": float(correlation[strongest]),
        "explained": max(float(explained), 0.0),
    }


def _states() -> Iterator[dict[str, object]]:
    for name in (*names(), *image_names()):
        state = inventory.glance(name)
        known = image_info(name) if name in image_names() else info(name)
        yield {
            "data": name,
            "title": known.title,
            "state": state.state,
            "from": state.source if state.state == "missing" else "",
        }


def _merging(parameters: Parameters) -> pd.DataFrame:
    name, attributes = _MERGED
    known = info(name)
    cells = partition(table(known).attributes, [known.attribute(word) for word in attributes])
    wanted: list[tuple[int, Partition]] = [(len(cells.names), cells)]
    wanted += [(count, merge(cells, count)) for count in parameters.groups or ()]
    rows = [
        {"groups": count, "group": group, "rows": int(size)}
        for count, parts in wanted
        for group, size in zip(parts.names, parts.sizes, strict=True)
    ]
    return pd.DataFrame(rows)


def _splits(parameters: Parameters, progress: ProgressFunction) -> pd.DataFrame:
    """Return how far the groups' shares of a test set are from those of all rows, over several splits."""
    name, attributes = _MERGED
    rows = []
    for seed in progress(range(parameters.seeds or 1), "splits", parameters.seeds):
        data = load(name, sensitive=list(attributes), groups=4, test_size=parameters.test_size, seed=seed)
        shares = data.group_sizes / data.n_rows
        test = np.bincount(data.groups[data.test], minlength=data.n_groups) / max(1, len(data.test))
        rows.append({"seed": seed, "gap": float(np.abs(shares - test).max()) if len(data.test) else 0.0})
    return pd.DataFrame(rows)


def _collection() -> Iterator[dict[str, object]]:
    """Yield the collection of section 5.1: tasks by state and year, tasks by region, and the other data sets."""
    for name in _SURVEY:
        survey = info(name).survey
        assert survey is not None
        fewest, most = _group_range(name)
        by_state = [f"{name}/{year}/{state}" for year, state in itertools.product(survey.years, survey.states)]
        by_region = [f"{name}/{survey.years[-1]}/{region}" for region in survey.regions]
        for kind, each in (("states and years", by_state), ("regions", by_region)):
            yield {
                "task": info(name).title,
                "by": kind,
                "data sets": len({info(word).name for word in each}),
                "at hand": sum(map(_at_hand, each)),
                "fewest groups": fewest,
                "most groups": most,
            }
    others = [name for _, name, _, _ in TABLE_1 if name not in _SURVEY]
    ranges = [_group_range(name) for name in others]
    yield {
        "task": "the other eight",
        "by": "",
        "data sets": len(others),
        "at hand": sum(map(_at_hand, others)),
        "fewest groups": min(fewest for fewest, _ in ranges),
        "most groups": max(most for _, most in ranges),
    }


def _group_range(name: str) -> tuple[int, int]:
    """Return the fewest and the most groups by the attributes of Table 1: gender, race and, where it has one, age."""
    counts = {item.name: len(item.levels) for item in info(name).sensitive if item.name in ("gender", "race", "age")}
    if name in ("acs-employment", "acs-income"):
        counts.pop("age")
    if name not in _SURVEY:
        counts.pop("age", None)
    return min(counts.values()), math.prod(counts.values())
