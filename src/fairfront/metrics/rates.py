"""Smooth gaps between the groups' positive rates: what equal opportunity and equalised odds are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairfront.errors import ArgumentError
from fairfront.metrics.base import BoundMetric, FloatArray, Metric, Task
from fairfront.metrics.checks import listed
from fairfront.metrics.smooth import checked_positive, sigmoid, smooth_max
from fairfront.metrics.sums import GroupSums

__all__ = ["RateGaps"]


@dataclass(frozen=True, kw_only=True)
class RateGaps(Metric):
    """Mean, over some labels, of the smooth gap between the groups' positive rates among the rows with that label.

    t_a = mean of sigmoid(rho z) over the rows of group a with the label;
    gap = smax(t) - smin(t), smax(v) = log(sum exp(rho v))/rho, smin(v) = -smax(-v).

    Variant "paper" is the mean of the gaps, at least 2 log(S)/rho; variant "cited" is the mean minus this floor.

    Parameters
    ----------
    rho : float, default 1.0
        Slope of the sigmoid and sharpness of both extremes (the published value is 1).
    """

    labels: ClassVar[tuple[int, ...]]
    rho: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_positive("rho", self.rho)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Classification only: a rate is over the rows of a class."""
        return ("classification",)

    def floor(self, n_groups: int) -> float:
        """Return 0, or for the published formula its value at equal rates, 2 log(S)/rho."""
        return 0.0 if self.variant == "cited" else self._at_parity(n_groups)

    def _at_parity(self, n_groups: int) -> float:
        return 2 * math.log(n_groups) / self.rho

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        gaps = [_Gap(y, groups, label, self.rho) for label in self.labels]
        taken = self._at_parity(groups.n_groups) if self.variant == "cited" else 0.0
        return _Bound(self, gaps, len(y), taken)


class _Bound(BoundMetric):
    def __init__(self, metric: Metric, gaps: list[_Gap], n_rows: int, taken: float) -> None:
        super().__init__(metric, n_rows)
        self._gaps, self._taken = gaps, taken

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        in_row = np.zeros(self.n_rows) if derivative else None
        # The gaps concern different rows, so that each fills its own part of the derivative.
        total = sum(gap.evaluate(z, in_row, 1 / len(self._gaps)) for gap in self._gaps)
        return total / len(self._gaps) - self._taken, in_row


class _Gap:
    """The smooth gap among the rows with one label."""

    def __init__(self, y: FloatArray, groups: GroupSums, label: int, rho: float) -> None:
        self._rows, self._rho = np.flatnonzero(y == label), rho
        numbers = groups.numbers[self._rows]
        lacking = np.flatnonzero(np.bincount(numbers, minlength=groups.n_groups) == 0)
        if lacking.size:
            remedy = "the metric compares the groups on such rows: merge or drop groups that have none"
            raise ArgumentError("y", f"no row with label {label} in {listed(lacking)}", remedy)
        self._groups = GroupSums(numbers, groups.n_groups)

    def evaluate(self, z: FloatArray, derivative: FloatArray | None, weight: float) -> float:
        """Return the gap, and put its derivative times the weight into the rows with the label."""
        rates, slope = sigmoid(z[self._rows], self._rho)
        means = self._groups.means(rates)
        highest, up = smooth_max(means, self._rho)
        minus_lowest, down = smooth_max(-means, self._rho)
        if derivative is not None:
            pull = weight * self._rho * (up - down) / self._groups.counts
            self._groups.scale(slope, pull)
            derivative[self._rows] = slope
        return highest + minus_lowest
