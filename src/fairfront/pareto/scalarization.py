"""The weighted-sum method (Equation 5): w*(lambda) = argmin_w sum_a lambda_a F_a(w), by warm-started Newton.

What costs is passes over the rows: one for gradients, about three times as long for Hessians.  So a Hessian is used as
long as it still makes steps contract (chord Newton).  It is kept group by group: for new weights it is combined anew,
and the first step from the last solution is a full Newton step at no pass.  Solutions also solve systems with their
Hessian, for which the same factor serves as a preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dpotrs

from fairfront.errors import ArgumentError, FairfrontError
from fairfront.risks import Array, GroupRisks, RiskPoint

__all__ = ["ConvergenceError", "Scalarization", "ScalarizedModel", "simplex_weights"]

Factor = tuple[Array, bool]
Secant = tuple[Array, Array]

# From this many rows on, the first solution is sought on every 16th row first.
_SAMPLED_ROWS, _SAMPLE_STEP = 8_000, 16
# What a pass costs that forms Hessians, or multiplies by one, in passes for gradients (measured at 17 columns).
_HESSIAN_COST, _PRODUCT_COST = 1.8, 0.6
# So many secants are kept, of steps at least this long in the norm of the Hessian.
_MOST_SECANTS, _SHORTEST = 12, 1e-8
# The square of ten.
_CAUTION = 100.0


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


class NearInverse:
    """An approximate inverse of a Hessian: a Cholesky factor from nearby, mended by what was seen of it since (BFGS).

    Parameters
    ----------
    factor : tuple
        Of :func:`scipy.linalg.cho_factor`.
    weights : array of shape (S,)
        lambda.
    quadratic : array of shape (d, d) or None
        Q of the term w'Qw.
    secants : list of (step, changes)
        How the group gradients, shape (S, d), changed along steps of shape (d,): by group, so that they serve for
        other weights too.  What is learned is added to it.
    """

    def __init__(self, factor: Factor, weights: Array, quadratic: Array | None, secants: list[Secant]) -> None:
        self.factor, self._weights, self._quadratic, self._secants = factor, weights, quadratic, secants
        self._pairs: list[tuple[Array, Array, float]] = []
        del secants[:-_MOST_SECANTS]
        for secant in secants:
            self._mend(*secant)

    def learn(self, step: Array, changes: Array) -> None:
        """Take into account that a step changed the groups' gradients so."""
        if self._mend(step, changes):
            self._secants.append((step, changes))

    def _mend(self, step: Array, changes: Array) -> bool:
        change = self._weights @ changes
        if self._quadratic is not None:
            change += 2.0 * self._quadratic @ step
        curvature = float(step @ change)
        seen = curvature > _SHORTEST**2  # shorter steps show rounding
        if seen:
            self._pairs.append((step, change, 1.0 / curvature))
        return seen

    def __call__(self, b: Array) -> Array:
        """Return the approximate solution of Hx = b."""
        shares = []
        for step, change, scale in reversed(self._pairs):
            share = scale * float(step @ b)
            b = b - share * change
            shares.append(share)
        x = _solve(self.factor, b)
        for (step, change, scale), share in zip(self._pairs, reversed(shares), strict=True):
            x = x + (share - scale * float(change @ x)) * step
        return x


@dataclass(frozen=True, eq=False)
class ScalarizedModel:
    """A minimiser of a weighted sum of group risks, possibly with a quadratic term added.

    Attributes
    ----------
    weights : array of shape (S,)
        lambda, in the simplex.
    point : RiskPoint
        The risks at the minimiser; ``point.w`` are its coefficients.
    gradient : array of shape (d,)
        Gradient of the objective there: 0 to the solver's tolerance.
    iterations : int
        Newton steps taken.
    near_inverse : NearInverse
        Approximate inverse of the objective's Hessian.
    quadratic : array of shape (d, d) or None
        Q of the term w'Qw.
    """

    weights: Array
    point: RiskPoint
    gradient: Array
    iterations: int
    near_inverse: NearInverse
    quadratic: Array | None = None

    @property
    def w(self) -> Array:
        """Coefficients, shape (d,)."""
        return self.point.w

    @property
    def losses(self) -> Array:
        """Group risks, shape (S,)."""
        return self.point.losses

    @property
    def gradient_norm(self) -> float:
        """Largest entry of the gradient, in absolute value."""
        return float(np.abs(self.gradient).max())

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor (:func:`scipy.linalg.cho_factor`) of the objective's Hessian at the minimiser itself."""
        return _factorise(self.point.hessian(self.weights), self.quadratic)

    def solve_hessian(self, b: Array, *, tolerance: float = 1e-11) -> Array:
        """Return H^-1 b, shape (d,), with H the objective's Hessian at the minimiser.

        The approximate inverse preconditions conjugate gradients, at one pass for each Hessian-vector product.  Where
        they would need more passes than the Hessian is worth, it is formed and factorised.

        Parameters
        ----------
        b : array of shape (d,)
            Right-hand side.
        tolerance : float, default 1e-11
            Error over solution, both in the norm of H.
        """
        if not self.point.has_hessians and self.point.risks.separable:
            x = self._conjugate_gradients(b, tolerance)
            if x is not None:
                return x
        return _solve(self.factor, b)

    def _conjugate_gradients(self, b: Array, tolerance: float) -> Array | None:
        # A Hessian takes about as long as this many products (measured at d = 17; it grows with d).
        affordable = 2 + len(b) // 16
        x, residual = np.zeros_like(b), b
        direction = preconditioned = self.near_inverse(residual)
        squared = float(residual @ preconditioned)
        goal = tolerance**2 * squared
        seen: list[Secant] = []
        if squared == 0.0:
            return x
        for used in range(affordable):
            products = self.point.hessian_products(direction)
            product = self.weights @ products
            if self.quadratic is not None:
                product += 2.0 * self.quadratic @ direction
            size = squared / float(direction @ product)
            x, residual = x + size * direction, residual - size * product
            seen.append((size * direction, size * products))
            preconditioned = self.near_inverse(residual)
            previous, squared = squared, float(residual @ preconditioned)
            # A last step without a product, if even a tenfold worse one than the one before would do.
            if squared * min(1.0, _CAUTION * squared / previous) <= goal:
                for secant in seen:
                    self.near_inverse.learn(*secant)
                return x + preconditioned
            if squared >= previous or log(goal / squared) / log(squared / previous) > affordable - used:
                return None
            direction = preconditioned + (squared / previous) * direction
        return None


# LAPACK itself: for a few columns the checks of SciPy's cho_factor and cho_solve take longer than the work.


def _factorise(hessian: Array, quadratic: Array | None) -> Factor:
    factor, info = dpotrf(hessian if quadratic is None else hessian + 2.0 * quadratic, clean=False)
    if info != 0 or not np.isfinite(factor.diagonal()).all():
        raise ConvergenceError(
            "weights: the weighted risk is not strictly convex, so its minimiser is not unique; use l2 > 0"
        )
    return factor, False


def _combined(weights: Array, matrices: Array) -> Array:
    return (weights @ matrices.reshape(len(weights), -1)).reshape(matrices.shape[1:])


def _solve(factor: Factor, b: Array) -> Array:
    return dpotrs(factor[0], b)[0]


class Scalarization:
    """Solver of the lower level, warm-started from its last solution.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    tolerance : float, default 1e-11
        Largest entry of the gradient, in absolute value, at which a solution is accepted.  Tight, because the
        hypergradient and the certificates are differences of quantities at the solution.  Where the data are scaled so
        that rounding alone is above it, a solution is accepted at the floor of rounding.
    max_iterations : int, default 100
        Newton steps before the solver gives up.
    start : array of shape (d,), optional
        Coefficients from which the first solution is sought; absent means 0, or for many rows the solution on a sample.

    Attributes
    ----------
    solves : int
        Problems solved so far (asking again for the last weights is none).
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
        self.start, self.solves = start, 0
        self._last: ScalarizedModel | None = None
        self._reached = inf
        # Group Hessians from the last point where they were formed, how far the last solution is from there, and how
        # much a step's contraction grows with such a distance.
        self._hessians: Array | None = None
        self._secants: list[Secant] = []
        self._drift, self._rate = 0.0, 1.0

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
        last = self._last
        if (
            last is not None
            and quadratic is None
            and self._reached <= self.tolerance
            and np.array_equal(lam, last.weights)
        ):
            return last
        self.solves += 1
        if last is None:
            point = self.risks.at(self._first_start(lam))
        else:
            point = last.point.without_rows()
            last = None
            if quadratic is None:
                self._last = None  # let go of its scores, which are as many as the rows
            if point.has_hessians:  # a solution's own, formed for an adjoint, are the best there are
                self._hessians, self._secants, self._drift = point.hessians, [], 0.0
        model = self._newton(lam, point, quadratic)
        if quadratic is None:
            self._last, self._reached = model, self.tolerance
        return model

    def _first_start(self, lam: Array) -> Array:
        if self.start is not None:
            return self.start
        # With few rows a group, the sample would hardly be smaller than the whole.
        if self.risks.n_rows <= max(_SAMPLED_ROWS, 4 * _SAMPLE_STEP * self.risks.n_groups):
            return np.zeros(self.risks.n_features)
        sample = Scalarization(self.risks.sample(_SAMPLE_STEP), tolerance=1e-6, max_iterations=self.max_iterations)
        try:
            return sample.solve(lam).w
        except ConvergenceError:  # too few rows to be strictly convex: the sample is only a help
            return np.zeros(self.risks.n_features)

    def _flat(self, lam: Array, point: RiskPoint) -> bool:
        """Return whether the gradient is small only because the risk flattens out towards infinity."""
        return float(self.risks.penalty.min()) == 0.0 and float(lam @ point.mean_curvatures) < 1e-9

    def _renew(self, length: float, drift: float, norm: float) -> bool:
        """Return whether the next point should come with its own Hessian, in the cheaper of two ways to the goal.

        A Hessian formed at a distance makes steps contract by ``rate * distance``.  A pass for gradients costs 1.
        """
        if not self.risks.separable:
            return False

        def passes(contraction: float, left: float) -> float:
            if contraction >= 0.5:
                return inf
            steps = max(ceil(log(left) / log(contraction)), 0) if left < 1 else 0
            products = ceil(log(self.tolerance) / log(0.5 * contraction))
            return steps + _PRODUCT_COST * min(products, _HESSIAN_COST / _PRODUCT_COST)

        contraction = max(self._rate * (drift + 0.5 * length), 1e-8)
        left = self.tolerance / (norm * contraction)
        kept = max(self._rate * (drift + length), 1e-8)
        renewed = max(self._rate * contraction * length, 1e-8)
        return _HESSIAN_COST + passes(renewed, left) < passes(kept, left)

    def _newton(self, lam: Array, point: RiskPoint, quadratic: Array | None) -> ScalarizedModel:
        def value(p: RiskPoint) -> float:
            return float(lam @ p.losses) + (0.0 if quadratic is None else float(p.w @ quadratic @ p.w))

        def gradient(p: RiskPoint) -> Array:
            return lam @ p.gradients + (0.0 if quadratic is None else 2.0 * quadratic @ p.w)

        def own_inverse(p: RiskPoint) -> NearInverse:
            if self.risks.separable:
                self._hessians, self._secants = p.hessians, []
            return NearInverse(_factorise(p.hessian(lam), quadratic), lam, quadratic, self._secants)

        own = self._hessians is None
        if self._hessians is None:
            inverse = own_inverse(point.with_hessians())
        else:
            inverse = NearInverse(_factorise(_combined(lam, self._hessians), quadratic), lam, quadratic, self._secants)
        # In the norm of the Hessian: how far the point is from where the Hessian was formed.
        drift = 0.0 if own else self._drift
        g = gradient(point)
        for iteration in range(self.max_iterations):
            norm = float(np.abs(g).max())
            if norm <= self.tolerance:
                if self._flat(lam, point):
                    break
                self._drift = drift
                return ScalarizedModel(lam, point, g, iteration, inverse, quadratic)
            step = inverse(g)
            squared = float(g @ step)
            length = sqrt(squared)
            candidate = self.risks.at(point.w - step)
            if self._renew(length, drift, norm):
                candidate.with_hessians()
            g_next = gradient(candidate)
            squared_next = float(g_next @ _solve(inverse.factor, g_next))
            if not squared_next <= 0.25 * squared:
                if not own and squared_next < squared:  # nearer, and its own Hessian will do better
                    point, g, own, drift = candidate, g_next, True, 0.0
                    inverse = own_inverse(point)
                    continue
                if not own:
                    inverse, own, drift = own_inverse(point), True, 0.0
                    continue
                if squared <= 1e-15 * max(1.0, abs(value(point))):  # at the floor of floating point
                    best = point if squared <= squared_next else candidate
                    return ScalarizedModel(lam, best, gradient(best), iteration, inverse, quadratic)
                size, reference = 1.0, value(point)
                while not value(candidate) <= reference - 1e-4 * size * squared and size > 1e-10:
                    size *= 0.5
                    candidate = self.risks.at(point.w - size * step)
                g_next = gradient(candidate)
            else:
                # A step of some length errs by half the change of the Hessian along it.
                self._rate = sqrt(max(squared_next, 0.0) / squared) / (drift + 0.5 * length)
            own = candidate.has_hessians
            if own:
                inverse, drift = own_inverse(candidate), 0.0
            else:
                inverse.learn(candidate.w - point.w, candidate.gradients - point.gradients)
                drift += length
            point, g = candidate, g_next
        norm = float(np.abs(g).max())
        raise ConvergenceError(
            f"weights: Newton stopped after {iteration + 1} steps with gradient {norm:.1e}; the weighted risk may have "
            "no minimiser (separable group with a free intercept?): raise l2 or penalise the intercept"
        )
