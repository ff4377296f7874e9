"""American Community Survey 2011: a national sample of 6,279 persons in the layout of the person files."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources import acs
from fairfront.datasets.sources.base import Table

__all__ = ["employment", "income", "read", "travel_time"]


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the columns that the three tasks need, 6,279 rows of 29 columns."""
    (path,) = raw
    needed = sorted({name for task in acs.PROBLEMS for name in acs.columns(task)})
    return pd.read_csv(path, usecols=needed)[needed].astype("float32")


def _task(frame: pd.DataFrame, task: str) -> Table:
    values, labels = acs.select(frame, task)
    features = pd.DataFrame(values, columns=acs.features(task))
    return Table(features=features, target=labels, attributes=acs.attributes(features))


employment = functools.partial(_task, task="acs-employment")
income = functools.partial(_task, task="acs-income")
travel_time = functools.partial(_task, task="acs-travel-time")
