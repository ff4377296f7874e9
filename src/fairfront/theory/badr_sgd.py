"""Theorem 7 of the first paper and the lemmas of its appendix B.2, on a problem whose noise is known exactly.

Two ridge risks and a Lipschitz metric as in `fairfront.theory.badr_gd`; every stochastic estimate is the exact quantity
plus Gaussian noise of known variance over the batch size, so that the theorem's assumptions hold with known constants.
All seeds move at once as rows of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairfront.bilevel import ProblemBounds, StochasticConstants
from fairfront.metrics import Metric
from fairfront.risks import Array, GroupRisks
from fairfront.theory.badr_gd import problem_bounds
from fairfront.theory.check import Check

__all__ = ["Noise", "Paths", "Problem", "bound_v", "drifts", "follow_all", "product", "project_rows"]


@dataclass(frozen=True)
class Noise:
    """Variances E|error|^2 of the estimates at a batch of one row; at a batch of b they are divided by b.

    Attributes
    ----------
    F1, ww, wl, U1 : float
        Of the weighted gradient, the weighted Hessian, J and the metric's gradient.
    """

    F1: float = 4.0
    ww: float = 4.0
    wl: float = 4.0
    U1: float = 1.0

    def at(self, batch: float) -> Noise:
        """Return the variances at a batch size."""
        return Noise(self.F1 / batch, self.ww / batch, self.wl / batch, self.U1 / batch)


@dataclass(frozen=True, eq=False)
class Problem:
    """Two ridge risks F_a(w) = w'A_a w/2 - b_a'w + c_a and U(w) = sqrt(1 + |D w|^2), with their constants.

    Attributes
    ----------
    A, b, D : array of shape (2, d, d), (2, d), (2, d)
        Hessians and linear terms of the risks; mean rows of the groups less their mean.
    bounds : ProblemBounds
        The constants of Assumptions 1 and 2.
    """

    A: Array
    b: Array
    D: Array
    bounds: ProblemBounds

    @classmethod
    def of(cls, risks: GroupRisks, metric: Metric) -> Problem:
        """Return the problem of two groups' ridge risks and `fairfront.theory.badr_gd.LipschitzSpread`."""
        zero = risks.at(np.zeros(risks.n_features))
        cuts = zip(risks.offsets[:-1], risks.offsets[1:], strict=True)
        means = np.array([risks.Xt[:, low:high].mean(axis=1) for low, high in cuts])
        bounds = ProblemBounds(**problem_bounds(risks, metric))
        return cls(zero.hessians, -zero.gradients, means - means.mean(axis=0), bounds)

    def hessian(self, weights: Array) -> Array:
        """Return the weighted Hessians, shape (R, d, d), for weights of shape (R, 2)."""
        return np.einsum("ra,aij->rij", weights, self.A)

    def jacobian(self, w: Array) -> Array:
        """Return the group gradients, shape (R, 2, d)."""
        return np.einsum("aij,rj->rai", self.A, w) - self.b

    def solution(self, weights: Array) -> Array:
        """Return w*(lambda), shape (R, d)."""
        return np.asarray(np.linalg.solve(self.hessian(weights), (weights @ self.b)[..., None])[..., 0], np.float64)

    def unfairness(self, w: Array) -> Array:
        """Return U(w), shape (R,)."""
        return np.sqrt(1.0 + ((w @ self.D.T) ** 2).sum(axis=1))

    def slope(self, w: Array) -> Array:
        """Return grad U(w), shape (R, d)."""
        return (w @ self.D.T) @ self.D / self.unfairness(w)[:, None]

    def dual(self, w: Array, weights: Array) -> Array:
        """Return v*(w, lambda), shape (R, d)."""
        return np.asarray(-np.linalg.solve(self.hessian(weights), self.slope(w)[..., None])[..., 0], np.float64)

    def gradient(self, weights: Array) -> Array:
        """Return the gradient of phi, shape (R, 2)."""
        w = self.solution(weights)
        return np.einsum("rai,ri->ra", self.jacobian(w), self.dual(w, weights))


def project_rows(x: Array) -> Array:
    """Return the projection of each row (two entries) onto the simplex."""
    first = np.clip((x[:, 0] - x[:, 1] + 1.0) / 2.0, 0.0, 1.0)
    return np.column_stack([first, 1.0 - first])


@dataclass(frozen=True, eq=False)
class Paths:
    """Means over the seeds at t = 0..T, each of shape (T + 1,).

    Attributes
    ----------
    tau, rho, gamma : float
        Steps.
    noise : Noise
        Variances at the batch.
    constants : StochasticConstants
        What the text gives of Theorem 7's constants.
    means : mapping of str to array
        w2 = |w - w*|^2, v2 = |v|^2, vd2 = |v - v*(lambda)|^2, vh2 = |v - v*(w, lambda)|^2, wv2 = w2 |v|^2, phi, dbar =
        |Dbar|, moved2 = |lambda_{t+1} - lambda_t|^2, moved2v2 = its product with |v|^2, w2_next and vh2_next = the
        expectations given the past of |w_{t+1} - w*_t|^2 and |v_{t+1} - v*(w_t, lambda_t)|^2, drift2 =
        |v*(w_{t+1}, lambda_{t+1}) - v*(w_t, lambda_t)|^2.
    v_max : float
        The largest |v| of any seed at any step.
    clipped : float
        Share of steps of lambda that were clipped.
    """

    tau: float
    rho: float
    gamma: float
    noise: Noise
    constants: StochasticConstants
    means: Mapping[str, Array]
    v_max: float
    clipped: float


def follow_all(
    problem: Problem,
    noise: Noise,
    batch: float,
    gamma: float,
    n_steps: int,
    n_seeds: int,
    generator: np.random.Generator,
    *,
    radius: float = math.inf,
) -> Paths:
    """Run badr-sgd from w = v = 0 and uniform weights with many seeds at once; tau and rho are the theorem's."""
    here = noise.at(batch)
    constants = StochasticConstants(problem.bounds, here.ww, here.U1)
    tau, rho, d = constants.tau, constants.rho, problem.b.shape[1]
    w, v, lam = np.zeros((n_seeds, d)), np.zeros((n_seeds, d)), np.full((n_seeds, 2), 0.5)
    rows: list[dict[str, float]] = []
    v_max, clipped = 0.0, 0

    def drawn(variance: float, *shape: int) -> Array:
        return generator.normal(scale=math.sqrt(variance / math.prod(shape)), size=(n_seeds, *shape))

    for _ in range(n_steps):
        star, here_dual = problem.solution(lam), problem.dual(w, lam)
        exact = problem.gradient(lam)
        hessian, jacobian = problem.hessian(lam), problem.jacobian(w)
        # Where the text bounds an expectation given the past, the noise is averaged out exactly.
        w_mean = w - tau * np.einsum("ra,rai->ri", lam, jacobian)
        v_mean = v - rho * (np.einsum("rij,rj->ri", hessian, v) + problem.slope(w))
        w_next = w_mean - tau * drawn(here.F1, d)
        shaken = np.einsum("rij,rj->ri", drawn(here.ww, d, d), v) + drawn(here.U1, d)
        v_next = v_mean - rho * shaken
        direction = np.einsum("rai,ri->ra", jacobian + drawn(here.wl, 2, d), v)
        length = np.linalg.norm(direction, axis=1, keepdims=True)
        clipped += int((length > radius).sum())
        lam_next = project_rows(lam - gamma * direction * np.minimum(1.0, radius / np.maximum(length, 1e-300)))
        w2, v2, moved2 = _sq(w - star), _sq(v), _sq(lam_next - lam)
        row = {
            "w2": w2,
            "v2": v2,
            "vd2": _sq(v - problem.dual(star, lam)),
            "vh2": _sq(v - here_dual),
            "wv2": w2 * v2,
            "phi": problem.unfairness(star),
            "dbar": np.linalg.norm(lam - project_rows(lam - gamma * exact), axis=1) / gamma,
            "moved2": moved2,
            "moved2v2": moved2 * v2,
            "w2_next": _sq(w_mean - star) + tau**2 * here.F1,
            "vh2_next": _sq(v_mean - here_dual) + rho**2 * (here.ww * v2 / d + here.U1),
            "drift2": _sq(problem.dual(w_next, lam_next) - here_dual),
        }
        rows.append({name: float(values.mean()) for name, values in row.items()})
        w, v, lam = w_next, v_next, lam_next
        v_max = max(v_max, float(np.sqrt(_sq(v).max())))
    means = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Paths(tau, rho, gamma, here, constants, means, v_max, clipped / (n_steps * n_seeds))


def _sq(x: Array) -> Array:
    return np.einsum("ij,ij->i", x, x)


def _source(run: Paths) -> float:
    """Return what the recursion of E|v|^2 adds at each step."""
    b = run.constants.bounds
    return 15.0 / (run.rho * b.mu) * (b.L_U0 / b.mu) ** 2 + 2.0 * run.rho**2 * run.noise.U1


def bound_v(run: Paths) -> tuple[Check, Check]:
    """Check the recursion of E|v_t|^2 at every step, and the bound that it implies; measured is left over right."""
    v2, mu = run.means["v2"], run.constants.bounds.mu
    right = (1.0 - run.rho * mu / 8.0) * v2[:-1] + _source(run)
    limit = run.constants.C_v()
    return (
        Check.at_most("recursion of E|v|^2", float((v2[1:] / right).max()), 1.0, len(right)),
        Check.at_most("bound of E|v|^2", float(v2.max()), limit, len(v2)),
    )


def drifts(run: Paths) -> tuple[Check, ...]:
    """Check the stochastic drifts of w and v at every step, in the mean over the seeds; measured is left over right.

    L_{v,*} is not printed; 2 M_v^2 is derived: |v*' - v*| <= M_v (|w' - w| + |lambda' - lambda|).
    """
    b, m, n = run.constants.bounds, run.means, run.noise
    kappa = b.L / b.mu
    M_v = b.L_U0 * b.L_ww / b.mu**2 + b.L_U1 / b.mu
    pairs = {
        "contraction of w": (m["w2_next"], (1 - run.tau * b.mu) * m["w2"] + run.tau**2 * n.F1),
        "contraction of v": (
            m["vh2_next"],
            (1 - run.rho * b.mu) * m["vh2"] + run.rho**2 * (n.ww * m["v2"] + n.U1),
        ),
        "drift of w": (
            m["w2"][1:],
            (1 - run.tau * b.mu / 2) * m["w2"][:-1]
            + 3 / (run.tau * b.mu) * (b.M_C / b.mu) ** 2 * m["moved2"][:-1]
            + run.tau**2 * kappa / (kappa - 1) * n.F1,
        ),
        "drift of the dual solution": (
            m["drift2"],
            2 * M_v**2 * (run.tau**2 * b.L**2 * m["w2"] + run.tau**2 * n.F1 + m["moved2"]),
        ),
    }
    return tuple(
        Check.at_most(name, float((left / right).max()), 1.0 + 1e-9, len(left)) for name, (left, right) in pairs.items()
    )


def product(run: Paths) -> Check:
    """Check the printed recursion of E[|w - w*|^2 |v|^2] at every step; measured is left over right."""
    b, m, source = run.constants.bounds, run.means, _source(run)
    kappa = b.L / b.mu
    keep_w, keep_v = 1 - run.tau * b.mu / 2, 1 - run.rho * b.mu / 8
    reach = 3.0 / run.tau / b.mu**3 * b.M_C**2
    noise = run.tau**2 * kappa / (kappa - 1) * run.noise.F1
    right = (
        keep_w * keep_v * m["wv2"]
        + keep_v * (reach * m["moved2v2"] + noise * m["v2"])
        + source * (keep_w * m["w2"] + reach * m["moved2"] + noise)
    )[:-1]
    return Check.at_most("recursion of the product", float((m["wv2"][1:] / right).max()), 1.0, len(right))
