"""A user's own rows: every kind of frame gives the same data, nothing is done unsaid, and what is wrong is named."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairfront.datasets import LeakWarning, from_frame
from fairfront.errors import ArgumentError, DataError

N = 200


def people(seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "hired": draw.choice(["no", "yes"], N),
            "gender": draw.choice(["f", "m"], N),
            "race": draw.choice(["a", "b", "c"], N, p=[0.7, 0.2, 0.1]),
            "age": draw.integers(18, 70, N),
            "town": draw.choice(["x", "y", "z"], N),
            "score": draw.normal(size=N),
            "member": draw.random(N) < 0.5,
            "same": 3,
            "id": [f"p{k}" for k in range(N)],
        }
    )


def gaps(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    frame.loc[[0, 1], "score"] = np.nan
    frame.loc[2, "town"] = None
    frame.loc[3, "race"] = None
    frame.loc[4, "hired"] = None
    return frame


def test_every_kind_of_frame_gives_the_same(tmp_path):
    frame = people()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    kinds = [
        frame,
        frame.set_index("id", drop=False),
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas(frame),
        tmp_path / "a.csv",
        str(tmp_path / "a.csv.gz"),
        tmp_path / "a.parquet",
    ]
    results = [from_frame(kind, target="hired", sensitive=["gender", "race"]) for kind in kinds]
    first = results[0]
    for other in results[1:]:
        np.testing.assert_array_equal(other.groups, first.groups)
        np.testing.assert_allclose(other.X, first.X, atol=1e-12)
        np.testing.assert_array_equal(other.train, first.train)
        assert other.feature_names == first.feature_names and other.group_names == first.group_names
        assert other.report == first.report


def test_what_is_done_by_hand():
    frame = people()
    data = from_frame(frame, target="hired", sensitive="gender", test_size=0)
    assert (data.task, data.target, data.name) == ("classification", "hired", "own data")
    np.testing.assert_array_equal(data.y, frame.hired == "yes")
    np.testing.assert_array_equal(data.groups, frame.gender == "m")
    matrix = pd.get_dummies(frame.drop(columns=["hired", "same", "id"]), drop_first=True, dtype=float)
    matrix = matrix[[name for name in data.feature_names if name != "intercept"]].astype(float)
    np.testing.assert_allclose(data.X[:, 1:], (matrix - matrix.mean()) / matrix.std(ddof=0), atol=1e-12)
    assert len(data.digest) == 64
    text = "; ".join(data.report)
    for said in (
        "200 rows of 9 columns were read",
        "no value is missing",
        "hired = yes is labelled 1, no 0",
        "id has another value in every row, it names them: left out",
        "indicators of gender, race, town, each but its first value",
        "one value in every row, left out: same",
        "2 groups: f (",
    ):
        assert said in text


def test_a_number_is_a_regression_and_a_task_can_be_asked_for():
    data = from_frame(people(), target="score", sensitive="race")
    assert data.task == "regression" and data.group_names == ("a", "b", "c")
    assert from_frame(people(), target="member", sensitive="race").y.tolist() == people().member.astype(float).tolist()
    flipped = from_frame(people(), target="hired", sensitive="gender", positive="no")
    np.testing.assert_array_equal(flipped.y, people().hired == "no")
    one_two = people().assign(hired=lambda frame: np.where(frame.hired == "yes", 2, 1))
    np.testing.assert_array_equal(from_frame(one_two, target="hired", sensitive="gender").y, people().hired == "yes")


def test_missing_values_by_each_policy():
    frame = gaps(people())
    with pytest.raises(
        ArgumentError, match=r"missing: values are missing: hired \(1\), race \(1\), town \(1\), score \(2\)"
    ):
        from_frame(frame, target="hired", sensitive="race")
    dropped = from_frame(frame, target="hired", sensitive="race", missing="drop", test_size=0)
    assert dropped.n_rows == N - 5 and "5 rows with a missing value were dropped" in "; ".join(dropped.report)

    filled = from_frame(frame, target="hired", sensitive=["race"], missing="fill", test_size=0, groups=3)
    assert filled.n_rows == N - 1
    assert "1 rows with a missing target were dropped" in "; ".join(filled.report)
    assert "missing values were filled" in "; ".join(filled.report)
    assert any("(missing)" in name for name in filled.group_names)
    column = filled.X[:, filled.feature_names.index("score")]
    assert column[0] == column[1] == 0 and np.isfinite(filled.X).all()
    # As the first in alphabetical order, "(missing)" is the reference.
    towns = [name for name in filled.feature_names if name.startswith("town_")]
    assert towns == ["town_x", "town_y", "town_z"]
    assert all(filled.X[2, filled.feature_names.index(name)] < 0 for name in towns)


def test_nullable_integers_of_pandas_and_polars_are_filled():
    frame = people().assign(age=pd.array([None, *people().age[1:]], dtype="Int64"))
    for kind in (frame, pl.from_pandas(frame)):
        data = from_frame(kind, target="hired", sensitive="gender", missing="fill")
        assert data.X[0, data.feature_names.index("age")] == 0


def test_numbers_as_groups():
    data = from_frame(people(), target="hired", sensitive="age", bins={"age": [30, 50]}, test_size=0)
    assert data.group_names == ("under 30", "30 to below 50", "50 or over")
    np.testing.assert_array_equal(data.groups, np.digitize(people().age, [30, 50]))
    data = from_frame(people(), target="hired", sensitive=["age", "gender"], bins={"age": 4})
    assert data.n_groups == 8
    with pytest.raises(ArgumentError, match=r"sensitive: age has \d+ values .bins=.'age'"):
        from_frame(people(), target="hired", sensitive="age")


def test_merging_and_dropping():
    frame = people()
    data = from_frame(frame, target="hired", sensitive=["gender", "race"], groups=3, keep_sensitive=False, drop=["id"])
    assert data.n_groups == 3 and data.group_sizes.sum() == N
    assert not any(name.startswith(("gender", "race")) for name in data.feature_names)


def test_a_leak_is_said():
    frame = people().assign(copy=lambda frame: (frame.hired == "yes") * 2.0 + 1, word=lambda frame: "w" + frame.hired)
    with pytest.warns(LeakWarning, match="copy, word: the target under another name"):
        from_frame(frame, target="hired", sensitive="gender")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_frame(frame, target="hired", sensitive="gender", drop=["copy", "word"])


def test_the_digest_changes_with_the_values():
    one = from_frame(people(), target="hired", sensitive="gender").digest
    assert from_frame(people(1), target="hired", sensitive="gender").digest != one


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"target": "hire"}, "target: unknown: 'hire' .did you mean hired"),
        ({}, {"sensitive": "sex"}, "sensitive: unknown: 'sex'"),
        ({}, {"sensitive": []}, "sensitive: not different columns"),
        ({}, {"sensitive": ["gender", "gender"]}, "sensitive: not different columns"),
        ({}, {"sensitive": "hired"}, "sensitive: not different columns beside the target"),
        ({}, {"drop": ["nothing"]}, "drop: unknown: 'nothing'"),
        ({}, {"drop": ["gender"]}, "drop: target and sensitive columns cannot go"),
        ({}, {"missing": "ignore"}, "missing: unknown: 'ignore' .refuse, drop, fill"),
        ({}, {"task": "ranking"}, "task: unknown: 'ranking'"),
        ({}, {"task": "regression"}, "target: hired is no number"),
        ({}, {"positive": "perhaps"}, "positive: 'perhaps' is no value of hired .no or yes"),
        ({}, {"groups": 7, "sensitive": ["gender", "race"]}, "groups: 7 groups cannot be made of 6 cells"),
        ({}, {"groups": 1}, "groups: not a number of groups"),
        ({}, {"bins": {"town": [3]}}, "bins: 'town' is no numeric sensitive column"),
        ({}, {"sensitive": "age", "bins": {"age": 1}}, "bins: not a number of bins"),
        ({}, {"sensitive": "age", "bins": {"age": [9, 8]}}, "bins: not increasing numbers"),
        ({}, {"test_size": 2}, "test_size"),
        ({}, {"target": "town"}, "target: town has 3 values: x, y, z .two are needed"),
        ({"hired": "yes"}, {}, "target: hired is 'yes' in every row"),
        ({"gender": "f"}, {}, "sensitive: gender has one value in all 200 rows: f"),
        ({"score": np.inf}, {}, "data: infinite values in score"),
        ({"score": None}, {"missing": "drop"}, "missing: no row is left"),
        ({"when": pd.Timestamp("2020-01-01")}, {}, "data: when is a time"),
    ],
)
def test_bad_input_names_the_argument_and_the_remedy(change, options, message):
    arguments = {"target": "hired", "sensitive": "gender", **options}
    with pytest.raises(ArgumentError, match=message):
        from_frame(people().assign(**change), **arguments)


def test_what_is_no_frame(tmp_path):
    with pytest.raises(ArgumentError, match="data: not a frame: list"):
        from_frame([1, 2], target="a", sensitive="b")
    with pytest.raises(ArgumentError, match=r"data: unknown ending: 'a\.xls'"):
        from_frame("a.xls", target="a", sensitive="b")
    with pytest.raises(DataError, match=r"none\.csv: cannot be read"):
        from_frame(tmp_path / "none.csv", target="a", sensitive="b")
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
        from_frame(tmp_path / "a.parquet", target="a", sensitive="b")
