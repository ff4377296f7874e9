"""The embedded files are made from the raw ones, and from nothing else."""

from __future__ import annotations

import csv
import gzip
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairfront import paths
from fairfront.datasets.registry import files
from fairfront.datasets.sources import RAW

SCRIPT = paths.data() / "make_embedded.py"


def make(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "FAIRFRONT_DATA"}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def made(raw_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    done = make(raw_folder, "--out", out)
    assert done.returncode in (0, 1), done.stderr
    return out


@pytest.mark.parametrize("name", files(embedded=True))
def test_values_are_those_of_the_raw_files(made, name):
    file = files(embedded=True)[name]
    pd.testing.assert_frame_equal(
        pq.read_table(made / file.path.name).to_pandas(), pq.read_table(file.path).to_pandas(), check_exact=True
    )


@pytest.mark.parametrize("name", files(embedded=True))
def test_bytes_are_those_of_the_raw_files(made, name):
    file = files(embedded=True)[name]
    writer = pq.ParquetFile(file.path).metadata.created_by
    if writer != f"parquet-cpp-arrow version {pa.__version__}":
        pytest.skip(f"{file.path.name} was written by {writer}, this is pyarrow {pa.__version__}")
    assert (made / file.path.name).read_bytes() == file.path.read_bytes()


def test_nothing_half_written_is_left(made):
    assert sorted(path.name for path in made.iterdir()) == sorted(
        file.path.name for file in files(embedded=True).values()
    )


def test_compas_against_the_raw_file_without_pandas(raw_folder):
    with gzip.open(raw_folder / "compas" / "compas-scores-two-years.csv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    columns = pq.ParquetFile(files(embedded=True)["compas"].path).schema_arrow.names
    kept = Counter(
        tuple(row[column] for column in columns)
        for row in rows
        if row["days_b_screening_arrest"]
        and -30 <= float(row["days_b_screening_arrest"]) <= 30
        and row["is_recid"] != "-1"
        and row["c_charge_degree"] != "O"
        and row["score_text"] != "N/A"
    )
    embedded = pq.read_table(files(embedded=True)["compas"].path).to_pylist()
    assert Counter(tuple(str(row[column]) for column in columns) for row in embedded) == kept


def test_adult_and_german_against_the_raw_files_without_pandas(raw_folder):
    for name, separator in (("adult", ", "), ("german", " ")):
        lines = (raw_folder / "uci" / f"{name}.data").read_text(encoding="ascii").split("\n")
        embedded = pq.read_table(files(embedded=True)[name].path).to_pylist()
        assert [separator.join(map(str, row.values())) for row in embedded] == [line for line in lines if line]


def test_acs_and_communities_against_the_raw_files_without_pandas(raw_folder):
    def number(cell: str) -> float | str | None:
        try:
            return float(cell)
        except ValueError:
            return None if cell in ("", "?") else cell

    with open(raw_folder / "acs" / "acs_2012_sample.csv", encoding="utf-8", newline="") as stream:
        sample = [[number(cell) for cell in row.values()] for row in csv.DictReader(stream)]
    assert [list(row.values()) for row in pq.read_table(files(embedded=True)["acs2012"].path).to_pylist()] == sample

    with open(raw_folder / "uci" / "communities.data", encoding="ascii", newline="") as stream:
        communities = [[*map(number, row[5:]), "?" not in row] for row in csv.reader(stream)]
    assert [
        list(row.values()) for row in pq.read_table(files(embedded=True)["communities"].path).to_pylist()
    ] == communities


def test_age_bins_of_compas_are_the_raw_files(raw_folder):
    frame = pd.read_csv(raw_folder / "compas" / "compas-scores-two-years.csv.gz")
    bins = pd.cut(frame["age"], [0, 25, 45, 200], right=False, labels=["Less than 25", "25 - 45", "Greater than 45"])
    assert (bins.astype(str) == frame["age_cat"]).all()


def test_readers_take_every_raw_file_of_the_registry(raw_folder):
    for name, file in files(embedded=True).items():
        frame = RAW[name]([raw_folder / raw.path for raw in file.raw])
        assert frame.shape == (file.rows, file.columns)


# What can go wrong, without the raw files


def test_an_absent_raw_file_is_named(tmp_path):
    done = make(tmp_path / "nothing", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "acs_2012_sample.csv: cannot be read" in done.stderr and "https://www.openintro.org" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_changed_raw_file_is_refused(tmp_path):
    raw = tmp_path / "raw" / "acs" / "acs_2012_sample.csv"
    raw.parent.mkdir(parents=True)
    raw.write_text("income,employment\n1,employed\n", encoding="utf-8")
    done = make(tmp_path / "raw", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "acs_2012_sample.csv: corrupted" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_no_folder_at_all():
    done = make()
    assert done.returncode == 2
    assert "set FAIRFRONT_DATA" in done.stderr


def test_a_file_unlike_the_registrys_is_said(raw_folder, tmp_path):
    root = tmp_path / "checkout"
    shutil.copytree(paths.data(), root / "data")
    shutil.copytree(paths.package(), root / "src" / "fairfront")
    (root / "pyproject.toml").touch()
    registry = root / "data" / "registry.toml"
    text = registry.read_text(encoding="utf-8")
    registry.write_text(text.replace(files(embedded=True)["german"].sha256, "0" * 64), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(root / "data" / "make_embedded.py"), str(raw_folder)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root / "src")},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("as in the registry") == 4
    assert "german.parquet" in next(line for line in done.stdout.splitlines() if "NOT the registry's" in line)
