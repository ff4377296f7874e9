"""The equations: their exact solutions, conditions, losses, and what counts as collapsed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import loadmat
from torch import Tensor

from fairfront.errors import ArgumentError
from fairfront.pde.networks import Rows, TanhNetwork, nested_rows
from fairfront.pde.problems import EPSILON, PROBLEMS, Evaluation, Problem, collapse, problem

EVERY = pytest.mark.parametrize("equation", PROBLEMS.values(), ids=PROBLEMS)


class Function:
    """A function of points as a solution, its rows by nested differentiation."""

    def __init__(self, function: object) -> None:
        self.function = function

    def __call__(self, at: Tensor) -> Tensor:
        return self.function(at)  # type: ignore[operator, no-any-return]

    def rows(self, at: Tensor, operator: tuple[float, float], plain: Tensor | None = None) -> Rows:
        with torch.enable_grad():
            rows = nested_rows(self.function, at, operator)  # type: ignore[arg-type]
        return Rows(rows.u, rows.u_1, rows.u_2, rows.operator, rows.u[:0] if plain is None else self(plain))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@EVERY
def test_exact_solution_solves_the_equation_and_meets_its_conditions(equation: Problem) -> None:
    inside = equation.sample(300, generator(), dtype=torch.float64)
    truth = Function(equation.exact)
    assert float(equation.residual(truth, inside).abs().max().detach()) < 1e-11
    loss, deviations = equation.loss_and_deviations(truth, inside, equation.condition_points(dtype=torch.float64))
    assert float(loss.detach()) < 1e-22 and float(deviations.detach().max()) < 1e-24
    assert equation.relative_error(truth) == 0.0


@EVERY
def test_residual_tells_a_wrong_solution(equation: Problem) -> None:
    inside = equation.sample(100, generator(), dtype=torch.float64)
    wrong = Function(lambda at: equation.exact(at) + 0.1 * at[:, 0] * at[:, 1] ** 2)
    loss, deviations = equation.loss_and_deviations(wrong, inside, equation.condition_points(dtype=torch.float64))
    assert float(loss.detach()) > 1e-3 and float(deviations.detach().max()) > 1e-4


def test_burgers_agrees_with_the_published_reference() -> None:
    folder = os.environ.get("FAIRFRONT_DATA") or Path(__file__).parents[3] / "shared" / "data"
    path = Path(folder) / "pde" / "burgers_shock.mat"
    if not path.is_file():
        pytest.skip("the reference file is not at hand (FAIRFRONT_DATA)")
    held = loadmat(path)
    t, z = (torch.from_numpy(held[name][:, 0].copy()) for name in "tx")
    found = problem("burgers").exact(torch.cartesian_prod(t, z)).numpy().reshape(len(t), len(z)).T
    assert np.linalg.norm(found - held["usol"]) / np.linalg.norm(held["usol"]) < 1e-11


def test_burgers_is_odd_and_bounded_with_a_shock_at_the_middle() -> None:
    equation = problem("burgers")
    u = equation.exact(equation.grid((11, 401), dtype=torch.float64)).view(11, 401)
    torch.testing.assert_close(u, -u.flip(1), rtol=0, atol=1e-12)
    assert bool(torch.isfinite(u).all()) and float(u.abs().max()) <= 1.0
    assert float((u[5, 198] - u[5, 202]).abs()) > 1.0  # at t = 1/2 it falls by more than 1 within 0.02


def test_trivial_losses() -> None:
    assert problem("helmholtz").trivial_loss() == pytest.approx(6684.13, abs=0.005)
    assert problem("klein_gordon").trivial_loss() == pytest.approx(10391.43, abs=0.005)
    assert problem("burgers").trivial_loss() == 0.0


@EVERY
def test_points(equation: Problem) -> None:
    grid = equation.grid()
    assert grid.shape == (2601, 2) and len(torch.unique(grid, dim=0)) == 2601
    drawn = equation.sample(1000, generator(1))
    assert torch.equal(drawn, equation.sample(1000, generator(1)))
    for at in (grid, drawn):
        assert bool((at >= torch.tensor(equation.low)).all() and (at <= torch.tensor(equation.high)).all())
    counts = {"helmholtz": [200], "burgers": [51, 102], "klein_gordon": [51, 51, 102]}
    edges = equation.condition_points()
    assert [len(at) for at in edges] == counts[equation.name] and len(equation.names) == len(edges)
    low, high = torch.tensor(equation.low), torch.tensor(equation.high)
    assert all(bool(((at == low) | (at == high)).any(dim=1).all()) for at in edges)


@EVERY
def test_loss_and_deviations_by_hand(equation: Problem) -> None:
    net = TanhNetwork(2, 12, initialisation="xavier", dtype=torch.float64)
    inside, edges = (
        equation.sample(50, generator(), dtype=torch.float64),
        equation.condition_points(7, dtype=torch.float64),
    )
    loss, deviations = equation.loss_and_deviations(net, inside, edges)
    slow = nested_rows(net, inside, equation.operator)
    torch.testing.assert_close(loss, equation.equation_residual(inside, slow).square().mean())
    for condition, at, found in zip(equation.conditions, edges, deviations, strict=True):
        rows = nested_rows(net, at, (1.0, 1.0))
        value = rows.u if condition.derivative is None else (rows.u_1, rows.u_2)[condition.derivative]
        torch.testing.assert_close(found, (value - condition.target(at)).square().mean())
    assert equation.conditions[-1].derivative is None and (equation.name != "klein_gordon") == all(
        condition.derivative is None for condition in equation.conditions
    )
    with pytest.raises(ArgumentError, match="conditions: must be"):
        equation.loss_and_deviations(net, inside, edges[:-1])


def test_relative_error() -> None:
    equation = problem("helmholtz")
    assert equation.relative_error(lambda at: torch.zeros_like(at[:, 0])) == pytest.approx(1.0)
    assert equation.relative_error(lambda at: 1.03 * equation.exact(at)) == pytest.approx(0.03)
    at = equation.grid(5, dtype=torch.float64)[[7, 8, 12]] + 0.1
    assert equation.relative_error(lambda x: 2 * equation.exact(x), at) == pytest.approx(1.0)


@EVERY
def test_collapse_is_told_from_a_solution_and_from_any_other_failure(equation: Problem) -> None:
    net = TanhNetwork(2, 8)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    fallen = collapse(equation, net)
    assert fallen and fallen.prediction_ratio == 0.0
    trivial = equation.trivial_loss()
    assert np.isnan(fallen.loss_ratio) if trivial == 0 else fallen.loss_ratio == pytest.approx(1.0, rel=1e-5)
    truth = Function(equation.exact)
    assert not collapse(equation, truth)
    # A large wrong function, and a small one that does not have the trivial solution's loss.
    assert not collapse(equation, Function(lambda at: 2 + torch.sin(at).sum(1)))
    part = collapse(equation, Function(lambda at: 0.09 * equation.exact(at)))
    assert part.collapsed is (trivial == 0) and part.prediction_ratio == pytest.approx(0.09)
    if trivial:
        assert part.loss_ratio == pytest.approx(0.91**2, rel=0.01)
    assert not collapse(equation, Function(lambda at: 0.2 * equation.exact(at)))
    with pytest.raises(ArgumentError, match="tolerance"):
        collapse(equation, truth, tolerance=1.0)


@pytest.mark.parametrize(
    "equation", [PROBLEMS["helmholtz"], PROBLEMS["klein_gordon"]], ids=["helmholtz", "klein_gordon"]
)
def test_evaluation_of_the_exact_solution(equation: Problem) -> None:
    found = equation.evaluate(Function(equation.exact))
    assert found.loss < 1e-20 and found.relative_l2 == 0.0 and found.feasible() and not found.collapse
    assert found.max_violation == pytest.approx(-EPSILON, rel=1e-9) and tuple(found.deviations) == equation.names


def test_feasibility_has_a_tolerance_of_ten_per_cent() -> None:
    safe = collapse(problem("helmholtz"), Function(problem("helmholtz").exact))
    found = Evaluation(0.0, {"a": 0.5e-4, "b": 1.09e-4}, 0.0, safe)
    assert found.feasible() and not found.feasible(0.05) and found.max_violation == pytest.approx(0.09e-4)
    assert not Evaluation(0.0, {"a": 1.11e-4}, 0.0, safe).feasible()


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="did you mean helmholtz"):
        problem("helmholz")
    with pytest.raises(ArgumentError, match="n: must be at least 2"):
        problem("burgers").grid((1, 5))
    with pytest.raises(ArgumentError, match="n: must be at least 1"):
        problem("burgers").sample(0, generator())
