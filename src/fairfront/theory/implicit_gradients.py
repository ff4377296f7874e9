"""Equation 8 of the first paper: the hypergradient from one adjoint system, held against differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairfront.bilevel import Objective
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import Scalarization, ScalarizedModel
from fairfront.risks import Array, GroupRisks
from fairfront.theory.check import Check

__all__ = ["Agreement", "equation_8", "slope_by_differences", "slope_of_model", "without_intercept"]

_LONGEST, _SHORTEST = 2e-4, 1e-6


@dataclass(frozen=True)
class Agreement:
    """A derivative of phi along a direction, by one adjoint system and by differences.

    Attributes
    ----------
    exact, numeric : float
        The two values.
    scale : float
        The larger of ``|exact|`` and 1e-3 of the gradient's range over the groups: what the error is measured against.
    step : float
        The step of the differences.
    adjoint_solves, lower_solves : int
        What the exact value took.
    """

    exact: float
    numeric: float
    scale: float
    step: float
    adjoint_solves: int
    lower_solves: int

    @property
    def error(self) -> float:
        """The difference over the scale."""
        return abs(self.exact - self.numeric) / self.scale

    def check(self, tolerance: float = 1e-6) -> Check:
        """Return whether the two agree."""
        return Check.at_most("Equation 8: one adjoint system gives the hypergradient", self.error, tolerance, 1)


def slope_by_differences(
    risks: GroupRisks,
    metric: BoundMetric,
    weights: Array,
    direction: Array,
    step: float,
    *,
    drop_intercept: bool = False,
) -> float:
    """Return the derivative of phi along ``direction`` by a central difference of order four.

    Parameters
    ----------
    risks, metric
        The problem.
    weights, direction : array of shape (S,)
        lambda, and a direction that sums to 0.
    step : float
        Length of the step.
    drop_intercept : bool, default False
        Let the metric see the scores without the intercept, as the published metrics do.
    """
    solver, phi = Scalarization(risks, tolerance=1e-13), {}
    for k in (-2, -1, 1, 2):
        model = solver.solve(weights + k * step * direction)
        phi[k] = metric.value(_scores(model, drop_intercept))
    return (8 * (phi[1] - phi[-1]) - (phi[2] - phi[-2])) / (12 * step)


def equation_8(risks: GroupRisks, metric: BoundMetric, weights: Array, direction: Array) -> Agreement:
    """Compare the hypergradient along a direction with central differences.

    Two steps are tried, and the better one counts: where a piecewise metric changes a piece within the longer, the
    shorter holds.  For the squared hinge, whose phi is smooth only as long as no row enters or leaves the active ones,
    steps are shortened until none does.

    Raises
    ------
    ArgumentError
        For the squared hinge, if every step down to 1e-6 changes an active row.
    """
    objective = Objective(risks, metric)
    gradient = objective.evaluate(weights).gradient
    exact, longest = float(gradient @ direction), _LONGEST
    if risks.loss.name == "squared_hinge":
        solver, side = Scalarization(risks, tolerance=1e-13), 2.0 * risks.y - 1.0

        def active(t: float) -> NDArray[np.bool_]:
            return np.less(side * solver.solve(weights + t * direction).point.scores, 1.0)

        while any((active(2 * k * longest) != active(0.0)).any() for k in (-1, 1)):
            longest /= 2
            if longest < _SHORTEST:
                raise ArgumentError("weights", "every step changes an active row", "take others")
    found = [(slope_by_differences(risks, metric, weights, direction, h), h) for h in (longest, longest / 8)]
    numeric, step = min(found, key=lambda pair: abs(pair[0] - exact))
    scale = max(abs(exact), 1e-3 * float(np.ptp(gradient)))
    return Agreement(exact, numeric, scale, step, objective.adjoint_solves, objective.lower_solves)


def slope_of_model(model: ScalarizedModel, metric: BoundMetric, *, drop_intercept: bool = False) -> Array:
    """Return the hypergradient at a solution, shape (S,): -grad F_a'v with the whole Hessian H v = grad M."""
    slope = _metric_slope(model, metric, drop_intercept)
    return -(model.point.gradients @ model.solve_hessian(slope))


def without_intercept(model: ScalarizedModel, metric: BoundMetric, *, drop_intercept: bool = False) -> Array:
    """Return what comes out when the model has an intercept (column 0) and the adjoint leaves it out, shape (S,).

    Row and column 0 are struck from the Hessian, from the metric's gradient and from the group gradients.
    """
    slope = _metric_slope(model, metric, drop_intercept)[1:]
    hessian = model.point.hessian(model.weights)[1:, 1:]
    return np.asarray(-(model.point.gradients[:, 1:] @ np.linalg.solve(hessian, slope)), dtype=np.float64)


def _scores(model: ScalarizedModel, drop_intercept: bool) -> Array:
    return model.point.scores - model.w[0] if drop_intercept else model.point.scores


def _metric_slope(model: ScalarizedModel, metric: BoundMetric, drop_intercept: bool) -> Array:
    """Return the gradient of the metric in the coefficients, with 0 for an intercept that it does not see."""
    slope = model.point.score_gradient(metric.value_and_derivative(_scores(model, drop_intercept))[1])
    if drop_intercept:
        slope[0] = 0.0
    return slope
