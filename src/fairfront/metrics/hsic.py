"""Hilbert-Schmidt independence criterion (Gretton et al. 2005): scores that do not depend on the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairfront.errors import ArgumentError
from fairfront.metrics.base import BoundMetric, FloatArray, Metric, Rows, shifted_blocks
from fairfront.metrics.covariance import SquaredCovariance
from fairfront.metrics.sums import GroupSums

__all__ = ["HSIC"]


@dataclass(frozen=True, kw_only=True)
class HSIC(Metric):
    """Empirical HSIC with the linear kernel on scores.

    Variant "cited": the indicator kernel on groups, 1 for rows of the same group, which gives
    M = sum_a (sum_{i in a} (z_i - mean z))² / (n - 1)². It does not see how the groups are numbered.

    Variant "paper": the linear kernel on group *numbers*, which gives the squared covariance (with 1/(n - 1)) of scores
    and group numbers. For S > 2 it changes when the groups are renumbered.

    Both are quadratic forms in the scores, with the floor 0, and need at least two rows. For two groups the cited
    value is twice the published one.
    """

    name: ClassVar[str] = "hsic"

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        if len(y) < 2:
            raise ArgumentError("y", "has one row", "HSIC divides by n - 1: at least two rows")
        return _Bound(self, groups) if self.variant == "cited" else SquaredCovariance(self, groups, len(y) - 1)


class _Bound(BoundMetric):
    def __init__(self, metric: Metric, groups: GroupSums) -> None:
        super().__init__(metric, len(groups.numbers))
        self._groups, self._shares = groups, groups.counts / len(groups.numbers)

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        totals = self._groups.sums(z - z.mean()) / (self.n_rows - 1)
        value = float(totals @ totals)
        if not derivative:
            return value, None
        return value, self._groups.spread(2 * (totals - self._shares @ totals) / (self.n_rows - 1))

    def quadratic(self, X: Rows) -> FloatArray:
        totals = np.zeros((self._groups.n_groups, X.shape[1]))
        for rows, block in shifted_blocks(X):
            totals += self._groups.row_sums(rows, block)
        totals -= np.outer(self._shares, totals.sum(axis=0))
        return totals.T @ totals / (self.n_rows - 1) ** 2
