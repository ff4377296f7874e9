"""The study of speed: what its tables promise. No time is compared with anything."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.record import judged

from fairfront import paths
from fairfront.datasets.records import benchmark_records
from fairfront.errors import ArgumentError, DataError
from fairfront.runs.progress import quiet
from fairfront.studies import engine_speed as study


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", rows=(1000, 2000), groups=(2, 3))


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_a_row_a_problem(tables) -> None:
    times = tables["times"]
    assert len(times) == 4 and set(times.groups) == {2, 3}
    assert (times.seconds > 0).all() and (times.evaluations >= 1).all()
    assert (times["seconds per evaluation"] * times.evaluations).to_numpy() == pytest.approx(times.seconds.to_numpy())


def test_figures_draw_the_tables(tables, parameters) -> None:
    lines = study.figure_rows(tables, parameters).axes[0].lines
    assert [line.get_label() for line in lines] == ["2 groups", "3 groups", "slope 1"]
    two = tables["times"].query("groups == 2")
    assert list(lines[0].get_ydata()) == list(two["seconds per evaluation"])
    bars = study.figure_ratios(tables, parameters).axes[0].patches
    assert sorted(bar.get_width() for bar in bars[: len(bars) // 2]) == sorted(study.table_peer().ratio)


def test_every_recorded_target_is_judged_by_its_figure() -> None:
    for record in benchmark_records("bilevel"):
        assert record["command"].startswith("python -m benchmarks.bilevel --rows")
        for row in record["targets"]:
            measured = record["figures"][row["key"]]
            assert row["measured"] == measured
            assert row["met"] == (
                measured >= row["target"] if row["sense"] == "at_least" else measured <= row["target"]
            )


def test_targets_can_be_missed() -> None:
    case = {"at_least": {"ratio": 10}, "at_most": {"ours_s": 1}}
    assert [row["met"] for row in judged(case, {"ratio": 11.0, "ours_s": 0.5})] == [True, True]
    assert [row["met"] for row in judged(case, {"ratio": 9.0, "ours_s": 2.0})] == [False, False]


def test_our_final_values_are_never_above_the_peers() -> None:
    peer = study.table_peer()
    assert (peer["our value"] <= peer["peer's value"] + 1e-9).all()


def test_prose_quotes_the_records(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    targets = study.table_targets()
    assert facts["met"] == f"{int(targets.met.sum())} of {len(targets)}"
    assert all(row.case in facts["missed"] for row in targets[~targets.met].itertuples())
    assert "synthetic" in facts["setting"]


def test_unknown_and_damaged_records_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="bilevel"):
        benchmark_records("bilevell")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "bilevel.json").write_text(json.dumps([])[:-1], encoding="utf-8")
    monkeypatch.setattr(paths, "data", lambda: tmp_path)
    with pytest.raises(DataError, match=r"bilevel\.json"):
        benchmark_records("bilevel")
