"""Sums over groups of rows, and the way back from a group to its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["GroupSums"]

# Groups are worked on one by one where they have so many rows on average.
_LONG = 500


class GroupSums:
    """Rows divided into numbered groups.

    Parameters
    ----------
    numbers : (n,) int64 array
        Group of each row, 0..S-1, in any order. Where the rows are sorted by group, sums run over contiguous pieces.
    n_groups : int
        Number of groups S.

    Attributes
    ----------
    numbers : (n,) int64 array
    n_groups : int
    counts : (S,) float64 array
        Rows in each group.
    """

    def __init__(self, numbers: NDArray[np.int64], n_groups: int) -> None:
        self.numbers, self.n_groups = numbers, n_groups
        sizes = np.bincount(numbers, minlength=n_groups)
        self.counts = sizes.astype(np.float64)
        # reduceat and repeat are several times faster than bincount and indexing, but need sorted rows, no group empty.
        self._sizes: NDArray[np.intp] | None = None
        if sizes.min() > 0 and not (np.diff(numbers) < 0).any():
            self._sizes = sizes
            self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (S,) sums of an (n,) array over the groups."""
        if self._sizes is not None:
            return np.add.reduceat(values, self._starts)
        return np.asarray(np.bincount(self.numbers, weights=values, minlength=self.n_groups), dtype=np.float64)

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (S,) means of an (n,) array over the groups."""
        return self.sums(values) / self.counts

    def spread(self, per_group: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (n,) array that gives each row the value of its group."""
        if self._sizes is not None:
            return np.repeat(per_group, self._sizes)
        return per_group[self.numbers]

    def scale(self, values: NDArray[np.float64], per_group: NDArray[np.float64]) -> None:
        """Multiply each entry of an (n,) array by the value of its group, in place."""
        if self._sizes is None or len(values) < _LONG * self.n_groups:
            values *= self.spread(per_group)
        else:
            for factor, low, size in zip(per_group.tolist(), self._starts.tolist(), self._sizes.tolist(), strict=True):
                values[low : low + size] *= factor

    def row_sums(self, rows: slice, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (S, d) sums over the groups of a block of rows of a matrix."""
        numbers = self.numbers[rows]
        return np.stack([np.bincount(numbers, weights=column, minlength=self.n_groups) for column in block.T], axis=1)
