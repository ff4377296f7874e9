"""Two-loop solvers of the bilevel problem (Equation 8): the lower level is solved at every step of the upper one.

phi is smooth and in general has several local minima.  `slsqp`, `trust_constr` and `frank_wolfe` find one of them
(section 4.4.1 of the first paper), `multi_start` looks for several, and `exhaustive_search` finds all of them for two
groups, down to a resolution.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint, brentq, minimize

from fairfront.bilevel.objective import Objective
from fairfront.bilevel.simplex import project
from fairfront.bilevel.solution import BilevelSolution, History
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import (
    balanced_weights,
    erm_weights,
    minimax,
    simplex_weights,
    two_group_weights,
    uniform_weights,
)
from fairfront.risks import Array, GroupRisks

__all__ = [
    "BilevelSolution",
    "exhaustive_search",
    "frank_wolfe",
    "multi_start",
    "slsqp",
    "standard_starts",
    "trust_constr",
]

# Of the solves on the way: values are right to the square of the first. What is returned is solved on to 1e-11.
_SEARCH = {"tolerance": 1e-7, "adjoint_tolerance": 1e-5}
# SLSQP and trust-constr keep dense matrices over the groups, and their work grows as S^3.
_MOST_GROUPS = 1000


def slsqp(
    risks: GroupRisks,
    metric: BoundMetric,
    *,
    start: ArrayLike | None = None,
    ftol: float = 1e-10,
    max_iterations: int = 500,
) -> BilevelSolution:
    """Return a local minimum of phi by sequential quadratic programming (the default method).

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    metric : BoundMetric
        The unfairness metric, bound to the stored rows.
    start : array of shape (S,), optional
        Weights to start from, in the simplex; default uniform.
    ftol : float, default 1e-10
        Change of phi at which the solver stops; the paper states 1e-5, the authors' package uses 1e-10.
    max_iterations : int, default 500
        At most so many steps.

    Raises
    ------
    ArgumentError
        For weights off the simplex, a tolerance that is not positive, or more than 1000 groups.
    ConvergenceError
        When a lower-level problem has no solution.
    """
    _check(risks, "ftol", ftol, max_iterations)
    return _by_scipy(risks, metric, start, "slsqp", method="SLSQP", options={"ftol": ftol, "maxiter": max_iterations})


def trust_constr(
    risks: GroupRisks,
    metric: BoundMetric,
    *,
    start: ArrayLike | None = None,
    gtol: float = 1e-5,
    barrier: float = 1e-6,
    max_iterations: int = 500,
) -> BilevelSolution:
    """Return a local minimum of phi by the trust-region interior-point method of SciPy.

    Parameters and errors are those of `slsqp`, but for

    Parameters
    ----------
    gtol : float, default 1e-5
        Norm of the Lagrangian's gradient at which the solver stops (the paper's value).
    barrier : float, default 1e-6
        Barrier parameter, and tolerance of its subproblem, to begin with.  SciPy's own is 0.1; as it tests ``gtol``
        without a look at the barrier, it then stops in mid-air.
    """
    _check(risks, "gtol", gtol, max_iterations)
    if not (np.isfinite(barrier) and barrier > 0):
        raise ArgumentError("barrier", f"must be a positive number, got {barrier}")
    begin = {"initial_barrier_parameter": barrier, "initial_barrier_tolerance": barrier}
    options = {"gtol": gtol, "xtol": 1e-12, "maxiter": max_iterations, **begin}
    with warnings.catch_warnings():
        # A step of length 0, at which SciPy keeps its Hessian as it was, is no news to the caller.
        warnings.filterwarnings("ignore", message="delta_grad == 0.0", category=UserWarning)
        return _by_scipy(risks, metric, start, "trust-constr", method="trust-constr", options=options)


def frank_wolfe(
    risks: GroupRisks,
    metric: BoundMetric,
    *,
    start: ArrayLike | None = None,
    gap: float = 1e-6,
    max_iterations: int = 500,
) -> BilevelSolution:
    """Return a stationary point of phi by the Frank-Wolfe method with steps 2/(t + 2), t = 0, 1, ... (section 4.4.1).

    The first step goes all the way to a vertex, wherever the method starts.  The best iterate is returned, which need
    not be the last: the steps do not depend on phi.

    Parameters and errors are those of `slsqp`, but for

    Parameters
    ----------
    gap : float, default 1e-6
        Frank-Wolfe gap max_a grad phi'(lambda - e_a) at which the method stops (the paper's value).
    max_iterations : int, default 500
        At most so many steps (the paper's value).
    """
    _check(risks, "gap", gap, max_iterations, most_groups=None)
    history = History(risks)
    objective = history.watch(Objective(risks, metric, **_SEARCH))
    lam = _start(risks, start)
    for t in range(max_iterations + 1):
        history.add(objective.value(lam), lam)
        evaluation = objective.evaluate(lam)
        vertex = int(np.argmin(evaluation.gradient))
        found = float(evaluation.gradient @ lam - evaluation.gradient[vertex])
        if found <= gap or t == max_iterations:
            break
        size = 2.0 / (t + 2.0)
        lam = (1.0 - size) * lam
        lam[vertex] += size
    message = f"Frank-Wolfe gap {found:.1e} at the last iterate, {gap:.1e} asked"
    status = "converged" if found <= gap else "iteration limit"
    return _solution(objective, history, "frank-wolfe", status, message)


def standard_starts(risks: GroupRisks) -> dict[str, Array]:
    """Return the weights from which `multi_start` starts: vertices, barycentre, ERM, balanced, minimax."""
    starts = {f"vertex {a}": vertex for a, vertex in enumerate(np.eye(risks.n_groups))}
    return starts | {
        "barycentre": uniform_weights(risks.n_groups),
        "erm": erm_weights(risks.group_sizes),
        "balanced": balanced_weights(risks.group_sizes),
        "minimax": minimax(risks).model.weights,
    }


def multi_start(
    risks: GroupRisks,
    metric: BoundMetric,
    *,
    solver: Callable[..., BilevelSolution] = slsqp,
    starts: Iterable[ArrayLike] | None = None,
    distance: float = 1e-4,
    **options: float,
) -> BilevelSolution:
    """Return the best of the local minima that a solver reaches from several starts, and how many it met.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    metric : BoundMetric
        The unfairness metric, bound to the stored rows.
    solver : callable, default `slsqp`
        A local solver of this module.
    starts : iterable of arrays of shape (S,), optional
        Weights to start from; default `standard_starts`.
    distance : float, default 1e-4
        Two solutions are one minimum when no group's risk differs by more: different weights may give the same model.
    **options
        Further arguments of the solver.

    Returns
    -------
    BilevelSolution
        ``local_minima`` holds each different one; counts are those of all runs; the history is the best run's.
    """
    clock = History(risks)
    found = [
        solver(risks, metric, start=start, **options)
        for start in (standard_starts(risks).values() if starts is None else starts)
    ]
    if not found:
        raise ArgumentError("starts", "must hold at least one weight vector")
    found.sort(key=lambda solution: solution.value)
    minima: list[BilevelSolution] = []
    for solution in found:
        losses = solution.model.losses
        if all(np.abs(losses - other.model.losses).max() > distance for other in minima):
            minima.append(solution)
    best = found[0]
    return BilevelSolution(
        model=best.model,
        value=best.value,
        local_minima=np.array([solution.weights for solution in minima]),
        minimum_values=np.array([solution.value for solution in minima]),
        lower_solves=sum(solution.lower_solves for solution in found),
        message=f"{len(minima)} distinct minima from {len(found)} starts; the best: {best.message}",
        solver=f"multi-start {best.solver}",
        status=best.status,
        adjoint_solves=sum(solution.adjoint_solves for solution in found),
        seconds=clock.elapsed,
        history=best.history,
    )


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
    history = History(risks)
    objective = history.watch(Objective(risks, metric))

    def slope(first: float) -> float:
        lam = np.array([first, 1.0 - first])
        evaluation = objective.evaluate(lam)
        history.add(evaluation.value, lam)
        return float(evaluation.gradient[0] - evaluation.gradient[1])

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
    solved = [objective.settle(lam) for lam in weights]
    values = np.array([value for _, value in solved])
    ranking = np.argsort(values, kind="stable")
    return BilevelSolution(
        model=solved[ranking[0]][0],
        value=float(values[ranking[0]]),
        local_minima=weights[ranking],
        minimum_values=values[ranking],
        lower_solves=objective.lower_solves,
        message=f"every local minimum with a basin wider than {1 / (resolution - 1):.2g} in lambda_1",
        adjoint_solves=objective.adjoint_solves,
        seconds=history.elapsed,
        history=tuple(history.records),
    )


def _check(
    risks: GroupRisks, name: str, tolerance: float, max_iterations: int, most_groups: int | None = _MOST_GROUPS
) -> None:
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ArgumentError(name, f"must be a positive number, got {tolerance}")
    if max_iterations < 1:
        raise ArgumentError("max_iterations", f"must be at least 1, got {max_iterations}")
    if most_groups is not None and risks.n_groups > most_groups:
        raise ArgumentError(
            "risks",
            f"{risks.n_groups} groups; this solver's work grows as their cube and stops at {most_groups}",
            "merge small groups, or use frank_wolfe or badr_sgd",
        )


def _start(risks: GroupRisks, start: ArrayLike | None) -> Array:
    return uniform_weights(risks.n_groups) if start is None else simplex_weights(start, risks.n_groups, "start").copy()


def _by_scipy(
    risks: GroupRisks, metric: BoundMetric, start: ArrayLike | None, name: str, *, method: str, options: dict
) -> BilevelSolution:
    history = History(risks)
    objective = history.watch(Objective(risks, metric, **_SEARCH))
    n_groups = risks.n_groups

    # The solvers leave the simplex by rounding, and trust-constr by a little more on its way.
    def value(lam: Array) -> float:
        weights = project(lam)
        found = objective.value(weights)
        history.add(found, weights)
        return found

    begin = _start(risks, start)
    if n_groups == 1:
        value(begin)
        return _solution(objective, history, name, "converged", "one group: the simplex is a point")
    found = minimize(
        value,
        begin,
        jac=lambda lam: objective.evaluate(project(lam)).gradient,
        method=method,
        bounds=Bounds(np.zeros(n_groups), np.ones(n_groups)),
        constraints=LinearConstraint(np.ones((1, n_groups)), 1.0, 1.0)
        if method == "trust-constr"
        else {"type": "eq", "fun": lambda lam: lam.sum() - 1.0, "jac": lambda lam: np.ones(n_groups)},
        options=options,
    )
    status = "converged" if found.success else "iteration limit" if found.nit >= options["maxiter"] else "stalled"
    return _solution(objective, history, name, status, str(found.message))


def _solution(objective: Objective, history: History, solver: str, status: str, message: str) -> BilevelSolution:
    """Return the best iterate, solved on to the full tolerance."""
    best = min(history.records, key=lambda record: record.value)
    model, value = objective.settle(best.weights)
    return BilevelSolution(
        model=model,
        value=value,
        local_minima=best.weights[None],
        minimum_values=np.array([value]),
        lower_solves=objective.lower_solves,
        message=message,
        solver=solver,
        status=status,
        adjoint_solves=objective.adjoint_solves,
        seconds=history.elapsed,
        history=tuple(history.records),
    )
