"""Propositions 1 to 3 of the first paper: many groups, merely convex risks, risks that are not convex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from fairfront.pareto import Scalarization, certify, first_order_multipliers, minimax
from fairfront.risks import Array, GroupRisks, RiskPoint
from fairfront.theory.check import Check

__all__ = [
    "FlatProblem",
    "bump_front",
    "efficient_below",
    "hull_share",
    "minimax_efficient",
    "on_lower_hull",
    "sums_efficient",
    "sums_reach",
]


# --- strictly convex risks, any number of groups ---------------------------------------------------------------------


def sums_efficient(risks: GroupRisks, weights: Array, *, tolerance: float = 1e-6) -> Check:
    """Check Proposition 1 at rows of ``weights``, shape (k, S), zeros allowed: the largest certificate.

    The certificate is the dual bound of `fairfront.pareto.certify` or, where that is smaller, the same bound at 1 + K
    lambda with the inner minimum replaced by what strong convexity says of it: |sum_a grad F_a + K sum_a lambda_a grad
    F_a|^2 / (2 l2 (S + K)), for any K.  At weights with zeros the best bound is approached only as K grows without end.
    """
    solver = Scalarization(risks, tolerance=1e-12)
    worst = max(_slack(solver.solve(row).point, row) for row in weights)
    return Check.at_most("Proposition 1: weighted sums are efficient", worst, tolerance, len(weights))


def _slack(point: RiskPoint, weights: Array) -> float:
    risks, total, weighted = point.risks, point.gradients.sum(axis=0), weights @ point.gradients
    bounds = [
        float(((total + K * weighted) ** 2).sum()) / (2.0 * float(risks.penalty.min()) * (risks.n_groups + K))
        for K in np.geomspace(1e2, 1e16, 57)
    ]
    return min(certify(risks, point.w).slack, *bounds)


def efficient_below(risks: GroupRisks, levels: Array) -> Array:
    """Return min_w F_1(w) s.t. F_a(w) <= levels_a for a >= 2, shape (d,), by SLSQP: no weights are used."""
    found = minimize(
        lambda w: risks.at(w).losses[0],
        Scalarization(risks).solve(np.full(risks.n_groups, 1.0 / risks.n_groups)).w,
        jac=lambda w: risks.at(w).gradients[0],
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda w: (levels - risks.at(w).losses)[1:],
            "jac": lambda w: -risks.at(w).gradients[1:],
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x, dtype=np.float64)


def sums_reach(risks: GroupRisks, generator: np.random.Generator, *, cases: int = 3, tolerance: float = 1e-5) -> Check:
    """Check Proposition 2: efficient models found without weights are weighted sums at their own multipliers.

    Levels are the risks of random mixtures of the groups' own models, which are not efficient themselves.
    """
    solver, worst = Scalarization(risks), 0.0
    own = np.array([solver.solve(vertex).w for vertex in np.eye(risks.n_groups)])
    for mixture in generator.dirichlet(np.ones(risks.n_groups), size=cases):
        point = risks.at(efficient_below(risks, risks.at(mixture @ own).losses))
        multipliers, _ = first_order_multipliers(point)
        worst = max(worst, float(np.abs(solver.solve(multipliers).losses - point.losses).max()))
    return Check.at_most("Proposition 2: efficient models are weighted sums", worst, tolerance, cases)


def minimax_efficient(risks: GroupRisks, *, tolerance: float = 1e-6) -> Check:
    """Check Proposition 3 on the min-max model (6): its certificate."""
    slack = certify(risks, minimax(risks).model.w).slack
    return Check.at_most("Proposition 3: min-max models are efficient", slack, tolerance, 1)


# --- convex, not strictly --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FlatProblem:
    """Two convex risks with flat directions: F_a(w) = |B_a w - c_a|^2/2 + h_a, B_a of fewer rows than columns.

    Attributes
    ----------
    B : array of shape (2, r, d)
        r < d.
    c : array of shape (2, r)
        Targets.
    h : array of shape (2,)
        Heights.
    """

    B: Array
    c: Array
    h: Array

    @classmethod
    def random(cls, generator: np.random.Generator, *, rank: int = 2, features: int = 5) -> FlatProblem:
        """Return a random problem: the groups disagree along one direction, and group 1 can nowhere do better than 1.

        The min-max value is then 1, as long as group 2 can stay below 1 where group 1 is at its best.
        """
        while True:
            B = generator.normal(size=(2, rank, features))
            B[1, 0] = B[0, 0]
            problem = cls(B, 0.5 * generator.normal(size=(2, rank)), np.array([1.0, 0.0]))
            if problem.losses(problem.lexicographic())[1] < 1.0:
                return problem

    def lexicographic(self) -> Array:
        """Return the minimiser of F_2 among the minimisers of F_1: it is efficient."""
        return self._best_along(np.linalg.lstsq(self.B[0], self.c[0], rcond=None)[0])

    def _best_along(self, w: Array) -> Array:
        """Return the minimiser of F_2 over {u : B_1 u = B_1 w}."""
        flat = np.linalg.svd(self.B[0])[2][len(self.B[0]) :].T
        along = np.linalg.lstsq(self.B[1] @ flat, self.c[1] - self.B[1] @ w, rcond=None)[0]
        return np.asarray(w + flat @ along, dtype=np.float64)

    def losses(self, w: Array) -> Array:
        """Return F(w), shape (2,)."""
        residual = self.B @ w - self.c
        return np.asarray(0.5 * (residual**2).sum(axis=1) + self.h, dtype=np.float64)

    def minimiser(self, weights: Array, generator: np.random.Generator, *, spread: float = 1.0) -> Array:
        """Return a random minimiser of the weighted sum: the one of least norm plus a random flat direction."""
        rows = np.concatenate([np.sqrt(lam) * B for lam, B in zip(weights, self.B, strict=True)])
        targets = np.concatenate([np.sqrt(lam) * c for lam, c in zip(weights, self.c, strict=True)])
        least = np.linalg.lstsq(rows, targets, rcond=None)[0]
        _, singular, Vt = np.linalg.svd(rows)
        flat = Vt[int((singular > 1e-9 * singular[0]).sum()) :]
        return np.asarray(least + spread * flat.T @ generator.normal(size=len(flat)), dtype=np.float64)

    def improvement(self, w: Array) -> float:
        """Return what another model verifiably gains for group 2 at no loss for group 1."""
        before, after = self.losses(w), self.losses(self._best_along(w))
        return float(before[1] - after[1]) if after[0] <= before[0] + 1e-12 else 0.0

    def certificate(self, w: Array, weights: Array) -> float:
        """Return an upper bound of the total improvement over w, for weights that are all positive.

        A model that harms nobody gains at most (lambda'F(w) - min lambda'F)/min_a lambda_a in total.
        """
        least = self.minimiser(weights, np.random.default_rng(0), spread=0.0)
        return float(weights @ (self.losses(w) - self.losses(least))) / float(weights.min())

    def minimax_solution(self, generator: np.random.Generator) -> Array:
        """Return a random solution of min_w max_a F_a(w): any minimiser of F_1 with F_2 <= 1.

        A random step along group 1's flat directions is shortened until F_2 is at most 1.
        """
        start = self.lexicographic()
        step = self.minimiser(np.array([1.0, 0.0]), generator) - start
        while self.losses(start + step)[1] > 1.0:
            step = step / 2
        return np.asarray(start + step, dtype=np.float64)


# --- not convex ------------------------------------------------------------------------------------------------------


def bump_front(sharpness: float, points: int) -> Array:
    """Return the Pareto front of F_a(w) = 1 - exp(-s |w - c_a|^2) with |c_1 - c_2| = 1, shape (points, 2).

    Both risks increase with a distance, so that exactly the models on the segment from c_1 to c_2 are efficient.
    """
    t = np.linspace(0.0, 1.0, points)
    return np.column_stack([-np.expm1(-sharpness * t**2), -np.expm1(-sharpness * (1.0 - t) ** 2)])


def on_lower_hull(front: Array) -> np.ndarray:
    """Return which points of a front, in order of F_1, minimise some weighted sum: those on its lower convex hull."""
    kept: list[int] = []
    for i, point in enumerate(front):
        while len(kept) > 1:
            first, last = front[kept[-2]], front[kept[-1]]
            turn = (last[0] - first[0]) * (point[1] - first[1]) - (last[1] - first[1]) * (point[0] - first[0])
            if turn > 0:
                break
            kept.pop()
        kept.append(i)
    return np.isin(np.arange(len(front)), kept)


def hull_share(front: Array) -> float:
    """Return the share of a front's points that some weighted sum reaches."""
    return float(on_lower_hull(front).mean())
