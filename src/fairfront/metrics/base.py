"""What every unfairness metric offers: a description of itself, and a form bound to labels and groups."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfront.errors import ArgumentError, unknown_name
from fairfront.metrics.checks import checked_groups, checked_numbers, checked_two_classes
from fairfront.metrics.sums import GroupSums

__all__ = ["TASKS", "VARIANTS", "BoundMetric", "FloatArray", "Metric", "Rows", "Task", "Variant", "shifted_blocks"]

FloatArray = NDArray[np.float64]
Task = Literal["classification", "regression"]
Variant = Literal["cited", "paper"]
TASKS: tuple[Task, ...] = ("classification", "regression")
VARIANTS: tuple[Variant, ...] = ("cited", "paper")

_BLOCK = 8192


class Rows(Protocol):
    """A design matrix that gives its rows by slices: a NumPy array, or anything that reads them in blocks."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""

    def __getitem__(self, rows: slice, /) -> ArrayLike:
        """Return some rows, all columns."""


def shifted_blocks(X: Rows) -> Iterator[tuple[slice, FloatArray]]:
    """Yield a design matrix block by block, less a point near its rows.

    No quadratic metric sees a common shift of the rows, and about a point near them its sums stay small: columns far
    from zero cost no digits. Blocks, because no metric should ever hold a second copy of the design matrix.

    Parameters
    ----------
    X : (n, d) array, or an object with ``shape`` that gives rows by slices
        The design matrix.

    Yields
    ------
    rows : slice
        Which rows these are.
    block : (m, d) float64 array
        The rows, less the mean of the first block: the same shift at every pass.
    """
    shift: FloatArray | None = None
    for start in range(0, X.shape[0], _BLOCK):
        rows = slice(start, min(start + _BLOCK, X.shape[0]))
        block = np.asarray(X[rows], dtype=np.float64)
        if shift is None:
            shift = block.mean(axis=0)
        yield rows, block - shift


class BoundMetric(ABC):
    """A metric with its labels and groups in place: a function of the scores alone.

    Attributes
    ----------
    metric : Metric
        The metric that was bound.
    n_rows : int
        How many scores it takes.
    """

    def __init__(self, metric: Metric, n_rows: int) -> None:
        self.metric, self.n_rows = metric, n_rows

    def value(self, z: ArrayLike) -> float:
        """Return the unfairness of some scores.

        Parameters
        ----------
        z : (n,) array
            Scores, one a row, in the order of the labels and groups.

        Returns
        -------
        float
            Unfairness, at least ``metric.floor(n_groups)`` up to rounding.

        Raises
        ------
        ArgumentError
            If `z` has another length than the labels, or holds NaN or an infinite score.
        """
        return self._evaluate(self._scores(z), derivative=False)[0]

    def value_and_derivative(self, z: ArrayLike) -> tuple[float, FloatArray]:
        """Return the unfairness of some scores and its derivative in each score.

        Parameters
        ----------
        z : (n,) array
            Scores.

        Returns
        -------
        value : float
            Unfairness.
        derivative : (n,) float64 array
            dM/dz, a new array.

        Raises
        ------
        ArgumentError
            As `value`.
        """
        value, derivative = self._evaluate(self._scores(z), derivative=True)
        assert derivative is not None
        return value, derivative

    def quadratic(self, X: Rows) -> FloatArray | None:
        """Return the matrix Q with M(Xw) = w'Qw for every w, or None where the metric is no quadratic form.

        Parameters
        ----------
        X : (n, d) array, or an object with ``shape`` that gives rows by slices
            Design matrix; rows in the order of the labels and groups.

        Returns
        -------
        (d, d) float64 array, or None
            Symmetric and positive semidefinite. One pass over the rows makes it; an evaluation then costs d².
        """
        return None

    @abstractmethod
    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        """Return the value and, if asked, the derivative; the scores are already checked."""

    def _scores(self, z: ArrayLike) -> FloatArray:
        z = np.asarray(z, dtype=np.float64)
        if z.shape != (self.n_rows,):
            raise ArgumentError("z", f"has shape {z.shape}", f"one score a row: shape ({self.n_rows},)")
        # The sum is finite unless a score is not (or is absurdly large), and costs a third of the full check.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not math.isfinite(float(z.sum()))
        if suspicious and not np.isfinite(z).all():
            row = int(np.flatnonzero(~np.isfinite(z))[0])
            raise ArgumentError("z", f"score {z[row]} in row {row}", "every score finite")
        return z


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """An unfairness metric: what it is called, where it is defined, how small it can be.

    Parameters
    ----------
    variant : {"cited", "paper"}, default "cited"
        ``"paper"`` is the formula exactly as published with the first paper; ``"cited"`` is what the definition that
        the paper cites means: 0 at parity, and the same however the groups are numbered.
    task : {"classification", "regression"}, default "classification"
        What the scores predict.

    Raises
    ------
    ArgumentError
        If the variant or task is unknown, or the metric is not defined for the task.
    """

    name: ClassVar[str]
    variant: Variant = "cited"
    task: Task = "classification"

    def __post_init__(self) -> None:
        """Check the fields; a subclass with more fields extends this."""
        if self.variant not in VARIANTS:
            raise unknown_name("variant", self.variant, VARIANTS)
        if self.task not in TASKS:
            raise unknown_name("task", self.task, TASKS)
        if self.task not in self.tasks:
            raise ArgumentError("task", f"{self.name} is not defined for {self.task}", f"only for {self.tasks[0]}")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks for which this variant is defined."""
        return TASKS

    def floor(self, n_groups: int) -> float:
        """Return the least value that any scores can have.

        Parameters
        ----------
        n_groups : int
            Number of groups S.

        Returns
        -------
        float
            0 for every "cited" variant; more for those published metrics whose smooth maximum is shifted.
        """
        return 0.0

    def bind(self, y: ArrayLike, groups: ArrayLike, n_groups: int | None = None) -> BoundMetric:
        """Put labels and groups in place and precompute all that depends on them alone.

        The arrays may be kept without a copy: do not change them afterwards.

        Parameters
        ----------
        y : (n,) array
            Labels: 0 and 1 for classification, any real numbers for regression.
        groups : (n,) integer array
            Group of each row, 0..S-1, in any order. Rows sorted by group are summed faster.
        n_groups : int, optional
            Number of groups S; default: the largest group number plus one.

        Returns
        -------
        BoundMetric
            The metric as a function of scores.

        Raises
        ------
        ArgumentError
            If the lengths differ, a label is no label of the task, a group has no row, or a group lacks the rows that
            the metric averages over.
        """
        labels = checked_two_classes("y", y) if self.task == "classification" else checked_numbers("y", y)
        numbers, n_groups = checked_groups(groups, n_groups, len(labels))
        return self._bind(labels, GroupSums(numbers, n_groups))

    @abstractmethod
    def _bind(self, y: FloatArray, groups: GroupSums) -> BoundMetric:
        """Return the bound metric; labels and groups are already checked."""
