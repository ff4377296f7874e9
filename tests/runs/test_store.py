from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import types
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import fairfront
from fairfront import datasets, studies
from fairfront.errors import ArgumentError, OutputError
from fairfront.runs import Measurement, compute, provenance, store
from fairfront.studies.parameters import StudyParameters


def place_of(folders: Path, result: store.Result) -> Path:
    return folders / "store" / "toy" / result.address


def test_a_second_run_reuses_the_first(toy: ModuleType, toy_runs: Callable[[], int]) -> None:
    first = compute("toy")
    second = compute("toy", toy.Parameters())
    assert (first.reused, second.reused, toy_runs()) == (False, True, 1)
    assert first.address == second.address == store.address("toy", toy.Parameters())
    assert list(first.tables) == list(second.tables) == ["values", "extra"]
    for name, table in first.tables.items():
        pd.testing.assert_frame_equal(table, second.tables[name])
    assert first.measurements == second.measurements
    assert first.provenance == second.provenance
    assert first.frame is first.tables["values"]
    assert len(first.frame) == 10


def test_refresh_computes_again_and_replaces(toy: ModuleType, toy_runs: Callable[[], int], folders: Path) -> None:
    first = compute("toy")
    again = compute("toy", refresh=True)
    assert (again.reused, toy_runs()) == (False, 2)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    kept = json.loads((place_of(folders, first) / "provenance.json").read_text())
    assert kept["wall_seconds"] == again.provenance["wall_seconds"]
    assert [path.name for path in (folders / "store" / "toy").iterdir()] == [first.address]


@pytest.mark.parametrize(
    "changed", [{"seed": 1}, {"profile": "smoke"}, {"shift": 0.25}, {"task": ("a",)}, {"points": 6}]
)
def test_every_parameter_is_part_of_the_address(toy: ModuleType, changed: dict[str, Any]) -> None:
    assert store.address(toy, toy.Parameters(**changed)) != store.address(toy, toy.Parameters())


def test_what_the_profile_fills_in_is_the_address_not_how_it_was_said(toy: ModuleType) -> None:
    assert store.address(toy, toy.Parameters(points=5)) == store.address(toy, toy.Parameters())


def test_data_version_and_code_are_part_of_the_address(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.address(toy, toy.Parameters())
    with monkeypatch.context() as patch:
        patch.setattr(fairfront, "__version__", "99")
        assert store.address(toy, toy.Parameters()) != before
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "info", lambda name: types.SimpleNamespace(sha256="0" * 64))
        assert store.address(toy, toy.Parameters()) != before
    assert store.address(toy, toy.Parameters()) == before
    script = studies.source("toy")
    script.write_text(script.read_text().replace("draws + parameters.shift", "draws - parameters.shift"))
    assert store.address(toy, toy.Parameters()) != before


def test_provenance_says_where_from_and_not_on_which_machine(toy: ModuleType, folders: Path) -> None:
    result = compute("toy", toy.Parameters(seed=3))
    found = result.provenance
    assert found["seed"] == 3
    assert found["parameters"] == {"profile": "quick", "seed": 3, "shift": 0.5, "task": ["a", "b"], "points": 5}
    assert found["data"] == {"german": datasets.info("german").sha256}
    assert found["version"] == fairfront.__version__
    assert found["versions"]["numpy"] and found["versions"]["python"]
    assert found["wall_seconds"] >= 0
    assert found["date"].endswith("+00:00")
    assert found["default"] is False
    assert compute("toy").provenance["default"] is True
    for path in place_of(folders, result).glob("*.json"):
        text = path.read_text()
        assert str(folders) not in text
        assert os.uname().nodename not in text


@pytest.mark.parametrize("name", ["values.parquet", "extra.parquet", "measurements.json", "provenance.json"])
@pytest.mark.parametrize("damage", ["cut", "altered", "removed"])
def test_a_damaged_entry_is_computed_again(
    toy: ModuleType, toy_runs: Callable[[], int], folders: Path, name: str, damage: str
) -> None:
    first = compute("toy")
    path = place_of(folders, first) / name
    content = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else content.replace(b"a", b"b", 1))
    again = compute("toy")
    assert (again.reused, toy_runs()) == (False, 2)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert compute("toy").reused
    assert [entry.name for entry in (folders / "store" / "toy").iterdir()] == [first.address]


def test_an_entry_that_is_a_file_is_replaced(toy: ModuleType, folders: Path) -> None:
    first = compute("toy")
    shutil.rmtree(place_of(folders, first))
    place_of(folders, first).write_text("in the way")
    assert not compute("toy").reused
    assert compute("toy").reused


def test_a_run_that_fails_leaves_nothing(toy: ModuleType, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tables: Any, parameters: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(toy, "measure", fail)
    with pytest.raises(ZeroDivisionError):
        compute("toy")
    assert list((folders / "store" / "toy").iterdir()) == []


def test_a_store_that_cannot_be_written_is_found_out_first(
    toy: ModuleType, toy_runs: Callable[[], int], folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "file").write_text("")
    monkeypatch.setenv("FAIRFRONT_STORE", str(folders / "file" / "store"))
    with pytest.raises(OutputError, match=r"^store \(FAIRFRONT_STORE\): cannot write to "):
        compute("toy")
    assert toy_runs() == 0


def test_parameters_of_another_study_are_refused(toy: ModuleType) -> None:
    with pytest.raises(ArgumentError, match=r"^parameters: StudyParameters given .*toy takes its own"):
        compute("toy", StudyParameters())


def test_an_unknown_study_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^study: unknown: 'tyo'"):
        compute("tyo")


@pytest.mark.parametrize(("tables", "problem"), [({}, "no table"), ({"a/b": pd.DataFrame()}, "a table named 'a/b'")])
def test_tables_must_have_names_that_files_can_have(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch, tables: dict[str, pd.DataFrame], problem: str
) -> None:
    monkeypatch.setattr(toy, "run", lambda parameters, progress: tables)
    with pytest.raises(ArgumentError, match=problem):
        compute(toy)


def test_a_claim_that_does_not_exist_is_refused(
    toy: ModuleType, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Measurement("badr-porp1", "1", "reproduced")
    monkeypatch.setattr(toy, "measure", lambda tables, parameters: (wrong,))
    with pytest.raises(ArgumentError, match=r"claim: unknown: 'badr-porp1' .*did you mean badr-prop1"):
        compute("toy")
    assert list((folders / "store" / "toy").iterdir()) == []


def test_an_object_like_a_module_will_do(toy: ModuleType) -> None:
    parts = {name: getattr(toy, name) for name in ("Parameters", "datasets", "run", "measure")}
    result = compute(types.SimpleNamespace(__name__="elsewhere.toy", **parts))
    assert (result.study, result.address) == ("toy", store.address("toy", toy.Parameters()))


def test_progress_goes_to_the_function_given(toy: ModuleType) -> None:
    seen: list[str] = []

    def track(items: Any, description: str, total: int | None = None) -> Any:
        seen.append(description)
        return iter(items)

    compute("toy", progress=track)
    assert seen == ["toy"]


def test_nothing_is_shown_where_nobody_watches(toy: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    compute("toy")
    assert capfd.readouterr() == ("", "")


def test_entries_pass_over_what_is_not_whole(toy: ModuleType, folders: Path) -> None:
    kept, broken = compute("toy"), compute("toy", toy.Parameters(seed=1))
    (place_of(folders, broken) / "provenance.json").write_text("{")
    (folders / "store" / "toy" / ".half-written").mkdir()
    found = list(store.entries())
    assert [(entry.study, entry.address) for entry in found] == [("toy", kept.address)]
    assert found[0].measurements == kept.measurements


def _compute_at_once(home: Path, refresh: bool, barrier: Any, answers: Any) -> None:
    studies.__path__.append(str(home))
    module = studies.get("toy")
    run = module.run

    def run_together(parameters: Any, progress: Any) -> Any:
        tables = run(parameters, progress)
        barrier.wait(timeout=60)
        return tables

    module.run = run_together  # type: ignore[attr-defined]
    result = compute("toy", refresh=refresh)
    answers.put((result.address, float(result.frame["value"].sum())))


@pytest.mark.parametrize("refresh", [False, True])
def test_two_processes_that_compute_the_same_both_succeed(
    toy: ModuleType, toy_runs: Callable[[], int], folders: Path, refresh: bool
) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    arguments = (folders / "studies", refresh, barrier, answers)
    processes = [context.Process(target=_compute_at_once, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert toy_runs() == 2
    assert found[0] == found[1]
    kept = compute("toy")
    assert kept.reused
    assert (kept.address, float(kept.frame["value"].sum())) == found[0]
    assert [path.name for path in (folders / "store" / "toy").iterdir()] == [kept.address]


def test_the_address_is_the_digest_of_its_key(toy: ModuleType) -> None:
    result = compute("toy")
    key = {name: result.provenance[name] for name in ("study", "parameters", "data", "version", "source")}
    assert provenance.digest(key) == result.address
