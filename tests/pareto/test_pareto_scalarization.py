import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import cho_solve

from fairfront.errors import ArgumentError
from fairfront.pareto import ConvergenceError, Scalarization
from fairfront.risks import GroupRisks


def random_risks(loss="logistic", n_groups=3, n=300, d=5, seed=0, **options):
    generator = np.random.default_rng(seed)
    groups = np.arange(n) % n_groups
    X = np.column_stack([np.ones(n), generator.normal(size=(n, d - 1))])
    z = np.sum(X * generator.normal(size=(n_groups, d))[groups], axis=1)
    y = z if loss == "squared" else (generator.random(n) < 1 / (1 + np.exp(-z))).astype(float)
    return GroupRisks(X, y, groups, loss=loss, **options)


losses = st.sampled_from(["logistic", "squared_hinge", "squared"])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), loss=losses, free=st.booleans())
def test_a_warm_start_never_changes_the_solution(seed, loss, free):
    risks = random_risks(loss, seed=seed, penalize_intercept=not free)
    warm, generator = Scalarization(risks), np.random.default_rng(seed)
    for lam in [*generator.dirichlet(np.ones(3), 4), *np.eye(3)]:
        model, cold = warm.solve(lam), Scalarization(risks).solve(lam)
        assert model.gradient_norm <= 1e-11 and cold.gradient_norm <= 1e-11
        np.testing.assert_allclose(model.w, cold.w, atol=1e-8)
    assert warm.solves == 7
    assert warm.solve(np.eye(3)[2]) is model and warm.solves == 7


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), loss=losses)
def test_systems_with_the_hessian_are_solved_to_the_tolerance(seed, loss):
    risks, generator = random_risks(loss, seed=seed), np.random.default_rng(seed)
    solver = Scalarization(risks)
    lam = generator.dirichlet(np.ones(3))
    solver.solve(lam)
    model = solver.solve(0.99 * lam + 0.01 / 3)  # close by: the factor is from elsewhere
    b = generator.normal(size=5)
    H = model.point.hessian(model.weights)
    near = Scalarization(risks)
    near.solve(lam)
    again = near.solve(0.99 * lam + 0.01 / 3)
    x = again.solve_hessian(b)
    exact = np.linalg.solve(H, b)
    assert np.sqrt((x - exact) @ H @ (x - exact)) <= 1e-10 * np.sqrt(exact @ H @ exact)
    np.testing.assert_allclose(cho_solve(model.factor, b), exact, rtol=1e-8, atol=1e-10)


def test_a_quadratic_term_is_part_of_the_problem():
    risks, lam = random_risks(), np.array([0.2, 0.3, 0.5])
    Q = np.diag([0.0, 1.0, 2.0, 0.0, 0.5])
    model = Scalarization(risks).solve(lam, quadratic=Q)
    assert np.abs(lam @ risks.at(model.w).gradients + 2 * Q @ model.w).max() < 1e-11
    x = model.solve_hessian(np.ones(5))
    np.testing.assert_allclose((model.point.hessian(lam) + 2 * Q) @ x, np.ones(5), atol=1e-9)


def test_far_starts_converge():
    risks = random_risks()
    expected = Scalarization(risks).solve(np.full(3, 1 / 3)).w
    for scale in (10.0, 100.0):
        start = scale * np.array([1.0, -1, 1, -1, 1])
        np.testing.assert_allclose(Scalarization(risks, start=start).solve(np.full(3, 1 / 3)).w, expected, atol=1e-9)


def test_badly_scaled_data_are_solved_to_the_floor_of_rounding():
    generator = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), 1e4 * generator.normal(size=(300, 3))])
    y = X @ [1.0, 2.0, -1.0, 3.0] + generator.normal(size=300)
    risks = GroupRisks(X, y, np.arange(300) % 2, loss="squared")
    model = Scalarization(risks).solve([0.5, 0.5])
    exact = np.linalg.solve(model.point.hessian(model.weights), 2 * X[risks.order].T @ (risks.y / 300))
    np.testing.assert_allclose(model.w, exact, rtol=1e-9)


def test_many_rows_start_from_a_sample_and_end_in_the_same_model():
    risks = random_risks(n=60_000)
    lam = np.array([0.2, 0.3, 0.5])
    sampled, plain = Scalarization(risks).solve(lam), Scalarization(risks, start=np.zeros(5)).solve(lam)
    np.testing.assert_allclose(sampled.w, plain.w, atol=1e-10)
    assert sampled.iterations < plain.iterations


def test_without_strict_convexity_the_error_says_what_to_do():
    X = np.ones((20, 2))
    risks = GroupRisks(X, np.arange(20) % 2, np.arange(20) % 2, l2=0.0)
    with pytest.raises(ConvergenceError, match="l2 > 0"):
        Scalarization(risks).solve([0.5, 0.5])


def test_a_separable_group_with_a_free_intercept_has_no_minimiser():
    X = np.ones((20, 1))
    y = np.r_[np.ones(10), np.arange(10) % 2]
    risks = GroupRisks(X, y, np.repeat([0, 1], 10), penalize_intercept=False)
    with pytest.raises(ConvergenceError, match=r"penalise|l2"):
        Scalarization(risks).solve([1.0, 0.0])
    Scalarization(risks).solve([0.5, 0.5])


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.5, 0.6, -0.1], [np.nan, 0.5, 0.5], [0.5, 0.5, 0.5], [[1 / 3] * 3]])
def test_weights_off_the_simplex_are_refused(weights):
    with pytest.raises(ArgumentError, match=r"^weights"):
        Scalarization(random_risks()).solve(weights)
