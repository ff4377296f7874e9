"""The seven metrics of the first paper's Table 3, written out as their definitions say, and what is checked of them.

The functions here are slow on purpose: sums over groups and pairs of rows, as one would write them on paper.  The text
at hand prints Table 3's names and references only; "paper" is the formula that the authors published as code.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import log

import numpy as np
from scipy.special import expit, logsumexp

from fairfront.metrics import BoundMetric, Metric
from fairfront.risks import Array
from fairfront.theory.check import Check

__all__ = ["definition", "floor_is_least", "gradient_is_right", "parity_scores", "renumbered", "value_is_definition"]

_Groups = np.ndarray


def definition(metric: Metric, z: Array, y: Array, groups: _Groups) -> float:
    """Return the value that the metric's definition gives, written out in full.

    Parameters
    ----------
    metric : Metric
        One of the seven, at its default options.
    z, y, groups : array of shape (n,)
        Scores, labels, group numbers 0..S-1.
    """
    n_groups = int(groups.max()) + 1
    return _DEFINITIONS[metric.name](metric, z, y, groups, n_groups)


def _members(groups: _Groups, n_groups: int) -> list[_Groups]:
    return [groups == a for a in range(n_groups)]


def _demographic_parity(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    shown = expit(z) if metric.task == "classification" else z
    means = np.array([shown[rows].mean() for rows in _members(groups, S)])
    smooth = np.sqrt((means - means.mean()) ** 2 + 1e-6)
    return float(logsumexp(smooth)) - (log(S) + 1e-3 if metric.variant == "cited" else 0.0)


def _gap(z: Array, y: Array, groups: _Groups, S: int, label: int) -> float:
    rates = np.array([expit(z[rows & (y == label)]).mean() for rows in _members(groups, S)])
    return float(logsumexp(rates) + logsumexp(-rates))


def _equal_opportunity(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    return _gap(z, y, groups, S, 1) - (2 * log(S) if metric.variant == "cited" else 0.0)


def _equalized_odds(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    both = (_gap(z, y, groups, S, 1) + _gap(z, y, groups, S, 0)) / 2
    return both - (2 * log(S) if metric.variant == "cited" else 0.0)


def _covariance(z: Array, groups: _Groups) -> float:
    return float(((groups - groups.mean()) * (z - z.mean())).sum())


def _disparate_mistreatment(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    if metric.variant == "paper":
        return (_covariance(z, groups) / len(z)) ** 2
    width, rho = 0.1, 100.0
    margin = (2 * y - 1) * z
    wrong = np.where(margin >= 0, 0.0, np.where(margin >= -width, -(margin**2) / (2 * width), margin + width / 2))
    covariances = np.array([((rows - rows.mean()) * wrong).mean() for rows in _members(groups, S)])
    return float(logsumexp(rho * np.sqrt(covariances**2 + 1e-6))) / rho - log(S) / rho - 1e-3


def _hsic(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    n = len(z)
    if metric.variant == "paper":
        return (_covariance(z, groups) / (n - 1)) ** 2
    # Gretton et al.: trace(K H L H)/(n - 1)^2, with a linear kernel on scores and an indicator kernel on groups
    centring = np.eye(n) - 1.0 / n
    kernel, alike = np.outer(z, z), (groups[:, None] == groups).astype(float)
    return float(np.trace(kernel @ centring @ alike @ centring)) / (n - 1) ** 2


def _group_variance(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    loss = np.logaddexp(0.0, z) - y * z if metric.task == "classification" else (y - z) ** 2
    means = np.array([loss[rows].mean() for rows in _members(groups, S)])
    return float(((means - means.mean()) ** 2).mean())


def _individual_fairness(metric: Metric, z: Array, y: Array, groups: _Groups, S: int) -> float:
    total = pairs = 0.0
    members = _members(groups, S)
    for a, b in itertools.permutations(range(S), 2):
        here, there = members[a], members[b]
        pairs += here.sum() * there.sum()
        if a < b:
            likeness = np.exp(-np.abs(y[here][:, None] - y[there]))
            total += float((likeness * (z[here][:, None] - z[there]) ** 2).sum())
    return total / pairs


_DEFINITIONS: dict[str, Callable[[Metric, Array, Array, _Groups, int], float]] = {
    "demographic_parity": _demographic_parity,
    "equal_opportunity": _equal_opportunity,
    "equalized_odds": _equalized_odds,
    "disparate_mistreatment": _disparate_mistreatment,
    "hsic": _hsic,
    "group_variance": _group_variance,
    "individual_fairness": _individual_fairness,
}


def value_is_definition(bound: BoundMetric, z: Array, y: Array, groups: _Groups, *, tolerance: float = 1e-9) -> Check:
    """Check a metric's fast value against its definition written out; measured is the difference.

    It is relative where the value is above 1e-6.
    """
    expected = definition(bound.metric, z, y, groups)
    off = abs(bound.value(z) - expected) / max(abs(expected), 1e-6)
    return Check.at_most("value is the definition", off, tolerance, 1)


def gradient_is_right(
    bound: BoundMetric, z: Array, generator: np.random.Generator, *, directions: int = 20, tolerance: float = 1e-6
) -> Check:
    """Check the derivative in the scores against differences along random directions, relative to the largest."""
    derivative = bound.value_and_derivative(z)[1]
    off, scale = 0.0, 0.0
    for direction in generator.normal(size=(directions, len(z))):
        h = 1e-4 / float(np.abs(direction).max())
        sides = {k: bound.value(z + k * h * direction) for k in (-2, -1, 1, 2)}
        numeric = (8 * (sides[1] - sides[-1]) - (sides[2] - sides[-2])) / (12 * h)
        off, scale = max(off, abs(numeric - float(derivative @ direction))), max(scale, abs(numeric))
    return Check.at_most("derivative in the scores", off / scale, tolerance, directions)


def parity_scores(metric: Metric, y: Array) -> Array:
    """Return scores at which the metric is at its floor: 0, or for the group variance of a regression the labels."""
    return y.copy() if (metric.name, metric.task) == ("group_variance", "regression") else np.zeros(len(y))


def floor_is_least(
    bound: BoundMetric, y: Array, n_groups: int, generator: np.random.Generator, *, draws: int = 200
) -> Check:
    """Check that parity reaches a metric's floor and that random scores do not fall below it; measured: the miss."""
    floor = bound.metric.floor(n_groups)
    missed = abs(bound.value(parity_scores(bound.metric, y)) - floor)
    scales = np.geomspace(1e-3, 1e2, draws)
    below = max(floor - bound.value(scale * generator.normal(size=len(y))) for scale in scales)
    return Check.at_most("floor", max(missed, below), 1e-12, draws + 1)


def renumbered(metric: Metric, z: Array, y: Array, groups: _Groups, *, most: int = 120) -> Array:
    """Return the metric's value under permutations of the group numbers: all of them, or an even choice of ``most``."""
    every = list(itertools.permutations(range(int(groups.max()) + 1)))
    chosen = [every[i] for i in np.unique(np.linspace(0, len(every) - 1, most).astype(int))]
    return np.array([metric.bind(y, np.array(order)[groups]).value(z) for order in chosen])
