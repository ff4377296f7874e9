"""Group variance: how much the groups' losses differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairfront.errors import ArgumentError, unknown_name
from fairfront.metrics.base import BoundMetric, FloatArray, Metric
from fairfront.metrics.smooth import sigmoid
from fairfront.metrics.sums import GroupSums

__all__ = ["LOSSES", "GroupVariance"]

_Loss = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def _logistic(z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))) - y * z, sigmoid(z)[0] - y


def _squared_hinge(z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    side = 2 * y - 1
    short = np.maximum(0.0, 1 - side * z)
    return short**2, -2 * side * short


def _squared_error(z: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    error = z - y
    return error**2, 2 * error


_LOSSES: dict[str, _Loss] = {
    "logistic": _logistic,
    "squared_hinge": _squared_hinge,
    "squared_error": _squared_error,
}
LOSSES = tuple(_LOSSES)


@dataclass(frozen=True, kw_only=True)
class GroupVariance(Metric):
    """Population variance over groups of the groups' mean losses, without regularisation.

    M = (1/S) sum_a (L_a - mean_b L_b)², L_a the mean loss of group a. The variants "paper" and "cited" coincide; the
    floor is 0.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "squared_error"}, optional
        Pointwise loss of label and score: log(1 + e^z) - y z, max(0, 1 - (2y - 1) z)², (y - z)². Default: logistic in
        classification, squared_error in regression (where it is the only one).
    """

    name: ClassVar[str] = "group_variance"
    loss: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss is not None and self.loss not in _LOSSES:
            raise unknown_name("loss", self.loss, _LOSSES)
        if self.task == "regression" and self.loss not in (None, "squared_error"):
            raise ArgumentError("loss", f"{self.loss} needs labels of two classes", "squared_error in regression")

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        loss = self.loss or ("logistic" if self.task == "classification" else "squared_error")
        return _Bound(self, _LOSSES[loss], y, groups)


class _Bound(BoundMetric):
    def __init__(self, metric: Metric, loss: _Loss, y: FloatArray, groups: GroupSums) -> None:
        super().__init__(metric, len(y))
        self._loss, self._y, self._groups = loss, y, groups

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        losses, slopes = self._loss(z, self._y)
        means = self._groups.means(losses)
        deviations = means - means.mean()
        value = float(deviations @ deviations) / len(means)
        if not derivative:
            return value, None
        return value, self._groups.spread(2 * deviations / (len(means) * self._groups.counts)) * slopes
