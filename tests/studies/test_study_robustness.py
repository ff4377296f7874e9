"""The study of Figure 1(b): what was trained, scores, profiles under both denominators, verdicts, figures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.progress import quiet
from fairfront.studies import experiments, gridruns, hypergrids
from fairfront.studies import robustness as study
from fairfront.studies.parameters import parse

KEY = ["experiment", "method", "configuration"]


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", source=("adult",)).resolved()  # the same rows with and without raw files


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def made(feasible: dict[str, list[float]], violation: float = 1.0, experiment: str = "E2") -> dict[str, pd.DataFrame]:
    """Return tables of entries with the given losses; a negative loss is that of an infeasible entry."""
    runs, values = [], []
    for method, losses in feasible.items():
        for number, loss in enumerate(losses):
            key = {"experiment": experiment, "method": method, "configuration": f"{method} {number}"}
            settings = dict.fromkeys(gridruns.SETTINGS, 0.0) | {"lr": 0.1 + number // 2, "rule": "adapt"}
            settings["phi"] = ("ql", "qr")[number % 2] if method == "spbm" else ""
            runs.append({**key, **settings, "seed": 0, "loss": abs(loss), "start": 1.0, "collapsed": False})
            gap = experiments.get("E2").epsilon + (violation if loss < 0 else -0.01)
            values += [{**key, "seed": 0, "part": part, "value": v} for part, v in (("a", 0.2), ("b", 0.2 + gap))]
    return {"runs": pd.DataFrame(runs), "values": pd.DataFrame(values)}


def test_every_entry_is_trained_once_with_both_functions(tables, parameters) -> None:
    runs = tables["runs"]
    assert not runs.duplicated([*KEY, "seed"]).any()
    assert runs.groupby(["experiment", "method"]).size().to_dict() == {
        ("E2", "spbm"): 16,
        ("E2", "ssl-alm"): 16,
        ("E6", "spbm"): 2,
        ("E6", "ssl-alm"): 2,
    }
    spbm = runs[(runs.method == "spbm") & (runs.experiment == "E2")].fillna(-1)
    twins = spbm.groupby(["lr", "gamma", "rule", "kappa", "rho", "mu"]).phi.agg(sorted)
    assert twins.to_list() == [["ql", "qr"]] * 8
    grid = {str(c) for c in hypergrids.grid(hypergrids.factors("fairness", "spbm"))}
    assert set(spbm.configuration) <= grid
    assert np.isfinite(runs[["loss", "start"]]).all(axis=None)


def test_a_stacked_entry_gives_what_it_gives_alone(tables, parameters) -> None:
    row = tables["runs"].query("experiment == 'E2' and method == 'spbm'").iloc[5]
    settings = {name: row[name] for name in ("phi", "gamma", "rule", "kappa", "rho", "mu") if row[name] == row[name]}
    alone = experiments.train(
        "E2",
        "spbm",
        0,
        data=experiments.rows("E2", "adult", limit=parameters.rows),
        steps=parameters.steps,
        lr=row.lr,
        **settings,
    )
    assert row.loss == pytest.approx(alone.history.objective.tail(5).mean(), rel=1e-4)
    found = gridruns.over_seeds(tables["runs"], tables["values"]).set_index(KEY).loc[tuple(row[KEY])]
    assert found.violation == pytest.approx(alone.constraints[-5:].mean(axis=0).max(), abs=1e-4)


def test_parts_make_the_whole(tables, parameters) -> None:
    parts = study.units(dataclasses.replace(parameters, experiment=("E2",), chunk=12))
    assert [(p.methods, p.first, p.last) for p in parts] == [
        (("spbm",), 0, 12),
        (("spbm",), 12, 16),
        (("ssl-alm",), 0, 12),
        (("ssl-alm",), 12, 16),
    ]
    assert all(study.units(part) == (part,) for part in parts)
    last = study.run(parts[3], quiet)["runs"]
    whole = tables["runs"].query("experiment == 'E2' and method == 'ssl-alm'").iloc[12:]
    assert last.configuration.to_list() == whole.configuration.to_list()
    np.testing.assert_allclose(last.loss, whole.loss, rtol=1e-4)


def test_norms_and_gaps_are_violations_of_the_mean_over_seeds() -> None:
    values = [
        *(("E1", 0, part, v) for part, v in (("w", 2.4), ("b", 1.0))),
        *(("E1", 1, part, v) for part, v in (("w", 1.8), ("b", 1.0))),
        *(("E2", 0, part, v) for part, v in (("a", 0.1), ("b", 0.4))),
        *(("E2", 1, part, v) for part, v in (("a", 0.4), ("b", 0.1))),
    ]
    frame = pd.DataFrame(values, columns=["experiment", "seed", "part", "value"])
    frame = frame.assign(method="spbm", configuration="c")
    runs = frame[["experiment", "method", "configuration", "seed"]].drop_duplicates()
    runs = runs.assign(**dict.fromkeys(gridruns.SETTINGS, 0.0), loss=1.0, start=2.0, collapsed=False)
    found = gridruns.over_seeds(runs, frame).set_index("experiment")
    assert found.violation.to_dict() == pytest.approx({"E1": 0.1, "E2": -0.1})
    assert found.violation_std.to_dict() == pytest.approx({"E1": 0.3, "E2": 0.0})
    assert found.feasible.to_dict() == {"E1": True, "E2": True}
    assert found.seeds.eq(2).all()


def test_scores_run_from_the_best_feasible_to_the_untrained(tables) -> None:
    table = study.scores(tables)
    assert table.score.notna().equals(table.feasible) and (table.score.dropna() >= 0).all()
    assert table[table.feasible].groupby("experiment").score.min().eq(0).all()
    few = study.scores(made({"spbm": [0.2, -0.1], "ssl-alm": [0.6, 1.0]}))
    np.testing.assert_allclose(few.score, [0.0, np.nan, 0.5, 1.0])


def test_both_denominators(tables) -> None:
    table = study.scores(made({"spbm": [0.2, -0.1, -0.1, 0.24], "ssl-alm": [0.6, 0.25, 1.0, 0.9]}))
    dropped = study.profile(table, "fairness", counted=False)
    counted = study.profile(table, "fairness", counted=True)
    assert dropped.at(0.1).to_dict() == {"spbm": 1.0, "ssl-alm": 0.25}
    assert counted.at(0.1).to_dict() == {"spbm": 0.5, "ssl-alm": 0.25}
    none = study.profile(study.scores(made({"spbm": [-0.2], "ssl-alm": [0.6]})), "fairness", counted=False)
    assert none.at(1.0).to_dict() == {"spbm": 0.0, "ssl-alm": 1.0}


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    verdicts = {m.claim: m.verdict for m in study.measure(tables, parameters)}
    assert verdicts["spbm-grids"] == "reproduced"
    shares = study.table_shares(tables).set_index(["kind", "method"])
    ours, theirs, error = study._compared(shares.reset_index(), "low of feasible", "feasible")["fairness"]
    assert (verdicts["spbm-fig1-loss"] == "reproduced in part") == (ours - theirs > 2 * error)

    def judged(feasible: dict[str, list[float]]) -> dict[str, tuple[str, str]]:
        return {m.claim: (m.verdict, m.reason) for m in study.measure(made(feasible), parameters)}

    good = judged({"spbm": [0.2, 0.21, -0.1, -0.1, -0.1], "ssl-alm": [0.6] * 5})
    assert good["spbm-fig1-loss"][0] == good["spbm-fig1-feasible"][0] == "reproduced in part"
    assert "not run: E1, E3" in good["spbm-fig1-loss"][1] and "a part of each grid" in good["spbm-fig1-loss"][1]
    for few in ([0.9, 0.2, 0.9], [0.2, 0.2, 0.9]):  # a small lead says as little as a small lag
        other = [1.1 - loss for loss in few]
        vague = judged({"spbm": few, "ssl-alm": other})["spbm-fig1-loss"]
        assert vague[0] == "not testable" and "standard errors" in vague[1]
    bad = judged({"spbm": [0.9] * 8, "ssl-alm": [0.2, 0.2, *[-0.6] * 6]})
    assert bad["spbm-fig1-loss"][0] == bad["spbm-fig1-feasible"][0] == "not reproduced"
    none = judged({"spbm": [-0.9, -0.9], "ssl-alm": [-0.2, -0.2]})
    assert {none[claim][0] for claim in ("spbm-fig1-loss", "spbm-fig1-feasible", "spbm-phi-choice")} == {"not testable"}
    assert judged({"spbm": [0.2, 0.3], "ssl-alm": [0.2]})["spbm-phi-choice"][0] == "reproduced in part"
    assert judged({"spbm": [0.3, 0.2], "ssl-alm": [0.2]})["spbm-phi-choice"][0] == "not reproduced"
    level = judged({"spbm": [0.20001, 0.2], "ssl-alm": [0.2]})["spbm-phi-choice"]
    assert level[0] == "not testable" and "level" in level[1]


def test_grid_sizes_that_differ_are_noticed(monkeypatch, tables, parameters) -> None:
    monkeypatch.setitem(study.GRIDS, ("pinn", "spbm"), 383)
    assert study.measure(tables, parameters)[0].verdict == "reproduced in part"


def test_pairs_compare_the_functions_with_all_else_equal() -> None:
    row = study.table_phi(made({"spbm": [0.2, 0.3, 0.5, 0.4, 0.1, -0.2], "ssl-alm": [0.6]})).iloc[0]
    assert (row.better, row.pairs, row["phi_QL lower in"]) == ("phi_QL", 2, 1)


def test_tables_and_prose_quote_the_runs(tables, parameters) -> None:
    counts = study.table_counts(tables)
    assert counts.trained.to_list() == [16, 16, 2, 2] and counts.grid.to_list() == [360, 100, 384, 360]
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    first = counts.iloc[0]
    assert facts["fairness_spbm_feasible"] == f"{first.feasible} of 16 ({first.feasible / 16:.0%})"
    for word in ("Adult", "3,000 of 32,561", "16 of 360 SPBM", "Helmholtz", "profile smoke", "variant"):
        assert word in facts["setting"]
    best = study.table_best(tables).set_index(["experiment", "method"])
    assert best["the paper's"]["E2", "SPBM"] == "lr 0.005, ql, gamma 0.9, adapt, kappa 0.9, mu 2"
    assert best["the paper's"]["E6", "SPBM"] == "lr 0.01, ql, gamma 0.1, alm, rho 2, mu 0"
    factors = study.table_factors(tables, "E2", "spbm")
    assert factors.groupby("factor").entries.sum().eq(16).all()


def test_what_is_not_at_hand_is_left_out_and_said(monkeypatch, tables, parameters) -> None:
    monkeypatch.setattr(experiments, "at_hand", lambda name: name == "adult")
    quick = study.Parameters(profile="quick").resolved()
    assert quick.experiment == ("E2", "E6")
    assert "E3: Dutch Census 2001" in study.facts(tables, quick)["absent"]


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"experiment": "E9"}, "E9"),
        ({"experiment": "E2,E2"}, "experiment"),
        ({"methods": "ssw"}, "ssl-alm"),
        ({"configurations": "1"}, "configurations"),
        ({"steps": "10"}, "steps"),
        ({"first": "4", "last": "4"}, "last"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_a_first_entry_beyond_every_grid_is_refused(parameters) -> None:
    with pytest.raises(ArgumentError, match="first"):
        study.units(dataclasses.replace(parameters, first=5000))


def test_the_figure_draws_the_profiles(tables, parameters) -> None:
    figure = study.figure_profiles(tables, parameters)
    table = study.scores(tables)
    assert len(figure.axes) == 4
    for ax, counted in ((figure.axes[0], False), (figure.axes[2], True)):
        line = next(line for line in ax.lines if line.get_label() == "SPBM")
        assert line.get_ydata()[-1] == pytest.approx(study.profile(table, "fairness", counted=counted).at(1.0)["spbm"])


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["profiles", "configurations"])
def test_image_robustness(name: str) -> Figure:
    losses = {
        "spbm": [0.20, 0.21, 0.25, 0.4, -0.1, -0.12, -0.15, 0.5],
        "ssl-alm": [0.22, 0.3, 0.5, 0.6, 0.7, 0.8, 0.65, 0.9],
    }
    return getattr(study, f"figure_{name}")(made(losses), study.Parameters(profile="smoke"))
