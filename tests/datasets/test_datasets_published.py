"""As published: the authors' recipes, checked against their own records where these are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairfront.datasets import GroupedData, load
from fairfront.datasets.published import merge_apart, split
from fairfront.errors import ArgumentError


@pytest.fixture(scope="module")
def records(raw_folder: Path) -> dict[tuple[str, str], dict]:
    path = raw_folder.parent / "reference" / "badr_table2_regression_records.jsonl"
    if not path.is_file():
        pytest.skip(f"the authors' records are not at hand ({path})")
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(line["dset"], line["method"]): line for line in lines}


def figures(data: GroupedData, weights: list[float]) -> dict[str, float]:
    """Ridge with a free intercept and 0.1 |w|^2; smoothed demographic parity of the scores without the intercept."""
    X, y, groups = data.rows("train")
    row_weights = np.asarray(weights)[groups] / np.bincount(groups)[groups]
    penalty = 0.1 * np.eye(X.shape[1])
    penalty[0, 0] = 0
    w = np.linalg.solve(X.T @ (row_weights[:, None] * X) + penalty, X.T @ (row_weights * y))
    found = {}
    for part in ("train", "test"):
        X, y, groups = data.rows(part)
        means = np.array([(X[groups == a, 1:] @ w[1:]).mean() for a in range(2)])
        found[f"{part}_rmse"] = np.sqrt(np.mean((X @ w - y) ** 2))
        found[f"{part}_metric"] = np.log(np.exp(np.sqrt((means - means.mean()) ** 2 + 1e-6)).sum())
    return found


@pytest.mark.usefixtures("with_raw_files")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("name", "sensitive", "record"),
    [
        ("lsac", ["gender", "race"], "lawschool"),
        ("parkinsons", ["gender"], "parkinsons"),
        ("communities", ["race"], "communities_and_crime"),
    ],
)
def test_the_authors_records_are_reproduced(records, name, sensitive, record, seed):
    data = load(name, sensitive=sensitive, seed=seed, as_published=True)
    for method in ("ERM", "Balanced"):
        published = records[f"{record}_seed{seed}", method]
        for key, value in figures(data, published["weights"]).items():
            assert value == pytest.approx(published[key], abs=1e-8), (method, key)


@pytest.mark.usefixtures("with_raw_files")
def test_law_schools_groups_are_white_men_against_everyone_else():
    data = load("lsac", sensitive=["gender", "race"], as_published=True)
    assert data.group_names[0] == "male & white" and data.X.shape == (20427, 13)
    assert np.bincount(data.groups[data.train]).tolist() == [6952, 7346]


@pytest.mark.usefixtures("with_raw_files")
def test_the_leaks_are_there_as_published():
    for name, leak in (("lsac", "zgpa"), ("student", "G3"), ("german", "credit")):
        sensitive = ["gender", "race"] if name == "lsac" else ["gender"]
        data = load(name, sensitive=sensitive, as_published=True)
        column = data.X[:, data.feature_names.index(leak)]
        assert abs(np.corrcoef(column, data.y)[0, 1]) > 1 - 1e-12


@pytest.mark.usefixtures("with_raw_files")
def test_dutch_as_published_leaves_out_the_oldest():
    data = load("dutch", sensitive=["sex", "age"], test_size=0, as_published=True)
    assert data.n_rows == 60420 - 1260 and data.n_groups == 18


def test_no_recipe():
    with pytest.raises(ArgumentError, match=r"as_published: .*adult.*known for: german, communities"):
        load("adult", sensitive="gender", as_published=True)


def test_german_has_its_label_and_communities_the_complete_rows():
    assert "credit" in load("german", sensitive="gender", as_published=True).feature_names
    data = load("communities", sensitive="race", as_published=True)
    assert (
        data.n_rows == 123
        and data.n_features == 119
        and data.group_names == ("1 white", "0 black + 2 asian + 3 hispanic")
    )
    assert np.bincount(data.groups[data.train]).tolist() == [60, 26]


def test_cells_are_merged_two_by_two_in_each_part_alone():
    cells = np.repeat(["a", "b", "c"], [40, 30, 20])
    train, test = np.arange(0, 70), np.r_[70:90, 0:15, 40:52]
    merged = merge_apart(cells, (train,))
    assert merged.names == ("a", "b") or merged.names == ("b", "a")
    both = merge_apart(np.r_[cells], (np.arange(90),))
    assert both.names == ("a", "b + c")
    apart = merge_apart(cells, (np.sort(test),))
    assert sorted(apart.names) == ["a + b", "c"] or sorted(apart.names) == ["c", "a + b"]


def test_split_is_scikit_learns():
    from sklearn.model_selection import train_test_split

    cells = np.array(pd.Series(np.arange(60) % 3).map({0: "x", 1: "y", 2: "z"}), dtype=object)
    train, test = split(cells, 0.3, 4)
    expected = train_test_split(np.arange(60), test_size=0.3, random_state=4, stratify=cells)
    np.testing.assert_array_equal(train, np.sort(expected[0]))
    np.testing.assert_array_equal(test, np.sort(expected[1]))
    assert split(cells, 0.0, 4)[1].size == 0
