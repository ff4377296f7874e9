"""The keeper of the records: cases of the suites, what is written, and what is run again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from benchmarks import record
from benchmarks.record import cases, judged, main

SUITE = """
[[case]]
suite = "pinn"
name = "{experiment} seed {seed}"
arguments = "--experiment {experiment} --seed {seed}"
over = { experiment = ["E6", "E7"], seed = [0, 1] }
at_most = { loss = 1.0 }

[[case]]
name = "rows"
arguments = "--rows 5"
at_least = { ratio = 3 }
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "suite.toml"
    path.write_text(SUITE, encoding="utf-8")
    monkeypatch.setattr(record, "cases", lambda: cases(path))
    return path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        words = " ".join(command[1:-2])
        found.append(words)
        if "--seed 1" in words and "E7" in words:
            return subprocess.CompletedProcess(command, 1)
        loss = 0.5 if "E6" in words else 2.0
        bilevel = {"ratio": 4.0, "runs": [1, 2]}
        figures = {"loss": loss, "history": {"loss": [3.0, loss]}} if "pinn" in words else bilevel
        Path(command[-1]).write_text(json.dumps({"rows": [figures]} if "pinn" in words else figures), encoding="utf-8")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(record.subprocess, "run", run)
    return found


def test_a_case_over_lists_is_every_combination(suite: Path) -> None:
    found = cases(suite)
    assert [case["name"] for case in found] == ["E6 seed 0", "E6 seed 1", "E7 seed 0", "E7 seed 1", "rows"]
    assert found[1]["arguments"] == "--experiment E6 --seed 1" and found[1]["at_most"] == {"loss": 1.0}
    assert [case["suite"] for case in found] == ["pinn"] * 4 + ["bilevel"]


def test_each_suite_has_a_file_and_each_case_a_record(suite: Path, ran: list[str], tmp_path: Path) -> None:
    assert main(["--into", str(tmp_path)]) == 1  # the last of the four fails
    assert ran[0] == "-m benchmarks.pinn_runs --experiment E6 --seed 0" and ran[-1] == "-m benchmarks.bilevel --rows 5"
    runs = json.loads((tmp_path / "pinn.json").read_text("utf-8"))
    assert [entry["name"] for entry in runs] == ["E6 seed 0", "E6 seed 1", "E7 seed 0"]
    assert [entry["targets"][0]["met"] for entry in runs] == [True, True, False]
    assert runs[0]["figures"] == {"loss": 0.5, "history": {"loss": [3.0, 0.5]}}  # of a table of one row
    assert runs[0]["command"] == "python -m benchmarks.pinn_runs --experiment E6 --seed 0"
    rows = json.loads((tmp_path / "bilevel.json").read_text("utf-8"))
    assert rows[0]["figures"] == {"ratio": 4.0} and rows[0]["targets"][0]["met"]


def test_only_what_is_asked_for_and_not_recorded_is_run(suite: Path, ran: list[str], tmp_path: Path) -> None:
    assert main(["--only", "E6", "--into", str(tmp_path)]) == 0
    assert main(["--suite", "pinn", "--new", "--into", str(tmp_path)]) == 1
    assert [words.split()[-3:] for words in ran[2:]] == [["E7", "--seed", "0"], ["E7", "--seed", "1"]]
    with pytest.raises(SystemExit):
        main(["--only", "E9", "--into", str(tmp_path)])


def test_a_list_of_numbers_stays_on_its_line(suite: Path, ran: list[str], tmp_path: Path) -> None:
    main(["--only", "E6 seed 0", "--into", str(tmp_path)])
    assert '"loss": [3.0, 0.5]' in (tmp_path / "pinn.json").read_text("utf-8")


def test_a_target_is_held_as_it_says() -> None:
    case = {"at_most": {"loss": 1}, "at_least": {"ratio": 2}}
    assert [row["met"] for row in judged(case, {"loss": 1.0, "ratio": 1.9})] == [False, True]
