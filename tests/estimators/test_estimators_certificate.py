"""Certificates of fitted models of every make, against models that are known to be efficient or dominated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity, GridSearch
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from fairfront.errors import ArgumentError
from fairfront.estimators import FairParetoClassifier, FairParetoRegressor, pareto_certificate
from fairfront.pareto import certify
from fairfront.risks import GroupRisks


def test_fitted_models_are_certified_without_and_with_rows(X: pd.DataFrame, people: pd.DataFrame) -> None:
    sensitive = people[["gender", "race"]]
    for model, y in (
        (FairParetoClassifier(), people["hired"]),
        (FairParetoClassifier(loss="squared_hinge", l2=0.1), people["hired"]),
        (FairParetoRegressor(), people["pay"]),
    ):
        model.fit(X, y, sensitive_features=sensitive)
        for found in (model.pareto_certificate(), model.pareto_certificate(X, y, sensitive)):
            assert found.efficient() and not found.dominated and found.improvement == 0.0 and found.linear
            assert found.groups == model.groups_ and (found.multipliers >= 1).all()
            np.testing.assert_allclose(found.losses, model.group_losses_, atol=1e-12)
        assert found.frame().index.tolist() == list(model.groups_)
        assert found.frame()["dominating_loss"].isna().all()


def test_the_bound_of_the_fit_is_zero_by_weak_duality(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    inside = FairParetoClassifier(group_weights=[0.3, 0.7]).fit(X, hired, sensitive_features=gender)
    assert inside.pareto_certificate().slack < 1e-12
    np.testing.assert_allclose(inside.pareto_certificate().multipliers, [1.0, 7 / 3], rtol=1e-9)
    vertex = FairParetoClassifier(group_weights=[1.0, 0.0]).fit(X, hired, sensitive_features=gender)
    assert vertex.pareto_certificate().slack < 1e-6


def test_a_model_that_is_not_efficient_is_dominated_by_the_model_that_is_named(
    X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    model = FairParetoClassifier().fit(X, hired, sensitive_features=gender)
    model.coef_ += [[0.5, -0.5, 0.2]]
    found = model.pareto_certificate(X, hired, gender)
    assert found.dominated and not found.efficient() and found.slack >= found.improvement > 0.01
    assert (found.dominating_losses <= found.losses).all()
    risks = _risks(X, hired, gender, l2=1e-2)
    better = np.r_[found.dominating_intercept, found.dominating_coef]
    np.testing.assert_allclose(risks.losses(better), found.dominating_losses, atol=1e-12)
    assert found.frame()["dominating_loss"].tolist() == found.dominating_losses.tolist()


def test_linear_models_of_scikit_learn(
    X: pd.DataFrame, people: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    # ERM is a weighted sum: efficient in its own family, l2 = 1/(C n) with a free intercept.
    n = len(X)
    erm = LogisticRegression(C=1 / (0.02 * n), tol=1e-12, solver="newton-cholesky").fit(X, hired)
    assert pareto_certificate(erm, X, hired, gender, l2=0.02, penalize_intercept=False).slack < 1e-9
    assert not pareto_certificate(erm, X, hired, gender, l2=0.2).efficient()
    coefficients = np.r_[erm.intercept_, erm.coef_[0]]
    same = certify(_risks(X, hired, gender, l2=0.2), coefficients)
    found = pareto_certificate(erm, X, hired, gender, l2=0.2)
    assert found.slack == pytest.approx(same.slack, rel=1e-9)
    np.testing.assert_allclose(found.losses, same.losses, rtol=1e-12)

    ridge = Ridge(alpha=0.02 * n / 2).fit(X, people["pay"])
    found = pareto_certificate(ridge, X, people["pay"], gender, l2=0.02, penalize_intercept=False)
    assert found.loss == "squared" and found.slack < 1e-8
    least = LinearRegression().fit(X, people["pay"])
    assert pareto_certificate(least, X, people["pay"], gender, l2=0.5).dominated

    machine = LinearSVC(C=1 / (0.02 * n), tol=1e-10, max_iter=100_000).fit(X, hired)
    found = pareto_certificate(machine, X, hired, gender, l2=0.02)
    # liblinear penalises the constant like a coefficient, as ours does; its C multiplies the squared hinge.
    assert found.loss == "squared_hinge" and found.slack < 1e-6


def test_a_model_without_a_constant_is_compared_with_models_without_one(
    X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    plain = LogisticRegression(C=1 / (0.02 * len(X)), fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    plain.fit(X, hired)
    assert pareto_certificate(plain, X, hired, gender, l2=0.02).slack < 1e-9
    ours = FairParetoClassifier(fit_intercept=False).fit(X, hired, sensitive_features=gender)
    found = ours.pareto_certificate(X, hired, gender)
    assert found.slack < 1e-6
    ours.coef_ = ours.coef_ * 3
    found = ours.pareto_certificate(X, hired, gender)
    assert found.dominated and found.dominating_intercept == 0.0 and found.dominating_coef.shape == (3,)


def test_pipelines_and_searches_are_opened(people: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    columns = ColumnTransformer([("n", StandardScaler(), ["age", "hours", "score"]), ("w", OneHotEncoder(), ["race"])])
    search = GridSearchCV(make_pipeline(columns, LogisticRegression(C=1e-3)), {"logisticregression__C": [1e-3]}, cv=2)
    search.fit(people, hired)
    found = pareto_certificate(search, people, hired, gender)
    assert found.linear and found.dominated and len(found.dominating_coef) == 6
    fair = make_pipeline(columns, FairParetoClassifier())
    fair.fit(people, hired, fairparetoclassifier__sensitive_features=gender)
    assert pareto_certificate(fair, people, hired, gender).efficient()


def test_the_linear_model_that_fairlearn_chose(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    labels = (hired == "yes").astype(int)
    inner = LogisticRegression(C=1 / (0.02 * len(X)), solver="newton-cholesky", tol=1e-10)
    mitigated = GridSearch(inner, constraints=DemographicParity(), grid_size=7)
    mitigated.fit(X, labels, sensitive_features=gender)
    found = pareto_certificate(mitigated, X, labels, gender, l2=0.02, penalize_intercept=False)
    chosen = mitigated.predictors_[mitigated.best_idx_]
    risks = _risks(X, hired, gender, l2=0.02, penalize_intercept=False)
    expected = certify(risks, np.r_[chosen.intercept_, chosen.coef_[0]])
    assert found.linear
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-12)
    assert found.dominated == (expected.dominating is not None)
    assert found.slack == pytest.approx(expected.slack, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=1, random_state=0),
        RandomForestClassifier(3, max_depth=1, random_state=0),
        SVC(kernel="poly", degree=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_weak_models_of_any_make_are_dominated(
    model: Any, X: pd.DataFrame, hired: pd.Series, people: pd.DataFrame
) -> None:
    model.fit(X, hired)
    found = pareto_certificate(model, X, hired, people["gender"])
    assert not found.linear and found.dominated and found.improvement > 0
    # By another route: what it says of the dominating model, and of the mean losses.
    scores = X.to_numpy() @ found.dominating_coef + found.dominating_intercept
    ours = _mean_losses(scores, hired, people["gender"])
    if hasattr(model, "predict_proba"):
        p = np.clip(model.predict_proba(X)[:, 1], 2.3e-16, 1 - 2.3e-16)
        np.testing.assert_allclose(found.losses, _mean_losses(np.log(p / (1 - p)), hired, people["gender"]), rtol=1e-6)
    else:
        theirs = _mean_losses(model.decision_function(X), hired, people["gender"])
        np.testing.assert_allclose(found.losses, theirs, rtol=1e-9)
    assert (ours < found.losses).all(), "mean losses of the dominating model are below its penalised risks"


def test_a_model_that_no_linear_one_matches_is_not_dominated(
    X: pd.DataFrame, hired: pd.Series, people: pd.DataFrame, gender: pd.Series
) -> None:
    forest = RandomForestClassifier(50, random_state=0).fit(X, hired)
    found = pareto_certificate(forest, X, hired, people[["gender", "race"]])
    assert not found.linear and not found.dominated and found.slack == 0.0 and found.efficient()
    neighbours = KNeighborsRegressor(1).fit(X, people["pay"])
    found = pareto_certificate(neighbours, X, people["pay"], gender)
    assert found.loss == "squared" and not found.dominated and found.losses.max() < 1e-12


def test_a_model_of_no_library_at_all(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    class Half:
        def predict_proba(self, X: Any) -> np.ndarray:
            return np.full((len(X), 2), 0.5)

    found = pareto_certificate(Half(), X, hired, gender)
    np.testing.assert_allclose(found.losses, np.log(2), rtol=1e-12)
    assert found.dominated and not found.linear


def test_groups_of_a_fit_that_new_rows_lack_are_left_out(
    X: pd.DataFrame, people: pd.DataFrame, hired: pd.Series
) -> None:
    model = FairParetoClassifier().fit(X, hired, sensitive_features=people["race"])
    part = (people["race"] != "black").to_numpy()
    found = model.pareto_certificate(X[part], hired[part], people["race"][part])
    assert found.groups == ("asian", "white")
    with pytest.raises(ArgumentError, match="not met before: 'green'"):
        model.pareto_certificate(X, hired, np.where(part, people["race"], "green"))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (LogisticRegression(), {"loss": "hinge"}, "loss: unknown: 'hinge'"),
        (LogisticRegression(), {"l2": -1.0}, "l2: must be"),
        (LogisticRegression(), {"sensitive_features": ["a"]}, "sensitive_features: has 1 rows"),
        (LogisticRegression(), {"y": np.full(600, "maybe")}, "y: holds maybe, which is no class of the model"),
    ],
)
def test_bad_arguments_are_named(
    model: Any, options: dict[str, Any], message: str, X: pd.DataFrame, hired: pd.Series
) -> None:
    given: dict[str, Any] = {"y": hired, "sensitive_features": None} | options
    model.fit(X, hired)
    with pytest.raises(ArgumentError, match=message):
        pareto_certificate(model, X, given.pop("y"), given.pop("sensitive_features"), **given)


def test_models_that_give_nothing_to_compare(X: pd.DataFrame, hired: pd.Series) -> None:
    class Bare:
        classes_ = np.array(["no", "yes"])

        def predict(self, X: Any) -> Any:
            return np.full(len(X), "no")

    with pytest.raises(ArgumentError, match="model: a Bare gives nothing to compare"):
        pareto_certificate(Bare(), X, hired)
    with pytest.raises(NotFittedError):
        pareto_certificate(LogisticRegression(), X, hired)
    with pytest.raises(ArgumentError, match="y: must hold two classes"):
        pareto_certificate(LogisticRegression().fit(X, hired), X[hired == "yes"], hired[hired == "yes"])
    many = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ArgumentError, match="model: has 3 classes"):
        pareto_certificate(many, X, hired)
    fitted = FairParetoClassifier().fit(X, hired)
    with pytest.raises(ArgumentError, match="y: is missing"):
        fitted.pareto_certificate(X)


def _risks(X: pd.DataFrame, hired: pd.Series, gender: pd.Series, **options: Any) -> GroupRisks:
    rows = np.column_stack([np.ones(len(X)), X])
    return GroupRisks(rows, (hired == "yes").astype(float), (gender == "male").to_numpy().astype(int), **options)


def _mean_losses(scores: np.ndarray, hired: pd.Series, groups: pd.Series) -> np.ndarray:
    losses = np.logaddexp(0, scores) - (hired == "yes") * scores
    return losses.groupby(groups).mean().to_numpy()
