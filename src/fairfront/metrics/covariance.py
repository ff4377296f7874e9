"""The squared covariance of scores and group numbers, which two of the published metrics are."""

from __future__ import annotations

import numpy as np

from fairfront.metrics.base import BoundMetric, FloatArray, Metric, Rows, shifted_blocks
from fairfront.metrics.sums import GroupSums

__all__ = ["SquaredCovariance"]


class SquaredCovariance(BoundMetric):
    """M = c² with c = sum_i (g_i - mean g) z_i / divisor, where g_i is the number of row i's group.

    For more than two groups the value depends on how the groups are numbered.

    Parameters
    ----------
    metric : Metric
        The metric this is the published form of.
    groups : GroupSums
        The groups.
    divisor : float
        n, or n - 1.
    """

    def __init__(self, metric: Metric, groups: GroupSums, divisor: float) -> None:
        super().__init__(metric, len(groups.numbers))
        self._weights = (groups.numbers - groups.numbers.mean()) / divisor

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        # The weights sum to zero, so that a common shift of the scores changes nothing but the rounding.
        covariance = float(self._weights @ (z - z.mean()))
        return covariance**2, 2 * covariance * self._weights if derivative else None

    def quadratic(self, X: Rows) -> FloatArray:
        """Return Q = cc', c the covariances of the columns and the group numbers."""
        covariances = np.zeros(X.shape[1])
        for rows, block in shifted_blocks(X):
            covariances += self._weights[rows] @ block
        return np.outer(covariances, covariances)
