"""The study behind the chapter on scalarisation."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.progress import quiet
from fairfront.studies import scalarisation as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", problems=2, weights=2)


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_proposition_is_checked_on_every_kind_and_holds(tables) -> None:
    checks = tables["checks"]
    counts = checks.groupby(["loss", "groups", checks.statement.str.slice(0, 13)]).size()
    assert len(counts) == 27 and (counts == 2).all()
    assert checks.holds.all() and (checks.measured <= checks.bound).all()


def test_solutions_are_dominated_where_the_minimiser_is_not_unique(tables) -> None:
    flat = study.table_flat(tables).set_index("solves")
    assert flat.dominated["weighted sum, positive weights"] == 0
    assert flat.dominated["weighted sum, weights (1, 0)"] > 0 and flat.dominated["min-max"] > 0


def test_weighted_sums_miss_a_part_of_the_bent_fronts(tables) -> None:
    reached = tables["nonconvex"].groupby("sharpness").reached.mean()
    assert reached[1.0] == 1.0 and 0.0 < reached[4.0] < reached[2.4] < 1.0


def test_conditions_are_words_made_of_the_numbers(tables) -> None:
    words = study.table_conditions(tables).set_index("statement")
    assert (words["strictly convex"] == "holds").all()
    altered = {**tables, "checks": tables["checks"].assign(holds=False)}
    assert (study.table_conditions(altered)["strictly convex"] == "violated").all()


def test_claims_stay_with_the_chapter_on_real_rows(tables, parameters) -> None:
    assert study.measure(tables, parameters) == ()


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "18 synthetic random problems" in facts["setting"]


@pytest.mark.parametrize(
    ("assignments", "name"),
    [({"loss": "hinge"}, "squared_hinge"), ({"groups": "1"}, "groups"), ({"points": "2"}, "points")],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["scalarisation_flat", "scalarisation_nonconvex"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('scalarisation_')}")(tables, parameters)
