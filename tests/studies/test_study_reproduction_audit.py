"""The audit: what it compares, what it mends, what it says of the claim, and what it draws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront import paths
from fairfront.datasets import load
from fairfront.datasets.published_records import digest
from fairfront.errors import ArgumentError, DataError
from fairfront.runs import compute
from fairfront.runs.progress import quiet
from fairfront.studies import reproduction_audit as study
from fairfront.studies.parameters import parse

KEY = ["data", "seed", "treatment"]


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", data=("communities",), records="none").resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


@pytest.fixture(scope="module")
def recorded(tables) -> dict[str, pd.DataFrame]:
    """Tables as they are where records are at hand: these ones' own figures, rounded to nine digits."""
    mine = tables["values"].query("treatment == 'as published' and strategy not in ('badr',)")
    records = mine.drop(columns="treatment").round(9)
    return {**tables, "records": records.reset_index(drop=True)}


def test_every_treatment_has_every_strategy(tables) -> None:
    values = tables["values"]
    assert values.groupby(KEY).strategy.nunique().to_dict() == {
        ("communities", 0, treatment): 6 for treatment in study.TREATMENTS
    }
    wide = values.pivot_table(index=KEY, columns="strategy", values="train_metric")
    assert (wide.sub(wide["badr"], axis=0) >= 0).all(axis=None)
    assert tables["records"].empty


def test_treatments_are_what_they_are_called(tables) -> None:
    shown = study.table_reproduced(tables).set_index("treatment")
    assert shown.groups["as published"] == "1 white; 0 black + 2 asian + 3 hispanic"
    assert study._short_names(json.dumps(["a", "b + c + d + e"])) == "a; all others"
    samples = tables["samples"].set_index("treatment")
    assert samples.rows.to_dict() == {"as published": 123, "leaks removed": 123, "loaded here": 1993}
    assert json.loads(samples["sizes"]["as published"]) == [60, 26]
    values = tables["values"].drop(columns="treatment")
    first, second = (values[tables["values"].treatment == name] for name in study.TREATMENTS[:2])
    # Nothing holds the target there, so that nothing changes.
    pd.testing.assert_frame_equal(first.reset_index(drop=True), second.reset_index(drop=True))


def test_a_leak_is_found_and_removed() -> None:
    german = load("german", sensitive="gender", as_published=True)
    assert study.leaks(german) == ("credit",)
    mended = study.without(german, ("credit",))
    assert study.leaks(mended) == () and mended.n_features == german.n_features - 1
    assert mended.X.shape[1] == len(mended.feature_names) and np.array_equal(mended.groups, german.groups)
    assert study.leaks(load("communities", sensitive="race")) == ()


def test_records_are_compared_figure_by_figure(recorded) -> None:
    both = study.compared(recorded)
    assert len(both) == 5 and both.difference.max() <= 1e-9
    assert (both.solver <= both.published + 1e-9).all()
    assert study.table_records(recorded)["reproduced but for minimax"].tolist() == [True]
    off = {**recorded, "records": recorded["records"].copy()}
    off["records"].loc[off["records"].strategy == "uniform", "test_rmse"] += 1e-4
    assert study.table_records(off)["reproduced but for minimax"].tolist() == [False]
    assert study.compared(off).set_index("strategy").difference["uniform"] == pytest.approx(1e-4, rel=1e-3)


def test_recorded_weights_tell_the_number_of_rows(recorded) -> None:
    row = study.table_rows(recorded).iloc[0]
    assert row.iloc[1] == 43 and row["training rows here"] == 86 and row.divides
    other = {**recorded, "records": recorded["records"].assign(**{"lambda": "[0.59030837, 0.40969163]"})}
    row = study.table_rows(other).iloc[0]
    assert row.iloc[1] == 227 and not row.divides


def test_means_stand_beside_the_papers(recorded) -> None:
    means = study.table_means(recorded).set_index("strategy")
    mine = recorded["values"].query("treatment == 'loaded here' and strategy == 'uniform'")
    assert means["loaded here"]["uniform"] == pytest.approx(mine.test_metric.mean())
    # What the paper calls badr are random weights.
    assert means.paper["badr, random"] == 0.8666 and np.isnan(means.paper["badr"])
    assert study.table_means(recorded, "test_rmse").set_index("strategy").paper["uniform"] == 2.5085


def test_the_claim_is_judged_by_the_numbers(tables, recorded, parameters) -> None:
    (nothing,) = study.measure(tables, parameters)
    assert nothing.verdict == "not testable" and "FAIRFRONT_DATA" in nothing.reason
    (part,) = study.measure(recorded, parameters)
    assert part.verdict == "reproduced in part" and "not Law School" in part.reason
    off = {**recorded, "records": recorded["records"].assign(test_metric=0.5)}
    assert study.measure(off, parameters)[0].verdict == "not reproduced"
    # All four data sets, to the last digit.
    every = {name: pd.concat([frame.assign(data=set_) for set_ in study.SETS]) for name, frame in recorded.items()}
    assert study.measure(every, parameters)[0].verdict == "reproduced"


def test_prose_quotes_the_tables(tables, recorded, parameters) -> None:
    alone, beside = study.facts(tables, parameters), study.facts(recorded, parameters)
    assert all(isinstance(text, str) and text for text in (*alone.values(), *beside.values()))
    assert "not at hand" in alone["at_hand"] and beside["compared"] == "4 of 4"
    assert "smoke" in alone["setting"] and "variant paper" in alone["setting"] and "Student" in alone["absent"]
    assert alone["order_here"].startswith("badr <")


def test_what_is_at_hand_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIRFRONT_DATA", raising=False)
    monkeypatch.setenv("FAIRFRONT_CACHE", str(tmp_path))
    chosen = study.Parameters(profile="quick").resolved()
    assert chosen.data == ("communities",) and chosen.records == ""
    assert study.datasets(study.Parameters(profile="quick")) == ("communities",)
    with pytest.raises(DataError, match="not at hand"):
        study.run(study.Parameters(profile="smoke", data=("communities",), seeds=(0,), records="0" * 64), quiet)


def test_the_real_records_are_reproduced_but_for_student_and_minimax(monkeypatch: pytest.MonkeyPatch) -> None:
    root = paths.checkout()
    folder = paths.external_data() or (root.parent / "shared" / "data" if root else None)
    if folder is None or not (folder / "uci" / "student-mat.csv").is_file():
        pytest.skip(f"the raw data files are not at hand (FAIRFRONT_DATA, else {folder})")
    monkeypatch.setenv("FAIRFRONT_DATA", str(folder))
    if not digest():
        pytest.skip("the authors' records are not at hand below or beside the raw data files")
    chosen = study.Parameters(profile="quick", seeds=(0,), resolution=21).resolved()
    assert chosen.data == study.SETS
    found = study.run(chosen, quiet)
    table = study.table_records(found).set_index("data")
    assert table["reproduced but for minimax"].to_list() == [True, True, True, False]
    assert study.table_rows(found).divides.to_list() == [True, True, True, False]
    leaking = found["samples"].query("treatment == 'as published'").set_index("data").leaks.map(json.loads)
    assert leaking.to_dict() == {"lsac-law-school": ["zgpa"], "parkinsons": [], "communities": [], "student": ["G3"]}
    assert (found["samples"].query("treatment != 'as published'").leaks == "[]").all()
    (measured,) = study.measure(found, chosen)
    assert measured.verdict == "reproduced in part" and "Student" in measured.reason and "12 of 16" in measured.measured


def test_parts_join_to_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRFRONT_STORE", str(tmp_path))
    two = study.Parameters(profile="smoke", data=("communities",), seeds=(0, 2), draws=3, records="none").resolved()
    parts = study.units(two)
    assert [part.seeds for part in parts] == [(0,), (2,)] and study.units(parts[0]) == (parts[0],)
    joined = compute(study, two, progress=False).tables
    last = study.run(parts[1], quiet)["values"]
    pd.testing.assert_frame_equal(joined["values"].query("seed == 2").reset_index(drop=True), last)
    assert joined["values"].seed.nunique() == 2 and joined["records"].empty


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"data": "adult"}, "data"),
        ({"data": "student,student"}, "data"),
        ({"seeds": "-1"}, "seeds"),
        ({"draws": "0"}, "draws"),
        ({"resolution": "2"}, "resolution"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_the_figure_draws_values_and_records(recorded, parameters) -> None:
    figure = study.figure_treatments(recorded, parameters)
    assert [ax.get_title() for ax in figure.axes] == list(study.TREATMENTS)
    (rings,) = [line for line in figure.axes[0].lines if line.get_label() == "published record"]
    records = recorded["records"].sort_values("strategy")
    np.testing.assert_allclose(rings.get_xydata(), records[["test_rmse", "test_metric"]].to_numpy())


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["treatments", "search"])
def test_image_reproduction_audit(name: str, recorded, parameters) -> Figure:
    return getattr(study, f"figure_{name}")(recorded, parameters)
