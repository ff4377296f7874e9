"""Theorem 3 and its lemmas along paths of the package's Algorithm 2, and the problem that they are checked on."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfront.errors import ArgumentError
from fairfront.theory import spbm_convergence as theory
from fairfront.theory.single_unit import COUNTEREXAMPLE, KINKED, SingleUnit, barrier


@pytest.fixture(scope="module")
def path() -> theory.Path:
    return theory.follow(COUNTEREXAMPLE, 4, theory.Schedule(power=1.5, hold=30), runs=5, steps=300, start=0.7)


@pytest.fixture(scope="module")
def kink() -> theory.Path:
    return theory.follow(KINKED, 8, theory.Schedule(power=1.5, hold=30), runs=5, steps=300, start=1.2)


# --- the problem -----------------------------------------------------------------------------------------------------


@given(x=st.floats(-3, 3), power=st.sampled_from([1, 2]))
@settings(max_examples=30, deadline=None)
def test_slopes_are_those_of_automatic_differentiation(x: float, power: int) -> None:
    problem = dataclasses.replace(KINKED, power=power)
    shares = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    z = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    losses = shares * (torch.relu(z) - torch.tensor(problem.labels, dtype=torch.float64)).abs() ** power
    g = losses @ torch.tensor(problem.weights, dtype=torch.float64).T - torch.tensor(
        problem.offsets, dtype=torch.float64
    )
    at = problem.evaluate(x, shares.numpy())
    assert at.f == pytest.approx(losses.sum().item()) and at.g == pytest.approx(g.detach().numpy())
    assert at.df == pytest.approx(torch.autograd.grad(losses.sum(), z, retain_graph=True)[0].item())
    for i in range(problem.m):
        assert at.dg[i] == pytest.approx(torch.autograd.grad(g[i], z, retain_graph=True)[0].item())


@given(x=st.fractions(-3, 3, max_denominator=40))
@settings(max_examples=30, deadline=None)
def test_exact_values_agree_with_floating_point(x: Fraction) -> None:
    for problem in (COUNTEREXAMPLE, KINKED):
        f, g = problem.exact(x)
        at = problem.evaluate(float(x))
        assert at.f == pytest.approx(float(f)) and at.g == pytest.approx([float(value) for value in g])


def test_expectations_are_those_of_all_ordered_batches() -> None:
    samples = [0] * 4 + [1] * 5 + [2]  # the labels' numbers, in their shares
    x, lam, p = 0.7, np.array([1.3, 0.4]), np.array([0.2, 0.8])
    values = []
    for batch in itertools.product(samples, repeat=2):
        at = KINKED.evaluate(x, np.bincount(batch, minlength=3) / 2)
        values.append(at.f + float((lam * p * barrier(at.g / p)).sum()))
    found = KINKED.expected(x, lam, p, KINKED.batches(2))[0]
    assert found == pytest.approx(np.mean(values), rel=1e-12)


def test_field_is_an_interval_that_holds_zero_at_a_kink_and_a_point_elsewhere() -> None:
    batches, ones = KINKED.batches(8), np.ones(2)
    low, high = KINKED.field(0.5, ones, ones, batches)
    assert low < -0.1 and high > 0.1
    for x in (0.3, 0.7, -1.0):
        low, high = KINKED.field(x, ones, ones, batches)
        assert low == high == pytest.approx(float(KINKED.expected(x, ones, ones, batches)[1]))


def test_mean_of_subdifferentials_is_larger_than_the_subdifferential_of_the_mean() -> None:
    # |x - 1| and -|x - 1| by a weight of -1: the constraint's mean is flat, its mini-batches are not.
    problem = SingleUnit((0.0, 1.0), (0.5, 0.5), ((0.0, 0.0),), (0.0,), power=1)
    low, high = problem.field(1.0, np.zeros(1), np.ones(1), problem.batches(1))
    assert (low, high) == (0.0, 1.0)


@pytest.mark.parametrize("change", [{"power": 3}, {"labels": (0.0,)}, {"offsets": (0.0, 0.0)}, {"weights": ((1.0,),)}])
def test_problems_that_do_not_fit_together_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        dataclasses.replace(COUNTEREXAMPLE, **change)


# --- the algorithm ---------------------------------------------------------------------------------------------------


def test_batched_runs_are_the_runs_alone() -> None:
    schedule = theory.Schedule(power=1.5, hold=5)
    path = theory.follow(KINKED, 4, schedule, runs=3, steps=40, start=1.2, seed=3)
    moved = path.theta.copy()
    theta = torch.full((2,), 0.6, dtype=torch.float64, requires_grad=True)
    from fairfront.constrained import SPBM, Algorithm2

    alone = SPBM(
        [theta],
        2,
        base=torch.optim.SGD,
        lr=0.1,
        dtype=torch.float64,
        schedule=Algorithm2(hold=5, exponent=0.5, alpha0=0.1),
        mu=1.0,
        lambda_init=1.0,
        lambda_max=10.0,
    )
    labels = torch.tensor(KINKED.labels, dtype=torch.float64)
    weights, offsets = (
        torch.tensor(KINKED.weights, dtype=torch.float64),
        torch.tensor(KINKED.offsets, dtype=torch.float64),
    )
    for k in range(40):
        losses = torch.from_numpy(path.shares[k, 1]) * (torch.relu(theta.sum()) - labels).abs()
        alone.zero_grad()
        alone.step(losses.sum(), weights @ losses - offsets)
        np.testing.assert_allclose(theta.detach().numpy(), moved[k + 1, 1], rtol=1e-10)
    np.testing.assert_allclose(alone.multipliers.numpy(), path.lam[-1, 1], rtol=1e-10)


def test_schedule_is_the_package_one_within_the_theorem_and_goes_beyond_it() -> None:
    from fairfront.constrained import Algorithm2

    within = theory.Schedule(power=1.5, hold=7).algorithm2()
    assert type(within) is Algorithm2 and within.exponent == 0.5
    constant = theory.Schedule(power=0.0, hold=7).algorithm2()
    assert constant.gamma(0) == constant.gamma(10**6) == pytest.approx(0.9)
    for power in (0.5, 1.0, 1.5):
        schedule = theory.Schedule(power=power, hold=7)
        assert 1 - schedule.algorithm2().gamma(20) == pytest.approx(0.1 * float(schedule.deviation(20)))


def test_remaining_sum_is_the_series_or_infinite() -> None:
    schedule = theory.Schedule(power=1.5, hold=10)
    terms = schedule.deviation(np.arange(2_000_000))
    tail = 2.0 / math.sqrt(2_000_000 - 10)
    assert schedule.remaining(0) == pytest.approx(terms.sum() + tail, rel=1e-6)
    assert schedule.remaining(500) == pytest.approx(terms[500:].sum() + tail, rel=1e-5)
    assert theory.Schedule(power=1.0).remaining(5) == math.inf


def test_every_statement_holds_on_both_problems(path: theory.Path, kink: theory.Path) -> None:
    for mine in (path, kink):
        bounds, generator = theory.Bounds.of(mine), np.random.default_rng(0)
        checks = [
            theory.recursion(mine),
            theory.lemma_10(mine),
            theory.lemma_11(bounds, mine),
            theory.lemma_12(mine, bounds, generator),
            theory.lemma_13_mean(mine),
            theory.lemma_13_bounded(mine, bounds),
            theory.lemma_13_conservative(mine, generator),
            theory.lemma_14(mine, bounds),
            theory.lemma_15(mine),
            theory.lemma_16(mine),
            theory.lemma_17(mine, bounds),
            theory.lemma_18(mine),
            theory.lemma_18_limit(mine, bounds),
            theory.lemma_19(mine, bounds, generator),
            theory.lemma_20(mine, bounds),
            theory.lemma_21(mine),
            theory.lemma_22(mine),
            theory.lemma_23(mine),
            theory.lemma_24(mine),
        ]
        assert [check.statement for check in checks if not check.holds] == []
        assert all(check.cases > 0 for check in checks)


def altered(path: theory.Path, **arrays: np.ndarray) -> theory.Path:
    fields = {field.name: getattr(path, field.name) for field in dataclasses.fields(path)}
    return theory.Path(**(fields | arrays))


def test_checks_notice_what_they_are_for(path: theory.Path) -> None:
    bounds = theory.Bounds.of(path)
    later = path.theta.copy()
    later[150:] += 0.01
    assert not theory.recursion(altered(path, theta=later)).holds
    assert not theory.lemma_18(altered(path, centre=path.centre + 0.5)).holds
    jumps = path.lam.copy()
    jumps[280::2] += 5000.0
    assert not theory.lemma_17(altered(path, lam=jumps), bounds).holds
    assert not theory.lemma_10(altered(path, p=path.p + 1.0)).holds
    tilted = altered(path, shares=np.broadcast_to([0.0, 1.0], path.shares.shape).copy())
    assert not theory.lemma_15(tilted).holds and not theory.lemma_16(tilted).holds
    small = dataclasses.replace(bounds, direction=1e-3, field=1e-3)
    assert not theory.lemma_13_bounded(path, small).holds and not theory.lemma_14(path, small).holds
    tiny = dataclasses.replace(small, lagrangian=1e-3, g_max=1e-3)
    assert not theory.lemma_12(path, tiny, np.random.default_rng(0)).holds
    assert not theory.lemma_18_limit(path, small).holds
    assert not theory.lemma_19(path, small, np.random.default_rng(0)).holds


def test_items_hold_within_the_theorem_and_the_first_fails_beyond(path: theory.Path) -> None:
    items = (theory.theorem_3_1, theory.theorem_3_2, theory.theorem_3_3, theory.theorem_3_4)
    assert [item(path).holds for item in items] == [True] * 4
    constant = theory.follow(COUNTEREXAMPLE, 4, theory.Schedule(power=0.0), runs=5, steps=300, start=0.7)
    assert not theory.theorem_3_1(constant).holds and not theory.lemma_10(constant).holds
    still = altered(path, theta=np.ones_like(path.theta), centre=np.zeros_like(path.theta))
    assert not theory.theorem_3_2(still).holds  # a gap that stays
    far = altered(path, theta=path.theta + 0.4)
    assert not theory.theorem_3_4(far).holds  # a distance that stays


def test_critical_points_are_where_the_slope_vanishes(path: theory.Path, kink: theory.Path) -> None:
    for point in theory.critical_points(path, 0)[1:]:
        slope = path.problem.expected(point, path.lam[-1, 0], path.p[-1, 0], path.batches)[1]
        assert abs(float(slope)) < 1e-8
    assert 0.0 in theory.critical_points(path, 0)
    assert 0.5 in theory.critical_points(kink, 0)


def test_frozen_start_is_critical_and_infeasible() -> None:
    path = theory.follow(COUNTEREXAMPLE, 4, theory.Schedule(power=1.5), runs=2, steps=60, start=-2.0)
    assert np.array_equal(path.theta, np.full_like(path.theta, -1.0)) and (path.distance == 0).all()
    assert theory.theorem_3_4(path).measured == 0.0 and (path.problem.evaluate(path.x[-1]).g == 0.5).all()
