"""A metric of the reader's own: any function of scores, labels and groups that JAX can trace."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfront.errors import ArgumentError
from fairfront.metrics.base import BoundMetric, FloatArray, Metric, Task
from fairfront.metrics.sums import GroupSums

__all__ = ["CustomMetric", "custom"]

_Function = Callable[[Any, Any, Any], Any]

_MEND = (
    "write it with jax.numpy instead of numpy (import jax.numpy as jnp; jnp.mean, jnp.where ...), without float(), "
    "if or boolean indexing on the scores"
)


def custom(function: _Function, *, name: str | None = None, task: Task = "classification") -> CustomMetric:
    """Return a metric made of a function; its derivative comes from automatic differentiation, in float64.

    Parameters
    ----------
    function : callable
        Takes the scores (n,), labels (n,) and groups (n,), 0..S-1, and returns a scalar. JAX must be able to trace it
        in the scores: written with ``jax.numpy``, without Python branches on the scores. It should be differentiable:
        the derivative of a step such as ``scores > 0`` is 0 everywhere, and no solver moves on it.
    name : str, optional
        What to call it; default: the function's own name.
    task : {"classification", "regression"}, default "classification"
        What the scores predict; in classification labels are 0 and 1.

    Returns
    -------
    CustomMetric
        To be bound and used like any other metric. Binding it raises an `ArgumentError` if the function cannot be
        traced (a plain NumPy function cannot) or returns no real scalar; an evaluation does, if the value or
        derivative is not finite.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from fairfront import metrics
    >>> def gap(scores, labels, groups):
    ...     first = groups == 0
    ...     means = [jnp.sum(jnp.where(side, scores, 0)) / jnp.sum(side) for side in (first, ~first)]
    ...     return (means[0] - means[1]) ** 2
    >>> metrics.custom(gap, task="regression").bind([0, 0, 0], [0, 1, 1]).value([3.0, 0.0, 2.0])
    4.0
    """
    if not callable(function):
        raise ArgumentError("function", f"is {function!r}", "a callable of (scores, labels, groups)")
    if not isinstance(function, Hashable):
        raise ArgumentError("function", "is a callable object without a hash", "a plain function")
    return CustomMetric(function=function, name=name or str(getattr(function, "__name__", "custom")), task=task)


@dataclass(frozen=True, kw_only=True)
class CustomMetric(Metric):
    """A metric made of a function, see `custom`.

    Parameters
    ----------
    function : callable
        Scores, labels and groups to a scalar.
    name : str
        What to call it.
    """

    function: _Function
    name: str = "custom"  # type: ignore[misc]  # the other metrics' names belong to their classes

    def floor(self, n_groups: int) -> float:
        """Return minus infinity: nothing is known of the function."""
        return -math.inf

    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        # With labels and groups as arguments, one compilation serves all data of one size; held fixed they allow more
        # (scores[groups == 0], a number of groups read from the data), at the price of a compilation for each data set.
        fixed = y.copy(), groups.numbers.copy()
        for array in fixed:
            array.flags.writeable = False
        try:
            return _Bound(self, _compiled(self.function), fixed, len(y))
        except _NotTraceable:
            pass
        try:
            return _Bound(self, _Compiled(lambda scores: self.function(scores, *fixed)), (), len(y))
        except _NotTraceable as error:
            raise ArgumentError("function", f"JAX cannot trace {self.name}: {error}", _MEND) from error


class _NotTraceable(Exception):
    """JAX met something that needs the scores as numbers."""


class _Compiled:
    """A function and its derivative, compiled for float64 without touching JAX's global precision."""

    def __init__(self, function: Callable[..., Any]) -> None:
        import jax

        self._jax = jax
        self._value = jax.jit(function)
        self._both = jax.jit(jax.value_and_grad(function))

    def check(self, arguments: tuple[Any, ...]) -> None:
        """Raise unless the function can be traced, returns a real scalar and can be differentiated."""
        result = self._shape(self._value, arguments)
        if getattr(result, "shape", None) != () or not np.issubdtype(result.dtype, np.floating):
            given = f"of shape {result.shape} and type {result.dtype}" if hasattr(result, "shape") else repr(result)
            raise ArgumentError("function", f"returns a result {given}", "a real scalar, for instance by jnp.mean")
        self._shape(self._both, arguments)

    def _shape(self, compiled: Any, arguments: tuple[Any, ...]) -> Any:
        jax = self._jax
        try:
            with jax.enable_x64(True):
                return compiled.eval_shape(*arguments)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise _NotTraceable(str(error).splitlines()[0]) from error
        except Exception as error:
            problem = f"raised {type(error).__name__} when traced: {error}"
            raise ArgumentError("function", problem, f"if it is a NumPy function, {_MEND}") from error

    def value(self, arguments: tuple[Any, ...]) -> float:
        with self._jax.enable_x64(True):
            return float(self._value(*arguments))

    def value_and_derivative(self, arguments: tuple[Any, ...]) -> tuple[float, FloatArray]:
        with self._jax.enable_x64(True):
            value, derivative = self._both(*arguments)
            return float(value), np.array(derivative, dtype=np.float64)


# Rebinding a metric, as to every mini-batch, compiles nothing anew.
_compiled = functools.lru_cache(maxsize=32)(_Compiled)


class _Bound(BoundMetric):
    def __init__(self, metric: CustomMetric, compiled: _Compiled, others: tuple[Any, ...], n_rows: int) -> None:
        super().__init__(metric, n_rows)
        self._compiled, self._others = compiled, others
        compiled.check((np.zeros(n_rows), *others))

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        arguments = (z, *self._others)
        if derivative:
            value, in_row = self._compiled.value_and_derivative(arguments)
        else:
            value, in_row = self._compiled.value(arguments), None
        if not math.isfinite(value):
            raise ArgumentError("function", f"{self.metric.name} returned {value}", "a finite value for finite scores")
        if in_row is not None and not np.isfinite(in_row).all():
            row = int(np.flatnonzero(~np.isfinite(in_row))[0])
            problem = f"the derivative of {self.metric.name} is {in_row[row]} in row {row}"
            raise ArgumentError("function", problem, "smooth it, as jnp.sqrt(x**2 + 1e-6) smooths jnp.sqrt(x**2)")
        return value, in_row
