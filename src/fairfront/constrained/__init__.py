"""Constrained training: the stochastic penalty-barrier method, its rivals, and constraints by the thousand (torch)."""

from __future__ import annotations

from fairfront.constrained import barriers
from fairfront.constrained.constraints import (
    NormBounds,
    PairwiseGroups,
    PairwiseValues,
    UserConstraints,
    equality,
    group_means,
)
from fairfront.constrained.optimizer import ConstrainedOptimizer, StepInfo
from fairfront.constrained.penalized import PenalizedAdam
from fairfront.constrained.spbm import SPBM
from fairfront.constrained.ssl_alm import SSLALM
from fairfront.constrained.ssw import SSw
from fairfront.constrained.updates import (
    Algorithm2,
    DualState,
    PenalizedParameters,
    SPBMParameters,
    SSLALMParameters,
    SSwParameters,
)

__all__ = [
    "SPBM",
    "SSLALM",
    "Algorithm2",
    "ConstrainedOptimizer",
    "DualState",
    "NormBounds",
    "PairwiseGroups",
    "PairwiseValues",
    "PenalizedAdam",
    "PenalizedParameters",
    "SPBMParameters",
    "SSLALMParameters",
    "SSw",
    "SSwParameters",
    "StepInfo",
    "UserConstraints",
    "barriers",
    "equality",
    "group_means",
]
