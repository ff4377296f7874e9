"""From columns of a file to a design matrix: indicators, filled gaps, standardised columns, an intercept."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["INTERCEPT", "design_matrix", "one_hot"]

INTERCEPT = "intercept"


def one_hot(features: pd.DataFrame, *, drop_first: bool = True) -> pd.DataFrame:
    """Replace every text column by the indicators of its values.

    Values are taken in alphabetical order and the first is the reference, without a column: the indicators of
    `race` in (asian, black, white) are `race_black` and `race_white`. A missing value sets no indicator, so that it
    falls to the reference. A column with the same value in every row is left out: it says nothing.

    Parameters
    ----------
    features : pandas.DataFrame, shape (n, k)
        Numeric and text columns.
    drop_first : bool, default True
        Whether the first value is a reference; else it has a column too.

    Returns
    -------
    pandas.DataFrame, shape (n, d - 1)
        Numeric columns first, as in the file, then indicators; numeric missing values stay missing.
    """
    texts = features.select_dtypes(exclude=["number", "bool"]).columns
    encoded = features
    if len(texts):
        categories = {name: pd.Categorical(features[name], sorted(features[name].dropna().unique())) for name in texts}
        encoded = pd.get_dummies(features.assign(**categories), columns=list(texts), drop_first=drop_first, dtype=float)
        encoded = encoded.astype(np.float64)
    return encoded.loc[:, [_varies(encoded[name]) for name in encoded]]


def design_matrix(encoded: pd.DataFrame, train: NDArray[np.int64], *, intercept: bool = True) -> NDArray[np.float64]:
    """Fill, standardise and put the intercept in front; what is learnt is learnt on the training rows alone.

    Missing values become the training rows' mean; then each column is shifted and scaled to mean 0 and variance 1
    (divisor n, not n - 1) on the training rows. A column that is constant on the training rows is 0 in every row: its
    scale is unknown, and no model could have learnt from it.

    Parameters
    ----------
    encoded : pandas.DataFrame, shape (n, d - 1)
        Numeric columns.
    train : ndarray of int64
        The training rows' numbers, sorted.
    intercept : bool, default True
        Whether column 0 is the intercept.

    Returns
    -------
    ndarray of float64, shape (n, d)
        Column 0 is 1 in every row, where there is an intercept.
    """
    first = 1 if intercept else 0
    X = np.ones((len(encoded), encoded.shape[1] + first))
    every_row = len(train) == len(encoded)
    for number, name in enumerate(encoded, start=first):
        # One column at a time: beside the result no second matrix is made, however many rows there are.
        column = encoded[name].to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
        learnt = column if every_row else column[train]
        gaps = np.isnan(learnt)
        known = learnt[~gaps] if gaps.any() else learnt
        if not known.size or known.min() == known.max():
            X[:, number] = 0.0
            continue
        mean = known.mean()
        # The filled gaps count among the rows, with no distance to the mean.
        scale = np.sqrt(np.square(known - mean).sum() / len(learnt))
        column -= mean
        column /= scale
        column[np.isnan(column)] = 0.0
        X[:, number] = column
    return X


def _varies(column: pd.Series) -> bool:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    # A gap counts as a value of its own; a column of gaps alone says nothing.
    return not np.isnan(values).all() and not (values == values[0]).all()
