"""The checks of the seven metrics hold for the metrics, and fail for others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fairfront import metrics
from fairfront.metrics.base import BoundMetric, FloatArray
from fairfront.theory import seven_metrics as theory


def _rows(n_groups: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(n_groups)
    groups = np.repeat(np.arange(n_groups), 12)
    y = (generator.random(len(groups)) < 0.5).astype(float)
    y[::12], y[1::12] = 0.0, 1.0
    return generator.normal(size=len(groups)), y, groups


class _Altered(BoundMetric):
    """A metric whose value, derivative, or both, are off."""

    def __init__(self, bound: BoundMetric, value: float = 0.0, slope: float = 0.0) -> None:
        super().__init__(bound.metric, bound.n_rows)
        self._bound, self._value, self._slope = bound, value, slope

    def _evaluate(self, z: FloatArray, derivative: bool) -> tuple[float, FloatArray | None]:
        value, in_row = self._bound._evaluate(z, derivative)
        return value + self._value, None if in_row is None else in_row + self._slope


@pytest.mark.parametrize("variant", ["paper", "cited"])
@pytest.mark.parametrize("name", metrics.names())
def test_each_check_holds_for_the_metric_and_fails_for_an_altered_one(name: str, variant: str) -> None:
    z, y, groups = _rows()
    bound, generator = metrics.get(name, variant=variant).bind(y, groups, 3), np.random.default_rng(0)
    assert theory.value_is_definition(bound, z, y, groups).holds
    assert theory.gradient_is_right(bound, z, generator).holds
    assert theory.floor_is_least(bound, y, 3, generator).holds
    assert not theory.value_is_definition(_Altered(bound, value=1e-4), z, y, groups).holds
    assert not theory.gradient_is_right(_Altered(bound, slope=1e-2), z, generator).holds
    assert not theory.floor_is_least(_Altered(bound, value=-1e-6), y, 3, generator).holds


def test_renumbering_moves_the_published_covariances_only() -> None:
    z, y, groups = _rows(4)
    for name in metrics.names():
        for variant in ("paper", "cited"):
            values = theory.renumbered(metrics.get(name, variant=variant), z, y, groups)
            moved = np.ptp(values) > 1e-8 * values.max()
            assert moved == (variant == "paper" and name in ("disparate_mistreatment", "hsic"))
    assert len(theory.renumbered(metrics.get("hsic"), z, y, groups)) == 24
    assert len(theory.renumbered(metrics.get("hsic"), z, y, groups, most=5)) == 5


def test_regression_has_its_own_parity() -> None:
    y = np.random.default_rng(0).normal(size=24)
    groups = np.repeat([0, 1], 12)
    for name, expected in (("group_variance", y), ("hsic", np.zeros(24))):
        metric = metrics.get(name, task="regression")
        np.testing.assert_array_equal(theory.parity_scores(metric, y), expected)
        assert theory.floor_is_least(metric.bind(y, groups), y, 2, np.random.default_rng(1)).holds


def test_cited_hsic_is_the_trace_of_the_kernels() -> None:
    z, y, groups = _rows(5)
    metric = dataclasses.replace(metrics.get("hsic"), variant="cited")
    assert theory.definition(metric, z, y, groups) == pytest.approx(metric.bind(y, groups).value(z), rel=1e-10)
