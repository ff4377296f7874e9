"""Stacks of networks: each is trained as it would be alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fairfront.constrained import SPBM, SSLALM, PairwiseGroups, PenalizedAdam
from fairfront.constrained.batched import Job, StackedMLP, train_batched
from fairfront.constrained.networks import mlp
from fairfront.constrained.sampling import GroupSampler, feed
from fairfront.constrained.schedules import WarmupCosine
from fairfront.constrained.updates import PenalizedParameters, SPBMParameters, SSLALMParameters
from fairfront.errors import ArgumentError

OPTIMIZERS = {SPBMParameters: SPBM, SSLALMParameters: SSLALM, PenalizedParameters: PenalizedAdam}
HIDDEN = (8, 4)
SETTINGS = {"hidden": HIDDEN, "batch_size": 15, "epochs": 3, "dtype": torch.float64}

FIRST = SPBMParameters(phi="ql", rule="adapt", gamma=0.9, kappa=0.5, mu=1.0, lambda_init=0.1)
SECOND = SPBMParameters(phi="qr", rule="alm", gamma=0.5, rho=2.0, mu=2.0, delta=0.3, lambda_min=0.3)
THIRD = SPBMParameters(phi="qr", rule="constant", gamma=0.0, penalty_init=0.4, lambda_init=0.5)
JOBS = [
    Job(parameters=FIRST, lr=0.02),
    Job(parameters=SECOND, lr=0.01),
    Job(parameters=THIRD, lr=0.05, seed=1),
    Job(parameters=SSLALMParameters(eta=0.5, rho=0.0, mu=1.0), lr=0.02),
    Job(parameters=SSLALMParameters(eta=0.1, rho=1.0, penalty="shifted", mu=0.0), lr=0.02),
    Job(parameters=SSLALMParameters(eta=0.1, rho=2.0, penalty="quadratic"), lr=0.01, seed=2),
    Job(parameters=PenalizedParameters(beta=0.0), lr=0.02),
    Job(parameters=PenalizedParameters(beta=2.0, penalty="hinge", mu=0.5), lr=0.02, seed=1),
]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    groups = rng.choice(4, 90, p=[0.4, 0.3, 0.2, 0.1])
    x = rng.normal(size=(90, 5)) + groups[:, None] * 0.5
    y = (x.sum(1) + rng.normal(size=90) > 3).astype(float)
    return x, y, groups


def alone(job, x, y, groups, constraint, *, hidden, batch_size, epochs, dtype):
    """Train one job by the sequential optimiser of its method, step by step."""
    rows, labels = torch.as_tensor(x, dtype=dtype), torch.as_tensor(y, dtype=dtype)
    generator = torch.Generator().manual_seed(job.seed)
    model = mlp(rows.shape[1], hidden, generator=generator, dtype=dtype)
    sampler = GroupSampler(groups, batch_size, generator=generator)
    optimizer = OPTIMIZERS[type(job.parameters)](
        model.parameters(), constraint, lr=job.lr, parameters=job.parameters, dtype=dtype
    )
    weights, horizon, step = sampler.weights(dtype=dtype), epochs * sampler.steps, 0
    for _ in range(epochs):
        for batch, target in feed(sampler.epoch(), rows, labels):
            optimizer.rescale_lr(WarmupCosine().factor(step, horizon))
            optimizer.zero_grad()
            logits = model(batch).squeeze(1)
            losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
            optimizer.step(losses @ weights, constraint(logits, target, sampler.batch_groups))
            step += 1
    return model, optimizer


@pytest.mark.parametrize("statistic", ["positive_rate", "loss", "true_positive_rate", "false_positive_rate"])
def test_a_stack_trains_each_network_as_alone(problem, statistic):
    constraint = PairwiseGroups(4, statistic, epsilon=0.02, scale=0.5)
    result = train_batched(*problem, JOBS, constraint=constraint, **SETTINGS)
    final = result.history.query("epoch == 3").lambda_max
    for job, network, largest in zip(JOBS, result.networks, final):
        expected, optimizer = alone(job, *problem, constraint, **SETTINGS)
        for mine, theirs in zip(network.parameters(), expected.parameters()):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)
        if job.parameters.__class__ is not PenalizedParameters:
            assert largest == pytest.approx(optimizer.multipliers.max().item(), rel=1e-9)


def test_single_precision_agrees_to_rounding(problem):
    settings = SETTINGS | {"dtype": torch.float32}
    constraint = PairwiseGroups(4, epsilon=0.02)
    result = train_batched(*problem, JOBS[:2], constraint=constraint, **settings)
    for job, network in zip(JOBS, result.networks):
        expected, _ = alone(job, *problem, constraint, **settings)
        for mine, theirs in zip(network.parameters(), expected.parameters()):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


def test_the_package_mode_agrees_too(problem):
    job = Job(parameters=SPBMParameters(mode="package", mu=2.0, lambda_init=1.0), lr=0.02)
    constraint = PairwiseGroups(4, epsilon=0.02)
    printed = dataclasses.replace(job, parameters=dataclasses.replace(job.parameters, mode="algorithm1"))
    (mine,) = train_batched(*problem, [job], constraint=constraint, **SETTINGS).networks
    (other,) = train_batched(*problem, [printed], constraint=constraint, **SETTINGS).networks
    expected, _ = alone(job, *problem, constraint, **SETTINGS)
    torch.testing.assert_close(mine[0].weight, expected[0].weight, rtol=1e-9, atol=1e-11)
    assert (mine[0].weight - other[0].weight).abs().max() > 1e-4


@pytest.mark.parametrize("stack", [1, 3, 20])
def test_the_stack_does_not_matter(problem, stack):
    constraint = PairwiseGroups(4, epsilon=0.02)
    whole = train_batched(*problem, JOBS, constraint=constraint, **SETTINGS)
    parts = train_batched(*problem, JOBS, constraint=constraint, stack=stack, **SETTINGS)
    np.testing.assert_allclose(parts.statistics, whole.statistics, rtol=1e-9, atol=1e-11)


def test_history_is_the_evaluation_of_the_networks(problem):
    x, y, groups = problem
    constraint = PairwiseGroups(4, "true_positive_rate", epsilon=0.05, scale=2.0)
    result = train_batched(x, y, groups, JOBS[:3], constraint=constraint, **SETTINGS)
    assert list(result.history.columns) == [
        "job", "epoch", "objective", "max_constraint", "mean_constraint", "lambda_max",
    ]  # fmt: skip
    assert result.history[["job", "epoch"]].to_numpy().tolist() == [[j, e] for j in range(3) for e in (1, 2, 3)]
    for network, last in zip(result.networks, result.history.query("epoch == 3").itertuples()):
        with torch.no_grad():
            logits = network(torch.as_tensor(x)).squeeze(1)
            labels = torch.as_tensor(y)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            gaps = constraint(logits, labels, torch.as_tensor(groups)).vector()
        assert last.objective == pytest.approx(loss.item(), rel=1e-10)
        assert last.max_constraint == pytest.approx(gaps.max().item(), rel=1e-10)
        assert last.mean_constraint == pytest.approx(gaps.mean().item(), rel=1e-9)


def test_only_the_last_epochs_are_evaluated_where_asked(problem):
    constraint = PairwiseGroups(4)
    whole = train_batched(*problem, JOBS[:2], constraint=constraint, **SETTINGS)
    tail = train_batched(*problem, JOBS[:2], constraint=constraint, evaluate_last=2, **SETTINGS)
    assert tail.statistics.shape == (2, 2, 4)
    expected = whole.history.query("epoch > 1").reset_index(drop=True)
    assert tail.history.equals(expected)


def test_a_diverging_network_leaves_the_others_alone(problem):
    wild = Job(parameters=SPBMParameters(lambda_init=1.0), lr=1e200)
    constraint = PairwiseGroups(4, epsilon=0.02)
    result = train_batched(*problem, [JOBS[0], wild, JOBS[1]], constraint=constraint, **SETTINGS)
    calm = train_batched(*problem, JOBS[:2], constraint=constraint, **SETTINGS)
    np.testing.assert_allclose(result.statistics[[0, 2]], calm.statistics, rtol=1e-9)
    assert not np.isfinite(result.history.query("job == 1").objective).all()


def test_networks_go_in_and_come_out_unchanged():
    networks = [mlp(3, (4,), generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    stack = StackedMLP(networks)
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(9))
    expected = torch.stack([network(x).squeeze(1) for network in networks])
    torch.testing.assert_close(stack.forward(x), expected)
    torch.testing.assert_close(stack.forward(x.expand(3, 6, 3)), expected)
    for number, network in enumerate(networks):
        torch.testing.assert_close(stack.network(number)(x), network(x))


def test_the_written_out_gradient_is_the_graphs():
    networks = [mlp(3, (5, 4), generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in range(2)]
    stack = StackedMLP(networks)
    x = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    by_logit = torch.randn(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    stack.forward(x)
    stack.backward(x, by_logit)
    for network, weights in zip(networks, by_logit):
        network(x).squeeze(1).backward(weights)
    each = [torch.stack([p.grad for p in same]).flatten() for same in zip(*(n.parameters() for n in networks))]
    torch.testing.assert_close(stack.gradients, torch.cat(each))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobs": []}, "jobs: are none"),
        ({"epochs": 0}, "epochs: is 0"),
        ({"stack": 0}, "stack: is 0"),
        ({"y": np.full(90, 2.0)}, "y: holds other labels"),
        ({"x": np.full((90, 5), np.nan)}, "X: holds a number that is not finite"),
        ({"groups": np.zeros(3, int)}, "X, y, groups: have shapes"),
        ({"batch_size": 3}, "batch_size: 3 rows cannot hold"),
        ({"groups": np.zeros(90, int)}, "groups: no row in group 1"),
        ({"constraint": PairwiseGroups(4, lambda logits, labels: logits)}, "constraint: compares a function"),
        ({"hidden": (0,)}, "hidden: holds"),
    ],
)
def test_bad_arguments_are_named(problem, change, message):
    x, y, groups = problem
    given = {"x": x, "y": y, "groups": groups, "jobs": JOBS[:1], "constraint": PairwiseGroups(4)} | SETTINGS | change
    with pytest.raises(ArgumentError, match=message):
        train_batched(given.pop("x"), given.pop("y"), given.pop("groups"), given.pop("jobs"), **given)


@pytest.mark.parametrize("change", [{"lr": 0.0}, {"lr": float("inf")}, {"parameters": None}])
def test_bad_jobs_are_named(change):
    with pytest.raises(ArgumentError, match=next(iter(change))):
        Job(**{"parameters": SPBMParameters(), "lr": 0.1} | change)
