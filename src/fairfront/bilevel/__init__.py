"""The bilevel problem: the implicit objective, its hypergradient, and solvers."""

from fairfront.bilevel.constants import (
    NOT_PRINTED,
    ProblemBounds,
    StochasticConstants,
    Theorem4Constants,
    lower_level_bounds,
)
from fairfront.bilevel.objective import Evaluation, Objective
from fairfront.bilevel.simplex import project
from fairfront.bilevel.single_loop import (
    State,
    StepSizes,
    badr_gd,
    badr_sgd,
    gd_iterates,
    practical_steps,
    sgd_iterates,
    theorem4_steps,
    theorem7_steps,
)
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
    "NOT_PRINTED",
    "BilevelSolution",
    "Evaluation",
    "Objective",
    "ProblemBounds",
    "Record",
    "State",
    "StepSizes",
    "StochasticConstants",
    "Theorem4Constants",
    "badr_gd",
    "badr_sgd",
    "exhaustive_search",
    "frank_wolfe",
    "gd_iterates",
    "lower_level_bounds",
    "multi_start",
    "practical_steps",
    "project",
    "sgd_iterates",
    "slsqp",
    "standard_starts",
    "theorem4_steps",
    "theorem7_steps",
    "trust_constr",
]
