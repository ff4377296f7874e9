"""What every source hands over: one task's rows before any encoding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Table"]


@dataclass(frozen=True, eq=False)
class Table:
    """One task's rows, selected and labelled, in the units of the file.

    Attributes
    ----------
    features : pandas.DataFrame, shape (n, k)
        Numeric and text columns, neither target nor label nor identifier among them. Missing values stay missing.
    target : ndarray of float64, shape (n,)
        {0, 1} for a classification task, the quantity itself for a regression task.
    attributes : pandas.DataFrame, shape (n, m)
        A column per sensitive attribute of the registry, under the attribute's name: text or a categorical, or numbers
        to be cut.
    cells : ndarray, shape (n,), optional
        Only as published: the cells that the authors' split is stratified by and their groups are merged from, in
        values whose sorted order is the authors'.
    """

    features: pd.DataFrame
    target: NDArray[np.float64]
    attributes: pd.DataFrame
    cells: NDArray[np.object_] | NDArray[np.int64] | None = None
