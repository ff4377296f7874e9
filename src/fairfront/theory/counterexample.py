"""Propositions 3 to 6 of the second paper: the problem of its appendix E.4, on which no subgradient method moves.

What is algebra is checked in fractions, without rounding.  `frozen_run` runs the package's own optimisers on the
network and the 1000 samples themselves.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from fairfront.errors import unknown_name
from fairfront.risks import Array
from fairfront.theory.check import Check
from fairfront.theory.single_unit import COUNTEREXAMPLE, SingleUnit, barrier

__all__ = [
    "MULTIPLIER",
    "SOLUTION",
    "VARIANTS",
    "Trajectory",
    "Witness",
    "flat_landscape",
    "frozen_run",
    "lemma_25",
    "proposition_3",
    "proposition_4",
    "proposition_5",
    "proposition_6_definable",
    "proposition_6_expectations",
    "proposition_6_lipschitz",
    "witness",
]

SOLUTION, MULTIPLIER = Fraction(1, 2), Fraction(8, 5)
"""x* and lambda* of Proposition 4."""


# --- Proposition 4: the solution -------------------------------------------------------------------------------------


def proposition_4(problem: SingleUnit = COUNTEREXAMPLE) -> Check:
    """Check in fractions that [1/2, 1] is the feasible set, x* = 1/2 the one solution, f* = 1/4, and KKT with 8/5.

    On x > 0 f and g are quadratics, which a few values determine; derivatives are central differences, exact for
    quadratics.  Measured is the number of conditions that fail.
    """
    f, g = (lambda x: problem.exact(x)[0]), (lambda x: problem.exact(x)[1][0])

    def slope(function: Any, x: Fraction) -> Fraction:
        h = Fraction(1, 8)
        return Fraction(function(x + h) - function(x - h)) / (2 * h)

    x, lam = SOLUTION, MULTIPLIER
    grid = [Fraction(k, 40) for k in range(-120, 121)]
    inside = [z for z in grid if x <= z <= 1]
    conditions = [
        f(x) == Fraction(1, 4),
        g(x) == 0 == g(Fraction(1)),
        all((g(z) <= 0) == (z in inside) for z in grid),
        all(f(a) < f(b) for a, b in pairwise(inside)),
        slope(f, x) + lam * slope(g, x) == 0,
        lam >= 0 and lam * g(x) == 0,
    ]
    failed = sum(not condition for condition in conditions)
    return Check.at_most("solution, value, multiplier and feasible set", failed, 0.0, len(conditions) + len(grid))


# --- Proposition 5: no weak convexity --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Witness:
    """Two points whose midpoint lies above the chord of h + (C/2) x^2, so that h is not C-weakly convex.

    Attributes
    ----------
    constant : Fraction
        C.
    t : Fraction
        The points are -t and t, the midpoint is 0.
    excess : Fraction
        Value at the midpoint less the mean of the values at the ends: > 0.
    """

    constant: Fraction
    t: Fraction
    excess: Fraction


def witness(constant: Fraction, function: str, problem: SingleUnit = COUNTEREXAMPLE) -> Witness:
    """Return a witness against C-weak convexity of the objective ("f") or the constraint ("g"), in fractions.

    With slope -s on the right of 0 and a curvature of 2, the excess at 0 between -t and t is (s t - (C + 1) t^2)/2,
    which is largest, s^2/(8 (C + 1)), at t = s/(2 (C + 1)): positive for every C.  s is 1/5 for f and 3/2 for g.
    """
    if function not in ("f", "g"):
        raise unknown_name("function", function, ("f", "g"))
    s = Fraction(1, 5) if function == "f" else Fraction(3, 2)
    t = s / (2 * (constant + 1))

    def value(x: Fraction) -> Fraction:
        f, g = problem.exact(x)
        return (f if function == "f" else g[0]) + constant / 2 * x * x

    return Witness(constant, t, value(Fraction(0)) - (value(-t) + value(t)) / 2)


def proposition_5(constants: Iterable[int], problem: SingleUnit = COUNTEREXAMPLE) -> Check:
    """Check that neither f nor g is C-weakly convex, for every given C; measured is the least excess of a witness.

    A convex function has no witness (an excess <= 0), so that every excess must be positive.
    """
    found = [witness(Fraction(c), name, problem) for c in constants for name in ("f", "g")]
    least = min(w.excess for w in found)
    return Check("midpoints above the chord for every C", float(least), 0.0, least > 0, len(found))


# --- Proposition 6: an instance of problem (2) -----------------------------------------------------------------------


def proposition_6_expectations(sizes: Sequence[int] = (1, 2, 5), problem: SingleUnit = COUNTEREXAMPLE) -> Check:
    """Check in fractions that the means over all mini-batches of f-bar and g-bar are f and g; measured: failures."""
    points = [Fraction(k, 4) for k in range(-6, 7)]
    rare = Fraction(problem.shares[1]).limit_denominator(1000)
    failed, cases = 0, 0
    for size in sizes:
        chances = [math.comb(size, n) * rare**n * (1 - rare) ** (size - n) for n in range(size + 1)]
        batches = [_batch(problem, n, size) for n in range(size + 1)]
        for x in points:
            values = [batch.exact(x) for batch in batches]
            f, g = problem.exact(x)
            mean_f = sum((c * v[0] for c, v in zip(chances, values, strict=True)), Fraction(0))
            mean_g = sum((c * v[1][0] for c, v in zip(chances, values, strict=True)), Fraction(0))
            failed += (mean_f != f) + (mean_g != g[0])
            cases += 2
    return Check.at_most("means over mini-batches are f and g", failed, 0.0, cases)


def proposition_6_lipschitz(
    generator: np.random.Generator,
    *,
    size: int = 8,
    radius: float = 3.0,
    pairs: int = 2000,
    problem: SingleUnit = COUNTEREXAMPLE,
) -> Check:
    """Check that f-bar and g-bar are Lipschitz on |x| <= radius, for every mini-batch; measured: left over right.

    The constant is the largest slope, which for these quadratics is at an end of an interval.
    """
    batches = problem.batches(size)
    ends = np.array([0.0, radius])[:, None]
    most = [problem.evaluate(ends, batches.shares, side=1), problem.evaluate(-ends, batches.shares, side=-1)]
    constants = [max(float(np.abs(at[i]).max()) for at in most) for i in (2, 3)]
    one, other = generator.uniform(-radius, radius, (2, pairs, 1))
    a, b = (problem.evaluate(x, batches.shares) for x in (one, other))
    apart = np.abs(one - other)
    quotients = (np.abs(a.f - b.f) / apart, np.abs(a.g - b.g)[..., 0] / apart)
    worst = max(float(q.max()) / c for q, c in zip(quotients, constants, strict=True))
    return Check.at_most("f-bar and g-bar are Lipschitz on bounded sets", worst, 1.0 + 1e-9, 2 * pairs)


def proposition_6_definable(size: int = 8, problem: SingleUnit = COUNTEREXAMPLE) -> Check:
    """Check that every f-bar and g-bar is a quadratic on each side of 0, hence semialgebraic; measured: failures.

    Third differences of a quadratic vanish, in fractions exactly.  That a graph of two pieces of polynomials is
    semialgebraic, and so definable, is no matter of numbers.
    """
    failed, cases = 0, 0
    for n in range(size + 1):
        batch = _batch(problem, n, size)
        for start in (Fraction(0), Fraction(-9, 4)):
            points = [start + Fraction(k, 4) for k in range(10)]
            for values in zip(*((batch.exact(x)[0], batch.exact(x)[1][0]) for x in points), strict=True):
                third = [d - 3 * c + 3 * b - a for a, b, c, d in zip(values, values[1:], values[2:], values[3:])]
                failed += sum(difference != 0 for difference in third)
                cases += len(third)
    return Check.at_most("f-bar and g-bar are quadratics on both sides of 0", failed, 0.0, cases)


def _batch(problem: SingleUnit, n: int, size: int) -> SingleUnit:
    """Return the problem of one mini-batch with n labels of the second kind."""
    return dataclasses.replace(problem, shares=(1 - n / size, n / size))


# --- Lemma 25 and Figure 10: flat on the left ------------------------------------------------------------------------


def lemma_25(generator: np.random.Generator, *, cases: int = 200, problem: SingleUnit = COUNTEREXAMPLE) -> Check:
    """Check that on x < 0 every mini-batch's f, g and Lagrangian has the subdifferential {0}, whatever the duals.

    Measured is the largest absolute slope from either side, for random x, lambda, p, both penalty-barrier functions
    and all mini-batches of 1, 8 and 32 samples.
    """
    worst = 0.0
    for size in (1, 8, 32):
        batches = problem.batches(size)
        x = -generator.exponential(1.0, cases) * 10.0 ** generator.integers(-8, 4, cases)
        lam = 10.0 ** generator.uniform(-4, 4, (cases, 1))
        p = 10.0 ** generator.uniform(-3, 1, (cases, 1))
        for side in (-1, 1):
            at = problem.evaluate(x[:, None], batches.shares, side=side)
            slopes = [at.df, at.dg]
            slopes += [problem.lagrangian(x, lam, p, batches, phi=phi, side=side)[1] for phi in ("ql", "qr")]
            worst = max(worst, *(float(np.abs(slope).max()) for slope in slopes))
    return Check.at_most("subdifferentials on x < 0 are {0}", worst, 0.0, 3 * cases)


def flat_landscape(
    lam: Array, p: Array, *, low: float = -3.0, points: int = 601, phi: str = "ql", problem: SingleUnit = COUNTEREXAMPLE
) -> Check:
    """Check that f, g and the Lagrangian take one value on [low, 0), for each lambda and p; measured: largest range."""
    x = np.linspace(low, 0.0, points)[:-1]
    at = problem.evaluate(x)
    values = [at.f, at.g[:, 0]]
    values += [at.f + a * b * barrier(at.g[:, 0] / b, phi) for a in lam for b in p]
    return Check.at_most("ranges on x < 0", max(float(np.ptp(v)) for v in values), 0.0, len(values) * len(x))


# --- Proposition 3 and Figure 11: runs of the package's optimisers ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run of an optimiser.

    Attributes
    ----------
    theta : array of shape (K + 1, 2)
        (w, b).
    lam, p : array of shape (K + 1,)
        Multiplier and penalty parameter; NaN where the method has none.
    """

    theta: Array
    lam: Array
    p: Array

    @property
    def drift(self) -> float:
        """The largest |(w, b)^k - (w, b)^0| over the run."""
        return float(np.linalg.norm(self.theta - self.theta[0], axis=1).max())


VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "spbm": {
        "Algorithm 1, Adam, ADAPT": {"rule": "adapt", "mu": 1.0},
        "Algorithm 1, Adam, ALM, phi_QR": {"rule": "alm", "phi": "qr", "mu": 0.0},
        "Algorithm 2, SGD": {"base": "SGD", "lr": 0.1, "schedule": {"hold": 50}, "mu": 1.0},
    },
    "ssl-alm": {
        "quadratic, Adam": {"penalty": "quadratic", "rho": 1.0, "eta": 0.1, "mu": 1.0},
        "shifted, Adam": {"penalty": "shifted", "rho": 1.0, "eta": 0.1, "mu": 1.0},
        "rho = 0, SGD": {"base": "SGD", "rho": 0.0, "eta": 0.1, "mu": 1.0},
    },
    "ssw": {
        "Adam": {"constraint_lr": 0.05, "mu": 1.0},
        "SGD": {"base": "SGD", "constraint_lr": 0.05, "mu": 0.0},
    },
    "adam": {
        "no constraint": {"beta": 0.0},
        "hinge penalty, beta = 10": {"beta": 10.0, "penalty": "hinge"},
    },
}
"""The methods of the paper and their settings here, by method and variant; the first of each is drawn."""


def frozen_run(method: str, variant: str, start: float, *, seed: int, steps: int, batch: int = 32) -> Trajectory:
    """Train the unit on the 1000 samples with one of the package's optimisers, and keep every step.

    Parameters
    ----------
    method, variant : str
        A key of `VARIANTS` and one of its variants.
    start : float
        w + b at the start; w = b.
    seed : int
        Of the mini-batches.
    steps, batch : int
        Steps, and samples in a mini-batch.
    """
    import torch

    from fairfront.constrained import SPBM, SSLALM, Algorithm2, PenalizedAdam, SSw

    if method not in VARIANTS:
        raise unknown_name("method", method, VARIANTS)
    if variant not in VARIANTS[method]:
        raise unknown_name("variant", variant, VARIANTS[method])
    settings = dict(VARIANTS[method][variant])
    base = getattr(torch.optim, settings.pop("base", "Adam"))
    if "schedule" in settings:
        settings["schedule"] = Algorithm2(**settings["schedule"])
    w, b = (torch.tensor([start / 2], requires_grad=True) for _ in range(2))
    optimizer = {"spbm": SPBM, "ssl-alm": SSLALM, "ssw": SSw, "adam": PenalizedAdam}[method](
        [w, b], 1, base=base, **({"lr": 0.05} | settings)
    )
    labels = torch.tensor([1.0] * 100 + [0.0] * 900)
    inputs = torch.ones(1000)
    weights = torch.where(labels == 1, 0.75 / 0.1, 0.25 / 0.9)
    generator = torch.Generator().manual_seed(seed)
    kept = np.full((steps + 1, 4), np.nan)
    for k in range(steps + 1):
        state = optimizer.state
        kept[k, :2] = w.item(), b.item()
        if method in ("spbm", "ssl-alm"):
            kept[k, 2] = state.multipliers.item()
        if state.penalties is not None:
            kept[k, 3] = state.penalties.item()
        if k < steps:
            rows = torch.randint(1000, (batch,), generator=generator)
            errors = (torch.relu(w * inputs[rows] + b) - labels[rows]).square()
            optimizer.zero_grad()
            optimizer.step(errors.mean(), (weights[rows] * errors).mean().reshape(1) - 0.25)
    return Trajectory(kept[:, :2], kept[:, 2], kept[:, 3])


def proposition_3(drifts: Iterable[float]) -> Check:
    """Check that runs from x < 0 never moved: measured is the largest drift, which must be 0 exactly."""
    drifts = list(drifts)
    return Check.at_most("runs from x < 0 stay", max(drifts, default=math.nan), 0.0, len(drifts))
