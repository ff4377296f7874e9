"""The switching subgradient method: a step on the objective or on the worst constraint."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from fairfront.constrained.constraints import Constraints
from fairfront.constrained.moreau import Base, Params
from fairfront.constrained.optimizer import ConstrainedOptimizer, StepInfo, Values
from fairfront.constrained.updates import SSwParameters, switching_tolerance

__all__ = ["SSw"]


class SSw(ConstrainedOptimizer):
    """Switching subgradient: where ``max_i g_i`` exceeds the tolerance a step on that g_i, else a step on f.

    Both steps are smoothed; each has a base optimiser, and so a step size and moments, of its own.  Which one to take
    is known only once the constraints are, so every step waits for the device.

    Parameters
    ----------
    params, m, **options
        See `ConstrainedOptimizer` and, for the method's own, `SSwParameters`: ``constraint_lr``, ``tolerance`` and the
        ``horizon`` over which the tolerance falls to 0.
    base : callable, default torch.optim.Adam
        Makes both base optimisers.
    """

    kind = "SSw"
    parameters_class = SSwParameters
    parameters: SSwParameters

    def __init__(self, params: Params, m: int | Constraints, *, base: Base = torch.optim.Adam, **options: Any) -> None:
        super().__init__(params, m, base=base, **options)
        self.constraint_optimizer = self._primal.another({"lr": self.parameters.constraint_lr})

    def _optimizers(self) -> list[Optimizer]:
        return [self._primal.optimizer, self.constraint_optimizer]

    def _dual_step(self, values: Values, info: StepInfo) -> Tensor | None:
        g = values.evaluate()
        finite = torch.isfinite(g)
        if not bool(finite.all()):
            self._count(finite, info)
        g = torch.where(finite, g, -math.inf)
        if g.ndim == 2:
            g.fill_diagonal_(-math.inf)
        worst = g.argmax()
        p = self.parameters
        if not g.flatten()[worst].item() > switching_tolerance(p.tolerance, self._step, p.horizon):
            return None
        info.switched = True
        weights = torch.zeros_like(g)
        weights.view(-1)[worst] = 1.0
        return values.pull(weights)

    def _backward(self, loss: Tensor, values: Values, pulled: Tensor | None, info: StepInfo) -> None:
        values.backward(loss if pulled is None else None, pulled)
        if info.skipped and not self._finite_gradients():
            info.primal = "none"

    def _move(self, info: StepInfo) -> None:
        optimizer = self.constraint_optimizer if info.switched else self._primal.optimizer
        self._primal.step(self.parameters.mu, self.parameters.delta, optimizer=optimizer)
