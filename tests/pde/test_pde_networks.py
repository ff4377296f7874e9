"""Forward derivative rows against nested automatic differentiation, in values and gradients; the initialisations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairfront.errors import ArgumentError
from fairfront.pde.networks import Rows, TanhNetwork, nested_rows

OPERATORS = {
    "Laplacian": (1.0, 1.0),
    "d_zz": (0.0, 1.0),
    "wave": (1.0, -1.0),
    "d_xx": (1.0, 0.0),
    "general": (-2.0, 0.7),
}


def network(**options: object) -> TanhNetwork:
    settings = {"hidden": 3, "width": 16, "initialisation": "xavier", "seed": 3, "dtype": torch.float64} | options
    return TanhNetwork(**settings)  # type: ignore[arg-type]


def points(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=dtype) * 2 - 1


def weighted(rows: Rows, plain: Tensor, weights: Tensor) -> Tensor:
    """Every row enters, nonlinearly and with weights of its own, so that no wrong gradient cancels."""
    inner = weights[:4] * torch.stack([rows.u**2, rows.u_1 * rows.u, rows.u_2**3, rows.operator**2])
    return inner.sum() + (weights[4, : len(plain)] * plain**2).sum()


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
@pytest.mark.parametrize("hidden", [1, 3, 8])
def test_rows_and_their_gradients_are_those_of_nested_differentiation(
    operator: tuple[float, float], hidden: int
) -> None:
    net, inside, edge = network(hidden=hidden, frequency=2.0), points(30), points(7, seed=1)
    weights = torch.rand(5, 30, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    fast, slow = net.rows(inside, operator, edge), nested_rows(net, inside, operator)
    for name in ("u", "u_1", "u_2", "operator"):
        torch.testing.assert_close(getattr(fast, name), getattr(slow, name), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(fast.plain, net(edge))
    got = torch.autograd.grad(weighted(fast, fast.plain, weights), list(net.parameters()))
    expected = torch.autograd.grad(weighted(slow, net(edge), weights), list(net.parameters()))
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_rows_without_plain_points() -> None:
    net, at = network(), points(5)
    rows = net.rows(at, (1.0, 1.0))
    assert rows.plain.shape == (0,)
    torch.testing.assert_close(rows.u, net(at))


def test_single_precision_is_double_precision_rounded() -> None:
    at = points(200)
    double = network(hidden=8, width=64).rows(at, (1.0, 1.0))
    single = network(hidden=8, width=64, dtype=torch.float32).rows(at.float(), (1.0, 1.0))
    for name in ("u", "u_1", "u_2", "operator"):
        expected = getattr(double, name).detach()
        assert float((getattr(single, name).detach().double() - expected).norm() / expected.norm()) < 1e-5


def test_gradients_can_be_taken_of_several_parts_and_add_up() -> None:
    net = network()
    rows = net.rows(points(9), (1.0, 1.0))
    parts = [rows.u.square().sum(), rows.operator.sum()]
    each = [torch.autograd.grad(part, list(net.parameters()), retain_graph=True) for part in parts]
    for first, second, both in zip(*each, torch.autograd.grad(sum(parts), list(net.parameters())), strict=True):
        torch.testing.assert_close(first + second, both)


def test_what_the_rows_cannot_do_is_said() -> None:
    net, at = network(), points(4)
    with pytest.raises(ArgumentError, match="nested_rows"):
        net.rows(at.clone().requires_grad_(), (1.0, 1.0))
    with pytest.raises(ArgumentError, match=r"points: must have shape \(n, 2\)"):
        net.rows(at[:, :1], (1.0, 1.0))
    with pytest.raises(ArgumentError, match="plain: must have shape"):
        net.rows(at, (1.0, 1.0), at[0])
    with pytest.raises(ArgumentError, match="float32"):
        net(at.float())
    with pytest.raises(ArgumentError, match="operator"):
        net.rows(at, (1.0, float("nan")))
    rows = net.rows(at, (1.0, 1.0))
    with torch.no_grad():
        net.layers[1].weight.add_(0.1)
    with pytest.raises(RuntimeError, match="changed in place"):
        rows.operator.sum().backward()


def test_start_is_drawn_from_its_seed_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, second, other = network(seed=5), network(seed=5), network(seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    at = points(6)
    assert torch.equal(first(at), second(at)) and not torch.equal(first(at), other(at))
    single = network(seed=5, dtype=torch.float32)
    for a, b in zip(first.parameters(), single.parameters(), strict=True):
        assert torch.equal(a.float(), b)


def test_xavier_keeps_a_signal_where_torch_shrinks_it_to_a_constant() -> None:
    at = points(500)
    spread = {
        name: [
            float(network(hidden=8, width=64, initialisation=name, seed=seed)(at).detach().std()) for seed in range(5)
        ]
        for name in ("torch", "xavier")
    }
    assert max(spread["torch"]) < 0.02 and min(spread["xavier"]) > 0.05


def test_frequency_scales_the_first_layer() -> None:
    one, two = network(), network(frequency=2.0)
    assert torch.equal(two.layers[0].weight, 2 * one.layers[0].weight)
    assert torch.equal(two.layers[1].weight, one.layers[1].weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden"),
        ({"width": 1.5}, "width"),
        ({"initialisation": "xaviar"}, "did you mean xavier"),
        ({"frequency": 0.0}, "frequency"),
    ],
)
def test_wrong_sizes_and_names(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        network(**options)
