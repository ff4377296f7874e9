"""Performance and data profiles against their definitions, on tables small enough to read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront.errors import ArgumentError
from fairfront.plotting import METHODS, Mark, draw_profile, panels
from fairfront.studies.profiles import cost_to_reach, data_profile, performance_profile

COSTS = pd.DataFrame({"a": [1.0, 4.0, np.inf, 2.0], "b": [2.0, 1.0, 3.0, np.nan]})


def test_shares_follow_the_definition() -> None:
    profile = performance_profile(COSTS)
    assert profile.at(1).to_dict() == {"a": 0.5, "b": 0.5}
    assert profile.at(2).to_dict() == {"a": 0.5, "b": 0.75}
    assert profile.at(3.99).to_dict() == {"a": 0.5, "b": 0.75}
    assert profile.at(4).to_dict() == {"a": 0.75, "b": 0.75} == profile.solved.to_dict()


def test_a_share_is_reached_at_the_smallest_factor() -> None:
    profile = performance_profile(COSTS)
    assert profile.reaches(0.5).to_dict() == {"a": 1.0, "b": 1.0}
    assert profile.reaches(0.75).to_dict() == {"a": 4.0, "b": 2.0}
    assert profile.reaches(0.76).to_dict() == {"a": np.inf, "b": np.inf}
    with pytest.raises(ArgumentError, match="share"):
        profile.reaches(0.0)


def test_dropped_failures_leave_the_share_of_what_was_solved() -> None:
    profile = performance_profile(COSTS, failures="dropped")
    assert profile.solved.to_dict() == {"a": 1.0, "b": 1.0}
    assert profile.at(1)["a"] == pytest.approx(2 / 3)
    nothing = performance_profile({"a": [1.0], "b": [np.inf]}, failures="dropped")
    assert nothing.solved.to_dict() == {"a": 1.0, "b": 0.0}


def test_configurations_of_one_problem_are_compared_with_one_best() -> None:
    profile = performance_profile({"a": [1.0, 2.0, 8.0], "b": [np.inf, 4.0]}, best=1.0)
    assert profile.at(4).to_dict() == {"a": pytest.approx(2 / 3), "b": 0.5}


def test_a_problem_that_nobody_solves_counts_for_all() -> None:
    profile = performance_profile({"a": [1.0, np.inf], "b": [1.0, np.nan]})
    assert profile.solved.to_dict() == {"a": 0.5, "b": 0.5}


def test_corners_are_the_step_functions() -> None:
    steps = performance_profile(COSTS).steps(end=10.0)
    mine = steps[steps.solver == "a"]
    assert mine.x.tolist() == [1.0, 4.0, 10.0] and mine.share.tolist() == [0.5, 0.75, 0.75]


@given(st.lists(st.tuples(*[st.one_of(st.just(np.inf), st.floats(1e-3, 1e3))] * 3), min_size=1, max_size=12))
def test_profiles_rise_from_the_share_of_wins_to_the_share_solved(rows: list[tuple[float, ...]]) -> None:
    costs = pd.DataFrame(rows, columns=["a", "b", "c"])
    profile = performance_profile(costs)
    best = costs.min(axis=1)
    solved = np.isfinite(best)
    for solver in costs:
        assert profile.at(1)[solver] == ((costs[solver] == best) & solved).mean()
        assert profile.solved[solver] == np.isfinite(costs[solver]).mean()
        steps = profile.steps().query("solver == @solver")
        assert (steps.x.diff().dropna() > 0).all() and (steps.share.diff().dropna() >= 0).all()
        for x, share in zip(steps.x, steps.share, strict=True):
            assert share == profile.at(x)[solver]
    assert profile.at(1).sum() >= solved.mean() - 1e-12


def test_a_data_profile_counts_simplex_gradients() -> None:
    profile = data_profile({"a": [6.0, 4.0, np.inf]}, dimensions=[2, 1, 5])
    assert profile.at(1.9)["a"] == 0.0
    assert profile.at(2)["a"] == pytest.approx(2 / 3) and profile.begin == 0.0


def test_the_cost_is_that_of_the_first_value_that_is_low_enough() -> None:
    assert cost_to_reach([3.0, 1.0, 2.0, 0.5], [1, 2, 3, 4], 1.0) == 2.0
    assert cost_to_reach([3.0, 2.0], [1, 2], 1.0) == np.inf
    with pytest.raises(ArgumentError, match="costs"):
        cost_to_reach([3.0, 2.0], [1], 1.0)


@pytest.mark.parametrize(
    ("costs", "options", "name"),
    [
        ({}, {}, "costs"),
        ({"a": []}, {}, "costs"),
        ({"a": [0.0, 1.0]}, {}, "positive"),
        ({"a": [1.0, 2.0], "b": [1.0]}, {}, "equally many"),
        ({"a": [1.0, 2.0]}, {"best": [1.0]}, "best"),
        ({"a": [1.0, 2.0]}, {"best": 1.5}, "above a cost"),
        ({"a": [1.0]}, {"best": 0.0}, "positive"),
        ({"a": [1.0]}, {"failures": "forgotten"}, "failures"),
    ],
)
def test_what_is_no_table_of_costs_is_refused(costs: dict, options: dict, name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        performance_profile(costs, **options)


def test_bad_data_profiles_are_refused() -> None:
    with pytest.raises(ArgumentError, match="dimensions"):
        data_profile({"a": [1.0, 2.0]}, dimensions=[1])
    with pytest.raises(ArgumentError, match="negative"):
        data_profile({"a": [-1.0]}, dimensions=1)


def test_the_lines_drawn_are_the_corners() -> None:
    _, axes = panels(1, 1)
    marks = {"b": METHODS["spbm"], "a": Mark("A", "#000000", "x"), "absent": METHODS["ssw"]}
    steps = performance_profile(COSTS).steps()
    draw_profile(axes[0, 0], steps, marks)
    lines = {line.get_label(): line for line in axes[0, 0].lines}
    assert list(lines) == ["SPBM", "A"] and lines["A"].get_drawstyle() == "steps-post"
    np.testing.assert_allclose(lines["A"].get_xydata(), steps[steps.solver == "a"][["x", "share"]])
