"""The implicit objective phi(lambda) = M(X w*(lambda)) of Equation 8 and its gradient, by one adjoint solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve

from fairfront.metrics import BoundMetric
from fairfront.pareto import Scalarization, ScalarizedModel
from fairfront.risks import Array, GroupRisks

__all__ = ["Evaluation", "Objective"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """phi and its gradient at one weight vector.

    Attributes
    ----------
    model : ScalarizedModel
        The lower-level solution w*(lambda).
    value : float
        phi(lambda).
    gradient : array of shape (S,)
        d phi / d lambda_a = -grad F_a(w*)'v with H v = grad M, H the weighted Hessian at w*.
    """

    model: ScalarizedModel
    value: float
    gradient: Array


class Objective:
    """phi and its gradient, from one lower solve and one adjoint solve; the last evaluation is kept.

    Parameters
    ----------
    risks : GroupRisks
        The lower level.
    metric : BoundMetric
        The upper level: the unfairness metric, bound to the stored rows' labels and groups.
    """

    def __init__(self, risks: GroupRisks, metric: BoundMetric) -> None:
        self.risks, self.metric = risks, metric
        self.solver = Scalarization(risks)
        self._last: Evaluation | None = None

    def evaluate(self, weights: ArrayLike) -> Evaluation:
        """Return phi and its gradient at ``weights``, of shape (S,), in the simplex."""
        lam = np.asarray(weights, dtype=np.float64)
        if self._last is None or not np.array_equal(lam, self._last.model.weights):
            model = self.solver.solve(lam)
            value, derivative = self.metric.value_and_derivative(model.point.scores)
            adjoint = cho_solve(model.factor, model.point.score_gradient(derivative))
            self._last = Evaluation(model, value, -(model.point.gradients @ adjoint))
        return self._last

    def value(self, weights: ArrayLike) -> float:
        """Return phi(lambda) without its gradient."""
        if self._last is not None and np.array_equal(weights, self._last.model.weights):
            return self._last.value
        return self.metric.value(self.solver.solve(weights).point.scores)
