"""The look of every figure and table: restyling one never runs a computation again."""

from fairfront.plotting.explorer import Html, simplex_explorer
from fairfront.plotting.simplex import barycentric, draw_simplex
from fairfront.plotting.steps import draw_profile
from fairfront.plotting.style import (
    FRONT,
    METHODS,
    OUTER_SOLVERS,
    PATH,
    STRATEGIES,
    UNFAIRNESS_MAP,
    Mark,
    legend_below,
    mark_minima,
    mark_strategies,
    panels,
    style,
)
from fairfront.plotting.tables import present

__all__ = [
    "FRONT",
    "METHODS",
    "OUTER_SOLVERS",
    "PATH",
    "STRATEGIES",
    "UNFAIRNESS_MAP",
    "Html",
    "Mark",
    "barycentric",
    "draw_profile",
    "draw_simplex",
    "legend_below",
    "mark_minima",
    "mark_strategies",
    "panels",
    "present",
    "simplex_explorer",
    "style",
]
