"""Individual fairness across groups (Berk et al. 2017): rows with like labels should have like scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fairfront.metrics.base import BoundMetric, FloatArray, Metric, Rows, shifted_blocks
from fairfront.metrics.sums import GroupSums

__all__ = ["IndividualFairness"]

# With at most this many distinct labels, tables over (group, label) are cheaper than sorted recursions.
_FEW_LABELS = 32
# Columns of a design matrix that the sorted recursions take at once.
_COLUMNS = 4


@dataclass(frozen=True, kw_only=True)
class IndividualFairness(Metric):
    """Squared score differences over pairs of rows of different groups, weighted by the likeness of their labels.

    M = sum_{a<b} sum_{i in a, j in b} exp(-|y_i - y_j|) (z_i - z_j)² / sum_{a != b} n_a n_b

    The denominator runs over ordered pairs of groups, the numerator over unordered ones, as published: for two groups
    M is half the mean over cross pairs. The variants "paper" and "cited" coincide. The floor is 0, reached by equal
    scores. For one group there is no pair, and M is 0.

    With K the kernel exp(-|y_i - y_j|) between rows of different groups and k its row sums, M = z'(diag k - K)z over
    the denominator: a quadratic form in the scores. Neither K nor any other n x n array is ever formed. Where labels
    take few values (always in classification) Kz comes from sums over the (group, label) cells, in O(n); elsewhere
    from recursions along the sorted labels, in O(n log n).
    """

    name: ClassVar[str] = "individual_fairness"

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        values, labels = np.unique(y, return_inverse=True)
        kernel: _CrossKernel = (
            _CellKernel(values, labels, groups) if len(values) <= _FEW_LABELS else _SortedKernel(y, groups)
        )
        n_pairs = len(y) ** 2 - float(groups.counts @ groups.counts)
        return _Bound(self, kernel, len(y), n_pairs)


class _CrossKernel(Protocol):
    """The matrix exp(-|y_i - y_j|) between rows of different groups, 0 within a group."""

    def times(self, x: FloatArray) -> FloatArray:
        """Return the product with each of the columns of an array (k, n), stored as rows."""

    def second_moment(self, X: Rows, weights: FloatArray) -> FloatArray:
        """Return X'(diag(weights) - K)X, where the weights are K's row sums."""


class _Bound(BoundMetric):
    def __init__(self, metric: Metric, kernel: _CrossKernel, n_rows: int, n_pairs: float) -> None:
        super().__init__(metric, n_rows)
        self._kernel = kernel
        self._row_sums = kernel.times(np.ones((1, n_rows)))[0]
        self._scale = 1.0 / n_pairs if n_pairs else 0.0

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        # A common shift of the scores changes nothing but the rounding.
        z = z - z.mean()
        half = (self._row_sums * z - self._kernel.times(z[None])[0]) * self._scale
        return max(float(z @ half), 0.0), 2 * half if derivative else None

    def quadratic(self, X: Rows) -> FloatArray:
        return self._kernel.second_moment(X, self._row_sums) * self._scale


class _CellKernel:
    """The cross kernel when labels take few values: everything from sums over the (group, label) cells."""

    def __init__(self, values: FloatArray, labels: NDArray[np.intp], groups: GroupSums) -> None:
        self._shape = (groups.n_groups, len(values))
        self._cells = GroupSums(groups.numbers * len(values) + labels, groups.n_groups * len(values))
        self._kernel = np.exp(-np.abs(values[:, None] - values))

    def times(self, x: FloatArray) -> FloatArray:
        return np.stack([self._cells.spread(self._across(self._cells.sums(row)[:, None])[:, 0]) for row in x])

    def second_moment(self, X: Rows, weights: FloatArray) -> FloatArray:
        d = X.shape[1]
        moment, cell_sums = np.zeros((d, d)), np.zeros((self._cells.n_groups, d))
        for rows, block in shifted_blocks(X):
            moment += (block * weights[rows, None]).T @ block
            cell_sums += self._cells.row_sums(rows, block)
        moment -= cell_sums.T @ self._across(cell_sums)
        return (moment + moment.T) / 2

    def _across(self, sums: FloatArray) -> FloatArray:
        """Return the kernel's product with cell sums (S L, k), over the cells of the other groups."""
        table = sums.reshape(*self._shape, -1)
        return np.einsum("lm,smk->slk", self._kernel, _sums_of_others(table)).reshape(sums.shape)


class _SortedKernel:
    """The cross kernel for any labels: recursions along the sorted labels, one for each binary digit of the group.

    Two different group numbers have one highest digit in which they differ. So the cross pairs are those that differ
    in digit 0 and agree above, those that differ in digit 1 and agree above, and so on: ceil(log2 S) problems with two
    sides each, all sums of positive terms. (Taking the pairs within groups from all pairs would lose digits.)
    """

    def __init__(self, y: FloatArray, groups: GroupSums) -> None:
        self._digits = [_Sides(y, groups.numbers, digit) for digit in range((groups.n_groups - 1).bit_length())]

    def times(self, x: FloatArray) -> FloatArray:
        product = np.zeros_like(x)
        for digit in self._digits:
            digit.add_times(x, product)
        return product

    def second_moment(self, X: Rows, weights: FloatArray) -> FloatArray:
        n, d = X.shape
        moment = np.zeros((d, d))
        for first in range(0, d, _COLUMNS):
            here = slice(first, min(first + _COLUMNS, d))
            columns = np.empty((here.stop - first, n))
            for rows, block in shifted_blocks(X):
                columns[:, rows] = block[:, here].T
            applied = weights * columns - self.times(columns)
            for rows, block in shifted_blocks(X):
                moment[:, here] += block.T @ applied[:, rows].T
        return (moment + moment.T) / 2


class _Sides:
    """The kernel between rows whose group numbers differ in one binary digit and agree in all higher ones."""

    def __init__(self, y: FloatArray, numbers: NDArray[np.int64], digit: int) -> None:
        above = numbers >> (digit + 1)
        self._order = np.lexsort((y, above))
        ordered = y[self._order]
        # How much of the kernel is left from one row to the next; nothing across a change in a higher digit.
        left = np.zeros(len(y))
        left[1:] = np.where(np.diff(above[self._order]) == 0, np.exp(-np.abs(np.diff(ordered))), 0.0)
        self._side = (numbers[self._order] >> digit & 1).astype(bool)
        self._up = _DecayingSum(left)
        self._down = _DecayingSum(np.concatenate([[0.0], left[:0:-1]]))

    def add_times(self, x: FloatArray, product: FloatArray) -> None:
        ordered = x[:, self._order]
        sides = np.concatenate([np.where(self._side, 0.0, ordered), np.where(self._side, ordered, 0.0)])
        # A row is not on the other side, so that counting it from below and from above adds nothing.
        summed = self._up(sides) + self._down(sides[:, ::-1])[:, ::-1]
        product[:, self._order] += np.where(self._side, summed[: len(x)], summed[len(x) :])


class _DecayingSum:
    """The recursion f_i = decay_i f_{i-1} + x_i with 0 <= decay <= 1, for many right-hand sides, without overflow.

    The rows are cut into pieces of equal length, and the recursion runs along all the pieces at once; what each piece
    hands to the next obeys the same recursion over the (far fewer) pieces.
    """

    _LENGTH = 32

    def __init__(self, decay: FloatArray) -> None:
        self._n, self._pieces = len(decay), -(-len(decay) // self._LENGTH)
        padded = np.zeros(self._pieces * self._LENGTH)
        padded[: self._n] = decay
        self._decay = np.ascontiguousarray(padded.reshape(self._pieces, self._LENGTH).T)
        self._since_start = np.cumprod(self._decay, axis=0)
        self._between = _DecayingSum(self._since_start[-1]) if self._pieces > 1 else None

    def __call__(self, x: FloatArray) -> FloatArray:
        k = len(x)
        padded = np.zeros((k, self._pieces * self._LENGTH))
        padded[:, : self._n] = x
        f = np.ascontiguousarray(padded.reshape(k, self._pieces, self._LENGTH).transpose(2, 0, 1))
        for t in range(1, self._LENGTH):
            f[t] += self._decay[t] * f[t - 1]
        if self._between is not None:
            handed_on = self._between(f[-1])
            f[:, :, 1:] += self._since_start[:, None, 1:] * handed_on[:, :-1]
        return f.transpose(1, 2, 0).reshape(k, -1)[:, : self._n]


def _sums_of_others(table: FloatArray) -> FloatArray:
    """Return, for each entry along the first axis, the sum of all the other entries, without a subtraction."""
    others = np.zeros_like(table)
    np.cumsum(table[:-1], axis=0, out=others[1:])
    others[:-1] += np.cumsum(table[:0:-1], axis=0)[::-1]
    return others
