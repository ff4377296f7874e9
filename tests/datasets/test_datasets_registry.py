"""The registry, the embedded files and the datasheets agree."""

from __future__ import annotations

import hashlib

import pyarrow.parquet as pq
import pytest

from fairfront import paths
from fairfront.datasets import info, names
from fairfront.datasets.registry import files
from fairfront.datasets.sources import RAW, TASKS, acs
from fairfront.errors import ArgumentError, DataError

EVERY_FILE = pytest.mark.parametrize("file", files(embedded=True).values(), ids=list(files(embedded=True)))


def test_names():
    assert names(embedded=True) == (
        "acs2012-employment",
        "acs2012-income",
        "acs2012-travel-time",
        "adult",
        "german",
        "communities",
        "compas",
    )
    assert {name for name in names() if not info(name).survey} == set(TASKS)
    assert {name for name in names() if info(name).survey} == set(acs.PROBLEMS)
    assert set(files()) == set(RAW) | {"acs", "cifar10", "cifar100"}


def test_the_acs_sample_is_named_as_what_it_is():
    for name in names()[:3]:
        assert info(name).notice == "A sample of 2,000 real persons of 2012, not the 2018 state files of the paper."


def test_unknown_name():
    with pytest.raises(ArgumentError, match=r"name: unknown: 'germany' .*did you mean german"):
        info("germany")


@EVERY_FILE
def test_file_is_the_registrys(file):
    content = file.path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == file.sha256
    parquet = pq.ParquetFile(file.path)
    assert (parquet.metadata.num_rows, parquet.metadata.num_columns) == (file.rows, file.columns)
    # Nothing about the machine or the versions that made it, but the writer's own mark.
    assert parquet.schema_arrow.metadata is None
    assert all((file.licence, file.canonical.startswith("https://"), file.citation))


def test_embedded_files_are_the_registrys_and_small():
    present = set(paths.data().glob("*.parquet"))
    assert present == {file.path for file in files(embedded=True).values()}
    assert sum(path.stat().st_size for path in present) < 3_000_000


def test_compas_holds_modelling_columns_only():
    assert pq.ParquetFile(files(embedded=True)["compas"].path).schema_arrow.names == [
        "sex",
        "age",
        "race",
        "juv_fel_count",
        "juv_misd_count",
        "juv_other_count",
        "priors_count",
        "c_charge_degree",
        "two_year_recid",
    ]
    frame = pq.read_table(files(embedded=True)["compas"].path).to_pandas()
    assert set(frame["c_charge_degree"]) == {"F", "M"}
    assert frame.equals(frame.sort_values(list(frame), ignore_index=True))


@pytest.mark.parametrize("name", names())
def test_attributes_name_feature_columns_and_bins(name):
    for attribute in info(name).sensitive:
        assert len(set(attribute.levels)) == len(attribute.levels) >= 2
        assert not attribute.cuts or len(attribute.cuts) == len(attribute.levels) - 1
        assert list(attribute.cuts) == sorted(attribute.cuts)


def test_a_registry_that_is_none(own_data):
    folder = own_data()
    assert "german" in names()
    (folder / "registry.toml").write_text("[files\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"registry\.toml: not a registry"):
        names()
    (folder / "registry.toml").write_text("[datasets.x]\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"registry\.toml: not a registry"):
        names()
    (folder / "registry.toml").unlink()
    with pytest.raises(DataError, match=r"registry\.toml: cannot be read"):
        names()
