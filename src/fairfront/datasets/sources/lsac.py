"""LSAC national longitudinal bar passage study: grades of law students of the class of 1991."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task", "task_law_school"]

# What the tasks and the published recipe need; the latter keeps the rows that are complete in every column of the file.
COLUMNS = ["age", "fam_inc", "fulltime", "gender", "lsat", "race1", "ugpa", "zgpa"]
COMPLETE = "complete"


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the columns of the tasks, and whether a row is complete in every column of the file: 22,407 rows of 9."""
    (path,) = raw
    frame = pd.read_csv(path)
    return frame[COLUMNS].assign(**{COMPLETE: frame.notna().all(axis=1)})


def task(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return the task "undergraduate grade point average" on the 22,387 rows whose gender and race are known.

    With an intercept this gives the n and the d of the paper's Table 1. The published records have another target: as
    published, this task and `task_law_school` are the same.
    """
    return _published(frame) if as_published else _table(frame, "ugpa", drop=["zgpa"])


def task_law_school(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return the task "grade point average at law school, standardised" on the rows where it is known.

    As published, the target stays among the features, `lsat` is dropped, and the rows are those complete in every
    column of the file (20,427).
    """
    return _published(frame) if as_published else _table(frame[frame["zgpa"].notna()], "zgpa", drop=[])


def _table(frame: pd.DataFrame, target: str, drop: list[str]) -> Table:
    known = frame[frame["gender"].notna() & frame["race1"].notna()].reset_index(drop=True)
    return Table(
        features=known.drop(columns=[target, COMPLETE, *drop]),
        target=known[target].to_numpy(copy=True),
        attributes=known[["gender"]].assign(race=known["race1"]),
    )


def _published(frame: pd.DataFrame) -> Table:
    rows = frame[frame[COMPLETE]].reset_index(drop=True)
    return Table(
        features=rows.drop(columns=["lsat", COMPLETE]),
        target=rows["zgpa"].to_numpy(copy=True),
        attributes=rows[["gender"]].assign(race=rows["race1"]),
        cells=(rows["gender"] + " & " + rows["race1"]).to_numpy(dtype=object),
    )
