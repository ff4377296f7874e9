"""Theorem 3 of the second paper and the lemmas of its appendix E.3, held against the package's own Algorithm 2.

The problem is a `SingleUnit`, whose expectations over all mini-batches are finite sums: conditional means and
variances, L^emp, its field and its critical points are computed, not sampled.  Many independent runs share one
optimiser: everything that it does is elementwise, so that S runs of a problem with m constraints are one problem with
2 S parameters and S m constraints.

The limits (lambda hat, p hat) are replaced by the last iterates.  The numbers of Lemmas 14 and 15 are inferred from
the order of the text, whose statements are lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import zeta

from fairfront.errors import ArgumentError
from fairfront.risks import Array
from fairfront.theory.check import Check
from fairfront.theory.single_unit import Batches, SingleUnit, barrier

if TYPE_CHECKING:
    from fairfront.constrained import Algorithm2

__all__ = [
    "Bounds",
    "Path",
    "Schedule",
    "critical_points",
    "distance_to_critical",
    "field_of_last",
    "follow",
    "lemma_10",
    "lemma_11",
    "lemma_12",
    "lemma_13_bounded",
    "lemma_13_conservative",
    "lemma_13_mean",
    "lemma_14",
    "lemma_15",
    "lemma_16",
    "lemma_17",
    "lemma_18",
    "lemma_18_limit",
    "lemma_19",
    "lemma_20",
    "lemma_21",
    "lemma_22",
    "lemma_23",
    "lemma_24",
    "recursion",
    "theorem_3_1",
    "theorem_3_2",
    "theorem_3_3",
    "theorem_3_4",
    "window_edges",
]

# Rounding of sums of some ten terms of size one, over many steps.
_ROUNDING = 1e-9
# How much slower than the step sizes' own rate a quantity may vanish and still count as vanishing with them.
_SLACK = 1.5
_ROOT2 = math.sqrt(2.0)


# --- schedules -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """gamma^k, kappa^k and alpha^k: 1 - gamma^k = (1 - gamma0) (k - hold)^-power after step ``hold``.

    With power > 1 this is Algorithm 2; with power <= 1 the deviations are not summable, and Theorem 3 says nothing.

    Parameters
    ----------
    power : float, >= 0
        How fast 1 - gamma^k and 1 - kappa^k fall; 0 keeps them.
    gamma0, kappa0 : float, in [0, 1)
        The values up to step ``hold``.
    hold : int, >= 0
        L.
    alpha0, decay : float
        alpha^k = alpha0 (k + 1)^-decay, decay in (1/2, 1].
    """

    power: float
    gamma0: float = 0.9
    kappa0: float = 0.9
    hold: int = 0
    alpha0: float = 0.1
    decay: float = 0.75

    @property
    def summable(self) -> bool:
        """Whether the sum of 1 - gamma^k is finite."""
        return self.power > 1

    def deviation(self, steps: ArrayLike) -> Array:
        """Return (1 - gamma^k)/(1 - gamma0), which is (1 - kappa^k)/(1 - kappa0), at steps k."""
        late = np.maximum(np.asarray(steps) - self.hold, 1.0)
        return np.asarray(late**-self.power)

    def alpha(self, steps: ArrayLike) -> Array:
        """Return alpha^k at steps k."""
        return np.asarray(self.alpha0 * (np.asarray(steps) + 1.0) ** -self.decay)

    def remaining(self, start: int) -> float:
        """Return the sum of (1 - gamma^k)/(1 - gamma0) over all k >= start; infinite where it is not summable."""
        if not self.summable:
            return math.inf
        return max(self.hold + 1 - start, 0) + float(zeta(self.power, max(start - self.hold, 1)))

    def algorithm2(self) -> Algorithm2:
        """Return the package's schedule object, with its powers replaced where they are outside of Algorithm 2."""
        from fairfront.constrained import Algorithm2

        shared = {name: getattr(self, name) for name in ("gamma0", "kappa0", "hold", "alpha0", "decay")}
        if self.summable:
            return Algorithm2(exponent=self.power - 1.0, **shared)
        outer = self

        class Lingering(Algorithm2):
            """Algorithm 2 with deviations that are not summable."""

            def gamma(self, step: int) -> float:
                return 1.0 - (1.0 - self.gamma0) * float(outer.deviation(step))

            def kappa(self, step: int) -> float:
                return 1.0 - (1.0 - self.kappa0) * float(outer.deviation(step))

        return Lingering(**shared)


# --- the iterates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Path:
    """S runs of Algorithm 2, K steps each.

    Attributes
    ----------
    problem, size, schedule
        What was run; ``size`` is B.
    mu, delta : float
        Moreau smoothing and the centre's inertia.
    lambda_box, penalty_box : tuple of float
        The boxes of lambda and p.
    theta, centre : array of shape (K + 1, S, 2)
        x^k = (w, b) and s^k.
    lam, p : array of shape (K + 1, S, m)
        lambda^k and p^k.
    shares : array of shape (K, S, labels)
        The mini-batches.
    """

    problem: SingleUnit
    size: int
    schedule: Schedule
    mu: float
    delta: float
    lambda_box: tuple[float, float]
    penalty_box: tuple[float, float]
    theta: Array
    centre: Array
    lam: Array
    p: Array
    shares: Array

    @property
    def steps(self) -> int:
        """K."""
        return len(self.shares)

    @cached_property
    def x(self) -> Array:
        """The preactivations w + b, shape (K + 1, S)."""
        return self.theta.sum(-1)

    @cached_property
    def gap(self) -> Array:
        """|x^k - s^k|, shape (K + 1, S)."""
        return _norms(self.theta - self.centre)

    @cached_property
    def alpha(self) -> Array:
        """alpha^k, shape (K, 1)."""
        return self.schedule.alpha(np.arange(self.steps))[:, None]

    @cached_property
    def batches(self) -> Batches:
        """All mini-batches of this size."""
        return self.problem.batches(self.size)

    @cached_property
    def seen(self) -> Array:
        """The slope in x of the mini-batch's Lagrangian at each step, shape (K, S)."""
        at = self.problem.evaluate(self.x[:-1], self.shares)
        lam, p = self.lam[:-1], self.p[:-1]
        return np.asarray(at.df + (lam * barrier(at.g / p, order=1) * at.dg).sum(-1))

    @cached_property
    def _expected(self) -> tuple[Array, Array]:
        pieces = [
            self.problem.expected(self.x[i], self.lam[i], self.p[i], self.batches)[1:]
            for i in (slice(k, min(k + 512, self.steps)) for k in range(0, self.steps, 512))
        ]
        return np.concatenate([piece[0] for piece in pieces]), np.concatenate([piece[1] for piece in pieces])

    @property
    def mean(self) -> Array:
        """The conditional mean of `seen`, shape (K, S)."""
        return self._expected[0]

    @property
    def variance(self) -> Array:
        """The conditional variance of `seen`, shape (K, S)."""
        return self._expected[1]

    @property
    def noise(self) -> Array:
        """zeta^k in x: minus the difference of `seen` and its mean, shape (K, S); in (w, b) it is times (1, 1)."""
        return self.mean - self.seen

    @cached_property
    def value(self) -> Array:
        """L^emp at x^k with the last multipliers and penalties, shape (K + 1, S)."""
        hat = (np.broadcast_to(y[-1], y.shape) for y in (self.lam, self.p))
        lam, p = hat
        return np.concatenate(
            [
                self.problem.expected(self.x[k : k + 512], lam[k : k + 512], p[k : k + 512], self.batches)[0]
                for k in range(0, self.steps + 1, 512)
            ]
        )

    @cached_property
    def critical(self) -> list[Array]:
        """For each run the critical points of L^emp with its last multipliers and penalties."""
        return [critical_points(self, run) for run in range(self.x.shape[1])]

    @cached_property
    def distance(self) -> Array:
        """|x^k - nearest critical point of the last L^emp|, shape (K + 1, S)."""
        return np.column_stack([distance_to_critical(self, run) for run in range(self.x.shape[1])])


def follow(
    problem: SingleUnit,
    size: int,
    schedule: Schedule,
    *,
    runs: int,
    steps: int,
    start: float,
    seed: int = 0,
    mu: float = 1.0,
    delta: float = 0.5,
    lambda_init: float = 1.0,
    lambda_max: float = 10.0,
    penalty_min: float = 0.1,
    penalty_max: float = 1.0,
) -> Path:
    """Run the package's SPBM with SGD under a schedule, many runs at once, and keep every iterate.

    Parameters
    ----------
    problem : SingleUnit
    size : int
        Samples in a mini-batch, drawn with replacement.
    schedule : Schedule
    runs, steps : int
        S and K.
    start : float
        w + b at the start; w = b.
    seed : int
        Of the mini-batches.
    mu, delta : float
        Moreau smoothing.
    lambda_init, lambda_max, penalty_min, penalty_max : float
        Start and boxes; the multipliers' floor is the package's, 1e-4, in the place of the paper's 0.
    """
    if runs < 1 or steps < 2:
        raise ArgumentError("runs, steps", f"are {runs}, {steps}", "at least 1 run of 2 steps")
    import torch

    from fairfront.constrained import SPBM

    m, generator = problem.m, np.random.default_rng(seed)
    theta = torch.full((runs, 2), start / 2, dtype=torch.float64, requires_grad=True)
    optimizer = SPBM(
        [theta],
        runs * m,
        base=torch.optim.SGD,
        lr=schedule.alpha0,
        dtype=torch.float64,
        schedule=schedule.algorithm2(),
        mu=mu,
        delta=delta,
        lambda_init=lambda_init,
        lambda_max=lambda_max,
        penalty_min=penalty_min,
        penalty_max=penalty_max,
    )
    shares = problem.sample(generator, size, (steps, runs))
    kept: dict[str, Array] = {"theta": np.empty((steps + 1, runs, 2)), "centre": np.empty((steps + 1, runs, 2))}
    kept |= {"lam": np.empty((steps + 1, runs, m)), "p": np.empty((steps + 1, runs, m))}
    for k in range(steps + 1):
        state = optimizer.state
        assert state.penalties is not None
        kept["theta"][k] = theta.detach().numpy()
        kept["centre"][k] = kept["theta"][k] if state.centre is None else state.centre[0].numpy()
        kept["lam"][k] = state.multipliers.numpy().reshape(runs, m)
        kept["p"][k] = state.penalties.numpy().reshape(runs, m)
        if k < steps:
            at = problem.evaluate(kept["theta"][k].sum(-1), shares[k])
            # The graph is the tangent at x^k along the subgradient at hand, which is all that a step looks at.
            x = theta.sum(1)
            moved = x - x.detach()
            optimizer.zero_grad()
            loss = (torch.from_numpy(at.f) + torch.from_numpy(at.df) * moved).sum()
            optimizer.step(loss, (torch.from_numpy(at.g) + torch.from_numpy(at.dg) * moved[:, None]).reshape(-1))
    floor = optimizer.parameters.lambda_min
    boxes = ((floor, lambda_max), (penalty_min, penalty_max))
    found = (kept["theta"], kept["centre"], kept["lam"], kept["p"], shares)
    return Path(problem, size, schedule, mu, delta, *boxes, *found)


# --- constants -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """The constants of appendix E.3 for a path, on the ball X of radius R + 1 with R the largest |x^k|.

    Attributes
    ----------
    radius : float
        R.
    g_max, g_lipschitz : float
        G_max and L_g.
    slope, curvature : float
        S_1 and S_2, the largest phi' and phi'' on T = [-G_max/l_c, G_max/l_c].
    dual, penalty : float
        The largest |phi' - 1| on T, and |1/(phi'(g) + 1e-8) - 1| for |g| <= G_max.
    lagrangian : float
        S, a Lipschitz constant of every mini-batch's Lagrangian for all multipliers and penalties in the boxes.
    direction : float
        C_y = S + 2 mu R.
    field : float
        C_X = sqrt(m) L_g max(S_1, Lambda S_2 G_max / l_c^2).
    """

    radius: float
    g_max: float
    g_lipschitz: float
    slope: float
    curvature: float
    dual: float
    penalty: float
    lagrangian: float
    direction: float
    field: float

    @classmethod
    def of(cls, path: Path) -> Bounds:
        """Return the constants of a path."""
        radius = float(max(_norms(path.theta).max(), _norms(path.centre).max()))
        reach = _ROOT2 * (radius + 1.0)
        x = np.sort(np.concatenate([np.linspace(-reach, reach, 2001), path.problem.kinks]))[:, None]
        sides = [path.problem.evaluate(x, path.batches.shares, side=side) for side in (-1, 1)]
        g_max = max(float(np.abs(at.g).max()) for at in sides)
        g_lipschitz = _ROOT2 * max(float(np.abs(at.dg).max()) for at in sides)
        f_lipschitz = _ROOT2 * max(float(np.abs(at.df).max()) for at in sides)
        low, lambda_max = path.penalty_box[0], path.lambda_box[1]
        t = np.array([-1.0, 1.0]) * g_max / low  # phi' increases, so that its extremes are at the ends
        slope = float(barrier(t, order=1)[1])
        dual = float(np.abs(barrier(t, order=1) - 1.0).max())
        penalty = float(np.abs(1.0 / (barrier(low * t, order=1) + 1e-8) - 1.0).max())
        lagrangian = f_lipschitz + path.problem.m * lambda_max * slope * g_lipschitz
        # phi'' is 1 on the quadratic branch and smaller elsewhere.
        curvature = float(barrier([0.0], order=2)[0])
        field = math.sqrt(path.problem.m) * g_lipschitz * max(slope, lambda_max * curvature * g_max / low**2)
        direction = lagrangian + 2.0 * path.mu * radius
        return cls(radius, g_max, g_lipschitz, slope, curvature, dual, penalty, lagrangian, direction, field)


# --- L^emp at the limit ----------------------------------------------------------------------------------------------


def field_of_last(path: Path, run: int, x: Array) -> tuple[Array, Array]:
    """Return the ends of -D_p(x, lambda) in x, with a run's last multipliers and penalties."""
    return path.problem.field(x, path.lam[-1, run], path.p[-1, run], path.batches)


def critical_points(path: Path, run: int, *, resolution: int = 801) -> Array:
    """Return the points x > 0, and the kinks, where 0 lies in D of the last L^emp, as far as a grid shows them.

    Beside them every x < 0 is critical where the unit has no leak.  Between kinks the slope is continuous, and its
    roots are found by sign changes on ``resolution`` points; a root where the sign does not change is missed.
    """
    kinks, brackets = _brackets(path, run, resolution)

    def slope(x: float) -> float:
        return float(path.problem.expected(np.array(x), path.lam[-1, run], path.p[-1, run], path.batches)[1])

    return np.sort([*kinks, *(brentq(slope, a, b, xtol=1e-12) for a, b in brackets)])


def _brackets(path: Path, run: int, resolution: int) -> tuple[Array, list[tuple[float, float]]]:
    """Return the critical kinks, and the cells of a grid between kinks in which the last L^emp's slope changes sign."""
    hat, kinks = (path.lam[-1, run], path.p[-1, run], path.batches), path.problem.kinks
    low, high = path.problem.field(kinks, *hat)
    reach = _ROOT2 * (float(_norms(path.theta).max()) + 1.0)
    ends = np.append(kinks, max(reach, kinks[-1] + 1.0))
    inner = (np.arange(resolution) + 0.5) / resolution
    x = ends[:-1, None] + np.diff(ends)[:, None] * inner
    signs = np.sign(path.problem.expected(x, *hat)[1])
    cells = [(float(x[i, j]), float(x[i, j + 1])) for i, j in np.argwhere(signs[:, :-1] != signs[:, 1:])]
    return kinks[(low <= 0) & (high >= 0)], cells


def distance_to_critical(path: Path, run: int) -> Array:
    """Return |x^k - nearest critical point| along a run, shape (K + 1,)."""
    x, points = path.x[:, run], path.critical[run]
    distance = np.abs(x[:, None] - points).min(1)
    return np.where((x < 0) & (path.problem.leak == 0), 0.0, distance)


def window_edges(steps: int, *, hold: int = 0, count: int = 6) -> list[tuple[int, int]]:
    """Return dyadic windows of the n steps after ``hold``, the last first: (n/2, n), (n/4, n/2), and so on."""
    edges = [(steps - hold) >> i for i in range(count + 1)]
    return [(hold + low, hold + high) for high, low in pairwise(edges) if low >= 1]


# --- the algorithm itself --------------------------------------------------------------------------------------------


def recursion(path: Path) -> Check:
    """Check that the package's steps are Algorithm 2's: x, s, lambda and p recomputed from their predecessors."""
    lam, p = path.lam[:-1], path.p[:-1]
    fade = path.schedule.deviation(np.arange(path.steps))[:, None, None]
    g = path.problem.evaluate(path.x[:-1], path.shares).g
    y = -path.seen[..., None] - path.mu * (path.theta[:-1] - path.centre[:-1])
    theta = path.theta[:-1] + path.alpha[..., None] * y
    centre = path.delta * path.centre[:-1] + (1 - path.delta) * path.theta[1:]
    gamma, kappa = 1 - (1 - path.schedule.gamma0) * fade, 1 - (1 - path.schedule.kappa0) * fade
    multipliers = np.clip(lam * (gamma + (1 - gamma) * barrier(g / p, order=1)), *path.lambda_box)
    penalties = np.clip(p * (kappa + (1 - kappa) / (barrier(g, order=1) + 1e-8)), *path.penalty_box)
    pairs = ((theta, path.theta), (centre, path.centre), (multipliers, path.lam), (penalties, path.p))
    worst = max(float((np.abs(mine - other[1:]) / (1 + np.abs(mine))).max()) for mine, other in pairs)
    return Check.at_most("the package's steps are Algorithm 2's", worst, _ROUNDING, path.steps * path.x.shape[1])


# --- E.3.1: assumptions and what follows -----------------------------------------------------------------------------


def lemma_10(path: Path) -> Check:
    """Check the boxes of lambda and p and the series: alpha is square-summable and not summable, 1 - gamma summable.

    Measured is the largest excess over a box, infinite if a series has the wrong sum.
    """
    ends = ((path.lam, path.lambda_box), (path.p, path.penalty_box))
    excess = max(float(max((box[0] - y).max(), (y - box[1]).max())) for y, box in ends)
    right = 0.5 < path.schedule.decay <= 1 and path.schedule.summable
    return Check.at_most("boxes and series", excess if right else math.inf, 1e-12, path.lam.size + path.p.size)


def lemma_11(bounds: Bounds, path: Path, *, points: int = 2001) -> Check:
    """Check that phi is convex with phi' > 0 on T: measured is the largest of -phi' and -phi''."""
    t = np.linspace(-1.0, 1.0, points) * bounds.g_max / path.penalty_box[0]
    worst = max(-float(barrier(t, order=order).min()) for order in (1, 2))
    return Check.at_most("phi increases and is convex", worst, 0.0, 2 * points)


def lemma_12(path: Path, bounds: Bounds, generator: np.random.Generator, *, pairs: int = 2000) -> Check:
    """Check that every mini-batch's Lagrangian is Lipschitz in (x, lambda, p) together, on X and the boxes.

    The constant has the parts S for x, sqrt(m) max p |phi(g/p)| for lambda and sqrt(m) Lambda max |phi(t) - t phi'(t)|
    for p.  Measured is the largest ratio of left to right; half of the pairs are close together.
    """
    reach, m = _ROOT2 * (bounds.radius + 1.0), path.problem.m
    near = (np.arange(pairs) % 2 == 0)[:, None]

    def draw(box: tuple[float, float], columns: int) -> tuple[Array, Array]:
        one, other = generator.uniform(*box, (2, pairs, columns))
        return one, np.where(near, one + 1e-3 * (other - one), other)

    (x, x_other), lam, p = draw((-reach, reach), 1), draw(path.lambda_box, m), draw(path.penalty_box, m)
    values = [path.problem.lagrangian(z[:, 0], lam[i], p[i], path.batches)[0] for i, z in enumerate((x, x_other))]
    t = np.linspace(-1.0, 1.0, 2001) * bounds.g_max / path.penalty_box[0]
    # p phi(g/p) is largest in size at an end of g's range and of p's box.
    ends = [q * barrier(np.array([-1.0, 1.0]) * bounds.g_max / q) for q in path.penalty_box]
    by_lam = math.sqrt(m) * max(float(np.abs(end).max()) for end in ends)
    by_p = math.sqrt(m) * path.lambda_box[1] * float(np.abs(barrier(t) - t * barrier(t, order=1)).max())
    constant = math.sqrt(bounds.lagrangian**2 + by_lam**2 + by_p**2)
    # |x - x'| in (w, b) is at least that of the preactivations over sqrt(2).
    apart = np.sqrt((x - x_other)[:, 0] ** 2 / 2 + _norms(lam[0] - lam[1]) ** 2 + _norms(p[0] - p[1]) ** 2)
    ratio = np.abs(values[0] - values[1]).max(-1) / (constant * apart)
    return Check.at_most("Lagrangians are Lipschitz in x, lambda and p", ratio.max(), 1.0, pairs)


def lemma_13_mean(path: Path) -> Check:
    """Check that the mean direction is in the field: y^k + mu (x - s) is minus the mean over all mini-batches.

    Measured is how far the mean slope is outside of the field's interval, at all steps.
    """
    every = max(1, path.steps // 500)
    at = slice(0, path.steps, every)
    low, high = path.problem.field(path.x[:-1][at], path.lam[:-1][at], path.p[:-1][at], path.batches)
    outside = np.maximum(low - path.mean[at], path.mean[at] - high)
    scale = 1.0 + np.abs(path.mean[at])
    return Check.at_most("mean directions lie in the field", (outside / scale).max(), _ROUNDING, outside.size)


def lemma_13_bounded(path: Path, bounds: Bounds) -> Check:
    """Check that every direction is bounded by C_y = S + 2 mu R; measured is the largest of them."""
    y = -path.seen[..., None] - path.mu * (path.theta[:-1] - path.centre[:-1])
    return Check.at_most("directions are bounded", _norms(y).max(), bounds.direction, path.seen.size)


def lemma_13_conservative(path: Path, generator: np.random.Generator, *, pairs: int = 12) -> Check:
    """Check that the field is conservative for L^emp: along segments its integral is the difference of L^emp.

    Measured is the largest difference, for random ends in [-2, 2] and each run's last multipliers and penalties.
    """
    nodes, weights = np.polynomial.legendre.leggauss(24)
    worst, runs = 0.0, path.x.shape[1]
    for case in range(pairs):
        run = case % runs
        hat = (path.lam[-1, run], path.p[-1, run], path.batches)
        a, b = np.sort(generator.uniform(-2.0, 2.0, 2))
        # The pieces end at kinks, and are short: phi's third derivative jumps at its joint, which lies elsewhere for
        # each batch, so that a rule of any order is only of third order in the length of the piece that holds it.
        cuts = np.unique(np.concatenate([np.linspace(a, b, 129), [z for z in path.problem.kinks if a < z < b]]))
        half = np.diff(cuts) / 2
        x = (cuts[:-1] + half)[:, None] + half[:, None] * nodes
        integral = float((path.problem.expected(x, *hat)[1] @ weights) @ half)
        change = path.problem.expected(np.array([a, b]), *hat)[0]
        worst = max(worst, abs(float(change[1] - change[0]) - integral) / (1.0 + abs(integral)))
    return Check.at_most("the field is conservative for L^emp", worst, 1e-7, pairs)


def lemma_14(path: Path, bounds: Bounds) -> Check:
    """Check that the noise's conditional second moment is at most 4 C_y^2; measured is the largest, exact."""
    return Check.at_most(
        "second moment of the noise", 2.0 * path.variance.max(), 4 * bounds.direction**2, path.seen.size
    )


def lemma_15(path: Path) -> Check:
    """Check that the noise is a martingale difference: the standardised sum of all of it.

    With mean 0 given the past, the sum of zeta^k / sd^k over n steps has mean 0 and variance n exactly, whatever the
    dependence.  Measured is its absolute value over sqrt(n); by Chebyshev it exceeds 5 with probability <= 1/25, in
    the normal limit 6e-7.
    """
    sd = np.sqrt(path.variance)
    counted = sd > 1e-12
    z = path.noise[counted] / sd[counted]
    measured = abs(float(z.sum())) / math.sqrt(max(z.size, 1))
    return Check.at_most("noise is a martingale difference", measured, 5.0, int(z.size))


def lemma_16(path: Path) -> Check:
    """Check that sum alpha zeta converges, by Doob's inequality for its tails.

    For each dyadic start K_j: the mean over the runs of max_{k >= K_j} |sum_{i=K_j}^k alpha^i zeta^i|^2 is at most 4
    sum_{i >= K_j} (alpha^i)^2 E|zeta^i|^2.  Measured is the largest left over right, the expectations being means over
    the runs, whose error the bound 1 + 4/sqrt(runs) allows for.
    """
    worst, windows = 0.0, window_edges(path.steps)
    for low, _ in windows:
        sums = np.cumsum(path.alpha[low:] * path.noise[low:], axis=0)
        left = 2.0 * float((np.abs(sums).max(0) ** 2).mean())
        right = 4.0 * 2.0 * float((path.alpha[low:] ** 2 * path.variance[low:]).sum(0).mean())
        worst = max(worst, left / right if right > 0 else 0.0)
    return Check.at_most(
        "tails of the sum of alpha zeta", worst, 1.0 + 4.0 / math.sqrt(path.x.shape[1]), len(windows) * path.x.shape[1]
    )


# --- E.3.3: duals, penalties, centre, field --------------------------------------------------------------------------


def lemma_17(path: Path, bounds: Bounds) -> Check:
    """Check the length of the paths of lambda and p in every dyadic window; measured is the largest left over right.

    Right: Lambda sqrt(m) C sum (1 - gamma^k), and u_c sqrt(m) C' sum (1 - kappa^k).
    """
    worst, windows = 0.0, window_edges(path.steps)
    fade, root = path.schedule.deviation(np.arange(path.steps)), math.sqrt(path.problem.m)
    duals = (path.lam, path.lambda_box[1], bounds.dual, 1 - path.schedule.gamma0)
    penalties = (path.p, path.penalty_box[1], bounds.penalty, 1 - path.schedule.kappa0)
    for y, top, constant, start in (duals, penalties):
        moved = _norms(np.diff(y, axis=0))
        for low, high in windows:
            right = top * root * constant * start * float(fade[low:high].sum())
            worst = max(worst, float(moved[low:high].sum(0).max()) / right)
    return Check.at_most("paths of lambda and p", worst, 1.0 + _ROUNDING, 2 * len(windows) * path.x.shape[1])


def lemma_18(path: Path) -> Check:
    """Check e^(k+1) <= delta e^k + delta |x^(k+1) - x^k| at every step; measured is the largest excess."""
    moved = _norms(np.diff(path.theta, axis=0))
    excess = path.gap[1:] - path.delta * path.gap[:-1] - path.delta * moved
    return Check.at_most("recursion of |x - s|", excess.max(), 1e-12, excess.size)


def lemma_18_limit(path: Path, bounds: Bounds) -> Check:
    """Check e^k <= delta C_y sum_i delta^(k-1-i) alpha^i, which Lemma 9 sends to 0; measured: largest left over right.

    It is what the recursion gives with |x^(k+1) - x^k| <= alpha^k C_y, and e^0 = 0.
    """
    right = np.zeros(path.steps + 1)
    for k, alpha in enumerate(path.alpha[:, 0]):
        right[k + 1] = path.delta * (right[k] + alpha * bounds.direction)
    ratio = path.gap[1:].max(1) / right[1:]
    return Check.at_most("|x - s| is below a sequence that vanishes", ratio.max(), 1.0, path.gap.size)


def lemma_19(path: Path, bounds: Bounds, generator: np.random.Generator, *, pairs: int = 2000) -> Check:
    """Check that the field moves by at most C_X (|lambda - lambda'| + |p - p'|): random x, lambda, p, mini-batches.

    Measured is the largest ratio of left to right; half of the pairs are close together.
    """
    reach, m = _ROOT2 * (bounds.radius + 1.0), path.problem.m
    x = generator.uniform(-reach, reach, pairs)
    near = (np.arange(pairs) % 2 == 0)[:, None]

    def draw(box: tuple[float, float]) -> tuple[Array, Array]:
        one, other = generator.uniform(*box, (2, pairs, m))
        return one, np.where(near, one + 1e-3 * (other - one), other)

    (lam, lam_other), (p, p_other) = draw(path.lambda_box), draw(path.penalty_box)
    slopes = [path.problem.lagrangian(x, *at, path.batches)[1] for at in ((lam, p), (lam_other, p_other))]
    left = _ROOT2 * np.abs(slopes[0] - slopes[1]).max(-1)
    right = bounds.field * (_norms(lam - lam_other) + _norms(p - p_other))
    return Check.at_most("the field is Lipschitz in lambda and p", (left / right).max(), 1.0, pairs)


def lemma_20(path: Path, bounds: Bounds) -> Check:
    """Check dist(y^k, D_hat(x^k)) <= C_X (|lambda^k - hat| + |p^k - hat|) + mu |x^k - s^k| along the path.

    Measured is the largest left over right.
    """
    left, right = _field_error(path, bounds)
    counted = right > _ROUNDING
    worst = float((left[counted] / right[counted]).max()) if counted.any() else float(left.max())
    return Check.at_most("mean directions approach the limiting field", worst, 1.0 + _ROUNDING, left.size)


def _field_error(path: Path, bounds: Bounds) -> tuple[Array, Array]:
    """Return both sides of Lemma 20 at some 500 steps."""
    at = slice(0, path.steps, max(1, path.steps // 500))
    lam, p = (np.broadcast_to(y[-1], y[:-1][at].shape) for y in (path.lam, path.p))
    low, high = path.problem.field(path.x[:-1][at], lam, p, path.batches)
    offset = path.theta[:-1][at] - path.centre[:-1][at]
    y = -path.mean[at][..., None] - path.mu * offset
    # The nearest point of the field, which is an interval times (1, 1).
    nearest = np.clip(y.mean(-1), -high, -low)
    left = _norms(y - nearest[..., None])
    apart = _norms(path.lam[:-1][at] - lam) + _norms(path.p[:-1][at] - p)
    return left, bounds.field * apart + path.mu * path.gap[:-1][at]


def lemma_21(path: Path) -> Check:
    """Check the Cesaro averages: over the last window the mean of y^k is as near to D_hat(x hat) as the y^k on average.

    x hat is the critical point nearest to the end.  Measured is the largest left over right.
    """
    low, high = window_edges(path.steps)[0]
    worst = 0.0
    for run in range(path.x.shape[1]):
        end, points = path.x[-1, run], path.critical[run]
        hat = end if end < 0 else points[np.abs(points - end).argmin()]
        a, b = (float(z) for z in field_of_last(path, run, np.array(hat)))
        offset = path.theta[low:high, run] - path.centre[low:high, run]
        y = -path.mean[low:high, run, None] - path.mu * offset
        apart = _norms(y - np.clip(y.mean(-1), -b, -a)[:, None])
        mean = y.mean(0)
        left = float(np.linalg.norm(mean - np.clip(mean.mean(), -b, -a)))
        worst = max(worst, left / float(apart.mean()) if apart.mean() > _ROUNDING else 0.0)
    return Check.at_most("Cesaro averages of the mean directions", worst, 1.0 + _ROUNDING, path.x.shape[1])


# --- E.3.4: the Lyapunov function ------------------------------------------------------------------------------------


def lemma_22(path: Path, *, resolution: int = 4001) -> Check:
    """Check that Phi = max(L^emp, c) is L^emp along the path, c being the least value on X; measured is c's excess.

    The minimum is taken on a grid refined by the critical points, where it is attained if it is inside.
    """
    worst, reach = -math.inf, _ROOT2 * (float(_norms(path.theta).max()) + 1.0)
    for run in range(path.x.shape[1]):
        x = np.concatenate([np.linspace(-reach, reach, resolution), path.critical[run]])
        least = path.problem.expected(x, path.lam[-1, run], path.p[-1, run], path.batches)[0].min()
        worst = max(worst, float(least - path.value[:, run].min()))
    return Check.at_most("L^emp is bounded from below by its minimum on X", worst, _ROUNDING, path.value.size)


def lemma_23(path: Path, *, resolution: int = 400) -> Check:
    """Check that critical values are few: on a grid four times finer no more critical points are found.

    Measured and bound are the numbers found with 4 ``resolution`` and ``resolution`` points between two kinks.
    """
    coarse, fine = 0, 0
    for run in range(path.x.shape[1]):
        first, second = (_brackets(path, run, count) for count in (resolution, 4 * resolution))
        coarse, fine = coarse + len(first[0]) + len(first[1]), fine + len(second[0]) + len(second[1])
    return Check.at_most("critical values do not accumulate", fine, coarse, path.x.shape[1])


def lemma_24(path: Path, *, starts: int = 5, steps: int = 60) -> Check:
    """Check the descent along trajectories of x' in D_hat(x): L^emp falls, and by the integral of |x'|^2.

    Trajectories start at equally spaced x in (0, 2), in every run's last L^emp, are followed by the classical
    Runge-Kutta method in steps of 1/20 of the inverse curvature, and end before they would cross a kink.  Measured is
    the largest relative error of the identity, infinite if L^emp rises.
    """
    kinks = path.problem.kinks
    first = np.linspace(0.0, 2.0, starts + 2)[1:-1]
    first = np.where(np.abs(first[:, None] - kinks).min(1) < 1e-3, first + 0.01, first)
    x = np.broadcast_to(first[:, None], (starts, path.x.shape[1])).copy()
    lam, p = path.lam[-1], path.p[-1]

    def slope(z: Array) -> Array:
        return path.problem.expected(z, lam, p, path.batches)[1]

    grid = np.linspace(0.005, 2.0, 200)[:, None]
    curvature = np.abs(np.diff(slope(grid), axis=0) / np.diff(grid, axis=0)).max(0)
    step = 0.05 / (1.0 + curvature)
    value = top = path.problem.expected(x, lam, p, path.batches)[0]
    dissipated, rises, alive = np.zeros_like(x), -math.inf, np.ones(x.shape, dtype=bool)
    for _ in range(steps):
        # x = w + b moves at -2 L', and |x'|^2 in (w, b) is 2 L'^2.
        k1 = slope(x)
        k2 = slope(x - step * k1)
        k3 = slope(x - step * k2)
        k4 = slope(x - 2 * step * k3)
        # A step that comes near a kink is not taken: its inner points may lie beyond.
        near = np.abs(np.stack([k1, k2, k3, k4])).max(0) * 2 * step
        alive &= (np.abs(x[..., None] - kinks) > near[..., None]).all(-1)
        dissipated += np.where(alive, step / 3 * (k1**2 + 2 * k2**2 + 2 * k3**2 + k4**2), 0.0)
        x = np.where(alive, x - step / 3 * (k1 + 2 * k2 + 2 * k3 + k4), x)
        now = path.problem.expected(x, lam, p, path.batches)[0]
        rises, value = max(rises, float((now - value).max())), now
    error = math.inf if rises > 1e-9 else float((np.abs(top - value - dissipated) / (1.0 + dissipated)).max())
    return Check.at_most("L^emp descends along trajectories of the field", error, 1e-4, x.size)


# --- Theorem 3 -------------------------------------------------------------------------------------------------------


def theorem_3_1(path: Path) -> Check:
    """Check item 1, lambda^k and p^k converge: the lengths of their paths shrink from one dyadic window to the next.

    Measured is the last window's over the third's before it (windows of k - L), the larger of lambda's and p's, means
    over the runs.  The schedule alone makes it 8^(1 - power); the bound is the root of that, below 1.  Where it stays
    so the lengths add up to a finite sum: that it does no finite run shows, Lemma 17 proves it.
    """
    windows = window_edges(path.steps, hold=path.schedule.hold)
    (low, high), (first, then) = windows[0], windows[3]
    worst = 0.0
    for y in (path.lam, path.p):
        moved = _norms(np.diff(y, axis=0)).mean(1)
        worst = max(worst, _ratio(float(moved[low:high].sum()), float(moved[first:then].sum())))
    bound = 8.0 ** ((1.0 - max(path.schedule.power, 1.0)) / 2.0)
    return Check.at_most("lambda and p converge", worst, bound, 2 * path.x.shape[1])


def theorem_3_2(path: Path) -> Check:
    """Check item 2, |x^k - s^k| goes to 0: it falls from window to window as alpha does.

    Measured is the last dyadic window's root mean square over the third's before it; the bound is the step sizes'
    ratio, with some slack.
    """
    return _vanishes("|x - s| vanishes", path, path.gap, 1.0)


def theorem_3_3(path: Path) -> Check:
    """Check item 3, L^emp at x^k converges: its range in a window falls with the root of the step sizes or faster."""
    (low, high), (first, then) = (window_edges(path.steps)[i] for i in (0, 3))
    last, before = (float(np.ptp(path.value[a : b + 1], axis=0).mean()) for a, b in ((low, high), (first, then)))
    bound = _SLACK * _shrinkage(path) ** 0.5
    return Check.at_most("values of L^emp converge", _ratio(last, before), bound, path.x.shape[1])


def theorem_3_4(path: Path) -> Check:
    """Check item 4, limit points are critical: the distance to the critical points falls with the root of alpha."""
    return _vanishes("limit points are critical", path, path.distance, 0.5)


def _vanishes(statement: str, path: Path, y: Array, rate: float) -> Check:
    (low, high), (first, then) = (window_edges(path.steps)[i] for i in (0, 3))
    last, before = (float(np.sqrt((y[a : b + 1] ** 2).mean())) for a, b in ((low, high), (first, then)))
    return Check.at_most(statement, _ratio(last, before), _SLACK * _shrinkage(path) ** rate, path.x.shape[1])


def _shrinkage(path: Path) -> float:
    """Return the step size in the last dyadic window over that in the third before it."""
    late, early = (path.schedule.alpha(window_edges(path.steps)[i][0]) for i in (0, 3))
    return float(late / early)


def _ratio(last: float, before: float) -> float:
    """Return a quotient of sizes; 0 where nothing moves any more."""
    return 0.0 if last == 0 else last / before if before > 0 else math.inf


def _norms(y: Array) -> Array:
    return np.asarray(np.linalg.norm(y, axis=-1))
