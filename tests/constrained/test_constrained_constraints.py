"""Constraint families: group statistics, pairwise gaps and their R-vector backward, norms, equalities, one's own."""

import math

import pytest
import torch
from torch import nn

from fairfront.constrained import NormBounds, PairwiseGroups, UserConstraints, equality, group_means
from fairfront.errors import ArgumentError

FLOAT = torch.float64


def rows(n=24, seed=0):
    draw = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, generator=draw, dtype=FLOAT).requires_grad_()
    labels = (torch.rand(n, generator=draw) < 0.5).to(FLOAT)
    groups = torch.arange(n) % 3
    return logits, labels, groups[torch.randperm(n, generator=draw)]


def refused(argument, words, function, *args, **options):
    with pytest.raises(ArgumentError, match=words) as caught:
        function(*args, **options)
    assert caught.value.argument == argument


def by_hand(statistic, z, y):
    probability = 1 / (1 + torch.exp(-z))
    if statistic == "positive_rate":
        return probability.mean()
    if statistic == "true_positive_rate":
        return probability[y == 1].mean()
    if statistic == "false_positive_rate":
        return probability[y == 0].mean()
    return -(y * probability.log() + (1 - y) * (1 - probability).log()).mean()


@pytest.mark.parametrize("statistic", ["positive_rate", "true_positive_rate", "false_positive_rate", "loss"])
@pytest.mark.parametrize("scale", [1.0, 0.25, "epsilon"])
def test_gaps_and_their_gradient(statistic, scale):
    z, y, groups = rows()
    family = PairwiseGroups(3, statistic, epsilon=0.05, scale=scale)
    values = family(z, y, groups)
    s = torch.stack([by_hand(statistic, z[groups == r], y[groups == r]) for r in range(3)])
    unit = 0.05 if scale == "epsilon" else scale
    want = (s[:, None] - s - 0.05) / unit
    torch.testing.assert_close(values.evaluate(), want.detach())
    torch.testing.assert_close(values.vector(), want[~torch.eye(3, dtype=torch.bool)])

    weights = torch.rand(3, 3, dtype=FLOAT, generator=torch.Generator().manual_seed(1))
    (direct,) = torch.autograd.grad((weights * want).sum(), z, retain_graph=True)
    (pulled,) = torch.autograd.grad(values.source, z, values.pull(weights))
    torch.testing.assert_close(pulled, direct)


def test_blocks_are_groups_in_order():
    z, y, _ = rows()
    blocks = torch.arange(3).repeat_interleave(8)
    for statistic in ("positive_rate", "true_positive_rate", "loss"):
        family = PairwiseGroups(3, statistic)
        torch.testing.assert_close(family(z, y).evaluate(), family(z, y, blocks).evaluate())


def test_classes_as_groups():
    draw = torch.Generator().manual_seed(2)
    logits, labels = torch.randn(20, 4, generator=draw), torch.arange(20) % 4
    family = PairwiseGroups(4, "loss")
    statistics, present = family.statistics(logits, labels, labels)
    assert present is None
    for r in range(4):
        want = nn.functional.cross_entropy(logits[labels == r], labels[labels == r])
        torch.testing.assert_close(statistics[r], want)


def test_any_statistic():
    z, y, groups = rows()
    squared = PairwiseGroups(3, lambda logits, labels: (logits - labels).square())
    torch.testing.assert_close(squared.statistics(z, y, groups)[0][1], (z - y)[groups == 1].square().mean())
    masked = PairwiseGroups(3, lambda logits, labels: (logits, labels > 0))
    torch.testing.assert_close(masked.statistics(z, y, groups)[0][2], z[(groups == 2) & (y > 0)].mean())
    ready = squared.from_statistics(torch.tensor([0.3, 0.1, 0.0]))
    torch.testing.assert_close(ready.evaluate()[0], torch.tensor([-0.1, 0.1, 0.2]))


def test_a_group_absent_from_a_batch_is_masked():
    z, y, groups = rows()
    without = groups != 1
    values = PairwiseGroups(3)(z[without], y[without], groups[without])
    gaps = values.evaluate()
    assert values.present.tolist() == [True, False, True]
    assert torch.isnan(gaps[1]).all() and torch.isnan(gaps[:, 1]).all()
    assert math.isfinite(gaps[0, 2])
    (gradient,) = torch.autograd.grad(values.source, z, values.pull(torch.ones(3, 3, dtype=FLOAT).triu()))
    assert torch.isfinite(gradient).all()


def test_a_group_without_positives_has_no_true_positive_rate():
    z = torch.zeros(4, requires_grad=True)
    y, groups = torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([0, 0, 1, 1])
    means, present = PairwiseGroups(2, "true_positive_rate").statistics(z, y, groups)
    assert present.tolist() == [True, False]
    assert means[0].item() == 0.5


def test_a_nan_stays_in_its_group():
    values = torch.tensor([1.0, math.nan, 2.0, 4.0])
    groups = torch.tensor([0, 0, 1, 1])
    for given in (groups, None):
        means, _ = group_means(values, 2, given)
        assert math.isnan(means[0]) and means[1] == 3.0
    kept, _ = group_means(values, 2, groups, torch.tensor([True, False, True, True]))
    assert kept.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("statistic", ["positive_rate", "loss"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_binary_shortcut_is_the_graph(statistic, weighted, blocks, compiled):
    if compiled:
        pytest.importorskip("numba")
    z, y, groups = rows()
    groups = None if blocks else groups
    share = torch.rand(24, dtype=FLOAT, generator=torch.Generator().manual_seed(3)) if weighted else None
    family = PairwiseGroups(3, statistic, epsilon=0.05, scale=0.5, compiled=compiled)
    loss, values = family.binary(z, y, groups, share)
    assert not loss.requires_grad and values.carries(loss)
    losses = nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")
    true_loss = losses.mean() if share is None else share @ losses
    true = family(z, y, groups)
    torch.testing.assert_close(loss, true_loss.detach())
    torch.testing.assert_close(values.evaluate(), true.evaluate())

    pulled = torch.rand(3, dtype=FLOAT, generator=torch.Generator().manual_seed(4))
    for with_loss, with_values in ((True, True), (True, False), (False, True), (True, True)):
        z.grad = None
        values.backward(loss if with_loss else None, pulled if with_values else None)
        got, z.grad = z.grad.clone(), None
        true.backward(true_loss if with_loss else None, pulled if with_values else None, retain_graph=True)
        torch.testing.assert_close(got, z.grad)
    # a loss of one's own keeps its graph
    z.grad = None
    values.backward((z**3).sum(), pulled)
    got, z.grad = z.grad.clone(), None
    true.backward((z**3).sum(), pulled, retain_graph=True)
    torch.testing.assert_close(got, z.grad)


def test_the_shortcut_gives_way_where_it_does_not_apply():
    z, y, groups = rows()
    for family in (PairwiseGroups(3, "true_positive_rate"), PairwiseGroups(4)):  # group 3 is not in the batch
        loss, values = family.binary(z.reshape(-1, 1), y, groups)
        assert loss.requires_grad
        torch.testing.assert_close(values.evaluate(), family(z, y, groups).evaluate(), equal_nan=True)
    family = PairwiseGroups(3)
    family.binary(z, y, groups)
    shuffled = groups.flip(0)
    torch.testing.assert_close(family.binary(z, y, shuffled)[1].evaluate(), family(z, y, shuffled).evaluate())
    groups.copy_(shuffled)  # the same tensor with other groups in it
    torch.testing.assert_close(family.binary(z, y, groups)[1].evaluate(), family(z, y, shuffled).evaluate())
    broken = z.detach().clone()
    broken[0] = math.nan
    finite = torch.isfinite(family.binary(broken.requires_grad_(), y, groups)[1].source)
    assert finite.sum() == 2 and not finite[groups[0]]


def test_bounds_on_norms():
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    net[1].bias.requires_grad_(False)
    family = NormBounds(net.named_parameters(), bound=2.0, scale="epsilon")
    assert family.m == 3 and family.names() == ("norm of 0.weight", "norm of 0.bias", "norm of 1.weight")
    values = family()
    torch.testing.assert_close(values[0], net[0].weight.square().sum().sqrt() / 2 - 1)
    zero = nn.Parameter(torch.zeros(3))
    NormBounds([zero])()[0].backward()
    assert torch.equal(zero.grad, torch.zeros(3))  # and not 0 / 0


def test_an_equality_is_two_inequalities():
    h = torch.tensor([0.3, -0.05, 0.0], requires_grad=True)
    values = equality(h, 0.1)
    torch.testing.assert_close(values, torch.tensor([0.2, -0.15, -0.1, -0.4, -0.05, -0.1]))
    torch.testing.assert_close(equality(h, 0.1, scale="epsilon"), values / 0.1)
    values.sum().backward()
    assert torch.equal(h.grad, torch.zeros(3))


def test_constraints_of_ones_own():
    family = UserConstraints(lambda a, b: torch.stack((a, b)), ["first", "second"], scale=2.0)
    assert (family.m, family.state_shape, family.names()) == (2, (2,), ("first", "second"))
    assert family(torch.tensor(4.0), torch.tensor(-1.0)).tolist() == [2.0, -0.5]
    refused("function", "returns \\(2, 1\\)", UserConstraints(lambda: torch.zeros(2, 1), ["a", "b"]))
    refused("function", "returns float", UserConstraints(lambda: 1.0, ["a"]))
    refused("names", "twice", UserConstraints, lambda: None, ["a", "a"])
    refused("names", "one name a constraint", UserConstraints, lambda: None, "ab")


def test_a_group_that_never_occurs():
    groups = torch.tensor([0, 0, 2, 3])
    refused("groups", "group 1 never occurs", PairwiseGroups.of, groups)
    refused("groups", "group 1, 4 never occurs", PairwiseGroups.of, groups, n_groups=5)
    refused("groups", "reach from 0 to 3", PairwiseGroups.of, groups, n_groups=3)
    refused("groups", "integers", PairwiseGroups.of, groups.float())
    assert PairwiseGroups.of(torch.tensor([0, 1, 2, 1]), "loss", epsilon=0.2).m == 6


def test_bad_input():
    refused("epsilon", "is -0.1", PairwiseGroups, 2, epsilon=-0.1)
    refused("epsilon", "is nan", PairwiseGroups, 2, epsilon=math.nan)
    refused("n_groups", "at least 2", PairwiseGroups, 1)
    refused("statistic", "did you mean positive_rate", PairwiseGroups, 2, "positive_rates")
    refused("scale", "no bound above 0", PairwiseGroups, 2, epsilon=0.0, scale="epsilon")
    refused("scale", "a number > 0", PairwiseGroups, 2, scale=0.0)
    refused("bound", "is -1.0", NormBounds, [torch.ones(1, requires_grad=True)], bound=-1.0)
    refused("parameters", "none requires a gradient", NormBounds, [torch.ones(1)])
    refused("tolerance", "is -1.0", equality, torch.zeros(2), -1.0)
    refused("values", "shape \\(2, 1\\)", equality, torch.zeros(2, 1), 0.1)
    z, y, groups = rows(8)
    refused("groups", "no 3 equal blocks", PairwiseGroups(3), z)
    refused("groups", "no 3 equal blocks", PairwiseGroups(3).binary, z, y)
    refused("groups", "has shape \\(4,\\)", PairwiseGroups(3), z, y, groups[:4])
    refused("groups", "has shape \\(4,\\)", PairwiseGroups(3).binary, z, y, groups[:4])
    refused("labels", "are missing", PairwiseGroups(2, "loss"), z)
    refused("logits", "one logit a row", PairwiseGroups(2), torch.zeros(4, 3))
    refused("statistics", "has shape \\(2,\\)", PairwiseGroups(3).from_statistics, torch.zeros(2))
