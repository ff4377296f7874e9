"""Training: the named configurations, histories, resuming, and that the solved configuration leaves u = 0."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fairfront.constrained import SPBMParameters
from fairfront.errors import ArgumentError, DataError
from fairfront.pde.networks import nested_rows
from fairfront.pde.problems import EPSILON, PROBLEMS, problem
from fairfront.pde.training import METHODS, Configuration, configuration, configuration_names, train

SMALL: dict[str, Any] = {"hidden": 2, "width": 8, "batch": 900, "iterations": 12}


class Memory:
    """A checkpoint that keeps its bytes."""

    def __init__(self) -> None:
        self.content: bytes | None = None

    def read(self) -> bytes | None:
        return self.content

    def write(self, content: bytes) -> None:
        self.content = content


class Stopped(Exception):
    """An interruption."""


def stopping(after: int) -> Any:
    def progress(items: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == after:
                raise Stopped
            yield item

    return progress


@pytest.mark.parametrize(
    ("name", "equation", "method"), list(itertools.product(configuration_names(), PROBLEMS, METHODS))
)
def test_every_named_configuration_trains_and_reports(name: str, equation: str, method: str) -> None:
    settings = configuration(name, equation, method, **SMALL)
    assert (settings.base, settings.points) == (("adam", "grid") if name == "paper" else ("soap", "resampled"))
    result = train(equation, method, settings, seed=1, evaluate_every=5)
    assert result.history["iteration"].tolist() == [5, 10, 12]
    assert result.history["epoch"].tolist() == pytest.approx([5 / 3, 10 / 3, 4])  # 2601 points in batches of 900
    last = result.history.iloc[-1]
    final = problem(equation).evaluate(result.network)
    assert final == result.evaluation
    assert last["loss"] == final.loss and last["relative_l2"] == final.relative_l2
    assert last["max_violation"] == pytest.approx(max(final.deviations.values()) - EPSILON)
    assert last["collapsed"] == final.collapse.collapsed and last["feasible"] == final.feasible()
    assert result.conditions["condition"].tolist() == list(problem(equation).names) * 3
    assert result.conditions["deviation"].tolist()[-len(final.deviations) :] == list(final.deviations.values())
    assert result.conditions["penalty"].isna().all() == (method != "spbm")
    report = result.report
    assert report.objective == pytest.approx(final.loss, rel=1e-5) and report.constraints == len(final.deviations)
    assert report.max_constraint == pytest.approx(final.max_violation / settings.scale, rel=1e-4)
    assert report.feasible == final.feasible() and report.skipped == 0
    assert report.lambda_max == pytest.approx(result.conditions["multiplier"].tail(report.constraints).max())
    if report.lambda_max == 0:
        assert report.stationarity == pytest.approx(report.gradient) and report.complementarity == 0
    assert np.isfinite(result.history.select_dtypes("number").drop(columns="prediction_ratio")).all(axis=None)


def test_the_report_s_gradients_are_those_of_nested_differentiation() -> None:
    settings = configuration("solved", "klein_gordon", "spbm", **SMALL)
    result, equation = train("klein_gordon", "spbm", settings, dtype=torch.float64), problem("klein_gordon")
    grid, edges = equation.grid(dtype=torch.float64), equation.condition_points(dtype=torch.float64)
    lagrangian = equation.equation_residual(grid, nested_rows(result.network, grid, equation.operator)).square().mean()
    multipliers = result.conditions["multiplier"].tail(3).to_list()
    for condition, at, multiplier in zip(equation.conditions, edges, multipliers, strict=True):
        rows = nested_rows(result.network, at, equation.operator)
        found = rows.u if condition.derivative is None else rows.u_1
        lagrangian = lagrangian + multiplier * (found - condition.target(at)).square().mean() / settings.scale
    gradients = torch.autograd.grad(lagrangian, list(result.network.parameters()))
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert result.report.stationarity == pytest.approx(float(norm), rel=1e-9)


def test_the_paper_s_configuration_is_that_of_its_appendix() -> None:
    six = configuration("paper", "helmholtz", "spbm")
    assert isinstance(six.parameters, SPBMParameters) and (six.hidden, six.width, six.epoch) == (8, 64, 3)
    assert six.iterations == 6000 * six.epoch and six.batch == 1000 and six.scale == 1.0
    assert (six.lr, six.parameters.gamma, six.parameters.rule, six.parameters.rho) == (0.01, 0.1, "alm", 2.0)
    rates = {
        (equation, method): configuration("paper", equation, method).lr
        for equation, method in itertools.product(PROBLEMS, METHODS)
    }
    by_method = {method: [rates[equation, method] for equation in PROBLEMS] for method in METHODS}
    assert by_method == {
        "spbm": [0.01, 0.005, 0.005],
        "ssl-alm": [0.01, 0.005, 0.005],
        "ssw": [0.01, 0.005, 0.001],
        "adam-reg": [0.005, 0.05, 0.001],
    }


def test_another_length_keeps_what_is_slow_in_proportion() -> None:
    solved = configuration("solved", "helmholtz", "spbm")
    shorter = solved.over(600)
    assert shorter.iterations == 600
    assert (shorter.parameters.gamma, shorter.parameters.kappa) == pytest.approx((0.9, 1 - 1 / 80))  # 200 steps of 1500
    assert solved.over(8).parameters.kappa == pytest.approx(0.9)
    assert solved.over(solved.iterations) == solved
    longer = solved.over(3000)
    assert (longer.parameters.gamma, longer.parameters.kappa) == pytest.approx((0.9, 1 - 1 / 400))
    paper = configuration("paper", "helmholtz", "spbm")
    assert paper.over(600).parameters == paper.parameters  # gamma = 0.1 forgets in a step or two
    dual = configuration("paper", "helmholtz", "ssl-alm")
    assert dual.over(600).parameters.eta == pytest.approx(30 * dual.parameters.eta)
    shifted = configuration("solved", "helmholtz", "ssl-alm")
    assert shifted.over(8).parameters.eta == shifted.parameters.rho
    switching = configuration("solved", "helmholtz", "ssw")
    assert switching.over(600) == dataclasses.replace(switching, iterations=600)


@pytest.mark.parametrize(
    ("name", "equation", "method"),
    [("solved", "helmholtz", "spbm"), ("paper", "klein_gordon", "spbm"), ("solved", "burgers", "ssw")],
)
def test_an_interrupted_run_goes_on_to_the_same_numbers(name: str, equation: str, method: str) -> None:
    settings = configuration(name, equation, method, **SMALL)
    options: dict[str, Any] = {"seed": 2, "evaluate_every": 4, "checkpoint_every": 5}
    straight = train(equation, method, settings, **options)
    memory = Memory()
    with pytest.raises(Stopped):
        train(equation, method, settings, checkpoint=memory, progress=stopping(8), **options)
    shown: list[int] = []

    def count(items: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
        for item in items:
            shown.append(item)
            yield item

    resumed = train(equation, method, settings, checkpoint=memory, progress=count, **options)
    assert shown == [6, 7, 8, 9, 10, 11, 12]
    pd.testing.assert_frame_equal(straight.history, resumed.history)
    pd.testing.assert_frame_equal(straight.conditions, resumed.conditions)
    for a, b in zip(straight.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(a, b)
    # A finished run is not repeated.
    again = train(equation, method, settings, checkpoint=memory, progress=stopping(0), **options)
    pd.testing.assert_frame_equal(straight.history, again.history)


def test_a_checkpoint_of_another_run_or_of_none_is_refused() -> None:
    settings = configuration("solved", "burgers", "spbm", **SMALL)
    memory = Memory()
    train("burgers", "spbm", settings, checkpoint=memory)
    with pytest.raises(ArgumentError, match="checkpoint: is of another run: other seed"):
        train("burgers", "spbm", settings, seed=7, checkpoint=memory)
    with pytest.raises(ArgumentError, match="other settings"):
        train("burgers", "spbm", dataclasses.replace(settings, lr=0.1), checkpoint=memory)
    memory.content = b"no checkpoint"
    with pytest.raises(DataError, match="checkpoint: cannot be read"):
        train("burgers", "spbm", settings, checkpoint=memory)


def test_seeds_differ_and_repeat() -> None:
    settings = configuration("solved", "burgers", "spbm", **SMALL)
    first, second, other = (train("burgers", "spbm", settings, seed=seed).history for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, second)
    assert first["loss"].iloc[-1] != other["loss"].iloc[-1]


def test_the_grid_is_passed_over_without_repetition() -> None:
    from fairfront.pde.training import _Run

    run = _Run(problem("burgers"), configuration("paper", "burgers", "spbm"), 0, torch.float32)
    batches = [run.points() for _ in range(6)]
    assert [len(batch) for batch in batches] == [1000, 1000, 601] * 2
    for part in (batches[:3], batches[3:]):
        assert len(torch.unique(torch.cat(part), dim=0)) == 2601
    assert not torch.equal(batches[0], batches[3])


def test_the_solved_configuration_leaves_the_trivial_solution() -> None:
    settings = configuration("solved", "helmholtz", "spbm", batch=300, iterations=400)
    solved = train("helmholtz", "spbm", settings, seed=1, evaluate_every=1000).evaluation
    assert not solved.collapse and solved.loss < 6684.13 / 10 and solved.relative_l2 < 0.5


def test_the_paper_s_configuration_falls_to_the_trivial_solution_at_first() -> None:
    paper = train("helmholtz", "spbm", "paper", iterations=100, evaluate_every=1000).evaluation
    assert paper.collapse and paper.loss == pytest.approx(6684.13, rel=0.01)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="configuration: unknown"):
        configuration("papers", "burgers", "spbm")
    with pytest.raises(ArgumentError, match="did you mean burgers"):
        configuration("paper", "burger", "spbm")
    with pytest.raises(ArgumentError, match="method: unknown: 'adam'"):
        train("burgers", "adam")
    with pytest.raises(ArgumentError, match="did you mean iterations"):
        configuration("paper", "burgers", "spbm", iteration=3)
    with pytest.raises(ArgumentError, match="settings: are of SPBMParameters"):
        train("burgers", "ssw", configuration("paper", "burgers", "spbm"))
    for changes in ({"iterations": 0}, {"batch": 1.5}, {"lr": 0.0}, {"scale": float("inf")}, {"base": "sgd"}):
        with pytest.raises(ArgumentError, match=next(iter(changes))):
            configuration("paper", "burgers", "spbm", **changes)
    with pytest.raises(ArgumentError, match="points"):
        configuration("paper", "burgers", "spbm", points="sobol")
    with pytest.raises(ArgumentError, match="evaluate_every"):
        train("burgers", evaluate_every=0)
    with pytest.raises(ArgumentError, match="parameters"):
        Configuration(parameters={"gamma": 0.1}, lr=0.1, iterations=1)  # type: ignore[arg-type]
