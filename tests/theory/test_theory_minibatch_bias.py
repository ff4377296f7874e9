"""Laws of batch means against brute force, the two propositions, limits, equilibria, note 7: checks that can fail."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairfront.errors import ArgumentError
from fairfront.theory import minibatch_bias as theory

ROWS = np.array([-1.2, -0.4, 0.1, 0.9])


@pytest.fixture(scope="module")
def cases() -> list[theory.Case]:
    generator, found = np.random.default_rng(0), []
    slopes, offsets = -generator.exponential(size=5), generator.normal(size=5)
    for x in np.linspace(-1, 3, 7):
        for batch in (1, 2, 4):
            for replace in (True, False):
                law = theory.enumerated(slopes * x + offsets, batch, replace=replace)
                for phi, p in itertools.product(("ql", "qr"), (5.0, 0.3, 0.05)):
                    found.append(theory.case(f"{replace}", phi, x, batch, p, law))
    return found


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_multisets_are_all_ordered_batches(batch: int) -> None:
    law = theory.enumerated(ROWS, batch)
    means = [np.mean(rows) for rows in itertools.product(ROWS, repeat=batch)]
    assert law.probabilities.sum() == pytest.approx(1.0)
    for function in (np.square, np.exp):
        assert float(law.expect(function)) == pytest.approx(np.mean(function(np.array(means))))


def test_subsets_kinds_and_convolution_agree_with_what_they_stand_for() -> None:
    subsets = theory.enumerated(ROWS, 2, replace=False)
    assert sorted(subsets.values) == pytest.approx(sorted(np.mean(p) for p in itertools.combinations(ROWS, 2)))
    doubled = theory.enumerated(np.repeat([0.0, 0.2, 0.5], [1, 2, 3]), 3)
    kinds = theory.enumerated([0.0, 0.2, 0.5], 3, probabilities=[1 / 6, 2 / 6, 3 / 6])
    grid = theory.counted([1 / 6, 0, 2 / 6, 0, 0, 3 / 6], 3, 0.1)
    for law in (kinds, grid):
        for power in (1, 2, 5):
            moment = [float(found.probabilities @ found.values**power) for found in (doubled, law)]
            assert moment[0] == pytest.approx(moment[1], rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.floats(-3, 3), min_size=2, max_size=5).filter(lambda rows: np.var(rows) > 1e-6),
    batch=st.integers(1, 4),
    p=st.floats(0.01, 10),
    phi=st.sampled_from(["ql", "qr"]),
)
def test_both_propositions_hold_for_any_rows(rows: list[float], batch: int, p: float, phi: str) -> None:
    found = [theory.case("", phi, 0.0, batch, p, theory.enumerated(rows, batch))]
    statements = (theory.dominance, theory.gap_nonnegative, theory.gap_at_most)
    assert all(statement(found).holds for statement in statements)


def test_every_statement_holds_and_a_wrong_number_is_found(cases) -> None:
    statements = (theory.dominance, theory.containment, theory.gap_nonnegative, theory.gap_at_most, theory.tight)
    for statement in (*statements, theory.nested, theory.bound_at_floor):
        check = statement(cases)
        assert check.holds and check.cases > 5, statement.__name__
    inside = next(c for c in cases if c.transformed <= 0)
    quadratic = next(c for c in cases if c.quadratic)
    wrong = {
        theory.dominance: dataclasses.replace(inside, expected=inside.transformed + 0.1),
        theory.containment: dataclasses.replace(inside, expected=1e-6),
        theory.gap_nonnegative: dataclasses.replace(inside, gap=-1e-6),
        theory.gap_at_most: dataclasses.replace(inside, gap=1.001 * inside.bound),
        theory.tight: dataclasses.replace(quadratic, gap=0.999 * quadratic.bound),
        theory.bound_at_floor: dataclasses.replace(inside, gap=1e3 * inside.bound),
        theory.nested: dataclasses.replace(inside, penalty=1e4, transformed=1e4),
    }
    for statement, case in wrong.items():
        assert not statement([*cases, case]).holds, statement.__name__


def test_the_gap_grows_where_some_batch_violates_and_vanishes_where_none_does() -> None:
    found = []
    for name, rows in (("some", [-0.5, 0.3]), ("none", [-0.5, -0.1])):
        law = theory.enumerated(rows, 2)
        found += [theory.case(name, phi, 0, 2, p, law) for phi in ("ql", "qr") for p in (1e-1, 1e-2, 1e-3)]
    grows, vanishes = theory.growth_in_penalty(found), theory.vanishing_in_penalty(found)
    assert grows.holds and grows.cases == 2 and vanishes.holds and vanishes.cases == 2
    swapped = [dataclasses.replace(c, greatest=-c.greatest) for c in found]
    assert not theory.growth_in_penalty(swapped).holds and not theory.vanishing_in_penalty(swapped).holds


def test_the_gap_decays_like_one_over_the_batch() -> None:
    laws = {batch: theory.enumerated([-0.3, 0.2], batch) for batch in (1, 20, 40)}
    found = [theory.case("", "ql", 0, batch, 0.2, law) for batch, law in laws.items()]
    assert theory.rate_in_batch(found).holds
    found[-1] = dataclasses.replace(found[-1], gap=found[-2].gap)
    assert not theory.rate_in_batch(found).holds


def test_the_multiplier_rests_where_its_closed_form_says() -> None:
    problem = theory.ScalarProblem(0.0, np.array([-3.0, -0.5]), np.array([3.4, 0.4]), np.array([0.3, 0.7]))
    assert problem.shares @ (problem.slopes * problem.solution + problem.offsets) == pytest.approx(0.0)
    rests = theory.equilibrium(problem, 4, 5.0, "ql")
    assert rests.x == pytest.approx(problem.solution, abs=1e-9)
    assert rests.multiplier == pytest.approx(theory.multiplier_on_quadratic(problem, 4, 5.0), rel=1e-9)
    assert rests.multiplier != pytest.approx(problem.multiplier, rel=1e-3)
    tight = theory.equilibrium(problem, 4, 0.05, "ql")
    assert problem.solution < tight.x < tight.boundary


def test_the_law_of_real_scores_is_that_of_their_rounding() -> None:
    generator = np.random.default_rng(1)
    high, low = generator.normal(0.5, 1, 6), generator.normal(-0.5, 1, 5)
    offset = theory.Offset(high, low, np.ones(6), np.zeros(5), 0.05, cells=2000)
    law = offset.law(0.3, 2)
    assert law.mean == pytest.approx(offset.gap(0.3), abs=1e-12)
    first, second = (theory.enumerated(1 / (1 + np.exp(-z)), 2) for z in (high, low + 0.3))
    exact = theory.transformed(first.minus(second, 0.05), 0.1, "ql")
    assert theory.transformed(law, 0.1, "ql") == pytest.approx(exact, abs=1e-5)
    assert offset.gap(offset.edge) == pytest.approx(0.0, abs=1e-6)
    assert offset.edge < offset.rest(2, 0.1) < offset.boundary(2, 0.1)


@pytest.mark.parametrize("replace", [True, False])
def test_weighted_batches_are_unbiased_and_balanced_ones_are_not(replace: bool) -> None:
    losses, groups = np.arange(1.0, 10.0), np.repeat([0, 1, 2], [5, 3, 1])
    found = theory.balanced_expectations(losses, groups, 5 if replace else 3, replace=replace)
    assert found["weighted"] == pytest.approx(losses.mean()) and found["balanced"] > losses.mean() + 0.5
    assert theory.balanced_bias([found]).holds and theory.weighted_unbiased([found]).holds
    assert not theory.balanced_bias([found | {"balanced": found["population"]}]).holds
    assert not theory.weighted_unbiased([found | {"weighted": found["balanced"]}]).holds


def test_impossible_batches_are_refused() -> None:
    for batch, replace in ((0, True), (5, False), (40, True)):
        with pytest.raises(ArgumentError, match="batch"):
            theory.enumerated(np.repeat(ROWS, 3) if batch == 40 else ROWS, batch, replace=replace)
