"""The study of Figure 7: the map, its minima, the strategies on it, the verdict, the figure and the live page."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.pareto import scalarized, three_group_weights
from fairfront.plotting import barycentric
from fairfront.risks import GroupRisks
from fairfront.runs.progress import quiet
from fairfront.studies import three_groups as study
from fairfront.studies.instances import Instance
from fairfront.studies.parameters import parse
from fairfront.studies.strategies import NAMES, metric_for

KEY = ["partition", "metric"]
LAMBDA = list(study.LAMBDA)


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke").resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_pair_has_its_map_strategies_and_minima(tables, parameters) -> None:
    assert tables["front"].groupby("partition").size().to_list() == [91] * 3
    assert tables["strategies"].groupby(KEY).name.agg(tuple).to_list() == [NAMES] * 9
    assert tables["minima"].groupby(KEY).size().to_dict() == tables["pairs"].set_index(KEY).minima.to_dict()
    assert tables["groups"].rows.to_list() == [1000] * 3
    assert (tables["groups"][["rows_1", "rows_2", "rows_3"]].sum(axis=1) == tables["groups"].rows).all()
    assert not any(frame.isna().any(axis=None) for frame in tables.values())


def test_the_map_is_the_metric_of_the_scalarised_models(tables) -> None:
    words = "german:gender+age"
    risks = GroupRisks.from_data(
        Instance.parse(words, groups=3).load(0.0), loss="squared_hinge", penalize_intercept=False
    )
    front = tables["front"][tables["front"].partition == words].reset_index(drop=True)
    for k in (0, 40, 90):
        model = scalarized(risks, "", front.loc[k, LAMBDA].to_numpy(dtype=float)).model
        assert front.loc[k, ["loss_1", "loss_2", "loss_3"]].to_numpy(dtype=float) == pytest.approx(model.losses)
        for name in ("demographic_parity", "individual_fairness"):
            bound = metric_for(name, loss="squared_hinge").bind(risks.y, risks.groups, 3)
            assert front.loc[k, name] == pytest.approx(bound.value(model.point.scores), rel=1e-6)


def test_badr_is_never_beaten_by_a_strategy_or_the_map(tables, parameters) -> None:
    wide = tables["strategies"].pivot_table(index=KEY, columns="name", values="unfairness")
    assert (wide.sub(wide["badr"], axis=0) >= 0).all(axis=None)
    for words, metric in wide.index:
        values = tables["front"][tables["front"].partition == words][metric]
        assert wide["badr"][words, metric] <= values.min() + 1e-5 * np.ptp(values)


def test_thinning_keeps_each_groups_share() -> None:
    data = Instance.parse("compas:age").load(0.0)
    risks = study._thinned(data, study.Parameters(rows=1000))
    assert risks.n_rows == 1000
    assert risks.group_sizes / 1000 == pytest.approx(data.group_sizes / data.n_rows, abs=2e-3)


def test_minima_of_a_grid_are_found_whatever_its_order() -> None:
    weights = three_group_weights(30)
    centres = np.array([[0.2, 0.2, 0.6], [0.0, 0.9, 0.1], [0.7, 0.3, 0.0]])
    depth = np.array([0.0, 0.1, 0.05])
    values = (((weights[:, None] - centres) ** 2).sum(axis=2) + depth * 0.1).min(axis=1)
    found = study.grid_minima(weights, values)
    assert weights[found] == pytest.approx(centres[[0, 2, 1]])
    shuffled = np.random.default_rng(0).permutation(len(weights))
    again = study.grid_minima(weights[shuffled], values[shuffled])
    assert weights[shuffled][again] == pytest.approx(centres[[0, 2, 1]])


def test_weights_run_to_and_fro_over_the_whole_simplex() -> None:
    weights = three_group_weights(100)
    assert weights.shape == (5151, 3) and len(np.unique(weights.round(6), axis=0)) == 5151
    assert weights.min() == 0 and weights.sum(axis=1) == pytest.approx(np.ones(5151))
    assert np.abs(np.diff(weights, axis=0)).max() == pytest.approx(0.01)


def test_the_claim_is_judged_by_the_numbers(tables, parameters) -> None:
    found = study.measure(tables, parameters)
    assert [(m.claim, m.verdict) for m in found] == [("badr-fig7", "reproduced in part")]
    assert "one minimum" in found[0].reason and "also found by" in found[0].reason
    ideal = {name: frame.copy() for name, frame in tables.items()}
    ideal["pairs"]["minima"], ideal["pairs"]["rival_unfairness"] = 2, ideal["pairs"].largest
    assert study.measure(ideal, parameters)[0].verdict == "reproduced"
    other = study.measure(ideal, dataclasses.replace(parameters, loss="logistic"))[0]
    assert other.verdict == "reproduced in part" and "another loss" in other.reason
    flat = {name: frame.copy() for name, frame in tables.items()}
    flat["pairs"]["largest"] = flat["pairs"].least + 1e-3 * (flat["pairs"].least - flat["pairs"].floor)
    assert study.measure(flat, parameters)[0].verdict == "not reproduced"


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "1,000 of 6,172 rows" in facts["setting"] and "squared_hinge" in facts["setting"]
    assert facts["points"] == "91"
    counts = [int(facts[name].split(" of ")[0]) for name in ("vertices", "edges", "inside")]
    assert sum(counts) == 9


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"partition": "compas"}, "partition"),
        ({"partition": "compas:ages"}, "age"),
        ({"partition": "compass:age"}, "compas"),
        ({"partition": "communities:race"}, "classification"),
        ({"partition": "compas:age,compas:age"}, "partition"),
        ({"resolution": "2"}, "resolution"),
        ({"rows": "7"}, "rows"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_fewer_cells_than_groups_are_refused() -> None:
    with pytest.raises(ArgumentError, match="3 groups cannot be made of 2 cells"):
        study.run(study.Parameters(profile="smoke", partition=("german:gender",)), quiet)


def test_the_figure_draws_the_tables(tables, parameters) -> None:
    figure = study.figure_three_groups(tables, parameters)
    for ax, pair in zip(figure.axes, tables["pairs"].to_dict("records"), strict=False):
        mine = {
            n: f[(f.partition == pair["partition"]) & (f.metric == pair["metric"])]
            for n, f in tables.items()
            if "metric" in f
        }
        lines = {line.get_label(): line for line in ax.lines}
        np.testing.assert_allclose(lines["local minimum"].get_xydata(), barycentric(mine["minima"][LAMBDA]))
        badr = mine["strategies"].query("name == 'badr'")
        np.testing.assert_allclose(lines["badr"].get_xydata(), barycentric(badr[LAMBDA]))


def test_the_page_shows_the_tables(tables, parameters) -> None:
    text = study.figure_explorer(tables, parameters).text
    numbers = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    first = numbers["sets"][0]
    front = tables["front"][tables["front"].partition == parameters.partition[0]]
    assert first["resolution"] == 12 and len(first["points"]) == 91
    assert np.array(first["losses"]) == pytest.approx(front[["loss_1", "loss_2", "loss_3"]].to_numpy(), rel=1e-4)
    assert first["metrics"][2]["values"] == pytest.approx(front.individual_fairness.to_list(), rel=1e-4)
    assert [s["name"] for s in first["metrics"][0]["strategies"]] == list(NAMES)
    assert first["groups"] == ["under 25", "25 to 44", "45 or over"]


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
def test_image_three_groups(tables, parameters) -> Figure:
    return study.figure_three_groups(tables, parameters)
