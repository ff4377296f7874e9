"""Dual and penalty updates against their formulas, Algorithm 2's schedules, and the reduction of E.2."""

import dataclasses

import pytest
import torch

from fairfront.constrained import Algorithm2, barriers, updates

FLOAT = torch.float64


def draws(*shape, seed=0):
    return torch.rand(*shape, dtype=FLOAT, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("phi", [barriers.QL, barriers.QR])
def test_spbm_updates_as_printed(phi):
    g, lam, p = 3 * draws(40) - 2, draws(40, seed=1), 0.1 + draws(40, seed=2)
    weights = updates.barrier_weights(g, lam, p, phi)
    torch.testing.assert_close(weights, lam * phi.derivative(g / p))
    torch.testing.assert_close(
        updates.barrier_multipliers(lam, weights, 0.7, 0.05, 0.9), (0.7 * lam + 0.3 * weights).clamp(0.05, 0.9)
    )
    torch.testing.assert_close(
        updates.adapt_penalties(p, g, phi, 0.4, 0.2, 1.0),
        (p * (0.4 + 0.6 / (phi.derivative(g) + 1e-8))).clamp(0.2, 1.0),
    )
    torch.testing.assert_close(updates.alm_penalties(lam, 2.0, 0.2, 1.0), (2 * lam).clamp(0.2, 1.0))


def test_on_the_quadratic_branch_with_p_rho_lambda_spbm_is_an_augmented_lagrangian():
    # E.2: lambda+ = lambda + ((1 - gamma) / rho) g, and the weights are those of f + lambda'g + |g|^2 / (2 rho)
    lam, rho, gamma = 0.5 + draws(20), 1.7, 0.6
    p = rho * lam
    g = 0.4 * p * (2 * draws(20, seed=3) - 1)
    weights = updates.barrier_weights(g, lam, p, barriers.QL)
    torch.testing.assert_close(weights, lam + g / rho)
    torch.testing.assert_close(updates.barrier_multipliers(lam, weights, gamma, 1e-9, 1e9), lam + (1 - gamma) / rho * g)


def test_ssl_alm_updates_of_both_penalties():
    lam, g, eta, rho = 0.2 * draws(30), 2 * draws(30, seed=4) - 1, 0.3, 0.8
    quadratic = updates.augmented_multipliers(lam, g, eta, rho, "quadratic", 0.0, 5.0)
    torch.testing.assert_close(quadratic, (lam + eta * g).clamp(0, 5))
    shifted = updates.augmented_multipliers(lam, g, eta, rho, "shifted", 0.0, 5.0)
    positive = (lam + rho * g).clamp(min=0)
    torch.testing.assert_close(shifted, (1 - eta / rho) * lam + eta / rho * positive)
    torch.testing.assert_close(shifted[positive > 0], (lam + eta * g)[positive > 0])
    torch.testing.assert_close(updates.augmented_weights(lam, g, rho, "quadratic"), lam + rho * g)
    torch.testing.assert_close(updates.augmented_weights(lam, g, rho, "shifted"), positive)
    for penalty in ("quadratic", "shifted"):  # rho = 0: the plain Lagrangian
        torch.testing.assert_close(updates.augmented_weights(lam, g, 0.0, penalty), lam)
        torch.testing.assert_close(
            updates.augmented_multipliers(lam, g, eta, 0.0, penalty, 0.0, 5.0), (lam + eta * g).clamp(0, 5)
        )


def test_the_shifted_penalty_is_the_gradient_of_its_function():
    lam = draws(10)
    g = (2 * draws(10, seed=5) - 1).requires_grad_()
    rho = 0.6
    ((lam + rho * g).clamp(min=0).square().sum() - lam.square().sum()).div(2 * rho).backward()
    torch.testing.assert_close(updates.augmented_weights(lam, g.detach(), rho, "shifted"), g.grad)


def test_schedules_of_algorithm_2():
    schedule = Algorithm2(gamma0=0.9, kappa0=0.5, hold=3, exponent=0.5, alpha0=0.2, decay=0.75)
    for step in range(4):
        assert (schedule.gamma(step), schedule.kappa(step)) == (pytest.approx(0.9), 0.5)
    for step in (4, 5, 12, 1000):
        assert 1 - schedule.gamma(step) == pytest.approx(0.1 * (step - 3) ** -1.5)
        assert 1 - schedule.kappa(step) == pytest.approx(0.5 * (step - 3) ** -1.5)
    assert schedule.alpha(0) == 0.2
    assert schedule.alpha(15) == pytest.approx(0.2 * 16**-0.75)
    # summable deviations: the whole tail after a million steps is below what two steps add at the start
    assert sum(1 - schedule.gamma(k) for k in range(10**6, 10**6 + 1000)) < 1e-6


def test_the_tolerance_falls_linearly_to_zero_and_stays():
    tolerances = [updates.switching_tolerance(0.4, step, 10) for step in (0, 5, 10, 11)]
    assert tolerances == pytest.approx([0.4, 0.2, 0.0, 0.0])
    assert updates.switching_tolerance(0.4, 10**9, 0) == 0.4


@pytest.mark.parametrize(
    "cls", [updates.SPBMParameters, updates.SSLALMParameters, updates.SSwParameters, updates.PenalizedParameters]
)
def test_parameters_have_defaults_that_work_and_cannot_change(cls):
    parameters = cls()
    with pytest.raises(dataclasses.FrozenInstanceError):
        parameters.mu = 1.0
