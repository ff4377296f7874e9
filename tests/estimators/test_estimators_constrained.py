"""The constrained classifier is scikit-learn's, holds its bound, and refuses what it cannot fit."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairfront.errors import ArgumentError
from fairfront.estimators.constrained import ConstrainedClassifier

QUICK: dict[str, Any] = {"hidden": (8,), "epochs": 15, "learning_rate": 0.03, "random_state": 0}


@parametrize_with_checks([ConstrainedClassifier(**QUICK), ConstrainedClassifier("loss", **QUICK | {"hidden": ()})])
def test_scikit_learns_own_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("method", ["spbm", "ssl-alm"])
@pytest.mark.parametrize("constraint", ["positive_rate", "true_positive_rate", "false_positive_rate", "loss"])
def test_the_bound_holds_where_plain_training_breaks_it(
    constraint: str, method: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    settings = QUICK | {"epochs": 40, "epsilon": 0.005}
    free = ConstrainedClassifier(constraint, method="adam", **settings)
    bound = ConstrainedClassifier(constraint, method=method, eta=0.5, **settings)
    free.fit(X, hired, sensitive_features=gender)
    bound.fit(X, hired, sensitive_features=gender)
    assert free.max_constraint_ > 0.02
    assert bound.max_constraint_ < 0.01
    assert bound.report_.objective > free.report_.objective
    measured = bound.group_statistics(X, hired, sensitive_features=gender)
    assert measured.index.tolist() == ["female", "male"]
    np.testing.assert_allclose(measured, bound.group_statistics_, rtol=1e-12)
    assert np.ptp(measured) - 0.005 == pytest.approx(bound.max_constraint_)
    assert bound.report_.max_constraint == pytest.approx(bound.max_constraint_, abs=1e-5)
    assert bound.multipliers_.shape == (2, 2) and bound.multipliers_.max() > 0


def test_the_statistics_are_what_they_say(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    positive = (hired == "yes").to_numpy()
    for constraint in ("positive_rate", "true_positive_rate", "false_positive_rate", "loss"):
        model = ConstrainedClassifier(constraint, epsilon=1.0, **QUICK).fit(X, hired, sensitive_features=gender)
        probability = model.predict_proba(X)
        rows = {
            "positive_rate": (probability[:, 1], np.ones(len(X), bool)),
            "true_positive_rate": (probability[:, 1], positive),
            "false_positive_rate": (probability[:, 1], ~positive),
            "loss": (-np.log(probability[np.arange(len(X)), positive.astype(int)]), np.ones(len(X), bool)),
        }[constraint]
        expected = [rows[0][rows[1] & (gender == name).to_numpy()].mean() for name in ("female", "male")]
        np.testing.assert_allclose(model.group_statistics_, expected, rtol=1e-6)


def test_predictions_belong_together(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    model = ConstrainedClassifier(**QUICK).fit(X, hired, sensitive_features=gender)
    probability, scores = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(probability.sum(1), 1.0)
    np.testing.assert_allclose(np.log(probability), model.predict_log_proba(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    assert model.score(X, hired) > 0.7
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_iter_ == model.history_["step"].iloc[-1]


def test_more_classes_with_their_losses(X: pd.DataFrame, people: pd.DataFrame) -> None:
    level = pd.cut(people["pay"], 3, labels=["low", "middle", "high"]).astype(str)
    model = ConstrainedClassifier("loss", epsilon=0.05, **QUICK).fit(X, level, sensitive_features=people["race"])
    assert model.predict_proba(X).shape == (len(X), 3)
    np.testing.assert_allclose(np.log(model.predict_proba(X)), model.predict_log_proba(X), atol=1e-9)
    assert set(model.predict(X)) <= {"low", "middle", "high"}
    assert model.score(X, level) > 0.5
    with pytest.raises(ArgumentError, match="y: Only binary classification is supported"):
        ConstrainedClassifier(**QUICK).fit(X, level, sensitive_features=people["race"])


def test_intersections_are_groups_and_small_ones_are_merged(X: pd.DataFrame, people: pd.DataFrame) -> None:
    sensitive = people[["gender", "race"]]
    model = ConstrainedClassifier(epsilon=0.5, **QUICK).fit(X, people["hired"], sensitive_features=sensitive)
    assert len(model.groups_) == 6 and model.multipliers_.shape == (6, 6) and model.group_sizes_.sum() == len(X)
    merged = ConstrainedClassifier(epsilon=0.5, n_groups=4, **QUICK)
    assert len(merged.fit(X, people["hired"], sensitive_features=sensitive).groups_) == 4


def test_without_sensitive_features_it_is_plain_training(X: pd.DataFrame, hired: pd.Series) -> None:
    model = ConstrainedClassifier(**QUICK).fit(X, hired)
    plain = ConstrainedClassifier(method="adam", **QUICK).fit(X, hired)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert model.groups_ == ("all",) and np.isnan(model.max_constraint_)


def test_it_is_reproducible_cloned_and_pickled(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    def fitted(state: Any) -> ConstrainedClassifier:
        return ConstrainedClassifier(**QUICK | {"random_state": state}).fit(X, hired, sensitive_features=gender)

    model = fitted(1)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(fitted(1).predict_proba(X), expected)
    assert not np.array_equal(fitted(2).predict_proba(X), expected)
    for make in (np.random.RandomState, np.random.default_rng):
        np.testing.assert_array_equal(fitted(make(1)).predict_proba(X), fitted(make(1)).predict_proba(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), expected)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "model_")


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_searches_route_the_sensitive_features(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    fair = ConstrainedClassifier(**QUICK).set_fit_request(sensitive_features=True)
    model = make_pipeline(StandardScaler(), fair)
    search = GridSearchCV(model, {"constrainedclassifier__learning_rate": [1e-6, 0.03]}, cv=3)
    search.fit(X, hired, sensitive_features=gender)
    assert search.best_params_ == {"constrainedclassifier__learning_rate": 0.03}
    assert search.best_estimator_[-1].groups_ == ("female", "male")
    seen = cross_validate(fair, X, hired, params={"sensitive_features": gender}, cv=2, return_estimator=True)
    assert all(estimator.groups_ == ("female", "male") for estimator in seen["estimator"])


def test_features_of_any_scale(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    scaled = X * [1e-6, 1e3, 1.0] + [5.0, -1e5, 0.0]
    first = ConstrainedClassifier(**QUICK).fit(X, hired, sensitive_features=gender)
    second = ConstrainedClassifier(**QUICK).fit(scaled, hired, sensitive_features=gender)
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(scaled), atol=1e-2)


def test_a_bound_that_is_not_reached_is_said(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    hasty = ConstrainedClassifier(epsilon=0.0, lambda_init=1e-4, **QUICK | {"epochs": 1, "batch_size": 256})
    with pytest.warns(ConvergenceWarning, match=r"constraint: positive_rate differs by 0\.\d+ between groups"):
        hasty.set_params(learning_rate=0.3, gamma=0.999).fit(X, hired, sensitive_features=gender)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hasty.set_params(tol=1.0).fit(X, hired, sensitive_features=gender)


def test_patience_stops_early(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    model = ConstrainedClassifier(epsilon=1.0, patience=3, **QUICK | {"epochs": 200, "learning_rate": 0.2})
    assert len(model.fit(X, hired, sensitive_features=gender).history_) < 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"constraint": "positive_rates"}, r"constraint: unknown: 'positive_rates' .did you mean positive_rate"),
        ({"method": "spb"}, r"method: unknown: 'spb' .did you mean spbm"),
        ({"epsilon": -0.1}, "epsilon: is -0.1"),
        ({"gamma": 1.0}, "gamma: is 1"),
        ({"kappa": -0.1}, "kappa: is -0.1"),
        ({"lambda_init": 0.0}, "lambda_init: is 0"),
        ({"phi": "qx"}, "phi: unknown: 'qx'"),
        ({"rule": "adapted"}, "rule: unknown: 'adapted'"),
        ({"learning_rate": -1.0}, "lr: is -1.0"),
        ({"epochs": 0}, "epochs: is 0"),
        ({"batch_size": 1}, "batch_size: 1 rows cannot hold one of each of the 2 groups"),
        ({"hidden": (0,)}, "hidden: holds"),
        ({"hidden": 8}, "hidden: is 8"),
        ({"tol": -1.0}, "tol: is -1.0"),
        ({"tol": "small"}, "tol: is 'small'"),
        ({"objective": "biased"}, "objective: unknown: 'biased'"),
        ({"patience": 0}, "patience: is 0"),
        ({"random_state": "seed"}, "random_state: is 'seed'"),
        ({"n_groups": 9}, "n_groups"),
    ],
)
def test_bad_parameters_are_named(
    change: dict[str, Any], message: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ConstrainedClassifier(**QUICK).set_params(**change).fit(X, hired, sensitive_features=gender)


def test_bad_rows_are_named(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    model = ConstrainedClassifier("true_positive_rate", **QUICK)
    with pytest.raises(ArgumentError, match=r"constraint: true_positive_rate needs rows labelled 'yes': .* 'female'"):
        model.fit(X, np.where(gender == "female", "no", hired), sensitive_features=gender)
    with pytest.raises(ArgumentError, match="y: has 3 rows, X has"):
        model.fit(X, hired[:3], sensitive_features=gender)
    with pytest.raises(ArgumentError, match="sensitive_features: has 3 rows"):
        model.fit(X, hired, sensitive_features=gender[:3])
    with pytest.raises(ArgumentError, match="columns that are not numbers: 'word'"):
        model.fit(X.assign(word="a"), hired, sensitive_features=gender)
    with pytest.raises(ArgumentError, match="y: must hold two classes"):
        model.fit(X, np.full(len(X), "no"), sensitive_features=gender)
    fitted = model.fit(X, hired, sensitive_features=gender)
    with pytest.raises(ArgumentError, match="holds groups that were not met before: 'other'"):
        fitted.group_statistics(X, hired, sensitive_features=np.full(len(X), "other"))
    with pytest.raises(ArgumentError, match="labels: are missing"):
        fitted.group_statistics(X, sensitive_features=gender)
    with pytest.raises(ArgumentError, match="y: holds a class that the fit did not meet"):
        fitted.group_statistics(X, np.full(len(X), "maybe"), sensitive_features=gender)
