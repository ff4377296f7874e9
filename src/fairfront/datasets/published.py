"""What the papers' authors did to the rows after reading them, errors included: for the audit of their records alone.

Their split is scikit-learn's, stratified by the cells of the sensitive attributes. Their groups are merged from these
cells until two are left, but in the training and in the test rows separately, so that a group may hold one set of cells
in one of them and another in the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairfront.datasets.groups import Partition

__all__ = ["merge_apart", "split"]


def split(
    cells: NDArray[np.object_] | NDArray[np.int64], test_size: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the training and the test rows, in the order of the authors' split sorted by row number."""
    from sklearn.model_selection import train_test_split  # takes long to import

    rows = np.arange(len(cells))
    if not test_size:
        return rows, rows[:0]
    train, test = train_test_split(rows, test_size=test_size, random_state=seed, stratify=cells)
    return np.sort(train), np.sort(test)


def merge_apart(
    cells: NDArray[np.object_] | NDArray[np.int64], parts: tuple[NDArray[np.int64], ...], groups: int = 2
) -> Partition:
    """Return the authors' groups: each part's cells in sorted order, its two smallest merged again and again.

    Parameters
    ----------
    cells : ndarray, shape (n,)
        The cell of each row.
    parts : tuple of ndarray of int64
        Training and test rows.
    groups : int, default 2
        How many groups are left in each part.

    Returns
    -------
    Partition
        The names are those of the training part.
    """
    ids = np.full(len(cells), -1, dtype=np.int64)
    names: tuple[str, ...] = ()
    for part in parts:
        found, counts = np.unique(cells[part], return_counts=True)
        merged = [([cell], int(count)) for cell, count in zip(found, counts, strict=True)]
        while len(merged) > groups:
            merged.sort(key=lambda group: group[1])
            (one, few), (two, more), *rest = merged
            merged = [*rest, (one + two, few + more)]
        for number, (members, _) in enumerate(merged):
            ids[part[np.isin(cells[part], members)]] = number
        names = names or tuple(" + ".join(sorted(map(str, members))) for members, _ in merged)
    return Partition(ids, names)
