"""Two-loop solvers of the bilevel problem (Equation 8): the lower level is solved at every step of the upper one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fairfront.bilevel.objective import Objective
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import Scalarization, ScalarizedModel, two_group_weights
from fairfront.risks import Array, GroupRisks

__all__ = ["BilevelSolution", "exhaustive_search"]


@dataclass(frozen=True, eq=False)
class BilevelSolution:
    """A solution of the bilevel problem.

    Attributes
    ----------
    model : ScalarizedModel
        The best weights found and their model.
    value : float
        phi there.
    local_minima : array of shape (m, S)
        Weights of every distinct local minimum met, the best first.
    minimum_values : array of shape (m,)
        phi at each of them.
    lower_solves : int
        Number of lower-level problems solved.
    message : str
        What the solver guarantees about the solution.
    """

    model: ScalarizedModel
    value: float
    local_minima: Array
    minimum_values: Array
    lower_solves: int
    message: str


def exhaustive_search(risks: GroupRisks, metric: BoundMetric, *, resolution: int = 101) -> BilevelSolution:
    """Solve the bilevel problem of two groups by following the derivative of phi over [0, 1].

    phi is evaluated with its derivative at ``resolution`` equally spaced values of lambda_1; in every cell where the
    derivative changes from negative to positive its root is bracketed by Brent's method, and an end of the interval is
    a minimum where the derivative points out of it.  Every local minimum whose basin is wider than a cell is met.

    Parameters
    ----------
    risks : GroupRisks
        Two groups' risks.
    metric : BoundMetric
        The unfairness metric.
    resolution : int, default 101
        Grid points, at least 2.

    Raises
    ------
    ArgumentError
        For another number of groups, or fewer than two grid points.
    """
    if risks.n_groups != 2:
        raise ArgumentError("risks", f"the exhaustive search needs two groups, got {risks.n_groups}")
    objective = Objective(risks, metric)
    solves = 0

    def slope(first: float) -> float:
        nonlocal solves
        solves += 1
        gradient = objective.evaluate(np.array([first, 1.0 - first])).gradient
        return float(gradient[0] - gradient[1])

    grid = two_group_weights(resolution)[:, 0]
    slopes = np.array([slope(first) for first in grid])
    minima = [float(grid[0])] if slopes[0] >= 0 else []
    for left, right, low, high in zip(grid[:-1], grid[1:], slopes[:-1], slopes[1:], strict=True):
        if low < 0 < high:
            minima.append(float(brentq(slope, left, right, xtol=1e-13, rtol=1e-13)))
        elif high == 0 and low < 0:
            minima.append(float(right))
    if slopes[-1] < 0:
        minima.append(float(grid[-1]))
    weights = np.array([[first, 1.0 - first] for first in minima])
    # From a cold start, so that the value at given weights is the same number wherever it is computed.
    models = [Scalarization(risks).solve(lam) for lam in weights]
    values = np.array([metric.value(model.point.scores) for model in models])
    ranking = np.argsort(values, kind="stable")
    return BilevelSolution(
        model=models[ranking[0]],
        value=float(values[ranking[0]]),
        local_minima=weights[ranking],
        minimum_values=values[ranking],
        lower_solves=solves + len(minima),
        message=f"every local minimum with a basin wider than {1 / (resolution - 1):.2g} in lambda_1",
    )
