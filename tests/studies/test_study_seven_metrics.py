"""The study behind the chapter on the seven metrics."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.errors import ArgumentError, DataError
from fairfront.runs.progress import quiet
from fairfront.studies import seven_metrics as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke")


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_all_seven_metrics_are_checked_and_hold(tables) -> None:
    checks = tables["checks"]
    assert set(checks.metric) == set(metrics.names())
    counts = checks[checks.partition == "acs2012-income:gender"].groupby(["metric", "variant"]).size()
    assert len(counts) == 14 and (counts == 3).all()
    assert checks.holds.all() and (checks.measured <= checks.bound).all()


def test_only_published_covariances_of_more_than_two_groups_move(tables) -> None:
    frame = tables["renumbering"]
    moves = (frame.largest - frame.least) > 1e-8 * frame.largest
    named = (frame.variant == "paper") & (frame.groups > 2) & frame.metric.isin(["disparate_mistreatment", "hsic"])
    pd.testing.assert_series_equal(moves, named, check_names=False)
    assert ((frame.least <= frame.own * (1 + 1e-9)) & (frame.own <= frame.largest * (1 + 1e-9))).all()


def test_smooth_values_sharpen_to_the_hard_ones(tables) -> None:
    frame = tables["sharpness"]
    off = (frame.smooth - frame.hard).abs()
    first, last = (off[frame.rho == rho].to_numpy() for rho in (1.0, 1000.0))
    assert (last < 0.02).all() and (last < 0.5 * first).all()


def test_hard_values_exist_where_a_threshold_means_something(tables) -> None:
    missing = tables["hard"].groupby("metric").hard.apply(lambda column: column.isna().all())
    assert set(missing[missing].index) == {"hsic", "individual_fairness"}
    assert set(study.table_hard(tables).metric) == set(metrics.names()) - {"hsic", "individual_fairness"}


def test_claim_is_judged_by_the_numbers(tables, parameters) -> None:
    found = study.measure(tables, parameters)[0]
    assert found.verdict == "reproduced in part" and "numbered" in found.reason
    wrong = {name: frame.copy() for name, frame in tables.items()}
    wrong["checks"].loc[0, "holds"] = False
    assert study.measure(wrong, parameters)[0].verdict == "not reproduced"
    still = {name: frame.copy() for name, frame in tables.items()}
    still["renumbering"] = still["renumbering"].assign(largest=1.0, least=1.0)
    assert study.measure(still, parameters)[0].verdict == "reproduced"


def test_a_metric_that_a_partition_does_not_allow_is_said_not_to_be_defined() -> None:
    few = study.Parameters(profile="smoke", partition=("acs2012-income:gender+race",), rows=60, orders=2, points=5)
    checks = study.run(few, quiet)["checks"]
    lacking = checks[checks.check == "not defined"]
    assert (lacking.note.str.contains("label") | lacking.note.str.contains("row")).all()


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["cases"] == str(len(tables["checks"])) and "smoke" in facts["setting"]


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"partition": "adlt:race"}, "adult"),
        ({"partition": "adult:rase"}, "race"),
        ({"partition": "adult"}, "partition"),
        ({"points": "2"}, "points"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=name):
        parse(study.Parameters, assignments)


def test_the_front_needs_two_groups(parameters) -> None:
    with pytest.raises(ArgumentError, match="front"):
        study.run(dataclasses.replace(parameters, partition=("acs2012-income:gender",), front="adult:race"), quiet)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["seven_metrics_hard", "seven_metrics_renumbering"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('seven_metrics_')}")(tables, parameters)
