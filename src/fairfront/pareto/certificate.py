"""Pareto certificates: is this model dominated, by how much at most, and by which model?

For any coefficients w the largest total improvement is ``max sum_a s_a`` over models u and s >= 0 with
``F_a(u) + s_a <= F_a(w)``.  It is 0 exactly when w is Pareto-efficient.  At efficient points that program has no Slater
point, and a conic solver fails or is inexact there; its dual

    min over lambda_a >= 1 of  sum_a lambda_a F_a(w) - min_u sum_a lambda_a F_a(u)

needs nothing but scalarised fits.  Every lambda gives an upper bound, so the value found certifies efficiency whatever
the outer solver did; a dominating model is a certificate of its own, accepted only after F(u) <= F(w) was checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize, nnls

from fairfront.errors import ArgumentError
from fairfront.pareto.scalarization import Scalarization, ScalarizedModel
from fairfront.risks import Array, GroupRisks, RiskPoint

__all__ = ["Certificate", "certify", "first_order_multipliers"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known about a model's Pareto efficiency.

    Attributes
    ----------
    losses : array of shape (S,)
        F(w) of the model that was asked about.
    slack : float
        Upper bound on the total improvement that any model of the family offers (the dual value, at least 0).  A slack
        below a tolerance proves the model efficient to that tolerance.
    multipliers : array of shape (S,)
        lambda_a >= 1 at which the bound was reached.
    dominating : ScalarizedModel or None
        A model with F_a(u) <= F_a(w) for every group and strictly less in total, checked in floating point; None where
        no such model was found.
    """

    losses: Array
    slack: float
    multipliers: Array
    dominating: ScalarizedModel | None

    @property
    def improvement(self) -> float:
        """Total improvement sum_a F_a(w) - F_a(u) of the dominating model, 0 where there is none: a lower bound."""
        return float((self.losses - self.dominating.losses).sum()) if self.dominating else 0.0

    def efficient(self, tolerance: float = 1e-6) -> bool:
        """Return whether the bound proves that no model improves the groups by more than ``tolerance`` in total."""
        return self.slack <= tolerance


def first_order_multipliers(point: RiskPoint) -> tuple[Array, float]:
    """Return the least-norm convex combination of the group gradients, and its norm.

    With convex risks a norm of 0 with all multipliers positive proves efficiency (first-order certificate).

    Parameters
    ----------
    point : RiskPoint
        The risks at the model.

    Returns
    -------
    multipliers : array of shape (S,)
        In the simplex.
    norm : float
        ``|sum_a mu_a grad F_a(w)|``.
    """
    G = point.gradients
    # min |G'mu| on the simplex as non-negative least squares with a heavy row for sum mu = 1, then normalised.
    heavy = 1e4 * max(1.0, float(np.abs(G).max()))
    system = np.vstack([G.T, np.full(len(G), heavy)])
    mu = nnls(system, np.r_[np.zeros(G.shape[1]), heavy])[0]
    mu /= mu.sum()
    return mu, float(np.linalg.norm(mu @ G))


def certify(risks: GroupRisks, w: ArrayLike, *, cap: float = 1e8) -> Certificate:
    """Return the Pareto certificate of the model with coefficients ``w``.

    Parameters
    ----------
    risks : GroupRisks
        The group risks; strictly convex (l2 > 0), so that scalarised fits are unique.
    w : array of shape (d,)
        Coefficients: of a scalarised model, of a penalised one, or of any other linear model.
    cap : float, default 1e8
        Largest multiplier.  At the vertices of the simplex the bound is approached as a multiplier grows.

    Raises
    ------
    ArgumentError
        When ``cap`` is below 1 or ``w`` is not finite.
    """
    if not cap >= 1:
        raise ArgumentError("cap", f"must be at least 1, got {cap}")
    point = risks.at(w)
    if not np.isfinite(point.w).all():
        raise ArgumentError("w", "holds NaN or infinite values")
    losses = point.losses
    solver = Scalarization(risks, start=point.w)

    def bound(lam: Array) -> tuple[float, Array]:
        total = lam.sum()
        gap = losses - solver.solve(lam / total).losses
        return float(lam @ gap), gap

    def in_logarithms(theta: Array) -> tuple[float, Array]:
        lam = np.exp(theta)
        value, gap = bound(lam)
        return value, lam * gap

    # The bound is convex in lambda, so any stationary point is global; logarithms level the scales 1 .. cap.
    mu, _ = first_order_multipliers(point)
    starts = [np.ones(risks.n_groups), np.minimum(mu / max(mu.min(), 1.0 / cap), cap).clip(min=1.0)]
    best = min(starts, key=lambda lam: bound(lam)[0])
    found = minimize(
        in_logarithms,
        np.log(best),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, float(np.log(cap)))] * risks.n_groups,
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 200},
    )
    multipliers = min((best, np.exp(found.x)), key=lambda lam: bound(lam)[0])
    slack = max(bound(multipliers)[0], 0.0)
    return Certificate(losses, slack, multipliers, _dominating(solver, losses, multipliers))


def _dominating(solver: Scalarization, losses: Array, multipliers: Array, tries: int = 10) -> ScalarizedModel | None:
    """Return a scalarised model that is seen to dominate, near the multipliers of the bound.

    At the optimum the groups with a multiplier above 1 are improved by 0, to rounding; where rounding falls on the
    wrong side, a little more weight on those groups mends it.
    """
    lam = multipliers.copy()
    for k in range(tries):
        model = solver.solve(lam / lam.sum())
        worse = model.losses > losses
        if not worse.any():
            return model if float((losses - model.losses).sum()) > 0 else None
        lam = np.where(worse, lam * (1.0 + 1e-9 * 10.0**k), lam)
    return None
