"""Communities and Crime: violent crimes per inhabitant of American communities, 1990 to 1995."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

TARGET = "ViolentCrimesPerPop"
# Where a community is, what it is called, and the fold of somebody's cross-validation.
IDENTIFIERS = ["state", "county", "community", "communityname", "fold"]
# In the registry's order, which also breaks the 8 ties.
SHARES = {"racePctWhite": "white", "racepctblack": "black", "racePctHisp": "hispanic", "racePctAsian": "asian"}
# In the authors' order, by which they break ties and sort the groups.
THEIR_SHARES = ["racepctblack", "racePctWhite", "racePctAsian", "racePctHisp"]
# A column with more missing values than this share is left out: the 22 of the police survey lack 84 % each.
MOST_MISSING = 0.5
# Whether a community lacks nothing: neither in the police survey nor the codes of its county and of itself.
COMPLETE = "complete"


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the canonical file without its identifiers, named as communities.names does, and a column more.

    1,994 rows of 124 columns. The last says whether a row is complete in every column, identifiers included.
    """
    data, documentation = raw
    columns = re.findall(r"^@attribute (\S+)", documentation.read_text(encoding="utf-8"), flags=re.MULTILINE)
    frame = pd.read_csv(data, names=columns, na_values="?")
    complete = frame.notna().all(axis=1).rename(COMPLETE)
    return pd.concat([frame.drop(columns=IDENTIFIERS), complete], axis=1)


def task(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return the communities without a missing value outside the police survey, whose columns are left out.

    A community's race is the one whose normalised share is the largest among the four. The file scales every share by
    its own range, so that this is not the race of most inhabitants: it says where a race is at its most frequent.

    As published, the rows are the 123 complete in every column of the file, identifiers included, and the four shares
    are no features.
    """
    if as_published:
        return _published(frame)
    values = frame.drop(columns=COMPLETE)
    known = values.loc[:, values.isna().mean() <= MOST_MISSING].dropna().reset_index(drop=True)
    return Table(
        features=known.drop(columns=TARGET),
        target=known[TARGET].to_numpy(copy=True),
        attributes=pd.DataFrame({"race": known[list(SHARES)].idxmax(axis=1).map(SHARES)}),
    )


def _published(frame: pd.DataFrame) -> Table:
    rows = frame[frame[COMPLETE]].drop(columns=COMPLETE).reset_index(drop=True)
    largest = rows[THEIR_SHARES].idxmax(axis=1)
    numbered = {share: f"{number} {SHARES[share]}" for number, share in enumerate(THEIR_SHARES)}
    return Table(
        features=rows.drop(columns=[TARGET, *THEIR_SHARES]),
        target=rows[TARGET].to_numpy(copy=True),
        attributes=pd.DataFrame({"race": largest.map(SHARES)}),
        cells=largest.map(numbered).to_numpy(dtype=object),
    )
