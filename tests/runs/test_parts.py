from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from fairfront.errors import ArgumentError
from fairfront.runs import compute, store
from fairfront.runs.ledger import ledger


def part_of(parted: ModuleType, *tasks: str, **changes: Any) -> Any:
    return parted.Parameters(task=tasks, **changes)


def test_a_study_is_joined_from_its_parts(parted: ModuleType, workshop: Any, folders: Path) -> None:
    result = compute("parted")
    assert result.frame["task"].tolist() == ["a", "bb", "ccc"]
    assert result.frame["value"].tolist() == [1.5, 2.5, 3.5]
    assert result.frame.index.tolist() == [0, 1, 2]
    assert list(result.tables) == ["values", "threads"]
    assert len(result.tables["threads"]) == 3
    assert [found.measured for found in result.measurements] == ["3 rows"]
    assert workshop.count("begun") == 3
    addresses = [store.address(parted, unit) for unit in parted.units(result.parameters)]
    assert result.provenance["parts"] == addresses
    stored = {path.name for path in (folders / "store" / "parted").iterdir()}
    assert stored == {result.address, *addresses}
    assert compute("parted").reused
    assert workshop.count("begun") == 3


def test_the_address_of_the_whole_does_not_depend_on_its_parts(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compute("toy")

    def units(parameters: Any) -> Any:
        return tuple(dataclasses.replace(parameters, task=(task,)) for task in parameters.task)

    monkeypatch.setattr(toy, "units", units, raising=False)
    again = compute("toy", refresh=True)
    assert again.address == before.address
    pd.testing.assert_frame_equal(again.frame, before.frame)


def test_an_interrupted_run_goes_on_without_repeating(parted: ModuleType, workshop: Any, folders: Path) -> None:
    workshop.make("fail", "bb")
    with pytest.raises(RuntimeError, match="no rows of bb"):
        compute("parted")
    assert (workshop.count("done", "a"), workshop.count("begun", "ccc")) == (1, 0)
    assert [path.name for path in (folders / "store" / "parted").iterdir()] == [
        store.address(parted, part_of(parted, "a"))
    ]
    workshop.release("fail", "bb")
    result = compute("parted")
    assert not result.reused
    assert result.frame["task"].tolist() == ["a", "bb", "ccc"]
    assert [workshop.count("done", task) for task in ("a", "bb", "ccc")] == [1, 1, 1]


def test_parts_are_shared_by_larger_and_smaller_results(parted: ModuleType, workshop: Any) -> None:
    compute("parted", part_of(parted, "a", "bb"))
    compute("parted", part_of(parted, "bb", "ccc"))
    assert [workshop.count("done", task) for task in ("a", "bb", "ccc")] == [1, 1, 1]
    compute("parted", part_of(parted, "bb", "ccc", shift=1.0))
    assert workshop.count("done", "bb") == 2


def test_a_part_is_no_result(parted: ModuleType, folders: Path) -> None:
    unit = part_of(parted, "a")
    part = store.compute_part("parted", unit)
    assert part.measurements == ()
    assert part.provenance["part"] is True
    assert list(store.entries()) == []
    assert next(record for record in ledger() if record.id == "badr-prop1").measured == ""
    whole = compute("parted")
    assert [entry.address for entry in store.entries()] == [whole.address]


def test_a_part_becomes_a_result_where_one_is_asked_for(parted: ModuleType, workshop: Any, folders: Path) -> None:
    part = store.compute_part("parted", part_of(parted, "a"))
    result = compute("parted", part_of(parted, "a"))
    assert workshop.count("begun") == 1
    assert (result.address, result.reused, result.provenance["part"]) == (part.address, True, False)
    assert [found.measured for found in result.measurements] == ["1 rows"]
    kept = json.loads((folders / "store" / "parted" / part.address / "provenance.json").read_text())
    assert kept["part"] is False
    assert [entry.address for entry in store.entries()] == [result.address]
    assert store.compute_part("parted", part_of(parted, "a")).provenance == result.provenance
    assert workshop.count("begun") == 1


def test_a_result_that_comes_while_a_part_does_stays_a_result(parted: ModuleType, folders: Path) -> None:
    unit = part_of(parted, "a")
    run = parted.run

    def run_late(parameters: Any, progress: Any) -> Any:
        parted.run = run  # type: ignore[attr-defined]
        compute("parted", unit)
        return run(parameters, progress)

    parted.run = run_late  # type: ignore[attr-defined]
    store.compute_part("parted", unit)
    assert len(list(store.entries())) == 1


def test_refresh_computes_the_parts_again(parted: ModuleType, workshop: Any) -> None:
    compute("parted")
    compute("parted", refresh=True)
    assert [workshop.count("done", task) for task in ("a", "bb", "ccc")] == [2, 2, 2]


def test_a_damaged_part_is_computed_again(parted: ModuleType, workshop: Any, folders: Path) -> None:
    workshop.make("fail", "ccc")
    with pytest.raises(RuntimeError):
        compute("parted")
    workshop.release("fail", "ccc")
    place = folders / "store" / "parted" / store.address(parted, part_of(parted, "bb"))
    (place / "values.parquet").write_bytes(b"")
    compute("parted")
    assert [workshop.count("done", task) for task in ("a", "bb", "ccc")] == [1, 2, 1]


def test_a_study_may_join_its_parts_itself(parted: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def join(parts: Any, parameters: Any) -> dict[str, pd.DataFrame]:
        best = max(part["values"]["value"].max() for part in parts)
        return {"values": pd.DataFrame({"task": parameters.task, "value": best})}

    monkeypatch.setattr(parted, "join", join, raising=False)
    result = compute("parted")
    assert list(result.tables) == ["values"]
    assert result.frame["value"].tolist() == [3.5, 3.5, 3.5]


def test_progress_is_over_the_parts(parted: ModuleType) -> None:
    seen: list[Any] = []

    def track(items: Any, description: str, total: int | None = None) -> Any:
        seen.append((description, total))
        return iter(items)

    compute("parted", progress=track)
    assert seen == [("parted: parts", 3)]


def test_the_time_is_that_of_all_parts(parted: ModuleType, folders: Path) -> None:
    result = compute("parted")
    parts = [store.compute_part("parted", unit) for unit in parted.units(result.parameters)]
    assert all(part.reused for part in parts)
    assert result.provenance["wall_seconds"] >= sum(part.provenance["wall_seconds"] for part in parts)


def test_parts_with_different_tables_are_refused(parted: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(parameters: Any, progress: Any) -> dict[str, pd.DataFrame]:
        return {f"values-{parameters.task[0]}": pd.DataFrame({"n": [1]})}

    monkeypatch.setattr(parted, "run", run)
    with pytest.raises(ArgumentError, match=r"^study parted: its parts have different tables: values-a and values-bb"):
        compute("parted")


def test_a_part_with_other_parts_is_refused(parted: ModuleType, workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def units(parameters: Any) -> Any:
        return tuple(dataclasses.replace(parameters, shift=parameters.shift + step) for step in (1.0, 2.0))

    monkeypatch.setattr(parted, "units", units)
    with pytest.raises(ArgumentError, match=r"^study parted: a part has other parts"):
        compute("parted")
    assert workshop.count("begun") == 0


@pytest.mark.parametrize("units", [(), ("a", "b")])
def test_parts_that_are_no_parameters_are_refused(
    parted: ModuleType, monkeypatch: pytest.MonkeyPatch, units: Any
) -> None:
    monkeypatch.setattr(parted, "units", lambda parameters: units)
    with pytest.raises(ArgumentError, match=r"^study parted: its parts are not its Parameters"):
        compute("parted")


def test_a_study_without_parts_is_one_part(toy: ModuleType, parted: ModuleType) -> None:
    assert store.parts("toy", toy.Parameters()) == (toy.Parameters().resolved(),)
    assert store.parts("parted", parted.Parameters(profile="smoke")) == (parted.Parameters(profile="smoke").resolved(),)
