"""load(): every data set against an independent computation, and every error that a user can cause."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairfront import paths
from fairfront.datasets import info, load, names
from fairfront.errors import ArgumentError, DataError

EVERY = pytest.mark.parametrize("name", names(embedded=True))


def embedded(name: str) -> pd.DataFrame:
    return pd.read_parquet(paths.data() / name)


def by_hand(rows: pd.DataFrame, drop: list[str]) -> pd.DataFrame:
    """The design matrix by the shortest way in pandas, all rows."""
    matrix = pd.get_dummies(rows.drop(columns=drop), dtype=float, drop_first=True)
    return (matrix - matrix.mean()) / matrix.std(ddof=0)


def acs_task(name: str) -> tuple[pd.DataFrame, pd.Series, list[str]]:
    frame = embedded("acs2012.parquet")
    if name == "acs2012-employment":
        rows = frame[(frame.age >= 16) & frame.employment.notna()]
        return rows, rows.employment == "employed", ["income", "employment", "hrs_work", "time_to_work"]
    if name == "acs2012-income":
        rows = frame[(frame.employment == "employed") & frame.income.notna()]
        return rows, rows.income > 50_000, ["income", "employment", "time_to_work"]
    rows = frame[frame.time_to_work.notna()]
    return rows, rows.time_to_work > 20, ["time_to_work", "employment"]


@pytest.mark.parametrize(
    ("name", "n", "positive", "sizes"),
    [
        ("acs2012-employment", 1605, 843, [812, 793]),
        ("acs2012-income", 843, 227, [470, 373]),
        ("acs2012-travel-time", 783, 334, [437, 346]),
    ],
)
def test_acs_tasks_by_hand(name, n, positive, sizes):
    data = load(name, sensitive=["gender"], test_size=0)
    rows, label, drop = acs_task(name)
    expected = by_hand(rows, drop)

    assert data.X.shape == (n, expected.shape[1] + 1)
    assert data.feature_names == ("intercept", *expected.columns)
    np.testing.assert_allclose(data.X[:, 1:], expected.to_numpy(), atol=1e-12)
    np.testing.assert_array_equal(data.X[:, 0], 1)
    np.testing.assert_array_equal(data.y, label.astype(float))
    assert data.y.sum() == positive
    np.testing.assert_array_equal(data.groups, (rows.gender == "female").astype(int))
    assert data.group_names == ("male", "female")
    assert data.group_sizes.tolist() == sizes


@pytest.mark.parametrize(
    ("name", "shape", "sensitive", "sizes"),
    [
        ("adult", (32561, 101), "race", [27816, 3124, 1039, 311, 271]),
        ("german", (1000, 49), "gender", [690, 310]),
        ("communities", (1993, 101), "race", [1573, 217, 116, 87]),
        ("compas", (6172, 13), "race", [3175, 2103, 509, 343, 31, 11]),
    ],
)
def test_other_sets_have_the_counts_of_their_datasheets(name, shape, sensitive, sizes):
    data = load(name, sensitive=sensitive, test_size=0)
    assert data.X.shape == shape
    assert data.group_sizes.tolist() == sizes


@EVERY
def test_shapes_types_and_standardisation(name):
    attribute = info(name).sensitive[0]
    data = load(name, sensitive=[attribute.name])
    n, d = data.X.shape

    assert (data.n_rows, data.n_features, data.n_groups) == (n, d, len(attribute.levels))
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.groups.dtype == data.train.dtype == data.test.dtype == np.int64
    assert data.y.shape == data.groups.shape == (n,)
    assert data.X.flags.writeable and data.y.flags.writeable
    assert len(data.feature_names) == len(set(data.feature_names)) == d
    assert data.group_names == attribute.levels
    assert np.isfinite(data.X).all() and np.isfinite(data.y).all()
    assert data.digest == info(name).sha256
    assert (data.name, data.task, data.target) == (name, info(name).task, info(name).target)

    train = data.X[data.train, 1:]
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-9)
    varies = np.ptp(train, axis=0) > 0
    np.testing.assert_allclose(train[:, varies].var(axis=0, ddof=0), 1, atol=1e-9)
    np.testing.assert_array_equal(data.X[:, 1:][:, ~varies], 0)
    if data.task == "classification":
        assert set(np.unique(data.y)) == {0.0, 1.0}


@EVERY
def test_split_is_stratified_and_leaves_the_partition_alone(name):
    attribute = info(name).sensitive[0].name
    one, two = load(name, sensitive=[attribute], seed=1), load(name, sensitive=[attribute], seed=2)

    for data in (one, two):
        assert (np.diff(data.train) > 0).all() and (np.diff(data.test) > 0).all()
        np.testing.assert_array_equal(np.sort(np.r_[data.train, data.test]), np.arange(data.n_rows))
        assert len(data.test) == round(0.3 * data.n_rows)
        labels = data.y if data.task == "classification" else np.zeros(data.n_rows)
        for group in range(data.n_groups):
            for label in np.unique(labels):
                cell = np.flatnonzero((data.groups == group) & (labels == label))
                assert abs(np.isin(data.test, cell).sum() - 0.3 * len(cell)) < 1
    np.testing.assert_array_equal(one.groups, two.groups)
    assert not np.array_equal(one.test, two.test)


def test_same_arguments_same_data():
    one, two = (load("acs2012-income", sensitive=["race"], seed=5) for _ in range(2))
    for field in ("X", "y", "groups", "train", "test"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


def test_a_changed_result_does_not_change_the_next_one():
    one = load("german", sensitive="gender")
    before = one.X.copy()
    one.X[:], one.y[:], one.groups[:] = 0, 0, 0
    two = load("german", sensitive="gender")
    np.testing.assert_array_equal(two.X, before)
    assert two.y.sum() == 700 and two.groups.sum() == 310


def test_rows_of_a_part():
    data = load("acs2012-income", sensitive="gender")
    for part, index in (("train", data.train), ("test", data.test), ("all", np.arange(data.n_rows))):
        X, y, groups = data.rows(part)
        np.testing.assert_array_equal(X, data.X[index])
        np.testing.assert_array_equal(y, data.y[index])
        np.testing.assert_array_equal(groups, data.groups[index])
    with pytest.raises(ArgumentError, match="part: unknown: 'validation'"):
        data.rows("validation")


def test_no_test_set():
    data = load("acs2012-income", sensitive="gender", test_size=0)
    assert data.test.size == 0
    np.testing.assert_array_equal(data.train, np.arange(843))
    assert data.rows("test")[0].shape == (0, data.n_features)


def test_intersections_in_the_order_asked():
    data = load("acs2012-employment", sensitive=["gender", "age"])
    rows, _, _ = acs_task("acs2012-employment")
    assert data.group_names == (
        "male & under 40",
        "male & 40 or over",
        "female & under 40",
        "female & 40 or over",
    )
    np.testing.assert_array_equal(data.groups, 2 * (rows.gender == "female") + (rows.age >= 40))
    assert load("acs2012-employment", sensitive=["age", "gender"]).group_names[1] == "under 40 & female"
    assert data.sensitive == ("gender", "age")


@EVERY
def test_sensitive_columns_can_be_dropped(name):
    for attribute in info(name).sensitive:
        kept = load(name, sensitive=attribute.name, test_size=0)
        dropped = load(name, sensitive=attribute.name, test_size=0, keep_sensitive=False)
        gone = [column for column in kept.feature_names if column not in dropped.feature_names]
        assert gone
        assert all(any(c == s or c.startswith(s + "_") for s in attribute.columns) for c in gone)
        assert {s for s in attribute.columns if any(c == s or c.startswith(s + "_") for c in gone)} == set(
            attribute.columns
        )
        stays = [kept.feature_names.index(column) for column in dropped.feature_names]
        np.testing.assert_array_equal(kept.X[:, stays], dropped.X)
        np.testing.assert_array_equal(kept.groups, dropped.groups)


@EVERY
def test_no_feature_gives_the_target_away(name):
    data = load(name, sensitive=info(name).sensitive[0].name, test_size=0)
    y = (data.y - data.y.mean()) / data.y.std()
    assert np.abs(data.X[:, 1:].T @ y / data.n_rows).max() < 0.85
    residual = data.y - data.X @ np.linalg.lstsq(data.X, data.y)[0]
    assert residual.var() > 0.2 * data.y.var()


def test_description():
    text = repr(load("acs2012-income", sensitive="gender"))
    assert "acs2012-income" in text and "male: 470, female: 373" in text


# What a user can get wrong


def test_unknown_data_set_names_the_nearest():
    with pytest.raises(ArgumentError, match=r"name: unknown: 'acs2012-incomes' .*did you mean acs2012-income"):
        load("acs2012-incomes", sensitive="gender")
    with pytest.raises(ArgumentError, match="name: unknown: 7"):
        load(7, sensitive="gender")


def test_sensitive_attribute_that_is_not_there():
    with pytest.raises(ArgumentError, match=r"sensitive: unknown: 'religion' .*known: age, citizen, .*gender"):
        load("acs2012-income", sensitive=["gender", "religion"])
    with pytest.raises(ArgumentError, match="sensitive: unknown: 'gender'"):
        load("communities", sensitive="gender")


@pytest.mark.parametrize("sensitive", [[], None, (), 7])
def test_no_sensitive_attribute(sensitive):
    with pytest.raises(ArgumentError, match=r"sensitive: no attributes: .*at least one of: gender"):
        load("german", sensitive=sensitive)


@pytest.mark.parametrize("sensitive", ["", [7], [["gender"]]])
def test_sensitive_of_a_wrong_type(sensitive):
    with pytest.raises(ArgumentError, match=r"sensitive: unknown: .*known: age, gender"):
        load("german", sensitive=sensitive)


def test_sensitive_attribute_twice():
    with pytest.raises(ArgumentError, match="sensitive: an attribute twice: gender, gender"):
        load("german", sensitive=["gender", "gender"])


@pytest.mark.parametrize("test_size", [-0.1, 1, 1.5, float("nan"), "0.3", True, None])
def test_test_size_out_of_range(test_size):
    with pytest.raises(ArgumentError, match=r"test_size: .*a number in \[0, 1\)"):
        load("german", sensitive="gender", test_size=test_size)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True])
def test_bad_seed(seed):
    with pytest.raises(ArgumentError, match=r"seed: not a seed: .*whole number, at least 0"):
        load("german", sensitive="gender", seed=seed)


def test_group_without_rows(own_data):
    own_data(
        ('levels = ["male", "female"], columns = ["gender"]', 'levels = ["male", "x", "female"], columns = ["gender"]')
    )
    for test_size in (0, 0.3):
        with pytest.raises(ArgumentError, match="acs2012-income has no training rows in the group 'x'"):
            load("acs2012-income", sensitive="gender", test_size=test_size)


def test_group_with_one_class(own_data):
    own_data(('["under 40", "40 or over"], cuts = [40]', '["under 89", "89 to 93", "94 or over"], cuts = [89, 94]'))
    message = r"acs2012-employment has 21 training rows in the group '89 to 93', all of class 0 \(choose"
    with pytest.raises(ArgumentError, match=message):
        load("acs2012-employment", sensitive="age", test_size=0)
    with pytest.raises(ArgumentError, match=r"in the group '89 to 93', all of class 0"):
        load("acs2012-employment", sensitive="age", test_size=0.5)


def test_regression_needs_no_classes_but_rows(own_data):
    own_data(('"white", "black", "hispanic", "asian"]', '"white", "black", "hispanic", "asian", "maori"]'))
    with pytest.raises(ArgumentError, match="communities has no training rows in the group 'maori'"):
        load("communities", sensitive="race")


def test_group_without_test_rows():
    with pytest.raises(ArgumentError, match="compas has no test rows in the group 'female & Asian'"):
        load("compas", sensitive=["gender", "race"])
    assert load("compas", sensitive="race").n_groups == 6


def test_value_that_the_registry_does_not_list(own_data):
    own_data(('"white", "black", "asian", "other"]', '"white", "black", "asian"]'))
    with pytest.raises(DataError, match="race: other not among the registry's values: white, black, asian"):
        load("acs2012-income", sensitive="race")


def test_corrupted_file_is_named_with_its_remedy_at_every_load(own_data):
    path = own_data() / "german.parquet"
    content = path.read_bytes()
    assert load("german", sensitive="gender").n_rows == 1000

    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    for _ in range(2):
        with pytest.raises(DataError, match=r"german\.parquet: corrupted, its SHA-256 is .*git checkout -- data"):
            load("german", sensitive="gender")

    path.write_bytes(content)
    assert load("german", sensitive="gender").n_rows == 1000

    path.unlink()
    with pytest.raises(DataError, match=r"german\.parquet: cannot be read: .*git checkout -- data"):
        load("german", sensitive="gender")
    assert load("acs2012-income", sensitive="gender").n_rows == 843
