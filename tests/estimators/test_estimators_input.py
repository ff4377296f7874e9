"""Bad input: an error that names the argument, or a documented behaviour."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairfront import metrics
from fairfront.errors import ArgumentError, FairfrontError
from fairfront.estimators import FairParetoClassifier, FairParetoRegressor, pareto_certificate


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [FairParetoClassifier, FairParetoRegressor])
def test_nan_and_infinity_in_x(hole: float, kind: type, X: pd.DataFrame, people: pd.DataFrame) -> None:
    rows, y = X.copy(), people["hired"] if kind is FairParetoClassifier else people["pay"]
    rows.iloc[3, 1] = hole
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        kind().fit(rows, y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        kind().fit(X, y).predict(rows)


def test_nulls_in_a_polars_frame_are_missing_values(X: pd.DataFrame, hired: pd.Series) -> None:
    frame = pl.from_pandas(X).with_columns(pl.when(pl.col("age") > 0).then(pl.col("age")).alias("age"))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        FairParetoClassifier().fit(frame, hired)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["no"] * 600, "y: must hold two classes, got 1 class: no"),
        (np.arange(600) % 3, "y: Only binary classification is supported. The labels are of 3 classes"),
        (np.arange(600) / 7, "y: Unknown label type: continuous|Unknown label type"),
        ([0.0, np.nan] * 300, "Input y contains NaN|y: holds"),
        (["a", None] * 300, "y: holds missing values"),
        (np.zeros(599), "^y: has 599 rows, X has 600"),
        (np.zeros((600, 2)), "y should be a 1d array"),
        (None, "y: requires y to be passed"),
    ],
)
def test_bad_labels_of_a_classifier(labels: Any, message: str, X: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=message):
        FairParetoClassifier().fit(X, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1.0, np.nan] * 300, "y: Input contains NaN"),
        ([1.0, np.inf] * 300, "y: Input contains NaN or infinity"),
        (["low", "high"] * 300, "y: holds something other than numbers"),
        (np.zeros(3), "^y: has 3 rows, X has 600"),
    ],
)
def test_bad_labels_of_a_regressor(labels: Any, message: str, X: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=message):
        FairParetoRegressor().fit(X, labels)


def test_a_certificate_of_labels_of_another_length(X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    with pytest.raises(ArgumentError, match=r"^y: has 599 rows, X has 600"):
        pareto_certificate(FairParetoClassifier().fit(X, hired), X, hired[:-1], gender)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_words_are_named(make: Any, people: pd.DataFrame, hired: pd.Series) -> None:
    frame = make({name: people[name].to_list() for name in ("age", "gender", "race")})
    with pytest.raises(ArgumentError, match=r"X: columns that are not numbers: 'gender', 'race' \(encode them"):
        FairParetoClassifier().fit(frame, hired)
    objects = pd.DataFrame({"age": people["age"], "gender": people["gender"].astype(object)})
    with pytest.raises(ValueError, match=r"gender|could not convert"):
        FairParetoClassifier().fit(objects, hired)


def test_object_columns_of_numbers_are_numbers(X: pd.DataFrame, hired: pd.Series) -> None:
    np.testing.assert_array_equal(
        FairParetoClassifier().fit(X.astype(object), hired).coef_, FairParetoClassifier().fit(X, hired).coef_
    )


@pytest.mark.parametrize(
    "empty", [pd.DataFrame({"a": []}), np.zeros((0, 2)), pl.DataFrame({"a": []}, schema={"a": pl.Float64})]
)
def test_no_rows(empty: Any) -> None:
    with pytest.raises(ValueError, match="0 sample"):
        FairParetoClassifier().fit(empty, [])


def test_no_columns_and_lazy_frames(X: pd.DataFrame, hired: pd.Series) -> None:
    with pytest.raises(ArgumentError, match="X: is a frame without a column"):
        FairParetoClassifier().fit(pd.DataFrame(index=range(600)), hired)
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        FairParetoClassifier().fit(np.zeros((600, 0)), hired)
    with pytest.raises(ArgumentError, match="X: is a lazy frame"):
        FairParetoClassifier().fit(pl.from_pandas(X).lazy(), hired)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l2": -1.0}, "l2: must be a finite number >= 0"),
        ({"l2": float("nan")}, "l2: must be a finite number >= 0"),
        ({"loss": "logistics"}, "loss: unknown: 'logistics'.*did you mean logistic"),
        ({"loss": "squared"}, "loss: unknown: 'squared'"),
        ({"solver": "slqp"}, "solver: unknown: 'slqp'.*did you mean slsqp"),
        ({"metric": "parity"}, "metric: unknown: 'parity'"),
        ({"metric": 3}, "metric: is 3"),
        ({"variant": "published"}, "variant: unknown"),
        ({"metric": metrics.get("hsic", task="regression")}, "metric: is made for regression"),
        ({"tol": 0.0}, "tol: must be a positive number"),
        ({"max_iter": 0}, "max_iter: must be at least 1"),
        ({"group_weights": [0.5, 0.6]}, "group_weights: must be non-negative with sum 1"),
        ({"group_weights": [1.5, -0.5]}, "group_weights: must be non-negative with sum 1"),
        ({"group_weights": [np.nan, 1.0]}, "group_weights: must be non-negative with sum 1"),
        ({"group_weights": [1.0]}, "group_weights: must have shape"),
        ({"group_weights": "even"}, "group_weights: unknown: 'even'"),
        ({"n_groups": 3}, "n_groups: 3 groups cannot be made of 2"),
    ],
)
def test_bad_parameters_are_named(
    parameters: dict[str, Any], message: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    with pytest.raises(ArgumentError, match=message):
        FairParetoClassifier(**parameters).fit(X, hired, sensitive_features=gender)


@pytest.mark.parametrize("metric", ["equal_opportunity", "equalized_odds"])
def test_a_group_of_one_class_is_named_where_the_metric_needs_both(
    metric: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series
) -> None:
    sensitive = np.where((hired == "no") & (X["age"] > 1), "older", gender)
    message = f"sensitive_features: {metric} needs rows of both classes: the labels are all the same in 'older'"
    with pytest.raises(ArgumentError, match=message):
        FairParetoClassifier(metric).fit(X, hired, sensitive_features=sensitive)
    # Demographic parity asks for no label: the group is used.
    model = FairParetoClassifier().fit(X, hired, sensitive_features=sensitive)
    assert "older" in model.groups_ and np.isfinite(model.fairness_)


def test_a_metric_that_regression_has_not_is_refused(X: pd.DataFrame, people: pd.DataFrame) -> None:
    with pytest.raises(ArgumentError, match="equal_opportunity is not defined for regression"):
        FairParetoRegressor("equal_opportunity").fit(X, people["pay"], sensitive_features=people["gender"])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda scores, labels, groups: scores, "metric: returns a result of shape"),
        (lambda scores, labels, groups: jnp.mean(scores) * jnp.nan, "metric: .* returned nan"),
        (lambda scores, labels, groups: np.exp(scores).mean(), "metric: JAX cannot trace"),
        (lambda scores: 0.0, "metric: raised TypeError"),
    ],
    ids=["vector", "nan", "numpy", "arguments"],
)
def test_bad_custom_metrics(metric: Any, message: str, X: pd.DataFrame, hired: pd.Series, gender: pd.Series) -> None:
    with pytest.raises(ArgumentError, match=message):
        FairParetoClassifier(metric).fit(X, hired, sensitive_features=gender)


def test_a_risk_without_a_minimiser_is_an_error_with_a_remedy(gender: pd.Series) -> None:
    line = np.linspace(-1, 1, 600)[:, None]
    with pytest.raises(FairfrontError, match="l2"):
        FairParetoClassifier(l2=0.0).fit(line, line[:, 0] > 0, sensitive_features=gender)


def test_sensitive_features_of_another_length(X: pd.DataFrame, hired: pd.Series) -> None:
    with pytest.raises(ArgumentError, match="sensitive_features: has 3 rows, X has 600"):
        FairParetoClassifier().fit(X, hired, sensitive_features=["a", "b", "a"])


def test_one_value_is_one_group(X: pd.DataFrame, hired: pd.Series) -> None:
    model = FairParetoClassifier().fit(X, hired, sensitive_features=["a"] * 600)
    plain = FairParetoClassifier().fit(X, hired)
    assert model.groups_ == ("a",) and np.isnan(model.fairness_)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_an_unfitted_model_says_so(X: pd.DataFrame) -> None:
    from sklearn.exceptions import NotFittedError

    for call in (lambda m: m.predict(X), lambda m: m.pareto_certificate()):
        with pytest.raises(NotFittedError):
            call(FairParetoClassifier())
