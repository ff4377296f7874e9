"""Dutch Census 2001: does a person have a high-level profession."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

TARGET = "occupation"
HIGH = "2_1"
GENDER = {"1": "male", "2": "female"}
# Age is a code: 1 for 0 to 4 years, 2 for 5 to 9, and so on.
YEARS = 5
# The codes above 12, 60 years or more: left out of the 18 groups with which the published figures were reproduced.
OLDEST = ("13", "14", "15")


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the census file, 60,420 rows of 12 columns of codes as text, from its ARFF or its Parquet form."""
    (path,) = raw
    if path.suffix == ".parquet":
        return pd.read_parquet(path).rename(columns=str.lower)
    from scipy.io import arff  # takes long to import

    records, _ = arff.loadarff(path)
    return pd.DataFrame(records).map(bytes.decode).rename(columns=str.lower)


def task(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return every row; a high-level profession is labelled 1.

    Age, a code of five-year classes, becomes the lowest age of its class in years. As published, the 1,260 persons of
    60 years or more are left out; else they are in the class of the oldest, so that every row is in a group.
    """
    rows = frame[~frame["age"].isin(OLDEST)].reset_index(drop=True) if as_published else frame
    years = (rows["age"].astype(np.int64) - 1) * YEARS
    return Table(
        features=rows.drop(columns=TARGET).assign(age=years),
        target=(rows[TARGET] == HIGH).to_numpy().astype(np.float64),
        attributes=pd.DataFrame({"sex": rows["sex"].map(GENDER), "age": years}),
    )
