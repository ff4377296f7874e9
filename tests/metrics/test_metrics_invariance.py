"""What must not change a metric, what may, and how small it can be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics_cases import CASES, Case, rows

from fairfront import metrics

SEES_NUMBERS = ("disparate_mistreatment", "hsic")
seeds = st.integers(0, 2**32 - 1)


def value(case, z, y, groups):
    return case.metric().bind(y, groups).value(z)


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=15, deadline=None)
@given(seed=seeds, n_groups=st.integers(2, 6))
def test_the_order_of_rows_plays_no_part(case, seed, n_groups):
    z, y, groups = rows(seed, n_groups, case.task)
    order = np.random.default_rng(seed).permutation(len(z))
    moved, derivative = case.metric().bind(y[order], groups[order]).value_and_derivative(z[order])
    expected, unmoved = case.metric().bind(y, groups).value_and_derivative(z)
    assert moved == pytest.approx(expected, rel=1e-9, abs=1e-13)
    np.testing.assert_allclose(derivative, unmoved[order], rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.variant == "cited" or case.name not in SEES_NUMBERS], ids=str
)
@settings(max_examples=15, deadline=None)
@given(seed=seeds, n_groups=st.integers(2, 6))
def test_the_numbers_of_the_groups_play_no_part(case, seed, n_groups):
    z, y, groups = rows(seed, n_groups, case.task)
    renumbered = np.random.default_rng(seed).permutation(n_groups)[groups]
    assert value(case, z, y, renumbered) == pytest.approx(value(case, z, y, groups), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("name", SEES_NUMBERS)
def test_published_covariances_change_when_more_than_two_groups_are_renumbered(name):
    case = Case(name, "paper")
    z, y, groups = rows(0, 3, "classification")
    z = z + np.array([0.0, 1.0, 0.0])[groups]
    values = [value(case, z, y, np.array(order)[groups]) for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1])]
    assert max(values) > 1.5 * min(values)
    z, y, groups = rows(0, 2, "classification")
    assert value(case, z, y, 1 - groups) == pytest.approx(value(case, z, y, groups), rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=10, deadline=None)
@given(seed=seeds, n_groups=st.integers(2, 4))
def test_every_row_twice_changes_hsic_alone(case, seed, n_groups):
    z, y, groups = rows(seed, n_groups, case.task)
    n = len(z)
    # HSIC divides sums over n rows by n - 1: a known factor that tends to 1. All others are means.
    factor = (2 * (n - 1) / (2 * n - 1)) ** 2 if case.name == "hsic" else 1.0
    twice = value(case, np.tile(z, 2), np.tile(y, 2), np.tile(groups, 2))
    assert twice == pytest.approx(factor * value(case, z, y, groups), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.metric().bind([0, 1], [0, 0]).quadratic(np.ones((2, 1))) is not None],
    ids=str,
)
def test_a_common_shift_of_the_scores_plays_no_part_in_quadratic_metrics(case):
    z, y, groups = rows(4, 3, case.task)
    assert value(case, z + 1e6, y, groups) == pytest.approx(value(case, z, y, groups), rel=1e-8)


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=30, deadline=None)
@given(seed=seeds, n_groups=st.integers(1, 6), scale=st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_no_value_is_below_the_floor(case, seed, n_groups, scale):
    z, y, groups = rows(seed, n_groups, case.task)
    floor = case.metric().floor(n_groups)
    assert value(case, scale * z, y, groups) >= floor - 1e-12 * max(1.0, floor)


def fair_scores(case, y):
    """Return scores at which the metric should be at its floor."""
    if case.name == "disparate_mistreatment" and case.variant == "cited":
        return (2 * y - 1) * 5
    if case.name == "group_variance":
        return y if case.task == "regression" or ("loss", "squared_error") in case.options else np.zeros(len(y))
    return np.full(len(y), 0.7)


@pytest.mark.parametrize("n_groups", [1, 2, 5])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_floor_is_reached_and_stationary(case, n_groups):
    _, y, groups = rows(6, n_groups, case.task)
    reached, derivative = case.metric().bind(y, groups).value_and_derivative(fair_scores(case, y))
    assert reached == pytest.approx(case.metric().floor(n_groups), abs=1e-14)
    assert np.abs(derivative).max() < 1e-14


def test_floors_are_the_published_ones():
    for n_groups in (1, 2, 36):
        floors = {case: case.metric().floor(n_groups) for case in CASES}
        assert all(floor == 0 for case, floor in floors.items() if case.variant == "cited")
        assert floors[Case("demographic_parity", "paper")] == pytest.approx(np.log(n_groups) + 1e-3)
        assert floors[Case("equal_opportunity", "paper")] == pytest.approx(2 * np.log(n_groups))
        assert floors[Case("equalized_odds", "paper", options=(("rho", 3.0),))] == pytest.approx(
            2 * np.log(n_groups) / 3
        )
        for name in ("disparate_mistreatment", "hsic", "group_variance", "individual_fairness"):
            assert floors[Case(name, "paper")] == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_extreme_scores_neither_overflow_nor_turn_into_nan(case):
    _, y, groups = rows(8, 3, case.task)
    rng = np.random.default_rng(0)
    for z in (np.full(len(y), 1e3), np.full(len(y), -1e3), rng.choice([-1e3, 1e3], len(y)), np.full(len(y), 1e-300)):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            reached, derivative = case.metric().bind(y, groups).value_and_derivative(z)
        assert np.isfinite(reached) and np.isfinite(derivative).all()


@pytest.mark.parametrize("name", metrics.names())
def test_one_group_has_nothing_to_be_unfair_to(name):
    z, y, _ = rows(9, 2, "classification")
    bound = metrics.get(name).bind(y, np.zeros(len(y), dtype=int))
    reached, derivative = bound.value_and_derivative(z)
    assert reached == pytest.approx(0, abs=1e-14) and np.abs(derivative).max() < 1e-14
