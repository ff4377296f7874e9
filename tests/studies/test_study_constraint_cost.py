"""The study of what a constraint costs: tables, ratios and verdicts from times that are given. No time is asserted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from benchmarks.record import cases, judged
from matplotlib.figure import Figure

from fairfront.datasets.records import benchmark_records
from fairfront.errors import ArgumentError
from fairfront.plotting import METHODS
from fairfront.runs.progress import quiet
from fairfront.studies import constraint_cost as study
from fairfront.studies.parameters import parse

ORDER = ["adam", "adam-reg", "spbm", "ssl-alm", "ssw"]


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke", groups=(2, 7), rounds=2, hidden=(8,), features=3).resolved()


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def timed(factors: dict[str, float], growth: float = 0.0, rounds: int = 40) -> dict[str, pd.DataFrame]:
    """Return tables of made-up times: a method takes its factor of a millisecond, times what the round is like."""
    generator = np.random.default_rng(0)
    busy = np.where(generator.random(rounds) < 0.3, 5.0, 1.0)
    rows = [
        (groups, groups * (groups - 1), method, number, busy[number] * seconds * slower * 1e-3, 1.0)
        for (groups, slower), (method, seconds), number in itertools.product(
            ((11, 1.0), (100, 1.0 + growth)), factors.items(), range(rounds)
        )
    ]
    machine = {"cores": 2, "load before": 1.0, "load after": 1.5, "torch": "2", "weights": 58_852}
    names = ["groups", "m", "method", "round", "seconds", "wall"]
    return {"times": pd.DataFrame(rows, columns=names), "machine": pd.DataFrame([machine])}


PAPERS = {"adam": 0.95, "adam-reg": 1.0, "spbm": 1.23, "ssl-alm": 1.08, "ssw": 1.07}


def test_every_method_is_timed_in_every_round_and_in_turn(tables) -> None:
    times = tables["times"]
    assert set(times.m) == {2, 42} and (times.seconds >= 0).all() and (times.wall > 0).all()
    first, second = (times[times["round"] == number] for number in (0, 1))
    forwards = list(itertools.product((2, 7), ORDER))
    assert list(zip(first.groups, first.method, strict=True)) == forwards
    assert list(zip(second.groups, second.method, strict=True)) == forwards[::-1]


def test_all_methods_step_on_the_same_problem(parameters) -> None:
    steps = study._steps(7, parameters)
    assert list(steps) == ORDER
    infos = {name: step() for name, step in steps.items()}
    losses = [float(info.loss) for name, info in infos.items() if name != "adam"]
    assert losses == pytest.approx([losses[0]] * 4)
    assert all(info.constraints.numel() in (42, 49) for name, info in infos.items() if name != "adam")


def test_the_gradient_through_r_numbers_is_that_through_all_gaps() -> None:
    for groups in (2, 5, 100):
        check = study.check_gradient(groups, seed=groups)
        assert check.holds and check.cases == groups * (groups - 1)


def test_ratios_are_medians_within_rounds() -> None:
    made = timed(PAPERS)
    ratios = study.table_ratios(made)
    for name, factor in PAPERS.items():
        assert ratios[METHODS[name].label].to_list() == pytest.approx([factor] * 2)
    seconds = study.table_seconds(made)
    assert seconds[METHODS["spbm"].label].to_list() == pytest.approx([125 * 1.23e-3] * 2)
    assert seconds.m.to_list() == [110, 9900]


def test_claims_are_judged_by_the_times() -> None:
    full = study.Parameters(profile="full")
    found = {m.claim: m.verdict for m in study.measure(timed(PAPERS), full)}
    assert found == {
        "spbm-runtime-13": "reproduced",
        "spbm-runtime-flat": "reproduced",
        "spbm-table3": "reproduced in part",  # another network on another machine
    }
    slow = {m.claim: m for m in study.measure(timed(PAPERS | {"spbm": 1.4}), full)}
    assert slow["spbm-runtime-13"].verdict == "reproduced in part" and "SPBM" in slow["spbm-runtime-13"].reason
    assert slow["spbm-table3"].verdict == "not reproduced"
    none = study.measure(timed(PAPERS | {"spbm": 1.4, "ssl-alm": 1.4, "ssw": 1.4}), full)
    assert none[0].verdict == "not reproduced"
    grown = {m.claim: m for m in study.measure(timed(PAPERS, growth=0.2), full)}
    assert grown["spbm-runtime-flat"].verdict == "not reproduced" and "20%" in grown["spbm-runtime-flat"].measured
    assert grown["spbm-runtime-13"].verdict == "reproduced"
    few = study.measure(timed(PAPERS, rounds=4), full)
    assert {m.verdict for m in few} == {"not testable"} and all("4 rounds" in m.reason for m in few)
    alone = timed(PAPERS)
    alone["times"] = alone["times"].query("groups == 100")
    assert {m.claim: m.verdict for m in study.measure(alone, full)}["spbm-runtime-flat"] == "not testable"


def test_few_constraints_are_not_testable(tables, parameters) -> None:
    found = study.measure(tables, parameters)
    assert {m.verdict for m in found} == {"not testable"}
    assert all("at most 42 constraints" in m.reason for m in found)


def test_recorded_ratios_are_those_of_the_records() -> None:
    peers, suite = study.table_peers(), {case["name"]: case for case in cases()}
    records = benchmark_records("constrained")
    assert set(peers.m) == {30, 306, 992, 9900} and len(records) == 4
    for record in records:
        figures = record["figures"]
        assert record["targets"] == judged(suite[record["name"]], figures)
        mine = peers[peers.m == figures["m"]].set_index("method")
        assert mine.loc["ours, SPBM compiled", "us a step"] == figures["ours_us"]
        assert mine.loc["ours, SPBM compiled"].iloc[2] == pytest.approx(figures["ratio_stock_adam"])
        assert mine.loc["ours, SPBM"].iloc[3] == pytest.approx(figures["ratio_penalized_adam"])
        for name, peer in figures["peers"].items():
            assert mine.loc[name, "us a step"] == peer["us"]


def test_cases_of_a_suite_are_all_combinations() -> None:
    names = [case["name"] for case in cases()]
    assert len(names) == len(set(names))
    assert {f"{e} solved spbm seed {s}" for e in ("E6", "E7", "E8") for s in range(5)} <= set(names)
    assert all("{" not in case["name"] + case["arguments"] for case in cases())


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "profile smoke" in facts["setting"] and "synthetic" in facts["setting"]
    assert facts["m_most"] == "42" and facts["recorded_m"] == "9,900"


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"groups": "1"}, "groups"),
        ({"groups": "5,5"}, "groups"),
        ({"rounds": "0"}, "rounds"),
        ({"hidden": "0"}, "hidden"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_figures_draw_the_tables(parameters) -> None:
    made = timed(PAPERS)
    figure = study.figure_runtime(made, parameters)
    lines = {line.get_label(): line for line in figure.axes[1].lines}
    assert lines["SPBM"].get_ydata() == pytest.approx([1.23, 1.23])
    peers = study.figure_peers(made, parameters)
    drawn = {line.get_label(): line for line in peers.axes[0].lines}
    mine = study.table_peers()
    mine = mine[mine.method == "ours, SPBM"]
    assert list(drawn["ours, SPBM"].get_xdata()) == list(mine.m)
    assert math.isclose(drawn["ours, SPBM"].get_ydata()[0], mine.iloc[0, 3])


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
def test_image_constraint_cost(parameters) -> Figure:
    return study.figure_runtime(timed(PAPERS), parameters)
