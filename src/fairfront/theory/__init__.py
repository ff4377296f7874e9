"""One function a proposition, lemma or theorem; each returns what it measured."""

from fairfront.theory.check import Check
from fairfront.theory.efficiency import (
    Counterexample,
    efficient_by_constraint,
    proposition_1,
    proposition_2,
    proposition_3,
    proposition_3_counterexample,
)

__all__ = [
    "Check",
    "Counterexample",
    "efficient_by_constraint",
    "proposition_1",
    "proposition_2",
    "proposition_3",
    "proposition_3_counterexample",
]
