"""phi_QL and phi_QR: constants, the joint, derivatives, and the small slopes far to the left."""

import math

import pytest
import torch

from fairfront.constrained import barriers
from fairfront.errors import ArgumentError

BOTH = [barriers.QL, barriers.QR]


def branches(barrier, t):
    """Value and two derivatives as printed, by cases."""
    if t >= barrier.joint:
        return t + t * t / 2, 1 + t, 1.0
    if barrier is barriers.QL:
        return -math.log(-2 * t) / 4 - 3 / 8, -1 / (4 * t), 1 / (4 * t * t)
    return (32 / 27) / (1 - t) - 7 / 6, (32 / 27) / (1 - t) ** 2, (64 / 27) / (1 - t) ** 3


@pytest.mark.parametrize("barrier", BOTH)
def test_the_published_branches(barrier):
    points = [-1e12, -1e4, -7.5, -1.0, -0.51, barrier.joint - 1e-9, barrier.joint, -0.2, 0.0, 0.3, 40.0]
    t = torch.tensor(points, dtype=torch.float64)
    want = torch.tensor([branches(barrier, x) for x in points], dtype=torch.float64)
    for got, column in ((barrier.value(t), 0), (barrier.derivative(t), 1), (barrier.second_derivative(t), 2)):
        torch.testing.assert_close(got, want[:, column], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("barrier", BOTH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_slopes_keep_their_digits(barrier, dtype):
    # a + 1 + (slope - (1 + c)) would round these to 0, and ADAPT would divide by it
    t = torch.tensor([-1e3, -1e6, -1e9], dtype=dtype)
    want = torch.tensor([branches(barrier, x)[1] for x in t.tolist()], dtype=dtype)
    torch.testing.assert_close(barrier.derivative(t), want, rtol=1e-6, atol=0.0)
    assert (barrier.derivative(t) > 0).all()


@pytest.mark.parametrize("barrier", BOTH)
def test_phi_is_twice_continuous_convex_and_increasing(barrier):
    t = torch.linspace(-6, 3, 4001, dtype=torch.float64)
    second = barrier.second_derivative(t)
    assert (barrier.derivative(t) > 0).all()
    assert (second > 0).all() and (second <= 1).all()
    zero = torch.zeros((), dtype=torch.float64)
    assert barrier.value(zero).item() == pytest.approx(0, abs=1e-15)
    assert barrier.derivative(zero).item() == pytest.approx(1, abs=1e-15)
    near = barrier.joint + torch.tensor([-1e-9, 1e-9], dtype=torch.float64)
    for function in (barrier.value, barrier.derivative, barrier.second_derivative):
        left, right = function(near)
        assert abs(left - right) < 1e-8


@pytest.mark.parametrize("barrier", BOTH)
def test_autograd_gives_the_derivatives_also_at_the_joint(barrier):
    t = torch.tensor([-9.0, -0.6, barrier.joint, -0.1, 2.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(barrier.value(t).sum(), t)
    torch.testing.assert_close(first, barrier.derivative(t.detach()))
    (second,) = torch.autograd.grad(barrier.derivative(t).sum(), t)
    torch.testing.assert_close(second, barrier.second_derivative(t.detach()))


@pytest.mark.parametrize("barrier", BOTH)
def test_no_boolean_indexing_and_no_synchronisation(barrier):
    # a function with data-dependent shapes or a host round trip does not run on the meta device
    t = torch.empty(5, device="meta")
    assert barrier.value(t).shape == barrier.derivative(t).shape == barrier.second_derivative(t).shape == (5,)


def test_bounds_of_the_two():
    t = torch.tensor([-1e30], dtype=torch.float64)
    assert barriers.QR.value(t).item() == pytest.approx(-7 / 6)
    assert barriers.QL.value(t).item() < -17


def test_names():
    assert barriers.names() == ("ql", "qr")
    assert barriers.get("qr") is barriers.QR
    with pytest.raises(ArgumentError, match="phi: unknown: 'qq'"):
        barriers.get("qq")
