"""Penalty-barrier functions: how a constraint's value enters the penalised Lagrangian.

A penalty-barrier function phi is convex, increasing and twice continuously differentiable, with phi(0) = 0 and
phi'(0) = 1: quadratic right of a joint c < 0, and left of it a logarithm (QL) or a reciprocal (QR) whose slope
fades, so that constraints that hold with a margin stop pushing.  Everything is written without branches: with
``a = max(t, c)`` and ``u = min(t, c)`` one formula serves both sides, so there is neither a mask nor a NaN from the
side that does not apply, nor a synchronisation with the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fairfront.errors import unknown_name

__all__ = ["QL", "QR", "Barrier", "get", "names"]


@dataclass(frozen=True)
class Barrier:
    """A penalty-barrier function and its first two derivatives.

    Attributes
    ----------
    name : str
        "ql" or "qr".
    joint : float
        c, where the quadratic meets the barrier.
    left : tuple of three callables
        The barrier of u <= c and its first two derivatives.
    """

    name: str
    joint: float
    left: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]

    def value(self, t: Tensor) -> Tensor:
        """Return phi(t), elementwise; differentiable by autograd."""
        a, c = t.clamp(min=self.joint), self.joint
        return (a + 0.5 * a * a - (c + 0.5 * c * c)) + self.left[0](self._below(t))

    def derivative(self, t: Tensor) -> Tensor:
        """Return phi'(t) > 0, elementwise.  Left of the joint the first term is exactly 0, so small slopes are kept."""
        return (t.clamp(min=self.joint) - self.joint) + self.left[1](self._below(t))

    def second_derivative(self, t: Tensor) -> Tensor:
        """Return phi''(t), in (0, 1], elementwise."""
        return self.left[2](self._below(t))

    def _below(self, t: Tensor) -> Tensor:
        # At the joint clamp passes its gradient on from both sides, which would count it twice: where() does not.
        return torch.where(t < self.joint, t, self.joint) if t.requires_grad else t.clamp(max=self.joint)


# phi_QL(t) = t + t^2/2 for t >= -1/2, else -log(-2 t)/4 - 3/8
QL = Barrier(
    "ql",
    -1 / 2,
    (
        lambda u: -0.25 * torch.log(-2.0 * u) - 3 / 8,
        lambda u: -0.25 / u,
        lambda u: 0.25 / (u * u),
    ),
)

# phi_QR(t) = t + t^2/2 for t >= -1/3, else (32/27)/(1 - t) - 7/6
QR = Barrier(
    "qr",
    -1 / 3,
    (
        lambda u: (32 / 27) / (1.0 - u) - 7 / 6,
        lambda u: (32 / 27) / (1.0 - u).square(),
        lambda u: (64 / 27) / (1.0 - u).pow(3),
    ),
)

_BARRIERS = {barrier.name: barrier for barrier in (QL, QR)}


def names() -> tuple[str, ...]:
    """Return the names that `get` knows."""
    return tuple(_BARRIERS)


def get(name: str) -> Barrier:
    """Return a penalty-barrier function by its name.

    Parameters
    ----------
    name : {"ql", "qr"}
        Quadratic-logarithmic or quadratic-reciprocal.

    Returns
    -------
    Barrier
        The function with its derivatives.

    Raises
    ------
    ArgumentError
        If the name (argument ``phi``) is unknown.
    """
    if name not in _BARRIERS:
        raise unknown_name("phi", name, _BARRIERS)
    return _BARRIERS[name]
