"""American Community Survey 2012: a sample of 2,000 persons with readable columns, and three tasks on it.

The tasks follow those of folktables [1]_ in kind. They are not the 2018 state files of the paper.

References
----------
.. [1] Ding, F., Hardt, M., Miller, J. and Schmidt, L. (2021). Retiring Adult: new datasets for fair machine learning.
   Advances in Neural Information Processing Systems 34.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["employment", "income", "read", "travel_time"]

# Answers that name a group on their own.
ANSWERS = {
    "citizen": {"yes": "citizen", "no": "not a citizen"},
    "disability": {"yes": "disability", "no": "no disability"},
}


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the sample as it is distributed: 2,000 rows of 13 columns."""
    (path,) = raw
    return pd.read_csv(path)


def employment(frame: pd.DataFrame) -> Table:
    """Return the task "is employed" on persons of 16 years or more whose employment is known (1,605 rows)."""
    rows = frame[(frame["age"] >= 16) & frame["employment"].notna()]
    return _table(rows, rows["employment"] == "employed", drop=["income", "employment", "hrs_work", "time_to_work"])


def income(frame: pd.DataFrame) -> Table:
    """Return the task "earns more than 50,000 dollars a year" on employed persons of known income (843 rows)."""
    rows = frame[(frame["employment"] == "employed") & frame["income"].notna()]
    return _table(rows, rows["income"] > 50_000, drop=["income", "employment", "time_to_work"])


def travel_time(frame: pd.DataFrame) -> Table:
    """Return the task "travels more than 20 minutes to work" on persons whose commute is known (783 rows)."""
    rows = frame[frame["time_to_work"].notna()]
    return _table(rows, rows["time_to_work"] > 20, drop=["time_to_work", "employment"])


def _table(rows: pd.DataFrame, positive: pd.Series[bool], drop: list[str]) -> Table:
    return Table(
        features=rows.drop(columns=drop).reset_index(drop=True),
        target=positive.to_numpy().astype(np.float64),
        attributes=rows[["gender", "race", "age", "citizen", "disability"]].replace(ANSWERS).reset_index(drop=True),
    )
