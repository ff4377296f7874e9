"""Multilayer perceptrons initialised from an explicit generator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import torch
from torch import nn

from fairfront.errors import ArgumentError

__all__ = ["mlp"]


def mlp(
    n_features: int,
    hidden: Sequence[int],
    *,
    generator: torch.Generator,
    n_outputs: int = 1,
    dtype: torch.dtype = torch.float32,
) -> nn.Sequential:
    """Return a ReLU network with torch's own initialisation, drawn from the given generator.

    Parameters
    ----------
    n_features : int
        Width of the input.
    hidden : sequence of int
        Widths of the hidden layers; none for a linear model.
    generator : torch.Generator
        A generator on the CPU.  Weights and biases are uniform in ±1/sqrt(fan-in).
    n_outputs : int, default 1
        Logits.
    dtype : torch.dtype, default float32
        Of the parameters.

    Returns
    -------
    nn.Sequential
        Linear, ReLU, Linear, ..., Linear.
    """
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise ArgumentError("hidden", f"is {hidden!r}", "the widths of the hidden layers, () for none")
    widths = [n_features, *hidden, n_outputs]
    for argument, values in (("n_features", [n_features]), ("hidden", list(hidden)), ("n_outputs", [n_outputs])):
        if any(isinstance(width, bool) or not isinstance(width, int) or width < 1 for width in values):
            raise ArgumentError(argument, f"holds {values}", "positive whole numbers")
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(widths):
        # skip_init: the layer's own initialisation would draw from the global generator.
        layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=dtype)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.uniform_(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in), generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
