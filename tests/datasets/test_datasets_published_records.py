"""The authors' records: found, read by this package's names, and refused when they are not what was asked for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from fairfront.datasets.published_records import FILE, digest, read_records
from fairfront.errors import DataError

RECORD = {
    "train_rmse": 1.5,
    "test_rmse": 2.5,
    "train_metric": 0.75,
    "test_metric": 0.875,
    "weights": [0.25, 0.75],
    "method": "BADR",
    "dset": "communities_and_crime_seed3",
}


@pytest.fixture(params=["", "reference", "../reference"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the records lie: in the folder of raw files, or in a folder reference within or beside it."""
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path / "data"))
    place = (tmp_path / "data" / request.param).resolve()
    (tmp_path / "data").mkdir()
    place.mkdir(exist_ok=True)
    (place / FILE).write_text(json.dumps(RECORD) + "\n", encoding="utf-8")
    return place / FILE


def test_records_are_read_by_this_packages_names(path: Path) -> None:
    assert digest() == hashlib.sha256(path.read_bytes()).hexdigest()
    (row,) = read_records(digest()).to_dict("records")
    assert row == {
        "data": "communities",
        "seed": 3,
        "strategy": "badr-random",
        "train_rmse": 1.5,
        "test_rmse": 2.5,
        "train_metric": 0.75,
        "test_metric": 0.875,
        "lambda": "[0.25, 0.75]",
    }


def test_another_file_is_refused(path: Path) -> None:
    with pytest.raises(DataError, match="asked for 0000"):
        read_records("0000")


@pytest.mark.parametrize("text", ["no JSON", "{}", json.dumps(RECORD | {"method": "new"}), json.dumps([1])])
def test_a_damaged_file_is_refused(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"damaged.*put the authors' records"):
        read_records(digest())


def test_absent_records_are_said_with_a_remedy() -> None:
    assert digest() == ""
    with pytest.raises(DataError, match="not at hand; put the authors' records"):
        read_records("0000")


@pytest.mark.usefixtures("with_raw_files")
def test_the_real_records_where_they_are_at_hand() -> None:
    if not digest():
        pytest.skip("the authors' records are not at hand below or beside the raw data files")
    records = read_records(digest())
    assert len(records) == 100 and not records.duplicated(["data", "seed", "strategy"]).any()
    assert records.groupby("data").size().to_dict() == dict.fromkeys(records.data.unique(), 25)
    assert set(records.strategy) == {"uniform", "balanced", "one-group", "minimax", "badr-random"}
