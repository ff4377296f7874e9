"""The study behind the first chapter: what its tables promise, what it says of the claims, what its figures draw."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.datasets import load
from fairfront.errors import ArgumentError
from fairfront.pareto import certify, regularization_path
from fairfront.risks import GroupRisks
from fairfront.runs.progress import quiet
from fairfront.studies import pareto_inefficiency as study
from fairfront.studies.parameters import parse

COLUMNS = ["task", "curve", "name", "lambda_1", "penalty", "loss_1", "loss_2", "fairness", "certificate"]
ROWS = {"employment": 1605, "income": 843, "travel-time": 783}


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", front_points=21, penalties=16)


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_points_have_the_promised_columns_and_rows(tables, parameters) -> None:
    points = tables["points"]
    assert list(points.columns[: len(COLUMNS)]) == COLUMNS
    counts = points.groupby(["task", "curve"]).size()
    assert counts.groupby("curve").agg(set).to_dict() == {"front": {21}, "regularisation": {16}, "strategy": {6}}
    assert set(points.task) == set(ROWS)
    assert (points[points.curve != "strategy"].name == "").all()
    assert points[points.curve != "regularisation"].penalty.isna().all()
    assert points[points.curve == "regularisation"].lambda_1.isna().all()
    assert not points[["loss_1", "loss_2", "fairness", "certificate"]].isna().any(axis=None)


def test_all_rows_of_each_task_are_used(tables) -> None:
    groups = tables["groups"].set_index("task")
    assert groups.rows.to_dict() == ROWS
    assert (groups.rows_1 + groups.rows_2 == groups.rows).all()
    assert set(groups.group_1) == {"male"} and set(groups.group_2) == {"female"}


def test_front_and_strategies_are_certified_efficient(tables) -> None:
    points = tables["points"]
    assert (points[points.curve != "regularisation"].certificate <= 1e-6).all()


def test_at_least_half_of_the_path_is_dominated_where_the_penalty_matters(tables) -> None:
    points = tables["points"]
    path = points[(points.curve == "regularisation") & (points.penalty >= 1e-3)]
    assert ((path.certificate > 1e-4).groupby(path.task).mean() >= 0.5).all()
    assert (path.improvement <= path.certificate + 1e-12).all()
    assert path.improvement.to_numpy() == pytest.approx(path.certificate.to_numpy(), rel=1e-4, abs=1e-9)


def test_badr_is_the_fairest_strategy_on_every_task(tables) -> None:
    strategies = (
        tables["points"].query("curve == 'strategy'").pivot_table(index="task", columns="name", values="fairness")
    )
    assert set(strategies.columns) == {"badr", "balanced", "erm", "minimax", "one-group", "uniform"}
    assert (strategies.sub(strategies["badr"], axis=0) >= 0).all(axis=None)


@pytest.mark.parametrize(
    ("task", "least", "largest", "uniform"),
    [("employment", 0.567, 1.210, 0.697), ("income", 1.000, 1.799, 1.550), ("travel-time", 0.105, 0.325, 0.123)],
)
def test_figures_of_an_independent_run_are_met(tables, task: str, least: float, largest: float, uniform: float) -> None:
    points = tables["points"][lambda f: f.task == task]
    front = points[points.curve == "front"].fairness
    assert points[points.name == "badr"].fairness.item() == pytest.approx(least, abs=1e-3)
    assert front.max() == pytest.approx(largest, rel=5e-3)
    assert points[points.name == "uniform"].fairness.item() == pytest.approx(uniform, abs=1e-3)


@pytest.mark.parametrize(("penalty", "unfairness", "slack"), [(1.9e-2, 0.514, 3.0e-3), (0.32, 0.071, 8.7e-2)])
def test_certificates_of_an_independent_run_are_met(penalty: float, unfairness: float, slack: float) -> None:
    from fairfront import metrics

    data = load("acs2012-employment", sensitive=["gender"], test_size=0, seed=0)
    risks = GroupRisks.from_data(data, penalize_intercept=False)
    metric = metrics.get("individual_fairness", variant="paper").bind(risks.y, risks.groups, 2)
    model = regularization_path(risks, metric, [penalty], [0.5, 0.5])[0]
    assert metric.value(model.point.scores) == pytest.approx(unfairness, rel=1e-2)
    assert certify(risks, model.point.w).slack == pytest.approx(slack, rel=2e-2)


def test_dominating_models_are_better_for_one_group_and_worse_for_none(tables) -> None:
    frame = tables["dominating"]
    assert (frame.by_loss_1 <= frame.loss_1).all() and (frame.by_loss_2 <= frame.loss_2).all()
    gain = frame.loss_1 - frame.by_loss_1 + frame.loss_2 - frame.by_loss_2
    assert gain.to_numpy() == pytest.approx(frame.improvement.to_numpy(), abs=1e-12)


def test_the_path_reaches_what_no_efficient_model_reaches(tables) -> None:
    reach = study.table_reach(tables)
    assert (reach["least on the path"] < reach["least on the front"]).all()
    assert (reach[["risk 1: path minus uniform", "risk 2: path minus uniform"]] > 0).all(axis=None)


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    verdicts = {m.claim: m.verdict for m in study.measure(tables, parameters)}
    assert verdicts == {
        "badr-prop1": "reproduced in part",
        "badr-prop2": "reproduced",
        "badr-prop3": "reproduced in part",
        "badr-fig1-path": "reproduced",
        "badr-fig1-metric": "reproduced",
    }
    worse = {name: frame.copy() for name, frame in tables.items()}
    worse["points"].loc[worse["points"].name == "uniform", "fairness"] = 0.0
    worse["points"]["improvement"] = 0.0
    worse["checks"]["holds"] = False
    verdicts = {m.claim: m.verdict for m in study.measure(worse, parameters)}
    assert set(verdicts.values()) == {"not reproduced"}


def test_fewer_samples_than_the_paper_reproduce_in_part(parameters) -> None:
    one = dataclasses.replace(parameters, task=("income",), front_points=9, penalties=6)
    verdicts = {m.claim: m for m in study.measure(study.run(one, quiet), one)}
    assert verdicts["badr-fig1-path"].verdict == "reproduced in part"
    assert "1 of 3" in verdicts["badr-fig1-path"].reason


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "1,605 rows" in facts["setting"] and "smoke" in facts["setting"] and "paper" in facts["setting"]
    assert facts["front_least"] == f"{study.table_reach(tables)['least on the front'][0]:.3f}"
    assert facts["tied"] == "employment and income"
    assert facts["beyond"] == facts["dearer"] == "employment, income and travel-time"
    worst = tables["dominating"].query("task == 'employment'").nlargest(1, "improvement").iloc[0]
    assert (
        f"({worst.by_loss_1:.4f}, {worst.by_loss_2:.4f}) exists, better by {worst.improvement:.2g}" in facts["example"]
    )


def test_shares_of_dominated_models_are_of_the_whole_path(tables, parameters) -> None:
    fewer = tables | {"dominating": tables["dominating"].query("improvement > 1e-4")}
    path = tables["points"].query("curve == 'regularisation'")
    shares = {task: (mine.improvement > 1e-4).mean() for task, mine in path.groupby("task", sort=False)}
    told = study.facts(fewer, parameters)["share_dominated"]
    assert told == ", ".join(f"{task} {share:.0%}" for task, share in shares.items())


def test_a_path_that_stays_on_the_front_is_told_as_such(tmp_path) -> None:
    tiny = study.Parameters(
        profile="smoke", task=("income",), front_points=5, penalties=3, levels=1, penalty_min=1e-12, penalty_max=1e-11
    )
    tables = study.run(tiny, quiet)
    assert tables["dominating"].empty and tables["coefficients"].empty
    for name, frame in tables.items():  # a file without a header could not be read again
        frame.to_csv(tmp_path / name, index=False)
        assert list(pd.read_csv(tmp_path / name).columns) == list(frame.columns)
    facts = study.facts(tables, tiny)
    assert facts["share_dominated"] == "income 0%"
    assert facts["example"] == "no model of the path on income is seen to be dominated"
    assert study.table_certificates(tables).empty
    verdicts = {m.claim: m.verdict for m in study.measure(tables, tiny)}
    assert verdicts["badr-fig1-path"] == "not testable"
    for name in ("fronts", "certificates", "cost", "coefficients"):
        getattr(study, f"figure_{name}")(tables, tiny).canvas.draw()


def test_at_the_least_l2_the_ends_of_the_front_are_certified() -> None:
    low = study.Parameters.__dataclass_fields__["l2"].metadata["low"]
    least = study.Parameters(
        profile="smoke", task=("travel-time",), sensitive="citizen", front_points=3, penalties=2, levels=1, l2=low
    )
    checks = study.run(least, quiet)["checks"]
    assert checks[checks.task == "travel-time"].holds.all()


def test_the_same_parameters_give_the_same_tables(parameters) -> None:
    small = dataclasses.replace(parameters, task=("travel-time",), front_points=5, penalties=3, levels=1)
    first, second = study.run(small, quiet), study.run(small, quiet)
    for name, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[name])


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "demographic_parity"},
        {"metric": "disparate_mistreatment", "variant": "cited"},
        {"sensitive": "age"},
        {"penalize_intercept": True, "path_weights": "erm"},
    ],
)
def test_other_metrics_attributes_and_conventions_run(changes: dict) -> None:
    few = study.Parameters(profile="smoke", task=("employment",), front_points=5, penalties=3, levels=1, **changes)
    tables = study.run(few, quiet)
    points = tables["points"]
    assert (points[points.curve != "regularisation"].certificate <= 1e-6).all()
    study.measure(tables, few)
    study.facts(tables, few)


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"task": "employement"}, "employment"),
        ({"task": "income,income"}, "task"),
        ({"penalty_min": "1", "penalty_max": "0.1"}, "penalty_min"),
        ({"metric": "individual"}, "individual_fairness"),
        ({"l2": "0"}, "l2"),
        ({"l2": "1e-3"}, "l2"),
        ({"front_points": "2"}, "front_points"),
        ({"front_point": "9"}, "front_points"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_the_figure_draws_the_tables(tables, parameters) -> None:
    figure = study.figure_fronts(tables, parameters)
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert len(panels) == 6
    for ax, task in zip(panels[:3], parameters.task, strict=True):
        points = tables["points"].groupby("task").get_group(task)
        lines = {line.get_label(): line for line in ax.lines}
        for curve, label in (("front", "Pareto front"), ("regularisation", "regularisation path")):
            frame = points[points.curve == curve]
            np.testing.assert_array_equal(lines[label].get_xydata(), frame[["loss_1", "loss_2"]].to_numpy())
        badr = points[points.name == "badr"]
        np.testing.assert_array_equal(lines["badr"].get_xydata(), badr[["loss_1", "loss_2"]].to_numpy())
    for ax, task in zip(panels[3:], parameters.task, strict=True):
        front = tables["points"].groupby(["task", "curve"]).get_group((task, "front"))
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), front[["lambda_1", "fairness"]].to_numpy())


def test_figures_are_opaque_and_named_on_every_axis(tables, parameters) -> None:
    for draw in (study.figure_fronts, study.figure_certificates, study.figure_cost, study.figure_coefficients):
        figure = draw(tables, parameters)
        assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
        assert all(ax.get_xlabel() or ax.get_label() == "<colorbar>" for ax in figure.axes)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["fronts", "certificates", "cost", "coefficients"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name}")(tables, parameters)
