"""From penalty and barrier to SPBM: section 2 and appendix E.2 of the second paper, held against exact answers.

The penalty-barrier functions are checked on their printed formulas with exact arithmetic, and the functions that the
optimisers use against those formulas.  A problem in two variables has a KKT point in closed form; on it the classical
method (PBM) has a rate in closed form too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from fairfront.constrained import SPBM, SSLALM, barriers
from fairfront.errors import unknown_name
from fairfront.theory.check import Check

__all__ = [
    "CENTRE",
    "HEIGHT",
    "Formula",
    "KKTPoint",
    "PBMPath",
    "Reduction",
    "below",
    "closed_form",
    "constraints",
    "convex_and_bounded",
    "formula",
    "implemented",
    "increasing",
    "joined",
    "kkt",
    "noisy_problem",
    "objective",
    "oracle",
    "pbm",
    "pbm_rate",
    "printed_rate",
    "reduction",
    "slope_at_zero",
    "vanishes_at_zero",
]

Array: TypeAlias = NDArray[np.float64]
Evaluate: TypeAlias = Callable[[Tensor, int], tuple[Tensor, Tensor]]

_ROUNDING = 1e-12  # relative; a few thousand units in the last place


# --- the functions phi -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Formula:
    """A penalty-barrier function as printed, in sympy's exact arithmetic.

    Attributes
    ----------
    t : Symbol
        The variable.
    joint : Rational
        Where the two expressions meet.
    left, right : Expr
        The function for t < joint and for t >= joint.
    """

    t: Any
    joint: Any
    left: Any
    right: Any

    def derived(self) -> Formula:
        """Return the derivative, piece by piece."""
        return Formula(self.t, self.joint, self.left.diff(self.t), self.right.diff(self.t))

    def pieces(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Return each expression with the interval on which it holds."""
        import sympy as sp

        return (
            (self.left, sp.Interval.open(-sp.oo, self.joint)),
            (self.right, sp.Interval(self.joint, sp.oo)),
        )


@functools.cache
def formula(name: str) -> Formula:
    """Return a penalty-barrier function as printed (Equations 10 and 11).

    Parameters
    ----------
    name : {"ql", "qr"}
        Quadratic-logarithmic or quadratic-reciprocal.

    Raises
    ------
    ArgumentError
        For another name.
    """
    import sympy as sp  # only where a symbol is needed

    t = sp.Symbol("t", real=True)
    right = t + t**2 / 2
    known = {
        "ql": (sp.Rational(-1, 2), -sp.log(-2 * t) / 4 - sp.Rational(3, 8)),
        "qr": (sp.Rational(-1, 3), sp.Rational(32, 27) / (1 - t) - sp.Rational(7, 6)),
    }
    if name not in known:
        raise unknown_name("phi", name, known)
    joint, left = known[name]
    return Formula(t, joint, left, right)


def vanishes_at_zero(name: str) -> Check:
    """Return whether phi(0) = 0, exactly."""
    phi = formula(name)
    return Check.at_most("|phi(0)|", abs(phi.right.subs(phi.t, 0)), 0.0, 1)


def slope_at_zero(name: str) -> Check:
    """Return whether phi'(0) = 1, exactly."""
    phi = formula(name)
    return Check.at_most("|phi'(0) - 1|", abs(phi.right.diff(phi.t).subs(phi.t, 0) - 1), 0.0, 1)


def joined(name: str) -> Check:
    """Return whether phi, phi' and phi'' are continuous at the joint, exactly: each piece is smooth, so phi is C^2."""
    phi, jumps = formula(name), []
    for _ in range(3):
        jumps.append(abs((phi.left - phi.right).subs(phi.t, phi.joint)).simplify())
        phi = phi.derived()
    return Check.at_most("largest jump of phi, phi' and phi'' at the joint", float(max(jumps)), 0.0, len(jumps))


def increasing(name: str) -> Check:
    """Return whether phi' > 0: on how many of the two pieces an exact solver finds a point where it is not."""
    import sympy as sp

    slope = formula(name).derived()
    failing = [
        expression
        for expression, where in slope.pieces()
        if sp.solveset(expression <= 0, slope.t, where) is not sp.S.EmptySet
    ]
    return Check.at_most("pieces on which phi' <= 0 somewhere", len(failing), 0.0, 2)


def convex_and_bounded(name: str) -> Check:
    """Return whether 0 < phi'' <= 1: on how many pieces, and for which of both bounds, a point is found beyond."""
    import sympy as sp

    curvature, failing = formula(name).derived().derived(), 0
    for expression, where in curvature.pieces():
        for beyond in (expression <= 0, expression > 1):
            found = where if beyond is sp.true else sp.S.EmptySet
            if beyond not in (sp.true, sp.false):
                found = sp.solveset(beyond, curvature.t, where)
            failing += found is not sp.S.EmptySet
    return Check.at_most("pieces on which phi'' <= 0 or phi'' > 1 somewhere", failing, 0.0, 4)


def below(name: str) -> float:
    """Return the limit of phi at minus infinity: -inf for QL, -7/6 for QR."""
    import sympy as sp

    phi = formula(name)
    return float(sp.limit(phi.left, phi.t, -sp.oo))


def implemented(name: str, *, points: int = 4001) -> Check:
    """Return whether the functions that the optimisers use are the printed ones and their derivatives.

    Compared are phi, phi' and phi'' on a grid of [-100, 100] that is dense near 0, at the joint and at the floating
    point numbers next to it on both sides; the error is relative to 1 + |the exact value|.
    """
    import sympy as sp

    barrier, exact = barriers.get(name), formula(name)
    joint = float(exact.joint)
    spread = np.sinh(np.linspace(-1, 1, points) * np.arcsinh(100.0))
    grid = np.sort(np.concatenate([spread, [joint, np.nextafter(joint, -1), np.nextafter(joint, 0)]]))
    worst = 0.0
    for function in (barrier.value, barrier.derivative, barrier.second_derivative):
        left, right = (sp.lambdify(exact.t, piece, "numpy") for piece in (exact.left, exact.right))
        below_joint = np.minimum(grid, joint)
        wanted = np.where(grid < joint, left(below_joint), right(grid) * np.ones_like(grid))
        found = function(torch.from_numpy(grid)).numpy()
        worst = max(worst, float((np.abs(found - wanted) / (1 + np.abs(wanted))).max()))
        exact = exact.derived()
    return Check.at_most("relative error of phi, phi' and phi'' as implemented", worst, 1e-14, 3 * len(grid))


# --- a problem in two variables --------------------------------------------------------------------------------------

CENTRE = (2.0, 1.0)
"""Where the objective |x - CENTRE|^2 has its unconstrained minimum."""
HEIGHT = 0.75
"""Bound of the second constraint, x_2 <= HEIGHT, which is not active at the solution."""


def objective(x: Any) -> Any:
    """Return f(x) = |x - c|^2 of (x_1, x_2): numbers, arrays, tensors or expressions."""
    return (x[0] - CENTRE[0]) ** 2 + (x[1] - CENTRE[1]) ** 2


def constraints(x: Any) -> tuple[Any, Any]:
    """Return g(x) = (|x|^2 - 1, x_2 - 3/4)."""
    return x[0] ** 2 + x[1] ** 2 - 1.0, x[1] - HEIGHT


@dataclass(frozen=True, eq=False)
class KKTPoint:
    """A point and its multipliers.

    Attributes
    ----------
    x, multipliers : array of shape (2,)
        The point, and a multiplier for each constraint.
    """

    x: Array
    multipliers: Array

    @property
    def value(self) -> float:
        """The objective there."""
        return float(objective(self.x))


def closed_form() -> KKTPoint:
    """Return the solution by hand: x* = c/|c| and lambda* = (|c| - 1, 0)."""
    norm = math.hypot(*CENTRE)
    return KKTPoint(np.array(CENTRE) / norm, np.array([norm - 1.0, 0.0]))


def kkt(point: KKTPoint) -> Check:
    """Return the largest residual of the KKT conditions: gradient, feasibility, signs and complementarity."""
    x, lam = point.x, point.multipliers
    g = np.array(constraints(x))
    stationarity = 2 * (x - CENTRE) + lam[0] * 2 * x + lam[1] * np.array([0.0, 1.0])
    residuals = [np.abs(stationarity).max(), g.max(), (-lam).max(), np.abs(lam * g).max()]
    return Check.at_most("largest residual of the KKT conditions", max(residuals), _ROUNDING, len(residuals))


def oracle() -> KKTPoint:
    """Return the solution and the multipliers as a convex solver finds them (cvxpy with Clarabel)."""
    import cvxpy as cp  # only here: importing it takes a second

    x = cp.Variable(2)
    bounds = [g <= 0 for g in constraints(x)]
    problem = cp.Problem(cp.Minimize(objective(x)), bounds)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return KKTPoint(np.asarray(x.value, np.float64), np.array([float(bound.dual_value) for bound in bounds]))


# --- the classical method --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PBMPath:
    """Iterates of the penalty-barrier multiplier method, k = 0..n.

    Attributes
    ----------
    x, multipliers : array of shape (n + 1, 2)
        Minimisers of the penalised Lagrangian (the start at k = 0), and multipliers.
    penalties : array of shape (n + 1,)
        p, the same for both constraints.
    """

    x: Array
    multipliers: Array
    penalties: Array


def pbm(
    name: str, *, shrink: float, iterations: int, penalty: float = 1.0, multiplier: float = 1.0, least: float = 1e-3
) -> PBMPath:
    """Run the penalty-barrier multiplier method on the problem in two variables.

    ``x+ = argmin L_p(., lambda)``, ``lambda+ = lambda phi'(g(x+)/p)``, ``p+ = max(shrink p, least)``.

    Parameters
    ----------
    name : {"ql", "qr"}
        The penalty-barrier function.
    shrink : float, in (0, 1]
        By what p is multiplied; 1 keeps it.
    iterations : int
        n.
    penalty, multiplier : float
        p and both multipliers at the start.
    least : float
        Floor of p, which keeps the inner problems within reach of double precision.
    """
    phi = barriers.get(name)
    x, lam, p = np.array([-1.0, 1.4]), np.full(2, float(multiplier)), float(penalty)
    rows = [(x, lam, p)]

    def parts(point: Array) -> tuple[Tensor, Array]:
        return torch.tensor(constraints(point), dtype=torch.float64) / p, np.array([2 * point, [0.0, 1.0]])

    def value(point: Array) -> float:
        t, _ = parts(point)
        return float(objective(point)) + p * float(lam @ phi.value(t).numpy())

    def gradient(point: Array) -> Array:
        t, jacobian = parts(point)
        return np.asarray(2 * (point - CENTRE) + (lam * phi.derivative(t).numpy()) @ jacobian)

    def hessian(point: Array) -> Array:
        t, jacobian = parts(point)
        first, second = phi.derivative(t).numpy(), phi.second_derivative(t).numpy()
        curved = 2.0 * (1.0 + lam[0] * first[0]) * np.eye(2)
        return np.asarray(curved + jacobian.T @ np.diag(lam * second / p) @ jacobian)

    for _ in range(iterations):
        x = minimize(value, x, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-6}).x
        for _ in range(3):  # the trust region stops where the value's last digit does, Newton's equations do not
            x = x - np.linalg.solve(hessian(x), gradient(x))
        lam = lam * phi.derivative(parts(x)[0]).numpy()
        p = max(shrink * p, least)
        rows.append((x, lam, p))
    return PBMPath(*(np.array(column) for column in zip(*rows, strict=True)))


def printed_rate(name: str, penalty: float) -> float:
    """Return the closed form of PBM's local rate at a constant p, the larger of two.

    The active constraint's multiplier contracts by ``1 / (1 + lambda* sigma / p)`` with ``sigma = a' H^-1 a``, a the
    constraint's gradient and H the Lagrangian's Hessian; the inactive one's by ``phi'(g_2(x*) / p)``.
    """
    point = closed_form()
    normal = 2 * point.x
    sigma = float(normal @ normal) / (2.0 * (1.0 + point.multipliers[0]))
    active = 1.0 / (1.0 + point.multipliers[0] * sigma / penalty)
    inactive = barriers.get(name).derivative(torch.tensor(constraints(point.x)[1] / penalty, dtype=torch.float64))
    return max(active, float(inactive))


def pbm_rate(name: str, penalty: float, *, iterations: int = 60) -> Check:
    """Return how far the measured rate of PBM's multipliers at a constant p is from its closed form (`printed_rate`).

    The rate is read off where the multipliers' error has fallen below 1e-4 and is still above 1e-11.
    """
    path = pbm(name, shrink=1.0, iterations=iterations, penalty=penalty)
    error = np.abs(path.multipliers - closed_form().multipliers).max(axis=1)
    seen = np.flatnonzero((error < 1e-4) & (error > 1e-11))
    measured = (error[seen[-1]] / error[seen[0]]) ** (1.0 / (seen[-1] - seen[0])) if len(seen) > 1 else math.nan
    gap = abs(measured - printed_rate(name, penalty))
    return Check.at_most(f"|measured - closed-form rate| at p = {penalty:g}", gap, 0.01, max(len(seen) - 1, 0))


# --- appendix E.2 ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reduction:
    """Three runs beside each other, step by step.

    Attributes
    ----------
    update, ssl_alm : array of shape (steps,)
        Largest difference of x, s and lambda between the optimiser SPBM (p = rho lambda) and the update of E.2, and
        between it and the optimiser SSL-ALM with eta = (1 - gamma)/rho and penalty gamma/rho; relative to 1 + |.|.
    least : array of shape (steps,)
        Smallest g_i/p_i that SPBM met: down to the joint, phi is the quadratic.
    """

    update: Array
    ssl_alm: Array
    least: Array

    def check(self, joint: float) -> tuple[Check, Check]:
        """Return whether both agree with SPBM to rounding, up to the first step that left the quadratic branch."""
        outside = np.flatnonzero(self.least < joint)
        until = int(outside[0]) if len(outside) else len(self.least)
        update, ssl_alm = (float(series[:until].max(initial=0.0)) for series in (self.update, self.ssl_alm))
        return (
            Check.at_most("SPBM against the update of E.2", update, _ROUNDING, until),
            Check.at_most("SPBM against SSL-ALM with its parameters", ssl_alm, _ROUNDING, until),
        )


def noisy_problem(seed: int, *, steps: int, n: int = 4, m: int = 3) -> tuple[Tensor, Evaluate]:
    """Return a start and a random convex problem with noise, whose m constraints are all active at its solution.

    The objective is |x - c|^2/2, the constraints are a_i'x + |x|^2/20 + b_i; c and b are such that some x* with
    multipliers between 1 and 3 satisfies the KKT conditions.  Centre, normals and offsets are shaken at each step.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    point, multipliers = 0.5 * drawn(n), 1.0 + 2.0 * torch.rand(m, generator=generator, dtype=torch.float64)
    normals = torch.linalg.qr(drawn(n, m)).Q.T
    offsets = -(normals @ point) - 0.05 * (point @ point)
    centre = point + (normals + 0.1 * point).T @ multipliers
    shaken, turned, shifted = 0.1 * drawn(steps, n), 0.03 * drawn(steps, m, n), 0.03 * drawn(steps, m)

    def evaluate(x: Tensor, step: int) -> tuple[Tensor, Tensor]:
        away = x - centre - shaken[step]
        g = (normals + turned[step]) @ x + 0.05 * (x @ x) + offsets + shifted[step]
        return 0.5 * (away @ away), g

    return point + 0.3 * drawn(n), evaluate


def reduction(
    start: Tensor,
    evaluate: Evaluate,
    *,
    steps: int,
    multiplier: float = 2.0,
    rho: float = 2.0,
    gamma: float = 0.9,
    mu: float = 1.0,
    delta: float = 0.5,
    lr: float = 0.01,
    base: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    phi: str = "ql",
) -> Reduction:
    """Run SPBM with p = rho lambda, the update of E.2, and SSL-ALM with the parameters that make it the same.

    Parameters
    ----------
    start : Tensor of shape (n,)
        x^0 = s^0.
    evaluate : callable
        Objective and constraints on the batch of a step, from (x, step).
    steps : int
        Steps.
    multiplier : float
        Every lambda^0; p^0 = rho lambda^0.
    rho, gamma, mu, delta : float
        Of SPBM.
    lr, base
        The primal optimiser.
    phi : {"ql", "qr"}
        The penalty-barrier function; it is the quadratic where no g/p lies left of its joint.
    """
    wide: dict[str, Any] = {"lambda_min": 1e-12, "lambda_max": 1e12}
    settings: dict[str, Any] = {"lr": lr, "base": base, "mu": mu, "delta": delta}
    m = len(evaluate(start, 0)[1])

    def spbm(x: Tensor) -> SPBM:
        penalty: dict[str, Any] = {"penalty_min": 1e-12, "penalty_max": 1e12, "penalty_init": rho * multiplier}
        return SPBM(
            [x], m, phi=phi, gamma=gamma, rule="alm", rho=rho, lambda_init=multiplier, **penalty, **wide, **settings
        )

    def ssl_alm(x: Tensor) -> SSLALM:
        inertia: dict[str, Any] = {"eta": (1 - gamma) / rho, "rho": gamma / rho, "penalty": "quadratic"}
        return SSLALM([x], m, lambda_init=multiplier, **inertia, **wide, **settings)

    ours = _followed(start, evaluate, steps, spbm)
    rival = _followed(start, evaluate, steps, ssl_alm)
    series: dict[str, list[float]] = {"update": [], "ssl_alm": [], "least": []}
    x, s = start.clone().requires_grad_(), start.clone()
    lam = torch.full((m,), multiplier, dtype=start.dtype)
    optimizer = base([x], lr=lr)
    for step, (mine, other) in enumerate(zip(ours, rival, strict=True)):
        optimizer.zero_grad()
        loss, g = evaluate(x, step)
        # The augmented Lagrangian of E.2 as it stands, differentiated by autograd.
        lagrangian = loss + lam @ g + (g @ g) / (2 * rho) + 0.5 * mu * ((x - s) @ (x - s))
        lagrangian.backward()
        optimizer.step()
        with torch.no_grad():
            s = delta * s + (1 - delta) * x if mu > 0 else x.clone()
            lam = lam + (1 - gamma) / rho * g
        state, (point, penalties) = torch.cat([x.detach(), s, lam]), mine
        series["update"].append(_distance(state, point))
        series["ssl_alm"].append(_distance(other[0], point))
        series["least"].append(float((penalties[1] / penalties[0]).min()))
    return Reduction(**{name: np.array(values) for name, values in series.items()})


def _distance(a: Tensor, b: Tensor) -> float:
    return float(((a - b).abs() / (1 + b.abs())).max())


def _followed(
    start: Tensor, evaluate: Evaluate, steps: int, make: Callable[[Tensor], SPBM | SSLALM]
) -> Iterator[tuple[Tensor, tuple[Tensor, Tensor]]]:
    """Yield (x, s, lambda) after each step of an optimiser, and p and g as the step saw them."""
    x = start.clone().requires_grad_()
    optimizer = make(x)
    for step in range(steps):
        optimizer.zero_grad()
        p = torch.ones(optimizer.m) if optimizer.penalties is None else optimizer.penalties.clone()
        loss, g = evaluate(x, step)
        optimizer.step(loss, g)
        state = optimizer.state
        centre = x.detach() if state.centre is None else state.centre[0]
        yield torch.cat([x.detach(), centre, state.multipliers]), (p, g.detach())
