"""The study of E6 to E8: its runs as parts, tables, comparison with Table 2, verdicts, the records and the figures."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from benchmarks.pinn_runs import trained
from matplotlib.figure import Figure

from fairfront import pde
from fairfront.datasets.records import benchmark_records
from fairfront.errors import ArgumentError
from fairfront.runs.progress import quiet
from fairfront.studies import pinn_benchmark as study
from fairfront.studies.parameters import parse

COLUMNS = [
    "experiment",
    "method",
    "configuration",
    "seed",
    "epoch",
    "loss",
    "max_violation",
    "relative_l2",
    "collapsed",
]


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", iterations=3, evaluations=1, experiment=("E6", "E7")).resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    parts = [study.run(unit, quiet) for unit in study.units(parameters)]
    return {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}


@pytest.fixture(scope="module")
def papers() -> dict[str, pd.DataFrame]:
    """Tables as the paper's own numbers would make them: five seeds, four methods, all its steps."""
    runs, conditions = [], []
    for experiment, rows in study.TABLE_2.items():
        names = pde.problem(pde.EXPERIMENTS[experiment]).names
        for method, (loss, violation, _) in rows.items():
            for seed in range(5):
                words = (experiment, method, "paper", "none", seed)
                key = dict(zip(("experiment", "method", "configuration", "change", "seed"), words, strict=True))
                collapsed = experiment == "E6" and loss > 1000
                runs.append({**key, "steps": 18_000, "epoch": 6000.0, "loss": loss, "collapsed": collapsed})
                conditions += [
                    {**key, "epoch": 6000.0, "condition": name, "deviation": 1e-4 + violation} for name in names
                ]
    return {"runs": pd.DataFrame(runs), "conditions": pd.DataFrame(conditions)}


def test_the_main_table_is_what_was_promised(tables) -> None:
    assert next(iter(tables)) == "history"
    history = tables["history"]
    assert list(history.columns) == COLUMNS
    assert history.groupby(["experiment", "configuration"], sort=False).size().to_dict() == {
        ("E6", "paper"): 1,
        ("E6", "solved"): 1,
        ("E7", "paper"): 1,
        ("E7", "solved"): 1,
    }
    assert history.collapsed.dtype == bool and np.isfinite(history.loss).all()


def test_the_parts_are_single_runs_and_make_the_whole() -> None:
    whole = study.Parameters(profile="full").resolved()
    parts = study.units(whole)
    assert len(parts) == len(set(parts)) == 3 * 2 * 4 * 5 + 5
    assert all(study.units(part) == (part,) for part in parts)
    single = [(p.experiment, p.methods, p.configuration, p.change, p.seeds) for p in parts]
    assert all(len(values) == 1 for key in single for values in key)
    changed = [p for p in parts if p.change != ("none",)]
    assert {(p.experiment[0], p.change[0]) for p in changed} == {
        ("E6", "primal"),
        ("E7", "primal"),
        ("E8", "primal"),
        ("E6", "scale"),
        ("E7", "points"),
    }
    assert all((p.methods, p.configuration, p.seeds) == (("spbm",), ("solved",), (0,)) for p in changed)
    assert sum(p.maps for p in parts) == 3 * 2 * 4 + 5  # of the first seed


def test_a_part_alone_gives_the_same_as_with_the_others(tables, parameters) -> None:
    part = next(p for p in study.units(parameters) if p.experiment == ("E7",) and p.configuration == ("solved",))
    again = study.run(part, quiet)
    mine = tables["runs"].query("experiment == 'E7' and configuration == 'solved' and change == 'none'")
    pd.testing.assert_frame_equal(again["runs"], mine.reset_index(drop=True))


def test_runs_are_those_of_the_training(tables) -> None:
    result = pde.train("helmholtz", "spbm", study.settings("E6", "paper", "spbm", iterations=3), seed=0)
    row = tables["runs"].query("experiment == 'E6' and configuration == 'paper'").iloc[0]
    assert row.loss == result.evaluation.loss and row.relative_l2 == result.evaluation.relative_l2
    assert row.max_violation == pytest.approx(result.evaluation.max_violation)
    mesh = tables["fields"].query("experiment == 'E6' and configuration == 'paper'")
    assert len(mesh) == 101 * 101
    error = np.linalg.norm(mesh.u - mesh.exact) / np.linalg.norm(mesh.exact)
    assert error == pytest.approx(row.relative_l2, rel=1e-3)


def test_the_seed_shifts_all_seeds() -> None:
    chosen = {"iterations": 1, "experiment": ("E6",), "configuration": ("paper",), "change": ("none",), "maps": False}
    shifted, plain = (
        study.run(study.Parameters(profile="smoke", seed=a, seeds=(b,), **chosen), quiet)["runs"]
        for a, b in ((1, 1), (0, 2))
    )
    assert shifted.seed.to_list() == [2]
    pd.testing.assert_frame_equal(shifted, plain)


def test_what_is_taken_away_is_that_and_nothing_else() -> None:
    whole = study.settings("E6", "solved", "spbm")
    assert dataclasses.replace(study.settings("E6", "solved", "spbm", "primal"), base="soap") == whole
    assert dataclasses.replace(study.settings("E6", "solved", "spbm", "points"), points="resampled") == whole
    bare = study.settings("E6", "solved", "spbm", "scale")
    assert (bare.scale, bare.parameters.penalty_min, bare.parameters.lambda_max) == (1.0, 0.01, 100.0)
    assert dataclasses.replace(bare, scale=whole.scale, parameters=whole.parameters) == whole
    assert study.settings("E6", "solved", "spbm", iterations=600) == whole.over(600)


def test_the_paper_s_own_numbers_would_be_reproduced(papers) -> None:
    compared = study.table_paper(papers)
    assert len(compared) == 12 and compared.agrees.all()
    verdicts = {m.claim: m.verdict for m in study.measure(papers, study.Parameters(profile="full"))}
    assert verdicts == {
        "spbm-table2-e6": "reproduced",
        "spbm-table2-e7": "reproduced",
        "spbm-table2-e8": "reproduced",
        "spbm-t2-e8": "reproduced in part",  # E1 to E3 are another chapter's
    }


def test_other_numbers_are_not(papers) -> None:
    worse = {name: frame.copy() for name, frame in papers.items()}
    worse["runs"]["loss"] = worse["runs"].loss * 10 + 10
    found = {m.claim: m for m in study.measure(worse, study.Parameters(profile="full"))}
    assert {m.verdict for name, m in found.items() if "table2" in name} == {"not reproduced"}
    one = {name: frame.copy() for name, frame in papers.items()}
    one["runs"].loc[(one["runs"].experiment == "E6") & (one["runs"].method == "spbm"), "loss"] = 0.05
    first = study.measure(one, study.Parameters(profile="full"))[0]
    assert first.verdict == "reproduced in part" and "SPBM: 0.05" in first.reason
    violated = {name: frame.copy() for name, frame in papers.items()}
    mine = (violated["conditions"].experiment == "E8") & (violated["conditions"].method == "spbm")
    violated["conditions"].loc[mine, "deviation"] = 0.5
    last = study.measure(violated, study.Parameters(profile="full"))[-1]
    assert "violates its conditions more" in last.reason


def test_short_runs_and_few_seeds_are_said(papers) -> None:
    short = {name: frame.copy() for name, frame in papers.items()}
    short["runs"]["steps"] = 600
    short = {name: frame[frame.seed == 0] for name, frame in short.items()}
    found = study.measure(short, study.Parameters(profile="quick"))
    assert {m.verdict for m in found} == {"reproduced in part"}
    assert all("600 of 18,000 steps" in m.reason and "1 of 5 seeds" in m.reason for m in found)
    alone = {name: frame[frame.method == "spbm"] for name, frame in short.items()}
    assert study.measure(alone, study.Parameters(profile="quick"))[-1].verdict == "not testable"


def test_a_few_steps_are_not_testable(tables, parameters) -> None:
    found = study.measure(tables, parameters)
    assert [m.claim for m in found] == ["spbm-table2-e6", "spbm-table2-e7"]
    assert {m.verdict for m in found} == {"not testable"} and "3 of 18,000 steps" in found[0].reason


def test_collapsed_seeds_make_the_papers_mean() -> None:
    trivial = study.trivial_loss("E6")
    assert trivial == pytest.approx((17 * math.pi**2 - 1) ** 2 * (25 / 51) ** 2)
    assert 3 / 5 * trivial == pytest.approx(study.TABLE_2["E6"]["spbm"][0], rel=1e-4)
    assert 4 / 5 * trivial == pytest.approx(study.TABLE_2["E6"]["ssl-alm"][0], rel=1e-4)


def test_nothing_but_the_last_layer_is_seen_at_zero() -> None:
    plateau = study.table_plateau(seeds=1)
    assert (plateau[["hidden layers", "condition, all"]] == 0).all(axis=None)
    assert (plateau["last layer's bias"] < 1e-10).all()
    torch_start, xavier = plateau["last layer's weights"]
    assert torch_start > 1e-3 and xavier < 1e-10


def test_the_records_are_of_full_length_and_judged() -> None:
    own = {"paper": 18_000, "solved": 1_500}
    for record in benchmark_records("pinn"):
        figures = record["figures"]
        assert figures["iterations"] == own[figures["configuration"]]
        assert record["command"].startswith("python -m benchmarks.pinn_runs --experiment")
        assert figures["loss"] == pytest.approx(figures["history"]["loss"][-1], rel=1e-3)
        for row in record["targets"]:
            assert row["measured"] == figures[row["key"]] and row["met"] == (row["measured"] <= row["target"])
        assert figures["feasible"] == (figures["max_violation"] <= 0.1 * pde.EPSILON)
    recorded = study.table_recorded()
    assert len(recorded) == len(benchmark_records("pinn"))


def test_a_record_is_what_the_training_gives() -> None:
    figures = trained("E6", "solved", "spbm", 1, iterations=2)
    result = pde.train("helmholtz", "spbm", study.settings("E6", "solved", "spbm", iterations=2), seed=1)
    assert figures["loss"] == result.evaluation.loss and figures["collapsed"] == bool(result.evaluation.collapse)
    assert figures["history"]["epoch"][-1] == pytest.approx(2 / 3, rel=1e-4)


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "profile smoke" in facts["setting"] and "3 steps" in facts["setting"] and "Helmholtz" in facts["setting"]
    assert facts["E8_paper"] == "(not run at these parameters)"
    reached = study.table_recorded().query("experiment == 'E6' and configuration == 'solved' and method == 'SPBM'")
    reached = reached[reached.change == "nothing changed"]
    met = int(((reached.relative_l2 <= 0.05) & reached.feasible).sum())
    assert facts["target_E6"] == f"{met} of {len(reached)}"


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"experiment": "E5"}, "experiment"),
        ({"experiment": "E6,E6"}, "experiment"),
        ({"methods": "adam"}, "methods"),
        ({"configuration": "solve"}, "configuration"),
        ({"change": "nothing"}, "change"),
        ({"iterations": "0"}, "iterations"),
        ({"seeds": "-1"}, "seeds"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_a_change_that_is_tried_on_none_of_the_runs_is_refused() -> None:
    asked = parse(study.Parameters, {"profile": "smoke", "change": "primal", "configuration": "paper"}).resolved()
    with pytest.raises(ArgumentError, match=r"^change: no run: primal .*solved configuration, primal on E6, E7, E8"):
        study.units(asked)


def test_figures_draw_the_tables(tables, parameters) -> None:
    convergence = study.figure_convergence(tables, parameters)
    lines = {line.get_label(): line for line in convergence.axes[0].lines}
    paper = tables["history"].query("experiment == 'E6' and configuration == 'paper'")
    assert list(lines["SPBM, paper"].get_ydata()) == list(paper.loss)
    deviation = next(line for line in convergence.axes[2].lines if line.get_label() == "SPBM, paper")
    assert deviation.get_ydata() == pytest.approx(paper.max_violation + pde.EPSILON)
    maps = study.figure_maps(tables, parameters, "solved")
    shown = np.asarray(maps.axes[1].images[0].get_array())
    mine = tables["fields"].query("experiment == 'E6' and configuration == 'solved'")
    assert shown.T.ravel() == pytest.approx(mine.u.to_numpy())
    shock = study.figure_shock(tables, parameters)
    widths = [bar.get_width() for bar in shock.axes[1].patches]
    assert widths == list(study.table_ablations(tables).relative_l2)
    nothing = study.figure_maps(tables, parameters, "neither")
    assert not any(ax.images for ax in nothing.axes)


def test_the_recorded_figure_draws_the_records(tables, parameters) -> None:
    figure = study.figure_recorded(tables, parameters)
    for column, experiment in enumerate(study.EQUATIONS):
        mine = [
            record["figures"]
            for record in benchmark_records("pinn")
            if (record["figures"]["experiment"], record["figures"]["change"]) == (experiment, "none")
        ]
        ends = [line for line in figure.axes[3 + column].lines if line.get_label()[0] != "_"]
        assert [line.get_ydata()[0] for line in ends] == [end["relative_l2"] for end in mine]


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
def test_image_pinn_maps(tables, parameters) -> Figure:
    return study.figure_maps(tables, parameters, "solved")
