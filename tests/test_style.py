"""Style, types and the rules of what a commit may hold."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check", "mypy"])
def test_no_complaint(command: str) -> None:
    tool, *options = command.split()
    done = subprocess.run([sys.executable, "-m", tool, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def committed() -> list[str]:
    """Return the files that git tracks."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_nothing_that_is_made_is_committed() -> None:
    made = re.compile(r"\.(ipynb|pkl|pickle|pyc|whl)$|(^|/)(_build|\.venv|__pycache__)/")
    assert not [name for name in committed() if made.search(name)]


def test_embedded_data_is_small() -> None:
    sizes = {name: (ROOT / name).stat().st_size for name in committed() if name.startswith("data/")}
    assert sizes and sum(sizes.values()) < 3_000_000
