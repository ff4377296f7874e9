"""Each fault that was seen in other packages, and that this one is to be without.

Those of samplers (groups of one row, batch sizes that the groups do not divide, dropped rows) are in
test_constrained_sampling, boolean indexing in test_constrained_barriers, the missing report in
test_constrained_training, the missing schedules of Algorithm 2 in test_constrained_optimizers.
"""

import io
import math

import pytest
import torch
from torch import nn

from fairfront.constrained import (
    SPBM,
    SSLALM,
    Algorithm2,
    NormBounds,
    PairwiseGroups,
    PenalizedAdam,
    SSw,
    equality,
)

ALL = [SPBM, SSLALM, SSw, PenalizedAdam]
every = pytest.mark.parametrize("cls", ALL)


def point(*values):
    return torch.tensor(values, requires_grad=True)


@every
def test_the_defaults_work(cls):
    x = point(2.0)
    optimizer = cls([x], 1)
    for _ in range(3):
        optimizer.zero_grad()
        optimizer.step((x**2).sum(), 1 - x)
    assert x.item() < 2.0


def test_annealing_advances_by_itself():
    schedule = Algorithm2(hold=2)
    optimizer = SPBM([point(1.0)], 1, schedule=schedule, base=torch.optim.SGD)
    seen = []
    for _ in range(6):
        x = optimizer.param_groups[0]["params"][0]
        optimizer.step((x**2).sum(), 1 - x)
        seen.append((optimizer._averaging()[0], optimizer.param_groups[0]["lr"]))
    assert seen[0][0] < seen[3][0] < seen[5][0] < 1
    assert seen[0][1] > seen[3][1] > seen[5][1] > 0


@every
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("flat", [False, True])
def test_a_value_that_is_not_finite_is_skipped_counted_and_forgotten(cls, bad, flat):
    x = point(2.0)
    optimizer = cls([x], 3, flat=flat)
    for step in range(4):
        optimizer.zero_grad()
        g = torch.cat((1 - x, x - 3, 0.5 - x))
        before = optimizer.multipliers
        if step == 1:
            g = torch.where(torch.tensor([False, True, False]), bad, g)
        info = optimizer.step((x**2).sum(), g)
        assert info.skipped == (1 if step == 1 else 0)
        if step == 1:
            assert optimizer.multipliers[1] == before[1]
            assert info.max_violation == pytest.approx(max(1 - 1.999, 0.5 - 1.999), abs=0.01)
        assert info.primal == "full"
    assert torch.isfinite(optimizer.multipliers).all() and math.isfinite(x.item())
    assert optimizer.skip_counts.tolist() == [0, 1, 0]
    assert not optimizer.never_seen.any()


def test_the_skipped_ones_do_not_change_the_others():
    x, y = point(2.0), point(2.0)
    whole, part = SPBM([x], 2, lambda_init=0.5), SPBM([y], 1, lambda_init=0.5)
    for _ in range(20):
        for variable, optimizer, with_nan in ((x, whole, True), (y, part, False)):
            optimizer.zero_grad()
            g = 1.9 - variable
            optimizer.step((variable**2).sum(), torch.cat((g, torch.full((1,), math.nan))) if with_nan else g)
    assert x.item() == y.item()
    assert whole.multipliers[0] == part.multipliers[0]
    assert whole.never_seen.tolist() == [False, True]


@pytest.mark.parametrize("flat", [False, True])
def test_a_gradient_that_is_not_finite_is_kept_out_of_the_parameters(flat):
    # sqrt(-1) is NaN and so is 0 times its gradient: the step goes along the objective alone
    x = point(2.0, 1.0)
    optimizer = SPBM([x], 2, base=torch.optim.SGD, lr=0.1, flat=flat)
    info = optimizer.step((x**2).sum(), torch.stack((torch.sqrt(x[0] - 3), x[1] - 5)))
    assert (info.skipped, info.primal) == (1, "objective")
    assert x.tolist() == pytest.approx([1.6, 0.8])


def test_duals_of_satisfied_constraints_never_turn_negative():
    for optimizer, x in ((cls([x], 2), x) for cls in (SPBM, SSLALM) for x in [point(2.0)]):
        for _ in range(200):
            optimizer.zero_grad()
            optimizer.step((x**2).sum(), torch.stack((x[0] - 100, x[0] - 50)))
            assert (optimizer.multipliers >= 0).all()


def test_a_multiplier_at_its_floor_comes_back():
    x = point(5.0)
    optimizer = SPBM([x], 1, base=torch.optim.SGD, lr=0.0, gamma=0.9)
    for _ in range(300):
        optimizer.step((0 * x).sum(), x - 100)
    assert optimizer.multipliers.item() == pytest.approx(1e-4)
    for _ in range(300):
        optimizer.step((0 * x).sum(), x - 4)
    assert optimizer.multipliers.item() > 1


def test_checkpoints_hold_the_centre_and_no_live_tensor():
    x = point(2.0)
    optimizer = SPBM([x], 1, mu=1.0, lr=0.1)

    def move():
        optimizer.zero_grad()
        optimizer.step((x**2).sum(), 1 - x)

    move()
    state = optimizer.state_dict()
    buffer = io.BytesIO()
    torch.save(state, buffer)
    assert state["centre"][0].item() == pytest.approx((2.0 + x.item()) / 2)
    for _ in range(5):
        move()
    buffer.seek(0)
    saved = torch.load(buffer, weights_only=True)
    for key in ("multipliers", "penalties"):
        assert torch.equal(state[key], saved[key])
    assert torch.equal(state["centre"][0], saved["centre"][0])
    assert torch.equal(state["base"][0]["state"][0]["exp_avg"], saved["base"][0]["state"][0]["exp_avg"])

    # what was loaded is not shared either
    optimizer.load_state_dict(state)
    kept = state["multipliers"].clone(), state["centre"][0].clone(), state["base"][0]["state"][0]["exp_avg"].clone()
    move()
    assert torch.equal(kept[0], state["multipliers"])
    assert torch.equal(kept[1], state["centre"][0])
    assert torch.equal(kept[2], state["base"][0]["state"][0]["exp_avg"])


def test_what_is_read_out_is_a_copy():
    x = point(2.0)
    optimizer = SPBM([x], 1, mu=1.0)
    optimizer.multipliers.fill_(7.0)
    optimizer.penalties.fill_(7.0)
    state = optimizer.state
    state.centre[0].fill_(7.0)
    assert optimizer.multipliers.item() == pytest.approx(1e-4)
    assert optimizer.penalties.item() == 1.0
    assert optimizer.state.centre[0].item() == 2.0


@every
@pytest.mark.parametrize("flat", [False, True])
def test_frozen_parameters_do_not_crash(cls, flat):
    x, frozen = point(2.0), torch.ones(3)
    optimizer = cls([frozen, x], 1, mu=1.0, flat=flat)
    optimizer.step((x**2).sum() + frozen.sum(), 1 - x)
    assert torch.equal(frozen, torch.ones(3))
    assert x.item() < 2.0


def test_nine_thousand_nine_hundred_constraints_need_one_vector_backward():
    net = nn.Linear(5, 1)
    family = PairwiseGroups(100)
    optimizer = SPBM(net.parameters(), family, lambda_init=1.0)
    z = net(torch.randn(200, 5, generator=torch.Generator().manual_seed(0))).squeeze(1)
    values = family(z)
    assert values.source.shape == (100,) and values.source.grad_fn is not None
    assert optimizer.m == 9900
    assert not values.evaluate().requires_grad
    info = optimizer.step(z.square().mean(), values)
    assert info.max_violation == pytest.approx(values.source.max().item() - values.source.min().item() - 0.1, abs=1e-6)


@every
def test_pairwise_gaps_norms_and_equalities_are_at_hand(cls):
    net = nn.Linear(2, 1)
    x = torch.ones(4, 2)
    for m, values in (
        (PairwiseGroups(2), lambda z: PairwiseGroups(2)(z)),
        (NormBounds(net.parameters()), NormBounds(net.parameters())),
        (2, lambda z: equality(z.mean().reshape(1), 0.1)),
    ):
        z = net(x).squeeze(1)
        info = cls(net.parameters(), m).step(z.square().mean(), values(z))
        assert math.isfinite(info.max_violation)
