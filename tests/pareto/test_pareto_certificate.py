"""Certificates: equal to a conic solver's where that one works, small on the front, a bound everywhere."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfront.errors import ArgumentError
from fairfront.pareto import certify, first_order_multipliers, minimax, scalarized, trace, two_group_weights
from fairfront.risks import GroupRisks


def random_risks(n_groups: int = 2, seed: int = 0, n: int = 120, d: int = 4, **options) -> GroupRisks:
    """Return logistic risks of rows whose groups differ in their labels' dependence on the features."""
    generator = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), generator.normal(size=(n, d - 1))])
    groups = np.arange(n) % n_groups
    slopes = generator.normal(size=(n_groups, d))
    y = (generator.random(n) < 1 / (1 + np.exp(-np.sum(X * slopes[groups], axis=1)))).astype(float)
    return GroupRisks(X, y, groups, **({"l2": 1e-2} | options))


def conic_improvement(risks: GroupRisks, w: np.ndarray) -> float:
    """Return the largest total improvement over ``w`` as Clarabel solves the primal."""
    u, s = cp.Variable(risks.n_features), cp.Variable(risks.n_groups, nonneg=True)
    now = risks.at(w).losses
    constraints = []
    for a in range(risks.n_groups):
        rows = slice(risks.offsets[a], risks.offsets[a + 1])
        z = risks.Xt[:, rows].T @ u
        loss = cp.sum(cp.logistic(z) - cp.multiply(risks.y[rows], z)) / risks.group_sizes[a]
        penalty = 0.5 * cp.sum(cp.multiply(risks.penalty, cp.square(u)))
        constraints.append(loss + penalty + s[a] <= now[a])
    return float(cp.Problem(cp.Maximize(cp.sum(s)), constraints).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_equals_the_conic_solver_on_dominated_models(n_groups: int, penalize_intercept: bool) -> None:
    risks = random_risks(n_groups, seed=n_groups, penalize_intercept=penalize_intercept)
    for seed in range(3):
        w = np.random.default_rng(seed).normal(scale=0.5, size=risks.n_features)
        certificate = certify(risks, w)
        assert certificate.slack == pytest.approx(conic_improvement(risks, w), rel=1e-5)
        assert certificate.dominating is not None
        assert certificate.improvement == pytest.approx(certificate.slack, rel=1e-5)
        assert not certificate.efficient()


def test_the_dominating_model_is_better_for_one_and_worse_for_nobody() -> None:
    risks = random_risks(4, seed=7)
    certificate = certify(risks, np.zeros(risks.n_features))
    assert certificate.dominating is not None
    assert (certificate.dominating.losses <= certificate.losses).all()
    assert certificate.improvement > 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n_groups=st.integers(2, 4))
def test_proposition_1_scalarised_models_are_certified(seed: int, n_groups: int) -> None:
    risks = random_risks(n_groups, seed=seed, n=60)
    weights = np.random.default_rng(seed).dirichlet(np.full(n_groups, 0.5))
    assert certify(risks, scalarized(risks, "some", weights).model.w).slack <= 1e-7


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_the_vertices_of_the_simplex_are_certified(n_groups: int) -> None:
    risks = random_risks(n_groups, seed=3)
    for vertex in np.eye(n_groups):
        assert certify(risks, scalarized(risks, "vertex", vertex).model.w).slack <= 1e-6


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.floats(1e-3, 2.0))
def test_the_bound_is_never_below_a_known_improvement(seed: int, size: float) -> None:
    risks = random_risks(2, seed=seed % 7, n=60)
    generator = np.random.default_rng(seed)
    better = scalarized(risks, "some", generator.dirichlet([1.0, 1.0])).model.point
    worse = risks.at(better.w + size * generator.normal(size=risks.n_features))
    gains = worse.losses - better.losses
    if (gains >= 0).all():
        assert certify(risks, worse.w).slack >= gains.sum() - 1e-10


def test_a_small_step_off_the_front_is_noticed() -> None:
    risks = random_risks(2, seed=1)
    model = scalarized(risks, "uniform", [0.5, 0.5]).model
    step = 1e-3 * model.point.gradients[0] / np.linalg.norm(model.point.gradients[0])
    slacks = [certify(risks, model.w + k * step).slack for k in (1, 10, 100)]
    assert slacks[0] > 1e-9
    assert slacks == sorted(slacks)


def test_first_order_multipliers_are_the_weights_of_a_scalarised_model() -> None:
    risks = random_risks(3, seed=5)
    weights = np.array([0.2, 0.5, 0.3])
    multipliers, norm = first_order_multipliers(scalarized(risks, "some", weights).model.point)
    assert multipliers == pytest.approx(weights, abs=1e-6)
    assert norm < 1e-9
    assert first_order_multipliers(risks.at(np.zeros(risks.n_features)))[1] > 1e-3


def test_the_minimax_model_is_certified() -> None:
    risks = random_risks(3, seed=11)
    assert certify(risks, minimax(risks).model.w).slack <= 1e-6


def test_a_front_of_two_groups_trades_one_risk_for_the_other() -> None:
    front = trace(random_risks(2, seed=2), two_group_weights(11))
    assert (np.diff(front.losses[:, 0]) < 0).all()
    assert (np.diff(front.losses[:, 1]) > 0).all()
    assert front.weights[0] == pytest.approx([0, 1])


def test_errors_name_the_argument() -> None:
    risks = random_risks()
    with pytest.raises(ArgumentError, match="cap"):
        certify(risks, np.zeros(risks.n_features), cap=0.5)
    with pytest.raises(ArgumentError, match="w:"):
        certify(risks, np.full(risks.n_features, np.nan))
    with pytest.raises(ArgumentError, match="w:"):
        certify(risks, np.zeros(2))
    with pytest.raises(ArgumentError, match="points"):
        two_group_weights(1)
