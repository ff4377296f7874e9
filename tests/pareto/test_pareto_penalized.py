"""The regularisation path: stationary, monotone in the penalty, and the same by Newton and by BFGS."""

from __future__ import annotations

import numpy as np
import pytest
from test_pareto_certificate import random_risks

from fairfront import metrics
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import certify, regularization_path, scalarized


@pytest.fixture(scope="module")
def risks():
    return random_risks(2, seed=4)


def bound(risks, name: str) -> BoundMetric:
    return metrics.get(name, variant="paper").bind(risks.y, risks.groups, risks.n_groups)


def test_without_a_penalty_the_path_starts_at_the_scalarised_model(risks) -> None:
    start = regularization_path(risks, bound(risks, "individual_fairness"), [0.0], [0.3, 0.7])[0]
    assert start.point.w == pytest.approx(scalarized(risks, "same", [0.3, 0.7]).model.w, abs=1e-9)


@pytest.mark.parametrize("name", ["individual_fairness", "demographic_parity"])
def test_more_penalty_is_less_unfair_and_costs_risk(risks, name: str) -> None:
    metric = bound(risks, name)
    path = regularization_path(risks, metric, np.geomspace(1e-4, 1.0, 8), [0.5, 0.5])
    unfairness = [metric.value(model.point.scores) for model in path]
    cost = [model.losses.mean() for model in path]
    assert (np.diff(unfairness) < 0).all()
    assert (np.diff(cost) > 0).all()


@pytest.mark.parametrize("name", ["individual_fairness", "demographic_parity"])
def test_every_model_is_stationary(risks, name: str) -> None:
    metric = bound(risks, name)
    for model in regularization_path(risks, metric, [1e-3, 0.1], [0.5, 0.5]):
        derivative = metric.value_and_derivative(model.point.scores)[1]
        gradient = model.point.gradients.mean(axis=0) + model.penalty * model.point.score_gradient(derivative)
        assert np.abs(gradient).max() < 1e-6


def test_newton_and_bfgs_agree(risks, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = bound(risks, "individual_fairness")
    newton = regularization_path(risks, metric, [0.05], [0.5, 0.5])[0]
    monkeypatch.setattr(type(metric), "quadratic", lambda self, X: None)
    bfgs = regularization_path(risks, metric, [0.05], [0.5, 0.5])[0]
    assert bfgs.point.w == pytest.approx(newton.point.w, abs=1e-6)


def test_the_path_is_dominated(risks) -> None:
    end = regularization_path(risks, bound(risks, "individual_fairness"), [0.3], [0.5, 0.5])[0]
    assert certify(risks, end.point.w).improvement > 1e-3


@pytest.mark.parametrize("penalty", [-1e-3, np.nan, np.inf])
def test_a_bad_penalty_is_refused(risks, penalty: float) -> None:
    with pytest.raises(ArgumentError, match="penalties"):
        regularization_path(risks, bound(risks, "individual_fairness"), [penalty], [0.5, 0.5])
