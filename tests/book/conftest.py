"""The book that these tests read: built once a session at the smoke profile, or the one that FAIRFRONT_BOOK names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from built_book import ROOT, Book, chapters

from fairfront.runs import notebooks


@pytest.fixture(scope="session")
def book() -> Book:
    given = os.environ.get("FAIRFRONT_BOOK")
    if given:
        return Book(Path(given).resolve())
    # In a place of its own: the book that somebody has built to read it stays.
    html = ROOT / "_build" / "tests" / "html"
    command = [sys.executable, "-m", "fairfront", "book", "--profile", "smoke", "--out", str(html)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return Book(html)


@pytest.fixture(scope="session")
def executed() -> list[Path]:
    """Return the executed notebooks of the smoke profile, the same that the book is built from."""
    names = [Path(name).name for name in chapters()]
    return list(notebooks.execute_all({name: {"profile": "smoke"} for name in names}).values())
