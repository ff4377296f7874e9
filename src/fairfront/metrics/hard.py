"""Hard counterparts of the smooth metrics: differences and ratios of group rates of 0/1 predictions.

Each function takes the true labels, the predictions and the groups, and agrees with the function of the same name in
fairlearn. A difference of 0 and a ratio of 1 are parity. Where fairlearn takes the rate of a group as 0 because it
lacks the rows to average over, an error names the group instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfront.errors import ArgumentError, unknown_name
from fairfront.metrics.checks import checked_groups, checked_numbers, checked_two_classes, listed

__all__ = [
    "COUNTERPARTS",
    "Method",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "false_negative_rate_difference",
    "false_negative_rate_ratio",
    "false_positive_rate_difference",
    "false_positive_rate_ratio",
    "group_loss_difference",
    "group_loss_ratio",
    "misclassification_rate_difference",
    "misclassification_rate_ratio",
    "predicted",
]

FloatArray = NDArray[np.float64]
Method = Literal["between_groups", "to_overall"]
Aggregate = Literal["worst_case", "mean"]


class _RateMetric(Protocol):
    """A comparison of groups by a rate: how each of them is called."""

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike, *, method: Method = "between_groups"
    ) -> float:
        """Return the comparison."""
        ...


def predicted(z: ArrayLike, threshold: float = 0.0) -> FloatArray:
    """Return the predictions of some scores: 1 above the threshold, else 0.

    Parameters
    ----------
    z : (n,) array
        Scores.
    threshold : float, default 0.0
        Scores above it are class 1.

    Returns
    -------
    (n,) float64 array
        Zeros and ones.
    """
    return (checked_numbers("z", z) > threshold).astype(np.float64)


def group_loss_difference(losses: ArrayLike, groups: ArrayLike, *, method: Method = "between_groups") -> float:
    """Return the largest difference in mean loss: the hard counterpart of group variance.

    Parameters
    ----------
    losses : (n,) array
        Loss of each row, in any unit.
    groups : (n,) integer array
        Groups 0..S-1.
    method : {"between_groups", "to_overall"}, default "between_groups"
        The largest minus the least mean of a group, or the largest distance of a group's mean from the mean of all.

    Returns
    -------
    float
        At least 0 (parity), in the unit of the losses.

    Raises
    ------
    ArgumentError
        If lengths differ, a loss is not finite, or a group has no row.
    """
    return _difference(_group_means(checked_numbers("losses", losses), groups), method)


def group_loss_ratio(losses: ArrayLike, groups: ArrayLike, *, method: Method = "between_groups") -> float:
    """Return the least ratio of mean losses; parameters and errors as `group_loss_difference`.

    Returns
    -------
    float
        From 0 to 1 (parity); NaN where every loss is 0. Negative losses are an error: they have no ratio.
    """
    values = checked_numbers("losses", losses)
    if (values < 0).any():
        raise ArgumentError("losses", "holds a negative loss", "ratios need losses of at least 0")
    return _ratio(_group_means(values, groups), method)


def _group_means(values: FloatArray, groups: ArrayLike, counted: NDArray[np.bool_] | None = None) -> FloatArray:
    """Return the means over the counted rows of each group (S,), and of all, last."""
    numbers, n_groups = checked_groups(groups, None, len(values))
    if counted is not None:
        numbers, values = numbers[counted], values[counted]
    sizes = np.bincount(numbers, minlength=n_groups)
    if not sizes.all():
        lacking = listed(np.flatnonzero(sizes == 0))
        raise ArgumentError("y_true", f"no row of the label that the rate is over in {lacking}", "merge or drop it")
    sums = np.bincount(numbers, weights=values, minlength=n_groups)
    return np.append(sums / sizes, values.mean())


def _both(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[FloatArray, FloatArray]:
    truth, prediction = checked_two_classes("y_true", y_true), checked_two_classes("y_pred", y_pred)
    if truth.shape != prediction.shape:
        raise ArgumentError("y_pred", f"has {len(prediction)} rows, y_true {len(truth)}", "one prediction a label")
    return truth, prediction


def _selected(y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike) -> FloatArray:
    return _group_means(_both(y_true, y_pred)[1], groups)


def _positive(y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike, label: int) -> FloatArray:
    truth, prediction = _both(y_true, y_pred)
    return _group_means(prediction, groups, truth == label)


def _missed(y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike) -> FloatArray:
    return 1 - _positive(y_true, y_pred, groups, 1)


def _wrong(y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike) -> FloatArray:
    truth, prediction = _both(y_true, y_pred)
    return _group_means((truth != prediction).astype(np.float64), groups)


def _check_choice(argument: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise unknown_name(argument, value, choices)


def _difference(means: FloatArray, method: Method) -> float:
    _check_choice("method", method, ("between_groups", "to_overall"))
    of_groups, overall = means[:-1], means[-1]
    if method == "between_groups":
        return float(of_groups.max() - of_groups.min())
    return float(np.abs(of_groups - overall).max())


def _ratio(means: FloatArray, method: Method) -> float:
    _check_choice("method", method, ("between_groups", "to_overall"))
    of_groups, overall = means[:-1], means[-1]
    if of_groups.max() == 0:
        return float("nan")
    if method == "between_groups":
        return float(of_groups.min() / of_groups.max())
    return float((np.minimum(of_groups, overall) / np.maximum(of_groups, overall)).min())


_SAYS = """Return the {0}.

    Parameters
    ----------
    y_true, y_pred : (n,) arrays of 0 and 1
        Labels and predictions.
    groups : (n,) integer array
        Groups 0..S-1.
    method : {{"between_groups", "to_overall"}}, default "between_groups"
        {1}

    Returns
    -------
    float
        {2}

    Raises
    ------
    ArgumentError
        If lengths differ, a label or prediction is neither 0 nor 1, or a group has {3}.
    """


def _compared(
    name: str, rates: Callable[..., FloatArray], compare: Callable[[FloatArray, Method], float], *words: str
) -> _RateMetric:
    """Return the function of a name that compares the groups' rates; the words are put into what it says of itself."""

    def metric(y_true: ArrayLike, y_pred: ArrayLike, groups: ArrayLike, *, method: Method = "between_groups") -> float:
        return compare(rates(y_true, y_pred, groups), method)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = _SAYS.format(*words)
    return metric


def _pair(
    name: str, rates: Callable[..., FloatArray], rate: str, row: str = "no row"
) -> tuple[_RateMetric, _RateMetric]:
    """Return the largest difference in a rate, and the least ratio of rates."""
    return (
        _compared(
            f"{name}_difference",
            rates,
            _difference,
            f"largest difference in {rate}",
            "The largest minus the least rate of a group, or the largest distance of a group's rate from that of all.",
            "From 0 (parity) to 1.",
            row,
        ),
        _compared(
            f"{name}_ratio",
            rates,
            _ratio,
            f"least ratio in {rate}",
            "The least over the largest rate of a group, or the least ratio of a group's rate and that of all.",
            "From 0 to 1 (parity); NaN where every rate is 0.",
            row,
        ),
    )


demographic_parity_difference, demographic_parity_ratio = _pair(
    "demographic_parity", _selected, "selection rate, the share of predictions that are 1"
)
equal_opportunity_difference, equal_opportunity_ratio = _pair(
    "equal_opportunity", functools.partial(_positive, label=1), "true positive rate", "no row of label 1"
)
misclassification_rate_difference, misclassification_rate_ratio = _pair(
    "misclassification_rate", _wrong, "the share of wrong predictions (fairlearn: zero-one loss)"
)
false_positive_rate_difference, false_positive_rate_ratio = _pair(
    "false_positive_rate", functools.partial(_positive, label=0), "false positive rate", "no row of label 0"
)
false_negative_rate_difference, false_negative_rate_ratio = _pair(
    "false_negative_rate", _missed, "false negative rate", "no row of label 1"
)


def equalized_odds_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    groups: ArrayLike,
    *,
    method: Method = "between_groups",
    agg: Aggregate = "worst_case",
) -> float:
    """Return the larger, or the mean, of the differences in true and in false positive rate.

    Parameters
    ----------
    y_true, y_pred, groups, method
        As of `demographic_parity_difference`.
    agg : {"worst_case", "mean"}, default "worst_case"
        The larger of the two differences, or their mean.

    Returns
    -------
    float
        From 0 (parity) to 1.

    Raises
    ------
    ArgumentError
        As `demographic_parity_difference`, and if a group lacks a row of either label.
    """
    _check_choice("agg", agg, ("worst_case", "mean"))
    parts = [_difference(_positive(y_true, y_pred, groups, label), method) for label in (1, 0)]
    return max(parts) if agg == "worst_case" else sum(parts) / 2


def equalized_odds_ratio(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    groups: ArrayLike,
    *,
    method: Method = "between_groups",
    agg: Aggregate = "worst_case",
) -> float:
    """Return the smaller, or the mean, of the ratios of true and of false positive rates.

    Parameters and errors as `equalized_odds_difference`.

    Returns
    -------
    float
        From 0 to 1 (parity). A ratio that is NaN because every rate is 0 is left out; NaN if both are.
    """
    _check_choice("agg", agg, ("worst_case", "mean"))
    parts = [_ratio(_positive(y_true, y_pred, groups, label), method) for label in (1, 0)]
    known = [part for part in parts if not np.isnan(part)] or [np.nan]
    return min(known) if agg == "worst_case" else sum(known) / len(known)


COUNTERPARTS: dict[str, Callable[..., float]] = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
    "disparate_mistreatment": misclassification_rate_difference,
    "group_variance": group_loss_difference,
}
"""Name of a smooth metric: its hard counterpart. HSIC and individual fairness, which know no threshold, have none."""
