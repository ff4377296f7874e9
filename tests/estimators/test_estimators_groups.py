"""From columns of sensitive features to groups: intersections, order, merging, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fairfront.errors import ArgumentError
from fairfront.estimators import FairParetoClassifier, pareto_certificate, sensitive_groups
from fairfront.risks import SmallGroupWarning


def test_several_columns_become_their_intersection(people: pd.DataFrame, X: pd.DataFrame, hired: pd.Series) -> None:
    model = FairParetoClassifier().fit(X, hired, sensitive_features=people[["gender", "race"]])
    assert model.groups_ == tuple(f"{g} & {r}" for g in ("female", "male") for r in ("asian", "black", "white"))
    counted = people.groupby(["gender", "race"]).size()
    np.testing.assert_array_equal(model.group_sizes_, counted.to_numpy())
    assert model.merged_groups_ == {}


def test_a_fitted_model_tells_which_groups_it_merged(people: pd.DataFrame, X: pd.DataFrame, hired: pd.Series) -> None:
    sensitive = people[["gender", "race"]]
    model = FairParetoClassifier(n_groups=4).fit(X, hired, sensitive_features=sensitive)
    sizes = people.groupby(["gender", "race"]).size()
    names = [" & ".join(cell) for cell in sizes.index]
    assert len(model.groups_) == 4 and model.group_sizes_.sum() == len(X)
    assert sorted(sum(model.merged_groups_.values(), ())) == sorted(
        set(names) - {name for name in model.groups_ if " + " not in name}
    )
    for name, inside in model.merged_groups_.items():
        assert name == " + ".join(inside)
        total = sum(sizes[tuple(cell.split(" & "))] for cell in inside)
        assert model.group_sizes_[model.groups_.index(name)] == total
    # New rows fall into the merged groups, whatever the order of the columns.
    rows = model.pareto_certificate(X, hired, sensitive[["race", "gender"]])
    assert rows.groups == model.groups_
    np.testing.assert_allclose(rows.losses, model.group_losses_, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([10, 9, 10, 2], ("2", "9", "10")),
        (np.array([True, False, True, True]), ("False", "True")),
        ([1.5, 0.5, 1.5, 0.5], ("0.5", "1.5")),
        (["b", "a", "b", "c"], ("a", "b", "c")),
        (["b", 2, "b", 1], ("1", "2", "b")),
        (pd.Series(["x", "y", "x", "x"], dtype="category"), ("x", "y")),
        (pd.Series([1, 2, 1, 1], dtype="Int64"), ("1", "2")),
        (pl.Series(["x", "y", "x", "x"], dtype=pl.Categorical), ("x", "y")),
        (pa.array([3, 1, 1, 3]), ("1", "3")),
        (np.array([[1, 0], [0, 1], [1, 0], [1, 1]]), ("0 & 1", "1 & 0", "1 & 1")),
        ([["m", 1], ["f", 1], ["m", 0], ["m", 1]], ("f & 1", "m & 0", "m & 1")),
        (pd.DataFrame({"g": ["m", "f", "m", "m"]}), ("f", "m")),
        (pd.Series(pd.to_datetime(["2020-01-01", "2019-01-01"] * 2)), ("2019-01-01 00:00:00", "2020-01-01 00:00:00")),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, tuple) else None,
)
def test_values_of_any_type(values: Any, names: tuple[str, ...]) -> None:
    groups, ids = sensitive_groups(values, 4)
    assert groups.names == names
    np.testing.assert_array_equal(groups.encode(values, 4), ids)
    assert set(ids) == set(range(len(names)))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.booleans()), min_size=1, max_size=40))
def test_rows_share_a_group_exactly_when_they_share_their_values(rows: list[tuple[int, str, bool]]) -> None:
    groups, ids = sensitive_groups(pd.DataFrame(rows), len(rows))
    for i, one in enumerate(rows):
        assert groups.cells[ids[i]] == one
    assert list(groups.cells) == sorted(set(rows))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", None, "b", "a"], r"sensitive_features: missing values \(1 of 4 rows\)"),
        ([1.0, np.nan, 2.0, np.nan], r"sensitive_features: missing values \(2 of 4 rows\)"),
        (pl.Series(["a", None, "b", "a"]), "sensitive_features: missing values"),
        (pa.array([1, None, 1, 2]), "sensitive_features: missing values"),
        (pd.DataFrame({"g": list("abab"), "r": ["x", "y", None, "x"]}), "missing values in column 'r'"),
        (["a", "b", "a"], "sensitive_features: has 3 rows, X has 4"),
        (pd.DataFrame(index=range(4)), "sensitive_features: has no column"),
        (np.zeros((4, 0)), "sensitive_features: has no column"),
        (np.zeros((4, 1, 1)), r"sensitive_features: has shape \(4, 1, 1\)"),
        (3.0, r"sensitive_features: has shape \(\)"),
        (pl.LazyFrame({"g": list("abab")}), "sensitive_features: is a lazy frame"),
        ([{"a": 1}, {"a": 2}, {"a": 1}, {"a": 1}], "sensitive_features: column"),
    ],
)
def test_bad_sensitive_features_name_the_argument(values: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sensitive_groups(values, 4)


def test_groups_that_were_not_met_before_are_named() -> None:
    groups, _ = sensitive_groups(["a", "b", "a"], 3)
    with pytest.raises(ArgumentError, match="sensitive_features: holds groups that were not met before: 'c'"):
        groups.encode(["a", "c"], 2)
    with pytest.raises(ArgumentError, match="has 2 columns, the groups were made of 1"):
        groups.encode([["a", "b"]], 1)


@pytest.mark.parametrize("n_groups", [1, 4, 40, 2.5, True, "two"])
def test_n_groups_out_of_range(n_groups: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^n_groups: "):
        sensitive_groups(["a", "b", "c"], 3, n_groups)


def test_tiny_groups_are_used_with_a_warning_that_says_their_names_and_sizes(X: pd.DataFrame, hired: pd.Series) -> None:
    sensitive = np.where(np.arange(len(X)) % 2 == 0, "even", "odd").astype(object)
    sensitive[[5, 7]], sensitive[9] = "two", "one"
    with pytest.warns(SmallGroupWarning) as caught:
        model = FairParetoClassifier().fit(X, hired, sensitive_features=sensitive)
    assert len(caught) == 1 and "'one' (1), 'two' (2)" in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(SmallGroupWarning, match=r"'one' \(1\), 'two' \(2\)") as caught:
        found = pareto_certificate(LogisticRegression().fit(X, hired), X, hired, sensitive)
    assert len(caught) == 1 and caught[0].filename == __file__ and found.groups == model.groups_
    assert model.group_sizes_[[2, 3]].tolist() == [1, 2] and np.isfinite(model.fairness_)


def test_ten_thousand_groups() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    X, group = rng.normal(size=(n, 2)), np.repeat(np.arange(10_000), 2)
    y = rng.random(n) < 0.5
    with pytest.raises(ArgumentError, match="sensitive_features: 10000 groups"), pytest.warns(SmallGroupWarning):
        FairParetoClassifier().fit(X, y, sensitive_features=group)
    with pytest.warns(SmallGroupWarning, match=r"'0' \(2\), .*, \.\.\."):
        model = FairParetoClassifier(solver="frank-wolfe", max_iter=1, tol=1.0).fit(X, y, sensitive_features=group)
    assert len(model.groups_) == 10_000 and model.group_weights_.sum() == pytest.approx(1.0)
    merged = FairParetoClassifier(n_groups=5).fit(X, y, sensitive_features=group)
    assert merged.group_sizes_.sum() == n and len(merged.groups_) == 5
