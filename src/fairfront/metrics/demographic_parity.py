"""Demographic parity (Calders et al. 2009): the same mean prediction in every group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fairfront.metrics.base import BoundMetric, FloatArray, Metric
from fairfront.metrics.smooth import MODULUS_FLOOR, checked_positive, sigmoid, smooth_max, smooth_modulus
from fairfront.metrics.sums import GroupSums
from fairfront.scratch import Scratch

__all__ = ["DemographicParity"]


@dataclass(frozen=True, kw_only=True)
class DemographicParity(Metric):
    """Smooth maximum over groups of how far a group's mean prediction is from the mean over groups.

    m_a = mean over group a of sigmoid(rho z) in classification, of z in regression;
    s_a = sqrt((m_a - mean_b m_b)² + 1e-6);  M = log(sum_a exp(rho s_a))/rho.

    Variant "paper" is M, with the floor log(S)/rho + 1e-3; variant "cited" is M minus this floor, so that parity is 0.

    Parameters
    ----------
    rho : float, default 1.0
        Slope of the sigmoid and sharpness of the maximum (the published value is 1). As it grows, the value in
        classification approaches the largest deviation of a group's selection rate.
    """

    name: ClassVar[str] = "demographic_parity"
    rho: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_positive("rho", self.rho)

    def floor(self, n_groups: int) -> float:
        """Return 0, or for the published formula its value at equal means, log(S)/rho + 1e-3."""
        return 0.0 if self.variant == "cited" else self._at_parity(n_groups)

    def _at_parity(self, n_groups: int) -> float:
        return math.log(n_groups) / self.rho + MODULUS_FLOOR

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        taken = self._at_parity(groups.n_groups) if self.variant == "cited" else 0.0
        return _Bound(self, groups, self.rho, self.task == "classification", taken)


class _Bound(BoundMetric):
    def __init__(self, metric: Metric, groups: GroupSums, rho: float, classify: bool, taken: float) -> None:
        super().__init__(metric, len(groups.numbers))
        self._groups, self._rho, self._classify, self._taken = groups, rho, classify, taken
        self._scratch = Scratch()

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        prediction, slope = z, None
        if self._classify:
            prediction, slope = sigmoid(z, self._rho, (self._scratch.take(len(z)), self._scratch.take(len(z))))
        means = self._groups.means(prediction)
        modulus, sign = smooth_modulus(means - means.mean())
        value, weights = smooth_max(modulus, self._rho)
        if not derivative:
            return value - self._taken, None
        pull = weights * sign
        pull = (pull - pull.mean()) / self._groups.counts
        if slope is None:
            return value - self._taken, self._groups.spread(pull)
        self._groups.scale(slope, self._rho * pull)
        return value - self._taken, slope
