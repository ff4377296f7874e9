"""The simplex of group weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairfront.errors import ArgumentError
from fairfront.risks import Array

__all__ = ["project"]


def project(x: ArrayLike) -> Array:
    """Return the point of the simplex nearest to ``x``, shape (S,).

    The projection is max(x - t, 0) with the t that makes it sum to 1, found from the sorted entries.

    Raises
    ------
    ArgumentError
        When ``x`` is no vector of at least one finite number.
    """
    point = np.asarray(x, dtype=np.float64)
    if point.ndim != 1 or point.size == 0 or not np.isfinite(point).all():
        raise ArgumentError("x", "must be a vector of finite numbers")
    descending = np.sort(point - point.max())[::-1]  # a common shift does not move the projection
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, point.size + 1)
    t = thresholds[np.flatnonzero(descending > thresholds)[-1]]
    projected = np.maximum(point - point.max() - t, 0.0)
    return projected / projected.sum()
