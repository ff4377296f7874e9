"""The strategies that the first paper compares with badr (section 5.1.3), and the weights behind each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve
from scipy.optimize import brentq, minimize

from fairfront.errors import unknown_name
from fairfront.pareto.scalarization import ConvergenceError, Scalarization, ScalarizedModel
from fairfront.risks import Array, GroupRisks

__all__ = ["Strategy", "balanced_weights", "erm_weights", "minimax", "one_group", "scalarized", "uniform_weights"]


@dataclass(frozen=True, eq=False)
class Strategy:
    """A model chosen by a strategy.

    Attributes
    ----------
    name : str
        Name of the strategy, as in the plots.
    model : ScalarizedModel
        Its weights and the model that they give.
    """

    name: str
    model: ScalarizedModel


def uniform_weights(n_groups: int) -> Array:
    """Return lambda_a = 1/S, shape (S,)."""
    return np.full(n_groups, 1.0 / n_groups)


def erm_weights(group_sizes: ArrayLike) -> Array:
    """Return lambda_a = n_a/n, shape (S,): empirical risk minimisation, Equation 1."""
    sizes = np.asarray(group_sizes, dtype=np.float64)
    return sizes / sizes.sum()


def balanced_weights(group_sizes: ArrayLike, form: Literal["inverse", "complement"] = "inverse") -> Array:
    """Return the balanced weights, shape (S,).

    Parameters
    ----------
    group_sizes : array of shape (S,)
        n_a.
    form : {"inverse", "complement"}, default "inverse"
        "inverse": proportional to 1/n_a (the paper's text and figures); "complement": (n - n_a)/((S - 1) n) (the
        authors' Table 2 script).  For two groups both are the same.
    """
    sizes = np.asarray(group_sizes, dtype=np.float64)
    if form == "inverse":
        return (1.0 / sizes) / (1.0 / sizes).sum()
    if form == "complement":
        total = sizes.sum()
        return (total - sizes) / ((len(sizes) - 1) * total) if len(sizes) > 1 else np.ones(1)
    raise unknown_name("form", form, ("inverse", "complement"))


def scalarized(risks: GroupRisks, name: str, weights: ArrayLike) -> Strategy:
    """Return the strategy ``name`` that minimises the risks weighted by ``weights``."""
    return Strategy(name, Scalarization(risks).solve(weights))


def one_group(risks: GroupRisks, unfairness: Callable[[Array], float]) -> Strategy:
    """Return the fairest of the S models that are each fitted to one group.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    unfairness : callable
        The metric as a function of the scores of the stored rows, shape (n,).
    """
    solver = Scalarization(risks)
    models = [solver.solve(vertex) for vertex in np.eye(risks.n_groups)]
    return Strategy("one-group", min(models, key=lambda model: unfairness(model.point.scores)))


def minimax(risks: GroupRisks) -> Strategy:
    """Return the minimax model, min_w max_a F_a(w) (Equation 6), with its multipliers as weights.

    The Lagrangian dual max over the simplex of g(lambda) = min_w lambda'F(w) is concave with gradient F(w*(lambda)) and
    Hessian -G H^-1 G'.  For two groups the root of F_1 - F_2 is bracketed; otherwise SLSQP finds the active groups and
    Newton equalises their risks.

    Raises
    ------
    ConvergenceError
        When the largest risk exceeds the dual value by more than 1e-8 (of itself, where it is above 1).
    """
    solver = Scalarization(risks)
    lam = _minimax_pair(solver) if risks.n_groups == 2 else _minimax_many(solver)
    model = solver.solve(lam)
    gap = float(model.losses.max() - lam @ model.losses)
    if gap > 1e-8 * max(1.0, float(model.losses.max())):
        raise ConvergenceError(f"minimax: duality gap {gap:.1e} above 1e-8 of the largest risk")
    return Strategy("minimax", model)


def _minimax_pair(solver: Scalarization) -> Array:
    def excess(first: float) -> float:
        losses = solver.solve([first, 1.0 - first]).losses
        return float(losses[0] - losses[1])

    if excess(0.0) <= 0.0:  # group 2 is the worse one even when all weight is on it
        return np.array([0.0, 1.0])
    if excess(1.0) >= 0.0:
        return np.array([1.0, 0.0])
    first = float(brentq(excess, 0.0, 1.0, xtol=1e-15, rtol=1e-15))
    return np.array([first, 1.0 - first])


def _minimax_many(solver: Scalarization) -> Array:
    n_groups = solver.risks.n_groups

    def negative_dual(lam: Array) -> tuple[float, Array]:
        projected = np.maximum(lam, 0.0) / np.maximum(lam, 0.0).sum()
        losses = solver.solve(projected).losses
        return -float(lam @ losses), -losses

    found = minimize(
        negative_dual,
        uniform_weights(n_groups),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_groups,
        constraints={"type": "eq", "fun": lambda lam: lam.sum() - 1.0, "jac": lambda lam: np.ones(n_groups)},
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    lam = np.where(found > 1e-7, found, 0.0)
    return _equalise(solver, lam / lam.sum())


def _equalise(solver: Scalarization, lam: Array, steps: int = 30) -> Array:
    """Return weights, on the support of ``lam``, at which the active groups' risks are equal (Newton on the dual)."""
    for _ in range(steps):
        active = np.flatnonzero(lam > 0)
        model = solver.solve(lam)
        losses = model.losses[active]
        if len(active) == 1 or np.ptp(losses) <= 1e-13 * max(1.0, float(losses.max())):
            break
        G = model.point.gradients[active]
        curvature = G @ cho_solve(model.factor, G.T)
        k = len(active)
        # Newton step of max lambda'F(w*(lambda)), sum lambda = 1; the curvature may be singular, so least squares.
        system = np.block([[curvature, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
        step = np.linalg.lstsq(system, np.r_[losses, 0.0], rcond=None)[0][:k]
        shrinking = step < 0
        limit = min(1.0, float(np.min(lam[active][shrinking] / -step[shrinking], initial=np.inf)))
        trial = lam.copy()
        trial[active] = np.maximum(lam[active] + limit * step, 0.0)
        trial /= trial.sum()
        there = solver.solve(trial).losses
        # Near the maximum the dual value is flat to rounding, and how far the active risks differ says more.
        if float(trial @ there) < float(lam @ model.losses) and np.ptp(there[trial > 0]) >= np.ptp(losses):
            break
        lam = trial
    return lam
