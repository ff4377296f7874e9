"""The weighted-sum method (Equation 5): w*(lambda) = argmin_w sum_a lambda_a F_a(w), by warm-started Newton."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fairfront.errors import ArgumentError, FairfrontError
from fairfront.risks import Array, GroupRisks, RiskPoint

__all__ = ["ConvergenceError", "Scalarization", "ScalarizedModel", "simplex_weights"]


class ConvergenceError(FairfrontError):
    """The lower-level solver did not reach its tolerance."""


def simplex_weights(weights: ArrayLike, n_groups: int, argument: str = "weights") -> Array:
    """Return ``weights`` as an array of shape (S,), after checking that it lies in the simplex (to 1e-9).

    Raises
    ------
    ArgumentError
        For another shape, a negative or non-finite weight, or a sum other than 1.
    """
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_groups,):
        raise ArgumentError(argument, f"must have shape ({n_groups},), one weight a group, got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any() or abs(array.sum() - 1.0) > 1e-9:
        raise ArgumentError(argument, f"must be non-negative with sum 1, got {array}")
    return array


@dataclass(frozen=True, eq=False)
class ScalarizedModel:
    """A minimiser of a weighted sum of group risks, possibly with a quadratic term added.

    Attributes
    ----------
    weights : array of shape (S,)
        lambda, in the simplex.
    point : RiskPoint
        The risks at the minimiser; ``point.w`` are its coefficients.
    factor : tuple
        Cholesky factor (:func:`scipy.linalg.cho_factor`) of the objective's Hessian at the minimiser.
    gradient_norm : float
        Largest entry of the objective's gradient, in absolute value.
    iterations : int
        Newton steps taken.
    """

    weights: Array
    point: RiskPoint
    factor: tuple[Array, bool]
    gradient_norm: float
    iterations: int

    @property
    def w(self) -> Array:
        """Coefficients, shape (d,)."""
        return self.point.w

    @property
    def losses(self) -> Array:
        """Group risks, shape (S,)."""
        return self.point.losses


class Scalarization:
    """Solver of the lower level, warm-started from its last solution.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    tolerance : float, default 1e-11
        Largest entry of the gradient, in absolute value, at which a solution is accepted.  Tight, because the
        hypergradient and the certificates are differences of quantities at the solution.
    max_iterations : int, default 100
        Newton steps before the solver gives up.
    start : array of shape (d,), optional
        Coefficients from which the first solution is sought; absent means 0.
    """

    def __init__(
        self,
        risks: GroupRisks,
        *,
        tolerance: float = 1e-11,
        max_iterations: int = 100,
        start: Array | None = None,
    ) -> None:
        self.risks, self.tolerance, self.max_iterations = risks, tolerance, max_iterations
        self.start = np.zeros(risks.n_features) if start is None else start
        self._last: ScalarizedModel | None = None

    def solve(self, weights: ArrayLike, quadratic: Array | None = None) -> ScalarizedModel:
        """Return the minimiser of ``sum_a lambda_a F_a(w) + w'Qw``.

        Parameters
        ----------
        weights : array of shape (S,)
            lambda in the simplex.
        quadratic : array of shape (d, d), optional
            Q, symmetric positive semi-definite; absent means 0.

        Raises
        ------
        ArgumentError
            When the weights are not in the simplex.
        ConvergenceError
            When the risks have no minimiser or the tolerance is not reached.
        """
        lam = simplex_weights(weights, self.risks.n_groups)
        model = self._newton(lam, self._start(lam, quadratic), quadratic)
        if quadratic is None:
            self._last = model
        return model

    def _start(self, lam: Array, quadratic: Array | None) -> Array:
        """Return the first-order prediction w - H^-1 G' (lambda - lambda_last) from the last solution, or that solution
        itself where the prediction is worse (after a long step in lambda).
        """
        last = self._last
        if last is None:
            return self.start
        if quadratic is not None:
            return last.w
        predicted = last.w - cho_solve(last.factor, last.point.gradients.T @ (lam - last.weights))
        better = float(lam @ self.risks.losses(predicted)) <= float(lam @ last.losses)
        return predicted if better else last.w

    def _newton(self, lam: Array, start: Array, quadratic: Array | None) -> ScalarizedModel:
        point = self.risks.at(start)

        def value(p: RiskPoint) -> float:
            return float(lam @ p.losses) + (0.0 if quadratic is None else float(p.w @ quadratic @ p.w))

        def gradient(p: RiskPoint) -> Array:
            return lam @ p.gradients + (0.0 if quadratic is None else 2.0 * quadratic @ p.w)

        def factorise(p: RiskPoint) -> tuple[Array, bool]:
            H = p.hessian(lam) + (0.0 if quadratic is None else 2.0 * quadratic)
            try:
                return cho_factor(H)
            except LinAlgError:
                raise ConvergenceError(
                    "weights: the weighted risk is not strictly convex, so its minimiser is not unique; use l2 > 0"
                ) from None

        for iteration in range(self.max_iterations):
            g, factor = gradient(point), factorise(point)
            norm = float(np.abs(g).max())
            if norm <= self.tolerance:
                return ScalarizedModel(lam, point, factor, norm, iteration)
            step = cho_solve(factor, g)
            decrement = float(g @ step)
            candidate = self.risks.at(point.w - step)
            if decrement > 1e-8:  # globalise only where the decrease can be told from rounding
                size, reference = 1.0, value(point)
                while value(candidate) > reference - 1e-4 * size * decrement and size > 1e-10:
                    size *= 0.5
                    candidate = self.risks.at(point.w - size * step)
            elif norm <= 1e3 * self.tolerance and float(np.abs(gradient(candidate)).max()) >= norm:
                return ScalarizedModel(lam, point, factor, norm, iteration)  # at the floor of floating point
            point = candidate
        raise ConvergenceError(
            f"weights: Newton stopped after {self.max_iterations} steps with gradient {norm:.1e}; the weighted risk "
            "may have no minimiser (separable group with a free intercept?): raise l2 or penalise the intercept"
        )
