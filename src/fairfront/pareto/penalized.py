"""Fairness by regularisation: min_w lambda'F(w) + nu M(Xw), the path that leaves the Pareto front (Figure 1).

The paper's Equation 4 prints 1/nu in front of the metric; its text and figure take nu as the penalty's weight, from
1e-6 to 10^-0.5, and so does this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto.scalarization import ConvergenceError, Scalarization, simplex_weights
from fairfront.risks import Array, GroupRisks, RiskPoint

__all__ = ["PenalizedModel", "regularization_path"]


@dataclass(frozen=True, eq=False)
class PenalizedModel:
    """A minimiser of a fairness-regularised risk.

    Attributes
    ----------
    penalty : float
        nu.
    point : RiskPoint
        The risks at the minimiser.
    """

    penalty: float
    point: RiskPoint

    @property
    def losses(self) -> Array:
        """Group risks, shape (S,)."""
        return self.point.losses


def regularization_path(
    risks: GroupRisks, metric: BoundMetric, penalties: Iterable[float], weights: ArrayLike
) -> tuple[PenalizedModel, ...]:
    """Return a minimiser of ``sum_a lambda_a F_a(w) + nu M(Xw)`` for every penalty nu, each started from the last.

    A metric that is a quadratic form of the coefficients keeps the problem convex and is solved by Newton; any other is
    in general not convex and is followed by BFGS, as a local minimiser.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    metric : BoundMetric
        The unfairness metric, bound to the stored rows' labels and groups.
    penalties : iterable of float
        nu >= 0, in the order in which the path is followed.
    weights : array of shape (S,)
        lambda in the simplex: uniform in Figure 1.

    Raises
    ------
    ArgumentError
        For a negative or non-finite penalty.
    ConvergenceError
        When BFGS leaves a gradient above 1e-6.
    """
    lam = simplex_weights(weights, risks.n_groups)
    values = [float(nu) for nu in penalties]
    if any(not np.isfinite(nu) or nu < 0 for nu in values):
        raise ArgumentError("penalties", "must be finite numbers >= 0")
    solver = Scalarization(risks)
    start = solver.solve(lam).point
    Q = metric.quadratic(risks.Xt.T)
    if Q is not None:
        return tuple(PenalizedModel(nu, solver.solve(lam, quadratic=nu * Q).point) for nu in values)

    path = []
    for nu in values:

        def objective(w: Array, nu: float = nu) -> tuple[float, Array]:
            point = risks.at(w)
            fairness, derivative = metric.value_and_derivative(point.scores)
            value = float(lam @ point.losses) + nu * fairness
            return value, lam @ point.gradients + nu * point.score_gradient(derivative)

        found = minimize(objective, start.w, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
        norm = float(np.abs(found.jac).max())
        if norm > 1e-6:
            raise ConvergenceError(f"penalties: BFGS left a gradient of {norm:.1e} at nu = {nu:g}")
        start = risks.at(found.x)
        path.append(PenalizedModel(nu, start))
    return tuple(path)
