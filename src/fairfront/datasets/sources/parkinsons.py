"""Parkinsons Telemonitoring: a score of the disease's symptoms, from 16 measures of the voice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

TARGET = "total_UPDRS"
# A part of the target, and the number of the patient.
PART, IDENTIFIER = "motor_UPDRS", "subject#"
GENDER = {0: "male", 1: "female"}


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the canonical file: 5,875 recordings of 42 patients, 22 columns."""
    (path,) = raw
    return pd.read_csv(path)


def task(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return every row, without the patient's number and the motor part of the score.

    As published, the patient's number is among the features.
    """
    drop = [TARGET, PART] if as_published else [TARGET, PART, IDENTIFIER]
    return Table(
        features=frame.drop(columns=drop),
        target=frame[TARGET].to_numpy(copy=True),
        attributes=pd.DataFrame({"gender": frame["sex"].map(GENDER)}),
        cells=frame["sex"].to_numpy() if as_published else None,
    )
