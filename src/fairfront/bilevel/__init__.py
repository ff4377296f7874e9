"""The bilevel problem: the implicit objective, its hypergradient, and solvers."""

from fairfront.bilevel.objective import Evaluation, Objective
from fairfront.bilevel.two_loop import BilevelSolution, exhaustive_search

__all__ = ["BilevelSolution", "Evaluation", "Objective", "exhaustive_search"]
