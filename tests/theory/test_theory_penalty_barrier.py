"""phi as printed and as implemented, the KKT point, PBM's rate, the reduction: checks that can fail."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fairfront.constrained import barriers
from fairfront.errors import ArgumentError
from fairfront.theory import penalty_barrier as theory

SYMBOLIC = (
    theory.vanishes_at_zero,
    theory.slope_at_zero,
    theory.joined,
    theory.increasing,
    theory.convex_and_bounded,
)


@pytest.mark.parametrize("name", barriers.names())
def test_printed_functions_have_every_property(name: str) -> None:
    checks = [statement(name) for statement in SYMBOLIC]
    assert all(check.holds and check.measured == 0.0 for check in checks)
    assert theory.implemented(name, points=201).holds
    assert theory.below(name) == pytest.approx({"ql": -np.inf, "qr": -7 / 6}[name])


def test_wrong_functions_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import sympy as sp

    right = theory.formula("ql")
    t = right.t
    wrong = {
        theory.vanishes_at_zero: dataclasses.replace(right, right=right.right + 1),
        theory.slope_at_zero: dataclasses.replace(right, right=2 * right.right),
        theory.joined: dataclasses.replace(right, left=right.left + sp.Rational(1, 10**9)),
        theory.increasing: dataclasses.replace(right, left=-right.left),
        theory.convex_and_bounded: dataclasses.replace(right, right=t + t**2),
        theory.implemented: dataclasses.replace(right, left=right.left * sp.Rational(10**6 + 1, 10**6)),
    }
    for statement, formula in wrong.items():
        monkeypatch.setattr(theory, "formula", lambda name, formula=formula: formula)
        assert not statement("ql").holds, statement.__name__


def test_unknown_function_is_refused() -> None:
    with pytest.raises(ArgumentError, match="phi"):
        theory.formula("qq")


def test_the_point_by_hand_is_the_solvers_and_another_is_not() -> None:
    hand, solver = theory.closed_form(), theory.oracle()
    assert theory.kkt(hand).holds
    np.testing.assert_allclose(hand.x, solver.x, atol=1e-5)
    np.testing.assert_allclose(hand.multipliers, solver.multipliers, atol=1e-5)
    assert not theory.kkt(dataclasses.replace(hand, multipliers=hand.multipliers + 1e-6)).holds


@pytest.mark.parametrize(("name", "penalty"), [("ql", 1.0), ("qr", 0.5)])
def test_pbm_has_the_predicted_rate(name: str, penalty: float) -> None:
    check = theory.pbm_rate(name, penalty)
    assert check.holds and check.measured < 1e-5 and check.cases > 5


def test_a_shrinking_penalty_parameter_is_faster_than_any_rate() -> None:
    exact = theory.closed_form().multipliers
    errors = {
        shrink: np.abs(theory.pbm("ql", shrink=shrink, iterations=8).multipliers - exact).max(axis=1)
        for shrink in (1.0, 0.1)
    }
    assert errors[1.0][-1] > 1e-3 and errors[0.1][-1] < 1e-11


@pytest.mark.parametrize("base", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("mu", [0.0, 2.0])
def test_spbm_takes_the_augmented_lagrangians_steps(base: type[torch.optim.Optimizer], mu: float) -> None:
    found = theory.reduction(*theory.noisy_problem(3, steps=40), steps=40, mu=mu, base=base)
    assert found.least.min() > -0.5
    assert all(check.holds and check.cases == 40 for check in found.check(-0.5))


def test_other_parameters_do_not_take_them_and_a_left_branch_is_not_counted() -> None:
    start, evaluate = theory.noisy_problem(3, steps=40)
    found = theory.reduction(start, evaluate, steps=40)
    shifted = dataclasses.replace(found, ssl_alm=found.ssl_alm + 1e-9)
    assert [check.holds for check in shifted.check(-0.5)] == [True, False]

    def by_hand(x: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return theory.objective(x), torch.stack(theory.constraints(x))

    left = theory.reduction(torch.tensor([0.6, 0.6], dtype=torch.float64), by_hand, steps=60, rho=1.0, multiplier=1.0)
    assert left.least.min() < -0.5 and left.update[-1] > 1e-3
    assert all(check.holds and 0 < check.cases < 60 for check in left.check(-0.5))
