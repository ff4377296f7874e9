"""The stochastic penalty-barrier method (Algorithms 1 and 2 of the second paper)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairfront.constrained import barriers
from fairfront.constrained.constraints import Constraints, PairwiseValues
from fairfront.constrained.kernels import CompiledDual, TorchDual
from fairfront.constrained.moreau import Params
from fairfront.constrained.optimizer import ConstrainedOptimizer, StepInfo, Values
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
    compiled : bool, default False
        Run the dual step as one loop compiled by numba (CPU; a second or two to compile, once a process).

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
        self,
        params: Params,
        m: int | Constraints,
        *,
        schedule: Algorithm2 | None = None,
        compiled: bool = False,
        **options: Any,
    ) -> None:
        if schedule is not None and not isinstance(schedule, Algorithm2):
            raise ArgumentError("schedule", f"is {type(schedule).__name__}", "an Algorithm2, or None")
        self.schedule = schedule
        self.compiled = compiled
        self._kernel: TorchDual | CompiledDual | None = None
        super().__init__(params, m, **options)

    def _initial(self) -> tuple[float, float | None]:
        p = self.parameters
        return (
            p.lambda_min if p.lambda_init is None else p.lambda_init,
            p.penalty_max if p.penalty_init is None else p.penalty_init,
        )

    def _propose(self, g: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        p, phi = self.parameters, barriers.get(self.parameters.phi)
        gamma, kappa = self._averaging()
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

    def _lay(self, shape: tuple[int, ...]) -> None:
        super()._lay(shape)
        self._kernel = None

    def _averaging(self) -> tuple[float, float]:
        """Return gamma^k and kappa^k."""
        if self.schedule is None:
            return self.parameters.gamma, self.parameters.kappa
        return self.schedule.gamma(self._step), self.schedule.kappa(self._step)

    def _advance(self, g: Tensor) -> Tensor:
        if not isinstance(self._kernel, TorchDual):
            assert self._penalties is not None
            self._kernel = TorchDual(self._multipliers, self._penalties)
            self._penalties = self._kernel.penalties
        return self._kernel.advance(g, self.parameters, *self._averaging())

    def _dual_step(self, values: Values, info: StepInfo) -> Tensor | None:
        if not self.compiled or (isinstance(values, PairwiseValues) and values.present is not None):
            return super()._dual_step(values, info)
        if not isinstance(self._kernel, CompiledDual):
            assert self._penalties is not None
            self._kernel = CompiledDual(self._multipliers, self._penalties)
        source = values.source.detach()
        kept = source if source.dtype == self._dtype else source.to(self._dtype)
        bound = (values.epsilon, values.scale) if isinstance(values, PairwiseValues) else (0.0, 1.0)
        pulled = self._kernel.advance(kept, self.parameters, *self._averaging(), *bound)
        if pulled is None:
            return super()._dual_step(values, info)
        return pulled if kept is source else pulled.to(source.dtype)

    def _move(self, info: StepInfo) -> None:
        p = self.parameters
        if self.schedule is not None:
            for group in self.param_groups:
                group["lr"] = self.schedule.alpha(info.step)
        self._primal.step(p.mu, p.delta, centre_first=p.mode == "package")
