"""The study behind the chapter on the convergence of SPBM."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.ledger import claims
from fairfront.runs.progress import quiet
from fairfront.studies import spbm_convergence as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", runs=3, steps=200).resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_statement_is_checked_in_every_case(tables) -> None:
    checks = tables["checks"]
    assert set(study.ITEMS) <= {claim.id for claim in claims()}
    assert set(checks.statement) == {*study.ITEMS, *study.LEMMAS}
    assert (checks.groupby("case").statement.count() == len(study.ITEMS) + len(study.LEMMAS)).all()
    assert not checks.isna().any(axis=None)


def test_proof_holds_and_only_the_series_fail_beyond(tables) -> None:
    lemmas = tables["checks"][tables["checks"].statement.isin(study.LEMMAS)]
    failing = lemmas[~lemmas.holds]
    assert set(failing.statement) == {"lemma-10"}
    assert set(failing.case) == {name for name, case in study.CASES.items() if not case.within}


def test_units_are_the_cases_and_give_the_same_rows(tables, parameters) -> None:
    parts = study.units(parameters)
    assert [part.case for part in parts] == [(name,) for name in study.CASES]
    assert study.units(parts[0]) == (parts[0],)
    alone = study.run(parts[3], quiet)
    for name, frame in tables.items():
        mine = frame[frame.case == parts[3].case[0]].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone[name], mine)


def test_frozen_runs_and_early_stops_are_infeasible_and_convergent(tables) -> None:
    ends = tables["ends"].set_index("case")
    assert (ends.loc["flat start"].x == -2.0).all() and (ends.loc["flat start"].g == 0.5).all()
    assert ends.loc["flat start"].flat.all()
    assert ends.loc["no hold"].lam.max() < 1.3


def test_slower_schedules_travel_farther(tables) -> None:
    rows = study.table_breaks(tables)
    lengths = rows["path of λ, quotient"]
    assert list(rows.summable) == ["yes", "yes", "no", "no", "no"]
    assert lengths.is_monotonic_increasing and lengths.iloc[0] < 0.9 and lengths.iloc[-1] > 1.5


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    found = {m.claim: m for m in study.measure(tables, parameters)}
    assert set(found) == set(study.ITEMS)
    assert all("numerical" in m.reason for m in found.values())
    worse = {name: frame.copy() for name, frame in tables.items()}
    checks = worse["checks"]
    checks["holds"] = True
    assert {m.verdict for m in study.measure(worse, parameters)} == {"reproduced"}
    checks.loc[(checks.statement == "lemma-17") & (checks.case == "summable"), "holds"] = False
    checks.loc[(checks.statement == "spbm-thm3-4") & (checks.case == "kink"), "holds"] = False
    verdicts = {m.claim: m for m in study.measure(worse, parameters)}
    assert verdicts["spbm-thm3-1"].verdict == "not reproduced"
    assert verdicts["spbm-thm3-4"].verdict == "reproduced in part" and "kink" in verdicts["spbm-thm3-4"].reason
    nowhere = {name: frame.copy() for name, frame in worse.items()}
    nowhere["checks"].loc[nowhere["checks"].statement == "spbm-thm3-4", "holds"] = False
    assert {m.claim: m.verdict for m in study.measure(nowhere, parameters)}["spbm-thm3-4"] == "not reproduced"
    # What lies outside of the theorem is not judged.
    checks.loc[checks.case == "constant", "holds"] = False
    assert {m.claim: m.verdict for m in study.measure(worse, parameters)}["spbm-thm3-2"] == "reproduced"


def test_claims_are_not_testable_without_a_case_of_the_theorem(tables, parameters) -> None:
    only = {name: frame[frame.case == "constant"] for name, frame in tables.items()}
    assert {m.verdict for m in study.measure(only, parameters)} == {"not testable"}


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["conv_lemma_failures"] == "0" and facts["conv_steps"] == "200"
    for word in ("profile smoke", "variant", "synthetic"):
        assert word in facts["conv_setting"]


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"case": "sumable"}, "summable"),
        ({"steps": "10"}, "steps"),
        ({"decay": "0.5"}, "decay"),
        ({"hold": "1"}, "hold"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_every_figure_names_its_axes(tables, parameters) -> None:
    for name in ("duals", "items", "schedules", "limits", "lemmas"):
        figure = getattr(study, f"figure_{name}")(tables, parameters)
        assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
        assert figure.axes[-1].get_xlabel() and all(ax.lines for ax in figure.axes)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["spbm_convergence_duals", "spbm_convergence_schedules"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('spbm_convergence_')}")(tables, parameters)
