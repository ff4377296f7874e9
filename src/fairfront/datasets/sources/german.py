"""German Credit (Statlog, 1973 to 1975): is a loan repaid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.datasets.sources.base import Table

__all__ = ["read", "task"]

COLUMNS = [
    "checking_account",
    "duration",
    "credit_history",
    "purpose",
    "amount",
    "savings",
    "employment_since",
    "installment_rate",
    "personal_status",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "dependants",
    "telephone",
    "foreign_worker",
    "credit",
]
# As the file's own documentation reads the codes; doubtful, see the datasheet.
GENDER = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}


def read(raw: Sequence[Path]) -> pd.DataFrame:
    """Return the canonical file, german.data: 1,000 rows of 21 columns, the codes (A11, A12 ...) as they are."""
    (path,) = raw
    return pd.read_csv(path, names=COLUMNS, sep=" ")


def task(frame: pd.DataFrame, *, as_published: bool = False) -> Table:
    """Return every row; a good credit (code 1) is labelled 1, a bad one (code 2) 0.

    As published, the label is among the features.
    """
    gender = frame["personal_status"].map(GENDER)
    return Table(
        features=frame if as_published else frame.drop(columns="credit"),
        target=(frame["credit"] == 1).to_numpy().astype(np.float64),
        attributes=frame[["age"]].assign(gender=gender),
        cells=gender.to_numpy(dtype=object) if as_published else None,
    )
