"""mode="package" is humancompatible-train 0.4.2: against recorded numbers, and against the peer where it is."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from constrained_problem import CONFIGURATIONS, ETA, FIRST, KEPT, LAMBDA, PENALTY, RHOS, SETTINGS, STEPS, Problem

from fairfront.constrained import SPBM, SSLALM

HERE = Path(__file__).parent
RECORD = HERE / "peer_trajectories.npz"
# What follows is a few ulps a step, through 300 steps of Adam.
EXACT = 1e-12


def trajectory(rule, phi, mu, mode="package"):
    problem = Problem()
    optimizer = SPBM(
        problem.parameters,
        6,
        mode=mode,
        rule=rule,
        phi=phi,
        mu=mu,
        lambda_init=FIRST,
        lambda_min=LAMBDA[0],
        lambda_max=LAMBDA[1],
        penalty_min=PENALTY[0],
        penalty_max=PENALTY[1],
        **SETTINGS,
    )
    kept, low = [], False
    for step in range(STEPS):
        optimizer.zero_grad()
        loss, constraints = problem.evaluate(step)
        low = low or bool((constraints / optimizer.penalties < -0.5).any())
        optimizer.step(loss, constraints)
        if step + 1 in KEPT:
            kept.append(problem.snapshot(optimizer.multipliers, optimizer.penalties))
    assert low  # the barrier's own branch was met, not only the quadratic one
    return np.array(kept)


@pytest.mark.parametrize(("rule", "phi", "mu"), CONFIGURATIONS)
def test_recorded_trajectories(rule, phi, mu):
    with np.load(RECORD) as record:
        recorded = record[f"{rule}-{phi}-{mu:g}"]
    np.testing.assert_allclose(trajectory(rule, phi, mu), recorded, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("rho", RHOS)
def test_the_shifted_augmented_lagrangian(rho):
    problem = Problem()
    optimizer = SSLALM(problem.parameters, 6, lr=SETTINGS["lr"], eta=ETA, rho=rho, penalty="shifted")
    kept = []
    for step in range(STEPS):
        optimizer.zero_grad()
        optimizer.step(*problem.evaluate(step))
        if step + 1 in KEPT:
            kept.append(problem.snapshot(optimizer.multipliers))
    with np.load(RECORD) as record:
        np.testing.assert_allclose(np.array(kept), record[f"augmented-{rho:g}"], rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("rule", ["adapt", "alm"])
def test_as_printed_the_centre_moves_with_the_new_point(rule):
    with np.load(RECORD) as record:
        smoothed, plain = record[f"{rule}-ql-1"], record[f"{rule}-ql-0"]
    # without smoothing there is no centre, and the two modes are one; with it they part at the second step
    np.testing.assert_allclose(trajectory(rule, "ql", 0.0, "algorithm1"), plain, rtol=EXACT, atol=EXACT)
    printed = trajectory(rule, "ql", 1.0, "algorithm1")
    np.testing.assert_allclose(printed[0], smoothed[0], rtol=EXACT, atol=EXACT)
    assert np.abs(printed[1] - smoothed[1]).max() > 1e-4


def test_the_peer_itself(tmp_path):
    python = HERE.parents[1] / ".peers" / "constrained" / "bin" / "python"
    if not python.exists():
        pytest.skip("the peer is not installed: make peers")
    subprocess.run([python, HERE / "constrained_peer.py", tmp_path / "fresh.npz"], check=True, timeout=300)
    with np.load(tmp_path / "fresh.npz") as fresh, np.load(RECORD) as record:
        assert set(fresh) == set(record)
        for name in record:
            np.testing.assert_allclose(fresh[name], record[name], rtol=EXACT, atol=EXACT)


def test_torch_defaults_are_as_they_were():
    assert torch.get_default_dtype() is torch.float32
