"""What is at hand: states, checks, and the commands that show them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from persons import persons, write
from test_datasets_fetching import server  # noqa: F401

from fairfront.cli import main
from fairfront.datasets import image_names, inventory, names
from fairfront.datasets.blocks import ParquetRows
from fairfront.datasets.registry import info
from fairfront.errors import ArgumentError


def run(capsys: pytest.CaptureFixture, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(words)
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out + err


def test_without_files_some_are_embedded_and_the_rest_is_missing(capsys):
    status, text = run(capsys, "data", "verify", "--json")
    states = {item["name"]: item for item in json.loads(text)}
    assert status == 0
    assert set(states) == {*names(), *image_names()}
    for name, item in states.items():
        embedded = name in (*names(embedded=True), "digits", "synthetic100")
        assert item["state"] == ("embedded" if embedded else "missing"), name
        assert item["source"] and item["problem"] == ""
        assert set(item) == {"name", "kind", "state", "rows", "where", "source", "problem"}
    assert states["adult"]["rows"] == 32561 and states["dutch"]["rows"] == 60420
    assert "by hand" in states["lsac"]["source"] and "storage.googleapis.com" in states["lsac"]["source"]
    assert "csv_pal.zip and 50 more" in states["acs-income"]["source"]


@pytest.mark.usefixtures("with_raw_files")
def test_with_the_raw_files_everything_but_the_survey_is_present(capsys):
    status, text = run(capsys, "data", "verify", "--json")
    states = {item["name"]: (item["state"], item["rows"]) for item in json.loads(text)}
    assert status == 0
    assert states["dutch"] == ("present", 60420) and states["arrhythmia"] == ("present", 452)
    assert states["cifar10"] == ("present", 12000) and states["acs-income"] == ("missing", None)
    assert all(
        state == "present" for name, (state, _) in states.items() if not name.startswith(("acs-", "digits", "syn"))
    )


def test_corrupt_files_are_said_and_the_status_is_1(tmp_path, monkeypatch, capsys, own_data):
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path))
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "parkinsons_updrs.data").write_text("<!DOCTYPE html><html>403</html>")
    (tmp_path / "uci" / "student-mat.csv").write_text("a;b\n1;2\n")
    embedded = own_data() / "german.parquet"
    embedded.write_bytes(embedded.read_bytes()[:-1])
    write(tmp_path, persons(50).assign(RAC1P=0))
    status, text = run(capsys, "data", "verify", "--json")
    states = {item["name"]: item for item in json.loads(text)}
    assert status == 1
    corrupt = {name for name, item in states.items() if item["state"] == "corrupt"}
    survey = {f"{task}/2018/FL" for task in ("acs-employment", "acs-income", "acs-travel-time")}
    assert corrupt == {"german", "parkinsons", "student", *survey}
    assert "HTML page" in states["parkinsons"]["problem"]
    assert "student-mat.csv" in states["student"]["problem"]
    assert "RAC1P: unknown code 0" in states["acs-income/2018/FL"]["problem"]
    assert run(capsys, "data", "verify", "compas")[0] == 0
    assert run(capsys, "data", "verify", "german", "--json")[0] == 1


def test_a_table_of_a_wrong_shape_is_corrupt(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path))
    (tmp_path / "lsac").mkdir()
    (tmp_path / "lsac" / "bar_pass_prediction.csv").write_text(
        "age,fam_inc,fulltime,gender,lsat,race1,ugpa,zgpa\n1,2,1,male,30,white,3.1,0.2\n"
    )
    state = inventory.verify("lsac")
    assert state.state == "corrupt" and "has 1 rows of 9 columns, lsac has 22,407 rows" in state.problem


def test_states_of_a_survey_that_are_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFRONT_DATA", str(tmp_path))
    write(tmp_path, persons(400))
    write(tmp_path, persons(300, "GA"), "GA", 2014)
    found = {state.name: state for state in inventory.states() if state.name.startswith("acs-employment")}
    assert set(found) == {"acs-employment", "acs-employment/2018/FL", "acs-employment/2014/GA"}
    assert found["acs-employment"].state == "missing" and found["acs-employment"].where == "1 of 51 files"
    assert found["acs-employment/2018/FL"].rows == 400 and found["acs-employment/2014/GA"].rows == 300


def test_list_and_info(capsys):
    status, text = run(capsys, "data", "list")
    assert status == 0 and all(name in text for name in (*names(), *image_names()))
    listed = json.loads(run(capsys, "data", "list", "--json")[1])
    assert [item["name"] for item in listed] == [*names(), *image_names()]
    status, text = run(capsys, "data", "info", "dutch")
    assert status == 0 and "Statistics Netherlands" in text and "state: missing" in text and "## Known problems" in text
    words = json.loads(run(capsys, "data", "info", "acs-income/2018/south", "--json")[1])
    assert words["n_files"] == 16 and words["state"] == "missing" and words["sensitive"]["gender"] == ["male", "female"]
    assert run(capsys, "data", "info", "cifar10")[0] == run(capsys, "data", "info", "digits")[0] == 0
    status, text = run(capsys, "data", "info", "dutsch")
    assert status == 2 and "did you mean dutch" in text


def test_fetch(server, own_data, capsys, monkeypatch):  # noqa: F811
    folder = own_data(("https://www2.census.gov", server.url))
    status, text = run(capsys, "data", "fetch", "acs-income/2018/FL")
    assert status == 2 and "psam_p12.csv: absent" in text and "404" in text and "put it by hand" in text
    assert run(capsys, "data", "fetch", "adult")[0] == 0
    assert inventory.bring("adult") == [folder / "adult.parquet"] and inventory.bring("digits") == []
    monkeypatch.setenv("FAIRFRONT_OFFLINE", "1")
    status, text = run(capsys, "data", "fetch", "dutch")
    assert status == 2 and "downloads are switched off" in text


def test_convert(tmp_path, capsys):
    out = tmp_path / "c.parquet"
    words = ("data", "convert", "compas", "--out", str(out), "--sensitive", "gender,race", "--groups", "4")
    status, text = run(capsys, *words)
    assert status == 0 and "6,172 rows of 13 columns" in text
    assert len(ParquetRows(out).group_sizes) == 4
    result = json.loads(run(capsys, *words, "--json")[1])
    assert result["rows"] == 6172 and result["synthetic"] is False
    words = ("data", "convert", "synthetic-acs-income/2000", "--out", str(out), "--sensitive", "gender")
    status, text = run(capsys, *words)
    assert status == 0 and "SYNTHETIC" in text
    assert run(capsys, *words[:3], "--out", "a.txt", "--sensitive", "gender")[0] == 2


def test_unknown_names():
    for function in (inventory.verify, inventory.bring, inventory.describe):
        with pytest.raises(ArgumentError, match="name: unknown: 'nothing'"):
            function("nothing")
    assert Path(info("adult").file.path).is_file()
