"""Constrained training: the stochastic penalty-barrier method, its rivals, and constraints by the thousand (torch)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairfront.constrained import barriers
from fairfront.constrained.constraints import (
    NormBounds,
    PairwiseGroups,
    PairwiseValues,
    UserConstraints,
    equality,
    group_means,
)
from fairfront.constrained.networks import convnet, mlp, resnet18
from fairfront.constrained.optimizer import ConstrainedOptimizer, StepInfo
from fairfront.constrained.penalized import PenalizedAdam
from fairfront.constrained.sampling import GroupSampler
from fairfront.constrained.schedules import WarmupCosine
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

if TYPE_CHECKING:
    from fairfront.constrained.batched import Job, train_batched
    from fairfront.constrained.training import EarlyStop, KKTReport, Rows, TrainingResult, train, train_mlp

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
    "convnet",
    "equality",
    "group_means",
    "mlp",
    "resnet18",
    "train",
    "train_batched",
    "train_mlp",
]

# The loops keep their histories in data frames; an optimiser of one's own loop does without pandas.
_LATE = {
    "Job": "batched",
    "train_batched": "batched",
    "EarlyStop": "training",
    "KKTReport": "training",
    "Rows": "training",
    "TrainingResult": "training",
    "train": "training",
    "train_mlp": "training",
}


def __getattr__(name: str) -> Any:
    """Import a training loop when it is first asked for."""
    if name in _LATE:
        return getattr(importlib.import_module(f"fairfront.constrained.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what there is, the loops that are imported late among it."""
    return sorted(__all__)
