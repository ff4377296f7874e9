"""Disparate mistreatment (Zafar et al. 2017): errors that do not depend on the group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fairfront.errors import ArgumentError, unknown_name
from fairfront.metrics.base import BoundMetric, FloatArray, Metric, Task
from fairfront.metrics.covariance import SquaredCovariance
from fairfront.metrics.smooth import MODULUS_FLOOR, checked_positive, smooth_max, smooth_modulus
from fairfront.metrics.sums import GroupSums

__all__ = ["FORMS", "DisparateMistreatment", "Form"]

Form = Literal["misclassification", "false_positive", "false_negative"]
FORMS: tuple[Form, ...] = ("misclassification", "false_positive", "false_negative")


@dataclass(frozen=True, kw_only=True)
class DisparateMistreatment(Metric):
    """Covariance between belonging to a group and how far a row is on the wrong side of the decision boundary.

    Variant "cited", classification only: with margins m_i = (2 y_i - 1) z_i, wrongness g_i = min(0, m_i) and
    c_a = (1/n) sum_i (1[i in a] - n_a/n) g_i, one group against the rest,
    M = log(sum_a exp(rho s_a))/rho - log(S)/rho - 1e-3, s_a = sqrt(c_a² + 1e-6). Instead of min(0, m) a function with a
    continuous derivative is taken: 0 for m >= 0, -m²/(2 width) for -width <= m <= 0 and m + width/2 below, so at
    most width/2 above it. M is 0 if wrongness is equal on average in all groups; it does not see their numbers.

    The forms "false_positive" and "false_negative" count the wrongness of rows with label 0 or 1 only. As cited, the
    covariance still runs over all rows, so that it is 0 where false positives weigh equally in the groups *as a
    whole*: with unequal shares of label 0 that is not the same as equal false positive rates.

    Variant "paper": M = c², c = mean((g - mean g)(z - mean z)) with g the *number* of the group. Labels do not enter,
    so that despite the name it is no measure of mistreatment, and for S > 2 it changes when the groups are renumbered.
    It is defined for regression too, has no forms, and is a quadratic form of linear scores.

    Parameters
    ----------
    form : {"misclassification", "false_positive", "false_negative"}, default "misclassification"
        Which errors count (variant "cited").
    rho : float, default 100.0
        Sharpness of the maximum over groups (variant "cited"): covariances are small, far smaller than rates. For two
        groups the two covariances are opposite and it plays no part.
    width : float, default 0.1
        Over which length of margin the kink of min(0, m) is rounded (variant "cited").
    """

    name: ClassVar[str] = "disparate_mistreatment"
    form: Form = "misclassification"
    rho: float = 100.0
    width: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in FORMS:
            raise unknown_name("form", self.form, FORMS)
        if self.variant == "paper" and self.form != "misclassification":
            raise ArgumentError("form", "the published formula has no forms", 'use variant="cited"')
        checked_positive("rho", self.rho)
        checked_positive("width", self.width)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Classification; the published formula, into which labels do not enter, also in regression."""
        return ("classification",) if self.variant == "cited" else ("classification", "regression")

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        if self.variant == "paper":
            return SquaredCovariance(self, groups, len(y))
        side = 2 * y - 1
        if self.form == "false_positive":
            side[y == 1] = 0.0
        elif self.form == "false_negative":
            side[y == 0] = 0.0
        return _Bound(self, side, groups, self.rho, self.width)


class _Bound(BoundMetric):
    def __init__(self, metric: Metric, side: FloatArray, groups: GroupSums, rho: float, width: float) -> None:
        super().__init__(metric, len(side))
        # -1 or 1 by the label; 0 for rows whose errors do not count: their margin is 0, and so is their wrongness.
        self._side, self._groups, self._rho, self._width = side, groups, rho, width
        self._shares = groups.counts / len(side)
        self._taken = math.log(groups.n_groups) / rho + MODULUS_FLOOR

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        margin = self._side * z
        slope = np.clip(margin / -self._width, 0.0, 1.0)
        # One formula for all three pieces: the slope is 0, -m/width or 1.
        wrongness = slope * (margin + 0.5 * self._width * slope)
        sums = self._groups.sums(wrongness)
        covariances = (sums - self._shares * sums.sum()) / self.n_rows
        modulus, sign = smooth_modulus(covariances)
        value, weights = smooth_max(modulus, self._rho)
        if not derivative:
            return value - self._taken, None
        pull = weights * sign
        in_row = self._groups.spread((pull - self._shares @ pull) / self.n_rows)
        return value - self._taken, in_row * slope * self._side
