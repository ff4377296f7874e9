"""Propositions 1 to 3: they hold where they should, and a check can fail."""

from __future__ import annotations

import numpy as np
import pytest

from fairfront import metrics, theory
from fairfront.pareto import Scalarization, certify, regularization_path, trace, two_group_weights
from fairfront.risks import GroupRisks


@pytest.fixture(scope="module")
def risks() -> GroupRisks:
    generator = np.random.default_rng(0)
    X = np.column_stack([np.ones(150), generator.normal(size=(150, 3))])
    groups = (np.arange(150) % 3 == 0).astype(int)
    y = (X[:, 1] * np.where(groups, 1.0, -0.5) + generator.normal(size=150) > 0).astype(float)
    return GroupRisks(X, y, groups, l2=1e-2)


def test_proposition_1_holds_on_a_front(risks: GroupRisks) -> None:
    front = trace(risks, two_group_weights(7))
    check = theory.proposition_1([certify(risks, model.w).slack for model in front.models])
    assert check.holds and check.cases == 7 and check.measured <= check.bound


def test_proposition_2_finds_the_weights_of_models_made_without_any(risks: GroupRisks) -> None:
    check = theory.proposition_2(risks, np.random.default_rng(1), cases=4)
    assert check.holds and check.cases == 4


def test_the_constraint_method_meets_its_level(risks: GroupRisks) -> None:
    solver = Scalarization(risks)
    level = solver.solve([0.5, 0.5]).losses[1]
    found = risks.at(theory.efficient_by_constraint(risks, float(level)))
    assert found.losses == pytest.approx(solver.solve([0.5, 0.5]).losses, abs=1e-7)


def test_proposition_3_holds_with_strict_convexity(risks: GroupRisks) -> None:
    check = theory.proposition_3(risks, [(0.0, 0.1), (0.25, 0.75), (0.9, 1.0)])
    assert check.holds and check.cases == 4


def test_proposition_3_as_printed_is_refuted() -> None:
    example = theory.proposition_3_counterexample()
    assert example.refutes
    assert example.improvement == pytest.approx(0.5, abs=1e-6)
    assert example.dominating == pytest.approx([0.0, 0.0], abs=1e-6)


def test_models_of_the_path_do_not_pass_for_efficient(risks: GroupRisks) -> None:
    metric = metrics.get("individual_fairness").bind(risks.y, risks.groups, 2)
    path = regularization_path(risks, metric, [1e-9, 0.3], [0.5, 0.5])
    slacks = [certify(risks, model.point.w).slack for model in path]
    assert theory.proposition_1(slacks[:1]).holds
    assert not theory.proposition_1(slacks).holds
