"""The networks of the experiments: their shapes, their draws, and the metrics that training records."""

import numpy as np
import pytest
import torch
from torch import nn

from fairfront.constrained import PairwiseGroups, PenalizedParameters, Rows, convnet, resnet18, train_mlp
from fairfront.constrained.training import row_hits
from fairfront.errors import ArgumentError


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("channels", "pixels", "flat"), [(3, 32, 400), (3, 16, 16), (1, 8, 64)])
def test_convnet(channels: int, pixels: int, flat: int) -> None:
    network = convnet(channels, pixels, 10, generator=drawn(0))
    assert network(torch.zeros(2, channels, pixels, pixels)).shape == (2, 10)
    widths = [(layer.in_features, layer.out_features) for layer in network if isinstance(layer, nn.Linear)]
    assert widths == [(flat, 120), (120, 84), (84, 10)]
    with pytest.raises(ArgumentError, match="pixels"):
        convnet(channels, 3, 10, generator=drawn(0))


def test_resnet18_has_the_parameters_of_resnet_18() -> None:
    network = resnet18(3, 1000, generator=drawn(0))
    assert sum(parameter.numel() for parameter in network.parameters()) == 11_689_512  # as published with 1000 classes
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 1000)
    assert len([module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]) == 18 + 3


@pytest.mark.parametrize("make", [lambda g: convnet(3, 16, 5, generator=g), lambda g: resnet18(3, 5, generator=g)])
def test_networks_follow_the_generator_alone(make) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, again, other = make(drawn(0)), make(drawn(0)), make(drawn(1))
    assert torch.equal(before, torch.get_rng_state())
    for mine, same, apart in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, same)
        assert mine.ndim == 1 or not torch.equal(mine, apart)


def test_metrics_are_columns_of_the_history() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    rows = Rows.of(x, (x[:, 0] > 0).astype(int), np.arange(120) % 2)
    result = train_mlp(
        rows,
        PairwiseGroups(2),
        parameters=PenalizedParameters(beta=0.0),
        lr=0.02,
        hidden=(8,),
        batch_size=20,
        epochs=4,
        metrics={"accuracy": row_hits},
    )
    with torch.no_grad():
        expected = ((result.model(rows.X).squeeze(1) > 0) == (rows.y > 0.5)).double().mean().item()
    assert result.history["accuracy"].iloc[-1] == pytest.approx(expected) and expected > 0.8


def test_row_hits_of_several_classes() -> None:
    logits = torch.tensor([[0.0, 1.0, 0.5], [2.0, 1.0, 0.5]])
    assert row_hits(logits, torch.tensor([1, 1])).tolist() == [1.0, 0.0]
    assert row_hits(torch.tensor([[0.2], [-0.2]]), torch.tensor([1.0, 1.0])).tolist() == [1.0, 0.0]
