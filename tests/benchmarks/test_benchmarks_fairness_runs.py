"""The recorder of full runs of E1 to E5: what it keeps, and the stacks it may take."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import fairness_runs

from fairfront.runs.progress import quiet
from fairfront.studies import experiments
from fairfront.studies import fairness_benchmark as study


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> experiments.Data:
    data = experiments.rows("E2", "adult", limit=900)
    monkeypatch.setattr(experiments, "rows", lambda *_, **__: data)
    return data


def test_stacks_give_the_tables_of_the_study(small: experiments.Data) -> None:
    stacked = fairness_runs.stacked("E2", (0, 1), steps=30, epochs=3)
    whole = experiments.steps_of_paper("E2", small)
    methods = ("spbm", "ssl-alm", "adam")
    alone = study.run(
        study.Parameters(
            experiment=("E2",), source=("adult",), methods=methods, seeds=(0, 1), epochs=3, share=(30 / whole,)
        ),
        quiet,
    )
    for column in ("loss", "max_violation"):
        np.testing.assert_allclose(stacked["history"][column], alone["history"][column], rtol=2e-3, atol=2e-4)
    assert stacked["constraints"].constraint.tolist() == alone["constraints"].constraint.tolist()
    np.testing.assert_allclose(stacked["constraints"].value, alone["constraints"].value, rtol=2e-3, atol=2e-4)
    last = alone["history"].query("epoch == 3").accuracy
    np.testing.assert_allclose(stacked["history"].query("epoch == 3").accuracy, last, atol=0.01)


def test_a_record_has_the_table_the_curves_and_the_targets(small: experiments.Data) -> None:
    tables = fairness_runs.stacked("E2", (0, 1), steps=30, epochs=3)
    record = fairness_runs.recorded("E2", (0, 1), tables, "the command")
    json.dumps(record, allow_nan=False)
    assert {"name", "command", "date", "machine", "load", "targets", "figures"} == set(record)
    figures = record["figures"]
    assert [row["method"] for row in figures["table"]] == ["spbm", "ssl-alm", "adam"]
    assert len(figures["curves"]["spbm"]["loss"]) == 3 and not figures["as_paper"]
    ratio = figures["table"][0]["loss"] / figures["table"][1]["loss"]
    (target,) = [row for row in record["targets"] if row["key"] == "spbm_loss_over_ssl_alm"]
    assert target["measured"] == pytest.approx(ratio, rel=1e-4) and target["met"] == (ratio <= 1.01)


def test_records_of_other_experiments_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small: experiments.Data, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = fairness_runs.stacked("E2", (0,), steps=10, epochs=1)
    monkeypatch.setattr(fairness_runs, "one_by_one", lambda *_: tables)
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps([{"figures": {"experiment": "E3"}}]), encoding="utf-8")
    fairness_runs.main(["--experiments", "E2", "--seeds", "0", "--json", str(kept)])
    assert [record["figures"]["experiment"] for record in json.loads(kept.read_text("utf-8"))] == ["E2", "E3"]
    with pytest.raises(SystemExit):
        fairness_runs.main(["--experiments", "E9", "--json", str(kept)])
    assert "known are E1" in capsys.readouterr().err
