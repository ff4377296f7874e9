"""badr-gd and badr-sgd (Algorithms 1 and 2): model, dual variable and weights move together, one small step each.

All three updates read the old point.  With J(w) = [grad F_a(w)] and Q the Hessian weighted by lambda,

    w+ = w - tau sum_a lambda_a grad F_a(w)
    v+ = v - rho (Q v + grad M(w))
    lambda+ = Proj_simplex(lambda - gamma clip(J(w)'v))

where badr-sgd estimates everything on one mini-batch drawn within each group and clips to a ball of radius C_gamma, and
badr-gd uses all rows and does not clip.  The fixed point of v is -Q^-1 grad M.  Both start at w = v = 0 (the authors'
scripts for Figure 5 start at the solution for uniform weights) and uniform weights.

Plain NumPy, by measurement (17 columns, two groups, demographic parity, one core): a step of badr-gd compiled by JAX
takes as long at 2,000 rows, 1.4 times as long at 20,000 and 3.8 times at 200,000, after 2 s of compilation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairfront.bilevel.constants import StochasticConstants, Theorem4Constants
from fairfront.bilevel.objective import Objective
from fairfront.bilevel.simplex import project
from fairfront.bilevel.solution import BilevelSolution, History, exact
from fairfront.datasets.blocks import MemoryRows
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import simplex_weights, uniform_weights
from fairfront.risks import Array, GroupRisks

__all__ = [
    "State",
    "StepSizes",
    "badr_gd",
    "badr_sgd",
    "clip",
    "gd_iterates",
    "practical_steps",
    "sgd_iterates",
    "theorem4_steps",
    "theorem7_steps",
]


@dataclass(frozen=True)
class StepSizes:
    """Steps of the three updates.

    Attributes
    ----------
    tau, rho, gamma : float
        Of w, v and lambda.
    radius : float, default inf
        C_gamma, to which badr-sgd clips the step of lambda.
    """

    tau: float
    rho: float
    gamma: float
    radius: float = float("inf")

    def __post_init__(self) -> None:
        for name in ("tau", "rho", "gamma", "radius"):
            if not getattr(self, name) > 0:
                raise ArgumentError(name, f"must be positive, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class State:
    """An iterate, with what the next step is made of.

    Attributes
    ----------
    w, v : array of shape (d,)
        Model and dual variable.
    weights : array of shape (S,)
        lambda.
    value : float
        M(w): of the current model on the rows the step saw, not phi(lambda).
    lower_gradient : array of shape (d,)
        sum_a lambda_a grad F_a(w), or its estimate.
    dual_residual : array of shape (d,)
        Q v + grad M(w), or its estimate.
    direction : array of shape (S,)
        J(w)'v before clipping, or its estimate.
    """

    w: Array
    v: Array
    weights: Array
    value: float
    lower_gradient: Array
    dual_residual: Array
    direction: Array

    def step(self, steps: StepSizes) -> tuple[Array, Array, Array]:
        """Return the next w, v and lambda."""
        return (
            self.w - steps.tau * self.lower_gradient,
            self.v - steps.rho * self.dual_residual,
            project(self.weights - steps.gamma * clip(self.direction, steps.radius)),
        )

    def stationarity(self, gamma: float) -> float:
        """Return the largest of the norms of the generalised gradient in lambda, lower gradient and dual residual."""
        moved = (self.weights - project(self.weights - gamma * self.direction)) / gamma
        return max(float(np.linalg.norm(x)) for x in (moved, self.lower_gradient, self.dual_residual))


def clip(x: Array, radius: float) -> Array:
    """Return the point of the ball of some radius about 0 that is nearest to ``x``."""
    norm = float(np.linalg.norm(x))
    return x if norm <= radius else x * (radius / norm)


def theorem4_steps(constants: Theorem4Constants) -> StepSizes:
    """Return the steps of Theorem 4: tau = rho = 1/L, gamma = gamma_bar."""
    return StepSizes(constants.tau, constants.rho, constants.gamma_bar)


def theorem7_steps(constants: StochasticConstants, gamma: float, radius: float) -> StepSizes:
    """Return the steps of Theorem 7: tau = 1/L, rho = min(1/L, mu/(4 V_ww)).

    The theorem's bound of gamma and its C_gamma are not printed in the text at hand; they are the caller's.
    """
    return StepSizes(constants.tau, constants.rho, gamma, radius)


def practical_steps(risks: GroupRisks, metric: BoundMetric, *, pace: float = 0.2, seed: int = 0) -> StepSizes:
    """Return steps that follow the problem at hand instead of its worst case.

    tau = rho = 1/L with L the largest curvature that the losses can have on these rows.  gamma = pace tau mu / L_phi:
    lambda moves slower than the slowest mode of the lower level relaxes.  mu is the least eigenvalue of the weighted
    Hessian at uniform weights, and L_phi the largest ratio of hypergradient to weight differences among four pairs of
    nearby weights; five lower-level problems are solved for them.  The radius is twice the largest hypergradient seen.
    Where phi bends more sharply at its minimum than at these weights (demographic parity near parity does, over a width
    of 1e-3 in the means), a run with these steps oscillates and ends by its iteration limit: lower the pace.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    metric : BoundMetric
        The unfairness metric.
    pace : float, default 0.2
        How fast lambda moves.
    seed : int, default 0
        Of the four directions.
    """
    if not pace > 0:
        raise ArgumentError("pace", f"must be positive, got {pace}")
    most = {"logistic": 0.25, "squared_hinge": 2.0, "squared": 2.0}[risks.loss.name]
    moments, centre = np.zeros((risks.n_groups, risks.n_features, risks.n_features)), uniform_weights(risks.n_groups)
    for block in risks.source.blocks():
        for a, part in block.groups:
            moments[a] += block.X[:, part] @ block.X[:, part].T
    spectra = np.linalg.eigvalsh(moments / risks.group_sizes[:, None, None])
    largest = most * float(spectra.max()) + float(risks.penalty.max())
    objective = Objective(risks, metric, tolerance=1e-8)
    here = objective.evaluate(centre)
    least = float(np.linalg.eigvalsh(here.model.point.hessian(centre))[0])
    generator, smoothness, slope = np.random.default_rng(seed), 1e-12, float(np.linalg.norm(here.gradient))
    for _ in range(4):
        weights = 0.8 * centre + 0.2 * generator.dirichlet(np.ones(risks.n_groups))
        there = objective.evaluate(weights / weights.sum())
        moved = float(np.linalg.norm(there.model.weights - centre))
        if moved > 0:
            smoothness = max(smoothness, float(np.linalg.norm(there.gradient - here.gradient)) / moved)
        slope = max(slope, float(np.linalg.norm(there.gradient)))
    gamma = pace * least / largest / smoothness
    return StepSizes(1.0 / largest, 1.0 / largest, gamma, 2.0 * slope if slope > 0 else float("inf"))


def gd_iterates(
    risks: GroupRisks,
    metric: BoundMetric,
    steps: StepSizes,
    *,
    start: ArrayLike | None = None,
    model: ArrayLike | None = None,
    dual: ArrayLike | None = None,
) -> Iterator[State]:
    """Yield the iterates of badr-gd (Algorithm 1) without end, the start first.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    metric : BoundMetric
        The unfairness metric.
    steps : StepSizes
        tau, rho and gamma; the radius plays no part.
    start : array of shape (S,), optional
        lambda_0; default uniform.
    model, dual : array of shape (d,), optional
        w_0 and v_0; default 0.
    """
    _check(risks, metric)
    unclipped = StepSizes(steps.tau, steps.rho, steps.gamma)
    w, v = (np.zeros(risks.n_features) if x is None else np.array(x, dtype=np.float64) for x in (model, dual))
    lam = _start(risks, start)
    while True:
        point = risks.at(w)
        value, derivative = metric.value_and_derivative(point.scores)
        residual = point.hessian_product(lam, v) + point.score_gradient(derivative)
        state = State(w, v, lam, value, lam @ point.gradients, residual, point.gradients @ v)
        yield state
        w, v, lam = state.step(unclipped)


def sgd_iterates(
    risks: GroupRisks,
    metric: BoundMetric,
    steps: StepSizes,
    generator: np.random.Generator,
    *,
    batch: int = 64,
    start: ArrayLike | None = None,
) -> Iterator[State]:
    """Yield the iterates of badr-sgd (Algorithm 2) without end, the start first.

    Each step draws, with replacement, ``batch`` rows of every group.  Group gradients and Hessians are unbiased on
    them; the metric is the same formula on the batch, which for a metric that is not linear in group means is biased,
    of order 1/batch.  A batch on which the metric is not defined (no positive row of a group, say) is drawn again.

    Parameters
    ----------
    risks : GroupRisks
        The group risks, rows in memory.
    metric : BoundMetric
        The unfairness metric.
    steps : StepSizes
        tau, rho, gamma and the clipping radius.
    generator : numpy.random.Generator
        Draws the batches.
    batch : int, default 64
        Rows of each group in a mini-batch.
    start : array of shape (S,), optional
        lambda_0; default uniform.

    Raises
    ------
    ArgumentError
        For rows that are not in memory, a batch below 1, or 100 batches in a row on which the metric is not defined.
    """
    _check(risks, metric)
    if not isinstance(risks.source, MemoryRows):
        raise ArgumentError("risks", "mini-batches need the rows in memory")
    if batch < 1:
        raise ArgumentError("batch", f"must be at least 1, got {batch}")
    S, sizes, groups = risks.n_groups, risks.group_sizes, np.repeat(np.arange(risks.n_groups), batch)
    ends = np.arange(0, S * batch, batch)

    def draw() -> tuple[Array, Array, BoundMetric]:
        problem: ArgumentError | None = None
        for _ in range(100):
            within = (generator.random((S, batch)) * sizes[:, None]).astype(np.int64)
            chosen = (risks.offsets[:-1, None] + within).ravel()
            try:
                bound = metric.metric.bind(risks.y[chosen], groups, S)
            except ArgumentError as error:
                problem = error
                continue
            return risks.Xt[:, chosen], risks.y[chosen], bound
        raise ArgumentError("batch", f"{batch} rows a group are too few: {problem}", "draw larger batches")

    w, v, lam = np.zeros(risks.n_features), np.zeros(risks.n_features), _start(risks, start)
    while True:
        X, y, bound = draw()
        z = w @ X
        slope, curvature = risks.loss.terms(z, y)
        gradients = np.add.reduceat(X * slope, ends, axis=1).T / batch + risks.penalty * w
        shares = np.repeat(lam / batch, batch)
        value, derivative = bound.value_and_derivative(z)
        residual = X @ (shares * curvature * (v @ X) + derivative) + risks.penalty * v
        state = State(w, v, lam, value, lam @ gradients, residual, gradients @ v)
        yield state
        w, v, lam = state.step(steps)


def badr_gd(
    risks: GroupRisks,
    metric: BoundMetric,
    *,
    steps: StepSizes | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 10_000,
    time_limit: float = float("inf"),
    record_every: int = 10,
) -> BilevelSolution:
    """Run badr-gd until it is stationary.

    Parameters
    ----------
    risks, metric, start
        As of `gd_iterates`.
    steps : StepSizes, optional
        Default `practical_steps`.
    tolerance : float, default 1e-6
        The run ends when the norms of the generalised gradient in lambda, of the lower gradient and of the dual
        residual are all below it.
    max_iterations : int, default 10000
        At most so many steps.
    time_limit : float, default inf
        Seconds after which the run ends.
    record_every : int, default 10
        Steps between records of the history; their values are M(w_t), which is not phi(lambda_t).
    """
    history = History(risks)
    _check(risks, metric)
    steps = practical_steps(risks, metric) if steps is None else steps
    status, left = "iteration limit", float("inf")
    for t, state in enumerate(gd_iterates(risks, metric, steps, start=start)):
        left = state.stationarity(steps.gamma)
        done = left <= tolerance
        late = history.elapsed >= time_limit
        if t % record_every == 0 or done or late or t == max_iterations:
            history.add(state.value, state.weights, t)
        if done or late or t == max_iterations:
            status = "converged" if done else "time limit" if late else status
            break
    message = f"stationarity {left:.1e}, {tolerance:.1e} asked"
    return _single_loop_solution(risks, metric, history, state.weights, "badr-gd", status, message)


def badr_sgd(
    risks: GroupRisks,
    metric: BoundMetric,
    *,
    generator: np.random.Generator,
    steps: StepSizes | None = None,
    batch: int = 64,
    start: ArrayLike | None = None,
    tolerance: float = 1e-3,
    window: int = 500,
    max_iterations: int = 10_000,
    time_limit: float = float("inf"),
    record_every: int = 100,
) -> BilevelSolution:
    """Run badr-sgd until the mean of its weights stands still.

    Parameters
    ----------
    risks, metric, generator, batch, start
        As of `sgd_iterates`.
    steps : StepSizes, optional
        Default `practical_steps`, found on all rows.
    tolerance : float, default 1e-3
        The run ends when the mean of the weights over a window differs by less from that over the window before.
    window : int, default 500
        Steps of a window.
    max_iterations : int, default 10000
        At most so many steps.
    time_limit : float, default inf
        Seconds after which the run ends.
    record_every : int, default 100
        Steps between records of the history; their values are M of the batch at w_t, which is not phi(lambda_t).

    Returns
    -------
    BilevelSolution
        At the mean of the weights over the last window.
    """
    if window < 1:
        raise ArgumentError("window", f"must be at least 1, got {window}")
    history = History(risks)
    _check(risks, metric)
    steps = practical_steps(risks, metric) if steps is None else steps
    status, moved = "iteration limit", float("inf")
    total, count, before = np.zeros(risks.n_groups), 0, None
    mean = uniform_weights(risks.n_groups)
    for t, state in enumerate(sgd_iterates(risks, metric, steps, generator, batch=batch, start=start)):
        total, count = total + state.weights, count + 1
        late, last = history.elapsed >= time_limit, t == max_iterations
        if count == window or last or late:
            mean = total / count
            if before is not None and count == window:
                moved = float(np.linalg.norm(mean - before))
            before, total, count = mean, np.zeros(risks.n_groups), 0
        done = moved <= tolerance
        if t % record_every == 0 or done or late or last:
            history.add(state.value, state.weights, t)
        if done or late or last:
            status = "converged" if done else "time limit" if late else status
            break
    message = f"mean weights moved by {moved:.1e} from window to window, {tolerance:.1e} asked"
    return _single_loop_solution(risks, metric, history, project(mean), "badr-sgd", status, message)


def _check(risks: GroupRisks, metric: BoundMetric) -> None:
    if metric.n_rows != risks.n_rows:
        raise ArgumentError("metric", f"is bound to {metric.n_rows} rows, the risks have {risks.n_rows}")


def _start(risks: GroupRisks, start: ArrayLike | None) -> Array:
    return uniform_weights(risks.n_groups) if start is None else simplex_weights(start, risks.n_groups, "start").copy()


def _single_loop_solution(
    risks: GroupRisks,
    metric: BoundMetric,
    history: History,
    weights: Array,
    solver: str,
    status: str,
    message: str,
) -> BilevelSolution:
    model, value = exact(risks, metric, weights)
    return BilevelSolution(
        model=model,
        value=value,
        local_minima=weights[None],
        minimum_values=np.array([value]),
        lower_solves=1,
        message=message,
        solver=solver,
        status=status,
        seconds=history.elapsed,
        history=tuple(history.records),
    )
