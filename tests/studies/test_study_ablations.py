"""The study of Tables 4 and 5: what an ablation changes, effects, verdicts, the figure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs import store
from fairfront.runs.progress import quiet
from fairfront.studies import ablations as study
from fairfront.studies import gridruns, hypergrids
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", source=("adult",)).resolved()  # the same rows with and without raw files


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def made(losses: dict[tuple[str, str], float], infeasible: tuple[tuple[str, str], ...] = ()) -> dict[str, pd.DataFrame]:
    """Return tables of an entry an experiment, ablation and penalty rule, of a given loss."""
    runs, values = [], []
    for (experiment, ablation), loss in losses.items():
        excess = 1.0 if (experiment, ablation) in infeasible else -1e-5
        top = gridruns.epsilon(experiment) + excess
        for rule in {"alm": ["alm"], "adapt": ["adapt"], "kappa": ["adapt"]}.get(ablation, ["adapt", "alm"]):
            key = {"experiment": experiment, "method": "spbm", "configuration": rule, "ablation": ablation}
            row = {**dict.fromkeys(gridruns.SETTINGS, 0.0), "rule": rule, "seed": 0, "loss": loss, "start": 1.0}
            runs.append({**key, **row})
            values += [{**key, "seed": 0, "part": part, "value": v} for part, v in (("a", 0.0), ("b", top))]
    return {"runs": pd.DataFrame(runs).assign(collapsed=False), "values": pd.DataFrame(values)}


def as_printed(*experiments: str) -> dict[tuple[str, str], float]:
    return {(e, name): row[0] for e in experiments for name, row in study.PAPER[e].items()}


def test_every_ablation_is_tried_on_the_selected_configuration(tables, parameters) -> None:
    words = tables["runs"].groupby(["experiment", "ablation"]).configuration.agg(set)
    assert "lr 0.005, ql, gamma 0, adapt, kappa 0.9, mu 2" in words["E2", "gamma"]
    assert "lr 0.005, ql, gamma 0.9, adapt, kappa 0, mu 2" in words["E2", "kappa"]
    assert "lr 0.005, ql, gamma 0.9, adapt, kappa 0.9, mu 0" in words["E2", "mu"]
    assert "lr 0.005, ql, gamma 0.9, adapt, kappa 0.9, mu 2" in words["E2", "adapt"]
    assert {f"lr 0.005, ql, gamma 0.9, alm, rho {rho}, mu 2" for rho in ("0.5", "1", "2")} <= words["E2", "alm"]
    assert words["E6", "alm"] == {"lr 0.01, ql, gamma 0.1, alm, rho 2, mu 0"}
    assert len(words["E6", "adapt"]) == 3 and len(words["E2", "gamma"]) == 3


def test_entries_are_of_the_ablations_grid(tables) -> None:
    for (experiment, ablation), mine in tables["runs"].groupby(["experiment", "ablation"]):
        grid = {str(c) for c in hypergrids.grid(hypergrids.ablated(gridruns.kind(experiment), ablation))}
        assert set(mine.configuration) <= grid, (experiment, ablation)
    assert tables["runs"].loss.notna().all()


def test_parts_make_the_whole(tables, parameters) -> None:
    parts = study.units(parameters)
    assert [(p.experiment, p.ablation) for p in parts] == [
        ((e,), (name,)) for e in ("E2", "E6") for name in hypergrids.ABLATIONS
    ]
    assert all(study.units(part) == (part,) for part in parts)
    again = study.run(parts[2], quiet)["runs"]
    mine = tables["runs"].query("experiment == 'E2' and ablation == 'gamma'")
    np.testing.assert_allclose(again.loss, mine.loss, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "reference", "word"),
    [
        (0.386, 0.350, "higher"),
        (0.352, 0.350, "same"),
        (0.340, 0.350, "lower"),
        (0.0004, 0.0, "same"),
        (np.nan, 0.3, "unknown"),
    ],
)
def test_effects_are_words_beyond_a_hundredth(loss: float, reference: float, word: str) -> None:
    assert study.effect(loss, reference) == word


def test_the_papers_own_losses_agree_with_the_paper() -> None:
    effects = study.table_effects(made(as_printed(*study.PAPER))).set_index(["experiment", "ablation"])
    assert effects.agrees.all() and len(effects) == 32
    np.testing.assert_allclose(effects["paper's ratio"].dropna(), effects["our ratio"].dropna())
    assert effects.paper["E2", "gamma"] == "higher" and effects.paper["E3", "mu"] == "same"
    assert effects.paper["E6", "alm"] == "lower" and effects.paper["E7", "kappa"] == "higher"
    assert effects["paper's ratio"]["E6", "kappa"] == pytest.approx(6684.120 / 6680.601)  # ADAPT alone has a kappa


def test_an_ablation_is_compared_with_the_rules_that_it_tried() -> None:
    tables = made(as_printed("E4") | {("E4", "alm"): 0.001})
    both = study.table_effects(tables).set_index("ablation")
    assert both["our ratio"]["gamma"] == pytest.approx(2.117 / 0.001)
    kept = tables["runs"].query("ablation != 'gamma' or rule == 'adapt'")
    one = study.table_effects({**tables, "runs": kept}).set_index("ablation")
    assert one["our ratio"]["gamma"] == pytest.approx(2.117 / 0.016)


def test_infeasible_entries_are_no_better(parameters) -> None:
    losses = as_printed("E2")
    effects = study.table_effects(made(losses | {("E2", "gamma"): 0.2}, (("E2", "gamma"),))).set_index("ablation")
    assert effects.ours["gamma"] == "infeasible" and effects.agrees["gamma"]
    lost = study.table_effects(made(losses, (("E2", "adapt"), ("E2", "alm")))).set_index("ablation")
    assert set(lost.ours) == {"unknown"} and lost.agrees.isna().all()
    one = study.table_effects(made(losses, (("E2", "adapt"),))).set_index("ablation")
    assert one["our ratio"]["gamma"] == pytest.approx(0.386 / 0.359) and one.ours["alm"] == "unknown"


def test_an_equations_trivial_solution_is_no_reference(parameters) -> None:
    collapsed = made(as_printed("E6"))
    collapsed["runs"]["collapsed"] = True
    effects = study.table_effects(collapsed)
    assert set(effects.ours) == {"unknown"}
    verdict = {m.claim: m for m in study.measure(collapsed, parameters)}["spbm-table5"]
    assert verdict.verdict == "not testable" and "trivial" in verdict.reason


def test_claims_are_judged_by_the_effects(monkeypatch, tables, parameters) -> None:
    monkeypatch.setattr(gridruns, "setting", lambda experiment, sizes: experiment)  # rows that are not at hand
    claims = {f"spbm-table4-{name}" for name in ("gamma", "kappa", "mu", "rule")} | {"spbm-table5"}
    assert {m.claim for m in study.measure(tables, parameters)} == claims
    fair, equations = ("E1", "E2", "E3", "E4", "E5"), ("E6", "E7", "E8")

    def judged(losses, given, infeasible=()) -> dict[str, tuple[str, str]]:
        return {m.claim: (m.verdict, m.reason) for m in study.measure(made(losses, infeasible), given)}

    printed = as_printed(*fair, *equations)
    short = judged(printed, parameters)
    assert {verdict for verdict, _ in short.values()} == {"reproduced in part"}
    assert all("shorter runs" in reason for _, reason in short.values())
    other = dict.fromkeys(printed, 1.0) | {(e, "gamma"): 0.5 for e in fair}
    full = study.Parameters(profile="full", rows=3000, source=("adult", "digits", "synthetic100"))
    assert judged(other, full)["spbm-table4-gamma"][0] == "not reproduced"
    assert judged(other, parameters)["spbm-table4-gamma"][0] == "not testable"
    missing = judged(as_printed("E2"), parameters)
    assert missing["spbm-table5"] == ("not testable", "no such comparison among those run; not run: E6, E7, E8")
    assert "not run: E1, E3, E4, E5" in missing["spbm-table4-mu"][1]


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    for word in ("Adult", "Helmholtz", "profile smoke", "variant"):
        assert word in facts["setting"]
    effects = study.table_effects(tables)
    known = effects[effects.ours != "unknown"]
    assert facts["agrees"] == f"{int(known.agrees.sum())} of {len(known)}"
    rows = study.table_ablations(tables)
    assert len(rows) == 10 and rows.entries.sum() == len(tables["runs"])
    assert len(study.table_agreement(tables)) == 4


def test_an_ablation_without_the_whole_method_is_compared_with_nothing(tables, parameters) -> None:
    alone = {name: frame[frame.ablation == "gamma"] for name, frame in tables.items()}
    assert study.table_effects(alone).empty
    assert {m.verdict for m in study.measure(alone, parameters)} == {"not testable"}


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"ablation": "kapa"}, "kappa"),
        ({"ablation": "mu,mu"}, "ablation"),
        ({"configurations": "1,2"}, "configurations"),
        ({"source": "adlut"}, "adult"),
        ({"experiment": "E0"}, "experiment"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_a_source_can_be_asked_for() -> None:
    few = study.Parameters(profile="smoke", experiment=("E4",), source=("digits",), ablation=("mu",))
    assert study.datasets(few) == () and few.resolved().source == ("digits",)  # images are no table
    assert store.address(study, few) != store.address(study, dataclasses.replace(few, experiment=("E2",), source=None))
    runs = study.run(dataclasses.replace(few, rows=400), quiet)["runs"]
    assert len(runs) == 1 and np.isfinite(runs.loss).all()


def test_the_figure_draws_the_ratios(tables, parameters) -> None:
    figure = study.figure_ablations(tables, parameters)
    effects = study.table_effects(tables)
    assert len(figure.axes) == 2
    mine = effects[effects.experiment == "E2"].set_index("ablation")["our ratio"]
    drawn = [x for line in figure.axes[0].lines[1:3] for x in line.get_xdata()]
    assert sorted(drawn) == pytest.approx(sorted(mine))


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
def test_image_ablations() -> Figure:
    losses = as_printed("E2", "E4", "E6")
    losses |= {("E2", "gamma"): 0.37, ("E4", "gamma"): 1.0, ("E6", "kappa"): 6000.0}
    return study.figure_ablations(made(losses, (("E2", "mu"),)), study.Parameters(profile="smoke"))
