"""Theorem 4 of the first paper and the lemmas of its appendix B.1, held against badr-gd's own iterates.

A `Trajectory` keeps what badr-gd did and, at each of its steps, the exact quantities that the proofs speak of:
w*(lambda_t), v*(w_t, lambda_t), v*(lambda_t), phi and its gradient.  The sign of v is the algorithm's: v* =
-(Hessian)^-1 grad U (the appendix prints it without the minus).  Constants are those of
`fairfront.bilevel.Theorem4Constants`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fairfront.bilevel import (
    Objective,
    ProblemBounds,
    StepSizes,
    Theorem4Constants,
    gd_iterates,
    lower_level_bounds,
    project,
)
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric, Metric
from fairfront.metrics.base import FloatArray
from fairfront.metrics.smooth import MODULUS_FLOOR
from fairfront.metrics.sums import GroupSums
from fairfront.pareto import Scalarization, uniform_weights
from fairfront.risks import Array, GroupRisks
from fairfront.theory.check import Check

__all__ = [
    "LipschitzSpread",
    "Trajectory",
    "contraction",
    "descent",
    "drift_v",
    "drift_w",
    "dual_bound",
    "follow",
    "gradient_error",
    "lipschitz_solution",
    "metric_bounds",
    "problem_bounds",
    "ridge_bounds",
    "smooth_objective",
    "theorem_4",
    "theorem_4_sides",
]

# Squared distances below this are rounding and the lower solver's tolerance, not the algorithm's doing.
_ROUNDING = 1e-18


@dataclass(frozen=True, kw_only=True)
class LipschitzSpread(Metric):
    """A metric that is as smooth as the theorem could wish: sqrt(1 + sum_a (m_a - mean_b m_b)^2), m_a mean scores.

    It is 1 at equal mean scores, and its gradient in w is bounded, with constants that are known in closed form: with D
    the (S, d) matrix of the groups' mean rows less their mean, L_U0 = |D| and L_U1 = |D|^2.
    """

    name: ClassVar[str] = "lipschitz_spread"

    def floor(self, n_groups: int) -> float:
        """Return 1, the value at equal means."""
        return 1.0

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        return _BoundSpread(self, groups)


class _BoundSpread(BoundMetric):
    def __init__(self, metric: Metric, groups: GroupSums) -> None:
        super().__init__(metric, len(groups.numbers))
        self._groups = groups

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        means = self._groups.means(z)
        apart = means - means.mean()
        value = math.sqrt(1.0 + float(apart @ apart))
        return value, self._groups.spread(apart / value / self._groups.counts) if derivative else None


# --- constants -------------------------------------------------------------------------------------------------------


def ridge_bounds(risks: GroupRisks, *, resolution: int = 501) -> dict[str, float]:
    """Return mu, L, M_C, L_wl and L_ww of two groups' ridge risks, exactly; M_C to the grid's resolution.

    With Hessians A_a that depend on nothing: mu and L are the extreme eigenvalues over the groups (the least eigenvalue
    is concave in lambda, the largest convex), |J(w) - J(u)| <= |A (w - u)| with A the Hessians stacked, and along the
    simplex the weighted Hessian moves by (A_1 - A_2)/sqrt(2) for each unit of length.
    """
    if risks.loss.name != "squared" or risks.n_groups != 2:
        raise ArgumentError("risks", "need the squared loss and two groups", "use fairfront.bilevel.lower_level_bounds")
    hessians = risks.at(np.zeros(risks.n_features)).hessians
    spectra = np.linalg.eigvalsh(hessians)
    solver = Scalarization(risks)
    firsts = np.linspace(0.0, 1.0, resolution)
    cross = max(float(np.linalg.norm(solver.solve([t, 1.0 - t]).point.gradients, 2)) for t in firsts)
    return {
        "mu": float(spectra[:, 0].min()),
        "L": float(spectra[:, -1].max()),
        "M_C": cross,
        "L_wl": float(np.linalg.norm(hessians.reshape(-1, hessians.shape[-1]), 2)),
        "L_ww": float(np.linalg.norm(hessians[0] - hessians[1], 2)) / math.sqrt(2.0),
    }


def metric_bounds(risks: GroupRisks, metric: Metric) -> dict[str, float]:
    """Return L_U0 and L_U1 of a Lipschitz metric of the scores Xw, true for every w.

    A group's rate is the mean of sigmoids over k rows X; with q the largest eigenvalue of X'X/k its gradient is at most
    g = sqrt(q)/4 and its Hessian at most h = q/(6 sqrt 3).

    - Equal opportunity: |M'| <= 2 tanh(1/2) max g, the softmaxes of rates and of minus rates being at most tanh(1/2)
      apart in total variation, and |M''| <= 2 tanh(1/2) max h + 2 max g^2.
    - Demographic parity: with G_a, H_a the same bounds of a rate less the mean rate, |M'| <= max G and
      |M''| <= max (H + G^2/1e-3) + max G^2: the smoothed modulus bends over a width of 1e-3, which makes L_U1 large.

    Raises
    ------
    ArgumentError
        For a metric whose gradient grows with w (disparate mistreatment, HSIC, individual fairness and group variance:
        Assumption 1 does not hold), or another rho than 1.
    """
    S = risks.n_groups
    parts = [slice(low, high) for low, high in zip(risks.offsets[:-1], risks.offsets[1:], strict=True)]
    if isinstance(metric, LipschitzSpread):
        means = np.array([risks.Xt[:, part].mean(axis=1) for part in parts])
        norm = float(np.linalg.norm(means - means.mean(axis=0), 2))
        return {"L_U0": norm, "L_U1": norm**2}
    if metric.name not in ("demographic_parity", "equal_opportunity") or metric.task != "classification":
        raise ArgumentError(
            "metric",
            f"{metric.name} has no Lipschitz constant: its gradient grows with the scores (Assumption 1 fails)",
        )
    if getattr(metric, "rho", 1.0) != 1.0:
        raise ArgumentError("metric", f"rho = {metric.rho}; the bounds are for rho = 1")  # type: ignore[attr-defined]
    positive = metric.name == "equal_opportunity"
    top = np.empty(S)
    for a, part in enumerate(parts):
        X = risks.Xt[:, part]
        X = X[:, risks.y[part] == 1.0] if positive else X
        top[a] = np.linalg.eigvalsh(X @ X.T / X.shape[1])[-1]
    g, h = np.sqrt(top) / 4.0, top / (6.0 * math.sqrt(3.0))
    if positive:
        apart = 2.0 * math.tanh(0.5)
        return {"L_U0": apart * float(g.max()), "L_U1": apart * float(h.max()) + 2.0 * float(g.max()) ** 2}
    G, H = (x * (1.0 - 1.0 / S) + (x.sum() - x) / S for x in (g, h))
    return {"L_U0": float(G.max()), "L_U1": float((H + G**2 / MODULUS_FLOOR).max() + G.max() ** 2)}


def problem_bounds(risks: GroupRisks, metric: Metric) -> dict[str, float]:
    """Return every constant of Assumptions 1 and 2: exact for two groups' ridge risks, valid bounds otherwise."""
    exact = risks.loss.name == "squared" and risks.n_groups == 2
    return (ridge_bounds(risks) if exact else lower_level_bounds(risks)) | metric_bounds(risks, metric)


# --- the iterates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trajectory:
    """badr-gd's iterates t = 0..T and the exact quantities beside them.

    Attributes
    ----------
    steps : StepSizes
        tau, rho, gamma.
    constants : Theorem4Constants
        The problem's constants, with the errors of this start.
    weights, w, v : array of shape (T + 1, S), (T + 1, d), (T + 1, d)
        lambda_t, w_t, v_t.
    direction : array of shape (T + 1, S)
        J(w_t)'v_t, the estimate of the gradient of phi.
    solution, dual, dual_here : array of shape (T + 1, d)
        w*(lambda_t), v*(lambda_t), v*(w_t, lambda_t).
    phi, gradient : array of shape (T + 1,), (T + 1, S)
        phi(lambda_t) and its gradient.
    """

    steps: StepSizes
    constants: Theorem4Constants
    weights: Array
    w: Array
    v: Array
    direction: Array
    solution: Array
    dual: Array
    dual_here: Array
    phi: Array
    gradient: Array

    @property
    def lower_error(self) -> Array:
        """|w_t - w*_t|^2, shape (T + 1,)."""
        return _squares(self.w - self.solution)

    @property
    def moved(self) -> Array:
        """D_t, the step of lambda over gamma, shape (T, S)."""
        return (self.weights[:-1] - self.weights[1:]) / self.steps.gamma

    @property
    def generalised(self) -> Array:
        """The generalised gradient (Dbar_t): the step that the exact gradient would have made, shape (T, S)."""
        gamma, rows = self.steps.gamma, zip(self.weights[:-1], self.gradient[:-1], strict=True)
        return np.array([(lam - project(lam - gamma * slope)) / gamma for lam, slope in rows])


def follow(
    risks: GroupRisks,
    metric: BoundMetric,
    bounds: dict[str, float],
    multiple: float,
    n_steps: int,
    *,
    at_solution: bool = False,
) -> Trajectory:
    """Run badr-gd from uniform weights, gamma = ``multiple`` gamma_bar, and keep everything that the proofs speak of.

    Parameters
    ----------
    risks, metric
        The problem.
    bounds : dict
        The constants of Assumptions 1 and 2, of `problem_bounds`.
    multiple : float
        gamma over gamma_bar; tau = rho = 1/L.
    n_steps : int
        T.
    at_solution : bool, default False
        Start at w_0 = w*(lambda_0), v_0 = v*(lambda_0), so that the errors of the start are 0, instead of at 0.
    """
    objective, first = Objective(risks, metric), uniform_weights(risks.n_groups)
    zero = np.zeros(risks.n_features)
    solution, dual = _exact(objective, metric, first)[:2]
    w, v = (solution, dual) if at_solution else (zero, zero)
    errors = {"eps_w0": _norm(w - solution), "eps_v0": _norm(v - dual)}
    constants = Theorem4Constants(ProblemBounds(**bounds, **errors))
    steps = StepSizes(constants.tau, constants.rho, multiple * constants.gamma_bar)
    rows: dict[str, list[Array]] = {
        name: [] for name in Trajectory.__annotations__ if name not in ("steps", "constants")
    }
    for _, state in zip(range(n_steps + 1), gd_iterates(risks, metric, steps, model=w, dual=v), strict=False):
        exact = _exact(objective, metric, state.weights)
        found = (state.weights, state.w, state.v, state.direction, exact[0], exact[1])
        here = (_dual(risks, metric, state.w, state.weights), np.array(exact[2]), exact[3])
        for name, value in zip(rows, (*found, *here), strict=True):
            rows[name].append(value)
    return Trajectory(steps, constants, **{name: np.array(values) for name, values in rows.items()})


def _exact(objective: Objective, metric: BoundMetric, weights: Array) -> tuple[Array, Array, float, Array]:
    """Return w*(lambda), v*(lambda), phi(lambda) and its gradient."""
    found = objective.evaluate(weights)
    return found.model.w, _dual(objective.risks, metric, found.model.w, weights), found.value, found.gradient


def _dual(risks: GroupRisks, metric: BoundMetric, w: Array, weights: Array) -> Array:
    """Return v*(w, lambda) = -(Hessian)^-1 grad U."""
    point = risks.at(w)
    slope = point.score_gradient(metric.value_and_derivative(point.scores)[1])
    return np.asarray(-np.linalg.solve(point.hessian(weights), slope), dtype=np.float64)


# --- B.1.1: the solution map and the implicit objective -------------------------------------------------------------


def lipschitz_solution(
    risks: GroupRisks, constants: Theorem4Constants, generator: np.random.Generator, *, pairs: int = 200
) -> Check:
    """Check that w* is (M_C/mu)-Lipschitz, on random pairs of weights, half of them close together."""
    solver, worst = Scalarization(risks), 0.0
    for one, other in _pairs(risks.n_groups, generator, pairs):
        moved = solver.solve(one).w - solver.solve(other).w
        worst = max(worst, _norm(moved) / _norm(one - other))
    bound = constants.bounds.M_C / constants.bounds.mu
    return Check.at_most("w* is (M_C/mu)-Lipschitz", worst, bound, pairs)


def smooth_objective(
    risks: GroupRisks,
    metric: BoundMetric,
    constants: Theorem4Constants,
    generator: np.random.Generator,
    *,
    pairs: int = 200,
) -> Check:
    """Check that phi is L_phi-smooth: differences of its gradient over differences of the weights."""
    objective, worst = Objective(risks, metric), 0.0
    for one, other in _pairs(risks.n_groups, generator, pairs):
        apart = objective.evaluate(one).gradient - objective.evaluate(other).gradient
        worst = max(worst, _norm(apart) / _norm(one - other))
    return Check.at_most("phi is L_phi-smooth", worst, constants.L_phi, pairs)


def descent(run: Trajectory) -> Check:
    """Check the descent inequality for phi along the iterates; measured is the largest excess over its right side."""
    gamma, moved, ideal = run.steps.gamma, run.moved, run.generalised
    right = (
        run.phi[:-1]
        - gamma / 8 * _squares(ideal)
        - gamma / 4 * _squares(moved)
        + gamma / 4 * _squares(ideal - moved)
        + gamma / 2 * _squares(run.gradient - run.direction)[:-1]
        + gamma**2 * run.constants.L_phi / 2 * _squares(moved)
    )
    # phi itself is known to a few units of its last digit.
    return Check.at_most("descent of phi", float((run.phi[1:] - right).max()), 1e-12, len(right))


# --- B.1.2 and B.1.3: the lower level and the dual variable -----------------------------------------------------------


def contraction(run: Trajectory) -> Check:
    """Check that steps of w and v contract squared distances by 1 - tau mu, 1 - rho mu; measured is left over right."""
    mu, steps = run.constants.bounds.mu, run.steps
    lower = (run.w[1:] - run.solution[:-1], run.w[:-1] - run.solution[:-1], 1 - steps.tau * mu)
    dual = (run.v[1:] - run.dual_here[:-1], run.v[:-1] - run.dual_here[:-1], 1 - steps.rho * mu)
    worst = max(_ratio(_squares(after), rate * _squares(before)) for after, before, rate in (lower, dual))
    return _relative("steps of w and v contract", worst, 2 * len(lower[0]))


def drift_w(run: Trajectory) -> Check:
    """Check the recursion of the lower error; measured is left over right."""
    b, steps = run.constants.bounds, run.steps
    pace = steps.tau * b.mu
    right = (1 - pace / 2) * run.lower_error[:-1]
    right = right + 2 / pace * (b.M_C / b.mu) ** 2 * steps.gamma**2 * _squares(run.moved)
    return _relative("drift of the lower error", _ratio(run.lower_error[1:], right), len(right))


def dual_bound(run: Trajectory) -> Check:
    """Check the uniform bound of the dual iterates; measured is the largest |v_t|."""
    return Check.at_most("uniform bound of v", math.sqrt(_squares(run.v).max()), run.constants.dual_bound, len(run.v))


def drift_v(run: Trajectory) -> Check:
    """Check the drift of v*(w_t, lambda_t); measured is left over right, with M_v as derived (its print is lost)."""
    b, steps = run.constants.bounds, run.steps
    left = _squares(run.dual_here[1:] - run.dual_here[:-1])
    reach = steps.tau * b.L * np.sqrt(run.lower_error[:-1]) + steps.gamma * np.sqrt(_squares(run.moved))
    return _relative("drift of the dual solution", math.sqrt(_ratio(left, (run.constants.M_v * reach) ** 2)), len(left))


def gradient_error(run: Trajectory) -> Check:
    """Check the error of the hypergradient: at most B |w - w*| + M_C |v - v*|; measured is left over right.

    The right side's print is lost in the text at hand.  It follows from J(w*)'v* - J(w)'v = J(w*)'(v* - v) +
    (J(w*) - J(w))'v with the uniform bound of v.
    """
    right = run.constants.B * np.sqrt(run.lower_error) + run.constants.bounds.M_C * np.sqrt(_squares(run.v - run.dual))
    left = _squares(run.gradient - run.direction)
    return _relative("error of the hypergradient", math.sqrt(_ratio(left, right**2)), len(left))


# --- B.1.5: the theorem -----------------------------------------------------------------------------------------------


def theorem_4_sides(run: Trajectory, least: float) -> tuple[Array, Array]:
    """Return both sides of Theorem 4 for T = 1, 2, ..., shape (T,) each; ``least`` is the minimum of phi."""
    constants, counts = run.constants, np.arange(1, len(run.phi))
    terms = _squares(run.generalised) + constants.alpha_over_gamma * run.lower_error[:-1]
    gap = float(run.phi[0]) - least
    right = np.array([constants.right_side(run.steps.gamma, int(t), gap) for t in counts])
    return np.cumsum(terms) / counts, right


def theorem_4(run: Trajectory, least: float) -> Check:
    """Check Theorem 4 at every T up to the run's length; measured is the largest left over right."""
    left, right = theorem_4_sides(run, least)
    return _relative("Theorem 4", float((left / right).max()), len(left))


def _relative(statement: str, ratio: float, cases: int) -> Check:
    return Check.at_most(statement, ratio, 1.0 + 1e-9, cases)


def _ratio(left: Array, right: Array) -> float:
    """Return the largest left over right of squared quantities, what is rounding left out."""
    counted = left > _ROUNDING
    return float((left[counted] / right[counted]).max()) if counted.any() else 0.0


def _pairs(n_groups: int, generator: np.random.Generator, count: int) -> list[tuple[Array, Array]]:
    found = []
    for case in range(count):
        one, other = generator.dirichlet(np.ones(n_groups), size=2)
        found.append((one, other if case % 2 else one + 0.01 * (other - one)))
    return found


def _squares(x: Array) -> Array:
    return np.einsum("ij,ij->i", x, x)


def _norm(x: ArrayLike) -> float:
    return float(np.linalg.norm(x))
