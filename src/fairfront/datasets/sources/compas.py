"""COMPAS (Broward County, 2013 and 2014): is a defendant charged again within two years."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

TARGET = "two_year_recid"
MODELLING = [
    "sex",
    "age",
    "race",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
    TARGET,
]


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the modelling columns of the rows that ProPublica's own analysis keeps: 6,172 rows of 9 columns.

    Kept are rows whose screening lies within 30 days of the arrest, whose recidivism is known, whose charge is a felony
    or a misdemeanour and who have a score. Neither identifiers, dates, texts, scores nor day counts are handed on, and
    the rows are sorted by their values, so that their order does not lead back to the file's.
    """
    (path,) = raw
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    kept = (
        frame["days_b_screening_arrest"].between(-30, 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & (frame["score_text"] != "N/A")
    )
    return frame.loc[kept, MODELLING].sort_values(MODELLING, ignore_index=True)


def task(frame: pd.DataFrame) -> Table:
    """Return every row; a new charge within two years is labelled 1."""
    return Table(
        features=frame.drop(columns=TARGET),
        target=frame[TARGET].to_numpy().astype(np.float64),
        attributes=frame[["race", "age"]].assign(gender=frame["sex"].str.lower()),
    )
