"""Student Performance (two Portuguese schools, 2005 and 2006): the final grade in mathematics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

TARGET = "G3"
# The same grade one and two terms earlier.
EARLIER = ["G1", "G2"]
GENDER = {"M": "male", "F": "female"}


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the file of the mathematics course, 395 rows of 33 columns, separated by semicolons or by commas."""
    (path,) = raw
    with path.open(encoding="utf-8") as stream:
        separator = ";" if ";" in stream.readline() else ","
    return pd.read_csv(path, sep=separator)


def task(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return every row, without the grades of the earlier terms.

    As published, the final grade is among the features, the school is not, and the sex is a number: 54 columns, as in
    the paper's Table 1. The published records are of another file and were not reproduced.
    """
    published = frame.drop(columns=["school", *EARLIER]).assign(sex=frame["sex"].map({"F": 1.0, "M": 0.0}))
    return Table(
        features=published if as_published else frame.drop(columns=[TARGET, *EARLIER]),
        target=frame[TARGET].to_numpy().astype(np.float64),
        attributes=pd.DataFrame({"gender": frame["sex"].map(GENDER)}),
        cells=frame["sex"].to_numpy(dtype=object) if as_published else None,
    )
