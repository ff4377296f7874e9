"""The study behind the chapter on the bias of mini-batches."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.progress import quiet
from fairfront.studies import minibatch_bias as study
from fairfront.studies.parameters import parse

CLAIMS = ("spbm-prop1", "spbm-prop2", "spbm-bias-limits", "spbm-lc-tradeoff", "spbm-note7")


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(
        profile="smoke",
        partition=("acs2012-income:gender",),
        training="acs2012-income:gender+race",
        points=5,
        floors=(0.3, 0.03),
        steps=600,
    )


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_statement_holds_on_every_population(tables) -> None:
    statements = tables["statements"]
    assert set(statements.claim) == set(CLAIMS)
    assert statements.holds.all() and (statements.cases > 0).all()
    assert set(tables["cases"].population) == {"synthetic", "real rows, few", "real rows, all"}


def test_a_smaller_penalty_parameter_and_batch_cost_more(tables) -> None:
    wide = tables["boundaries"].query("pairs > 0").pivot_table(index="pairs", columns="penalty", values="loss")
    assert (wide.diff(axis=1).iloc[:, 1:] < 0).all(axis=None) and (wide.diff().iloc[1:] < 0).all(axis=None)
    bounds = tables["boundaries"].query("pairs > 0")
    assert (bounds.expected < bounds["rest"] + 1e-9).all()


def test_the_multiplier_is_where_the_prediction_says(tables) -> None:
    wide = tables["multipliers"].query("penalty == 1.0")
    assert wide.simulated.to_numpy() == pytest.approx(wide.equilibrium.to_numpy(), abs=0.01)
    assert (wide.exact - wide.simulated > 0.005).all()
    assert wide.closed_form.to_numpy() == pytest.approx(wide.equilibrium.to_numpy(), rel=1e-9)


def test_a_smaller_floor_is_sooner_feasible_and_dear_only_where_p_stays(tables) -> None:
    clipping = tables["clipping"].set_index(["rule", "floor"])
    for rule in ("adapt", "constant"):
        assert clipping["first"][rule, 0.03] < clipping["first"][rule, 0.3]
    assert clipping.objective["constant", 0.03] > clipping.objective["adapt", 0.03] + 0.02


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    found = {m.claim: m for m in study.measure(tables, parameters)}
    assert list(found) == list(CLAIMS)
    assert found["spbm-bias-limits"].verdict == "reproduced in part" and "vanishes" in found["spbm-bias-limits"].reason
    assert {m.verdict for claim, m in found.items() if claim != "spbm-bias-limits"} == {"reproduced"}
    for claim in CLAIMS:
        worse = {name: frame.copy() for name, frame in tables.items()}
        worse["statements"].loc[worse["statements"].claim == claim, "holds"] = False
        verdicts = {m.claim: m.verdict for m in study.measure(worse, parameters)}
        assert verdicts[claim] == "not reproduced", claim
    slower = {name: frame.copy() for name, frame in tables.items()}
    slower["clipping"]["first"] = -slower["clipping"]["first"]
    assert {m.claim: m for m in study.measure(slower, parameters)}["spbm-lc-tradeoff"].verdict == "reproduced in part"


def test_full_runs_fall_into_parts_that_are_computed_alone(tables) -> None:
    full = study.Parameters(profile="full", seeds=2)
    parts = study.units(full)
    assert [(unit.part, unit.seed, unit.seeds) for unit in parts[2:]] == [("networks", 0, 1), ("networks", 1, 1)]
    assert [unit.part for unit in parts[:2]] == ["exact", "simulated"]
    assert all(study.units(unit) == (unit,) for unit in parts)
    alone = study.run(study.Parameters(profile="smoke", part="simulated", floors=(0.3, 0.03), steps=600), quiet)
    assert set(alone) == set(tables) and alone["cases"].empty
    pd.testing.assert_frame_equal(alone["clipping"], tables["clipping"])
    one = study.Parameters(profile="smoke", part="simulated")
    assert study.measure(alone, one) == ()
    with pytest.raises(ArgumentError, match="part"):
        study.facts(alone, one)


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["cases"] == f"{len(tables['cases']):,}" and "ACS 2012" in facts["setting"]
    assert facts["paper_pairs"] == "8"


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"partition": "communities:race"}, "classification"),
        ({"training": "adult:rase"}, "race"),
        ({"batches": "0"}, "batches"),
        ({"floors": "2"}, "floors"),
        ({"epsilon": "-1"}, "epsilon"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_more_than_two_groups_are_refused() -> None:
    with pytest.raises(ArgumentError, match="two"):
        study.run(study.Parameters(profile="smoke", partition=("acs2012-income:race",)), quiet)


def test_the_figures_draw_the_tables(tables, parameters) -> None:
    left, right = study.figure_multipliers(tables, parameters).axes
    assert left.get_xlabel() == right.get_xlabel() == "B"
    wide = tables["multipliers"].query("penalty == 1.0").sort_values("batch")
    assert left.lines[0].get_ydata() == pytest.approx(wide.equilibrium.to_numpy())
    for draw in (study.figure_gap, study.figure_limits, study.figure_boundaries, study.figure_training):
        assert all(ax.get_xlabel() and ax.lines for ax in draw(tables, parameters).axes)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
def test_image_minibatch_bias(tables, parameters) -> Figure:
    return study.figure_boundaries(tables, parameters)
