"""The dual half of every method: parameters, multiplier and penalty updates, schedules, state.  Pure functions.

Notation of the second paper: constraints g(x) <= 0, multipliers lambda, penalty parameters p, smoothing centre s.
All updates are elementwise, so that the m constraints may lie in a vector (m,) or, one a pair of groups, in an
R x R matrix.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

import torch
from torch import Tensor

from fairfront.constrained import barriers
from fairfront.errors import ArgumentError, unknown_name

__all__ = [
    "Algorithm2",
    "DualState",
    "PenalizedParameters",
    "SPBMParameters",
    "SSLALMParameters",
    "SSwParameters",
    "adapt_penalties",
    "alm_penalties",
    "augmented_multipliers",
    "augmented_weights",
    "barrier_multipliers",
    "barrier_weights",
    "parameters_of",
    "switching_tolerance",
]

RULES = ("adapt", "alm", "constant")
MODES = ("algorithm1", "package")
# In the ADAPT rule, as printed: keeps the ratio finite where phi' has faded to nothing.
_ADAPT_FLOOR = 1e-8

_T = TypeVar("_T")


# ------------------------------------------------------------------------------------------------ SPBM


def barrier_weights(g: Tensor, multipliers: Tensor, penalties: Tensor, phi: barriers.Barrier) -> Tensor:
    """Return lambda * phi'(g / p): what multiplies grad g_i in the gradient of the penalised Lagrangian.

    Parameters
    ----------
    g, multipliers, penalties : tensor of one shape
        Constraint values, lambda, p.
    phi : Barrier
        The penalty-barrier function.
    """
    return multipliers * phi.derivative(g / penalties)


def barrier_multipliers(multipliers: Tensor, weights: Tensor, gamma: float, low: float, high: float) -> Tensor:
    """Return clip(gamma lambda + (1 - gamma) lambda phi'(g/p)) to [low, high] (Algorithm 1, dual step).

    Parameters
    ----------
    multipliers, weights : tensor of one shape
        lambda and `barrier_weights`.
    gamma : float
        Weight of the past, in [0, 1).
    low, high : float
        The box.  The update is multiplicative, so 0 would be absorbing: low > 0.
    """
    return torch.lerp(multipliers, weights, 1.0 - gamma).clamp(low, high)


def adapt_penalties(
    penalties: Tensor, g: Tensor, phi: barriers.Barrier, kappa: float, low: float, high: float
) -> Tensor:
    """Return clip(p (kappa + (1 - kappa) / (phi'(g) + 1e-8))) to [low, high]: phi' at g, not at g/p (Equation 14)."""
    return (penalties * (kappa + (1.0 - kappa) / (phi.derivative(g) + _ADAPT_FLOOR))).clamp(low, high)


def alm_penalties(multipliers: Tensor, rho: float, low: float, high: float) -> Tensor:
    """Return clip(rho lambda+) to [low, high], lambda+ being the updated multipliers (Equation 15)."""
    return (rho * multipliers).clamp(low, high)


# ------------------------------------------------------------------------------------------- SSL-ALM, SSw


def augmented_multipliers(
    multipliers: Tensor, g: Tensor, eta: float, rho: float, penalty: str, low: float, high: float
) -> Tensor:
    """Return SSL-ALM's next multipliers.

    "quadratic": clip(lambda + eta g).  "shifted": clip((1 - eta/rho) lambda + (eta/rho) [lambda + rho g]_+), which is
    the same where lambda + rho g >= 0.  With rho = 0 both are clip(lambda + eta g).
    """
    if penalty == "quadratic" or rho == 0:
        return (multipliers + eta * g).clamp(low, high)
    return torch.lerp(multipliers, (multipliers + rho * g).clamp(min=0.0), eta / rho).clamp(low, high)


def augmented_weights(multipliers: Tensor, g: Tensor, rho: float, penalty: str) -> Tensor:
    """Return what multiplies grad g_i: lambda + rho g ("quadratic") or [lambda + rho g]_+ ("shifted")."""
    weights = multipliers + rho * g
    return weights if penalty == "quadratic" or rho == 0 else weights.clamp(min=0.0)


def switching_tolerance(tolerance: float, step: int, horizon: int) -> float:
    """Return SSw's tolerance at a step: ``tolerance`` falling linearly to 0 over ``horizon`` steps (0: constant)."""
    return tolerance if horizon == 0 else tolerance * max(0.0, 1.0 - step / horizon)


# ---------------------------------------------------------------------------------------------- parameters


def parameters_of(cls: type[_T], parameters: _T | None, settings: dict[str, Any]) -> _T:
    """Return a method's parameters: the given ones (default: the defaults) with settings replaced by name.

    Raises
    ------
    ArgumentError
        For a setting that the method does not have, or parameters of another method.
    """
    known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise unknown_name(name, name, known)
    if parameters is None:
        return cls(**settings)
    if not isinstance(parameters, cls):
        raise ArgumentError("parameters", f"are {type(parameters).__name__}", f"a {cls.__name__}")
    return dataclasses.replace(parameters, **settings) if settings else parameters  # type: ignore[type-var]


@dataclass(frozen=True, kw_only=True)
class _Smoothing:
    """Moreau smoothing, which every method shares: the step is taken on L + (mu/2)|x - s|^2, s+ = delta s + ...

    The centre starts at x0 and moves by ``s+ = delta s + (1 - delta) x+``.
    """

    mu: float = 0.0
    delta: float = 0.5

    def __post_init__(self) -> None:
        _number("mu", self.mu, 0.0)
        _number("delta", self.delta, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class SPBMParameters(_Smoothing):
    """Parameters of the stochastic penalty-barrier method (Algorithm 1).

    Parameters
    ----------
    phi : {"ql", "qr"}
        The penalty-barrier function.
    gamma : float, in [0, 1)
        Weight of the past in the multipliers' exponential average.
    rule : {"adapt", "alm", "constant"}
        How the penalty parameters p move.
    kappa : float, in [0, 1)
        ADAPT: weight of the past.
    rho : float, > 0
        ALM: p = rho lambda.
    lambda_init : float, optional
        Multipliers at the start; default: the floor.
    lambda_min, lambda_max : float
        Box of the multipliers.  The floor is > 0: a multiplier at 0 would stay there for ever.
    penalty_init : float, optional
        p at the start; default: the upper end.
    penalty_min, penalty_max : float
        Box of p, > 0.
    mu, delta : float
        Moreau smoothing (0: none) and the centre's inertia.
    mode : {"algorithm1", "package"}
        As printed, or as the paper's authors' package does it: there the centre moves with x^k instead of x^(k+1).
    """

    phi: str = "ql"
    gamma: float = 0.9
    rule: Literal["adapt", "alm", "constant"] = "adapt"
    kappa: float = 0.9
    rho: float = 1.0
    lambda_init: float | None = None
    lambda_min: float = 1e-4
    lambda_max: float = 100.0
    penalty_init: float | None = None
    penalty_min: float = 0.1
    penalty_max: float = 1.0
    mode: Literal["algorithm1", "package"] = "algorithm1"

    def __post_init__(self) -> None:
        super().__post_init__()
        barriers.get(self.phi)
        _choice("rule", self.rule, RULES)
        _choice("mode", self.mode, MODES)
        _number("gamma", self.gamma, 0.0, 1.0, right_open=True)
        _number("kappa", self.kappa, 0.0, 1.0, right_open=True)
        _number("rho", self.rho, 0.0, left_open=True)
        _box("lambda_min", self.lambda_min, "lambda_max", self.lambda_max, "a multiplier at 0 stays there for ever")
        _box("penalty_min", self.penalty_min, "penalty_max", self.penalty_max, "g is divided by p")
        if self.lambda_init is not None:
            _number("lambda_init", self.lambda_init, self.lambda_min, self.lambda_max)
        if self.penalty_init is not None:
            _number("penalty_init", self.penalty_init, self.penalty_min, self.penalty_max)


@dataclass(frozen=True, kw_only=True)
class SSLALMParameters(_Smoothing):
    """Parameters of the smoothed stochastic augmented Lagrangian method, for inequalities.

    Parameters
    ----------
    eta : float, > 0
        Step size of the multipliers.
    rho : float, >= 0
        Penalty parameter; 0 leaves the Lagrangian f + lambda'g.
    penalty : {"quadratic", "shifted"}
        f + lambda'g + (rho/2)|g|^2, which pulls satisfied constraints to their bound too, or
        f + (|[lambda + rho g]_+|^2 - |lambda|^2) / (2 rho), which does not.  Both were published.
    lambda_init, lambda_min, lambda_max : float
        Multipliers at the start, and their box; the update is additive, so the floor may be 0.
    mu, delta : float
        Moreau smoothing (0: none) and the centre's inertia.
    """

    eta: float = 0.01
    rho: float = 0.0
    penalty: Literal["quadratic", "shifted"] = "quadratic"
    lambda_init: float = 0.0
    lambda_min: float = 0.0
    lambda_max: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("eta", self.eta, 0.0, left_open=True)
        _number("rho", self.rho, 0.0)
        _choice("penalty", self.penalty, ("quadratic", "shifted"))
        _number("lambda_min", self.lambda_min, 0.0)
        _above("lambda_min", self.lambda_min, "lambda_max", self.lambda_max)
        _number("lambda_init", self.lambda_init, self.lambda_min, self.lambda_max)


@dataclass(frozen=True, kw_only=True)
class SSwParameters(_Smoothing):
    """Parameters of the switching subgradient method.

    Parameters
    ----------
    constraint_lr : float, > 0
        Step size of the steps on a violated constraint; ``lr`` is that of the steps on the objective.
    tolerance : float, >= 0
        A step goes to the worst constraint if it exceeds the tolerance.
    horizon : int, >= 0
        Steps over which the tolerance falls linearly to 0; 0 keeps it.
    mu, delta : float
        Moreau smoothing (0: none) and the centre's inertia.
    """

    constraint_lr: float = 0.01
    tolerance: float = 0.0
    horizon: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("constraint_lr", self.constraint_lr, 0.0, left_open=True)
        _number("tolerance", self.tolerance, 0.0)
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 0:
            raise ArgumentError(
                "horizon", f"is {self.horizon!r}", "a whole number of steps, 0 for a constant tolerance"
            )


@dataclass(frozen=True, kw_only=True)
class PenalizedParameters(_Smoothing):
    """Parameters of the fixed-penalty baseline.

    Parameters
    ----------
    beta : float, >= 0
        Weight of the penalty; 0 is the base optimiser without constraints.
    penalty : {"hinge", "sum"}
        f + beta sum_i [g_i]_+, or f + beta sum_i g_i (right where the g_i are mean squared errors).
    mu, delta : float
        Moreau smoothing (0: none) and the centre's inertia.
    """

    beta: float = 1.0
    penalty: Literal["hinge", "sum"] = "hinge"

    def __post_init__(self) -> None:
        super().__post_init__()
        _number("beta", self.beta, 0.0)
        _choice("penalty", self.penalty, ("hinge", "sum"))


@dataclass(frozen=True, kw_only=True)
class Algorithm2:
    """The schedules under which Theorem 3 analyses SPBM (Algorithm 2, Equations 74 to 76).

    Parameters
    ----------
    gamma0, kappa0 : float, in [0, 1)
        The values up to step ``hold``.
    hold : int, >= 0
        L: gamma^k = gamma0 for k <= L, then 1 - gamma^k = (1 - gamma0) (k - L)^(-1-exponent); the same for kappa.
    exponent : float, > 0
        e; the deviations 1 - gamma^k and 1 - kappa^k are then summable.
    alpha0 : float, > 0
        alpha^k = alpha0 (k + 1)^(-decay).
    decay : float, in (1/2, 1]
        a; the step sizes are then square-summable but not summable.
    """

    gamma0: float = 0.9
    kappa0: float = 0.9
    hold: int = 0
    exponent: float = 0.1
    alpha0: float = 0.01
    decay: float = 0.75

    def __post_init__(self) -> None:
        _number("gamma0", self.gamma0, 0.0, 1.0, right_open=True)
        _number("kappa0", self.kappa0, 0.0, 1.0, right_open=True)
        if isinstance(self.hold, bool) or not isinstance(self.hold, int) or self.hold < 0:
            raise ArgumentError("hold", f"is {self.hold!r}", "a whole number of steps >= 0")
        _number("exponent", self.exponent, 0.0, left_open=True)
        _number("alpha0", self.alpha0, 0.0, left_open=True)
        _number("decay", self.decay, 0.5, 1.0, left_open=True)

    def gamma(self, step: int) -> float:
        """Return gamma^k."""
        return 1.0 - (1.0 - self.gamma0) * self._fade(step)

    def kappa(self, step: int) -> float:
        """Return kappa^k."""
        return 1.0 - (1.0 - self.kappa0) * self._fade(step)

    def alpha(self, step: int) -> float:
        """Return alpha^k, the primal step size."""
        return self.alpha0 * (step + 1.0) ** -self.decay

    def _fade(self, step: int) -> float:
        return 1.0 if step <= self.hold else float(step - self.hold) ** (-1.0 - self.exponent)


# --------------------------------------------------------------------------------------------------- state


@dataclass(eq=False)
class DualState:
    """What a method carries from step to step, beside the base optimiser's own state.

    Attributes
    ----------
    multipliers : tensor
        lambda, of shape (m,) or (R, R).
    penalties : tensor or None
        p, of the same shape; None where the method has none.
    centre : list of tensor or None
        s, one tensor a parameter; None without smoothing.
    step : int
        Steps taken.
    """

    multipliers: Tensor
    penalties: Tensor | None
    centre: list[Tensor] | None
    step: int

    def copy(self) -> Self:
        """Return a state that shares no memory with this one."""
        return dataclasses.replace(
            self,
            multipliers=self.multipliers.clone(),
            penalties=None if self.penalties is None else self.penalties.clone(),
            centre=None if self.centre is None else [s.clone() for s in self.centre],
        )


# -------------------------------------------------------------------------------------------------- checks


def _number(
    argument: str,
    value: object,
    low: float,
    high: float = math.inf,
    *,
    left_open: bool = False,
    right_open: bool = False,
) -> None:
    end = ")" if right_open or high == math.inf else "]"
    remedy = f"a number in {'(' if left_open else '['}{low:g}, {high:g}{end}"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ArgumentError(argument, f"is {value!r}", remedy)
    if value < low or value > high or (left_open and value == low) or (right_open and value == high):
        raise ArgumentError(argument, f"is {value:g}", remedy)


def _box(low_name: str, low: object, high_name: str, high: object, why: str) -> None:
    if isinstance(low, (int, float)) and not low > 0:
        raise ArgumentError(low_name, f"is {low!r}", f"above 0: {why}")
    _number(low_name, low, 0.0, left_open=True)
    _above(low_name, low, high_name, high)


def _above(low_name: str, low: Any, high_name: str, high: Any) -> None:
    _number(high_name, high, 0.0)
    if high <= low:
        raise ArgumentError(high_name, f"is {high:g}: the range from {low_name} = {low:g} is empty", f"above {low:g}")


def _choice(argument: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise unknown_name(argument, value, known)
