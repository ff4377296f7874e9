"""One rectified unit on a handful of labels: the finite problem of the second paper's appendix E.4, and its kin.

All inputs are 1, so the output is a(x) = [x]_+ of the preactivation x = w + b, and a mini-batch enters only by the
shares of its labels: an expectation over all mini-batches is a short finite sum.  Both parameters have the derivative
in x, so gradients in (w, b) are slopes times (1, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fairfront.errors import ArgumentError
from fairfront.risks import Array

__all__ = ["COUNTEREXAMPLE", "KINKED", "Batches", "Evaluation", "SingleUnit", "barrier"]


class Evaluation(NamedTuple):
    """Objective and constraints on mini-batches, with their slopes in x.

    Attributes
    ----------
    f, df : array of shape (...)
        Objective and its slope.
    g, dg : array of shape (..., m)
        Constraints and their slopes.
    """

    f: Array
    g: Array
    df: Array
    dg: Array


class Batches(NamedTuple):
    """All mini-batches of a size, as far as they differ.

    Attributes
    ----------
    shares : array of shape (J, labels)
        Share of each label.
    probability : array of shape (J,)
        Of samples drawn with replacement.
    """

    shares: Array
    probability: Array


@dataclass(frozen=True)
class SingleUnit:
    """Fit one unit to labels: min f(x) subject to g(x) <= 0.

    f is the mean of |a(x) - y|^power over the samples, g_i a weighted mean of the same less an offset; a(x) = x for
    x > 0 and leak * x below.

    Parameters
    ----------
    labels : tuple of float
        The labels y that occur, ascending.
    shares : tuple of float
        The share of the samples that each has.
    weights : tuple of tuple of float
        For each constraint the weight of a sample of each label.
    offsets : tuple of float
        What is subtracted in each constraint.
    power : {1, 2}
        Absolute or squared errors.
    leak : float, default 0
        Slope of the unit below 0: 0 is the rectifier.
    """

    labels: tuple[float, ...]
    shares: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    power: int = 2
    leak: float = 0.0

    def __post_init__(self) -> None:
        if self.power not in (1, 2):
            raise ArgumentError("power", f"is {self.power}", "1 or 2")
        if len(self.labels) != len(self.shares) or any(len(row) != len(self.labels) for row in self.weights):
            raise ArgumentError("labels", "differ in number from shares or weights", "one of each a label")
        if len(self.weights) != len(self.offsets):
            raise ArgumentError("offsets", f"are {len(self.offsets)}", "one a constraint")

    @property
    def m(self) -> int:
        """Number of constraints."""
        return len(self.offsets)

    @cached_property
    def kinks(self) -> Array:
        """Where f or g may have no derivative, ascending."""
        return np.array(sorted({0.0, *(y for y in self.labels if self.power == 1 and y > 0)}))

    def evaluate(self, x: ArrayLike, shares: ArrayLike | None = None, *, side: int = 0) -> Evaluation:
        """Return objective and constraints with their slopes.

        Parameters
        ----------
        x : array of shape (...)
            Preactivations.
        shares : array of shape (..., labels), optional
            Shares of the labels; by default those of all samples.
        side : {-1, 0, 1}
            Slopes from the left or the right, or (0) what automatic differentiation takes at a kink: slope 0 of
            |r| at 0 and the slope below of the unit at 0, an element of Clarke's subdifferential either way.
        """
        x = np.asarray(x, dtype=np.float64)
        shares = np.asarray(self.shares if shares is None else shares, dtype=np.float64)
        above = x >= 0 if side > 0 else x > 0
        a = np.where(above, x, self.leak * x) + 0.0
        r = a[..., None] - np.array(self.labels)
        if self.power == 2:
            loss, slope = r * r, 2.0 * r
        else:
            loss, slope = np.abs(r), np.where(r == 0, float(side), np.sign(r))
        moves = np.where(above, 1.0, self.leak)
        loss, slope = shares * loss, shares * slope
        weights = np.array(self.weights).T
        return Evaluation(
            loss.sum(-1),
            loss @ weights - np.array(self.offsets),
            moves * slope.sum(-1),
            moves[..., None] * (slope @ weights),
        )

    def exact(self, x: Fraction) -> tuple[Fraction, tuple[Fraction, ...]]:
        """Return f and g at a fraction, in fractions, without rounding.

        Labels, shares, offsets and shares times weights are taken as the nearest fractions with a denominator up to
        10^5, which is what their decimals stand for.
        """
        a = x if x > 0 else _fraction(self.leak) * x
        losses = [abs(a - _fraction(y)) ** self.power for y in self.labels]
        f = sum((_fraction(q) * loss for q, loss in zip(self.shares, losses, strict=True)), Fraction(0))
        g = tuple(
            sum(
                (_fraction(q * w) * loss for q, w, loss in zip(self.shares, row, losses, strict=True)),
                -_fraction(offset),
            )
            for row, offset in zip(self.weights, self.offsets, strict=True)
        )
        return f, g

    def batches(self, size: int) -> Batches:
        """Return every distinct mini-batch of ``size`` samples drawn with replacement, and its probability."""
        if size < 1:
            raise ArgumentError("size", f"is {size}", "at least 1")
        kinds = len(self.labels)
        bars = np.array(list(combinations_with_replacement(range(size + 1), kinds - 1)), dtype=np.int64)
        edges = np.column_stack([np.zeros(len(bars), np.int64), bars, np.full(len(bars), size)])
        counts = np.diff(edges, axis=1)
        logs = np.array([math.lgamma(n + 1) for n in range(size + 1)])
        log_probability = logs[size] - logs[counts].sum(1) + counts @ np.log(np.array(self.shares))
        return Batches(counts / size, np.exp(log_probability))

    def sample(self, generator: np.random.Generator, size: int, shape: tuple[int, ...]) -> Array:
        """Return the shares of random mini-batches, of shape (*shape, labels)."""
        return generator.multinomial(size, self.shares, size=shape) / size

    # ------------------------------------------------------------------------------------------ the Lagrangian

    def lagrangian(
        self, x: ArrayLike, lam: ArrayLike, p: ArrayLike, batches: Batches, *, phi: str = "ql", side: int = 0
    ) -> tuple[Array, Array]:
        """Return every mini-batch's penalised Lagrangian f + sum_i lam_i p_i phi(g_i/p_i) and its slope in x.

        Parameters
        ----------
        x : array of shape (...)
        lam, p : array of shape (..., m)
        batches : Batches
            J mini-batches.
        phi : {"ql", "qr"}
            Penalty-barrier function.
        side : {-1, 0, 1}
            As in `evaluate`.

        Returns
        -------
        values, slopes : array of shape (..., J)
        """
        lam, p = np.asarray(lam)[..., None, :], np.asarray(p)[..., None, :]
        at = self.evaluate(np.asarray(x)[..., None], batches.shares, side=side)
        t = at.g / p
        values = at.f + (lam * p * barrier(t, phi)).sum(-1)
        return values, at.df + (lam * barrier(t, phi, 1) * at.dg).sum(-1)

    def expected(
        self, x: ArrayLike, lam: ArrayLike, p: ArrayLike, batches: Batches, *, phi: str = "ql"
    ) -> tuple[Array, Array, Array]:
        """Return L^emp, its mean slope and the variance of the mini-batches' slopes, each of shape (...)."""
        values, slopes = self.lagrangian(x, lam, p, batches, phi=phi)
        mean = slopes @ batches.probability
        variance = (slopes - mean[..., None]) ** 2 @ batches.probability
        return values @ batches.probability, mean, variance

    def field(
        self, x: ArrayLike, lam: ArrayLike, p: ArrayLike, batches: Batches, *, phi: str = "ql"
    ) -> tuple[Array, Array]:
        """Return the ends of -D_p(x, lam), the mean over the mini-batches of Clarke's subdifferentials in x.

        In one dimension a subdifferential is the interval between the slopes from the left and from the right, and a
        mean of intervals is the interval between the means of their ends.  (In (w, b) the field is that interval
        times (1, 1).)
        """
        left = self.lagrangian(x, lam, p, batches, phi=phi, side=-1)[1]
        right = self.lagrangian(x, lam, p, batches, phi=phi, side=1)[1]
        return np.minimum(left, right) @ batches.probability, np.maximum(left, right) @ batches.probability


def barrier(t: ArrayLike, phi: str = "ql", order: int = 0) -> Array:
    """Return the package's penalty-barrier function or its derivative of an order (0, 1, 2), on an array."""
    import torch  # seconds to load; only where something is computed

    from fairfront.constrained import barriers

    function = barriers.get(phi)
    of = (function.value, function.derivative, function.second_derivative)[order]
    return np.asarray(of(torch.from_numpy(np.ascontiguousarray(t, dtype=np.float64))).numpy())


def _fraction(value: float) -> Fraction:
    return Fraction(value).limit_denominator(10**5)


COUNTEREXAMPLE = SingleUnit((0.0, 1.0), (0.9, 0.1), ((0.25 / 0.9, 0.75 / 0.1),), (0.25,))
"""Appendix E.4: 100 of 1000 labels are 1, the others 0; the constraint weighs the two groups 3/4 and 1/4."""

KINKED = SingleUnit((0.0, 0.5, 1.0), (0.4, 0.5, 0.1), ((0.0, 0.0, 1 / 0.1), (1 / 0.4, 0.0, 0.0)), (0.6, 0.7), power=1)
"""Absolute errors and two constraints: f has its minimum at a kink, x = 1/2, where there is no gradient."""
