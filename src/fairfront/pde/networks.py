"""A tanh network that carries its derivatives forward.

A second-order operator ``L = c_1 d_1^2 + c_2 d_2^2`` of a network of two inputs needs no nested differentiation: every
layer maps the four rows ``[h, h_1, h_2, Lh]`` of a point to those of the next one, since an affine layer maps each row
by its weights alone and

    (tanh z)_i = a z_i,    L tanh z = a t,    a = 1 - tanh^2 z,    t = Lz - 2 tanh(z) (c_1 z_1^2 + c_2 z_2^2).

One path serves the Laplacian (1, 1), ``d_zz`` (0, 1) and the wave operator ``d_tt - d_zz`` (1, -1).  The whole pass is
one autograd Function with its backward written out, so that a training step costs little more than its matrix products
(`benchmarks/pinn.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from fairfront.errors import ArgumentError, unknown_name

__all__ = ["INITIALISATIONS", "Rows", "TanhNetwork", "nested_rows"]

INITIALISATIONS = ("torch", "xavier")
"""Names of the initialisations: torch's default for linear layers, and Xavier's normal one with zero biases."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A network's values and derivatives at points, and its values at further points.

    Attributes
    ----------
    u, u_1, u_2, operator : Tensor of shape (n,)
        Value, first derivatives in the two inputs, and ``c_1 u_11 + c_2 u_22``.
    plain : Tensor of shape (k,)
        Values at the points where nothing else was asked for.
    """

    u: Tensor
    u_1: Tensor
    u_2: Tensor
    operator: Tensor
    plain: Tensor


class _ForwardRows(torch.autograd.Function):
    """The network from inputs to outputs, rows [h; plain h; h_1; h_2; Lh]: v = n + k value rows, then 3 n."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, n: int, operator: tuple[float, float], *parameters: Tensor) -> Tensor:
        v = inputs.shape[0] - 3 * n
        c_1, c_2 = operator
        weights, biases = parameters[0::2], parameters[1::2]
        layers: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        rows = inputs
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            z = rows @ weight.t()
            derivatives = z[v:].view(3, n, -1)
            out = torch.empty_like(z)
            # tanh x = 2 sigmoid(2 x) - 1: equal to rounding, and torch's sigmoid takes a fifth of the time of its tanh.
            h = torch.add(2 * bias, z[:v], alpha=2, out=out[:v]).sigmoid_().mul_(2).sub_(1)
            a = torch.addcmul(_one(h), h, h, value=-1)
            squares = derivatives[0] * derivatives[0]
            if c_1 != 1:
                squares.mul_(c_1)
            if c_2:
                squares.addcmul_(derivatives[1], derivatives[1], value=c_2)
            # t takes the place of Lz, so that all three rows are scaled at once.
            derivatives[2].addcmul_(h[:n], squares, value=-2)
            torch.mul(derivatives, a[:n], out=out[v:].view(3, n, -1))
            layers.append((rows, derivatives, a, squares))
            rows = out
        ctx.n, ctx.operator, ctx.layers, ctx.last, ctx.weights = n, operator, layers, rows, weights
        ctx.versions = [weight._version for weight in weights]
        last = rows @ weights[-1].t()
        last[:v] += biases[-1]
        return last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        n, (c_1, c_2) = ctx.n, ctx.operator
        v = gradient.shape[0] - 3 * n
        if ctx.versions != [weight._version for weight in ctx.weights]:
            raise RuntimeError("a parameter was changed in place between the forward rows and their backward")
        gradients: list[Tensor | None] = [gradient[:v].sum(0), gradient.t() @ ctx.last]
        following = ctx.last
        downstream = gradient
        for weight, (rows, z, a, squares) in zip(reversed(ctx.weights[1:]), reversed(ctx.layers), strict=True):
            g = downstream @ weight
            g_rows = g[v:].view(3, n, -1)
            h = following[:v]
            # dL/da from the three products a z_1, a z_2, a t; a = 1 - h^2 carries it on to h.
            through_a = g_rows[0] * z[0]
            through_a.addcmul_(g_rows[1], z[1]).addcmul_(g_rows[2], z[2])
            g_rows.mul_(a[:n])
            g[:n].addcmul_(squares, g_rows[2], value=-2).addcmul_(through_a, h[:n], value=-2)
            g[:v].mul_(a)
            through_squares = g_rows[2] * h[:n]
            if c_1:
                g_rows[0].addcmul_(z[0], through_squares, value=-4 * c_1)
            if c_2:
                g_rows[1].addcmul_(z[1], through_squares, value=-4 * c_2)
            gradients += [g[:v].sum(0), g.t() @ rows]
            following, downstream = rows, g
        return None, None, None, *reversed(gradients)


def _one(like: Tensor) -> Tensor:
    return torch.ones((), dtype=like.dtype, device=like.device)


class TanhNetwork(nn.Module):
    """A network of two inputs, hidden layers of equal width with tanh, and one output.

    Parameters
    ----------
    hidden : int, default 8
        Number of hidden layers.
    width : int, default 64
        Units of each.
    initialisation : {"torch", "xavier"}, default "torch"
        ``torch``: uniform in +-1/sqrt(fan in), weights and biases, as `torch.nn.Linear` draws them; a signal shrinks by
        about sqrt(3) a layer, so that a deep network starts as a constant.  ``xavier``: normal with variance
        2 / (fan in + fan out), zero biases; a signal keeps its size.
    frequency : float, default 1.0
        Factor of the first layer's initial weights: more than 1 lets the network start with shorter waves.
    seed : int or torch.Generator, default 0
        Where the weights are drawn from.  Global state is neither read nor changed.
    dtype : torch.dtype, default torch.float32
        Of the parameters.
    device : torch.device or str, default "cpu"
        Of the parameters; they are drawn on the CPU and then moved, so that every device starts with the same ones.

    Raises
    ------
    ArgumentError
        For sizes below 1, an unknown initialisation or a frequency that is not positive.
    """

    def __init__(
        self,
        hidden: int = 8,
        width: int = 64,
        *,
        initialisation: str = "torch",
        frequency: float = 1.0,
        seed: int | torch.Generator = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        for name, value in (("hidden", hidden), ("width", width)):
            if int(value) != value or value < 1:
                raise ArgumentError(name, f"must be a whole number of at least 1, got {value!r}")
        if initialisation not in INITIALISATIONS:
            raise unknown_name("initialisation", initialisation, INITIALISATIONS)
        if not (math.isfinite(frequency) and frequency > 0):
            raise ArgumentError("frequency", f"must be positive, got {frequency!r}")
        generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(int(seed))
        sizes = [2, *[int(width)] * int(hidden), 1]
        layers: list[nn.Linear] = []
        for fan_in, fan_out in pairwise(sizes):
            # skip_init: no draw from the global generator.  Drawn in float64: float32 starts from the same weights.
            layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=torch.float64)
            with torch.no_grad():
                if initialisation == "torch":
                    bound = 1 / math.sqrt(fan_in)
                    layer.weight.uniform_(-bound, bound, generator=generator)
                    layer.bias.uniform_(-bound, bound, generator=generator)
                else:
                    layer.weight.normal_(0.0, math.sqrt(2 / (fan_in + fan_out)), generator=generator)
                    layer.bias.zero_()
            layers.append(layer)
        with torch.no_grad():
            layers[0].weight.mul_(frequency)
        self.layers = nn.ModuleList(layers)
        self.to(dtype=dtype, device=device)

    @property
    def _like(self) -> Tensor:
        return next(self.parameters())

    def forward(self, points: Tensor) -> Tensor:
        """Return the values at points of shape (n, 2), shape (n,); differentiable as often as one likes."""
        h = _checked("points", points, self._like)
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return self.layers[-1](h)[:, 0]

    def rows(self, points: Tensor, operator: tuple[float, float], plain: Tensor | None = None) -> Rows:
        """Return values, first derivatives and ``c_1 u_11 + c_2 u_22`` at points, in one pass.

        Parameters
        ----------
        points : Tensor of shape (n, 2)
            Where all four are wanted.
        operator : tuple of float
            The coefficients ``(c_1, c_2)``.
        plain : Tensor of shape (k, 2), optional
            Where only the value is.

        Returns
        -------
        Rows
            Differentiable once with respect to the parameters, and not with respect to the points.

        Raises
        ------
        ArgumentError
            For points of another shape, or points that ask for a gradient.
        """
        if len(operator) != 2 or not all(math.isfinite(c) for c in operator):
            raise ArgumentError("operator", f"must be two finite coefficients, got {operator!r}")
        n = _checked("points", points, self._like).shape[0]
        values = points if plain is None else torch.cat([points, _checked("plain", plain, points)])
        if values.requires_grad:
            raise ArgumentError("points", "ask for a gradient, which the forward rows do not give", "use nested_rows")
        v = values.shape[0]
        inputs = values.new_zeros(v + 3 * n, 2)
        inputs[:v] = values
        inputs[v : v + n, 0] = 1
        inputs[v + n : v + 2 * n, 1] = 1
        parameters = [parameter for layer in self.layers for parameter in (layer.weight, layer.bias)]
        out = _ForwardRows.apply(inputs, n, (float(operator[0]), float(operator[1])), *parameters)[:, 0]
        u, further, u_1, u_2, operated = out.split((n, v - n, n, n, n))
        return Rows(u, u_1, u_2, operated, further)


def nested_rows(network: nn.Module, points: Tensor, operator: tuple[float, float]) -> Rows:
    """Return the same rows of any network by nested automatic differentiation: the slow way, to check against.

    Parameters
    ----------
    network : Module
        Maps (n, 2) to (n,), each value from its own point.
    points : Tensor of shape (n, 2)
        Where.
    operator : tuple of float
        The coefficients ``(c_1, c_2)``.

    Returns
    -------
    Rows
        Differentiable with respect to the parameters, and to the points where they ask for it; ``plain`` is empty.
    """
    x = points if points.requires_grad else points.detach().requires_grad_()
    u = network(x)
    first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    total = torch.zeros_like(u)
    for axis, coefficient in enumerate(operator):
        if coefficient:
            total = total + coefficient * torch.autograd.grad(first[:, axis].sum(), x, create_graph=True)[0][:, axis]
    return Rows(u, first[:, 0], first[:, 1], total, u[:0])


def _checked(name: str, points: Tensor, like: Tensor) -> Tensor:
    if points.ndim != 2 or points.shape[1] != 2:
        raise ArgumentError(name, f"must have shape (n, 2), got {tuple(points.shape)}")
    if points.dtype != like.dtype or points.device != like.device:
        raise ArgumentError(
            name, f"are {points.dtype} on {points.device}, the network is {like.dtype} on {like.device}"
        )
    return points
