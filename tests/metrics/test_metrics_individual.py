"""Individual fairness: two fast ways of summing over pairs against the pairs themselves."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fairfront import metrics
from fairfront.metrics import individual_fairness as module


def pairwise(z, y, groups):
    """Return value and derivative by n x n arrays."""
    apart = groups[:, None] != groups
    kernel = np.exp(-np.abs(y[:, None] - y)) * apart
    difference = z[:, None] - z
    return (kernel * difference**2).sum() / 2 / apart.sum(), 2 * (kernel * difference).sum(axis=1) / apart.sum()


@st.composite
def problems(draw, labels):
    n = draw(st.integers(2, 90))
    n_groups = draw(st.integers(2, min(n, 9)))
    groups = np.array(draw(st.lists(st.integers(0, n_groups - 1), min_size=n, max_size=n)))
    groups[:n_groups] = np.arange(n_groups)
    z = draw(hnp.arrays(float, n, elements=st.floats(-100, 100)))
    return z, draw(hnp.arrays(float, n, elements=labels)), groups


def check(task, z, y, groups):
    bound = metrics.get("individual_fairness", task=task).bind(y, groups)
    expected, derivative = pairwise(z, y, groups)
    scale = np.abs(z).max()
    reached, reached_derivative = bound.value_and_derivative(z)
    assert reached == pytest.approx(expected, rel=1e-10, abs=1e-14 * scale**2)
    np.testing.assert_allclose(reached_derivative, derivative, rtol=1e-9, atol=1e-14 * scale)


@settings(max_examples=100, deadline=None)
@given(problems(st.sampled_from([0.0, 1.0])))
def test_two_classes(problem):
    check("classification", *problem)


@settings(max_examples=150, deadline=None)
@given(problems(st.one_of(st.floats(-3, 3), st.floats(-1e6, 1e6), st.integers(-40, 40).map(float))))
def test_any_labels(problem):
    check("regression", *problem)


@settings(max_examples=50, deadline=None)
@given(problems(st.floats(-5, 5)))
def test_both_ways_of_summing_agree(problem):
    z, y, groups = problem
    sums = module.GroupSums(groups, int(groups.max()) + 1)
    values, labels = np.unique(y, return_inverse=True)
    by_cells = module._CellKernel(values, labels, sums).times(z[None])
    by_order = module._SortedKernel(y, sums).times(z[None])
    np.testing.assert_allclose(by_order, by_cells, rtol=1e-10, atol=1e-12 * (np.abs(z).max() + 1))


def test_few_labels_take_the_tables_and_many_the_recursions():
    groups = np.arange(100) % 3
    few = metrics.get("individual_fairness", task="regression").bind(np.arange(100) % 20, groups)
    many = metrics.get("individual_fairness", task="regression").bind(np.arange(100) / 7, groups)
    assert isinstance(few._kernel, module._CellKernel) and isinstance(many._kernel, module._SortedKernel)


@pytest.mark.parametrize("n", [1023, 1024, 1025, 3000])
def test_pieces_of_the_recursion_join(n):
    rng = np.random.default_rng(n)
    groups, y, z = rng.integers(0, 5, n), rng.normal(size=n), rng.normal(size=n)
    check("regression", z, y, groups)


def test_labels_far_apart_neither_overflow_nor_lose_the_small_terms():
    # Two groups whose labels are 30 apart: every cross pair weighs e^-30, which a difference of large sums would lose.
    y = np.concatenate([np.linspace(0, 1e-3, 50), np.linspace(30, 30.001, 50)])
    groups, z = np.repeat([0, 1], 50), np.random.default_rng(0).normal(size=100)
    expected, derivative = pairwise(z, y, groups)
    with np.errstate(over="raise", invalid="raise"):
        reached, reached_derivative = (
            metrics.get("individual_fairness", task="regression").bind(y, groups).value_and_derivative(z)
        )
    assert 0 < expected < 1e-12
    assert reached == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(reached_derivative, derivative, rtol=1e-11, atol=1e-30)


def test_two_groups_give_half_the_mean_over_cross_pairs():
    # One label, so that every pair weighs 1: cross pairs differ by 1, 4, 9 and 16 in the square.
    bound = metrics.get("individual_fairness", task="regression").bind([2, 2, 2, 2], [0, 0, 1, 1])
    assert bound.value([0.0, 2.0, 1.0, 5.0]) == pytest.approx((1 + 25 + 1 + 9) / 4 / 2)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_fifty_thousand_rows_take_little_memory(task):
    rng = np.random.default_rng(0)
    n = 50_000
    y = rng.integers(0, 2, n) if task == "classification" else rng.normal(size=n)
    groups, z = rng.integers(0, 36, n), rng.normal(size=n)
    tracemalloc.start()
    try:
        bound = metrics.get("individual_fairness", task=task).bind(y, groups)
        value, derivative = bound.value_and_derivative(z)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    some = rng.choice(n, 5, replace=False)
    kernel = np.exp(-np.abs(y[some, None] - y)) * (groups[some, None] != groups)
    pairs = n**2 - float((np.bincount(groups).astype(float) ** 2).sum())
    expected = 2 * (kernel * (z[some, None] - z)).sum(axis=1) / pairs
    np.testing.assert_allclose(derivative[some], expected, rtol=1e-9)
    assert value == pytest.approx(z @ derivative / 2, rel=1e-10)


def test_ten_thousand_groups():
    n = 20_000
    rng = np.random.default_rng(1)
    groups, y, z = np.arange(n) % 10_000, rng.integers(0, 2, n), rng.normal(size=n)
    value, _ = metrics.get("individual_fairness").bind(y, groups).value_and_derivative(z)
    everyone = 0.0
    for u in (0, 1):
        for v in (0, 1):
            a, b = z[y == u], z[y == v]
            everyone += np.exp(-abs(u - v)) * (len(b) * a @ a + len(a) * b @ b - 2 * a.sum() * b.sum()) / 2
    first, second = slice(0, 10_000), slice(10_000, None)
    within = (np.exp(-np.abs(y[first] - y[second])) * (z[first] - z[second]) ** 2).sum()
    assert value == pytest.approx((everyone - within) / (n**2 - 4 * 10_000), rel=1e-10)
