"""The study of Figure 6: the curve, its minima, the strategies on it, what it says of the claims, what it draws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.pareto import scalarized
from fairfront.risks import GroupRisks
from fairfront.runs.progress import quiet
from fairfront.studies import two_groups as study
from fairfront.studies.instances import Instance
from fairfront.studies.parameters import parse
from fairfront.studies.strategies import NAMES, metric_for

KEY = ["data", "metric"]


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke").resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_pair_has_its_curve_strategies_and_minima(tables, parameters) -> None:
    pairs = 9
    assert len(tables["pairs"]) == pairs and not tables["pairs"].duplicated(KEY).any()
    assert tables["curve"].groupby(KEY).size().to_list() == [parameters.points] * pairs
    assert tables["strategies"].groupby(KEY).name.agg(tuple).to_list() == [NAMES] * pairs
    counts = tables["minima"].groupby(KEY).size()
    assert counts.to_dict() == tables["pairs"].set_index(KEY).minima.to_dict()
    assert not any(frame.isna().any(axis=None) for frame in tables.values())


def test_the_curve_is_the_metric_of_the_scalarised_models(tables) -> None:
    name, metric = "german", "individual_fairness"
    risks = GroupRisks.from_data(Instance(name, ("gender",)).load(0.0), penalize_intercept=False)
    bound = metric_for(metric).bind(risks.y, risks.groups, 2)
    curve = tables["curve"].query("data == @name and metric == @metric").set_index("lambda_1")
    for first in (0.0, 0.25, 1.0):
        model = scalarized(risks, "", [first, 1 - first]).model
        assert curve.unfairness[first] == pytest.approx(bound.value(model.point.scores), rel=1e-8)
        assert curve.loss_2[first] == pytest.approx(model.losses[1], rel=1e-8)


def test_minima_are_lower_than_their_neighbours_on_the_curve(tables) -> None:
    for key, curve in tables["curve"].groupby(KEY):
        minima = tables["minima"].set_index(KEY).loc[[key]]
        value = np.interp(minima.lambda_1, curve.lambda_1, curve.unfairness)
        assert (minima.unfairness <= value + 1e-9).all()
        assert minima.unfairness.min() <= curve.unfairness.min() + 1e-9
        assert (minima.interior == ~minima.lambda_1.isin([0.0, 1.0])).all()


def test_badr_is_never_beaten(tables) -> None:
    wide = tables["strategies"].pivot_table(index=KEY, columns="name", values="unfairness")
    assert (wide.sub(wide["badr"], axis=0) >= 0).all(axis=None)


def test_shares_are_of_the_excess_over_the_floor(tables) -> None:
    rows, pairs = study.table_pairs(tables), tables["pairs"]
    assert rows.varies.between(0, 1).all() and (rows.gain >= 0).all()
    row, pair = rows.iloc[0], pairs.iloc[0]
    floor = np.log(2) + 1e-3  # demographic parity as published
    assert pair.floor == pytest.approx(floor)
    assert row.varies == pytest.approx(1 - (pair.least - floor) / (pair.largest - floor))
    german = rows[(rows.data == "German Credit") & (rows.metric == "individual fairness")].iloc[0]
    assert not german.reached and german.inside == 1 and german["badr's lambda_1"] == pytest.approx(0.774, abs=1e-3)
    income = rows[(rows.data == "ACS 2012 income") & (rows.metric == "individual fairness")].iloc[0]
    assert income.reached and income["badr's lambda_1"] == 1.0


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    verdicts = {m.claim: m.verdict for m in study.measure(tables, parameters)}
    assert verdicts == {
        "badr-fig6-vary": "reproduced",
        "badr-fig6-minima": "reproduced in part",
        "badr-fig6-balanced": "reproduced",
    }
    flat = {name: frame.copy() for name, frame in tables.items()}
    flat["pairs"]["largest"] = flat["pairs"].floor + (flat["pairs"].least - flat["pairs"].floor) * 1.01
    flat["pairs"]["rival_unfairness"] = flat["pairs"].least
    flat["pairs"]["balanced"] = flat["pairs"].uniform - 1.0
    assert {m.verdict for m in study.measure(flat, parameters)} == {"not reproduced"}
    ideal = {name: frame.copy() for name, frame in tables.items()}
    ideal["pairs"]["rival_unfairness"] = ideal["pairs"].largest
    ideal["pairs"]["minima"] = 3
    assert {m.verdict for m in study.measure(ideal, parameters)} == {"reproduced"}


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "6,172 rows" in facts["setting"] and "variant paper" in facts["setting"] and "smoke" in facts["setting"]
    rows = study.table_pairs(tables)
    assert facts["reached"] == f"{rows.reached.sum()} of 9" and facts["free"] == f"{(~rows.reached).sum()} of 9"


def test_the_minimax_model_has_no_group_variance_where_both_groups_count() -> None:
    few = study.Parameters(profile="smoke", data=("german",), metric=("group_variance",), points=5)
    tables = study.run(few, quiet)
    minimax = tables["strategies"].set_index("name").loc["minimax"]
    assert 0.01 < minimax.lambda_1 < 0.99
    assert minimax.unfairness < 1e-15 < tables["pairs"].largest.item()
    assert study.table_pairs(tables).reached.item()


@pytest.mark.parametrize(
    "changes",
    [
        {"variant": "cited", "metric": ("disparate_mistreatment", "hsic")},
        {"loss": "squared_hinge", "metric": ("group_variance",), "penalize_intercept": True},
        {"sensitive": "age", "data": ("adult",), "metric": ("equal_opportunity",)},
    ],
)
def test_other_metrics_losses_and_attributes_run(changes: dict) -> None:
    few = study.Parameters(**{"profile": "smoke", "data": ("german",), "points": 5} | changes)
    tables = study.run(few, quiet)
    study.measure(tables, few)
    study.facts(tables, few)
    study.figure_two_groups(tables, few)


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"data": "germany"}, "german"),
        ({"data": "german,german"}, "data"),
        ({"data": "compas", "sensitive": "race"}, "sensitive"),
        ({"data": "german", "sensitive": "gendre"}, "gender"),
        ({"metric": "individual"}, "individual_fairness"),
        ({"points": "2"}, "points"),
        ({"loss": "squared"}, "loss"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_the_figure_draws_the_tables(tables) -> None:
    figure = study.figure_two_groups(tables, study.Parameters(profile="smoke"))
    assert len(figure.axes) == 9
    for ax, (_, pair) in zip(figure.axes, tables["pairs"].iterrows(), strict=True):
        chosen = {
            name: frame.groupby(KEY).get_group((pair.data, pair.metric))
            for name, frame in tables.items()
            if name in ("curve", "minima", "strategies")
        }
        lines = {line.get_label(): line for line in ax.lines}
        for label, frame in (("implicit function", chosen["curve"]), ("local minimum", chosen["minima"])):
            np.testing.assert_array_equal(lines[label].get_xydata(), frame[["lambda_1", "unfairness"]].to_numpy())
        badr = chosen["strategies"].query("name == 'badr'")
        np.testing.assert_array_equal(lines["badr"].get_xydata(), badr[["lambda_1", "unfairness"]].to_numpy())


def test_the_same_parameters_give_the_same_tables() -> None:
    few = study.Parameters(profile="smoke", data=("german",), metric=("hsic",), points=5)
    first, second = study.run(few, quiet), study.run(dataclasses.replace(few), quiet)
    for name, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[name])


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["two_groups", "optima"])
def test_image_two_groups(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name}")(tables, parameters)
