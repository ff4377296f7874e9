"""Adult (census income, 1994): does a person earn more than 50,000 dollars a year."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the canonical training file, adult.data: 32,561 rows of 15 columns, "?" where a value is unknown."""
    (path,) = raw
    return pd.read_csv(path, names=COLUMNS, skipinitialspace=True, na_filter=False)


def task(frame: pd.DataFrame) -> Table:
    """Return every row; "?" stays a value of its own, so that an unknown occupation is not taken for a known one."""
    return Table(
        features=frame.drop(columns="income"),
        target=(frame["income"] == ">50K").to_numpy().astype(np.float64),
        attributes=frame[["race", "age"]].assign(gender=frame["sex"].str.lower()),
    )
