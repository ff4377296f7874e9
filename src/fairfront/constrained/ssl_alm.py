"""The smoothed stochastic linearised augmented Lagrangian method, for inequalities."""

from __future__ import annotations

from torch import Tensor

from fairfront.constrained.optimizer import ConstrainedOptimizer
from fairfront.constrained.updates import SSLALMParameters, augmented_multipliers, augmented_weights

__all__ = ["SSLALM"]


class SSLALM(ConstrainedOptimizer):
    """SSL-ALM: projected dual ascent, then a smoothed step on the augmented Lagrangian with the new multipliers.

    Parameters
    ----------
    params, m, **options
        See `ConstrainedOptimizer` and, for the method's own, `SSLALMParameters`: ``eta``, ``rho`` and which of the two
        published penalties, ``penalty="quadratic"`` or ``"shifted"``.
    """

    kind = "SSLALM"
    parameters_class = SSLALMParameters
    parameters: SSLALMParameters

    def _initial(self) -> tuple[float, float | None]:
        return self.parameters.lambda_init, None

    def _propose(self, g: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        p = self.parameters
        multipliers = augmented_multipliers(self._multipliers, g, p.eta, p.rho, p.penalty, p.lambda_min, p.lambda_max)
        return augmented_weights(multipliers, g, p.rho, p.penalty), multipliers, None
