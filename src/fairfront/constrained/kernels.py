"""SPBM's dual step in place: the pure functions of `updates` in few kernels, or in one that numba compiles.

On small problems the cost of a step is that of launching kernels, not of arithmetic.  Both forms give what the pure
functions give, to rounding, and the tests hold them to it.
"""

from __future__ import annotations

import functools
import importlib
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairfront.constrained import barriers
from fairfront.constrained.updates import SPBMParameters
from fairfront.errors import ArgumentError

__all__ = ["CompiledDual", "TorchDual", "compiled_binary"]

_ADAPT_FLOOR = 1e-8


class TorchDual:
    """The dual step on buffers of its own, on any device.

    Parameters
    ----------
    multipliers, penalties : tensor of one shape
        The state at the start; the live state is `multipliers` (the same tensor) and `penalties` (a copy).
    """

    def __init__(self, multipliers: Tensor, penalties: Tensor) -> None:
        self.multipliers = multipliers
        # phi' is wanted at g/p and at g: one division of g by (p, 1), one evaluation of both.
        self._divisors = torch.stack((penalties, torch.ones_like(penalties)))
        self.penalties = self._divisors[0]
        self._slopes, self._below = torch.empty_like(self._divisors), torch.empty_like(self._divisors)
        self._quarter = torch.tensor(-0.25, dtype=multipliers.dtype, device=multipliers.device)
        self._ratio = torch.tensor(32 / 27, dtype=multipliers.dtype, device=multipliers.device)

    def advance(self, g: Tensor, p: SPBMParameters, gamma: float, kappa: float) -> Tensor:
        """Return the weights lambda phi'(g/p), valid until the next call, and move the state on."""
        adapt = p.rule == "adapt"
        if adapt:
            slopes, below = torch.div(g, self._divisors, out=self._slopes), self._below
        else:
            slopes, below = torch.div(g, self.penalties, out=self._slopes[0]), self._below[0]
        self._derivative_(slopes, below, barriers.get(p.phi))
        weights = (slopes[0] if adapt else slopes).mul_(self.multipliers)
        self.multipliers.lerp_(weights, 1.0 - gamma).clamp_(p.lambda_min, p.lambda_max)
        if adapt:
            target = torch.div(self.penalties, slopes[1].add_(_ADAPT_FLOOR), out=self._below[1])
            self.penalties.lerp_(target, 1.0 - kappa).clamp_(p.penalty_min, p.penalty_max)
        elif p.rule == "alm":
            torch.mul(self.multipliers, p.rho, out=self.penalties).clamp_(p.penalty_min, p.penalty_max)
        return weights

    def _derivative_(self, t: Tensor, below: Tensor, phi: barriers.Barrier) -> None:
        torch.clamp(t, max=phi.joint, out=below)
        t.clamp_(min=phi.joint).sub_(phi.joint)
        if phi is barriers.QL:
            t.addcdiv_(self._quarter, below)
        else:
            below.sub_(1.0)
            t.addcdiv_(self._ratio, below.mul_(below))


_Numbers = namedtuple("_Numbers", "epsilon unit fade kappa rho low high p_low p_high joint ratio one floor")


class CompiledDual:
    """The dual step as one loop, compiled by numba at its first use (about a second a process); CPU only.

    Parameters
    ----------
    multipliers, penalties : tensor of one shape, contiguous, on the CPU, float32 or float64
        The live state.
    """

    def __init__(self, multipliers: Tensor, penalties: Tensor) -> None:
        if multipliers.device.type != "cpu":
            raise ArgumentError("compiled", f"is for the CPU, not for {multipliers.device}", "compiled=False")
        self.multipliers, self.penalties = multipliers, penalties
        self._lambda, self._p = multipliers.numpy(), penalties.numpy()
        self._pairs = multipliers.ndim == 2
        self.pulled = torch.zeros(multipliers.shape[0], dtype=multipliers.dtype)
        self._out = self.pulled.numpy()
        self._kernel = _compiled()[self._pairs]
        self._parameters: SPBMParameters | None = None
        self._key: tuple[float, ...] = ()
        self._numbers = np.empty(0)
        self._choices = (True, 0)

    def advance(
        self, source: Tensor, p: SPBMParameters, gamma: float, kappa: float, epsilon: float = 0.0, scale: float = 1.0
    ) -> Tensor | None:
        """Return the weights pulled back to the source, and move the state on.

        The source is g (m,), or the groups' statistics (R,).  None, with nothing moved, if a value is not finite.
        """
        key = (gamma, kappa, epsilon, scale)
        if p is not self._parameters or key != self._key:
            phi = barriers.get(p.phi)
            values = (epsilon, 1 / scale, 1 - gamma, kappa, p.rho, p.lambda_min, p.lambda_max, p.penalty_min)
            slopes = (phi.joint, {"ql": -1 / 4, "qr": 32 / 27}[p.phi], 1.0, _ADAPT_FLOOR)
            # In the arrays' own precision: a double among them would make every operation one of doubles.
            self._numbers = np.array((*values, p.penalty_max, *slopes), dtype=self._lambda.dtype)
            self._choices = (p.phi == "ql", {"adapt": 0, "alm": 1, "constant": 2}[p.rule])
            self._parameters, self._key = p, key
        finite = self._kernel(source.numpy(), self._lambda, self._p, self._out, self._numbers, *self._choices)
        return self.pulled.clone() if finite else None


@functools.cache
def _compiled() -> tuple[Callable[..., bool], Callable[..., bool]]:
    """Return the kernels for a vector and for pairs."""
    numba = _numba()
    # error_model="numpy": a division by zero is infinite, not an exception.  Only finite numbers reach the loops, whose
    # minima and maxima may then be single instructions, and their sums may run in several lanes; slope() stays as
    # written, because small slopes live by (max(t, c) - c) being exactly 0.
    exact = functools.partial(numba.njit, error_model="numpy")
    lanes = functools.partial(exact, fastmath={"nnan", "nsz", "contract", "reassoc"})

    @exact(fastmath={"nnan", "nsz"})
    def slope(t, joint, ratio, one, ql):  # type: ignore[no-untyped-def]
        u = min(t, joint)
        return (max(t, joint) - joint) + (ratio / u if ql else ratio / ((one - u) * (one - u)))

    @lanes
    def move(g, lam, p, n, ql, rule):  # type: ignore[no-untyped-def]
        weight = lam * slope(g / p, n.joint, n.ratio, n.one, ql)
        lam = min(max(lam + n.fade * (weight - lam), n.low), n.high)
        if rule == 0:
            slower = n.kappa + (n.one - n.kappa) / (slope(g, n.joint, n.ratio, n.one, ql) + n.floor)
            p = min(max(p * slower, n.p_low), n.p_high)
        elif rule == 1:
            p = min(max(n.rho * lam, n.p_low), n.p_high)
        return weight, lam, p

    @exact
    def named(c):  # type: ignore[no-untyped-def]
        return _Numbers(c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12])

    @lanes
    def vector_loop(source, lam, p, out, n, ql, rule):  # type: ignore[no-untyped-def]
        for i in range(len(source)):
            out[i], lam[i], p[i] = move(source[i], lam[i], p[i], n, ql, rule)

    @lanes
    def pairs_loop(source, lam, p, out, n, ql, rule):  # type: ignore[no-untyped-def]
        out[:] = 0
        for i in range(len(source)):
            lam_i, p_i, total = lam[i], p[i], out[i] * 0
            for j in range(len(source)):
                gap = (source[i] - (source[j] + n.epsilon)) * n.unit
                weight, lam_i[j], p_i[j] = move(gap, lam_i[j], p_i[j], n, ql, rule)
                total += weight
                out[j] -= weight
            out[i] += total
        for i in range(len(source)):
            out[i] *= n.unit

    # The check stays out of the functions that take every number for finite: there it would be optimised away.
    @exact
    def vector(source, lam, p, out, numbers, ql, rule):  # type: ignore[no-untyped-def]
        if not np.isfinite(source.sum()):
            return False
        vector_loop(source, lam, p, out, named(numbers), ql, rule)
        return True

    @exact
    def pairs(source, lam, p, out, numbers, ql, rule):  # type: ignore[no-untyped-def]
        if not np.isfinite(source.sum()):
            return False
        pairs_loop(source, lam, p, out, named(numbers), ql, rule)
        return True

    return vector, pairs


@functools.cache
def compiled_binary() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the kernels of `PairwiseGroups.binary`: statistics, loss and slopes; and the slope of the whole."""
    numba = _numba()

    @numba.njit(error_model="numpy")
    def forward(z, y, shares, both, slopes, groups, units, of_loss):  # type: ignore[no-untyped-def]
        one = units[0] / units[0]
        zero = one - one
        both[:] = 0
        size = len(units)
        for i in range(len(z)):
            fading = np.exp(-abs(z[i]))
            probability = (one if z[i] >= 0 else fading) / (one + fading)
            error = probability - y[i]
            row = max(z[i], zero) - y[i] * z[i] + np.log1p(fading)
            both[size] += shares[i] * row
            both[groups[i]] += units[groups[i]] * (row if of_loss else probability)
            slopes[0, i] = shares[i] * error
            slopes[1, i] = error if of_loss else probability * (one - probability)

    @numba.njit(error_model="numpy")
    def gather(slopes, groups, units, pulled, own):  # type: ignore[no-untyped-def]
        for i in range(len(groups)):
            through = units[groups[i]] * pulled[groups[i]] * slopes[1, i]
            slopes[2, i] = slopes[0, i] + through if own else through

    return forward, gather


def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError as error:
        raise ArgumentError("compiled", "needs numba, which is not installed", "compiled=False") from error
