"""The baseline with a fixed penalty, and with none."""

from __future__ import annotations

import torch
from torch import Tensor

from fairfront.constrained.optimizer import ConstrainedOptimizer
from fairfront.constrained.updates import PenalizedParameters

__all__ = ["PenalizedAdam"]


class PenalizedAdam(ConstrainedOptimizer):
    """Adam on ``f + beta sum_i [g_i]_+`` or ``f + beta sum_i g_i``; with ``beta=0`` Adam alone.

    Parameters
    ----------
    params, m, **options
        See `ConstrainedOptimizer` and, for the method's own, `PenalizedParameters`.
    """

    kind = "PenalizedAdam"
    parameters_class = PenalizedParameters
    parameters: PenalizedParameters

    def _propose(self, g: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        p = self.parameters
        weights = (g > 0).to(g.dtype).mul_(p.beta) if p.penalty == "hinge" else torch.full_like(g, p.beta)
        return weights, None, None
