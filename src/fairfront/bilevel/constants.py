"""Every constant of Theorem 4, and what can be derived of Theorem 7's, from bounds on a problem.

Names follow the paper: mu, L strong convexity and smoothness of the lower level in w; M_C bound of |J(w*(lambda))| with
J(w) = [grad F_a(w)]; L_wl Lipschitz constant of J; L_ww that of the weighted Hessian, jointly in w and lambda; L_U0 and
L_U1 Lipschitz constants of the metric and of its gradient in w.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log, sqrt

import numpy as np

from fairfront.errors import ArgumentError
from fairfront.risks import GroupRisks

__all__ = ["NOT_PRINTED", "ProblemBounds", "StochasticConstants", "Theorem4Constants", "lower_level_bounds"]

#: Constants of Theorem 7 that the text at hand names without a definition; nothing here pretends to know them.
NOT_PRINTED = ("S", "M", "r", "C_gamma", "alpha~", "beta~", "delta~", "L_{v,*}")


@dataclass(frozen=True, kw_only=True)
class ProblemBounds:
    """Bounds on a bilevel problem (Assumptions 1 and 2) and errors of the start.

    Attributes
    ----------
    mu, L, M_C, L_wl, L_ww, L_U0, L_U1 : float
        See the module.
    eps_w0, eps_v0 : float, default 0.0
        ``|w_0 - w*(lambda_0)|`` and ``|v_0 - v*(lambda_0)|``.

    Raises
    ------
    ArgumentError
        For a bound that is negative or not finite, mu = 0, or L < mu.
    """

    mu: float
    L: float
    M_C: float
    L_wl: float
    L_ww: float
    L_U0: float
    L_U1: float
    eps_w0: float = 0.0
    eps_v0: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and value >= 0):
                raise ArgumentError(field.name, f"must be a finite number >= 0, got {value}")
        if self.mu == 0:
            raise ArgumentError("mu", "must be positive: the theorems need strong convexity", "penalise the intercept")
        if self.mu > self.L:
            raise ArgumentError("L", f"must be at least mu = {self.mu:g}, got {self.L:g}")


@dataclass(frozen=True)
class Theorem4Constants:
    """The constants of Theorem 4 (appendices B.1 and D.1), with tau = rho = 1/L.

    Parameters
    ----------
    bounds : ProblemBounds
        Bounds on the problem.
    """

    bounds: ProblemBounds

    @property
    def tau(self) -> float:
        """Step of w, 1/L."""
        return 1.0 / self.bounds.L

    @property
    def rho(self) -> float:
        """Step of v, 1/L."""
        return 1.0 / self.bounds.L

    @property
    def kappa(self) -> float:
        """Condition number L/mu."""
        return self.bounds.L / self.bounds.mu

    @property
    def M_v(self) -> float:
        """Lipschitz constant of v*(w, lambda); its print is lost in the text at hand, this is derived."""
        b = self.bounds
        return b.L_U0 * b.L_ww / b.mu**2 + b.L_U1 / b.mu

    @property
    def L_phi(self) -> float:
        """Smoothness constant of phi."""
        b = self.bounds
        reach = b.M_C / b.mu
        return (b.L_U1 * (reach + 1) + b.L_U0 * (b.L_ww * b.M_C / b.mu**2 + b.L_wl / b.mu)) * (reach + 1)

    @property
    def B(self) -> float:
        """Factor of ``|w_t - w*_t|`` in the error of the hypergradient."""
        b = self.bounds
        return b.L_U1 + b.L_wl * (4 * self.kappa * b.L_U0 / b.mu + b.eps_v0)

    @property
    def gamma_bar(self) -> float:
        """Largest step of lambda that the theorem allows (D.1)."""
        b, kappa = self.bounds, self.kappa
        reach = b.M_C / b.mu
        inverse = (
            2 * self.L_phi
            + 48 * kappa * reach**2 * self.B**2
            + 10272 * kappa**3 * b.M_C**4 / b.mu**2 * self.M_v**2
            + 300 * kappa * b.M_C**2 * self.M_v**2 * (2 * kappa * reach**2 + 3)
        )
        return 1.0 / inverse if inverse else float("inf")

    @property
    def alpha_over_gamma(self) -> float:
        """Weight of ``|w_t - w*_t|^2``."""
        return 6 * self.kappa * self.B**2 + 1284 * self.kappa**3 * self.bounds.M_C**2 * self.M_v**2

    @property
    def beta_over_gamma(self) -> float:
        """Weight of ``|v_t - v*_t|^2``."""
        return 3 * self.kappa * self.bounds.M_C**2

    @property
    def dual_bound(self) -> float:
        """Uniform bound of |v_t|, 4 L_U0/(rho mu^2) + eps_v0."""
        b = self.bounds
        return 4 * b.L_U0 / (self.rho * b.mu**2) + b.eps_v0

    def right_side(self, gamma: float, steps: int, gap: float) -> float:
        """Return the right side of Theorem 4 after ``steps`` steps, ``gap`` = phi(lambda_0) - inf phi."""
        b = self.bounds
        start = self.alpha_over_gamma * b.eps_w0**2 + self.beta_over_gamma * b.eps_v0**2
        return 8 * gap / (gamma * steps) + 4 * self.kappa / steps * start


@dataclass(frozen=True)
class StochasticConstants:
    """What the text at hand gives of Theorem 7; see `NOT_PRINTED` for the rest.

    Parameters
    ----------
    bounds : ProblemBounds
        Bounds on the problem.
    V_ww : float
        Variance bound of the stochastic Hessian.
    V_U1 : float
        Variance bound of the stochastic gradient of the metric.
    """

    bounds: ProblemBounds
    V_ww: float
    V_U1: float

    @property
    def tau(self) -> float:
        """Step of w, 1/L."""
        return 1.0 / self.bounds.L

    @property
    def rho(self) -> float:
        """Step of v, min(1/L, mu/(4 V_ww))."""
        return min(self.tau, self.bounds.mu / (4 * self.V_ww)) if self.V_ww else self.tau

    def C_v(self, v0: float = 0.0) -> float:
        """Return the bound of E|v_t|^2 that the printed recursion implies, for ``|v_0| = v0``.

        The recursion is E|v_{t+1}|^2 <= (1 - rho mu/8) E|v_t|^2 + 15/(rho mu) (L_U0/mu)^2 + 2 rho^2 V_U1.
        """
        b, rho = self.bounds, self.rho
        drift = 15 / (rho * b.mu) * (b.L_U0 / b.mu) ** 2 + 2 * rho**2 * self.V_U1
        return max(v0**2, 8 / (rho * b.mu) * drift)


def lower_level_bounds(risks: GroupRisks) -> dict[str, float]:
    """Return mu, L, M_C, L_wl and L_ww of a problem's lower level, true for all w and lambda, if crude.

    They come from the moments of the rows: with c the loss's largest curvature, group a's Hessian is at most
    c lambda_max(X_a'X_a/n_a) + l2; |w*| follows from F(w*) <= F(0); the Hessian's change from the largest third
    derivative times the mean of |x|^3.

    Raises
    ------
    ArgumentError
        For the squared hinge, whose Hessian is not Lipschitz, or without strong convexity.
    """
    name = risks.loss.name
    if name == "squared_hinge":
        raise ArgumentError(
            "risks", "the squared hinge's Hessian jumps: Assumption 2 does not hold", "logistic or squared"
        )
    c, third = {"logistic": (0.25, 1 / (6 * sqrt(3))), "squared": (2.0, 0.0)}[name]
    sizes, S, d = risks.group_sizes, risks.n_groups, risks.n_features
    moments, cubes, norms, at_zero = np.zeros((S, d, d)), np.zeros(S), np.zeros(S), np.zeros(S)
    for block in risks.source.blocks():
        for a, part in block.groups:
            X, y = block.X[:, part], block.y[part]
            lengths = np.sqrt(np.einsum("ij,ij->j", X, X))
            moments[a] += X @ X.T
            cubes[a] += (lengths**3).sum()
            norms[a] += lengths.sum() if name == "logistic" else float((2 * lengths * np.abs(y)).sum())
            at_zero[a] += len(y) * log(2) if name == "logistic" else float(y @ y)
    spectra = np.linalg.eigvalsh(moments / sizes[:, None, None])
    top = c * spectra[:, -1] + risks.penalty.max()
    mu = float(risks.penalty.min()) + (c * float(spectra[:, 0].min()) if name == "squared" else 0.0)
    if mu <= 0:
        raise ArgumentError("risks", "the lower level is not strongly convex", "penalise the intercept, with l2 > 0")
    radius = sqrt(2 * float((at_zero / sizes).max()) / mu)
    # |grad F_a(w)| at |w| <= radius: bounded slope for the logistic loss, slope at 0 plus L |w| for the squared one
    slopes = norms / sizes + risks.penalty.max() * radius if name == "logistic" else norms / sizes + top * radius
    L_wl = float(np.linalg.norm(top))
    return {
        "mu": mu,
        "L": float(top.max()),
        "M_C": float(np.linalg.norm(slopes)),
        "L_wl": L_wl,
        "L_ww": float(np.hypot(third * (cubes / sizes).max(), L_wl)),
    }
