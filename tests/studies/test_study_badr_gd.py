"""The study behind the chapter on badr-gd."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.ledger import claims
from fairfront.runs.progress import quiet
from fairfront.studies import badr_gd as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", steps=40, data_steps=8, run_steps=60, pairs=6)


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_statement_is_checked_on_every_problem(tables) -> None:
    checks = tables["checks"]
    assert set(checks.claim) == set(study.STATEMENTS) <= {claim.id for claim in claims()}
    counts = checks.groupby("problem").claim.nunique()
    assert len(counts) == 4 and (counts == len(study.STATEMENTS)).all()
    assert (checks.cases > 0).all() and not checks.isna().any(axis=None)


def test_lemmas_hold_for_every_gamma_and_the_theorem_at_its_own(tables) -> None:
    checks = tables["checks"]
    assert checks[checks.claim != "badr-thm4"].holds.all()
    assert checks[checks.decade <= 0].holds.all()
    # What the chapter says of larger steps.
    assert not checks[(checks.claim == "badr-thm4") & (checks.start == "solution")].holds.all()


def test_gamma_bar_is_of_no_use_and_a_larger_step_is(tables) -> None:
    ends = tables["ends"]
    ridge = ends[(ends.problem == ends.problem.iloc[0]) & (ends.start == "zero")].set_index("decade")
    assert ridge.gap_end[0] > 0.999 * ridge.gap_start[0]
    assert ridge.gap_end[8] < 1e-6 * ridge.gap_start[8]


def test_gradients_grow_where_no_lipschitz_constant_exists(tables) -> None:
    behaviour = tables["behaviour"].set_index("metric")
    for name in ("disparate_mistreatment", "hsic", "individual_fairness"):
        assert behaviour.growth_100[name] == pytest.approx(100.0) and not behaviour.lipschitz[name]
    assert (behaviour[behaviour.lipschitz].growth_100 < 1.0).all()


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    found = {m.claim: m for m in study.measure(tables, parameters)}
    assert {m.verdict for m in found.values()} == {"reproduced"}
    assert "derived" in found["badr-lemma-drift-v"].reason
    worse = {name: frame.copy() for name, frame in tables.items()}
    worse["checks"].loc[worse["checks"].decade <= 0, "holds"] = False
    assert {m.verdict for m in study.measure(worse, parameters)} == {"not reproduced"}


def test_largest_step_is_the_last_before_the_first_failure(tables) -> None:
    altered = {name: frame.copy() for name, frame in tables.items()}
    checks = altered["checks"]
    mine = (
        (checks.claim == "badr-lemma-drift-w") & (checks.problem == checks.problem.iloc[0]) & (checks.start == "zero")
    )
    checks.loc[mine & (checks.decade == 8), "holds"] = False
    row = study.table_largest(altered).query("statement == 'drift of the lower error'").iloc[0]
    assert (row["holds up to"], row["fails at"]) == ("10^4", "10^8")


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["small_T"] == "40" and "smoke" in facts["setting"]


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"task": "incme"}, "income"),
        ({"steps": "1"}, "steps"),
        ({"l2": "0"}, "l2"),
        ({"sensitive": "race"}, "sensitive"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_every_figure_names_its_axes(tables, parameters) -> None:
    for draw in (study.figure_theorem, study.figure_lemmas, study.figure_gamma, study.figure_behaviour):
        figure = draw(tables, parameters)
        assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
        assert all(ax.get_xlabel() for ax in figure.axes[-1:]) and all(ax.lines for ax in figure.axes)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["badr_gd_theorem", "badr_gd_gamma"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('badr_gd_')}")(tables, parameters)
