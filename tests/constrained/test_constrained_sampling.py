"""Group-balanced batches: what is drawn, how often, with which weights, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfront.constrained.sampling import GroupSampler, feed
from fairfront.errors import ArgumentError

GROUPS = np.repeat([0, 1, 2], [7, 1, 12])  # the second group is a single row


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_every_batch_holds_the_same_number_of_each_group_in_order():
    sampler = GroupSampler(GROUPS, 8, generator=seeded())
    assert sampler.per_group.tolist() == [3, 2, 3]  # 8 = 3 * 2 + 2: the two largest groups give one more
    batches = sampler.epoch()
    assert batches.shape == (len(sampler), 8)
    assert (torch.as_tensor(GROUPS)[batches] == sampler.batch_groups).all()


@pytest.mark.parametrize(("epoch", "steps"), [("cover", 4), ("rows", 3), ("smallest", 1), (5, 5)])
def test_length_of_an_epoch(epoch, steps):
    assert GroupSampler(GROUPS, 8, generator=seeded(), epoch=epoch).steps == steps


def test_a_covering_epoch_meets_every_row():
    assert set(GroupSampler(GROUPS, 8, generator=seeded()).epoch().flatten().tolist()) == set(range(20))


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    extra=st.integers(0, 7),
    epoch=st.sampled_from(["cover", "rows", "smallest", 2]),
    seed=st.integers(0, 1000),
)
def test_no_row_returns_before_every_row_of_its_group_was_drawn(sizes, extra, epoch, seed):
    groups = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    sampler = GroupSampler(groups, len(sizes) + extra, generator=seeded(seed), epoch=epoch)
    drawn = torch.cat([sampler.epoch() for _ in range(4)])
    for group, size in enumerate(sizes):
        stream = drawn[:, sampler.batch_groups == group].flatten().tolist()
        for start in range(0, len(stream), size):
            shuffle = stream[start : start + size]
            assert len(set(shuffle)) == len(shuffle)
        assert set(stream) <= set(np.flatnonzero(groups == group).tolist())


def test_seeds_give_the_batches():
    first, again, other = (GroupSampler(GROUPS, 9, generator=seeded(s)).epoch() for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    GroupSampler(GROUPS, 9, generator=seeded()).epoch()
    assert torch.equal(before, torch.random.get_rng_state())


def test_population_weights_make_the_objective_unbiased():
    sampler = GroupSampler(GROUPS, 8, generator=seeded(1), epoch=4000)
    values = torch.randn(len(GROUPS), generator=seeded(2), dtype=torch.float64)
    batches, by_batch = sampler.epoch(), sampler.weights(dtype=torch.float64)
    # In the mean over whole shuffles every row of a group has the same share, so the two means agree almost exactly.
    estimate = (values[batches] * by_batch).sum(1).mean()
    assert estimate.item() == pytest.approx(values.mean().item(), abs=2e-3)
    balanced = (values[batches] * sampler.weights("balanced", torch.float64)).sum(1).mean()
    by_group = [values[torch.as_tensor(GROUPS) == group].mean() for group in range(3)]
    assert balanced.item() == pytest.approx(
        float(sum(w * m for w, m in zip((3 / 8, 2 / 8, 3 / 8), by_group))), abs=2e-3
    )
    assert abs(balanced.item() - values.mean().item()) > 0.05


def test_weights_add_up_and_follow_note_seven():
    sampler = GroupSampler(np.repeat([0, 1], [30, 10]), 8, generator=seeded())
    weights = sampler.weights(dtype=torch.float64)
    assert weights.sum().item() == pytest.approx(1.0)
    assert weights[0].item() == pytest.approx((30 / 40) / 4)  # R P(R_r) / B with R = 2, B = 8
    assert torch.equal(sampler.weights("balanced"), torch.full((8,), 1 / 8))


def test_resuming_goes_on_with_the_same_batches():
    sampler = GroupSampler(GROUPS, 8, generator=seeded(5), epoch="smallest")
    sampler.epoch()
    state = sampler.state_dict()
    expected = [sampler.epoch() for _ in range(3)]
    other = GroupSampler(GROUPS, 8, generator=seeded(99), epoch="smallest")
    other.load_state_dict(state)
    assert all(torch.equal(other.epoch(), batch) for batch in expected)


def test_a_state_is_a_copy_and_small():
    sampler = GroupSampler(GROUPS, 8, generator=seeded(5), epoch="smallest")
    sampler.epoch()
    state = sampler.state_dict()
    kept = [rows.clone() for rows in state["left_over"]]
    sampler.epoch()
    assert all(torch.equal(a, b) for a, b in zip(state["left_over"], kept))
    assert all(rows.untyped_storage().nbytes() == rows.nbytes for rows in state["left_over"])


def test_a_state_of_other_groups_is_refused():
    sampler = GroupSampler(GROUPS, 8, generator=seeded(), epoch="smallest")
    sampler.epoch()
    with pytest.raises(ArgumentError, match="state: is of a sampler of other groups"):
        GroupSampler([0, 1, 0, 1], 2, generator=seeded()).load_state_dict(sampler.state_dict())


def test_feed_gathers_the_batches():
    rows = torch.arange(40_000 * 3, dtype=torch.float32).view(40_000, 3)
    labels = torch.arange(40_000)
    batches = GroupSampler(np.zeros(40_000, int), 500, generator=seeded()).epoch()
    fed = list(feed(batches, rows, labels))
    assert len(fed) == len(batches) > 1
    assert all(torch.equal(x, rows[b]) and torch.equal(y, labels[b]) for (x, y), b in zip(fed, batches))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 2}, "batch_size: 2 rows cannot hold one of each of the 3 groups"),
        ({"batch_size": 8.5}, "batch_size: is 8.5"),
        ({"groups": [0, 2, 2]}, "groups: no row in group 1"),
        ({"n_groups": 4}, "groups: no row in group 3"),
        ({"n_groups": 2}, "groups: runs from 0 to 2"),
        ({"groups": [-1, 0, 1]}, "groups: runs from -1"),
        ({"groups": [0.0, 1.0]}, "groups: has type float64"),
        ({"groups": [[0], [1]]}, r"groups: has shape \(2, 1\)"),
        ({"groups": []}, r"groups: has shape \(0,\)"),
        ({"groups": [0, 10**12]}, "groups: 1000000000001 groups in 2 rows"),
        ({"epoch": "covered"}, "epoch: unknown: 'covered' .did you mean cover"),
        ({"epoch": 0}, "epoch: is 0"),
        ({"generator": None}, "generator: is None"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"groups": GROUPS, "batch_size": 8, "generator": seeded()} | change
    with pytest.raises(ArgumentError, match=message):
        GroupSampler(arguments.pop("groups"), arguments.pop("batch_size"), **arguments)


def test_unknown_objective():
    with pytest.raises(ArgumentError, match="objective: unknown: 'biased'"):
        GroupSampler(GROUPS, 8, generator=seeded()).weights("biased")
