"""Constrained training: the stochastic penalty-barrier method, its rivals, and constraints by the thousand (torch)."""

from __future__ import annotations

from fairfront.constrained import barriers
from fairfront.constrained.batched import Job, train_batched
from fairfront.constrained.constraints import (
    NormBounds,
    PairwiseGroups,
    PairwiseValues,
    UserConstraints,
    equality,
    group_means,
)
from fairfront.constrained.networks import mlp
from fairfront.constrained.optimizer import ConstrainedOptimizer, StepInfo
from fairfront.constrained.penalized import PenalizedAdam
from fairfront.constrained.sampling import GroupSampler
from fairfront.constrained.schedules import WarmupCosine
from fairfront.constrained.spbm import SPBM
from fairfront.constrained.ssl_alm import SSLALM
from fairfront.constrained.ssw import SSw
from fairfront.constrained.training import EarlyStop, KKTReport, Rows, TrainingResult, train, train_mlp
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
    "EarlyStop",
    "GroupSampler",
    "Job",
    "KKTReport",
    "NormBounds",
    "PairwiseGroups",
    "PairwiseValues",
    "PenalizedAdam",
    "PenalizedParameters",
    "Rows",
    "SPBMParameters",
    "SSLALMParameters",
    "SSw",
    "SSwParameters",
    "StepInfo",
    "TrainingResult",
    "UserConstraints",
    "WarmupCosine",
    "barriers",
    "equality",
    "group_means",
    "mlp",
    "train",
    "train_batched",
    "train_mlp",
]
