"""The estimators are scikit-learn's: its own checks, clones, pickles, pipelines, searches, frames of every make."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairfront import metrics
from fairfront.bilevel import slsqp
from fairfront.estimators import SOLVERS, FairParetoClassifier, FairParetoRegressor
from fairfront.risks import GroupRisks

FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}
SERIES: dict[str, Callable[[pd.Series], Any]] = {
    "pandas": lambda series: series,
    "polars": pl.from_pandas,
    "arrow": lambda series: pa.chunked_array([pa.array(series)]),
}


@parametrize_with_checks(
    [
        FairParetoClassifier(),
        FairParetoClassifier(loss="squared_hinge", fit_intercept=False),
        FairParetoRegressor(),
        FairParetoRegressor(penalize_intercept=False),
    ]
)
def test_scikit_learns_own_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("free", [True, False])
def test_without_sensitive_features_it_is_a_plain_regularised_fit(
    X: pd.DataFrame, hired: pd.Series, free: bool
) -> None:
    ours = FairParetoClassifier(l2=0.05, penalize_intercept=not free).fit(X, hired)
    assert (ours.groups_, ours.group_weights_.tolist(), ours.group_sizes_.tolist()) == (("all",), [1.0], [len(X)])
    assert np.isnan(ours.fairness_)
    rows = X if free else np.column_stack([np.ones(len(X)), X])
    plain = LogisticRegression(C=1 / (0.05 * len(X)), fit_intercept=free, tol=1e-12, solver="newton-cholesky")
    plain.fit(rows, hired)
    expected = np.r_[plain.intercept_, plain.coef_[0]] if free else plain.coef_[0]
    np.testing.assert_allclose(np.r_[ours.intercept_, ours.coef_[0]], expected, atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), plain.predict(rows))
    np.testing.assert_allclose(ours.predict_proba(X), plain.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), atol=1e-12)
    assert ours.score(X, hired) == plain.score(rows, hired)


def test_without_sensitive_features_regression_is_ridge(X: pd.DataFrame, people: pd.DataFrame) -> None:
    ours = FairParetoRegressor(l2=0.3, penalize_intercept=False).fit(X, people["pay"])
    plain = Ridge(alpha=0.3 * len(X) / 2).fit(X, people["pay"])
    np.testing.assert_allclose(ours.coef_, plain.coef_, atol=1e-9)
    assert ours.intercept_ == pytest.approx(plain.intercept_, abs=1e-9)
    np.testing.assert_allclose(ours.predict(X), plain.predict(X), atol=1e-9)


def test_the_fit_is_the_solution_of_the_bilevel_problem(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    model = FairParetoClassifier("equal_opportunity", l2=0.02).fit(X, hired, sensitive_features=gender)
    rows, groups = np.column_stack([np.ones(len(X)), X]), (gender == "male").to_numpy().astype(int)
    risks = GroupRisks(rows, (hired == "yes").astype(float), groups, l2=0.02)
    solution = slsqp(risks, metrics.get("equal_opportunity").bind(risks.y, risks.groups))
    assert model.groups_ == ("female", "male")
    np.testing.assert_array_equal(model.group_sizes_, risks.group_sizes)
    np.testing.assert_allclose(model.group_weights_, solution.weights, atol=1e-9)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_[0]], solution.model.w, atol=1e-9)
    assert model.fairness_ == pytest.approx(solution.value, abs=1e-12)
    np.testing.assert_allclose(model.group_losses_, solution.model.losses, atol=1e-12)
    assert model.classes_.tolist() == ["no", "yes"]


@pytest.mark.filterwarnings("ignore:badr-sgd:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_is_at_least_as_fair_as_uniform_weights(
    solver: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    limits = {"max_iter": 300, "tol": 1e-2} if solver.startswith("badr") else {}
    model = FairParetoClassifier(solver=solver, random_state=0, **limits)
    model.fit(X, hired, sensitive_features=gender)
    uniform = FairParetoClassifier(group_weights="uniform").fit(X, hired, sensitive_features=gender)
    assert model.fairness_ <= uniform.fairness_ + 1e-9
    assert model.group_weights_.sum() == pytest.approx(1.0) and model.n_iter_ >= 1 and model.solver_message_


@pytest.mark.filterwarnings("ignore:badr-sgd:sklearn.exceptions.ConvergenceWarning")
def test_badr_sgd_is_reproducible_by_its_random_state(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    def weights(state: Any) -> np.ndarray:
        model = FairParetoClassifier(solver="badr-sgd", random_state=state, max_iter=50, tol=1e3)
        return model.fit(X, hired, sensitive_features=gender).group_weights_

    np.testing.assert_array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))
    np.testing.assert_array_equal(weights(np.random.RandomState(1)), weights(np.random.RandomState(1)))


@pytest.mark.parametrize("strategy", ["uniform", "erm", "balanced", "minimax"])
def test_strategies_give_their_weights(strategy: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    model = FairParetoClassifier(group_weights=strategy).fit(X, hired, sensitive_features=gender)
    shares = model.group_sizes_ / len(X)
    expected = {"uniform": [0.5, 0.5], "erm": shares, "balanced": shares[::-1]}
    if strategy == "minimax":
        best = FairParetoClassifier().fit(X, hired, sensitive_features=gender)
        assert model.group_losses_.max() <= best.group_losses_.max() + 1e-9
    else:
        np.testing.assert_allclose(model.group_weights_, expected[strategy], atol=1e-12)
    given = FairParetoClassifier(group_weights=model.group_weights_).fit(X, hired, sensitive_features=gender)
    np.testing.assert_allclose(given.coef_, model.coef_, atol=1e-9)


def test_a_solver_that_is_cut_short_warns(X: pd.DataFrame, people: pd.DataFrame) -> None:
    model = FairParetoRegressor(solver="slsqp", max_iter=1)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="slsqp: iteration limit"):
        model.fit(X, people["pay"], sensitive_features=people[["gender", "race"]])


def test_clone_and_pickle(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    model = FairParetoClassifier("hsic", l2=0.1, solver="multi-start").fit(X, hired, sensitive_features=gender)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "coef_")
    data = pickle.dumps(model)
    assert len(data) < 10_000, "a model keeps none of its rows"
    again = pickle.loads(data)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.groups_ == model.groups_
    assert again.pareto_certificate().slack == model.pareto_certificate().slack
    np.testing.assert_allclose(
        again.pareto_certificate(X, hired, gender).losses, model.group_losses_, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("make", FRAMES)
def test_frames_and_series_of_every_make_give_the_same_model(
    make: str, X: pd.DataFrame, people: pd.DataFrame, hired: pd.Series
) -> None:
    sensitive = people[["gender", "race"]]
    expected = FairParetoClassifier().fit(X.to_numpy(), hired.to_numpy(), sensitive_features=sensitive.to_numpy())
    frame, series = FRAMES[make], SERIES[make]
    model = FairParetoClassifier().fit(frame(X), series(hired), sensitive_features=frame(sensitive))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.groups_ == expected.groups_ and model.feature_names_in_.tolist() == list(X)
    np.testing.assert_array_equal(model.predict(frame(X)), expected.predict(X.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(X[["hours", "age", "score"]]))

    one = FairParetoRegressor().fit(frame(X), series(people["pay"]), sensitive_features=series(people["race"]))
    same = FairParetoRegressor().fit(X.to_numpy(), people["pay"].to_numpy(), people["race"].tolist())
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert one.groups_ == same.groups_ == ("asian", "black", "white")


def test_pipeline_with_a_column_transformer(people: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["age", "hours", "score"]), ("words", OneHotEncoder(), ["race"])]
    )
    model = Pipeline([("columns", columns), ("fair", FairParetoClassifier())])
    model.fit(people, hired, fair__sensitive_features=gender)
    assert model["fair"].groups_ == ("female", "male") and model["fair"].n_features_in_ == 6
    assert model.score(people, hired) > 0.6


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_grid_search_routes_the_sensitive_features(X: pd.DataFrame, hired: pd.Series, people: pd.DataFrame) -> None:
    fair = FairParetoClassifier().set_fit_request(sensitive_features=True)
    model = make_pipeline(StandardScaler(), fair)
    search = GridSearchCV(model, {"fairparetoclassifier__l2": [1e-2, 1e2]}, cv=3)
    search.fit(X, hired, sensitive_features=people["gender"])
    assert search.best_params_ == {"fairparetoclassifier__l2": 1e-2}
    assert search.best_estimator_[-1].groups_ == ("female", "male")
    assert search.best_estimator_[-1].group_sizes_.sum() == len(X)

    seen = cross_validate(
        fair, X, hired, params={"sensitive_features": people[["gender"]]}, cv=2, return_estimator=True
    )["estimator"]
    assert all(fold.groups_ == ("female", "male") and fold.group_sizes_.sum() == len(X) // 2 for fold in seen)


def test_smoothed_svm_has_no_probabilities(X: pd.DataFrame, hired: pd.Series) -> None:
    model = FairParetoClassifier(loss="squared_hinge").fit(X, hired)
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    assert hasattr(FairParetoClassifier(), "predict_proba")
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


def test_metric_as_a_name_an_object_and_a_function(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    import jax.numpy as jnp

    def covariance(scores: Any, labels: Any, groups: Any) -> Any:
        return jnp.mean((groups - jnp.mean(groups)) * (scores - jnp.mean(scores))) ** 2

    fits = [
        FairParetoClassifier(metric, variant="paper", tol=1e-14).fit(X, hired, sensitive_features=gender)
        for metric in ("disparate_mistreatment", metrics.get("disparate_mistreatment", variant="paper"), covariance)
    ]
    for model in fits[1:]:
        np.testing.assert_allclose(model.group_weights_, fits[0].group_weights_, atol=1e-4)
        assert model.fairness_ == pytest.approx(fits[0].fairness_, abs=1e-9)
