"""The networks of the experiments, initialised from an explicit generator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from fairfront.errors import ArgumentError

__all__ = ["convnet", "mlp", "resnet18"]

_SMALL = 16  # images of fewer pixels a side are too small for two windows of 5 x 5 with pooling


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
        layers += [nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=dtype), nn.ReLU()]
    return _drawn(nn.Sequential(*layers[:-1]), generator)


def convnet(
    channels: int, pixels: int, n_outputs: int, *, generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> nn.Sequential:
    """Return the convolutional network of experiment E4.

    Two convolutions to 6 and 16 channels, each with a ReLU and a 2 x 2 maximum, then layers of 120, 84 and `n_outputs`.
    Windows are 5 x 5; on images of fewer than 16 pixels a side, where those do not fit, 3 x 3 with a border.

    Parameters
    ----------
    channels, pixels : int
        Of the images (B, channels, pixels, pixels); at least 4 pixels.
    n_outputs : int
        Logits.
    generator : torch.Generator
        A generator on the CPU.  Weights and biases are uniform in ±1/sqrt(fan-in), as torch draws them.
    dtype : torch.dtype, default float32
        Of the parameters.
    """
    if isinstance(pixels, bool) or not isinstance(pixels, int) or pixels < 4:
        raise ArgumentError("pixels", f"is {pixels!r}", "a whole number >= 4")
    window, border = (3, 1) if pixels < _SMALL else (5, 0)
    layers: list[nn.Module] = []
    side = pixels
    for below, above in ((channels, 6), (6, 16)):
        layer = nn.utils.skip_init(nn.Conv2d, below, above, window, padding=border, dtype=dtype)
        layers += [layer, nn.ReLU(), nn.MaxPool2d(2)]
        side = (side - window + 1 + 2 * border) // 2
    layers.append(nn.Flatten())
    for below, above in ((16 * side * side, 120), (120, 84), (84, n_outputs)):
        layers += [nn.utils.skip_init(nn.Linear, below, above, dtype=dtype), nn.ReLU()]
    return _drawn(nn.Sequential(*layers[:-1]), generator)


def resnet18(
    channels: int, n_outputs: int, *, generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> nn.Sequential:
    """Return the network of experiment E5, ResNet-18, with its stem for large images (7 x 7, stride 2, pooling).

    Convolutions are drawn from a normal distribution of variance 2/fan-out, the last layer as torch draws it.

    Parameters
    ----------
    channels : int
        Of the images.
    n_outputs : int
        Logits.
    generator : torch.Generator
        A generator on the CPU.
    dtype : torch.dtype, default float32
        Of the parameters.
    """
    layers: list[nn.Module] = [
        _convolution(channels, 64, 7, 2, dtype),
        nn.BatchNorm2d(64, dtype=dtype),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    below = 64
    for above, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_Residual(below, above, stride, dtype), _Residual(above, above, 1, dtype)]
        below = above
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.utils.skip_init(nn.Linear, below, n_outputs, dtype=dtype)]
    network = _drawn(nn.Sequential(*layers), generator)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
                module.weight.normal_(0.0, math.sqrt(2 / fan_out), generator=generator)
    return network


class _Residual(nn.Module):
    """Two convolutions around which the input passes by."""

    def __init__(self, below: int, above: int, stride: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.own = nn.Sequential(
            _convolution(below, above, 3, stride, dtype),
            nn.BatchNorm2d(above, dtype=dtype),
            nn.ReLU(),
            _convolution(above, above, 3, 1, dtype),
            nn.BatchNorm2d(above, dtype=dtype),
        )
        self.by = nn.Sequential()
        if stride != 1 or below != above:
            self.by = nn.Sequential(_convolution(below, above, 1, stride, dtype), nn.BatchNorm2d(above, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.own(x) + self.by(x))


def _convolution(below: int, above: int, window: int, stride: int, dtype: torch.dtype) -> nn.Conv2d:
    return nn.utils.skip_init(
        nn.Conv2d, below, above, window, stride=stride, padding=window // 2, bias=False, dtype=dtype
    )


def _drawn(network: nn.Sequential, generator: torch.Generator) -> nn.Sequential:
    """Return a network whose linear layers and convolutions are drawn as torch draws them, from the generator."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                bound = 1 / math.sqrt(module.weight[0].numel())
                for parameter in module.parameters(recurse=False):
                    parameter.uniform_(-bound, bound, generator=generator)
    return network
