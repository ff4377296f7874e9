"""The quick forms are the pure functions: the dual step in place and compiled, and Adam without its surroundings."""

import copy
import math

import pytest
import torch

from fairfront.constrained import SPBM, PairwiseGroups, SPBMParameters
from fairfront.constrained.adam import LeanAdam
from fairfront.constrained.kernels import CompiledDual, TorchDual
from fairfront.errors import ArgumentError

FLOAT = torch.float64
cases = pytest.mark.parametrize(
    ("rule", "phi"), [(rule, phi) for rule in ("adapt", "alm", "constant") for phi in ("ql", "qr")]
)


def reference(parameters, m, dtype):
    """An optimiser whose pure functions are called directly."""
    return SPBM([torch.zeros(1, dtype=dtype, requires_grad=True)], m, parameters=parameters)


@cases
@pytest.mark.parametrize("dtype", [torch.float32, FLOAT])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
def test_the_dual_step(rule, phi, dtype, compiled, pairs):
    if compiled:
        pytest.importorskip("numba")
    p = SPBMParameters(rule=rule, phi=phi, gamma=0.8, kappa=0.3, lambda_init=0.5, penalty_min=0.02, penalty_max=0.3)
    family = PairwiseGroups(4, epsilon=0.05, scale=0.5)
    pure = reference(p, family if pairs else 7, dtype)
    start = pure.state
    quick = (CompiledDual if compiled else TorchDual)(start.multipliers, start.penalties)
    draw = torch.Generator().manual_seed(0)
    close = {"rtol": 1e-12, "atol": 1e-13} if dtype == FLOAT else {"rtol": 2e-5, "atol": 1e-5}
    for _ in range(60):
        source = torch.rand(4 if pairs else 7, generator=draw, dtype=dtype) - (0.0 if pairs else 0.6)
        values = family.from_statistics(source) if pairs else None
        g = values.evaluate() if pairs else source
        weights, multipliers, penalties = pure._propose(g)
        pure._multipliers.copy_(multipliers)
        if penalties is not None:
            pure._penalties.copy_(penalties)
        want = values.pull(weights) if pairs else weights
        if compiled:
            bound = (family.epsilon, family.scale) if pairs else ()
            got = quick.advance(source, p, p.gamma, p.kappa, *bound)
        else:
            got = quick.advance(g, p, p.gamma, p.kappa)
            got = values.pull(got) if pairs else got
        torch.testing.assert_close(got, want, **close)
    torch.testing.assert_close(quick.multipliers, pure._multipliers, **close)
    torch.testing.assert_close(quick.penalties, pure._penalties, **close)


def test_compiled_and_not_in_a_run_with_a_nan_on_the_way():
    pytest.importorskip("numba")
    finals = []
    for compiled in (False, True):
        x = torch.tensor([0.9, 0.2, 0.4], dtype=FLOAT, requires_grad=True)
        family = PairwiseGroups(3)
        optimizer = SPBM([x], family, lr=0.01, mu=1.0, lambda_init=0.3, compiled=compiled)
        for step in range(50):
            optimizer.zero_grad()
            s = torch.where(torch.tensor([False, step == 20, False]), math.nan, x)
            info = optimizer.step((x - 1).square().sum(), family.from_statistics(s))
            assert info.skipped == (4 if step == 20 else 0)
        finals.append((x.detach(), optimizer.multipliers, optimizer.penalties[0, 1], optimizer.skip_counts))
    for got, want in zip(*finals):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_compiled_keeps_single_precision_states_for_other_sources():
    pytest.importorskip("numba")
    x = torch.ones(2, dtype=FLOAT, requires_grad=True)
    optimizer = SPBM([x], 2, compiled=True, dtype=torch.float32)
    optimizer.step(x.sum(), x - 2)
    assert optimizer.multipliers.dtype == torch.float32
    assert torch.isfinite(x).all()


def test_without_numba_the_error_says_so(monkeypatch):
    from fairfront.constrained import kernels

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(kernels.importlib, "import_module", absent)
    kernels._compiled.cache_clear()
    x = torch.ones(2, requires_grad=True)
    optimizer = SPBM([x], 2, compiled=True)
    with pytest.raises(ArgumentError, match="compiled: needs numba"):
        optimizer.step(x.sum(), x - 2)


def test_gradients_do_not_share_the_kernels_memory():
    # a view passes the incoming gradient on as it is: torch then keeps it as the parameter's own
    for compiled in (False, True):
        if compiled:
            pytest.importorskip("numba")
        x = torch.ones(3, requires_grad=True)
        optimizer = SPBM([x], 3, base=torch.optim.SGD, lr=0.0, compiled=compiled, lambda_init=1.0)
        optimizer.step((0 * x).sum(), x.view(3) - 2)
        first = x.grad.clone()
        optimizer.step((0 * x).sum(), x.view(3) + 7)
        assert (x.grad > first + 1).all()


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"betas": (0.5, 0.9), "eps": 1e-3}, {"amsgrad": True}])
@pytest.mark.parametrize("single", [False, True])
def test_lean_adam_is_fused_adam_to_the_last_bit(options, single):
    def start():
        draw = torch.Generator().manual_seed(0)
        shapes = [(5,)] if single else [(3, 4), (4,), (2,)]
        return [torch.randn(shape, generator=draw).requires_grad_() for shape in shapes]

    ours, theirs = start(), start()
    lean = LeanAdam(ours, lr=0.05, fused=True, **options)
    plain = torch.optim.Adam(theirs, lr=0.05, fused=True, **options)
    for step in range(12):
        for tensors, optimizer in ((ours, lean), (theirs, plain)):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            sum((tensor.square().sum() for tensor in tensors[: 2 if step % 3 else None]), torch.zeros(())).backward()
            optimizer.step()
        if step == 6:
            lean.load_state_dict(copy.deepcopy(plain.state_dict()))
            lean.param_groups[0]["lr"] = plain.param_groups[0]["lr"] = 0.01
    for a, b in zip(ours, theirs):
        assert torch.equal(a, b)


def test_lean_adam_calls_hooks_and_closures():
    x = torch.ones(2, requires_grad=True)
    optimizer = LeanAdam([x], fused=True)
    called = []
    handle = optimizer.register_step_post_hook(lambda *_: called.append(1))
    x.sum().backward()
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert called == [1]
    assert optimizer.step(lambda: 7.0) == 7.0
