"""From columns of a file to a design matrix: indicators, filled gaps, standardised columns, an intercept."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

__all__ = ["design_matrix", "one_hot"]


def one_hot(features: pd.DataFrame) -> pd.DataFrame:
    """Replace every text column by the indicators of its values.

    Values are taken in alphabetical order and the first is the reference, without a column: the indicators of
    `race` in (asian, black, white) are `race_black` and `race_white`. A missing value sets no indicator, so that it
    falls to the reference. A column with the same value in every row is left out: it says nothing.

    Parameters
    ----------
    features : pandas.DataFrame, shape (n, k)
        Numeric and text columns.

    Returns
    -------
    pandas.DataFrame of float64, shape (n, d - 1)
        Numeric columns first, as in the file, then indicators; numeric missing values stay missing.
    """
    texts = features.select_dtypes(exclude=["number", "bool"]).columns
    categories = {name: pd.Categorical(features[name], sorted(features[name].dropna().unique())) for name in texts}
    encoded = pd.get_dummies(features.assign(**categories), columns=list(texts), drop_first=True).astype(np.float64)
    says_nothing = [
        name for name in encoded if encoded[name].isna().all() or (encoded[name] == encoded[name].iloc[0]).all()
    ]
    return encoded.drop(columns=says_nothing)


def design_matrix(encoded: pd.DataFrame, train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Fill, standardise and put the intercept in front; what is learnt is learnt on the training rows alone.

    Missing values become the training rows' mean; then each column is shifted and scaled to mean 0 and variance 1
    (divisor n, not n - 1) on the training rows. A column that is constant on the training rows is 0 in every row: its
    scale is unknown, and no model could have learnt from it.

    Parameters
    ----------
    encoded : pandas.DataFrame, shape (n, d - 1)
        Numeric columns.
    train : ndarray of int64
        The training rows' numbers.

    Returns
    -------
    ndarray of float64, shape (n, d)
        Column 0 is 1 in every row.
    """
    values = encoded.to_numpy(dtype=np.float64)
    filled = SimpleImputer(keep_empty_features=True).fit(values[train]).transform(values)
    scaled = StandardScaler().fit(filled[train]).transform(filled)
    scaled[:, np.ptp(filled[train], axis=0) == 0] = 0.0
    return np.column_stack([np.ones(len(values)), scaled])
