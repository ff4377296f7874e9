"""The lemmas and Theorem 4: constants are what they say, checks can fail, and the shipped iterates obey them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fairfront import metrics
from fairfront.bilevel import ProblemBounds, Theorem4Constants
from fairfront.errors import ArgumentError
from fairfront.risks import GroupRisks
from fairfront.theory import badr_gd as theory

ALONG = (
    theory.descent,
    theory.contraction,
    theory.drift_w,
    theory.dual_bound,
    theory.drift_v,
    theory.gradient_error,
)


def _rows(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    groups = np.repeat([0, 1], 30)
    X = generator.normal(size=(60, 3)) + 0.5 * generator.normal(size=(2, 3))[groups]
    return X, np.einsum("ij,ij->i", X, generator.normal(size=(2, 3))[groups]), groups


def _ridge(seed: int = 0) -> tuple[GroupRisks, metrics.Metric]:
    X, scores, groups = _rows(seed)
    return GroupRisks(X, scores, groups, loss="squared", l2=0.5, intercept=None), theory.LipschitzSpread(
        task="regression"
    )


def _logistic(name: str) -> tuple[GroupRisks, metrics.Metric]:
    X, scores, groups = _rows(1)
    return GroupRisks(X, (scores > 0).astype(float), groups, l2=0.5, intercept=None), metrics.get(name)


@pytest.fixture(scope="module", params=["ridge", "demographic_parity", "equal_opportunity"])
def followed(request) -> tuple[GroupRisks, metrics.Metric, dict[str, float], theory.Trajectory]:
    risks, metric = _ridge() if request.param == "ridge" else _logistic(request.param)
    bounds = theory.problem_bounds(risks, metric)
    bound = metric.bind(risks.y, risks.groups, 2)
    return risks, metric, bounds, theory.follow(risks, bound, bounds, 1e6, 40)


def test_ridge_constants_are_exact() -> None:
    risks, metric = _ridge()
    bounds = theory.problem_bounds(risks, metric)
    weighted = [risks.at(np.zeros(3)).hessian(np.array([t, 1 - t])) for t in np.linspace(0, 1, 51)]
    spectra = np.linalg.eigvalsh(weighted)
    assert bounds["mu"] == pytest.approx(spectra.min()) and bounds["L"] == pytest.approx(spectra.max())
    moved = np.linalg.norm(weighted[0] - weighted[-1], 2) / np.sqrt(2)
    assert bounds["L_ww"] == pytest.approx(moved)


@pytest.mark.parametrize("name", ["spread", "demographic_parity", "equal_opportunity"])
def test_metric_constants_bound_gradients_and_their_differences(name: str) -> None:
    risks, metric = _ridge() if name == "spread" else _logistic(name)
    bound, limits = metric.bind(risks.y, risks.groups, 2), theory.metric_bounds(risks, metric)
    generator = np.random.default_rng(0)

    def slope(w: np.ndarray) -> np.ndarray:
        point = risks.at(w)
        return point.score_gradient(bound.value_and_derivative(point.scores)[1])

    steepest = bends = 0.0
    for scale in (0.01, 0.1, 1.0, 10.0):
        for w in scale * generator.normal(size=(100, 3)):
            step = 1e-4 * generator.normal(size=3)
            steepest = max(steepest, float(np.linalg.norm(slope(w))))
            bends = max(bends, float(np.linalg.norm(slope(w + step) - slope(w)) / np.linalg.norm(step)))
    assert 0.05 * limits["L_U0"] < steepest <= limits["L_U0"] * (1 + 1e-9)
    assert 0.01 * limits["L_U1"] < bends <= limits["L_U1"] * (1 + 1e-6)


@pytest.mark.parametrize("name", ["disparate_mistreatment", "hsic", "individual_fairness", "group_variance"])
def test_metrics_without_a_lipschitz_constant_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="Assumption 1"):
        theory.metric_bounds(*_logistic(name))


def test_other_slopes_and_partitions_are_refused() -> None:
    risks, _ = _logistic("equal_opportunity")
    with pytest.raises(ArgumentError, match="rho"):
        theory.metric_bounds(risks, metrics.get("equal_opportunity", rho=2.0))
    with pytest.raises(ArgumentError, match="squared"):
        theory.ridge_bounds(risks)


def test_the_spread_is_one_at_parity_and_has_the_right_derivative() -> None:
    bound = theory.LipschitzSpread(task="regression").bind(np.zeros(6), np.array([0, 0, 1, 1, 1, 2]), 3)
    assert bound.value(np.full(6, 3.0)) == bound.metric.floor(3) == 1.0
    z = np.random.default_rng(0).normal(size=6)
    numeric = [(bound.value(z + 1e-6 * e) - bound.value(z - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert bound.value_and_derivative(z)[1] == pytest.approx(numeric, abs=1e-8)


def test_trajectory_is_the_algorithm_and_its_exact_quantities(followed) -> None:
    risks, _metric, _bounds, run = followed
    assert run.weights.shape == (41, 2) and run.phi.shape == (41,)
    for t in (0, 7, 40):
        point, lam = risks.at(run.solution[t]), run.weights[t]
        assert np.abs(lam @ point.gradients).max() < 1e-9
        assert run.gradient[t] == pytest.approx(point.gradients @ run.dual[t], rel=1e-6, abs=1e-9)
    step = run.w[3] - run.steps.tau * (run.weights[3] @ risks.at(run.w[3]).gradients)
    np.testing.assert_allclose(run.w[4], step, atol=1e-14)


@pytest.mark.parametrize("check", ALONG, ids=lambda f: f.__name__)
def test_every_lemma_holds_along_the_iterates(check, followed) -> None:
    found = check(followed[-1])
    assert found.holds and found.cases >= 40


def test_solution_map_and_objective_are_as_smooth_as_promised(followed) -> None:
    risks, metric, bounds, _ = followed
    constants, bound = Theorem4Constants(ProblemBounds(**bounds)), metric.bind(risks.y, risks.groups, 2)
    generator = np.random.default_rng(0)
    assert theory.lipschitz_solution(risks, constants, generator, pairs=20).holds
    assert theory.smooth_objective(risks, bound, constants, generator, pairs=20).holds
    tight = Theorem4Constants(ProblemBounds(**(bounds | {"M_C": 1e-9, "L_U0": 1e-9, "L_U1": 1e-9})))
    assert not theory.lipschitz_solution(risks, tight, generator, pairs=20).holds
    assert not theory.smooth_objective(risks, bound, tight, generator, pairs=20).holds


@pytest.mark.parametrize("check", ALONG[1:], ids=lambda f: f.__name__)
def test_a_lemma_fails_where_its_constants_are_wrong(check) -> None:
    risks, metric = _ridge()
    bounds = theory.problem_bounds(risks, metric)
    run = theory.follow(risks, metric.bind(risks.y, risks.groups, 2), bounds, 1e6, 30)
    # Too strong a convexity, too small all else.
    wrong = bounds | {"mu": bounds["L"]} | dict.fromkeys(("M_C", "L_wl", "L_ww", "L_U0", "L_U1"), 1e-9)
    altered = dataclasses.replace(run, constants=Theorem4Constants(ProblemBounds(**wrong)))
    assert not check(altered).holds


def test_descent_fails_where_phi_is_altered() -> None:
    risks, metric = _ridge()
    run = theory.follow(risks, metric.bind(risks.y, risks.groups, 2), theory.problem_bounds(risks, metric), 1e6, 20)
    raised = run.phi.copy()
    raised[10] += 1.0
    assert not theory.descent(dataclasses.replace(run, phi=raised)).holds


def test_theorem_4_holds_at_its_step_and_fails_at_a_large_one_from_the_exact_start() -> None:
    risks, metric = _ridge()
    bound, bounds = metric.bind(risks.y, risks.groups, 2), theory.problem_bounds(risks, metric)
    runs = {m: theory.follow(risks, bound, bounds, m, 40, at_solution=True) for m in (1.0, 1e8)}
    least = min(float(run.phi.min()) for run in runs.values())
    assert theory.theorem_4(runs[1.0], least).holds
    assert not theory.theorem_4(runs[1e8], least).holds
    left, right = theory.theorem_4_sides(runs[1.0], least)
    assert left.shape == right.shape == (40,)
    assert right * np.arange(1, 41) == pytest.approx(np.full(40, right[0]))
    assert runs[1.0].constants.bounds.eps_w0 == 0.0
