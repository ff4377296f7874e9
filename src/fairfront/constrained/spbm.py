"""The stochastic penalty-barrier method (Algorithms 1 and 2 of the second paper)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairfront.constrained import barriers
from fairfront.constrained.constraints import Constraints
from fairfront.constrained.moreau import Params
from fairfront.constrained.optimizer import ConstrainedOptimizer, StepInfo
from fairfront.constrained.updates import (
    Algorithm2,
    SPBMParameters,
    adapt_penalties,
    alm_penalties,
    barrier_multipliers,
    barrier_weights,
)
from fairfront.errors import ArgumentError

__all__ = ["SPBM"]


class SPBM(ConstrainedOptimizer):
    """Stochastic penalty-barrier method: Algorithm 1, or Algorithm 2 with a schedule.

    A step, with everything on the right taken at step k: the primal step on
    ``grad f + sum_i lambda_i phi'(g_i/p_i) grad g_i + mu (x - s)``, the centre, the multipliers
    ``clip(gamma lambda + (1 - gamma) lambda phi'(g/p))`` and the penalty parameters by their rule.

    Parameters
    ----------
    params, m, **options
        See `ConstrainedOptimizer` and, for the method's own, `SPBMParameters`.
    schedule : Algorithm2, optional
        Algorithm 2's schedules of gamma, kappa and the primal step size, instead of constants (the analysis takes
        ``base=torch.optim.SGD``).

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> optimizer = SPBM([x], 1, lr=0.02, gamma=0.9, rule="constant", lambda_init=1.0)
    >>> for _ in range(2000):
    ...     optimizer.zero_grad()
    ...     info = optimizer.step((x**2).sum(), 1 - x)
    >>> round(x.item(), 2)
    1.0
    """

    kind = "SPBM"
    parameters_class = SPBMParameters
    parameters: SPBMParameters

    def __init__(
        self, params: Params, m: int | Constraints, *, schedule: Algorithm2 | None = None, **options: Any
    ) -> None:
        if schedule is not None and not isinstance(schedule, Algorithm2):
            raise ArgumentError("schedule", f"is {type(schedule).__name__}", "an Algorithm2, or None")
        self.schedule = schedule
        super().__init__(params, m, **options)

    def _initial(self) -> tuple[float, float | None]:
        p = self.parameters
        return (
            p.lambda_min if p.lambda_init is None else p.lambda_init,
            p.penalty_max if p.penalty_init is None else p.penalty_init,
        )

    def _propose(self, g: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        p, phi = self.parameters, barriers.get(self.parameters.phi)
        gamma, kappa = p.gamma, p.kappa
        if self.schedule is not None:
            gamma, kappa = self.schedule.gamma(self._step), self.schedule.kappa(self._step)
        assert self._penalties is not None
        weights = barrier_weights(g, self._multipliers, self._penalties, phi)
        multipliers = barrier_multipliers(self._multipliers, weights, gamma, p.lambda_min, p.lambda_max)
        if p.rule == "adapt":
            penalties = adapt_penalties(self._penalties, g, phi, kappa, p.penalty_min, p.penalty_max)
        elif p.rule == "alm":
            penalties = alm_penalties(multipliers, p.rho, p.penalty_min, p.penalty_max)
        else:
            return weights, multipliers, None
        return weights, multipliers, penalties

    def _move(self, info: StepInfo) -> None:
        p = self.parameters
        if self.schedule is not None:
            for group in self.param_groups:
                group["lr"] = self.schedule.alpha(info.step)
        self._primal.step(p.mu, p.delta, centre_first=p.mode == "package")
