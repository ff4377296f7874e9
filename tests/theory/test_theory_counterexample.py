"""Propositions 3 to 6 of the second paper, and the ways off the flat side."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfront.errors import ArgumentError
from fairfront.theory import counterexample as theory
from fairfront.theory import escapes
from fairfront.theory.single_unit import COUNTEREXAMPLE

OTHER = dataclasses.replace(COUNTEREXAMPLE, offsets=(0.3,))
LEAKY = dataclasses.replace(COUNTEREXAMPLE, leak=0.1)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


# --- the propositions ------------------------------------------------------------------------------------------------


def test_functions_are_those_that_the_paper_prints() -> None:
    for x in (Fraction(k, 7) for k in range(-14, 15)):
        f, (g,) = COUNTEREXAMPLE.exact(x)
        if x >= 0:
            assert f == x * x - x / 5 + Fraction(1, 10) and g == x * x - 3 * x / 2 + Fraction(1, 2)
        else:
            assert (f, g) == (Fraction(1, 10), Fraction(1, 2))


def test_solution_is_verified_and_another_problem_is_not() -> None:
    assert theory.proposition_4().holds
    assert not theory.proposition_4(OTHER).holds


@given(constant=st.integers(0, 10**15))
@settings(max_examples=40, deadline=None)
def test_witness_has_the_excess_of_the_formula(constant: int) -> None:
    for name, s in (("f", Fraction(1, 5)), ("g", Fraction(3, 2))):
        found = theory.witness(Fraction(constant), name)
        assert found.excess == s * s / (8 * (constant + 1)) > 0


def test_convex_problem_has_no_witness() -> None:
    linear = dataclasses.replace(COUNTEREXAMPLE, leak=1.0)  # no rectifier: f and g are convex parabolas
    assert theory.proposition_5(range(1, 5)).holds
    assert not theory.proposition_5(range(1, 5), linear).holds
    with pytest.raises(ArgumentError, match="function"):
        theory.witness(Fraction(1), "h")


def test_instance_of_the_general_problem() -> None:
    assert theory.proposition_6_expectations().holds
    assert theory.proposition_6_lipschitz(generator()).holds
    assert theory.proposition_6_definable().holds
    cubic = dataclasses.replace(COUNTEREXAMPLE, power=1)  # kinks at the labels: not one quadratic a side
    assert not theory.proposition_6_definable(problem=cubic).holds


def test_flat_side_is_flat_and_a_leak_is_noticed() -> None:
    duals = np.array([0.0, 1.0]), np.array([0.1, 1.0])
    assert theory.lemma_25(generator()).measured == 0.0 and theory.flat_landscape(*duals).measured == 0.0
    assert not theory.lemma_25(generator(), problem=LEAKY).holds
    assert not theory.flat_landscape(*duals, problem=LEAKY).holds


# --- the methods that stay -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "variant"), [(m, v) for m, vs in theory.VARIANTS.items() for v in vs])
def test_no_method_moves_on_the_flat_side_and_all_do_beside_it(method: str, variant: str) -> None:
    still = theory.frozen_run(method, variant, -0.5, seed=1, steps=15)
    assert still.drift == 0.0 and theory.proposition_3([still.drift]).holds
    moving = theory.frozen_run(method, variant, 0.2, seed=1, steps=15)
    assert moving.drift > 0.0 and not theory.proposition_3([still.drift, moving.drift]).holds
    if method in ("spbm", "ssl-alm"):
        assert np.ptp(still.lam) > 0.0


def test_unknown_methods_and_variants_are_refused() -> None:
    with pytest.raises(ArgumentError, match="spbm"):
        theory.frozen_run("sbpm", "", -1.0, seed=0, steps=2)
    with pytest.raises(ArgumentError, match="SGD"):
        theory.frozen_run("ssw", "SDG", -1.0, seed=0, steps=2)


# --- the escapes -----------------------------------------------------------------------------------------------------


def tried(name: str, variant: str, start: float, *, steps: int = 120, runs: int = 4) -> escapes.Outcome:
    return escapes.attempt(escapes.ESCAPES[name][variant], np.full(runs, start), seed=0, steps=steps, tolerance=0.01)


def test_spbm_alone_stays_for_comparison() -> None:
    alone = escapes.attempt(escapes.Attempt(), np.array([-0.5, 0.3]), seed=0, steps=80, tolerance=0.01)
    assert alone.drift[0] == 0.0 and np.isnan(alone.reached[0]) and alone.x[0] == -0.5
    assert alone.drift[1] > 0.0 and np.isfinite(alone.reached[1])
    assert list(alone.gradients) == [80, alone.reached[1]] and (alone.probes == 0).all()


def test_a_leak_leads_out_and_smoothing_as_far_as_its_noise() -> None:
    assert np.isfinite(tried("leaky", "slope 0.1", -0.3).reached).all()
    near, far = (tried("smoothing", "sd 0.3 to 0", start) for start in (-0.1, -30.0))
    assert np.isfinite(near.reached).all() and (far.drift == 0.0).all()
    assert (far.gradients == 4 * 120).all()  # four draws a step are paid for


def test_restarts_find_the_valley_from_afar_only_with_a_growing_radius() -> None:
    doubling, fixed = (tried("restart", f"16 probes, radius {how}", -30.0) for how in ("doubles", "1"))
    assert np.isfinite(doubling.reached).mean() >= 0.5 and (doubling.probes >= 16).all()
    assert np.isnan(fixed.reached).all() and (fixed.drift == 0.0).all() and (fixed.probes > 16).all()


def test_new_draws_forget_the_start_and_weight_decay_never_arrives() -> None:
    assert np.isfinite(tried("re-initialisation", "afresh", -100.0, steps=250).reached).all()
    decay = tried("weight-decay", "AdamW, 0.1", -0.1)
    assert (decay.drift > 0).all() and (decay.x < 0).all() and (decay.x > -0.1).all()


def test_runs_do_not_disturb_each_other_when_one_is_restarted() -> None:
    setting = escapes.ESCAPES["restart"]["16 probes, radius doubles"]
    # No probe and no redraw before step 20: up to there the two runs are those of any neighbour.
    first = escapes.attempt(setting, np.array([0.3, -0.5]), seed=5, steps=15)
    second = escapes.attempt(setting, np.array([0.3, -80.0]), seed=5, steps=15)
    assert first.x[0] == second.x[0]


def test_diverging_runs_are_told_and_leave_the_others_alone() -> None:
    setting = escapes.Attempt(leak=0.9, base="SGD")
    found = escapes.attempt(setting, np.array([0.55, -5000.0]), seed=0, steps=60, tolerance=0.01)
    assert np.isnan(found.x[1]) and found.drift[1] == np.inf
    assert np.isfinite(found.x[0]) and np.isfinite(found.drift[0])


def test_smoothed_slope_is_the_mean_of_slopes_and_changes_sign_with_the_noise() -> None:
    x, sd = -1.0, 0.7
    noise = generator().normal(size=400_000) * sd * np.sqrt(2)
    at = COUNTEREXAMPLE.evaluate(x + noise)
    weights = 2.0 * np.maximum(1 + at.g[:, 0] / 1.0, 0)
    expected = np.where(at.g[:, 0] >= -0.5, at.df + weights * at.dg[:, 0], np.nan)
    slope, chance = escapes.smoothed_slope(np.array(x), np.array(sd), 2.0, 1.0)
    assert float(slope) == pytest.approx(np.nanmean(expected), abs=0.02)
    assert float(chance) == pytest.approx((x + noise > 0).mean(), abs=0.005)
    slopes = escapes.smoothed_slope(np.array([-1.0, -1.0]), np.array([0.3, 3.0]), 10.0, 0.1)[0]
    assert slopes[0] < 0 < slopes[1]


def test_unknown_ways_to_redraw_are_refused() -> None:
    with pytest.raises(ArgumentError, match="afresh"):
        escapes.attempt(escapes.Attempt(redraw="fresh"), np.array([-1.0]), seed=0, steps=2)
