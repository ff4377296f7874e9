"""ACS person files, made by the tests in the layout of folktables, against what folktables itself makes of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import folktables
import numpy as np
import pytest
from persons import RELATIONS, persons, write
from test_datasets_fetching import server  # noqa: F401

from fairfront.datasets import info, load
from fairfront.datasets.sources import acs
from fairfront.errors import ArgumentError, DataError

TASKS = ("acs-employment", "acs-income", "acs-travel-time")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path))
    monkeypatch.setattr(acs, "BLOCK_BYTES", 1 << 14)  # many blocks
    monkeypatch.setattr(acs, "FRAME_ROWS", 500)
    return tmp_path


def theirs(folder: Path, task: str, year: int, states: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    source = folktables.ACSDataSource(str(year), "1-Year", "person", root_dir=str(folder))
    return getattr(folktables, acs.PROBLEMS[task]).df_to_numpy(source.get_data(states=states))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_rows_labels_and_features_are_those_of_folktables(folder, task, padded):
    write(folder, persons(4000), padded=padded)
    X, y, race = theirs(folder, task, 2018, ["FL"])
    data = load(f"{task}/2018/FL", sensitive=["gender", "race"], groups=6, test_size=0.0)
    varies = np.ptp(X, axis=0) > 0  # the state does not, in the file of one
    names = np.array(getattr(folktables, acs.PROBLEMS[task]).features)
    assert list(names[~varies]) == (["ST"] if task == "acs-travel-time" else [])
    assert data.feature_names == ("intercept", *names[varies])
    np.testing.assert_array_equal(data.y, y)
    X = X[:, varies]
    np.testing.assert_allclose(data.X[:, 1:], (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-6)
    ungrouped = load(f"{task}/2018/FL", sensitive="race", test_size=0.0)
    np.testing.assert_array_equal(ungrouped.groups, race - 1)


def test_several_states_early_names_and_a_region(folder):
    states = info("acs-income/2015/south").states
    for number, state in enumerate(states[:3]):
        write(folder, persons(900, state, seed=number), state, 2015)
    assert states[:3] == ("DE", "FL", "GA")
    with pytest.raises(DataError, match=r"2015/1-Year/ss15pmd\.csv: absent; downloads are switched off"):
        load("acs-income/2015/south", sensitive="gender")
    one = load("acs-income/2015/DE", sensitive="gender", test_size=0)
    X, y, _ = theirs(folder, "acs-income", 2015, ["DE"])
    np.testing.assert_array_equal(one.y, y)
    paths = {12: folder / "2015/1-Year/ss15pfl.csv", 13: folder / "2015/1-Year/ss15pga.csv"}
    both = acs.table(paths, "acs-income")
    X, y, _ = theirs(folder, "acs-income", 2015, ["FL", "GA"])
    np.testing.assert_array_equal(both.target, y)
    np.testing.assert_array_equal(both.features.to_numpy(), X)


def test_relshipp_in_the_place_of_relp(folder):
    frame = persons(1500)
    write(folder, frame)
    old = load("acs-employment/2018/FL", sensitive="gender")
    write(folder, frame.assign(RELSHIPP=frame["RELP"].map(RELATIONS)).drop(columns="RELP"))
    new = load("acs-employment/2018/FL", sensitive="gender")
    np.testing.assert_array_equal(old.X, new.X)
    write(folder, frame.assign(RELSHIPP=19).drop(columns="RELP"))
    with pytest.raises(DataError, match="RELSHIPP: unknown code 19; known: 20 to 38"):
        load("acs-employment/2018/FL", sensitive="gender")


def test_36_groups_of_gender_age_and_race_and_6_of_gender_and_marital_status(folder):
    write(folder, persons(6000))
    data = load("acs-travel-time/2018/FL", sensitive=["gender", "age", "race"], groups=36, test_size=0)
    assert data.n_groups == 36 and data.group_sizes.min() > 0
    data = load("acs-income/2018/FL", sensitive=["gender", "marital"])
    assert data.group_names[:3] == ("male & married", "male & no longer married", "male & never married")


def test_digest_is_that_of_the_file_and_changes_with_it(folder):
    path = write(folder, persons(500))
    before = info("acs-income/2018/FL").sha256
    assert load("acs-income/2018/FL", sensitive="gender").digest == before
    path.write_text(path.read_text(encoding="utf-8") + path.read_text(encoding="utf-8").splitlines()[1] + "\n")
    assert info("acs-income/2018/FL").sha256 != before
    with pytest.raises(DataError, match="is not at hand"):
        _ = info("acs-income/2018/GA").sha256


def test_from_the_servers_archive_end_to_end(server, tmp_path, own_data):  # noqa: F811
    text = persons(1200).to_csv(index=False)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ACS2018_PUMS_README.pdf", b"%PDF")
        archive.writestr("psam_p12.csv", text)
    server.files["/programs-surveys/acs/data/pums/2018/1-Year/csv_pfl.zip"] = buffer.getvalue()
    own_data(("https://www2.census.gov", server.url))
    for task in TASKS:
        assert load(f"{task}/2018/FL", sensitive="gender").n_rows > 100
    assert len(server.requests) == 1
    server.faults["/programs-surveys/acs/data/pums/2018/1-Year/csv_pga.zip"] = "forbidden"
    with pytest.raises(
        DataError, match=r"psam_p13\.csv: absent, and could not .*csv_pga\.zip: 403 .*put it by hand at"
    ):
        load("acs-income/2018/GA", sensitive="gender")


# What can be wrong with a file or a name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns=["SCHL", "MAR"]), "no column SCHL, MAR; acs-income needs AGEP, COW"),
        (lambda frame: frame.assign(WKHP="many"), "cannot be read as a person file"),
        (lambda frame: frame.assign(RAC1P=11), "RAC1P: unknown code 11; known: 1, 2, 3"),
        (lambda frame: frame.assign(SEX=0), "SEX: unknown code 0; known: 1, 2"),
        (lambda frame: frame.assign(ST=13), "holds persons of another state than number 12"),
        (lambda frame: frame.assign(PINCP=0), "not one row of acs-income"),
        (lambda frame: frame.assign(PINCP=60_000), "target: acs-income/2018/FL: every row is 1"),
        (lambda frame: frame.assign(SEX=2), "sensitive: gender has one value in all .* rows: female"),
        (lambda frame: frame.head(0), "not one row|cannot be read"),
    ],
)
def test_a_file_that_is_not_what_it_should_be(folder, change, message):
    write(folder, change(persons(300)))
    with pytest.raises((DataError, ArgumentError), match=message):
        load("acs-income/2018/FL", sensitive="gender")


def test_an_html_page_in_place_of_the_file(folder):
    path = write(folder, persons(10))
    path.write_text("<!DOCTYPE html><html><body>403 Forbidden</body></html>", encoding="utf-8")
    with pytest.raises(DataError, match=r"psam_p12\.csv: .*HTML page"):
        load("acs-income/2018/FL", sensitive="gender")


def test_bytes_that_are_no_text(folder):
    path = write(folder, persons(10))
    path.write_bytes(b"PK\x03\x04\xff\xfe" * 100)
    with pytest.raises(DataError, match=r"psam_p12\.csv: cannot be read as a CSV file|no column"):
        load("acs-income/2018/FL", sensitive="gender")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acs-income/1999/FL", "there is no ACSIncome of the year 1999 .*2014 to 2018"),
        ("acs-income/2018/ZZ", "unknown: 'ZZ'"),
        ("acs-income/2018/florida", "unknown: 'florida'"),
        ("acs-income/2018", r"not NAME/YEAR/PLACE.*as in acs-income/2018/FL"),
        ("acs-incomes/2018/FL", "did you mean acs-income"),
        ("adult/2018/FL", "adult is one table"),
    ],
)
def test_a_name_that_does_not_exist(name, message):
    with pytest.raises(ArgumentError, match=message):
        info(name)


def test_the_nation_the_regions_and_the_states():
    nation, regions = set(info("acs-income").states), ("northeast", "midwest", "south", "west")
    assert len(nation) == 51 and info("acs-income/2018/us").states == info("acs-income").states
    parts = [set(info(f"acs-income/2018/{region}").states) for region in regions]
    assert set.union(*parts) == nation - {"PR"} and sum(map(len, parts)) == 50
