"""The study behind the chapter on the counterexample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.ledger import claims
from fairfront.runs.progress import quiet
from fairfront.studies import counterexample as study
from fairfront.studies.parameters import parse
from fairfront.theory import escapes
from fairfront.theory.counterexample import VARIANTS


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(
        profile="smoke", starts=(-0.1, -3.0), seeds=2, steps=80, frozen_steps=20, constants=10
    ).resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_main_table_has_a_row_per_method_variant_and_start(tables, parameters) -> None:
    drift = next(iter(tables.values()))
    assert drift is tables["drift"]
    assert list(drift.columns) == ["method", "variant", "x0", "drift", "feasible"]
    assert set(drift.method) == {"spbm", "ssl-alm", "ssw", "adam", *escapes.ESCAPES}
    assert not drift.duplicated(["method", "variant", "x0"]).any()
    assert drift.feasible.dtype == bool and set(drift.x0) == set(parameters.starts)


def test_methods_of_the_paper_do_not_move_by_any_digit(tables) -> None:
    drift = tables["drift"]
    stayed = drift[drift.method.isin(list(VARIANTS))]
    assert (stayed.drift == 0.0).all() and not stayed.feasible.any()
    assert (tables["control"].drift > 0).all() and len(tables["control"]) == sum(map(len, VARIANTS.values()))


def test_main_table_is_the_worst_of_the_seeds(tables) -> None:
    runs = tables["runs"]
    for row in tables["drift"].itertuples():
        mine = runs[(runs.method == row.method) & (runs.variant == row.variant) & (runs.x0 == row.x0)]
        assert row.drift == mine.drift.max() and row.feasible == mine.feasible.all()
    ended = runs[runs.x.notna()]
    assert (ended.feasible == (ended.g <= 0.01)).all()
    assert (runs.reached.isna() | (runs.reached <= 80)).all()


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    assert set(study.CLAIMS) <= {claim.id for claim in claims()}
    found = {m.claim: m for m in study.measure(tables, parameters)}
    assert set(found) == set(study.CLAIMS)
    assert {m.verdict for m in found.values()} == {"reproduced"}
    worse = {name: frame.copy() for name, frame in tables.items()}
    worse["checks"]["holds"] = False
    worse["paths"].loc[worse["paths"].index[5], "x"] += 1e-9
    assert {m.verdict for m in study.measure(worse, parameters)} == {"not reproduced"}


def test_still_runs_prove_nothing_where_nothing_moves_from_the_other_side_either(tables, parameters) -> None:
    broken = {name: frame.copy() for name, frame in tables.items()}
    broken["control"]["drift"] = 0.0
    verdicts = {m.claim: m.verdict for m in study.measure(broken, parameters)}
    assert verdicts["spbm-prop3"] == "not testable"


def test_some_methods_alone_can_be_run(parameters) -> None:
    only = parse(study.Parameters, {"profile": "smoke", "methods": "restart", "starts": "-1", "steps": "60"}).resolved()
    found = study.run(only, quiet)
    assert set(found["drift"].method) == {"restart"} and found["paths"].empty
    verdicts = {m.claim: m.verdict for m in study.measure(found, only)}
    assert verdicts["spbm-prop3"] == verdicts["spbm-fig11"] == "not testable"
    assert study.facts(found, only)["cex_runs"] == "0"


def test_parts_at_full_join_to_what_all_methods_give(tables, parameters) -> None:
    assert study.units(parameters) == (parameters,)
    few = replace(parameters, methods=("ssw", "weight-decay"))
    parts = study.units(replace(few, profile="full"))
    assert [part.methods for part in parts] == [("ssw",), ("weight-decay",)] and study.units(parts[0]) == (parts[0],)
    joined = study.join([study.run(part, quiet) for part in parts], few)
    assert list(joined) == list(tables)
    for name, frame in study.run(few, quiet).items():
        pd.testing.assert_frame_equal(joined[name], frame, check_dtype=False)


def test_costs_tell_still_runs_from_lost_ones(tables) -> None:
    costs = study.table_costs(tables).set_index(["escape", "variant"])
    assert costs.loc[("smoothing", "sd 0.3 to 0"), "never moved"] == 2  # both seeds from -3
    assert costs.loc[("weight-decay", "AdamW, 0.1"), "works (half of the runs) down to"] == "nowhere"
    assert costs.loc[("weight-decay", "AdamW, 0.1"), "never moved"] == 0


def test_smoothed_landscape_points_away_where_the_noise_is_large(tables) -> None:
    smooth = tables["smoothing"]
    at = smooth[np.isclose(smooth.x, -1.0, atol=0.07)]
    assert (at[at.sd > 2].slope > 0).all() and (at[(at.sd > 0.25) & (at.sd < 0.6)].slope < 0).all()


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["cex_drift"] == "0.0" and facts["cex_starts"] == "2"
    for name in ("cex_setting", "cex_setting_runs", "cex_setting_escapes"):
        for word in ("profile smoke", "variant", "synthetic"):
            assert word in facts[name]


@pytest.mark.parametrize(
    ("assignments", "name"),
    [({"methods": "sbpm"}, "spbm"), ({"starts": "0.5"}, "starts"), ({"tolerance": "0.6"}, "tolerance")],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_every_figure_names_its_axes(tables, parameters) -> None:
    for name in ("landscape", "frozen", "weak", "escapes", "costs", "smoothing"):
        figure = getattr(study, f"figure_{name}")(tables, parameters)
        assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
        assert all(ax.get_xlabel() for ax in figure.axes if ax.get_label() != "<colorbar>")


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["counterexample_landscape", "counterexample_frozen", "counterexample_smoothing"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('counterexample_')}")(tables, parameters)
