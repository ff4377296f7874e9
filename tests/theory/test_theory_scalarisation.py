"""Propositions 1 to 3 on random problems: what holds, what fails where its condition does, and checks that can fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial import ConvexHull

from fairfront.pareto import Scalarization, certify
from fairfront.risks import GroupRisks
from fairfront.theory import scalarisation as theory


def _risks(n_groups: int = 3, loss: str = "squared", seed: int = 0) -> GroupRisks:
    generator = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), 20)
    X = generator.normal(size=(len(groups), 3))
    scores = np.einsum("ij,ij->i", X, generator.normal(size=(n_groups, 3))[groups])
    y = scores if loss == "squared" else (scores > 0).astype(float)
    return GroupRisks(X, y, groups, loss=loss, l2=0.1, intercept=None)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_propositions_hold_on_strictly_convex_risks(loss: str) -> None:
    risks, generator = _risks(loss=loss), np.random.default_rng(1)
    weights = np.concatenate([generator.dirichlet(np.ones(3), size=3), np.eye(3), [[0.5, 0.5, 0.0]]])
    assert theory.sums_efficient(risks, weights).holds
    assert theory.sums_reach(risks, generator, cases=2).holds
    assert theory.minimax_efficient(risks).holds


def test_the_boundary_certificate_does_not_bless_what_is_dominated() -> None:
    risks, weights = _risks(), np.array([1.0, 0.0, 0.0])
    efficient = Scalarization(risks, tolerance=1e-12).solve(weights).point
    assert theory._slack(efficient, weights) < 1e-8
    moved = risks.at(efficient.w + 0.1)
    assert theory._slack(moved, weights) >= certify(risks, moved.w).improvement > 1e-4


def test_models_below_levels_are_efficient_and_within_them() -> None:
    risks = _risks()
    levels = risks.at(np.zeros(3)).losses
    w = theory.efficient_below(risks, levels)
    assert (risks.at(w).losses[1:] <= levels[1:] + 1e-9).all()
    assert certify(risks, w).slack < 1e-6


def test_flat_problems_have_dominated_solutions_at_the_boundary_only() -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        problem = theory.FlatProblem.random(generator)
        inside = np.array([0.3, 0.7])
        w = problem.minimiser(inside, generator)
        assert problem.certificate(w, inside) < 1e-12
        assert problem.improvement(problem.minimiser(np.array([1.0, 0.0]), generator)) > 1e-6
        assert problem.improvement(problem.lexicographic()) < 1e-12
        assert problem.certificate(w + 1.0, inside) > 1e-3


def test_minimax_solutions_are_minimax_solutions() -> None:
    generator = np.random.default_rng(3)
    problem = theory.FlatProblem.random(generator)
    w = problem.minimax_solution(generator)
    assert problem.losses(w).max() == pytest.approx(1.0)
    # From random starts nobody finds less (the maximum is at least F_1, which is at least 1).
    found = minimize(lambda u: problem.losses(u).max(), w + 0.1, method="Nelder-Mead", options={"maxiter": 2000})
    assert found.fun >= 1.0 - 1e-9


def test_the_lower_hull_is_that_of_scipy() -> None:
    front = theory.bump_front(2.6, 301)
    closed = np.vstack([front, [2.0, 2.0]])
    expected = set(ConvexHull(closed).vertices) - {301}
    assert set(np.flatnonzero(theory.on_lower_hull(front))) == expected


@pytest.mark.parametrize(("sharpness", "everything"), [(1.0, True), (1.9, True), (2.2, False), (4.0, False)])
def test_weighted_sums_reach_convex_fronts_only(sharpness: float, everything: bool) -> None:
    front = theory.bump_front(sharpness, 501)
    assert (theory.hull_share(front) == 1.0) == everything
    weights = np.linspace(0.0, 1.0, 5001)
    found = {int((lam * front[:, 0] + (1 - lam) * front[:, 1]).argmin()) for lam in weights}
    assert found <= set(np.flatnonzero(theory.on_lower_hull(front)))
