"""Group risks: the objectives whose Pareto front the first paper studies.

For groups a = 1..S with rows I_a, ``F_a(w) = (1/n_a) sum_{i in I_a} loss(y_i, x_i'w) + (l2/2) |w|^2`` (section 2 and
5.1.2 of the first paper).  One penalty convention is used in values, gradients, Hessians and adjoints alike.  The ones
column is penalised like every other coordinate (as the paper appends it, and as the theorems' strong convexity needs)
or left free, by an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from fairfront.datasets import GroupedData
from fairfront.errors import ArgumentError, unknown_name

__all__ = ["LOSSES", "Array", "GroupRisks", "Loss", "RiskPoint"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A pointwise loss of scores and labels.

    Attributes
    ----------
    name : str
        Name in :data:`LOSSES`.
    value, derivative, curvature : callable
        Functions of scores z (n,) and labels y (n,) that return (n,): the loss and its first two derivatives in z.
    """

    name: str
    value: Callable[[Array, Array], Array]
    derivative: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]


def _logistic_curvature(z: Array, _y: Array) -> Array:
    p = expit(z)
    return p * (1.0 - p)


LOSSES: dict[str, Loss] = {
    # log(1 + e^z) - y z with y in {0, 1}
    "logistic": Loss(
        "logistic",
        value=lambda z, y: np.logaddexp(0.0, z) - y * z,
        derivative=lambda z, y: expit(z) - y,
        curvature=_logistic_curvature,
    ),
}


class GroupRisks:
    """The S group risks of a linear model on rows held in memory.

    Rows are kept with groups contiguous and features as rows of a (d, n) array, so that every sum over a group is one
    matrix product over a slice.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, with the ones column where the model has an intercept.
    y : array of shape (n,)
        Labels: in {0, 1} for the logistic loss.
    groups : array of shape (n,)
        Group of each row, in 0..S-1; every group has at least one row.
    loss : {"logistic"}, default "logistic"
        Pointwise loss, a key of :data:`LOSSES`.
    l2 : float, default 1e-2
        Weight of ``|w|^2 / 2`` in every group's risk; at least 0.
    intercept : int or None, default 0
        Index of the ones column, None where there is none.
    penalize_intercept : bool, default True
        Whether the ones column's coefficient is in the penalty.

    Raises
    ------
    ArgumentError
        For shapes that do not match, values that are not finite, labels outside the loss's domain, groups that are not
        0..S-1, or a negative ``l2``.
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
        if loss not in LOSSES:
            raise unknown_name("loss", loss, LOSSES)
        if not (np.isfinite(l2) and l2 >= 0):
            raise ArgumentError("l2", f"must be a finite number >= 0, got {l2}")
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        ids = np.asarray(groups)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ArgumentError("X", f"must have shape (n, d) with at least one row and column, got {rows.shape}")
        n, d = rows.shape
        for name, vector in (("y", labels), ("groups", ids)):
            if vector.shape != (n,):
                raise ArgumentError(name, f"must have shape ({n},) like the rows of X, got {vector.shape}")
        if not np.isfinite(rows).all():
            raise ArgumentError("X", "holds NaN or infinite values", "impute or drop them first")
        if not np.isfinite(labels).all():
            raise ArgumentError("y", "holds NaN or infinite values", "drop those rows first")
        if loss == "logistic" and not np.isin(labels, (0.0, 1.0)).all():
            raise ArgumentError("y", "the logistic loss needs labels in {0, 1}")
        if not np.issubdtype(ids.dtype, np.integer) or ids.min() < 0:
            raise ArgumentError("groups", "must be integers 0..S-1")
        sizes = np.bincount(ids)
        if (sizes == 0).any():
            raise ArgumentError("groups", f"group {int(np.argmin(sizes))} has no row", "number the groups 0..S-1")
        if intercept is not None and not 0 <= intercept < d:
            raise ArgumentError("intercept", f"must be a column of X, 0..{d - 1}, or None, got {intercept}")

        #: Original row of each stored row, shape (n,): stored rows are sorted by group.
        self.order: NDArray[np.int64] = np.argsort(ids, kind="stable")
        self.Xt: Array = np.ascontiguousarray(rows[self.order].T)
        self.y: Array = labels[self.order]
        self.groups: NDArray[np.int64] = ids[self.order].astype(np.int64)
        self.group_sizes: NDArray[np.int64] = sizes.astype(np.int64)
        self.offsets: NDArray[np.int64] = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        self.loss, self.l2 = LOSSES[loss], float(l2)
        #: Coordinates in the penalty, shape (d,): l2 on a penalised coordinate, 0 on a free one.
        self.penalty: Array = np.full(d, self.l2)
        if intercept is not None and not penalize_intercept:
            self.penalty[intercept] = 0.0

    @classmethod
    def from_data(
        cls,
        data: GroupedData,
        part: Literal["train", "test", "all"] = "train",
        *,
        loss: str = "logistic",
        l2: float = 1e-2,
        penalize_intercept: bool = True,
    ) -> GroupRisks:
        """Return the risks of one part ("train", "test" or "all") of a loaded data set."""
        X, y, groups = data.rows(part)
        intercept = data.feature_names.index("intercept") if "intercept" in data.feature_names else None
        return cls(X, y, groups, loss=loss, l2=l2, intercept=intercept, penalize_intercept=penalize_intercept)

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return self.Xt.shape[1]

    @property
    def n_features(self) -> int:
        """Number of coefficients d."""
        return self.Xt.shape[0]

    @property
    def n_groups(self) -> int:
        """Number of groups S."""
        return len(self.group_sizes)

    def at(self, w: ArrayLike) -> RiskPoint:
        """Return the risks at the coefficients ``w``, of shape (d,); each quantity is computed when first asked for."""
        vector = np.asarray(w, dtype=np.float64)
        if vector.shape != (self.n_features,):
            raise ArgumentError("w", f"must have shape ({self.n_features},), got {vector.shape}")
        return RiskPoint(self, vector)

    def losses(self, w: ArrayLike) -> Array:
        """Return F(w), shape (S,)."""
        return self.at(w).losses

    def row_weights(self, weights: Array) -> Array:
        """Return lambda_a / n_a of each stored row's group, shape (n,)."""
        return np.repeat(weights / self.group_sizes, self.group_sizes)


@dataclass(frozen=True, eq=False)
class RiskPoint:
    """The group risks at one model.

    Attributes
    ----------
    risks : GroupRisks
        Where the rows are.
    w : array of shape (d,)
        Coefficients.
    """

    risks: GroupRisks
    w: Array = field(repr=False)

    @cached_property
    def scores(self) -> Array:
        """Scores z = Xw of the stored rows, shape (n,)."""
        return self.w @ self.risks.Xt

    @cached_property
    def losses(self) -> Array:
        """F(w), shape (S,)."""
        risks = self.risks
        values = risks.loss.value(self.scores, risks.y)
        sums = np.add.reduceat(values, risks.offsets[:-1])
        return sums / risks.group_sizes + 0.5 * float(risks.penalty @ self.w**2)

    @cached_property
    def gradients(self) -> Array:
        """Gradients of the group risks, shape (S, d)."""
        risks = self.risks
        residual = risks.loss.derivative(self.scores, risks.y)
        bounds = zip(risks.offsets[:-1], risks.offsets[1:], strict=True)
        sums = np.array([risks.Xt[:, i:j] @ residual[i:j] for i, j in bounds])
        return sums / risks.group_sizes[:, None] + risks.penalty * self.w

    def hessian(self, weights: Array) -> Array:
        """Return sum_a lambda_a Hess F_a(w), shape (d, d), for weights lambda of shape (S,)."""
        risks = self.risks
        curvature = risks.loss.curvature(self.scores, risks.y) * risks.row_weights(weights)
        return (risks.Xt * curvature) @ risks.Xt.T + float(weights.sum()) * np.diag(risks.penalty)

    def score_gradient(self, derivative: Array) -> Array:
        """Return J'm = X'm, shape (d,): a derivative m with respect to the scores, brought to the coefficients."""
        return self.risks.Xt @ derivative
