"""Values against the definitions written out naively, and derivatives against central differences."""

import metrics_cases
import numpy as np
import pytest
from metrics_cases import CASES, central_difference, rows

from fairfront import metrics


@pytest.mark.parametrize("n_groups", [2, 3, 6])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_value_is_the_definition(case, n_groups):
    z, y, groups = rows(n_groups, n_groups, case.task)
    if case.variant == "paper":
        expected = metrics_cases.PAPER[case.name](z, y, groups, n_groups, case.task, **dict(case.options))
    else:
        expected = metrics_cases.cited(case, z, y, groups, n_groups)
    assert case.metric().bind(y, groups).value(z) == pytest.approx(expected, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("sort", [False, True], ids=["any-order", "sorted"])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 6])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivative_is_that_of_the_value(case, n_groups, sort):
    z, y, groups = rows(10 + n_groups, n_groups, case.task, sort=sort)
    bound = case.metric().bind(y, groups)
    value, derivative = bound.value_and_derivative(z)
    differences = central_difference(bound.value, z)
    assert value == bound.value(z)
    assert derivative.shape == z.shape and derivative.dtype == np.float64
    if n_groups > 1:
        assert np.abs(derivative).max() > 1e-5, "the comparison below would say nothing"
    np.testing.assert_allclose(derivative, differences, rtol=0, atol=1e-6 * np.abs(differences).max() + 2e-10)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sorted_rows_give_what_any_order_gives(case):
    z, y, groups = rows(5, 4, case.task)
    order = np.argsort(groups, kind="stable")
    value, derivative = case.metric().bind(y, groups).value_and_derivative(z)
    value_sorted, derivative_sorted = case.metric().bind(y[order], groups[order]).value_and_derivative(z[order])
    assert value_sorted == pytest.approx(value, rel=1e-12, abs=1e-15)
    np.testing.assert_allclose(derivative_sorted, derivative[order], rtol=1e-10, atol=1e-15)


def test_published_disparate_mistreatment_sees_no_label():
    z, y, groups = rows(0, 3, "classification")
    metric = metrics.get("disparate_mistreatment", variant="paper")
    assert metric.bind(y, groups).value(z) == metric.bind(1 - y, groups).value(z)


@pytest.mark.parametrize("margin", [0.0, -0.1], ids=["boundary", "end of the rounded piece"])
def test_cited_disparate_mistreatment_has_a_continuous_derivative(margin):
    y, groups = np.ones(4), np.array([0, 0, 1, 1])
    bound = metrics.get("disparate_mistreatment", width=0.1).bind(y, groups)
    at = [bound.value_and_derivative(np.array([margin + e, -1.0, -2.0, 3.0]))[1][0] for e in (-1e-9, 0.0, 1e-9)]
    assert np.ptp(at) < 1e-7
    second = [bound.value_and_derivative(np.array([margin + e, -1.0, -2.0, 3.0]))[1][0] for e in (-0.01, 0.01)]
    assert np.ptp(second) > 1e-3, "the derivative has a kink here, so that a jump could have been seen"


def test_cited_disparate_mistreatment_is_zafars_covariance():
    z, y, groups = rows(3, 2, "classification", n=400)
    wrongness = np.minimum(0, (2 * y - 1) * z)
    covariance = abs(np.cov(groups, wrongness, bias=True)[0, 1])
    value = metrics.get("disparate_mistreatment", width=1e-9).bind(y, groups).value(z)
    assert covariance > 0.01
    assert value == pytest.approx(np.hypot(covariance, 1e-3) - 1e-3, rel=1e-6)


def test_hsic_of_two_groups_is_twice_the_published_one():
    z, y, groups = rows(1, 2, "classification")
    published = metrics.get("hsic", variant="paper").bind(y, groups).value(z)
    assert metrics.get("hsic").bind(y, groups).value(z) == pytest.approx(2 * published, rel=1e-12)


@pytest.mark.parametrize("n_groups", [2, 5])
def test_smooth_rates_approach_the_hard_ones(n_groups):
    z, y, groups = rows(2, n_groups, "classification", n=200)
    z = np.where(np.abs(z) < 0.01, 0.01, z)
    predicted = metrics.hard.predicted(z)
    smooth = {name: metrics.get(name, rho=1e4).bind(y, groups).value(z) for name in metrics.names()[:3]}
    rates = np.array([predicted[groups == a].mean() for a in range(n_groups)])
    assert smooth["demographic_parity"] == pytest.approx(np.abs(rates - rates.mean()).max(), abs=2e-3)
    hard = metrics.hard.equal_opportunity_difference(y, predicted, groups)
    assert hard > 0.02
    assert smooth["equal_opportunity"] == pytest.approx(hard, abs=2e-3)
    hard = metrics.hard.equalized_odds_difference(y, predicted, groups, agg="mean")
    assert smooth["equalized_odds"] == pytest.approx(hard, abs=2e-3)
