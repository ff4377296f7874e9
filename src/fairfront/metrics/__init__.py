"""Unfairness metrics: functions of scores, labels and groups, with their derivatives in the scores."""

from __future__ import annotations

import dataclasses
from typing import Any

from fairfront.errors import unknown_name
from fairfront.metrics import hard
from fairfront.metrics.base import BoundMetric, Metric, Task, Variant
from fairfront.metrics.custom import CustomMetric, custom
from fairfront.metrics.demographic_parity import DemographicParity
from fairfront.metrics.disparate_mistreatment import DisparateMistreatment
from fairfront.metrics.equal_opportunity import EqualOpportunity
from fairfront.metrics.equalized_odds import EqualizedOdds
from fairfront.metrics.group_variance import GroupVariance
from fairfront.metrics.hsic import HSIC
from fairfront.metrics.individual_fairness import IndividualFairness

__all__ = [
    "HSIC",
    "BoundMetric",
    "CustomMetric",
    "DemographicParity",
    "DisparateMistreatment",
    "EqualOpportunity",
    "EqualizedOdds",
    "GroupVariance",
    "IndividualFairness",
    "Metric",
    "custom",
    "get",
    "hard",
    "names",
]

_METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (
        DemographicParity,
        EqualOpportunity,
        EqualizedOdds,
        DisparateMistreatment,
        HSIC,
        GroupVariance,
        IndividualFairness,
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all metrics that `get` knows."""
    return tuple(_METRICS)


def get(name: str, *, variant: Variant = "cited", task: Task = "classification", **options: Any) -> Metric:
    """Return a metric by its name.

    Parameters
    ----------
    name : str
        One of `names`.
    variant : {"cited", "paper"}, default "cited"
        The definition that the paper cites, or the formula as published.
    task : {"classification", "regression"}, default "classification"
        What the scores predict.
    **options
        Further fields of the metric, for instance ``form`` of disparate mistreatment.

    Returns
    -------
    Metric
        To be bound to labels and groups with its ``bind``.

    Raises
    ------
    ArgumentError
        If the metric, variant, task or an option is unknown, or the metric is not defined for the task.
    """
    if name not in _METRICS:
        raise unknown_name("metric", name, _METRICS)
    fields = {field.name for field in dataclasses.fields(_METRICS[name])}
    for option in options:
        if option not in fields:
            raise unknown_name(f"option of {name}", option, fields)
    return _METRICS[name](variant=variant, task=task, **options)
