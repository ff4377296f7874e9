"""The group risks of rows that lie on the workers of a Dask cluster: only sums over groups travel.

A model is sent out, and each worker sends back, for its own partitions, the groups' sums of losses, slopes and
curvatures: numbers of size S (1 + d + d^2), however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfront.datasets.blocks import MemoryRows
from fairfront.datasets.partitions import DaskRows
from fairfront.errors import ArgumentError, unknown_name
from fairfront.risks import LOSSES, GroupRisks, RiskPoint

__all__ = ["DaskRisks"]

Array = NDArray[np.float64]


class DaskRisks(GroupRisks):
    """Group risks of a linear model on rows that stay on the workers of a Dask cluster.

    Everything that takes `GroupRisks` takes these. Numbers a row travel only where they are asked for: `y`, and the
    scores of a point, which an unfairness metric needs.

    Examples
    --------
    >>> with connect() as client:  # doctest: +SKIP
    ...     risks = DaskRisks.from_source(DaskRows.from_parquet(client, "rows.parquet"), l2=1e-2)
    ...     model = Scalarization(risks).solve([0.5, 0.5])
    """

    source: DaskRows

    @classmethod
    def from_source(  # type: ignore[override]
        cls,
        source: DaskRows,
        *,
        loss: str = "logistic",
        l2: float = 1e-2,
        intercept: int | None = 0,
        penalize_intercept: bool = True,
    ) -> Self:
        """Return the risks of partitions, whose labels are already 0 and 1 in classification.

        Parameters
        ----------
        source : DaskRows
            The partitions.
        loss, l2, intercept, penalize_intercept
            As for `GroupRisks`.

        Raises
        ------
        ArgumentError
            As for `GroupRisks`.
        """
        if not isinstance(source, DaskRows):
            raise ArgumentError("source", f"not partitions: {type(source).__name__}", "GroupRisks.from_source takes it")
        if loss not in LOSSES:
            raise unknown_name("loss", loss, LOSSES)
        if not (np.isfinite(l2) and l2 >= 0):
            raise ArgumentError("l2", f"must be a finite number >= 0, got {l2}")
        if LOSSES[loss].task == "classification":
            zeros, ones, others = np.sum(source.map(_label_counts), axis=0)
            if others or not zeros or not ones:
                raise ArgumentError("source", f"the {loss} loss needs labels 0 and 1, both of them")
        risks = cls.__new__(cls)
        risks._set(source, loss, l2, intercept, penalize_intercept)
        risks.classes = (0, 1) if LOSSES[loss].task == "classification" else None
        risks.order = np.arange(source.shape[0])
        return risks

    def at(self, w: ArrayLike) -> RiskPoint:
        """Return the risks at the coefficients ``w``, of shape (d,)."""
        return _DaskPoint(self, super().at(w).w)


class _DaskPoint(RiskPoint):
    """The group risks at one model, from the workers' sums."""

    risks: DaskRisks

    def _asked(self, **what: bool) -> _Sums:
        parts = self.risks.source.map(_sums, self.risks.loss.name, self.w, what.get("hessians", False))
        return parts[0].plus(parts[1:])

    @cached_property
    def _first(self) -> _Sums:
        return self._asked()

    @cached_property
    def _group_hessians(self) -> Array:
        sums = self._asked(hessians=True)
        self.__dict__.setdefault("_first", sums)
        assert sums.hessians is not None
        return sums.hessians

    def with_hessians(self) -> RiskPoint:
        """Return this point after one round that also makes the group Hessians (where `separable`)."""
        if self.risks.separable:
            _ = self._group_hessians
        return self

    def without_rows(self) -> RiskPoint:
        """Return this point without the scores."""
        light = _DaskPoint(self.risks, self.w)
        kept = ("_first", "_group_hessians")
        light.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return light

    @cached_property
    def scores(self) -> Array:
        """Scores z = Xw of the stored rows, shape (n,); these do travel."""
        return self.risks.source.join(self.risks.source.map(_scores, self.w))

    @property
    def losses(self) -> Array:
        """F(w), shape (S,)."""
        return self._first.losses / self.risks.group_sizes + 0.5 * float(self.risks.penalty @ self.w**2)

    @property
    def gradients(self) -> Array:
        """Gradients of the group risks, shape (S, d)."""
        return self._first.gradients / self.risks.group_sizes[:, None] + self.risks.penalty * self.w

    @property
    def mean_curvatures(self) -> Array:
        """Mean second derivative of the loss in each group, shape (S,)."""
        return self._first.curvatures / self.risks.group_sizes

    def hessian(self, weights: Array) -> Array:
        """Return sum_a lambda_a Hess F_a(w), shape (d, d)."""
        shares = np.asarray(weights) / self.risks.group_sizes
        if self.risks.separable:
            total = np.tensordot(shares, self._group_hessians, axes=1)
        else:
            total = np.sum(self.risks.source.map(_hessian, self.risks.loss.name, self.w, shares), axis=0)
        return total + float(np.sum(weights)) * np.diag(self.risks.penalty)

    def hessian_products(self, x: Array) -> Array:
        """Return the group Hessians times ``x``, shape (S, d); the scores stay where the rows are."""
        sums = np.sum(self.risks.source.map(_hessian_products, self.risks.loss.name, self.w, x), axis=0)
        return sums / self.risks.group_sizes[:, None] + self.risks.penalty * x

    def score_gradient(self, derivative: Array) -> Array:
        """Return J'm = X'm, shape (d,); the derivative, a number a row, travels to the workers."""
        own = self.risks.source.split(np.asarray(derivative, dtype=np.float64))
        return np.sum(self.risks.source.map(_transposed_product, each=own), axis=0)


# What runs on the workers


@dataclass(frozen=True, eq=False)
class _Sums:
    losses: Array
    gradients: Array
    curvatures: Array
    hessians: Array | None

    def plus(self, others: Sequence[_Sums]) -> _Sums:
        every = (self, *others)
        seconds = [part.hessians for part in every if part.hessians is not None]
        return _Sums(
            np.sum([part.losses for part in every], axis=0),
            np.sum([part.gradients for part in every], axis=0),
            np.sum([part.curvatures for part in every], axis=0),
            np.sum(seconds, axis=0) if seconds else None,
        )


def _label_counts(rows: MemoryRows) -> tuple[int, int, int]:
    zeros, ones = int((rows.y == 0.0).sum()), int((rows.y == 1.0).sum())
    return zeros, ones, len(rows.y) - zeros - ones


def _sums(rows: MemoryRows, name: str, w: Array, hessians: bool) -> _Sums:
    loss, groups, d = LOSSES[name], len(rows.group_sizes), rows.n_features
    losses, curvatures, gradients = np.zeros(groups), np.zeros(groups), np.zeros((groups, d))
    seconds = np.zeros((groups, d, d)) if hessians else None
    for _, X, y, spans in rows.blocks():
        z = w @ X
        slope, curvature = loss.terms(z, y)
        value = loss.value(z, y)
        for group, span in spans:
            losses[group] += value[span].sum()
            curvatures[group] += np.broadcast_to(curvature, z.shape)[span].sum()
            gradients[group] += X[:, span] @ slope[span]
            if seconds is not None:
                seconds[group] += (X[:, span] * curvature[span]) @ X[:, span].T
    return _Sums(losses, gradients, curvatures, seconds)


def _scores(rows: MemoryRows, w: Array) -> Array:
    return w @ rows.Xt


def _hessian(rows: MemoryRows, name: str, w: Array, shares: Array) -> Array:
    total = np.zeros((rows.n_features, rows.n_features))
    for group, X, curvature in _curved(rows, name, w):
        total += (X * (shares[group] * curvature)) @ X.T
    return total


def _hessian_products(rows: MemoryRows, name: str, w: Array, x: Array) -> Array:
    totals = np.zeros((len(rows.group_sizes), rows.n_features))
    for group, X, curvature in _curved(rows, name, w):
        totals[group] += X @ (curvature * (x @ X))
    return totals


def _curved(rows: MemoryRows, name: str, w: Array) -> Iterator[tuple[int, Array, Array]]:
    for _, X, y, spans in rows.blocks():
        _, curvature = LOSSES[name].terms(w @ X, y)
        for group, span in spans:
            yield group, X[:, span], np.broadcast_to(curvature, y.shape)[span]


def _transposed_product(rows: MemoryRows, derivative: Array) -> Array:
    return rows.Xt @ derivative
