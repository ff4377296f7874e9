"""Differential equations as constrained training problems of physics-informed networks."""

from __future__ import annotations

from fairfront.pde.networks import Rows, TanhNetwork, nested_rows
from fairfront.pde.problems import (
    EPSILON,
    EXPERIMENTS,
    PROBLEMS,
    Collapse,
    Condition,
    Evaluation,
    Problem,
    collapse,
    problem,
)
from fairfront.pde.soap import SOAP
from fairfront.pde.training import METHODS, Configuration, TrainingResult, configuration, configuration_names, train

__all__ = [
    "EPSILON",
    "EXPERIMENTS",
    "METHODS",
    "PROBLEMS",
    "SOAP",
    "Collapse",
    "Condition",
    "Configuration",
    "Evaluation",
    "Problem",
    "Rows",
    "TanhNetwork",
    "TrainingResult",
    "collapse",
    "configuration",
    "configuration_names",
    "nested_rows",
    "problem",
    "train",
]
