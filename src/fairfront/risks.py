"""Group risks: the objectives whose Pareto front the first paper studies.

For groups a = 1..S with rows I_a, ``F_a(w) = (1/n_a) sum_{i in I_a} loss(y_i, x_i'w) + (l2/2) |w|^2`` (section 2 and
5.1.2 of the first paper).  One penalty convention is used in values, gradients, Hessians and adjoints alike.  The ones
column is penalised like every other coordinate (as the paper appends it, and as the theorems' strong convexity needs)
or left free, by an argument.

Rows are read in blocks (`fairfront.datasets.blocks`), so that the same sums serve rows in memory and rows in a file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfront.datasets import GroupedData
from fairfront.datasets.blocks import MemoryRows, ParquetRows, RowSource
from fairfront.errors import ArgumentError, unknown_name

__all__ = ["LOSSES", "Array", "GroupRisks", "Loss", "RiskPoint", "SmallGroupWarning", "encode_labels"]

Array = NDArray[np.float64]

# Groups with fewer rows are used, with a warning: their risk is that of a handful of people.
_SMALL_GROUP = 5
# Multiplications that a matrix product for a Hessian takes at once: OpenBLAS is twice as fast up to a million.
_PRODUCT_SIZE = 900_000
# Hessians are kept group by group up to this many numbers (32 MB), else only their weighted sum is formed.
_GROUP_HESSIANS = 4_000_000


class SmallGroupWarning(UserWarning):
    """A group has so few rows that its risk says little."""


@dataclass(frozen=True)
class Loss:
    """A pointwise loss of scores and labels.

    Attributes
    ----------
    name : str
        Name in :data:`LOSSES`.
    task : {"classification", "regression"}
        Classification: labels are encoded to {0, 1}; regression: any finite labels.
    value : callable
        Loss of scores z (m,) and labels y (m,), shape (m,).
    terms : callable
        First and second derivative in z, each (m,).
    """

    name: str
    task: Literal["classification", "regression"]
    value: Callable[[Array, Array], Array]
    terms: Callable[[Array, Array], tuple[Array, Array]]


def _logistic(z: Array, y: Array) -> Array:
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))) - y * z


def _logistic_terms(z: Array, y: Array) -> tuple[Array, Array]:
    p = np.negative(z)
    with np.errstate(over="ignore"):  # exp overflows to inf for z < -709, where p is 0 to rounding
        np.exp(p, out=p)
    p += 1.0
    np.reciprocal(p, out=p)
    slope = p - y
    p -= p * p
    return slope, p


def _squared_hinge(z: Array, y: Array) -> Array:
    return np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * z) ** 2


def _squared_hinge_terms(z: Array, y: Array) -> tuple[Array, Array]:
    side = 2.0 * y - 1.0
    short = np.maximum(0.0, 1.0 - side * z)
    return -2.0 * side * short, np.where(short > 0.0, 2.0, 0.0)


LOSSES: dict[str, Loss] = {
    # log(1 + e^z) - y z with y in {0, 1}
    "logistic": Loss("logistic", "classification", _logistic, _logistic_terms),
    # The paper's smoothed SVM, max(0, 1 - (2y - 1) z)^2: C^1, with the generalised Hessian 2 on rows with margin < 1
    # (the limit from inside; 0 at the kink itself), which is the Hessian wherever no row sits exactly at the kink.
    "squared_hinge": Loss("squared_hinge", "classification", _squared_hinge, _squared_hinge_terms),
    # Ridge regression, (y - z)^2, without a factor 1/2
    "squared": Loss(
        "squared", "regression", lambda z, y: (y - z) ** 2, lambda z, y: (2.0 * (z - y), np.full_like(z, 2.0))
    ),
}


def encode_labels(y: ArrayLike) -> tuple[Array, tuple[Any, Any]]:
    """Return the labels of two classes as 0 and 1, and the two classes.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of exactly two classes, in whose sorted order the second becomes 1: {0, 1}, {-1, 1}, booleans, words.

    Returns
    -------
    labels : array of shape (n,)
        0.0 or 1.0.
    classes : tuple
        What 0 and 1 stand for.

    Raises
    ------
    ArgumentError
        For missing values, or another number of classes than two.
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        raise ArgumentError("y", f"must have shape (n,) with at least one row, got {labels.shape}")
    if labels.dtype.kind in "fiu":
        if not np.isfinite(labels).all():
            raise ArgumentError("y", "holds NaN or infinite values", "drop those rows first")
        # The common case without a sort.
        low, high = labels.min(), labels.max()
        positive = labels == high
        if low != high and bool((positive | (labels == low)).all()):
            return positive.astype(np.float64), (low.item(), high.item())
    elif labels.dtype.kind == "O" and any(label is None or label != label for label in labels):
        raise ArgumentError("y", "holds missing values", "drop those rows first")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ArgumentError("y", "mixes labels of different types", "use words, or numbers, throughout") from None
    found = classes.tolist()
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:4])) + (", ..." if len(found) > 4 else "")
        raise ArgumentError("y", f"must hold two classes, got {len(found)}: {shown}")
    return codes.astype(np.float64), (found[0], found[1])


class GroupRisks:
    """The S group risks of a linear model.

    Rows are kept with groups contiguous and features as rows of a (d, n) array, so that every sum over a group is one
    matrix product over a slice.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, with the ones column where the model has an intercept.
    y : array of shape (n,)
        Labels: two classes for the logistic loss and the squared hinge (see `encode_labels`), numbers for the squared
        loss.  A group may have rows of one class only.
    groups : array of shape (n,)
        Group of each row, in 0..S-1; every group has at least one row.
    loss : {"logistic", "squared_hinge", "squared"}, default "logistic"
        Pointwise loss, a key of :data:`LOSSES`: logistic regression, smoothed SVM, ridge regression.
    l2 : float, default 1e-2
        Weight of ``|w|^2 / 2`` in every group's risk; at least 0.
    intercept : int or None, default 0
        Index of the ones column, None where there is none.
    penalize_intercept : bool, default True
        Whether the ones column's coefficient is in the penalty.

    Attributes
    ----------
    source : RowSource
        The stored rows.
    loss : Loss
        The pointwise loss.
    classes : tuple or None
        What the stored labels 0 and 1 stand for; None in regression.
    penalty : array of shape (d,)
        l2 on a penalised coordinate, 0 on a free one.
    order : array of shape (n,)
        Original row of each stored row: stored rows are sorted by group.

    Raises
    ------
    ArgumentError
        For shapes that do not match, values that are not finite numbers, labels outside the loss's domain, groups that
        are not 0..S-1, or a negative ``l2``.

    Warns
    -----
    SmallGroupWarning
        For groups of fewer than 5 rows.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        loss: str = "logistic",
        l2: float = 1e-2,
        intercept: int | None = 0,
        penalize_intercept: bool = True,
    ) -> None:
        _check_model(loss, l2)
        rows = _checked_rows(X)
        n, _d = rows.shape
        ids, labels = np.asarray(groups), np.asarray(y)
        for name, vector in (("y", labels), ("groups", ids)):
            if vector.shape != (n,):
                raise ArgumentError(name, f"must have shape ({n},) like the rows of X, got {vector.shape}")
        sizes = _checked_sizes(ids)
        if LOSSES[loss].task == "classification":
            labels, classes = encode_labels(labels)
        else:
            labels, classes = _checked_targets(labels), None
        order = _order(ids, len(sizes))
        source = MemoryRows(_sorted_columns(rows, order), labels[order], sizes)
        self._set(source, loss, l2, intercept, penalize_intercept)
        self.order: NDArray[np.int64] = order
        self.classes: tuple[Any, Any] | None = classes

    def _set(self, source: RowSource, loss: str, l2: float, intercept: int | None, penalize_intercept: bool) -> None:
        d = source.n_features
        if intercept is not None and not 0 <= intercept < d:
            raise ArgumentError("intercept", f"must be a column of X, 0..{d - 1}, or None, got {intercept}")
        small = np.flatnonzero(source.group_sizes < _SMALL_GROUP)
        if len(small):
            listed = ", ".join(f"{a} ({source.group_sizes[a]})" for a in small[:5]) + (
                ", ..." if len(small) > 5 else ""
            )
            warnings.warn(f"groups with few rows, and how many: {listed}", SmallGroupWarning, stacklevel=3)
        self.source, self.loss, self.l2 = source, LOSSES[loss], float(l2)
        self.penalty: Array = np.full(d, self.l2)
        if intercept is not None and not penalize_intercept:
            self.penalty[intercept] = 0.0

    @classmethod
    def from_source(
        cls,
        source: RowSource,
        *,
        loss: str = "logistic",
        l2: float = 1e-2,
        intercept: int | None = 0,
        penalize_intercept: bool = True,
    ) -> Self:
        """Return the risks of a source of rows, whose labels are already 0 and 1 in classification."""
        _check_model(loss, l2)
        classes = None
        if LOSSES[loss].task == "classification":
            if not (((source.y == 0.0) | (source.y == 1.0)).all() and 0.0 < source.y.mean() < 1.0):
                raise ArgumentError("source", f"the {loss} loss needs labels 0 and 1, both of them")
            classes = (0, 1)
        risks = cls.__new__(cls)
        risks._set(source, loss, l2, intercept, penalize_intercept)
        risks.order, risks.classes = np.arange(len(source.y)), classes
        return risks

    @classmethod
    def from_parquet(cls, path: str | PathLike[str], **options: Any) -> Self:
        """Return the risks of a file that `fairfront.datasets.blocks.write_blocks` made, read anew at every pass.

        Options are those of `from_source`.
        """
        return cls.from_source(ParquetRows(path), **options)

    @classmethod
    def from_data(
        cls,
        data: GroupedData,
        part: Literal["train", "test", "all"] = "train",
        *,
        loss: str = "logistic",
        l2: float = 1e-2,
        penalize_intercept: bool = True,
    ) -> Self:
        """Return the risks of one part ("train", "test" or "all") of a loaded data set."""
        X, y, groups = data.rows(part)
        intercept = data.feature_names.index("intercept") if "intercept" in data.feature_names else None
        return cls(X, y, groups, loss=loss, l2=l2, intercept=intercept, penalize_intercept=penalize_intercept)

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return self.source.shape[0]

    @property
    def n_features(self) -> int:
        """Number of coefficients d."""
        return self.source.n_features

    @property
    def n_groups(self) -> int:
        """Number of groups S."""
        return len(self.group_sizes)

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Rows of each group, shape (S,)."""
        return self.source.group_sizes

    @property
    def separable(self) -> bool:
        """Whether Hessians are kept group by group: for any weights then at no further pass."""
        return self.n_groups * self.n_features**2 <= _GROUP_HESSIANS

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each group begins among the stored rows, and n; shape (S + 1,)."""
        return self.source.offsets

    @property
    def y(self) -> Array:
        """Labels of the stored rows, shape (n,)."""
        return self.source.y

    @property
    def groups(self) -> NDArray[np.int64]:
        """Group of each stored row, shape (n,), ascending; a new array."""
        return np.repeat(np.arange(self.n_groups), self.group_sizes)

    @property
    def Xt(self) -> Array:
        """Features of the stored rows, shape (d, n); only where they are in memory."""
        if not isinstance(self.source, MemoryRows):
            raise ArgumentError("risks", "the rows are not in memory", "slice risks.source, which reads them in blocks")
        return self.source.Xt

    def at(self, w: ArrayLike) -> RiskPoint:
        """Return the risks at the coefficients ``w``, of shape (d,); each quantity is computed when first asked for."""
        vector = np.asarray(w, dtype=np.float64)
        if vector.shape != (self.n_features,):
            raise ArgumentError("w", f"must have shape ({self.n_features},), got {vector.shape}")
        return RiskPoint(self, vector)

    def losses(self, w: ArrayLike) -> Array:
        """Return F(w), shape (S,)."""
        return self.at(w).losses

    def sample(self, step: int) -> GroupRisks:
        """Return the risks of every ``step``-th row of each group, in memory; they are made once."""
        samples: dict[int, GroupRisks] = self.__dict__.setdefault("_samples", {})
        if step not in samples:
            part = GroupRisks.__new__(GroupRisks)
            part.source, part.loss, part.l2, part.penalty = self.source.sample(step), self.loss, self.l2, self.penalty
            part.order, part.classes = np.arange(len(part.source.y)), self.classes
            samples[step] = part
        return samples[step]


class RiskPoint:
    """The group risks at one model.

    One pass over the rows gives scores, curvatures and gradients together; Hessians take a second one, or are made in
    the same pass by `with_hessians`.

    Parameters
    ----------
    risks : GroupRisks
        Where the rows are.
    w : array of shape (d,)
        Coefficients.
    """

    def __init__(self, risks: GroupRisks, w: Array) -> None:
        self.risks, self.w = risks, w

    def __repr__(self) -> str:
        return f"RiskPoint({self.risks.loss.name}, d={len(self.w)}, S={self.risks.n_groups})"

    @cached_property
    def _pass(self) -> _FirstOrder:
        loss, w = self.risks.loss, self.w
        return self.risks.source.reduce(lambda rows: _first_order(rows, loss, w, hessians=False))

    @cached_property
    def _group_hessians(self) -> Array:
        """Sums of curvature times x x' over each group, shape (S, d, d)."""
        curvature = self._pass.curvature
        return self.risks.source.reduce(lambda rows: _curvatures(rows, curvature)).total

    @property
    def has_hessians(self) -> bool:
        """Whether the group Hessians were computed already."""
        return "_group_hessians" in self.__dict__

    def with_hessians(self) -> RiskPoint:
        """Return this point after one pass that also makes the group Hessians (where `separable`)."""
        if self.risks.separable and "_pass" not in self.__dict__:
            loss, w = self.risks.loss, self.w
            both = self.risks.source.reduce(lambda rows: _first_order(rows, loss, w, hessians=True))
            self.__dict__["_pass"], self.__dict__["_group_hessians"] = both, both.hessians
        return self

    def without_rows(self) -> RiskPoint:
        """Return this point with its sums over rows, but without the numbers a row, which take memory."""
        light = RiskPoint(self.risks, self.w)
        light.__dict__["gradients"] = self.gradients
        if self.has_hessians:
            light.__dict__["_group_hessians"] = self._group_hessians
        return light

    @property
    def scores(self) -> Array:
        """Scores z = Xw of the stored rows, shape (n,)."""
        return self._pass.scores

    @cached_property
    def losses(self) -> Array:
        """F(w), shape (S,)."""
        risks, step = self.risks, 8192
        sums = np.empty(risks.n_groups)
        for a, (low, high) in enumerate(zip(risks.offsets[:-1], risks.offsets[1:])):
            parts = (slice(i, min(i + step, high)) for i in range(low, high, step))
            sums[a] = sum(float(risks.loss.value(self.scores[part], risks.y[part]).sum()) for part in parts)
        return sums / risks.group_sizes + 0.5 * float(risks.penalty @ self.w**2)

    @cached_property
    def gradients(self) -> Array:
        """Gradients of the group risks, shape (S, d)."""
        return self._pass.gradients / self.risks.group_sizes[:, None] + self.risks.penalty * self.w

    @property
    def mean_curvatures(self) -> Array:
        """Mean second derivative of the loss in each group, shape (S,)."""
        return np.add.reduceat(self._pass.curvature, self.risks.offsets[:-1]) / self.risks.group_sizes

    @property
    def hessians(self) -> Array:
        """Hessians of the group risks, shape (S, d, d)."""
        return self._group_hessians / self.risks.group_sizes[:, None, None] + np.diag(self.risks.penalty)

    def hessian(self, weights: Array) -> Array:
        """Return sum_a lambda_a Hess F_a(w), shape (d, d), for weights lambda of shape (S,)."""
        shares = np.asarray(weights) / self.risks.group_sizes
        if self.risks.separable:
            total = (shares @ self._group_hessians.reshape(len(shares), -1)).reshape(len(self.w), -1)
        else:
            curvature = self._pass.curvature
            total = self.risks.source.reduce(lambda rows: _curvatures(rows, curvature, shares)).total
        return total + float(np.sum(weights)) * np.diag(self.risks.penalty)

    def hessian_products(self, x: Array) -> Array:
        """Return the group Hessians times ``x``, shape (S, d), by one pass over the rows."""
        curvature = self._pass.curvature
        sums = self.risks.source.reduce(lambda rows: _curvature_products(rows, curvature, x)).total
        return sums / self.risks.group_sizes[:, None] + self.risks.penalty * x

    def hessian_product(self, weights: Array, x: Array) -> Array:
        """Return the weighted Hessian times ``x``, shape (d,), by one pass over the rows."""
        return weights @ self.hessian_products(x)

    def score_gradient(self, derivative: Array) -> Array:
        """Return J'm = X'm, shape (d,): a derivative m with respect to the scores, brought to the coefficients."""
        return self.risks.source.reduce(lambda rows: _transposed_product(rows, derivative)).total


# The passes. Each sees the blocks of one part of the rows; what is a number a row comes back as one array for the part,
# what is a sum over rows as a sum, so that the results of several parts can be merged.


@dataclass(frozen=True, eq=False)
class _Total:
    total: Array

    def merge(self, other: _Total) -> _Total:
        return _Total(self.total + other.total)


@dataclass(frozen=True, eq=False)
class _FirstOrder:
    scores: Array
    curvature: Array
    gradients: Array
    hessians: Array | None

    def merge(self, other: _FirstOrder) -> _FirstOrder:
        hessians = None
        if self.hessians is not None and other.hessians is not None:
            hessians = self.hessians + other.hessians
        return _FirstOrder(
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.curvature, other.curvature]),
            self.gradients + other.gradients,
            hessians,
        )


def _first_order(source: RowSource, loss: Loss, w: Array, *, hessians: bool) -> _FirstOrder:
    (n, d), n_groups = source.shape, len(source.group_sizes)
    scores, curvatures, gradients = source.scratch.take(n), source.scratch.take(n), np.zeros((n_groups, d))
    sums, scaled = (np.zeros((n_groups, d, d)), source.block()) if hessians else (None, None)
    for rows, X, y, groups in source.blocks():
        z = np.matmul(w, X, out=scores[rows])  # twice as fast as np.dot with out
        slope, curvatures[rows] = loss.terms(z, y)
        for group, part in groups:
            gradients[group] += X[:, part] @ slope[part]
        if sums is not None and scaled is not None:
            _add_outer_products(sums, X, curvatures[rows], groups, scaled)
    return _FirstOrder(scores, curvatures, gradients, sums)


def _curvatures(source: RowSource, curvature: Array, shares: Array | None = None) -> _Total:
    """Return each group's sum of curvature times x x', or their sum weighted by ``shares``."""
    d = source.n_features
    total, scaled = np.zeros((len(source.group_sizes) if shares is None else 1, d, d)), source.block()
    for rows, X, _, groups in source.blocks():
        here = curvature[rows]
        if shares is None:
            _add_outer_products(total, X, here, groups, scaled)
        else:
            weights = np.concatenate([shares[group] * here[part] for group, part in groups])
            _add_outer_products(total, X, weights, [(0, slice(0, X.shape[1]))], scaled)
    return _Total(total if shares is None else total[0])


def _add_outer_products(
    total: Array, X: Array, curvature: Array, groups: list[tuple[int, slice]], scaled: Array
) -> None:
    """Add X diag(curvature) X' over each group's part of a block to that group's total, by way of ``scaled``."""
    scaled = np.multiply(X, curvature, out=scaled[:, : X.shape[1]])
    step = max(64, _PRODUCT_SIZE // X.shape[0] ** 2)
    for group, part in groups:
        for i in range(part.start, part.stop, step):
            some = slice(i, min(i + step, part.stop))
            total[group] += scaled[:, some] @ X[:, some].T


def _curvature_products(source: RowSource, curvature: Array, x: Array) -> _Total:
    total = np.zeros((len(source.group_sizes), source.n_features))
    for rows, X, _, groups in source.blocks():
        along = x @ X
        along *= curvature[rows]
        for group, part in groups:
            total[group] += X[:, part] @ along[part]
    return _Total(total)


def _transposed_product(source: RowSource, derivative: Array) -> _Total:
    total = np.zeros(source.n_features)
    for rows, X, _, _ in source.blocks():
        total += X @ derivative[rows]
    return _Total(total)


def _check_model(loss: str, l2: float) -> None:
    if loss not in LOSSES:
        raise unknown_name("loss", loss, LOSSES)
    if not (np.isfinite(l2) and l2 >= 0):
        raise ArgumentError("l2", f"must be a finite number >= 0, got {l2}")


def _checked_rows(X: ArrayLike) -> NDArray[Any]:
    rows = np.asarray(X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ArgumentError("X", f"must have shape (n, d) with at least one row and column, got {rows.shape}")
    if rows.dtype.kind not in "fiub":
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise ArgumentError("X", "has columns that are not numbers", "encode or drop them first") from None
    return rows


def _checked_sizes(ids: NDArray[Any]) -> NDArray[np.int64]:
    if not np.issubdtype(ids.dtype, np.integer) or ids.min() < 0:
        missing = ids.dtype.kind == "f" and bool(np.isnan(ids).any())
        problem = "holds missing values; groups must be integers 0..S-1" if missing else "must be integers 0..S-1"
        raise ArgumentError("groups", problem)
    if ids.max() >= len(ids):
        raise ArgumentError(
            "groups", f"group {ids.max()} with {len(ids)} rows", "number the groups 0..S-1 without gaps"
        )
    sizes = np.bincount(ids).astype(np.int64)
    if (sizes == 0).any():
        raise ArgumentError("groups", f"group {int(np.argmin(sizes))} has no row", "number the groups 0..S-1")
    return sizes


def _checked_targets(labels: NDArray[Any]) -> Array:
    try:
        targets = labels.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("y", "the squared loss needs numbers") from None
    if not np.isfinite(targets).all():
        raise ArgumentError("y", "holds NaN or infinite values", "drop those rows first")
    return targets


def _order(ids: NDArray[Any], n_groups: int) -> NDArray[np.int64]:
    """Return the order that sorts rows by group and else leaves them as they are."""
    if bool((ids[1:] >= ids[:-1]).all()):
        return np.arange(len(ids))
    # NumPy sorts numbers of two bytes by radix.
    return np.argsort(ids.astype(np.uint16) if n_groups <= 1 << 16 else ids, kind="stable")


def _sorted_columns(rows: NDArray[Any], order: NDArray[np.int64], step: int = 512) -> Array:
    """Return the rows as columns in the given order, after a check that they are finite; no other copy is made."""
    columns, buffer = np.empty(rows.shape[::-1]), np.empty((step, rows.shape[1]))
    plain = rows.dtype == np.float64 and rows.flags.c_contiguous
    for i in range(0, len(order), step):
        some = order[i : i + step]
        if plain:  # take would copy rows that lie otherwise, all of them
            part = np.take(rows, some, axis=0, out=buffer[: len(some)], mode="clip")
        else:
            part = np.asarray(rows[some], dtype=np.float64)
        if not np.isfinite(part.sum()) and not np.isfinite(part).all():
            raise ArgumentError("X", "holds NaN or infinite values", "impute or drop them first")
        columns[:, i : i + step] = part.T
    return columns
