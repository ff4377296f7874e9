import itertools

import bilevel_cases as cases
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront.bilevel import (
    NOT_PRINTED,
    Objective,
    ProblemBounds,
    StepSizes,
    StochasticConstants,
    Theorem4Constants,
    badr_gd,
    badr_sgd,
    gd_iterates,
    lower_level_bounds,
    practical_steps,
    project,
    sgd_iterates,
    slsqp,
    theorem4_steps,
    theorem7_steps,
)
from fairfront.bilevel.single_loop import clip
from fairfront.errors import ArgumentError
from fairfront.pareto import Scalarization


def take(iterates, count):
    return [next(iterates) for _ in range(count)]


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_badr_gd_is_algorithm_1_line_by_line(loss):
    risks, metric = cases.problem(loss, 3, "demographic_parity")
    steps = StepSizes(0.1, 0.05, 0.3)
    states = take(gd_iterates(risks, metric, steps), 6)
    assert not states[0].w.any() and not states[0].v.any()
    np.testing.assert_allclose(states[0].weights, 1 / 3)
    for old, new in itertools.pairwise(states):
        point = risks.at(old.w)  # all at the old point
        _, derivative = metric.value_and_derivative(point.scores)
        Q, J = point.hessian(old.weights), point.gradients.T
        np.testing.assert_allclose(new.w, old.w - 0.1 * (J @ old.weights), atol=1e-13)
        np.testing.assert_allclose(new.v, old.v - 0.05 * (Q @ old.v + risks.Xt @ derivative), atol=1e-13)
        np.testing.assert_allclose(new.weights, project(old.weights - 0.3 * (J.T @ old.v)), atol=1e-13)


def test_the_dual_variable_tends_to_minus_the_adjoint():
    risks, metric = cases.problem("logistic", 2, "demographic_parity", l2=0.5)
    steps = StepSizes(0.5, 0.5, 1e-12)
    state = take(gd_iterates(risks, metric, steps), 2000)[-1]
    evaluation = Objective(risks, metric).evaluate(np.full(2, 0.5))
    np.testing.assert_allclose(state.w, evaluation.model.w, atol=1e-8)
    np.testing.assert_allclose(state.direction, evaluation.gradient, atol=1e-7)


def test_badr_gd_converges_to_a_stationary_point():
    risks, metric = cases.problem("logistic", 3, "individual_fairness", l2=0.5)
    solution = badr_gd(risks, metric, max_iterations=20_000)
    assert solution.converged and solution.solver == "badr-gd"
    gradient = Objective(risks, metric).evaluate(solution.weights).gradient
    assert gradient @ solution.weights - gradient.min() < 1e-5
    assert solution.value == pytest.approx(slsqp(risks, metric).value, abs=1e-4)
    assert len(solution.frame()) == len(solution.history) > 1


def test_badr_gd_stops_by_iterations_and_by_time():
    risks, metric = cases.problem("logistic", 2, "demographic_parity")
    steps = StepSizes(1e-6, 1e-6, 1e-6)
    stopped = badr_gd(risks, metric, steps=steps, max_iterations=7, record_every=3)
    assert stopped.status == "iteration limit"
    assert [record.iteration for record in stopped.history] == [0, 3, 6, 7]
    assert badr_gd(risks, metric, steps=steps, time_limit=0.0).status == "time limit"
    with pytest.raises(ArgumentError, match="window"):
        badr_sgd(risks, metric, generator=np.random.default_rng(0), window=0)


def test_badr_sgd_draws_within_each_group_and_is_reproducible():
    risks, metric = cases.problem("logistic", 3, "demographic_parity")
    steps = StepSizes(0.1, 0.1, 0.1, 0.05)
    first, again = (take(sgd_iterates(risks, metric, steps, np.random.default_rng(3)), 20) for _ in range(2))
    for one, other in zip(first, again):
        np.testing.assert_array_equal(one.w, other.w)
    other = take(sgd_iterates(risks, metric, steps, np.random.default_rng(4)), 20)
    assert not np.array_equal(first[-1].w, other[-1].w)
    for old, new in itertools.pairwise(first):
        np.testing.assert_allclose(new.w, old.w - 0.1 * old.lower_gradient, atol=1e-14)
        np.testing.assert_allclose(new.v, old.v - 0.1 * old.dual_residual, atol=1e-14)
        clipped = clip(old.direction, 0.05)
        assert np.linalg.norm(clipped) <= 0.05 * (1 + 1e-12)
        np.testing.assert_allclose(new.weights, project(old.weights - 0.1 * clipped), atol=1e-14)


def test_batch_gradients_are_unbiased():
    """At a fixed point (steps of 0 length) the mean over many batches is the gradient on all rows."""
    risks, metric = cases.problem("logistic", 3, "individual_fairness")
    steps = StepSizes(1e-15, 1e-15, 1e-15)
    states = take(sgd_iterates(risks, metric, steps, np.random.default_rng(0), batch=40), 3000)
    exact = np.full(3, 1 / 3) @ risks.at(np.zeros(5)).gradients
    drawn = np.array([state.lower_gradient for state in states])
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - exact) < 5 * error).all()
    assert (error > 0).all()


def test_the_variance_falls_as_one_over_the_batch():
    risks, metric = cases.problem("logistic", 2, "demographic_parity")
    steps = StepSizes(1e-15, 1e-15, 1e-15)
    spread = [
        np.array(
            [
                s.lower_gradient
                for s in take(sgd_iterates(risks, metric, steps, np.random.default_rng(0), batch=b), 2000)
            ]
        ).var(axis=0)
        for b in (8, 32)
    ]
    np.testing.assert_allclose(spread[0] / spread[1], 4.0, rtol=0.3)


def test_badr_sgd_comes_near_the_solution():
    risks, metric = cases.problem("logistic", 3, "individual_fairness", l2=0.5, n=400)
    solution = badr_sgd(risks, metric, generator=np.random.default_rng(0), batch=128, max_iterations=4000)
    start, best = Objective(risks, metric).value(np.full(3, 1 / 3)), slsqp(risks, metric).value
    assert best - 1e-9 <= solution.value < best + 0.2 * (start - best)


def test_batches_on_which_the_metric_is_not_defined_are_drawn_again_or_refused():
    X, y, groups = cases.rows(2, n=200)
    y[groups == 1] = 0.0
    y[np.flatnonzero(groups == 1)[0]] = 1.0
    from fairfront import metrics
    from fairfront.risks import GroupRisks

    risks = GroupRisks(X, y, groups)
    metric = metrics.get("equal_opportunity").bind(risks.y, risks.groups)
    steps = StepSizes(0.1, 0.1, 0.1)
    assert len(take(sgd_iterates(risks, metric, steps, np.random.default_rng(0), batch=100), 5)) == 5
    with pytest.raises(ArgumentError, match=r"^batch: 1 rows"):
        take(sgd_iterates(risks, metric, steps, np.random.default_rng(0), batch=1), 1000)
    with pytest.raises(ArgumentError, match=r"^batch"):
        next(sgd_iterates(risks, metric, steps, np.random.default_rng(0), batch=0))


def test_mini_batches_need_rows_in_memory(tmp_path):
    from fairfront.datasets.blocks import write_blocks
    from fairfront.risks import GroupRisks

    X, y, groups = cases.rows(2)
    write_blocks(tmp_path / "rows.parquet", X, y, groups)
    _risks, metric = cases.problem("logistic", 2, "demographic_parity")
    with pytest.raises(ArgumentError, match="in memory"):
        next(sgd_iterates(GroupRisks.from_parquet(tmp_path / "rows.parquet"), metric, StepSizes(1, 1, 1), None))


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), st.floats(1e-3, 1e3))
def test_clipping_shortens_and_keeps_the_direction(values, radius):
    x = np.array(values)
    clipped = clip(x, radius)
    assert np.linalg.norm(clipped) <= radius * (1 + 1e-12)
    np.testing.assert_allclose(clipped * np.linalg.norm(x), x * np.linalg.norm(clipped), rtol=1e-9, atol=1e-9)
    if np.linalg.norm(x) <= radius:
        assert clipped is x


BOUNDS = ProblemBounds(mu=0.5, L=2.0, M_C=1.5, L_wl=2.5, L_ww=0.7, L_U0=1.0, L_U1=1.0, eps_w0=0.3, eps_v0=0.4)


def test_the_constants_of_theorem_4_are_the_papers_formulas():
    c = Theorem4Constants(BOUNDS)
    k, reach = 4.0, 3.0
    assert (c.tau, c.rho, c.kappa) == (0.5, 0.5, k)
    Mv = 1 * 0.7 / 0.25 + 1 / 0.5
    L_phi = (1 * (reach + 1) + 1 * (0.7 * 1.5 / 0.25 + 2.5 / 0.5)) * (reach + 1)
    B = 1 + 2.5 * (4 * k * 1 / 0.5 + 0.4)
    inverse = 2 * L_phi + 48 * k * 9 * B**2 + 10272 * k**3 * 1.5**4 / 0.25 * Mv**2
    inverse += 300 * k * 1.5**2 * Mv**2 * (2 * k * 9 + 3)
    assert c.M_v == pytest.approx(Mv) and c.L_phi == pytest.approx(L_phi) and pytest.approx(B) == c.B
    assert c.gamma_bar == pytest.approx(1 / inverse)
    alpha, beta = 6 * k * B**2 + 1284 * k**3 * 1.5**2 * Mv**2, 3 * k * 1.5**2
    assert c.alpha_over_gamma == pytest.approx(alpha) and c.beta_over_gamma == pytest.approx(beta)
    assert c.dual_bound == pytest.approx(4 / (0.5 * 0.25) + 0.4)
    assert c.right_side(1e-3, 10, 0.2) == pytest.approx(8 * 0.2 / 1e-2 + 4 * k / 10 * (alpha * 0.09 + beta * 0.16))
    assert theorem4_steps(c) == StepSizes(0.5, 0.5, c.gamma_bar)


def test_what_is_known_of_theorem_7():
    c = StochasticConstants(BOUNDS, V_ww=1.0, V_U1=0.5)
    assert c.rho == 0.125 and StochasticConstants(BOUNDS, 0.0, 0.5).rho == 0.5
    # A fixed point of the printed recursion.
    v2 = c.C_v()
    drift = 15 / (0.125 * 0.5) * (1 / 0.5) ** 2 + 2 * 0.125**2 * 0.5
    assert (1 - 0.125 * 0.5 / 8) * v2 + drift == pytest.approx(v2)
    assert c.C_v(1e9) == 1e18
    assert theorem7_steps(c, 0.1, 2.0) == StepSizes(0.5, 0.125, 0.1, 2.0)
    assert "C_gamma" in NOT_PRINTED


@pytest.mark.parametrize("fault", [{"mu": 0.0}, {"mu": 3.0}, {"M_C": -1.0}, {"L_U0": np.nan}])
def test_bounds_are_checked(fault):
    with pytest.raises(ArgumentError, match=r"^(mu|L|M_C|L_U0)"):
        ProblemBounds(**(vars(BOUNDS) | fault))
    with pytest.raises(ArgumentError, match="gamma"):
        StepSizes(1.0, 1.0, 0.0)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_lower_level_bounds_hold(loss):
    risks, _ = cases.problem(loss, 3, "demographic_parity", l2=0.2)
    bounds, generator, solver = lower_level_bounds(risks), np.random.default_rng(0), Scalarization(risks)
    for _ in range(20):
        lam, mu = generator.dirichlet(np.ones(3), 2)
        w = solver.solve(lam).w
        assert np.linalg.norm(risks.at(w).gradients, 2) <= bounds["M_C"]
        # w* is (M_C/mu)-Lipschitz
        moved = np.linalg.norm(solver.solve(mu).w - w)
        assert moved <= bounds["M_C"] / bounds["mu"] * np.linalg.norm(lam - mu)
        u = w + generator.normal(size=5)
        spectrum = np.linalg.eigvalsh(risks.at(u).hessian(lam))
        assert bounds["mu"] - 1e-12 <= spectrum[0] and spectrum[-1] <= bounds["L"] + 1e-12
        away = np.hypot(np.linalg.norm(u - w), np.linalg.norm(lam - mu))
        change = np.linalg.norm(risks.at(u).hessian(lam) - risks.at(w).hessian(mu), 2)
        assert change <= bounds["L_ww"] * away
        jump = np.linalg.norm(risks.at(u).gradients - risks.at(w).gradients, 2)
        assert jump <= bounds["L_wl"] * np.linalg.norm(u - w)


def test_bounds_that_do_not_exist_are_refused():
    with pytest.raises(ArgumentError, match="hinge"):
        lower_level_bounds(cases.problem("squared_hinge", 2, "demographic_parity")[0])
    with pytest.raises(ArgumentError, match="strongly convex"):
        lower_level_bounds(cases.problem("logistic", 2, "demographic_parity", penalize_intercept=False)[0])


def test_practical_steps_scale_with_the_problem():
    risks, metric = cases.problem("logistic", 2, "individual_fairness")
    steps, slower = practical_steps(risks, metric), practical_steps(risks, metric, pace=0.02)
    assert slower.gamma == pytest.approx(steps.gamma / 10)
    assert steps.tau == steps.rho <= 1 / np.linalg.eigvalsh(risks.at(np.zeros(5)).hessian(np.full(2, 0.5)))[-1]
    with pytest.raises(ArgumentError, match="pace"):
        practical_steps(risks, metric, pace=0.0)
