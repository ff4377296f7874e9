"""pyproject.toml, requirements.lock, environment.yml and the other texts of the repository say the same."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ASKED = [Requirement(line) for line in sum(PROJECT["optional-dependencies"].values(), PROJECT["dependencies"])]
LOCK = [line for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines() if not line.startswith("#")]
PINS = {canonicalize_name(name): Version(version) for name, _, version in (line.partition("==") for line in LOCK)}


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_every_dependency_is_pinned_by_a_version_that_satisfies_it(asked: Requirement) -> None:
    pinned = PINS.get(canonicalize_name(asked.name))
    assert pinned is not None, f"{asked.name} is not in requirements.lock: run make lock"
    assert pinned in asked.specifier


def test_lock_is_sorted_exact_and_without_the_project_or_a_build() -> None:
    names = [line.partition("==")[0].lower() for line in LOCK]
    assert names == sorted(names) and len(PINS) == len(LOCK)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in LOCK)
    assert "fairfront" not in PINS
    assert LOCK.count("torch==2.13.0") == LOCK.count("jupyter-book==1.0.4.post1") == 1


def test_installed_versions_are_the_locked_ones() -> None:
    installed = {name: Version(importlib.metadata.version(name)) for name in PINS}
    differing = {name: str(v) for name, v in installed.items() if v.public != PINS[name].public}
    assert not differing, "run make setup"


def test_installed_packages_fit_together() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_conda_environment_holds_the_same_python_and_the_same_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    *conda, pip = environment["dependencies"]
    assert environment["name"] == PROJECT["name"]
    assert conda == ["python=3.11", "pip"]
    assert pip == {"pip": ["-r requirements.lock", "-e ."]}
    assert Version("3.11") in SpecifierSet(PROJECT["requires-python"])
    assert re.search(r"^PYTHON\s*\?= python3\.11$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_citation_changelog_and_metadata_name_one_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    released = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released
    assert {citation["version"], released[1], importlib.metadata.version("fairfront")} == {PROJECT["version"]}
    assert citation["license"] == PROJECT["license"]


def test_citation_names_both_papers() -> None:
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["references"]
    numbers = {identifier["value"] for paper in references for identifier in paper["identifiers"]}
    assert numbers == {"arXiv:2601.13448", "arXiv:2605.18618"}
