"""Features and labels as scikit-learn checks them, with errors that name columns."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from fairfront.errors import ArgumentError
from fairfront.risks import Array

__all__ = ["check_length", "checked_features", "score_columns"]


def checked_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> Array:
    """Return the rows as an (n, d) float64 array.

    Parameters
    ----------
    estimator : BaseEstimator
        It learns, or is asked for, the number and names of the features.
    X : frame or array of shape (n, d)
        Any eager frame that narwhals knows, or an array.
    reset : bool
        Whether these are the rows of a fit.

    Raises
    ------
    ArgumentError
        When a column does not hold numbers, by its name, or a frame has no column.
    ValueError
        What scikit-learn says of NaN, infinite values, no rows, other columns than at the fit.
    """
    if nw.dependencies.is_into_dataframe(X):
        schema = nw.from_native(X, eager_only=True).schema
        if not schema:
            raise ArgumentError("X", "is a frame without a column", "at least one feature")
        words = [name for name, kind in schema.items() if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object))]
        if words:
            shown = ", ".join(map(repr, words[:5])) + (", ..." if len(words) > 5 else "")
            remedy = "encode them, for instance with OneHotEncoder in a ColumnTransformer, or drop them"
            raise ArgumentError("X", f"columns that are not numbers: {shown}", remedy)
    elif nw.dependencies.is_polars_lazyframe(X):
        raise ArgumentError("X", "is a lazy frame", "collect() it first")
    return validate_data(estimator, X, dtype=np.float64, reset=reset)


def check_length(y: Array, rows: Array) -> None:
    """Refuse labels of another number than the rows of X.

    Raises
    ------
    ArgumentError
        When they are.
    """
    if len(y) != len(rows):
        raise ArgumentError("y", f"has {len(y)} rows, X has {len(rows)}", "one value a row")


def score_columns(X: Array, intercept: bool) -> Array:
    """Return the rows with a ones column before them, where the model has an intercept; shape (n, d + 1) or (n, d)."""
    if not intercept:
        return X
    rows = np.empty((X.shape[0], X.shape[1] + 1))
    rows[:, 0], rows[:, 1:] = 1.0, X
    return rows
