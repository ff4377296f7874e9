"""Differential equations as constrained problems: residual, conditions, exact solution.

Each is posed as in the second paper (equations 22 to 25 and 30 to 36): minimise the mean squared residual over the
domain, subject to one inequality a condition, ``mean squared deviation on its points - epsilon <= 0``.

    helmholtz       lap u + u = q on [-1, 1]^2, u = 0 on the boundary                                    m = 1
    burgers         u_t + u u_z = c u_zz on [0, 1] x [-1, 1], u(0, z) = -sin(pi z), u = 0 at z = -1, 1      m = 2
    klein_gordon    u_tt - u_zz + u^3 = f on [0, 1]^2, u and u_t given at t = 0, u given at z = 0, 1     m = 3

Inputs are (z1, z2) for the first and (t, z) for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fairfront.errors import ArgumentError, unknown_name
from fairfront.pde.networks import Rows

__all__ = [
    "EPSILON",
    "EXPERIMENTS",
    "PROBLEMS",
    "Collapse",
    "Condition",
    "Evaluation",
    "Problem",
    "Solution",
    "collapse",
    "problem",
]

EXPERIMENTS = {"E6": "helmholtz", "E7": "burgers", "E8": "klein_gordon"}
"""The second paper's experiments, and the problem of each."""

EPSILON = 1e-4
"""Bound on every condition's mean squared deviation (Table 1 of the second paper)."""

_VISCOSITY = 0.01 / math.pi
_HERMITE_NODES = 200


class Solution(Protocol):
    """What is evaluated: values at points, and derivative rows there."""

    def __call__(self, points: Tensor) -> Tensor:
        """Return values (n,) at points (n, 2)."""

    def rows(self, points: Tensor, operator: tuple[float, float], plain: Tensor | None = None) -> Rows:
        """Return the rows of `fairfront.pde.networks.TanhNetwork.rows`."""


@dataclass(frozen=True)
class Condition:
    """A boundary or initial condition, one constraint group.

    Attributes
    ----------
    name : str
        In words, as a constraint is named.
    sides : tuple of (int, float)
        The lines it holds on: an input's index, and the value that this input has there.
    target : callable
        What the network should have there: points (n, 2) to (n,).
    derivative : int or None, default None
        None where the value is prescribed, else the input in which the derivative is.
    """

    name: str
    sides: tuple[tuple[int, float], ...]
    target: Callable[[Tensor], Tensor]
    derivative: int | None = None


@dataclass(frozen=True)
class Problem:
    """A differential equation on a rectangle with conditions on its sides.

    Attributes
    ----------
    name, title, equation : str
        Name in :data:`PROBLEMS`, in words, and the equation.
    inputs : tuple of str
        Names of the two inputs.
    low, high : tuple of float
        Corners of the rectangle.
    operator : tuple of float
        ``(c_1, c_2)`` of the second-order rows that the residual needs.
    equation_residual : callable
        Points (n, 2) and `Rows` to the residual (n,).
    exact : callable
        Points (n, 2) to the solution (n,), in the points' own precision.
    conditions : tuple of Condition
        The constraints, in the order of the paper.
    error_mesh : tuple of int
        Points along each input of the mesh that the relative error is taken on: finer than the training grid, where the
        solution has features that the grid does not show.
    """

    name: str
    title: str
    equation: str
    inputs: tuple[str, str]
    low: tuple[float, float]
    high: tuple[float, float]
    operator: tuple[float, float]
    equation_residual: Callable[[Tensor, Rows], Tensor]
    exact: Callable[[Tensor], Tensor]
    conditions: tuple[Condition, ...]
    error_mesh: tuple[int, int] = field(default=(101, 101))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints, in order."""
        return tuple(condition.name for condition in self.conditions)

    def grid(self, n: int | tuple[int, int] = 51, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the points of an equispaced grid, sides included.

        Parameters
        ----------
        n : int or tuple of int, default 51
            Points along each input; 51 x 51 = 2601 is the paper's training set.
        dtype : torch.dtype, default torch.float32
            Of the points.

        Returns
        -------
        Tensor of shape (n_1 n_2, 2)
            The second input runs fastest.
        """
        counts = (n, n) if isinstance(n, int) else n
        for count in counts:
            if count < 2:
                raise ArgumentError("n", f"must be at least 2 points along each input, got {n!r}")
        axes = [
            torch.linspace(a, b, count, dtype=dtype) for a, b, count in zip(self.low, self.high, counts, strict=True)
        ]
        return torch.cartesian_prod(*axes)

    def sample(self, n: int, generator: torch.Generator, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return n points drawn uniformly from the rectangle, shape (n, 2)."""
        if n < 1:
            raise ArgumentError("n", f"must be at least 1 point, got {n!r}")
        low, high = torch.tensor(self.low, dtype=dtype), torch.tensor(self.high, dtype=dtype)
        return low + (high - low) * torch.rand(n, 2, generator=generator, dtype=dtype)

    def condition_points(self, n: int = 51, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        """Return each condition's points: those of the n x n grid that lie on its sides, each once.

        Returns
        -------
        tuple of Tensor of shape (k, 2)
            In the order of `conditions`: 200 boundary points for Helmholtz at n = 51.
        """
        grid, ends = self.grid(n, dtype=dtype), (self.low, self.high)
        sets = []
        for condition in self.conditions:
            on = torch.zeros(grid.shape[0], dtype=torch.bool)
            for axis, value in condition.sides:
                assert value in (ends[0][axis], ends[1][axis])
                on |= grid[:, axis] == value
            sets.append(grid[on])
        return tuple(sets)

    def residual(self, network: Solution, points: Tensor) -> Tensor:
        """Return the equation's residual of a network at points, shape (n,)."""
        return self.equation_residual(points, network.rows(points, self.operator))

    def loss_and_deviations(
        self, network: Solution, points: Tensor, conditions: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """Return the objective and every condition's mean squared deviation, in one pass of the network.

        Parameters
        ----------
        network : Solution
            A `TanhNetwork`, or anything with its two methods.
        points : Tensor of shape (n, 2)
            Where the residual is taken.
        conditions : tuple of Tensor
            Points of each condition, as `condition_points` gives them.

        Returns
        -------
        loss : Tensor, scalar
            Mean squared residual.
        deviations : Tensor of shape (m,)
            Mean squared deviations; a constraint is ``deviations - EPSILON <= 0``.
        """
        if len(conditions) != len(self.conditions):
            raise ArgumentError("conditions", f"must be {len(self.conditions)} sets of points, got {len(conditions)}")
        # Points of a prescribed derivative join those with derivative rows; the others need their value only.
        pairs = list(zip(self.conditions, conditions, strict=True))
        derived = [p for condition, p in pairs if condition.derivative is not None]
        plain = [p for condition, p in pairs if condition.derivative is None]
        n = points.shape[0]
        rows = network.rows(torch.cat([points, *derived]), self.operator, torch.cat(plain) if plain else None)
        inner = Rows(rows.u[:n], rows.u_1[:n], rows.u_2[:n], rows.operator[:n], rows.plain[:0])
        loss = self.equation_residual(points, inner).square().mean()
        values = iter(rows.plain.split([len(p) for p in plain]))
        slopes = {axis: iter(row[n:].split([len(p) for p in derived])) for axis, row in enumerate((rows.u_1, rows.u_2))}
        deviations = []
        for condition, at in pairs:
            if condition.derivative is None:
                got = next(values)
            else:
                got = [next(slopes[axis]) for axis in (0, 1)][condition.derivative]
            deviations.append((got - condition.target(at)).square().mean())
        return loss, torch.stack(deviations)

    def trivial_loss(self, n: int = 51) -> float:
        """Return the loss of u = 0 on the n x n grid: 6684.13 (Helmholtz), 0 (Burgers), 10391.43 (Klein-Gordon)."""
        grid = self.grid(n, dtype=torch.float64)
        zero = torch.zeros(grid.shape[0], dtype=torch.float64)
        return float(self.equation_residual(grid, Rows(zero, zero, zero, zero, zero[:0])).square().mean())

    def relative_error(self, network: Callable[[Tensor], Tensor], points: Tensor | None = None) -> float:
        """Return ``|u - u_exact| / |u_exact|`` over points, by default those of `error_mesh`."""
        at = self.grid(self.error_mesh, dtype=torch.float64) if points is None else points.double()
        truth = _exact_on_mesh(self.name) if points is None and PROBLEMS.get(self.name) is self else self.exact(at)
        kind = next(iter(network.parameters())).dtype if isinstance(network, torch.nn.Module) else torch.float64
        with torch.no_grad():
            return float((network(at.to(kind)).double() - truth).norm() / truth.norm())

    def evaluate(self, network: Solution, n: int = 51) -> Evaluation:
        """Return loss, deviations, error and collapse of a network on the whole n x n training grid.

        Parameters
        ----------
        network : Solution
            A `TanhNetwork`, or anything with its two methods.
        n : int, default 51
            Points along each input.

        Returns
        -------
        Evaluation
        """
        kind = next(iter(network.parameters())).dtype if isinstance(network, torch.nn.Module) else torch.float64
        with torch.no_grad():
            loss, deviations = self.loss_and_deviations(
                network, self.grid(n, dtype=kind), self.condition_points(n, dtype=kind)
            )
            error = self.relative_error(network)
        return Evaluation(
            loss=float(loss),
            deviations={name: float(value) for name, value in zip(self.names, deviations, strict=True)},
            relative_l2=error,
            collapse=collapse(self, network, n, loss=float(loss)),
        )


@dataclass(frozen=True)
class Collapse:
    """Whether a network has fallen to the trivial solution u = 0.

    Attributes
    ----------
    collapsed : bool
        Loss near the trivial solution's and a prediction near 0, both; or, where the trivial solution solves the
        equation itself (Burgers), the prediction alone.
    loss_ratio : float
        Loss over that of u = 0; NaN where the latter is 0.
    prediction_ratio : float
        Root mean square of the prediction over that of the exact solution, on the grid.
    """

    collapsed: bool
    loss_ratio: float
    prediction_ratio: float

    def __bool__(self) -> bool:
        """Return `collapsed`."""
        return self.collapsed


@dataclass(frozen=True)
class Evaluation:
    """A network on the whole training grid.

    Attributes
    ----------
    loss : float
        Mean squared residual.
    deviations : dict of str to float
        Mean squared deviation of each condition.
    relative_l2 : float
        Against the exact solution, on the problem's `error_mesh`.
    collapse : Collapse
        Whether the network is the trivial solution.
    """

    loss: float
    deviations: dict[str, float]
    relative_l2: float
    collapse: Collapse

    @property
    def max_violation(self) -> float:
        """Largest ``deviation - EPSILON``; negative where every condition holds with room to spare."""
        return max(self.deviations.values()) - EPSILON

    def feasible(self, tolerance: float = 0.1) -> bool:
        """Return whether every deviation is at most ``(1 + tolerance) EPSILON``."""
        return max(self.deviations.values()) <= (1 + tolerance) * EPSILON


def collapse(
    problem: Problem, network: Solution, n: int = 51, *, loss: float | None = None, tolerance: float = 0.1
) -> Collapse:
    """Return whether a network has fallen to the trivial solution u = 0.

    Parameters
    ----------
    problem : Problem
        The equation.
    network : Solution
        A `TanhNetwork`, or anything with its two methods.
    n : int, default 51
        Points along each input of the grid that it is judged on.
    loss : float, optional
        Its mean squared residual on that grid, where the caller has it.
    tolerance : float, default 0.1
        Near: the loss is at least ``1 - tolerance`` of the trivial one, the prediction's root mean square at most
        ``tolerance`` of the exact solution's.

    Returns
    -------
    Collapse
    """
    if not 0 < tolerance < 1:
        raise ArgumentError("tolerance", f"must lie in (0, 1), got {tolerance!r}")
    kind = next(iter(network.parameters())).dtype if isinstance(network, torch.nn.Module) else torch.float64
    grid = problem.grid(n, dtype=kind)
    with torch.no_grad():
        if loss is None:
            loss = float(problem.residual(network, grid).square().mean())
        size = float(network(grid).double().norm() / problem.exact(grid.double()).norm())
    trivial = problem.trivial_loss(n)
    ratio = loss / trivial if trivial else math.nan
    return Collapse(size <= tolerance and (not trivial or ratio >= 1 - tolerance), ratio, size)


def problem(name: str) -> Problem:
    """Return the problem of that name.

    Raises
    ------
    ArgumentError
        For an unknown name, with the nearest known ones.
    """
    try:
        return PROBLEMS[name]
    except KeyError:
        raise unknown_name("problem", name, PROBLEMS) from None


@cache
def _exact_on_mesh(name: str) -> Tensor:
    # The error is asked for hundreds of times in one training; the Cole-Hopf integrals take a second.
    known = PROBLEMS[name]
    return known.exact(known.grid(known.error_mesh, dtype=torch.float64))


def _zero(points: Tensor) -> Tensor:
    return torch.zeros_like(points[:, 0])


def _helmholtz_exact(points: Tensor) -> Tensor:
    return torch.sin(math.pi * points[:, 0]) * torch.sin(4 * math.pi * points[:, 1])


def _helmholtz_residual(points: Tensor, rows: Rows) -> Tensor:
    return rows.operator + rows.u - (1 - 17 * math.pi**2) * _helmholtz_exact(points)


def _burgers_start(points: Tensor) -> Tensor:
    return -torch.sin(math.pi * points[:, 1])


def _burgers_residual(points: Tensor, rows: Rows) -> Tensor:
    return rows.u_1 + rows.u * rows.u_2 - _VISCOSITY * rows.operator


def _burgers_exact(points: Tensor) -> Tensor:
    """Cole-Hopf: u is a ratio of two Gaussian integrals of width sqrt(4 c t), taken by Gauss-Hermite quadrature."""
    nodes, weights = (
        torch.as_tensor(values, dtype=points.dtype, device=points.device)
        for values in np.polynomial.hermite.hermgauss(_HERMITE_NODES)
    )
    y = points[:, 1:] - torch.sqrt(4 * _VISCOSITY * points[:, :1]) * nodes
    # exp(-cos(pi y) / (2 pi c)) reaches e^50: only ratios matter, so the largest exponent is taken out.
    exponent = -torch.cos(math.pi * y) / (2 * math.pi * _VISCOSITY)
    density = weights * torch.exp(exponent - exponent.amax(1, keepdim=True))
    return -(torch.sin(math.pi * y) * density).sum(1) / density.sum(1)


def _klein_gordon_exact(points: Tensor) -> Tensor:
    t, z = points.unbind(1)
    return z * torch.cos(5 * math.pi * t) + (t * z) ** 3


def _klein_gordon_residual(points: Tensor, rows: Rows) -> Tensor:
    t, z = points.unbind(1)
    source = (
        -25 * math.pi**2 * z * torch.cos(5 * math.pi * t)
        + 6 * t * z**3
        - 6 * z * t**3
        + _klein_gordon_exact(points) ** 3
    )
    return rows.operator + rows.u**3 - source


PROBLEMS: dict[str, Problem] = {
    known.name: known
    for known in (
        Problem(
            name="helmholtz",
            title="Helmholtz equation",
            equation="lap u + u = (1 - 17 pi^2) sin(pi z1) sin(4 pi z2)",
            inputs=("z1", "z2"),
            low=(-1.0, -1.0),
            high=(1.0, 1.0),
            operator=(1.0, 1.0),
            equation_residual=_helmholtz_residual,
            exact=_helmholtz_exact,
            conditions=(Condition("boundary", ((0, -1.0), (0, 1.0), (1, -1.0), (1, 1.0)), _zero),),
        ),
        Problem(
            name="burgers",
            title="Viscous Burgers equation",
            equation="u_t + u u_z = (0.01/pi) u_zz",
            inputs=("t", "z"),
            low=(0.0, -1.0),
            high=(1.0, 1.0),
            operator=(0.0, 1.0),
            equation_residual=_burgers_residual,
            exact=_burgers_exact,
            conditions=(
                Condition("initial value", ((0, 0.0),), _burgers_start),
                Condition("boundary", ((1, -1.0), (1, 1.0)), _zero),
            ),
            error_mesh=(51, 257),  # the shock is about 0.01 wide
        ),
        Problem(
            name="klein_gordon",
            title="Klein-Gordon equation",
            equation="u_tt - u_zz + u^3 = f",
            inputs=("t", "z"),
            low=(0.0, 0.0),
            high=(1.0, 1.0),
            operator=(1.0, -1.0),
            equation_residual=_klein_gordon_residual,
            exact=_klein_gordon_exact,
            conditions=(
                Condition("initial value", ((0, 0.0),), lambda points: points[:, 1]),
                Condition("initial velocity", ((0, 0.0),), _zero, derivative=0),
                Condition("boundary", ((1, 0.0), (1, 1.0)), _klein_gordon_exact),
            ),
        ),
    )
}
"""Every problem by name."""
