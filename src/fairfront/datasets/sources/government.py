"""ACS 2018, persons in government employment: does one earn more than 50,000 dollars a year."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

TARGET = "salary"
RICH = 50_000
# Codes of 518 occupations and 259 industries: their first two characters are the major groups.
CODES = ["occupation", "industry"]


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the table, 204,309 persons of 17 columns."""
    (path,) = raw
    return pd.read_csv(path, dtype=dict.fromkeys(CODES, "str"))


def task(frame: pd.DataFrame) -> Table:
    """Return every row; a salary above 50,000 dollars is labelled 1. Occupation and industry become major groups."""
    major = {column: frame[column].str[:2] for column in CODES}
    return Table(
        features=frame.drop(columns=TARGET).assign(**major),
        target=(frame[TARGET] > RICH).to_numpy().astype(np.float64),
        attributes=frame[["race", "age"]].assign(gender=frame["sex"]),
    )
