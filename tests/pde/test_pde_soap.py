"""Adam in Shampoo's eigenbasis."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from fairfront.errors import ArgumentError
from fairfront.pde.soap import SOAP


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def after(optimizer: type[torch.optim.Optimizer], steps: int, **options: object) -> float:
    """Return |A (W - W*) B|^2 after steps from W = 0; both factors are ill-conditioned in mixed directions."""
    scales = torch.logspace(0, -1.5, 12, dtype=torch.float64)
    left, right = (torch.linalg.qr(drawn(12, 12, seed=seed))[0] * scales for seed in (1, 2))
    target, weight = drawn(12, 12, seed=3), nn.Parameter(torch.zeros(12, 12, dtype=torch.float64))
    found = optimizer([weight], lr=0.05, **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(found, steps)
    for _ in range(steps):
        found.zero_grad()
        (left.t() @ (weight - target) @ right).square().sum().backward()
        found.step()
        schedule.step()
    return float((left.t() @ (weight - target) @ right).detach().square().sum())


def test_mixed_directions_are_untangled() -> None:
    adam, soap = after(torch.optim.Adam, 400), after(SOAP, 400, every=5)
    assert soap < adam / 20


def test_a_vector_gets_plain_adam() -> None:
    start = drawn(6)
    mine, theirs = (nn.Parameter(start.clone()) for _ in range(2))
    pair = (SOAP([mine], lr=0.01, betas=(0.9, 0.99)), torch.optim.Adam([theirs], lr=0.01, betas=(0.9, 0.99)))
    for _ in range(30):
        for optimizer, weight in zip(pair, (mine, theirs), strict=True):
            optimizer.zero_grad()
            (weight**4).sum().backward()
            optimizer.step()
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (4, 1), (1, 1), (3,), (2, 3, 4)])
def test_every_shape_and_a_state_that_goes_on(shape: tuple[int, ...]) -> None:
    def steps(optimizer: SOAP, weight: Tensor, numbers: range) -> None:
        for number in numbers:
            optimizer.zero_grad()
            ((weight - drawn(*shape, seed=number)) ** 2).sum().backward()
            optimizer.step()

    weight = nn.Parameter(drawn(*shape, seed=99))
    optimizer = SOAP([weight], lr=0.02, every=3)
    steps(optimizer, weight, range(4))
    copy = nn.Parameter(weight.detach().clone())
    other = SOAP([copy], lr=0.5, every=1)
    other.load_state_dict(deepcopy(optimizer.state_dict()))
    steps(optimizer, weight, range(4, 10))
    assert not torch.equal(weight, copy)
    steps(other, copy, range(4, 10))
    assert torch.equal(weight, copy)


def test_parameters_without_gradient_and_closures() -> None:
    used, unused = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 2))
    optimizer = SOAP([used, unused])

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = used.square().sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure).detach()) == 4.0
    assert torch.equal(unused, torch.ones(2, 2)) and not torch.equal(used, torch.ones(2, 2))


@pytest.mark.parametrize("options", [{"lr": -1.0}, {"betas": (0.9, 1.0)}, {"eps": 0.0}, {"every": 0}])
def test_numbers_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        SOAP([nn.Parameter(torch.ones(1))], **options)  # type: ignore[arg-type]
