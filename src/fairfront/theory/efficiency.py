"""Propositions 1 to 3 of the first paper, as certificates.

True: with strictly convex risks every weighted sum over the closed simplex and every min-max solution is efficient.  As
printed, for merely convex risks, Proposition 3 is false and Proposition 1 fails on the simplex's boundary; the
counterexample is here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from fairfront.pareto import Scalarization, certify, first_order_multipliers, minimax
from fairfront.risks import Array, GroupRisks
from fairfront.theory.check import Check

__all__ = [
    "Counterexample",
    "efficient_by_constraint",
    "proposition_1",
    "proposition_2",
    "proposition_3",
    "proposition_3_counterexample",
]


def proposition_1(slacks: Sequence[float], *, tolerance: float = 1e-6) -> Check:
    """Check that scalarised models are efficient: no certificate's slack exceeds ``tolerance``.

    Parameters
    ----------
    slacks : sequence of float
        :attr:`~fairfront.pareto.Certificate.slack` of every model of a front.
    tolerance : float, default 1e-6
        Largest total improvement that still counts as none.
    """
    return Check.at_most("Proposition 1: weighted sums are efficient", max(slacks), tolerance, len(slacks))


def efficient_by_constraint(risks: GroupRisks, level: float) -> Array:
    """Return min_w F_1(w) s.t. F_2(w) <= level, shape (d,): an efficient model that no weights were used to find.

    This is the epsilon-constraint method, solved by SLSQP.

    Parameters
    ----------
    risks : GroupRisks
        Two groups' strictly convex risks.
    level : float
        Between the least F_2 of all models and F_2 of group 1's own model.
    """
    found = minimize(
        lambda w: risks.at(w).losses[0],
        Scalarization(risks).solve([0.5, 0.5]).w,
        jac=lambda w: risks.at(w).gradients[0],
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda w: level - risks.at(w).losses[1],
            "jac": lambda w: -risks.at(w).gradients[1],
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x)


def proposition_2(
    risks: GroupRisks, generator: np.random.Generator, *, cases: int = 5, tolerance: float = 1e-5
) -> Check:
    """Check the converse on efficient models found without weights.

    For random levels the epsilon-constraint method gives an efficient model; its multipliers then name the weights, and
    the scalarised model at those weights must have the same risks.

    Parameters
    ----------
    risks : GroupRisks
        Two groups' strictly convex risks.
    generator : numpy.random.Generator
        Source of the levels.
    cases : int, default 5
        Number of levels.
    tolerance : float, default 1e-5
        Largest difference of a group's risk; SLSQP's own accuracy sets it.
    """
    solver = Scalarization(risks)
    most, least = (float(solver.solve(vertex).losses[1]) for vertex in np.eye(2))
    worst = 0.0
    for share in generator.uniform(0.05, 0.95, size=cases):
        point = risks.at(efficient_by_constraint(risks, least + share * (most - least)))
        multipliers, _ = first_order_multipliers(point)
        worst = max(worst, float(np.abs(solver.solve(multipliers).losses - point.losses).max()))
    return Check.at_most("Proposition 2: efficient models are weighted sums", worst, tolerance, cases)


def proposition_3(
    risks: GroupRisks, intervals: Sequence[tuple[float, float]] = ((0.25, 0.75),), *, tolerance: float = 1e-6
) -> Check:
    """Check that the solutions of (6) and, for two groups, of its robust extension (7) are efficient.

    Parameters
    ----------
    risks : GroupRisks
        Strictly convex risks; two groups where ``intervals`` are given.
    intervals : sequence of (float, float)
        Ambiguity sets of (7): the probability of group 1 lies in [low, high].  The inner minimum over models is concave
        in that probability, so the saddle point is the minimax weight, moved to the nearest end of the interval.
    tolerance : float, default 1e-6
        Largest certificate.
    """
    saddle = minimax(risks).model
    solver = Scalarization(risks)
    firsts = [min(max(float(saddle.weights[0]), low), high) for low, high in intervals]
    models = [saddle, *(solver.solve([first, 1.0 - first]) for first in firsts)]
    worst = max(certify(risks, model.w).slack for model in models)
    return Check.at_most("Proposition 3: min-max models are efficient", worst, tolerance, len(models))


@dataclass(frozen=True)
class Counterexample:
    """Convex risks F_1 = |w_1| + 1, F_2 = |w_2| for which Propositions 1 and 3 as printed fail.

    Attributes
    ----------
    candidate : array of shape (2,)
        w = (0, 1/2).
    losses : array of shape (2,)
        F(w).
    minimax_gap : float
        max_a F_a(w) minus the minimax value: 0 when w solves (6).
    boundary_gap : float
        F_1(w) minus min F_1: 0 when w minimises the weighted sum at lambda = (1, 0).
    improvement : float
        Largest total improvement over w: positive when w is dominated.
    dominating : array of shape (2,)
        The model that dominates it.
    """

    candidate: Array
    losses: Array
    minimax_gap: float
    boundary_gap: float
    improvement: float
    dominating: Array

    @property
    def refutes(self) -> bool:
        """Whether w solves (6) and the weighted sum at (1, 0), and is dominated all the same."""
        return self.minimax_gap <= 1e-6 and self.boundary_gap <= 1e-6 and self.improvement > 1e-3


def proposition_3_counterexample() -> Counterexample:
    """Return the counterexample to Proposition 3 as printed, each of its claims solved by cvxpy with Clarabel."""
    import cvxpy as cp  # only here: importing it takes a second

    def risks(w: cp.Variable) -> tuple[cp.Expression, cp.Expression]:
        return cp.abs(w[0]) + 1.0, cp.abs(w[1])

    candidate = np.array([0.0, 0.5])
    losses = np.array([abs(candidate[0]) + 1.0, abs(candidate[1])])

    w = cp.Variable(2)
    first, second = risks(w)
    minimax_value = cp.Problem(cp.Minimize(cp.maximum(first, second))).solve(solver=cp.CLARABEL)
    boundary_value = cp.Problem(cp.Minimize(first)).solve(solver=cp.CLARABEL)
    slack = cp.Variable(2, nonneg=True)
    domination = cp.Problem(cp.Maximize(cp.sum(slack)), [first + slack[0] <= losses[0], second + slack[1] <= losses[1]])
    improvement = domination.solve(solver=cp.CLARABEL)
    return Counterexample(
        candidate=candidate,
        losses=losses,
        minimax_gap=float(losses.max() - minimax_value),
        boundary_gap=float(losses[0] - boundary_value),
        improvement=float(improvement),
        dominating=np.asarray(w.value),
    )
