"""Many seeds at once: the same updates as badr-gd without noise, noise of the stated variance, checks that can fail."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fairfront.bilevel import StepSizes, gd_iterates
from fairfront.risks import GroupRisks
from fairfront.theory import badr_sgd as theory
from fairfront.theory.badr_gd import LipschitzSpread

QUIET = theory.Noise(0.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def case() -> tuple[GroupRisks, theory.Problem]:
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1], 30)
    X = generator.normal(size=(60, 3)) + 0.5 * generator.normal(size=(2, 3))[groups]
    y = np.einsum("ij,ij->i", X, generator.normal(size=(2, 3))[groups])
    risks = GroupRisks(X, y, groups, loss="squared", l2=0.5, intercept=None)
    return risks, theory.Problem.of(risks, LipschitzSpread(task="regression"))


def test_without_noise_it_is_badr_gd(case) -> None:
    risks, problem = case
    bound = LipschitzSpread(task="regression").bind(risks.y, risks.groups, 2)
    run = theory.follow_all(problem, QUIET, 1, 0.05, 25, 2, np.random.default_rng(0))
    iterates = gd_iterates(risks, bound, StepSizes(run.tau, run.rho, run.gamma))
    for t, state in zip(range(25), iterates, strict=False):
        assert run.means["v2"][t] == pytest.approx(state.v @ state.v, abs=1e-12)
        star = problem.solution(state.weights[None])[0]
        assert run.means["w2"][t] == pytest.approx((state.w - star) @ (state.w - star), rel=1e-6, abs=1e-12)
    assert run.clipped == 0.0


def test_the_problem_has_the_risks_gradients_and_hypergradient(case) -> None:
    risks, problem = case
    w, lam = np.array([[0.3, -0.2, 0.5]]), np.array([[0.4, 0.6]])
    np.testing.assert_allclose(problem.jacobian(w)[0], risks.at(w[0]).gradients, atol=1e-12)
    up, down = (problem.unfairness(problem.solution(lam + s * np.array([[1.0, -1.0]])))[0] for s in (1e-5, -1e-5))
    slope = problem.gradient(lam)[0]
    assert slope[0] - slope[1] == pytest.approx((up - down) / 2e-5, rel=1e-5)


def test_every_inequality_holds_and_fails_without_its_noise_or_constants(case) -> None:
    _, problem = case
    run = theory.follow_all(problem, theory.Noise(), 4, 0.01, 60, 100, np.random.default_rng(1))
    checks = (*theory.bound_v(run), *theory.drifts(run), theory.product(run))
    assert all(check.holds for check in checks) and len(checks) == 7
    tiny = dict.fromkeys(("M_C", "L_wl", "L_ww", "L_U0", "L_U1"), 1e-09)
    bounds = dataclasses.replace(problem.bounds, mu=0.999 * problem.bounds.L, **tiny)
    constants = dataclasses.replace(run.constants, bounds=bounds, V_U1=0.0)
    wrong = dataclasses.replace(run, noise=theory.Noise(1e-12, 1e-12, 1e-12, 1e-12), constants=constants)
    assert not any(check.holds for check in (*theory.bound_v(wrong), *theory.drifts(wrong), theory.product(wrong)))


def test_clipping_shortens_steps(case) -> None:
    _, problem = case
    free, tight = (
        theory.follow_all(problem, theory.Noise(), 1, 0.02, 40, 50, np.random.default_rng(2), radius=radius)
        for radius in (np.inf, 1e-3)
    )
    assert free.clipped == 0.0 and tight.clipped > 0.5
    assert tight.means["moved2"].max() <= (0.02 * 1e-3) ** 2 * (1 + 1e-9)


def test_rows_are_projected_onto_the_simplex() -> None:
    found = theory.project_rows(np.array([[0.2, 0.2], [3.0, 0.0], [-1.0, 0.5]]))
    np.testing.assert_allclose(found, [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
