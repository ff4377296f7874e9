"""The implicit objective phi(lambda) = M(X w*(lambda)) of Equation 8 and its gradient, by one adjoint solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairfront.errors import ArgumentError
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

    A metric that is a quadratic form w'Qw of the coefficients is evaluated as one, at no pass over the rows.

    Parameters
    ----------
    risks : GroupRisks
        The lower level.
    metric : BoundMetric
        The upper level: the unfairness metric, bound to the stored rows' labels and groups (``risks.y``,
        ``risks.groups``).
    tolerance : float, default 1e-11
        Of the lower solve: largest entry of its gradient.
    adjoint_tolerance : float, default 1e-11
        Of the adjoint solve, relative.  The error of the gradient is proportional to both.

    Attributes
    ----------
    lower_solves, adjoint_solves : int
        How many there were so far.

    Raises
    ------
    ArgumentError
        When the metric was bound to another number of rows.
    """

    def __init__(
        self, risks: GroupRisks, metric: BoundMetric, *, tolerance: float = 1e-11, adjoint_tolerance: float = 1e-11
    ) -> None:
        if metric.n_rows != risks.n_rows:
            raise ArgumentError("metric", f"is bound to {metric.n_rows} rows, the risks have {risks.n_rows}")
        self.risks, self.metric, self.adjoint_tolerance = risks, metric, adjoint_tolerance
        self.solver = Scalarization(risks, tolerance=tolerance)
        self.adjoint_solves = 0
        self._quadratic = metric.quadratic(risks.source)
        self._point: tuple[ScalarizedModel, float, Array] | None = None
        self._last: Evaluation | None = None

    @property
    def lower_solves(self) -> int:
        """Lower-level problems solved so far."""
        return self.solver.solves

    def evaluate(self, weights: ArrayLike) -> Evaluation:
        """Return phi and its gradient at ``weights``, of shape (S,), in the simplex."""
        model, value, slope = self._solved(weights)
        if self._last is None or self._last.model is not model:
            adjoint = model.solve_hessian(slope, tolerance=self.adjoint_tolerance)
            self.adjoint_solves += 1
            self._last = Evaluation(model, value, -(model.point.gradients @ adjoint))
        return self._last

    def value(self, weights: ArrayLike) -> float:
        """Return phi(lambda) without its gradient; `evaluate` at the same weights then only solves the adjoint."""
        return self._solved(weights)[1]

    def settle(self, weights: ArrayLike, tolerance: float = 1e-11) -> tuple[ScalarizedModel, float]:
        """Return the model and phi at ``weights``, the lower level solved on from where it is to ``tolerance``.

        phi is corrected to first order for what is left of the lower gradient, so that it is the same number, to
        1e-12, wherever the solve set out.
        """
        loose, self.solver.tolerance = self.solver.tolerance, tolerance
        self._point = self._last = None
        try:
            model, value, _ = self._solved(weights)
        finally:
            self.solver.tolerance = loose
        return model, value

    def _solved(self, weights: ArrayLike) -> tuple[ScalarizedModel, float, Array]:
        if self._point is None or not np.array_equal(weights, self._point[0].weights):
            # Let go of the last model first: its scores are as many as the rows.
            self._point = self._last = None
            model = self.solver.solve(weights)
            value, slope = self._metric_at(model)
            # To first order what is left of the lower gradient g moves w by -H^-1 g.
            value -= float(slope @ model.near_inverse(model.gradient))
            self._point = model, value, slope
        return self._point

    def _metric_at(self, model: ScalarizedModel) -> tuple[float, Array]:
        """Return M(Xw) and its gradient in w."""
        if self._quadratic is not None:
            slope = 2.0 * self._quadratic @ model.w
            return 0.5 * float(model.w @ slope), slope
        value, derivative = self.metric.value_and_derivative(model.point.scores)
        return value, model.point.score_gradient(derivative)
