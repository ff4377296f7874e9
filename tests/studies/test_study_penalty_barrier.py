"""The study behind the chapter from penalty and barrier to SPBM."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.plotting import METHODS
from fairfront.runs.progress import quiet
from fairfront.studies import penalty_barrier as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", steps=800, problems=1, reduction_steps=30)


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_statement_is_checked(tables) -> None:
    checks = tables["checks"]
    assert checks[checks.claim == "spbm-phi"].groupby("subject").size().to_dict() == {"QL": 6, "QR": 6}
    assert (checks[checks.claim == "spbm-e2"].groupby("subject").size() == 2).all()
    assert checks.holds.all() and (checks.cases > 0).all()


def test_every_run_starts_and_is_as_long_as_asked(tables, parameters) -> None:
    paths = tables["paths"]
    assert list(paths.run.unique()) == list(study.RUNS) and set(paths.method) == set(METHODS)
    assert (paths.groupby("run").size() == parameters.steps + 1).all()
    starts = paths.groupby("run")[["x_1", "x_2"]].first()
    assert (starts.to_numpy() == study.START).all()


def test_methods_with_multipliers_reach_the_solution_and_the_others_do_not(tables) -> None:
    ends = study.table_ends(tables).set_index("run")
    distance = ends["distance to x*"]
    assert (distance[["spbm", "ssl-alm", "spbm, QR", "spbm, ALM", "ssl-alm, no penalty", "ssw, SGD"]] < 0.02).all()
    assert (distance[["ssw", "adam-reg", "adam", "ssl-alm, quadratic"]] > 0.04).all()
    assert ends.loc["adam-reg", "largest g"] == pytest.approx((5**0.5 / 2) ** 2 - 1, abs=1e-3)
    assert ends.loc["adam", "largest g"] == pytest.approx(4.0, abs=0.1)


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    found = {m.claim: m for m in study.measure(tables, parameters)}
    assert {claim: m.verdict for claim, m in found.items()} == {"spbm-phi": "reproduced", "spbm-e2": "reproduced"}
    for claim in found:
        worse = {name: frame.copy() for name, frame in tables.items()}
        worse["checks"].loc[worse["checks"].claim == claim, "holds"] = False
        verdicts = {m.claim: m.verdict for m in study.measure(worse, parameters)}
        assert verdicts == {name: "not reproduced" if name == claim else "reproduced" for name in found}
    none = {**tables, "checks": tables["checks"].iloc[:0]}
    assert {m.verdict for m in study.measure(none, parameters)} == {"not reproduced"}


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["lambda1"] == f"{5**0.5 - 1:.4f}" and facts["reg_exact"] == "0.250"
    assert "smoke" in facts["setting"] and facts["e2_steps"] == "120"


@pytest.mark.parametrize(
    ("assignments", "name"),
    [({"lr": "0"}, "lr"), ({"gamma": "1"}, "gamma"), ({"steps": "1"}, "steps"), ({"etta": "1"}, "eta")],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_the_figures_draw_the_tables(tables, parameters) -> None:
    ends = tables["paths"].groupby("run").tail(1).set_index("run")
    ax = study.figure_trajectories(tables, parameters).axes[0]
    lines = {line.get_label(): line for line in ax.lines}
    for method, mark in METHODS.items():
        np.testing.assert_allclose(lines[mark.label].get_xydata()[0], ends.loc[method, ["x_1", "x_2"]].astype(float))
    for draw in (study.figure_functions, study.figure_pbm, study.figure_reduction, study.figure_multipliers):
        assert all(ax.get_xlabel() and ax.lines for ax in draw(tables, parameters).axes)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
def test_image_penalty_barrier(tables, parameters) -> Figure:
    return study.figure_trajectories(tables, parameters)
