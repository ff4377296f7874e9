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
from scipy.linalg import cho_solve
from scipy.optimize import OptimizeResult, minimize, nnls

from fairfront.errors import ArgumentError
from fairfront.pareto.scalarization import Scalarization, ScalarizedModel
from fairfront.risks import Array, GroupRisks, RiskPoint

__all__ = ["Certificate", "certify", "certify_losses", "first_order_multipliers"]


_ROUNDING = 1e-13


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
    point = risks.at(w)
    if not np.isfinite(point.w).all():
        raise ArgumentError("w", "holds NaN or infinite values")
    mu, _ = first_order_multipliers(point)
    return certify_losses(risks, point.losses, start=point.w, weights=mu, cap=cap)


def certify_losses(
    risks: GroupRisks,
    losses: ArrayLike,
    *,
    start: Array | None = None,
    weights: ArrayLike | None = None,
    cap: float = 1e8,
) -> Certificate:
    """Return the Pareto certificate of a model of any make, of which only the group losses are known.

    Parameters
    ----------
    risks : GroupRisks
        The group risks of the family that might dominate; strictly convex.
    losses : array of shape (S,)
        The model's loss in each group.  For a model outside the family a slack of 0 says that no member of it is at
        least as good in every group and better in one; there may be no member that is as good.
    start : array of shape (d,), optional
        Coefficients from which the first solution is sought.
    weights : array of shape (S,), optional
        Weights for which the model may be optimal: the multipliers are sought from there, if that is better than from
        ones.
    cap : float, default 1e8
        Largest multiplier.

    Raises
    ------
    ArgumentError
        When ``cap`` is below 1, or the losses have another shape or are not finite.
    """
    if not cap >= 1:
        raise ArgumentError("cap", f"must be at least 1, got {cap}")
    given = np.asarray(losses, dtype=np.float64)
    if given.shape != (risks.n_groups,) or not np.isfinite(given).all():
        raise ArgumentError("losses", f"must be {risks.n_groups} finite numbers, one a group, got {given}")
    solver = Scalarization(risks, start=start)

    def bound(lam: Array) -> tuple[float, Array]:
        total = lam.sum()
        gap = given - solver.solve(lam / total).losses
        return float(lam @ gap), gap

    def in_logarithms(theta: Array) -> tuple[float, Array]:
        lam = np.exp(theta)
        value, gap = bound(lam)
        return value, lam * gap

    # The bound is convex in lambda, so any stationary point is global; logarithms level the scales 1 .. cap.
    starts = [np.ones(risks.n_groups)]
    if weights is not None:
        mu = np.asarray(weights, dtype=np.float64)
        starts.append(np.minimum(mu / max(mu.min(), 1.0 / cap), cap).clip(min=1.0))
    best = min(starts, key=lambda lam: bound(lam)[0])
    if (value := bound(best)[0]) <= _ROUNDING:  # efficient to rounding: nothing is left to improve
        return Certificate(given, max(value, 0.0), best, None)

    def enough(intermediate_result: OptimizeResult) -> None:
        # A bound of 0 is a proof already, and where no member is as good there is no least one.
        if intermediate_result.fun <= 0.0:
            raise StopIteration

    found = minimize(
        in_logarithms,
        np.log(best),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, float(np.log(cap)))] * risks.n_groups,
        callback=enough,
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 200},
    )
    if found.fun <= 0.0:
        return Certificate(given, 0.0, np.exp(found.x), None)
    found_multipliers = _polish(solver, given, np.exp(found.x), cap)
    multipliers = min((best, np.exp(found.x), found_multipliers), key=lambda lam: bound(lam)[0])
    slack = max(bound(multipliers)[0], 0.0)
    return Certificate(given, slack, multipliers, _dominating(solver, given, multipliers, cap))


def _polish(solver: Scalarization, losses: Array, multipliers: Array, cap: float, gain: float = 0.0) -> Array:
    """Return multipliers at which the groups with lambda_a > 1 are improved by ``gain``, by Newton's method.

    At the optimum of the bound that improvement is 0.  Its derivative in lambda is G H^-1 G', H the Hessian of the
    weighted sum.
    """
    lam = multipliers.clip(1.0, cap)
    active = np.flatnonzero(lam > 1.0 + 1e-9)
    for _ in range(4 if len(active) else 0):
        total = lam.sum()
        model = solver.solve(lam / total)
        missing = gain - (losses - model.losses)[active]
        G = model.point.gradients[active]
        curvature = G @ cho_solve(model.factor, G.T) / total
        step = np.linalg.lstsq(curvature, missing, rcond=1e-12)[0]
        lam[active] = np.clip(lam[active] + step.clip(-0.5 * lam[active], lam[active]), 1.0, cap)
    return lam


def _dominating(
    solver: Scalarization, losses: Array, multipliers: Array, cap: float, tries: int = 8
) -> ScalarizedModel | None:
    """Return a scalarised model that is seen to dominate, near the multipliers of the bound.

    At the optimum the groups with a multiplier above 1 are improved by 0, to rounding; where rounding falls on the
    wrong side, asking for a tiny gain of those groups mends it.
    """
    for k in range(tries):
        gain = 0.0 if k == 0 else 1e-16 * 10.0**k
        lam = multipliers if k == 0 else _polish(solver, losses, multipliers, cap, gain)
        model = solver.solve(lam / lam.sum())
        if (model.losses <= losses).all():
            return model if float((losses - model.losses).sum()) > 0 else None
    return None
