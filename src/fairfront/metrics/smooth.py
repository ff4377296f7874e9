"""Smooth stand-ins for a step, a modulus and a maximum, each with its derivative."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fairfront.errors import ArgumentError

__all__ = ["MODULUS_FLOOR", "checked_positive", "sigmoid", "smooth_max", "smooth_modulus"]

MODULUS_FLOOR = 1e-3
# Entries worked on at once, which stay in a core's cache.
_BLOCK = 8192


def checked_positive(argument: str, value: float) -> None:
    """Raise an ArgumentError unless a parameter is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 < value < math.inf):
        raise ArgumentError(argument, f"is {value!r}", "a positive number")


def sigmoid(
    z: NDArray[np.float64],
    rho: float = 1.0,
    out: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return 1/(1 + exp(-rho z)) and its derivative in rho z, in the arrays ``out`` if given."""
    value, slope = (np.empty(z.shape), np.empty(z.shape)) if out is None else out
    with np.errstate(over="ignore"):  # exp overflows to inf for rho z < -709, where both are 0 to rounding
        for i in range(0, len(z), _BLOCK):
            p = np.multiply(z[i : i + _BLOCK], -rho, out=value[i : i + _BLOCK])
            np.exp(p, out=p)
            p += 1.0
            np.reciprocal(p, out=p)
            rest = np.subtract(1.0, p, out=slope[i : i + _BLOCK])
            rest *= p
    return value, slope


def smooth_modulus(c: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sqrt(c² + 1e-6), at least `MODULUS_FLOOR`, and its derivative."""
    s = np.hypot(c, MODULUS_FLOOR)
    return s, c / s


def smooth_max(values: NDArray[np.float64], rho: float) -> tuple[float, NDArray[np.float64]]:
    """Return log(sum exp(rho v))/rho, between max v and max v + log(S)/rho, and its derivative (softmax weights)."""
    top = values.max()
    weights = np.exp(rho * (values - top))
    total = weights.sum()
    return float(top + np.log(total) / rho), weights / total
