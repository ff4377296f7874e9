"""Scalarised models, the Pareto front, certificates, the compared strategies, and the regularisation path."""

from fairfront.pareto.baselines import (
    Strategy,
    balanced_weights,
    erm_weights,
    minimax,
    one_group,
    scalarized,
    uniform_weights,
)
from fairfront.pareto.certificate import Certificate, certify, certify_losses, first_order_multipliers
from fairfront.pareto.front import Front, three_group_weights, trace, two_group_weights
from fairfront.pareto.penalized import PenalizedModel, regularization_path
from fairfront.pareto.scalarization import ConvergenceError, Scalarization, ScalarizedModel, simplex_weights

__all__ = [
    "Certificate",
    "ConvergenceError",
    "Front",
    "PenalizedModel",
    "Scalarization",
    "ScalarizedModel",
    "Strategy",
    "balanced_weights",
    "certify",
    "certify_losses",
    "erm_weights",
    "first_order_multipliers",
    "minimax",
    "one_group",
    "regularization_path",
    "scalarized",
    "simplex_weights",
    "three_group_weights",
    "trace",
    "two_group_weights",
    "uniform_weights",
]
