"""The study behind the chapter on implicit gradients."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.errors import ArgumentError
from fairfront.runs.progress import quiet
from fairfront.studies import implicit_gradients as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", grid=4)


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_loss_metric_variant_and_number_of_groups_is_a_case(tables) -> None:
    frame = tables["agreement"]
    cases = frame.groupby("loss").apply(lambda f: set(zip(f.metric, f.variant, f.groups, strict=True)))
    both = {(name, variant, s) for name in metrics.names() for variant in ("cited", "paper") for s in (2, 3, 6)}
    assert cases["logistic"] == cases["squared_hinge"] == both
    assert {(m, v) for m, v, _ in cases["squared"]} == {
        (m, v)
        for m in ("demographic_parity", "hsic", "group_variance", "individual_fairness")
        for v in ("cited", "paper")
    } | {("disparate_mistreatment", "paper")}


def test_hypergradients_agree_with_differences(tables) -> None:
    frame = tables["agreement"]
    assert (frame.error <= 1e-6).all() and (frame.adjoint_solves == 1).all()


def test_differences_have_a_best_step(tables) -> None:
    steps = tables["steps"].query("what == 'step'")
    for _, mine in steps.groupby("loss"):
        errors = mine.sort_values("x").error.to_numpy()
        assert errors.min() < 1e-6
        assert errors[-1] > 10 * errors.min()


def test_whole_adjoint_is_right_and_the_truncated_one_has_wrong_signs(tables) -> None:
    signs = study.table_signs(tables)
    assert (signs.whole_off < 1e-6).all()
    worst = signs[(signs.metric == "individual_fairness") & (signs.features == "without gender")].iloc[0]
    assert worst.wrong == worst.weights == 4 and worst.off > 0.1


def test_claim_is_judged_by_the_numbers(tables, parameters) -> None:
    assert study.measure(tables, parameters)[0].verdict == "reproduced"
    worse = {name: frame.copy() for name, frame in tables.items()}
    worse["agreement"].loc[3, "error"] = 1e-3
    found = study.measure(worse, parameters)[0]
    assert found.verdict == "not reproduced" and worse["agreement"].metric[3] in found.reason
    fewer = dataclasses.replace(parameters, loss=("logistic",))
    part = {**tables, "agreement": tables["agreement"].query("loss == 'logistic'")}
    assert study.measure(part, fewer)[0].verdict == "reproduced in part"


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["cases"] == f"{len(tables['agreement'])}"
    assert np.sign(float(facts["worst_truncated"])) != np.sign(float(facts["worst_numeric"]))


@pytest.mark.parametrize(
    ("assignments", "name"),
    [({"loss": "hinge"}, "squared_hinge"), ({"task": "incme"}, "income"), ({"grid": "1"}, "grid"), ({"l2": "0"}, "l2")],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_the_figure_draws_the_tables(tables, parameters) -> None:
    figure = study.figure_agreement(tables, parameters)
    assert [ax.get_title() for ax in figure.axes] == ["logistic", "squared hinge", "squared"]
    drawn = sum(len(line.get_xdata()) for ax in figure.axes for line in ax.lines[:4])
    assert drawn == len(tables["agreement"])


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["implicit_gradients_intercept", "implicit_gradients_slopes"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('implicit_gradients_')}")(tables, parameters)
