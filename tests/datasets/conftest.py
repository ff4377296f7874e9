"""What the tests of the data sets share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairfront import paths


@pytest.fixture(scope="session")
def raw_folder() -> Path:
    """The folder of raw files: FAIRFRONT_DATA, else shared/data beside the checkout."""
    root = paths.checkout()
    beside = root.parent / "shared" / "data" if root else None
    folder = Path(os.environ["FAIRFRONT_DATA"]).resolve() if os.environ.get("FAIRFRONT_DATA") else beside
    if folder is None or not (folder / "acs" / "acs_2012_sample.csv").is_file():
        pytest.skip(f"the raw data files are not at hand (FAIRFRONT_DATA, else {beside})")
    return folder


@pytest.fixture(autouse=True)
def no_network_no_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the raw files of whoever runs the tests, nor their cache, nor the network are used unless asked for."""
    monkeypatch.delenv("FAIRFRONT_DATA", raising=False)
    monkeypatch.setenv("FAIRFRONT_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("FAIRFRONT_OFFLINE", "1")


@pytest.fixture
def with_raw_files(raw_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the package at the raw files; skip where they are not at hand."""
    monkeypatch.setenv("FAIRFRONT_DATA", str(raw_folder))
    return raw_folder


@pytest.fixture
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Point the package at a copy of data/ whose registry is changed by the replacements given."""

    def make(*replacements: tuple[str, str]) -> Path:
        folder = tmp_path / "data"
        shutil.copytree(paths.data(), folder)
        registry = folder / "registry.toml"
        text = registry.read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        registry.write_text(text, encoding="utf-8")
        monkeypatch.setattr(paths, "data", lambda: folder)
        return folder

    return make
