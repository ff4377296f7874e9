"""Propositions 1 and 2 of the second paper and what follows from them, by the exact law of mini-batch means.

A batch of B rows drawn independently from a finite population has finitely many outcomes.  They are enumerated here:
as multisets with their multinomial probabilities, or, where the values lie on a grid, by convolution.  Expectations
over batches are then sums, without sampling error.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, gammaln

from fairfront.constrained import GroupSampler, barriers
from fairfront.errors import ArgumentError
from fairfront.theory.check import Check

__all__ = [
    "BatchMeans",
    "Case",
    "Equilibrium",
    "Offset",
    "ScalarProblem",
    "balanced_bias",
    "balanced_expectations",
    "bound_at_floor",
    "case",
    "containment",
    "counted",
    "dominance",
    "enumerated",
    "equilibrium",
    "gap_at_most",
    "gap_nonnegative",
    "growth_in_penalty",
    "multiplier_on_quadratic",
    "nested",
    "rate_in_batch",
    "tight",
    "transformed",
    "vanishing_in_penalty",
    "weighted_unbiased",
]

Array: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-9  # relative to the numbers compared: sums of up to a million probabilities


# --- laws of batch means ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BatchMeans:
    """The law of a mini-batch mean.

    Attributes
    ----------
    values : array of shape (N,) or (N, k)
        The outcomes: of one quantity, or of k that are averaged over the same rows.
    probabilities : array of shape (N,)
        Their probabilities.
    """

    values: Array
    probabilities: Array

    def expect(self, function: Callable[[Array], Array] = lambda values: values) -> Array:
        """Return the expectation of a function of the mean."""
        return np.asarray(np.tensordot(self.probabilities, function(self.values), axes=1))

    @property
    def mean(self) -> float:
        """The expectation, which is the population's mean."""
        return float(self.expect())

    @property
    def variance(self) -> float:
        """The variance, of one quantity."""
        mean = self.mean
        return float(self.expect(lambda values: (values - mean) ** 2))

    def minus(self, other: BatchMeans, shift: float = 0.0) -> BatchMeans:
        """Return the law of this mean less an independent one's, less a number."""
        values = (self.values[:, None] - other.values - shift).ravel()
        return BatchMeans(values, np.outer(self.probabilities, other.probabilities).ravel())


def enumerated(
    values: ArrayLike, batch: int, *, probabilities: ArrayLike | None = None, replace: bool = True
) -> BatchMeans:
    """Return the law of the mean of a batch, all batches enumerated.

    Parameters
    ----------
    values : array of shape (M,) or (M, k)
        The population's rows, or its kinds of rows.
    batch : int
        B, rows in a batch.
    probabilities : array of shape (M,), optional
        Of the kinds; by default all rows are alike.
    replace : bool, default True
        Whether rows are drawn independently: the M^B ordered batches are then counted as multisets with multinomial
        probabilities.  Otherwise all subsets of B rows, each as likely.

    Raises
    ------
    ArgumentError
        For a batch that cannot be drawn, or more than a million outcomes.
    """
    rows = np.asarray(values, np.float64)
    M = len(rows)
    if batch < 1 or (not replace and batch > M):
        raise ArgumentError("batch", f"{batch} of {M} rows", f"1 to {M}" if not replace else "at least 1")
    outcomes = math.comb(M + batch - 1, batch) if replace else math.comb(M, batch)
    if outcomes > 1_000_000:
        raise ArgumentError("batch", f"gives {outcomes:,} batches to enumerate", "fewer rows, or `counted`")
    if not replace:
        chosen = np.array(list(itertools.combinations(range(M), batch)))
        return BatchMeans(np.array(rows[chosen].mean(axis=1), np.float64), np.full(outcomes, 1.0 / outcomes))
    share = np.full(M, 1.0 / M) if probabilities is None else np.asarray(probabilities, np.float64)
    if batch == 1:
        return BatchMeans(rows, share)
    counts = _compositions(M, batch)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(counts > 0, counts * np.log(share), 0.0).sum(axis=1)
    log += gammaln(batch + 1) - gammaln(counts + 1).sum(axis=1)
    return BatchMeans(np.asarray(np.tensordot(counts, rows, axes=1) / batch, np.float64), np.exp(log))


def _compositions(kinds: int, total: int) -> NDArray[np.int64]:
    """Return every way to write `total` as a sum of `kinds` whole numbers >= 0, one a row."""
    bars = np.array(list(itertools.combinations(range(total + kinds - 1), kinds - 1)), np.int64).reshape(-1, kinds - 1)
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), total + kinds - 1)])
    return np.diff(edges, axis=1) - 1


def counted(weights: ArrayLike, batch: int, step: float) -> BatchMeans:
    """Return the law of the mean of a batch of independent rows whose values are multiples of a step, by convolution.

    Parameters
    ----------
    weights : array of shape (K,)
        Probability of the values 0, step, ..., (K - 1) step.
    batch : int
        B.
    step : float
        Distance of two values.
    """
    law = np.asarray(weights, np.float64)
    size = batch * (len(law) - 1) + 1
    length = 1 << (size - 1).bit_length()
    spectrum = np.fft.rfft(law, length) ** batch
    probabilities = np.clip(np.fft.irfft(spectrum, length)[:size], 0.0, None)
    return BatchMeans(np.asarray(np.arange(size) * (step / batch), np.float64), probabilities / probabilities.sum())


# --- the transformed constraint --------------------------------------------------------------------------------------


def _phi(name: str, t: Array) -> Array:
    return np.asarray(barriers.get(name).value(torch.from_numpy(np.ascontiguousarray(t))).numpy())


def _slope(name: str, t: Array) -> Array:
    return np.asarray(barriers.get(name).derivative(torch.from_numpy(np.ascontiguousarray(t))).numpy())


def transformed(law: BatchMeans, penalty: float, phi: str) -> float:
    """Return E[p phi(gbar / p)], the left side of the transformed constraint (Equation 16)."""
    return penalty * float(law.expect(lambda values: _phi(phi, values / penalty)))


@dataclass(frozen=True)
class Case:
    """A constraint at a point, for one batch size, penalty parameter and function.

    Attributes
    ----------
    subject, phi : str
        The population; the penalty-barrier function.
    x : float
        The point.
    batch : int
        B.
    penalty : float
        p.
    expected : float
        E[g].
    variance : float
        Var(g) of one row.
    transformed : float
        E[p phi(gbar/p)].
    gap : float
        The same less p phi(E[g]/p).
    least, greatest : float
        The smallest and the largest gbar that a batch can have.
    """

    subject: str
    phi: str
    x: float
    batch: int
    penalty: float
    expected: float
    variance: float
    transformed: float
    gap: float
    least: float
    greatest: float

    @property
    def bound(self) -> float:
        """Var(g) / (2 B p)."""
        return self.variance / (2 * self.batch * self.penalty)

    @property
    def quadratic(self) -> bool:
        """Whether every batch lies on the quadratic branch."""
        return self.least >= barriers.get(self.phi).joint * self.penalty


def case(subject: str, phi: str, x: float, batch: int, penalty: float, law: BatchMeans) -> Case:
    """Return the case of a law of batch means; Var(g) is B times its variance."""
    expected, left = law.mean, transformed(law, penalty, phi)
    at_mean = penalty * float(_phi(phi, np.array([expected / penalty]))[0])
    kept = law.values[law.probabilities > 0]
    return Case(
        subject,
        phi,
        float(x),
        int(batch),
        float(penalty),
        expected,
        batch * law.variance,
        left,
        left - at_mean,
        float(kept.min()),
        float(kept.max()),
    )


def _scale(cases: Iterable[Case]) -> float:
    return max((abs(c.transformed) + abs(c.expected) + math.sqrt(c.variance) for c in cases), default=1.0)


def dominance(cases: Sequence[Case]) -> Check:
    """Return whether E[p phi(gbar/p)] >= E[g], from which Proposition 1 follows."""
    worst = max((c.expected - c.transformed for c in cases), default=math.nan)
    return Check.at_most("E[g] - E[p phi(gbar/p)]", worst, 1e-14 * _scale(cases), len(cases))


def containment(cases: Sequence[Case]) -> Check:
    """Return Proposition 1: the largest E[g] where the transformed constraint holds, to be at most 0."""
    inside = [c for c in cases if c.transformed <= 0]
    worst = max((c.expected for c in inside), default=math.nan)
    return Check.at_most("largest E[g] where E[p phi(gbar/p)] <= 0", worst, 0.0, len(inside))


def gap_nonnegative(cases: Sequence[Case]) -> Check:
    """Return whether the Jensen gap is at least 0."""
    worst = max((-c.gap for c in cases), default=math.nan)
    return Check.at_most("largest negative Jensen gap", worst, 1e-14 * _scale(cases), len(cases))


def gap_at_most(cases: Sequence[Case]) -> Check:
    """Return Proposition 2: the largest Jensen gap over Var(g)/(2 B p), to be at most 1."""
    proper = [c for c in cases if c.variance > 0]
    worst = max((c.gap / c.bound for c in proper), default=math.nan)
    return Check.at_most("largest gap / (Var(g) / (2 B p))", worst, 1.0 + _ROUNDING, len(proper))


def tight(cases: Sequence[Case]) -> Check:
    """Return the equality of Proposition 2, over the cases in which every batch lies on the quadratic branch."""
    proper = [c for c in cases if c.quadratic and c.variance > 0]
    worst = max((abs(c.gap / c.bound - 1) for c in proper), default=math.nan)
    return Check.at_most("|gap / (Var(g) / (2 B p)) - 1| on the quadratic branch", worst, _ROUNDING, len(proper))


def nested(cases: Sequence[Case]) -> Check:
    """Return whether the transformed constraint never falls when p does: the feasible sets of smaller p are inside."""
    pairs = [
        (smaller, larger)
        for family in _families(cases, lambda c: (c.subject, c.phi, c.x, c.batch), lambda c: c.penalty)
        for smaller, larger in itertools.pairwise(family)
    ]
    worst = max((larger.transformed - smaller.transformed for smaller, larger in pairs), default=math.nan)
    return Check.at_most("largest rise of E[p phi(gbar/p)] with p", worst, 1e-14 * _scale(cases), len(pairs))


def bound_at_floor(cases: Sequence[Case]) -> Check:
    """Return whether with p >= l the gap stays within Var(g)/(2 B l), l being the smallest p of each setting."""
    ratios = [
        c.gap / family[0].bound
        for family in _families(cases, lambda c: (c.subject, c.phi, c.x, c.batch), lambda c: c.penalty)
        for c in family
    ]
    return Check.at_most(
        "largest gap / (Var(g) / (2 B l_c)) over p >= l_c",
        max(ratios, default=math.nan),
        1.0 + _ROUNDING,
        len(ratios),
    )


def rate_in_batch(cases: Sequence[Case]) -> Check:
    """Return whether the gap decays like 1/B: |its slope in B + 1| on logarithmic axes, between the two largest B."""
    slopes = [
        math.log(last.gap / before.gap) / math.log(last.batch / before.batch)
        for *_, before, last in _families(cases, lambda c: (c.subject, c.phi, c.x, c.penalty), lambda c: c.batch)
    ]
    worst = max((abs(slope + 1) for slope in slopes), default=math.nan)
    return Check.at_most("|slope of the gap in B + 1|", worst, 0.1, len(slopes))


def growth_in_penalty(cases: Sequence[Case]) -> Check:
    """Return whether the gap grows like 1/p where some batch violates: |its slope in p + 1| at the two smallest p."""
    slopes = _penalty_slopes([c for c in cases if c.greatest > 0])
    worst = max((abs(slope + 1) for slope in slopes), default=math.nan)
    return Check.at_most("|slope of the gap in p + 1| where some batch violates", worst, 0.1, len(slopes))


def vanishing_in_penalty(cases: Sequence[Case]) -> Check:
    """Return whether the gap vanishes with p where every batch satisfies: |its slope in p - 1| at the two smallest p.

    With QL the gap tends to (p/4) (log|E g| - E log|gbar|), with QR to a multiple of p^2: the slope is 1 or 2.
    """
    inside = [c for c in cases if c.greatest < 0]
    slopes = {phi: _penalty_slopes([c for c in inside if c.phi == phi]) for phi in ("ql", "qr")}
    away = [abs(slope - wanted) for (phi, wanted) in (("ql", 1), ("qr", 2)) for slope in slopes[phi]]
    return Check.at_most(
        "|slope of the gap in p - 1 (QL), - 2 (QR)| where every batch satisfies",
        max(away, default=math.nan),
        0.1,
        len(away),
    )


def _penalty_slopes(cases: Sequence[Case]) -> list[float]:
    return [
        math.log(before.gap / last.gap) / math.log(before.penalty / last.penalty)
        for before, last, *_ in _families(cases, lambda c: (c.subject, c.phi, c.x, c.batch), lambda c: c.penalty)
    ]


def _families(
    cases: Sequence[Case], key: Callable[[Case], Hashable], order: Callable[[Case], float]
) -> Iterator[list[Case]]:
    """Yield the cases that differ in one number only, two or more, in its order."""
    by_key: dict[Hashable, list[Case]] = {}
    for c in cases:
        if c.variance > 0:
            by_key.setdefault(key(c), []).append(c)
    for family in by_key.values():
        if len(family) > 1:
            yield sorted(family, key=order)


# --- a problem in one variable ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScalarProblem:
    """min (x - c)^2 / 2 subject to E[a x + b] <= 0, over a population of a few kinds of rows (a, b).

    Attributes
    ----------
    centre : float
        c, where the constraint is violated.
    slopes, offsets, shares : array of shape (K,)
        a and b of each kind, and its share of the population; every a < 0, so that a large x satisfies every batch.
    """

    centre: float
    slopes: Array
    offsets: Array
    shares: Array

    def law(self, x: float, batch: int) -> BatchMeans:
        """Return the law of (gbar(x), gbar'(x)), shape (N, 2)."""
        rows = np.column_stack([self.slopes * x + self.offsets, self.slopes])
        return enumerated(rows, batch, probabilities=self.shares)

    @property
    def solution(self) -> float:
        """x*."""
        return float(-(self.shares @ self.offsets) / (self.shares @ self.slopes))

    @property
    def multiplier(self) -> float:
        """lambda*."""
        return float((self.centre - self.solution) / (self.shares @ self.slopes))

    def covariance(self, x: float) -> float:
        """Return Cov(g, g') of one row at x."""
        g, slope = self.slopes * x + self.offsets, self.slopes
        return float(self.shares @ (g * slope) - (self.shares @ g) * (self.shares @ slope))

    def variance(self, x: float) -> float:
        """Return Var(g) of one row at x."""
        g = self.slopes * x + self.offsets
        return float(self.shares @ g**2 - (self.shares @ g) ** 2)


@dataclass(frozen=True)
class Equilibrium:
    """Where the expected steps of SPBM rest, and where the transformed constraint is active.

    Attributes
    ----------
    x, multiplier : float
        E[phi'(gbar/p)] = 1, at which the expected dual step is none, and the multiplier that makes the expected primal
        step none.
    boundary : float
        E[p phi(gbar/p)] = 0, the bound of the transformed problem.
    """

    x: float
    multiplier: float
    boundary: float


def equilibrium(problem: ScalarProblem, batch: int, penalty: float, phi: str) -> Equilibrium:
    """Return the equilibrium of SPBM's expected steps for a constant p, all batches enumerated."""

    def dual(x: float) -> float:
        return float(problem.law(x, batch).expect(lambda rows: _slope(phi, rows[:, 0] / penalty))) - 1.0

    def constraint(x: float) -> float:
        law = problem.law(x, batch)
        return transformed(BatchMeans(law.values[:, 0], law.probabilities), penalty, phi)

    start, reach = problem.solution, 1.0
    while dual(start + reach) > 0 or constraint(start + reach) > 0:
        reach *= 2
    x = float(brentq(dual, start - 1.0, start + reach, xtol=1e-13))
    boundary = float(brentq(constraint, start - 1.0, start + reach, xtol=1e-13))
    pull = problem.law(x, batch).expect(lambda rows: _slope(phi, rows[:, 0] / penalty) * rows[:, 1])
    return Equilibrium(x, float((problem.centre - x) / pull), boundary)


def multiplier_on_quadratic(problem: ScalarProblem, batch: int, penalty: float) -> float:
    """Return the equilibrium's multiplier in closed form, if every batch lies on the quadratic branch.

    There E[phi'] = 1 + E[g]/p, so x is x*; and E[phi' g'] = E[g'] + Cov(g, g')/(B p), so that the multiplier is
    lambda* E[g'] / (E[g'] + Cov(g, g')/(B p)).
    """
    slope = float(problem.shares @ problem.slopes)
    return problem.multiplier * slope / (slope + problem.covariance(problem.solution) / (batch * penalty))


# --- a fairness constraint on real rows ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Offset:
    """A scored population of two groups, with an offset x that is added to every logit of the second.

    g(x) is the first group's mean score less the second's less a bound; a batch has b rows of each group, so that the
    mean over B = b pairs estimates it.  f is the mean cross-entropy of all rows.

    Attributes
    ----------
    high, low : array of shape (n_1,), (n_2,)
        Logits of the group with the higher and of the group with the lower rate.
    high_labels, low_labels : array
        Their labels.
    epsilon : float
        The bound.
    cells : int
        Scores lie on a grid of so many steps; each is split between its two neighbours, which keeps its mean.
    """

    high: Array
    low: Array
    high_labels: Array
    low_labels: Array
    epsilon: float
    cells: int = 500

    def gap(self, x: float) -> float:
        """Return E[g] at x."""
        return float(expit(self.high).mean() - expit(self.low + x).mean() - self.epsilon)

    def loss(self, x: float) -> float:
        """Return f at x."""
        logits = np.concatenate([self.high, self.low + x])
        labels = np.concatenate([self.high_labels, self.low_labels])
        return float((np.logaddexp(0.0, logits) - labels * logits).mean())

    def law(self, x: float, pairs: int) -> BatchMeans:
        """Return the law of gbar(x) over all batches of so many rows of each group."""
        step = 1.0 / self.cells
        high, low = (counted(self._weights(expit(z)), pairs, step) for z in (self.high, self.low + x))
        size = len(high.values)
        length = 1 << (2 * size - 2).bit_length()
        product = np.fft.rfft(high.probabilities, length) * np.fft.rfft(low.probabilities[::-1], length)
        probabilities = np.clip(np.fft.irfft(product, length)[: 2 * size - 1], 0.0, None)
        values = np.asarray((np.arange(2 * size - 1) - (size - 1)) * (step / pairs) - self.epsilon, np.float64)
        return BatchMeans(values, probabilities / probabilities.sum())

    @functools.cached_property
    def edge(self) -> float:
        """The smallest offset that satisfies the constraint E[g] <= 0."""
        return _root(self.gap, -8.0)

    def boundary(self, pairs: int, penalty: float, phi: str = "ql") -> float:
        """Return the smallest offset that satisfies the transformed constraint; it is no smaller than `edge`."""
        return _root(lambda x: transformed(self.law(x, pairs), penalty, phi), self.edge - 1e-3)

    def rest(self, pairs: int, penalty: float, phi: str = "ql") -> float:
        """Return the offset at which the expected step of SPBM's multiplier is none, E[phi'(gbar/p)] = 1."""

        def value(x: float) -> float:
            return float(self.law(x, pairs).expect(lambda g: _slope(phi, g / penalty))) - 1.0

        return _root(value, self.edge - 1e-3)

    def _weights(self, scores: Array) -> Array:
        place = scores * self.cells
        below = np.minimum(np.floor(place).astype(int), self.cells - 1)
        share = place - below
        size = self.cells + 1
        return (np.bincount(below, 1 - share, size) + np.bincount(below + 1, share, size)) / len(scores)


def _root(value: Callable[[float], float], low: float) -> float:
    """Return where a decreasing function, positive at `low`, is 0."""
    reach = 1.0
    while value(low + reach) > 0:
        reach *= 2
        if reach > 1000:
            raise ArgumentError("epsilon", "no offset satisfies the constraint", "a larger bound")
    return float(brentq(value, low, low + reach, xtol=1e-7))


# --- note 7 of appendix B.2 ------------------------------------------------------------------------------------------


def balanced_expectations(
    losses: Array, groups: NDArray[np.int64], batch_size: int, *, replace: bool = True
) -> dict[str, float]:
    """Return the expectation of a group-balanced batch's objective, all batches enumerated group by group.

    The places of a batch, and their weights, are those of `fairfront.constrained.GroupSampler`.

    Parameters
    ----------
    losses : array of shape (n,)
        Each row's loss.
    groups : array of int, shape (n,)
        Groups 0..R-1.
    batch_size : int
        B.
    replace : bool, default True
        Whether a group's rows are drawn independently, or as a subset.

    Returns
    -------
    dict of str to float
        population (the mean over all rows), groups (the mean of the groups' means), balanced and weighted (expectation
        of the batch's unweighted mean, and with the weights of note 7).
    """
    sampler = GroupSampler(groups, batch_size, generator=torch.Generator().manual_seed(0))
    means = np.array([losses[groups == r].mean() for r in range(sampler.n_groups)])
    found = {"population": float(losses.mean()), "groups": float(means.mean())}
    counts = sampler.per_group.numpy()
    for name, objective in (("balanced", "balanced"), ("weighted", "population")):
        weights = sampler.weights(objective, torch.float64).numpy()  # type: ignore[arg-type]
        share = np.bincount(sampler.batch_groups.numpy(), weights)
        laws = [enumerated(losses[groups == r], int(count), replace=replace) for r, count in enumerate(counts)]
        found[name] = float(sum(part * law.mean for part, law in zip(share, laws, strict=True)))
    return found


def balanced_bias(found: Sequence[dict[str, float]]) -> Check:
    """Return whether the unweighted objective is biased: its distance from the population's mean, to exceed 0.

    The check is of its negative, so that it holds where every population shows a bias.
    """
    least = min(abs(row["balanced"] - row["population"]) / abs(row["population"]) for row in found)
    return Check.at_most("less the smallest relative bias of unweighted batches", -least, -1e-6, len(found))


def weighted_unbiased(found: Sequence[dict[str, float]]) -> Check:
    """Return whether the weighted objective's expectation is the population's mean."""
    worst = max(abs(row["weighted"] - row["population"]) / abs(row["population"]) for row in found)
    return Check.at_most("relative bias of batches weighted by group size", worst, 1e-12, len(found))
