"""The check of Equation 8 agrees where it should, and sees an error where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from fairfront import metrics
from fairfront.errors import ArgumentError
from fairfront.pareto import Scalarization
from fairfront.risks import GroupRisks
from fairfront.theory import implicit_gradients as theory


def _risks(loss: str = "logistic", *, centred: bool = False) -> GroupRisks:
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 40)
    features = generator.normal(size=(120, 3)) + (0 if centred else 0.7) * generator.normal(size=(3, 3))[groups]
    y = (features[:, 0] + 0.5 * groups + generator.normal(size=120) > 0.5).astype(float)
    return GroupRisks(np.column_stack([np.ones(120), features]), y, groups, loss=loss, l2=0.1, penalize_intercept=False)


def _metric(risks: GroupRisks, name: str = "individual_fairness"):
    return metrics.get(name, task=risks.loss.task).bind(risks.y, risks.groups, risks.n_groups)


WEIGHTS, DIRECTION = np.array([0.3, 0.3, 0.4]), np.array([1.0, -1.0, 0.0])


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
def test_one_adjoint_system_agrees_with_differences(loss: str) -> None:
    risks = _risks(loss)
    found = theory.equation_8(risks, _metric(risks), WEIGHTS, DIRECTION)
    assert found.check().holds and found.error < 1e-6
    assert found.adjoint_solves == 1


def test_a_wrong_derivative_is_seen() -> None:
    found = theory.Agreement(exact=1.0, numeric=1.01, scale=1.0, step=1e-4, adjoint_solves=1, lower_solves=1)
    assert found.error == pytest.approx(0.01) and not found.check().holds


def test_the_squared_hinge_asks_for_other_weights_at_a_kink(monkeypatch) -> None:
    risks = _risks("squared_hinge")
    monkeypatch.setattr(theory, "_SHORTEST", 1.0)
    monkeypatch.setattr(theory, "_LONGEST", 0.1)
    with pytest.raises(ArgumentError, match="active row"):
        theory.equation_8(risks, _metric(risks), WEIGHTS, DIRECTION)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("name", ["individual_fairness", "equal_opportunity"])
def test_the_whole_adjoint_is_right_and_the_truncated_one_is_not(drop: bool, name: str) -> None:
    risks = _risks()
    bound, model = _metric(risks, name), Scalarization(risks).solve(WEIGHTS)
    numeric = theory.slope_by_differences(risks, bound, WEIGHTS, DIRECTION, 1e-4, drop_intercept=drop)
    assert theory.slope_of_model(model, bound, drop_intercept=drop) @ DIRECTION == pytest.approx(numeric, rel=1e-6)
    truncated = theory.without_intercept(model, bound, drop_intercept=drop)
    assert abs(truncated @ DIRECTION - numeric) > 1e-2 * abs(numeric)


def test_the_truncated_one_is_that_of_a_fixed_intercept() -> None:
    """The derivative at the solution over the other coefficients, the intercept held at its value."""
    risks = _risks()
    model = Scalarization(risks, tolerance=1e-13).solve(WEIGHTS)
    bound, w = _metric(risks), model.w.copy()

    def phi(weights: np.ndarray) -> float:
        inner = w.copy()
        for _ in range(30):
            point = risks.at(inner)
            inner[1:] -= np.linalg.solve(point.hessian(weights)[1:, 1:], (weights @ point.gradients)[1:])
        return bound.value(risks.at(inner).scores)

    numeric = (phi(WEIGHTS + 1e-5 * DIRECTION) - phi(WEIGHTS - 1e-5 * DIRECTION)) / 2e-5
    assert theory.without_intercept(model, bound) @ DIRECTION == pytest.approx(numeric, rel=1e-5)
