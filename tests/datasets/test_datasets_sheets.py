"""Every datasheet says what it must, and its figures are those of the data."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fairfront.datasets import info, load, names
from fairfront.datasets.groups import partition
from fairfront.datasets.registry import FileInfo, files
from fairfront.datasets.tables import table

EVERY_FILE = pytest.mark.parametrize("file", files().values(), ids=list(files()))
ROW = re.compile(r"^\| ([\w-]+) \| ([\w-]+) \| ([^|]+) \| ([\d,]+) \| (-?\d+\.\d{3}) \|$", re.MULTILINE)


@EVERY_FILE
def test_sections_source_and_rows(file: FileInfo):
    text = file.datasheet.read_text(encoding="utf-8")
    for heading in ("Source", "Terms", "Rows and columns", "Sensitive attributes", "Known problems"):
        assert f"\n## {heading}\n" in text
    assert file.canonical in text
    assert not file.rows or f"{file.rows:,}" in text
    for name in names():
        assert info(name).file != file or f"`{name}`" in text


@EVERY_FILE
def test_figures(file: FileInfo, request: pytest.FixtureRequest):
    if not file.embedded:
        request.getfixturevalue("with_raw_files")
    text = file.datasheet.read_text(encoding="utf-8")
    computed = []
    for name in (name for name in names() if info(name).file == file and not info(name).survey):
        rows = table(info(name))
        for attribute in info(name).sensitive:
            groups = partition(rows.attributes, [attribute])
            for number in np.flatnonzero(groups.sizes):
                label = rows.target[groups.ids == number]
                computed.append((name, attribute.name, groups.names[number], f"{len(label):,}", f"{label.mean():.3f}"))
        data = load(name, sensitive=info(name).sensitive[0].name, test_size=0)
        assert f" {data.n_features} |" in text
        assert f"{data.n_rows:,}" in text
    assert ROW.findall(text) == computed
