"""Unfairness metrics: functions of scores, labels and groups, with their derivatives in the scores."""

from __future__ import annotations

import dataclasses
from typing import Any

from fairfront.errors import unknown_name
from fairfront.metrics.base import BoundMetric, Metric, Task, Variant
from fairfront.metrics.individual_fairness import IndividualFairness

__all__ = ["BoundMetric", "IndividualFairness", "Metric", "get", "names"]

_METRICS: dict[str, type[Metric]] = {metric.name: metric for metric in (IndividualFairness,)}


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
