"""Ways off the flat side of the second paper's counterexample, tried with the package's SPBM, many runs at once.

All runs of a setting share one optimiser, which is elementwise: S runs are 2 S parameters and S constraints.  What is
counted is what a run asks of the network: mini-batch gradients, and mini-batch values of points that are only probed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfront.errors import unknown_name
from fairfront.risks import Array
from fairfront.theory.single_unit import COUNTEREXAMPLE, Evaluation, SingleUnit, barrier

__all__ = ["ESCAPES", "Attempt", "Outcome", "attempt", "smoothed_slope"]

_ROOT2 = math.sqrt(2.0)
# A run that is so far out has diverged: nothing brings it back, and its squares would soon overflow.
_DIVERGED = 1e4


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What is done about the flat side, beside SPBM.

    Attributes
    ----------
    base : {"Adam", "SGD"}
        The primal optimiser.
    leak : float
        Slope of the unit below 0.
    sd : float
        Randomised smoothing: gradients are taken at (w, b) + sd N(0, I), means of ``draws`` of them.
    draws : int
    annealed : bool
        Whether sd falls linearly to 0 over the steps.
    redraw : {"", "afresh", "around"}
        Re-initialisation of a run that has not moved for ``patience`` steps: (w, b) from N(0, I), or from N((w, b), I).
    probes : int
        Feasibility restart of such a run: that many random points around it are tried, and the best is taken if its
        constraint is smaller.
    doubling : bool
        Whether the radius of the probes doubles, up to 2^15, until one is better; else it stays 1.
    reset : bool
        Whether multipliers and penalties start anew with a new point.
    patience : int
    weight_decay : float
        Of AdamW, in the place of Adam.
    """

    base: str = "Adam"
    leak: float = 0.0
    sd: float = 0.0
    draws: int = 1
    annealed: bool = True
    redraw: str = ""
    probes: int = 0
    doubling: bool = True
    reset: bool = True
    patience: int = 20
    weight_decay: float = 0.0


ESCAPES: dict[str, dict[str, Attempt]] = {
    "smoothing": {
        "sd 0.3 to 0": Attempt(sd=0.3, draws=4),
        "sd 1 to 0": Attempt(sd=1.0, draws=4),
        "sd 3 to 0": Attempt(sd=3.0, draws=4),
        "sd 1 throughout": Attempt(sd=1.0, draws=4, annealed=False),
    },
    "leaky": {
        "slope 0.1": Attempt(leak=0.1),
        "slope 0.01": Attempt(leak=0.01),
        "slope 0.1, SGD": Attempt(leak=0.1, base="SGD"),
        "slope 0.01, SGD": Attempt(leak=0.01, base="SGD"),
    },
    "re-initialisation": {
        "afresh": Attempt(redraw="afresh"),
        "afresh, duals kept, SGD": Attempt(redraw="afresh", reset=False, base="SGD"),
        "around the present point": Attempt(redraw="around"),
    },
    "restart": {
        "16 probes, radius doubles": Attempt(probes=16),
        "4 probes, radius doubles": Attempt(probes=4),
        "16 probes, radius 1": Attempt(probes=16, doubling=False),
        "16 probes, duals kept, SGD": Attempt(probes=16, reset=False, base="SGD"),
    },
    "weight-decay": {"AdamW, 0.1": Attempt(weight_decay=0.1)},
}
"""What is tried, by name and variant."""


@dataclass(eq=False)
class Outcome:
    """What S runs did.

    Attributes
    ----------
    x : array of shape (S,)
        w + b at the end; NaN where a run diverged.
    drift : array of shape (S,)
        The largest |(w, b)^k - (w, b)^0|; infinite where a run diverged.
    reached : array of shape (S,)
        The first step whose x is feasible; NaN where none is.
    gradients, probes : array of shape (S,)
        Mini-batch gradients and probed mini-batch values, up to that step or, where there is none, to the end.
    """

    x: Array
    drift: Array
    reached: Array
    gradients: Array
    probes: Array


def attempt(
    setting: Attempt,
    starts: Array,
    *,
    seed: int,
    steps: int,
    batch: int = 32,
    lr: float = 0.02,
    tolerance: float = 0.0,
    problem: SingleUnit = COUNTEREXAMPLE,
) -> Outcome:
    """Run SPBM with one setting from many starts.

    Parameters
    ----------
    setting : Attempt
    starts : array of shape (S,)
        w + b at the start of each run; w = b.
    seed : int
        Of mini-batches, perturbations, redrawn points and probes.
    steps, batch : int
        Steps of every run, samples in a mini-batch.
    lr : float
        The learning rate at its largest; warm-up and cosine as in the paper.
    tolerance : float
        x is feasible if the exact g(x) is at most this.
    problem : SingleUnit
        The problem, of which the unit may be replaced by a leaky one; feasibility is judged without.
    """
    import torch

    from fairfront.constrained import SPBM, WarmupCosine

    if setting.redraw not in ("", "afresh", "around"):
        raise unknown_name("redraw", setting.redraw, ("afresh", "around"))
    generator, runs = np.random.default_rng(seed), len(starts)
    trained = dataclasses.replace(problem, leak=setting.leak)
    first = np.repeat(np.asarray(starts, dtype=np.float64)[:, None] / 2, 2, axis=1)
    theta = torch.tensor(first, requires_grad=True)
    base = "AdamW" if setting.weight_decay else setting.base
    options = {"weight_decay": setting.weight_decay} if setting.weight_decay else {}
    optimizer = SPBM(
        [theta],
        runs,
        base=getattr(torch.optim, base),
        lr=lr,
        base_options=options,
        dtype=torch.float64,
        mu=1.0,
        lambda_init=1.0,
        lambda_max=10.0,
    )
    schedule, stuck = WarmupCosine(), np.zeros(runs, dtype=np.int64)
    outcome = Outcome(first.sum(1), *(np.zeros(runs) for _ in range(4)))
    outcome.reached[:] = np.nan
    lost = np.zeros(runs, dtype=bool)
    for k in range(steps):
        now = theta.detach().numpy()
        feasible = ~lost & (problem.evaluate(now.sum(1)).g[:, 0] <= tolerance)
        outcome.reached[feasible & np.isnan(outcome.reached)] = k
        searching = np.isnan(outcome.reached)
        if setting.redraw or setting.probes:
            rows = np.flatnonzero(stuck >= setting.patience)
            if len(rows):
                points, asked = _elsewhere(setting, problem, now[rows], batch, generator)
                outcome.probes[rows] += asked * searching[rows]
                _place(optimizer, theta, rows, points, reset=setting.reset)
                stuck[rows] = 0
        sd = setting.sd * (1 - k / steps if setting.annealed else 1.0)
        at = _gradients(
            trained, np.where(lost[:, None], first, theta.detach().numpy()), sd, setting.draws, batch, generator
        )
        outcome.gradients += searching * (setting.draws if setting.sd else 1)
        before = theta.detach().numpy().copy()
        optimizer.rescale_lr(schedule.factor(k, steps))
        optimizer.zero_grad()
        moved = (theta - theta.detach()).sum(1)
        loss = (torch.from_numpy(at.f) + torch.from_numpy(at.df) * moved).sum()
        optimizer.step(loss, torch.from_numpy(at.g[:, 0]) + torch.from_numpy(at.dg[:, 0]) * moved)
        after = theta.detach().numpy()
        far = ~lost & (np.linalg.norm(after, axis=1) > _DIVERGED)
        if far.any():  # parked where they started, for the others' sake, and not looked at again
            lost |= far
            _place(optimizer, theta, np.flatnonzero(far), first[far], reset=True)
            after = theta.detach().numpy()
        same = ~lost & (after == before).all(1) & (problem.evaluate(after.sum(1)).g[:, 0] > tolerance)
        stuck = np.where(same, stuck + 1, 0)
        outcome.drift = np.fmax(outcome.drift, np.linalg.norm(after - first, axis=1))
    outcome.x = np.where(lost, np.nan, theta.detach().numpy().sum(1))
    outcome.drift[lost] = np.inf
    last = np.isnan(outcome.reached) & (problem.evaluate(outcome.x).g[:, 0] <= tolerance)
    outcome.reached[last] = steps
    return outcome


def _gradients(
    problem: SingleUnit, theta: Array, sd: float, draws: int, batch: int, generator: np.random.Generator
) -> Evaluation:
    """Return one mini-batch's values and slopes for each run, or their means at randomly perturbed points."""
    runs = len(theta)
    if sd == 0:
        return problem.evaluate(theta.sum(1), problem.sample(generator, batch, (runs,)))
    x = theta.sum(1) + sd * _ROOT2 * generator.normal(size=(draws, runs))
    at = problem.evaluate(x, problem.sample(generator, batch, (draws, runs)))
    return Evaluation(*(value.mean(0) for value in at))


def _elsewhere(
    setting: Attempt, problem: SingleUnit, theta: Array, batch: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return a new point for each run that is stuck, and how many points were probed for it."""
    count = len(theta)
    if setting.redraw:
        centre = theta if setting.redraw == "around" else 0.0
        return centre + generator.normal(size=theta.shape), np.zeros(count)
    points, asked, open_ = theta.copy(), np.zeros(count), np.arange(count)
    here = problem.evaluate(theta.sum(1), problem.sample(generator, batch, (count,))).g[:, 0]
    for level in range(16 if setting.doubling else 1):
        tried = theta[open_, None] + 2.0**level * generator.normal(size=(len(open_), setting.probes, 2))
        shares = problem.sample(generator, batch, tried.shape[:2])
        g = problem.evaluate(tried.sum(-1), shares).g[..., 0]
        # The same mini-batch's value where the output is 0, so that only a moved output can be better.
        g -= problem.evaluate(np.full(tried.shape[:2], -1.0), shares).g[..., 0] - here[open_, None]
        asked[open_] += setting.probes
        best = g.argmin(1)
        better = g[np.arange(len(open_)), best] < here[open_]
        points[open_[better]] = tried[np.arange(len(open_)), best][better]
        open_ = open_[~better]
        if not len(open_):
            break
    return points, asked


def _place(optimizer: Any, theta: Any, rows: NDArray[np.int64], points: Array, *, reset: bool) -> None:
    """Put some runs elsewhere, their centres with them, and, if asked for, their duals and moments to the start."""
    import torch

    index = torch.from_numpy(rows)
    with torch.no_grad():
        theta[index] = torch.from_numpy(points)
    state = optimizer.state_dict()
    state["centre"][0][index] = torch.from_numpy(points)
    if reset:
        state["multipliers"][index] = optimizer.parameters.lambda_init
        state["penalties"][index] = optimizer.parameters.penalty_max
    for moments in state["base"][0]["state"].values():
        for name in ("exp_avg", "exp_avg_sq"):
            if name in moments:
                moments[name][index] = 0.0
    optimizer.load_state_dict(state)


def smoothed_slope(
    x: Array, sd: Array, lam: float, p: float, *, points: int = 2001, problem: SingleUnit = COUNTEREXAMPLE
) -> tuple[Array, Array]:
    """Return the slope at x of the smoothed full-batch Lagrangian E L_p(x + sqrt(2) sd u), and P(x + sqrt(2) sd u > 0).

    u is standard normal; the perturbation of x = w + b is that of w and b together.

    Parameters
    ----------
    x, sd : array of shape (...)
    lam, p : float
        Multiplier and penalty parameter.
    points : int
        Points of the midpoint rule on the positive half line, up to 8 standard deviations out.
    """
    from scipy.special import ndtr

    x, spread = np.broadcast_arrays(np.asarray(x, dtype=np.float64), _ROOT2 * np.asarray(sd, dtype=np.float64))
    high = np.maximum(x + 8.0 * spread, 0.0)[..., None]  # below 0 the slope is 0, and so is its contribution
    inner = (np.arange(points) + 0.5) / points
    z = high * inner
    at = problem.evaluate(z)
    slope = at.df + lam * barrier(at.g[..., 0] / p, order=1) * at.dg[..., 0]
    density = np.exp(-0.5 * ((z - x[..., None]) / spread[..., None]) ** 2) / (
        spread[..., None] * math.sqrt(2 * math.pi)
    )
    return (slope * density).sum(-1) * high[..., 0] / points, ndtr(x / spread)
