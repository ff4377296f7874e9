"""The second paper's grids: their sizes, balanced parts, ablations, and the rule of selection."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront.errors import ArgumentError
from fairfront.studies import hypergrids
from fairfront.studies.hypergrids import Choice


@pytest.mark.parametrize(
    ("kind", "method", "size"),
    [
        ("fairness", "spbm", 360),
        ("fairness", "ssl-alm", 100),
        ("fairness", "ssw", 75),
        ("fairness", "adam", 5),
        ("pinn", "spbm", 384),
        ("pinn", "ssl-alm", 360),
        ("pinn", "ssw", 25),
        ("pinn", "adam-reg", 25),
    ],
)
def test_grids_are_products_of_the_papers_lists(kind: str, method: str, size: int) -> None:
    whole = hypergrids.grid(hypergrids.factors(kind, method))
    assert len(set(whole)) == len({str(choice) for choice in whole}) == size


def test_a_rule_comes_with_its_own_number() -> None:
    for choice in hypergrids.grid(hypergrids.factors("fairness", "spbm")):
        row = choice.row
        assert ("kappa" in row) == (row["rule"] == "adapt") == ("rho" not in row)
    words = "lr 0.005, ql, gamma 0.9, adapt, kappa 0.9, mu 2"
    assert words in map(str, hypergrids.grid(hypergrids.factors("fairness", "spbm")))


def test_ablations_keep_what_they_do_not_change() -> None:
    sizes = {name: len(hypergrids.grid(hypergrids.ablated("fairness", name))) for name in hypergrids.ABLATIONS}
    assert sizes == {"alm": 180, "adapt": 180, "gamma": 120, "kappa": 60, "mu": 180}
    assert {c.row["gamma"] for c in hypergrids.grid(hypergrids.ablated("pinn", "gamma"))} == {0.0}
    assert {c.row["rule"] for c in hypergrids.grid(hypergrids.ablated("pinn", "alm"))} == {"alm"}
    kappa = hypergrids.grid(hypergrids.ablated("fairness", "kappa"))
    assert {(c.row["rule"], c.row["kappa"]) for c in kappa} == {("adapt", 0.0)}
    whole = set(hypergrids.grid(hypergrids.factors("fairness", "spbm")))
    assert set(hypergrids.grid(hypergrids.ablated("fairness", "adapt"))) < whole


@given(size=st.integers(1, 100), seed=st.integers(0, 1000))
def test_parts_are_balanced_and_in_order(size: int, seed: int) -> None:
    lists = hypergrids.factors("fairness", "ssl-alm")
    whole = hypergrids.grid(lists)
    part = hypergrids.part(lists, size, np.random.default_rng(seed))
    assert len(set(part)) == size and set(part) <= set(whole)
    assert list(part) == sorted(part, key=whole.index)
    for factor, values in lists.items():
        counts = Counter(choice.row[factor] for choice in part)
        assert max(counts.values()) - min(counts.get(value, 0) for value in values) <= 2


def test_the_same_generator_draws_the_same_part() -> None:
    lists = hypergrids.factors("pinn", "spbm")
    first, second, other = (hypergrids.part(lists, 20, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second != other
    assert hypergrids.part(lists, None, np.random.default_rng(0)) == hypergrids.grid(lists)
    assert hypergrids.part(lists, 999, np.random.default_rng(0)) == hypergrids.grid(lists)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: hypergrids.factors("fairnes", "spbm"), "fairness"),
        (lambda: hypergrids.factors("pinn", "adam"), "adam-reg"),
        (lambda: hypergrids.ablated("pinn", "kapa"), "kappa"),
        (lambda: hypergrids.part({"lr": [0.1]}, 0, np.random.default_rng(0)), "size"),
        (lambda: hypergrids.select(pd.DataFrame({"loss": [np.nan], "violation": [0.0]}), 1.0), "runs"),
    ],
)
def test_mistakes_are_named(call, name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        call()


def test_selection_takes_the_best_feasible_else_the_least_infeasible() -> None:
    runs = pd.DataFrame({"loss": [0.1, 0.4, 0.3, np.nan], "violation": [0.2, 0.0, 0.009, -1.0]}, index=list("abcd"))
    assert hypergrids.select(runs, 0.1) == "c"
    assert hypergrids.select(runs, 0.05) == "b"
    assert hypergrids.select(runs.drop(index=["b", "c"]), 0.1) == "a"
    worse = runs.assign(violation=[0.2, 0.05, 0.04, np.nan])
    assert hypergrids.select(worse, 0.1) == "c"


def test_a_choice_says_what_it_is() -> None:
    assert str(Choice(0.01, (("eta", 0.5), ("rho", 0.0)))) == "lr 0.01, eta 0.5, rho 0"
