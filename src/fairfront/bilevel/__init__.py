"""The bilevel problem: the implicit objective, its hypergradient, and solvers."""

from fairfront.bilevel.objective import Evaluation, Objective
from fairfront.bilevel.solution import BilevelSolution, Record
from fairfront.bilevel.two_loop import (
    exhaustive_search,
    frank_wolfe,
    multi_start,
    slsqp,
    standard_starts,
    trust_constr,
)

__all__ = [
    "BilevelSolution",
    "Evaluation",
    "Objective",
    "Record",
    "exhaustive_search",
    "frank_wolfe",
    "multi_start",
    "slsqp",
    "standard_starts",
    "trust_constr",
]
