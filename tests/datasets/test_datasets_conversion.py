"""Rows that do not fit in memory: what is written lot by lot is what a load holds at once; synthetic rows say so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from persons import persons, write

from fairfront.datasets import convert, load, synthetic_acs
from fairfront.datasets.blocks import ParquetRows
from fairfront.datasets.conversion import describe_file
from fairfront.datasets.sources import acs
from fairfront.datasets.synthetic import LOT, tables
from fairfront.datasets.synthetic import persons as synthetic_persons
from fairfront.errors import ArgumentError, DataError, OutputError


def sorted_by_group(data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(data.groups, kind="stable")
    return data.X[order], data.y[order], data.groups[order]


@pytest.mark.parametrize("block_rows", [64, 100_000])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("adult", {"sensitive": ["gender", "race"], "groups": 5}),
        ("compas", {"sensitive": "race", "keep_sensitive": False}),
        ("communities", {"sensitive": "race"}),
    ],
)
def test_the_file_holds_what_load_holds(tmp_path, name, options, block_rows):
    if name == "adult" and block_rows == 64:
        block_rows = 5000
    result = convert(name, tmp_path / "a.parquet", block_rows=block_rows, **options)
    data = load(name, test_size=0, **options)
    X, y, _ = sorted_by_group(data)
    rows = ParquetRows(tmp_path / "a.parquet")
    np.testing.assert_allclose(rows[:], X, atol=1e-9)
    np.testing.assert_array_equal(rows.y, y)
    assert rows.group_sizes.tolist() == data.group_sizes.tolist() == list(result.group_sizes)
    assert rows.feature_names == data.feature_names == result.feature_names
    assert result.group_names == data.group_names and result.rows == len(y) and not result.synthetic
    assert describe_file(tmp_path / "a.parquet") == result
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).num_rows == min(block_rows, len(y))


def test_a_survey_lot_by_lot(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path))
    monkeypatch.setattr(acs, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(acs, "FRAME_ROWS", 400)
    write(tmp_path, persons(3000))
    options = {"sensitive": ["gender", "race"], "groups": 7}
    result = convert("acs-travel-time/2018/FL", tmp_path / "b.parquet", block_rows=200, **options)
    data = load("acs-travel-time/2018/FL", test_size=0, **options)
    X, y, _ = sorted_by_group(data)
    rows = ParquetRows(tmp_path / "b.parquet")
    np.testing.assert_allclose(rows[:], X, atol=1e-9)
    np.testing.assert_array_equal(rows.y, y)
    assert result.group_names == data.group_names and result.feature_names == data.feature_names


def test_synthetic_rows_say_so(tmp_path):
    result = convert("synthetic-acs-income/3000/5", tmp_path / "s.parquet", sensitive="gender")
    assert result.synthetic and "SYNTHETIC" in result.notice and result.target.startswith("SYNTHETIC")
    assert describe_file(tmp_path / "s.parquet").synthetic
    data = synthetic_acs(3000, sensitive="gender", seed=5, test_size=0)
    assert data.name == "synthetic-acs-income" and "SYNTHETIC" in repr(data) and "SYNTHETIC" in data.report[0]
    X, y, _ = sorted_by_group(data)
    rows = ParquetRows(tmp_path / "s.parquet")
    np.testing.assert_allclose(rows[:], X, atol=1e-9)
    np.testing.assert_array_equal(rows.y, y)


def test_synthetic_rows_are_drawn_anew_alike_and_a_longer_table_begins_with_a_shorter():
    one, two = (pd.concat(synthetic_persons(n, seed=3), ignore_index=True) for n in (500, LOT + 500))
    assert (len(one), len(two)) == (500, LOT + 500)
    pd.testing.assert_frame_equal(one, two.head(500))
    other = pd.concat(synthetic_persons(500, seed=4))
    assert not one.equals(other)


@pytest.mark.parametrize("task", acs.PROBLEMS)
def test_synthetic_rows_have_the_shape_of_the_survey(task):
    (lot,) = tables(20_000, task)
    assert list(lot.features) == acs.features(task)
    assert 0.25 < lot.target.mean() < 0.6
    assert not np.isnan(lot.features.to_numpy()).any()
    data = synthetic_acs(20_000, task=task, sensitive=["gender", "race", "age"], groups=12)
    assert data.n_groups == 12 and data.digest != synthetic_acs(20_000, task=task, sensitive="gender", seed=1).digest


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("adults", {}, ArgumentError, "name: unknown: 'adults'"),
        ("synthetic-acs-income", {}, ArgumentError, "not synthetic-TASK/ROWS"),
        ("synthetic-acs-incomes/9", {}, ArgumentError, "task: unknown: 'acs-incomes'"),
        ("synthetic-acs-income/0", {}, ArgumentError, "rows: not a number of rows: 0"),
        ("compas", {"block_rows": 0}, ArgumentError, "block_rows: not a number of rows: 0"),
        ("compas", {"sensitive": "religion"}, ArgumentError, "sensitive: unknown: 'religion'"),
        ("compas", {"groups": 3}, ArgumentError, "groups: 3 groups cannot be made of 2 cells"),
        ("acs-income/2018/FL", {}, DataError, "psam_p12.csv: absent"),
    ],
)
def test_bad_input(tmp_path, name, options, error, message):
    with pytest.raises(error, match=message):
        convert(name, tmp_path / "a.parquet", **{"sensitive": "gender", **options})
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"a\.parquet: cannot be written"):
        convert("compas", tmp_path / "file" / "a.parquet", sensitive="gender")
    with pytest.raises(DataError, match="not a file that `fairfront data convert` made"):
        describe_file(tmp_path / "file")
