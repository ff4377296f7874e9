"""A toy study whose work falls into parts, and what the tests can make its parts do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from fairfront import studies

PARTED_STUDY = '''"""A toy whose work falls into parts."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fairfront.runs.ledger import Measurement
from fairfront.studies.parameters import StudyParameters, meta

TITLE = "A toy in parts"
HOME = Path(os.environ["TOY_LOG"]).parent


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    task: tuple[str, ...] | None = field(default=None, metadata=meta(help="tasks"))
    shift: float = field(default=0.5, metadata=meta(help="what is added"))
    label: str | int = field(default="", metadata=meta(help="a word, which may be empty or look like a number"))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    return ()


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    return tuple(dataclasses.replace(parameters, task=(task,)) for task in parameters.task)


def run(parameters: Parameters, progress):
    (task,) = parameters.task
    _log("begun", task)
    if (HOME / f"fail-{task}").exists():
        raise RuntimeError(f"no rows of {task}")
    if (HOME / f"kill-{task}").exists():
        (HOME / f"kill-{task}").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    while (HOME / f"hold-{task}").exists():
        time.sleep(0.02)
    values = pd.DataFrame({"task": task, "value": [len(task) + parameters.shift], "note": [None]})
    threads = pd.DataFrame({"task": [task], "threads": [os.environ.get("OMP_NUM_THREADS", "")]})
    _log("done", task)
    return {"values": values, "threads": threads}


def measure(tables, parameters: Parameters):
    rows = len(tables["values"])
    return (Measurement("badr-prop1", f"{rows} rows", "reproduced", data="toy rows"),)


def _log(what: str, task: str) -> None:
    with (HOME / "toy.log").open("a") as log:
        log.write(f"{what} {task} {os.getpid()}\\n")
'''

PARTED_GRID = """[smoke]
task = ["a"]

[quick]
task = ["a", "bb", "ccc"]

[full]
task = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
"""


@dataclass(frozen=True)
class Workshop:
    """The folder of a toy study in parts: what it did, and what its parts are to do."""

    home: Path

    def count(self, what: str, task: str | None = None) -> int:
        """Return how often a part, or any of them, was "begun" or "done"."""
        log = self.home / "toy.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return sum(line[0] == what and task in (None, line[1]) for line in lines)

    def make(self, behaviour: str, task: str) -> None:
        """Let a part fail, kill its process (once) or hold until it is released."""
        (self.home / f"{behaviour}-{task}").touch()

    def release(self, behaviour: str, task: str) -> None:
        (self.home / f"{behaviour}-{task}").unlink()


@pytest.fixture
def workshop(folders: Path) -> Workshop:
    return Workshop(folders)


@pytest.fixture
def parted(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return the toy study in parts, found under its name as any other."""
    home = folders / "parted"
    (home / "grids").mkdir(parents=True)
    (home / "parted.py").write_text(PARTED_STUDY, encoding="utf-8")
    (home / "grids" / "parted.toml").write_text(PARTED_GRID, encoding="utf-8")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(home)])
    importlib.invalidate_caches()
    yield studies.get("parted")
    del sys.modules["fairfront.studies.parted"]
    del studies.parted
