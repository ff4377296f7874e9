"""The optimisers: against steps written out by hand, at known solutions, and in what torch expects of them."""

import copy
import io

import pytest
import torch
from torch import nn

from fairfront.constrained import (
    SPBM,
    SSLALM,
    Algorithm2,
    PairwiseGroups,
    PenalizedAdam,
    SPBMParameters,
    SSw,
    barriers,
)
from fairfront.errors import ArgumentError

FLOAT = torch.float64
METHODS = {
    "spbm": (SPBM, {"mu": 1.0, "lambda_init": 0.5}),
    "spbm-alm": (SPBM, {"rule": "alm", "phi": "qr", "lambda_init": 0.5, "penalty_min": 0.01}),
    "ssl-alm": (SSLALM, {"mu": 1.0, "rho": 1.0, "eta": 0.1}),
    "ssl-alm-shifted": (SSLALM, {"rho": 1.0, "eta": 0.1, "penalty": "shifted"}),
    "ssw": (SSw, {"mu": 1.0, "constraint_lr": 0.02, "tolerance": 0.2, "horizon": 20}),
    "penalized": (PenalizedAdam, {"beta": 2.0}),
}
every_method = pytest.mark.parametrize("method", METHODS)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def network(dtype=torch.float32, seed=0):
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).to(dtype)
    draw = generator(seed)
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=draw, dtype=dtype))
    return net


def batch(step, dtype=torch.float32):
    draw = generator(100 + step)
    return torch.randn(12, 4, generator=draw, dtype=dtype), (torch.rand(12, generator=draw) < 0.5).to(dtype)


FAMILY = PairwiseGroups(3, epsilon=0.02)


def take(net, optimizer, steps, start=0):
    infos = []
    for step in range(start, start + steps):
        dtype = next(net.parameters()).dtype
        x, y = batch(step, dtype)
        optimizer.zero_grad()
        z = net(x).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(z, y)
        infos.append(optimizer.step(loss, FAMILY(z)))
    return infos


def weights(net):
    return torch.cat([tensor.detach().reshape(-1) for tensor in net.parameters()])


# ------------------------------------------------------------------------------------------------ steps


@pytest.mark.parametrize("rule", ["adapt", "alm", "constant"])
def test_algorithm_1_written_out(rule):
    # f = (x - a)^2/2, two affine constraints, SGD: every line of Algorithm 1, with everything on the right at step k
    p = SPBMParameters(rule=rule, gamma=0.7, kappa=0.6, rho=0.8, mu=0.5, delta=0.3, lambda_init=0.4, penalty_min=0.05)
    x = torch.tensor([0.3, -0.2], dtype=FLOAT, requires_grad=True)
    a = torch.tensor([1.5, -1.0], dtype=FLOAT)
    matrix = torch.tensor([[1.0, 1.0], [-2.0, 0.5]], dtype=FLOAT)
    offset = torch.tensor([-0.1, -0.9], dtype=FLOAT)
    optimizer = SPBM([x], 2, base=torch.optim.SGD, lr=0.05, parameters=p)
    phi = barriers.QL
    y, s = x.detach().clone(), x.detach().clone()
    lam, pen = torch.full((2,), 0.4, dtype=FLOAT), torch.ones(2, dtype=FLOAT)
    for _ in range(200):
        optimizer.zero_grad()
        optimizer.step(0.5 * (x - a).square().sum(), matrix @ x + offset)
        g = matrix @ y + offset
        direction = -((y - a) + matrix.T @ (lam * phi.derivative(g / pen))) - 0.5 * (y - s)
        y = y + 0.05 * direction
        s = 0.3 * s + 0.7 * y
        lam = (0.7 * lam + 0.3 * lam * phi.derivative(g / pen)).clamp(1e-4, 100)
        if rule == "adapt":
            pen = (pen * (0.6 + 0.4 / (phi.derivative(g) + 1e-8))).clamp(0.05, 1.0)
        elif rule == "alm":
            pen = (0.8 * lam).clamp(0.05, 1.0)
        torch.testing.assert_close(x.detach(), y, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(optimizer.multipliers, lam, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(optimizer.penalties, pen, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(optimizer.state.centre[0], s, rtol=1e-12, atol=1e-14)


def test_ssl_alm_written_out():
    x = torch.tensor([0.4], dtype=FLOAT, requires_grad=True)
    optimizer = SSLALM([x], 1, base=torch.optim.SGD, lr=0.05, eta=0.2, rho=0.7, mu=0.5, delta=0.5)
    y, s, lam = 0.4, 0.4, 0.0
    for _ in range(100):
        optimizer.zero_grad()
        optimizer.step((x**2).sum(), 1 - x)
        g = 1 - y
        lam = min(max(lam + 0.2 * g, 0.0), 100.0)
        y -= 0.05 * (2 * y - (lam + 0.7 * g) + 0.5 * (y - s))
        s = 0.5 * s + 0.5 * y
        assert (x.item(), optimizer.multipliers.item()) == (pytest.approx(y, 1e-12), pytest.approx(lam, 1e-12))


def test_ssw_switches_to_the_worst_constraint_and_its_step_size():
    x = torch.tensor([0.5, 0.0], dtype=FLOAT, requires_grad=True)
    optimizer = SSw([x], 2, base=torch.optim.SGD, lr=0.1, constraint_lr=0.01, tolerance=0.3, horizon=10)
    info = optimizer.step(x.sum(), torch.stack((x[0] - 0.1, 3 * x[1] + 0.35)))  # 0.4 > 0.35 > 0.3
    assert info.switched
    assert x.tolist() == pytest.approx([0.49, 0.0])
    optimizer.zero_grad()
    info = optimizer.step(x.sum(), torch.stack((x[0] - 0.3, 3 * x[1])))  # 0.19 < tolerance 0.27
    assert not info.switched
    assert x.tolist() == pytest.approx([0.39, -0.1])
    assert not optimizer.multipliers.any()


def test_penalized_adam_is_adam_on_the_penalised_loss():
    ours, plain = network(), network()
    optimizer, adam = PenalizedAdam(ours.parameters(), 6, lr=0.01, beta=3.0), torch.optim.Adam(plain.parameters(), 0.01)
    take(ours, optimizer, 20)
    for step in range(20):
        x, y = batch(step)
        z = plain(x).squeeze(1)
        penalty = FAMILY(z).vector().clamp(min=0).sum()
        adam.zero_grad()
        (nn.functional.binary_cross_entropy_with_logits(z, y) + 3.0 * penalty).backward()
        adam.step()
    torch.testing.assert_close(weights(ours), weights(plain), rtol=1e-4, atol=1e-5)


def test_algorithm_2_moves_the_averaging_and_the_step_size():
    schedule = Algorithm2(gamma0=0.5, kappa0=0.5, hold=2, exponent=1.0, alpha0=0.1, decay=1.0)
    x = torch.tensor([2.0], dtype=FLOAT, requires_grad=True)
    optimizer = SPBM([x], 1, base=torch.optim.SGD, lr=1.0, schedule=schedule, rule="constant", lambda_init=1.0)
    lam, y = 1.0, 2.0
    for step in range(30):
        optimizer.zero_grad()
        optimizer.step((x**2).sum(), 1.5 - x)
        w = lam * barriers.QL.derivative(torch.tensor(1.5 - y, dtype=FLOAT)).item()
        y -= 0.1 / (step + 1) * (2 * y - w)
        lam = schedule.gamma(step) * lam + (1 - schedule.gamma(step)) * w
        assert x.item() == pytest.approx(y, rel=1e-12)
        assert optimizer.multipliers.item() == pytest.approx(lam, rel=1e-12)


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (SPBM, {"gamma": 0.9, "rule": "constant", "lambda_init": 1.0}),
        (SPBM, {"gamma": 0.9, "rule": "alm", "lambda_init": 1.0, "phi": "qr", "penalty_max": 10.0}),
        (SSLALM, {"eta": 0.05, "rho": 1.0}),
        (SSLALM, {"eta": 0.05, "rho": 1.0, "penalty": "shifted"}),
        (SSLALM, {"eta": 0.05}),
    ],
)
def test_kkt_point_of_a_small_problem(cls, settings):
    # min |x - (2, 1)|^2 / 2 with x1 + x2 <= 1 and x1 <= 5: x* = (1, 0), lambda* = (1, 0)
    x = torch.zeros(2, dtype=FLOAT, requires_grad=True)
    target = torch.tensor([2.0, 1.0], dtype=FLOAT)
    optimizer = cls([x], 2, base=torch.optim.SGD, lr=0.05, **settings)
    for _ in range(4000):
        optimizer.zero_grad()
        optimizer.step(0.5 * (x - target).square().sum(), torch.stack((x.sum() - 1, x[0] - 5)))
    # the quadratic penalty |g|^2 also pulls on the constraint that holds with a margin of 4
    if settings.get("rho", 0) and settings.get("penalty", "quadratic") == "quadratic" and cls is SSLALM:
        assert x[0].item() > 1.5
        return
    assert x.tolist() == pytest.approx([1.0, 0.0], abs=2e-3)
    assert optimizer.multipliers.tolist() == pytest.approx([1.0, 0.0], abs=2e-3)


# ------------------------------------------------------------------------------------- what torch expects


@every_method
def test_flat_buffer_pairs_vector_and_closure_are_one_method(method):
    cls, settings = METHODS[method]
    plain, flat, vector, closed = (network(FLOAT) for _ in range(4))
    first = cls(plain.parameters(), FAMILY, lr=0.01, **settings)
    second = cls(flat.parameters(), FAMILY, lr=0.01, flat=True, **settings)
    third = cls(vector.parameters(), 6, lr=0.01, **settings)
    fourth = cls(closed.parameters(), 6, lr=0.01, **settings)
    take(plain, first, 40)
    take(flat, second, 40)
    for step in range(40):
        x, y = batch(step, FLOAT)
        z = vector(x).squeeze(1)
        third.zero_grad()
        third.step(nn.functional.binary_cross_entropy_with_logits(z, y), FAMILY(z).vector())

        def closure(x=x, y=y):
            z = closed(x).squeeze(1)
            return nn.functional.binary_cross_entropy_with_logits(z, y), FAMILY(z)

        with torch.no_grad():
            fourth.step(closure)
    for other in (flat, vector, closed):
        torch.testing.assert_close(weights(plain), weights(other), rtol=1e-9, atol=1e-11)
    off = ~torch.eye(3, dtype=torch.bool)
    torch.testing.assert_close(first.multipliers[off], third.multipliers, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(first.multipliers, fourth.multipliers, rtol=1e-9, atol=1e-11)
    assert not first.multipliers.diagonal().any()


@every_method
@pytest.mark.parametrize("flat", [False, True])
def test_a_checkpoint_resumes_to_the_same_bytes(method, flat):
    cls, settings = METHODS[method]
    net = network()
    optimizer = cls(net.parameters(), FAMILY, lr=0.01, flat=flat, **settings)
    take(net, optimizer, 15)
    buffer = io.BytesIO()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    take(net, optimizer, 15, start=15)

    buffer.seek(0)
    saved = torch.load(buffer, weights_only=True)
    other = network(seed=9)
    resumed = cls(other.parameters(), FAMILY, lr=0.5, flat=flat, **{**settings, "mu": 0.0})
    other.load_state_dict(saved["model"])
    resumed.load_state_dict(saved["optimizer"])
    take(other, resumed, 15, start=15)
    assert torch.equal(weights(net), weights(other))
    assert torch.equal(optimizer.multipliers, resumed.multipliers)
    assert resumed.state.step == 30


@pytest.mark.parametrize("base", [torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad])
@pytest.mark.parametrize("flat", [False, True])
def test_any_base_optimiser(base, flat):
    net, again = network(), network()
    optimizer = SPBM(net.parameters(), FAMILY, base=base, lr=0.01, mu=1.0, flat=flat)
    assert isinstance(optimizer.optimizer, base)
    losses = [float(info.loss) for info in take(net, optimizer, 30)]
    made = SPBM(again.parameters(), FAMILY, base=lambda p, **options: base(p, **options), lr=0.01, mu=1.0)
    take(again, made, 30)
    assert losses[-1] == losses[-1] and not torch.equal(weights(net), weights(network()))
    torch.testing.assert_close(weights(net), weights(again), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flat", [False, True])
def test_parameter_groups_and_schedulers(flat):
    net = network()
    groups = [{"params": net[0].parameters(), "lr": 0.0}, {"params": net[2].parameters()}]
    optimizer = SPBM(groups, FAMILY, lr=0.01, flat=flat)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer.optimizer, 5, gamma=0.1)
    before = weights(net[0]), weights(net[2])
    for step in range(10):
        take(net, optimizer, 1, start=step)
        scheduler.step()
    assert torch.equal(before[0], weights(net[0])) and not torch.equal(before[1], weights(net[2]))
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.0, 1e-4])
    optimizer.rescale_lr(0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.0, 0.005])


def test_ssw_rescales_both_step_sizes():
    optimizer = SSw(network().parameters(), 6, lr=0.1, constraint_lr=0.4)
    optimizer.rescale_lr(0.25)
    optimizer.rescale_lr(0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.2])


@every_method
@pytest.mark.parametrize("flat", [False, True])
def test_frozen_and_unused_parameters_and_mixed_types(method, flat):
    cls, settings = METHODS[method]
    net = network()
    net[0].bias.requires_grad_(False)
    net.extra = nn.Parameter(torch.ones(2, dtype=FLOAT))
    net.unused = nn.Parameter(torch.ones(3))
    optimizer = cls(net.parameters(), FAMILY, lr=0.01, flat=flat, **settings)
    frozen = net[0].bias.clone()
    for step in range(10):
        x, y = batch(step)
        optimizer.zero_grad()
        z = net(x).squeeze(1) * net.extra.prod().float()
        optimizer.step(nn.functional.binary_cross_entropy_with_logits(z, y), FAMILY(z))
    assert torch.equal(frozen, net[0].bias)
    assert torch.equal(net.unused, torch.ones(3))
    assert not torch.equal(net.extra, torch.ones(2, dtype=FLOAT))
    assert net.extra.dtype == FLOAT and net[0].weight.dtype == torch.float32


def test_half_precision_parameters_keep_float32_multipliers():
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    optimizer = SPBM([x], 1, lr=0.01)
    optimizer.step((x**2).sum(), (1 - x.sum()).reshape(1))
    assert optimizer.multipliers.dtype == torch.float32
    assert x.dtype == torch.bfloat16


def test_one_unfrozen_on_the_way_starts_its_centre_there():
    net = network()
    net[2].weight.requires_grad_(False)
    optimizer = SPBM(net.parameters(), FAMILY, lr=0.01, mu=1.0)
    take(net, optimizer, 5)
    net[2].weight.requires_grad_(True)
    before = net[2].weight.detach().clone()
    take(net, optimizer, 1, start=5)
    assert not torch.equal(before, net[2].weight)
    assert len(optimizer.state.centre) == 4


def test_gradients_add_up_until_zero_grad():
    for flat in (False, True):
        x = torch.tensor([1.0], requires_grad=True)
        optimizer = SPBM([x], 1, base=torch.optim.SGD, lr=0.0, flat=flat)
        for expected in (2.0, 4.0):
            optimizer.step(2 * x.sum(), torch.zeros(1))
            assert x.grad.item() == expected
        optimizer.zero_grad()
        optimizer.step(2 * x.sum(), torch.zeros(1))
        assert x.grad.item() == 2.0


def test_a_foreign_zero_grad_does_not_unhook_the_buffer():
    net, other = network(), network()
    ours = SPBM(net.parameters(), FAMILY, lr=0.01, flat=True)
    reference = SPBM(other.parameters(), FAMILY, lr=0.01, flat=True)
    for step in range(6):
        x, y = batch(step)
        net.zero_grad(set_to_none=True)
        z = net(x).squeeze(1)
        ours.step(nn.functional.binary_cross_entropy_with_logits(z, y), FAMILY(z))
        take(other, reference, 1, start=step)
    assert torch.equal(weights(net), weights(other))


def test_a_model_moved_out_of_its_buffer_is_noticed():
    net = network()
    optimizer = SPBM(net.parameters(), FAMILY, lr=0.01, flat=True)
    net.double().float()
    with pytest.raises(ArgumentError, match="params: were moved or replaced"):
        take(net, optimizer, 1)


def test_a_copied_model_is_free_of_the_buffer():
    net = network()
    optimizer = SPBM(net.parameters(), FAMILY, lr=0.01, flat=True)
    twin = copy.deepcopy(net)
    take(net, optimizer, 3)
    assert torch.equal(weights(twin), weights(network()))


def test_info():
    net = network()
    optimizer = SPBM(net.parameters(), FAMILY, lr=0.01)
    (info,) = take(net, optimizer, 1)
    x, _ = batch(0)
    gaps = FAMILY(network()(x).squeeze(1)).vector()
    assert info.max_violation == pytest.approx(gaps.max().item(), rel=1e-5)
    assert info.step == 0 and info.skipped == 0 and info.primal == "full"
    assert torch.isnan(info.constraints.diagonal()).all()
    assert not info.loss.requires_grad
    assert "max_violation" in repr(info)


def test_names_come_with_the_family():
    net = network()
    assert SPBM(net.parameters(), FAMILY).constraint_names()[:2] == ("group 0 - group 1", "group 0 - group 2")
    assert SPBM(net.parameters(), 2).constraint_names() == ("constraint 0", "constraint 1")


def test_no_global_generator_is_touched():
    net = network()
    before = torch.get_rng_state()
    take(net, SPBM(net.parameters(), FAMILY, mu=1.0, flat=True), 2)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@every_method
@pytest.mark.parametrize("flat", [False, True])
def test_on_a_cuda_device(method, flat):
    cls, settings = METHODS[method]
    here, there = network(), network().cuda()
    take(here, cls(here.parameters(), FAMILY, lr=0.01, **settings), 10)
    optimizer = cls(there.parameters(), FAMILY, lr=0.01, flat=flat, **settings)
    for step in range(10):
        x, y = (tensor.cuda() for tensor in batch(step))
        optimizer.zero_grad()
        z = there(x).squeeze(1)
        optimizer.step(nn.functional.binary_cross_entropy_with_logits(z, y), FAMILY(z))
    assert optimizer.multipliers.device.type == "cuda"
    torch.testing.assert_close(weights(here), weights(there).cpu(), rtol=1e-3, atol=1e-4)
