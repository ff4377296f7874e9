"""What several folders of tests need: a toy study and a toy chapter in folders of their own, and one real browser."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fairfront import paths, studies

TOY_STUDY = '''"""A toy."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from fairfront.runs.ledger import Measurement
from fairfront.studies.parameters import StudyParameters, meta

TITLE = "A toy study"


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    shift: float = field(default=0.5, metadata=meta(help="what is added", low=-10.0, high=10.0))
    task: tuple[str, ...] = field(default=("a", "b"), metadata=meta(help="tasks", choices=("a", "b", "c")))
    points: int | None = field(default=None, metadata=meta(help="points a task", low=1))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    return ("german",)


def run(parameters: Parameters, progress):
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write("run\\n")
    draws = np.random.default_rng(parameters.seed).normal(size=parameters.points)
    frames = [
        pd.DataFrame({"task": task, "value": draws + parameters.shift, "note": [None] * parameters.points})
        for task in progress(parameters.task, "toy")
    ]
    return {"values": pd.concat(frames, ignore_index=True), "extra": pd.DataFrame({"n": [parameters.points]})}


def measure(tables, parameters: Parameters):
    mean = tables["values"]["value"].mean()
    return (Measurement("badr-prop1", f"mean {mean:.3f}", "reproduced", data="toy rows"),)


def figure_values(tables, parameters: Parameters):
    return _axes()


def _axes():
    return 1
'''

TOY_GRID = """[smoke]
points = 2
cost = "about a blink"

[quick]
points = 5

[full]
points = 50
"""

TOY_CHAPTER = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (toy)=
# # A toy chapter
#
# ```{prf:theorem} Squares
# :label: thm-toy
# $x^2 \\\\ge 0$.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
shift = 0.5
task = ("a", "b")
points = None
limit = 3  # a seed that is not below it fails
ratios = (
    1.0,
    2.0,
)

# %%
import os
import sys
import tempfile

# NBVAL_CHECK_OUTPUT
print(profile, seed, shift, task, points, limit, ratios)

# %%
print(os.environ["OMP_NUM_THREADS"], os.environ["MPLBACKEND"])
print(tempfile.gettempdir(), sys.prefix)

# %%
assert seed < limit, "the seed is too large"
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Send everything that is written into a temporary folder, which is returned."""
    monkeypatch.setenv("FAIRFRONT_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "toy.log"))
    monkeypatch.setattr(paths, "build", lambda: tmp_path / "build")
    monkeypatch.setattr(paths, "notebooks", lambda: tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    return tmp_path


@pytest.fixture
def toy(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return the toy study, found under its name as any other."""
    home = folders / "studies"
    (home / "grids").mkdir(parents=True)
    (home / "toy.py").write_text(TOY_STUDY, encoding="utf-8")
    (home / "grids" / "toy.toml").write_text(TOY_GRID, encoding="utf-8")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(home)])
    importlib.invalidate_caches()
    yield studies.get("toy")
    del sys.modules["fairfront.studies.toy"]
    del studies.toy


@pytest.fixture
def toy_runs(toy: ModuleType, folders: Path) -> object:
    """Return a function that says how often the toy study was computed."""
    log = folders / "toy.log"
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def toy_chapter(folders: Path) -> Path:
    """Return the script of a toy chapter; with the fixture `toy` it has a study of its name."""
    script = folders / "notebooks" / "toy.py"
    script.write_text(TOY_CHAPTER, encoding="utf-8")
    return script


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return the system's Chromium, driven by Playwright: one a session, for its loop cannot be started twice."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "no Chromium on this machine: install the package chromium of your system"
        if os.environ.get("FAIRFRONT_REQUIRE_BROWSER") == "1":
            pytest.fail(f"FAIRFRONT_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(reason)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium refuses root its sandbox
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=[*sandbox, "--disable-dev-shm-usage"])
        yield running
        running.close()
