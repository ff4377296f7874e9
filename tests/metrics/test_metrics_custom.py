"""Custom metrics: any JAX-traceable function, in double precision, and clear words for every other function."""

import doctest
import importlib
import math
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from metrics_cases import central_difference, rows

from fairfront import metrics
from fairfront.errors import ArgumentError


def by_masks(scores, labels, groups):
    """Demographic parity written with traced masks."""
    prediction = jax.nn.sigmoid(scores)
    means = jnp.stack([jnp.sum(jnp.where(groups == a, prediction, 0)) / jnp.sum(groups == a) for a in range(3)])
    return jax.nn.logsumexp(jnp.sqrt((means - means.mean()) ** 2 + 1e-6))


def by_indexing(scores, labels, groups):
    """The same, reading the number of groups from the data and picking rows."""
    prediction = jax.nn.sigmoid(scores)
    means = jnp.stack([prediction[groups == a].mean() for a in range(int(groups.max()) + 1)])
    return jax.nn.logsumexp(jnp.sqrt((means - means.mean()) ** 2 + 1e-6))


@pytest.mark.parametrize("function", [by_masks, by_indexing])
def test_a_custom_demographic_parity_is_the_built_in_one(function):
    z, y, groups = rows(0, 3, "classification")
    value, derivative = metrics.custom(function).bind(y, groups).value_and_derivative(z)
    expected, expected_derivative = (
        metrics.get("demographic_parity", variant="paper").bind(y, groups).value_and_derivative(z)
    )
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(derivative, expected_derivative, rtol=1e-11, atol=1e-16)
    assert derivative.dtype == np.float64 and derivative.flags.writeable


def test_derivative_against_central_differences_with_labels():
    def smooth_accuracy_gap(scores, labels, groups):
        loss = jnp.logaddexp(0, scores) - labels * scores
        means = jax.ops.segment_sum(loss, groups, num_segments=2) / jnp.bincount(groups, length=2)
        return (means[0] - means[1]) ** 2

    z, y, groups = rows(1, 2, "classification")
    bound = metrics.custom(smooth_accuracy_gap, name="gap").bind(y, groups)
    _, derivative = bound.value_and_derivative(z)
    assert bound.metric.name == "gap"
    np.testing.assert_allclose(derivative, central_difference(bound.value, z), atol=1e-9)
    assert np.abs(derivative).max() > 1e-4


def test_global_precision_is_left_alone():
    z, y, groups = rows(2, 3, "classification")
    assert not jax.config.jax_enable_x64
    metrics.custom(by_masks).bind(y, groups).value_and_derivative(z)
    assert not jax.config.jax_enable_x64
    assert jnp.ones(2).dtype == jnp.float32


def test_rebinding_compiles_nothing_anew():
    traced = []

    def function(scores, labels, groups):
        traced.append(1)
        return jnp.mean(scores**2)

    metric = metrics.custom(function)
    for seed in range(4):
        z, y, groups = rows(seed, 2, "classification")
        metric.bind(y, groups).value_and_derivative(z)
        if seed == 0:
            after_first = len(traced)
    assert len(traced) == after_first > 0


def test_regression_labels_and_scores_of_any_size():
    z, y, groups = rows(3, 2, "regression")
    bound = metrics.custom(lambda s, y, g: jnp.mean((s - y) ** 2), task="regression").bind(y, groups)
    assert bound.value(z) == pytest.approx(np.mean((z - y) ** 2), rel=1e-14)
    assert bound.quadratic(np.ones((len(z), 1))) is None
    assert metrics.custom(by_masks).floor(2) == -math.inf


def test_a_custom_metric_of_a_module_function_pickles():
    metric = metrics.custom(by_masks)
    assert pickle.loads(pickle.dumps(metric)) == metric


NUMPY_ONLY = {
    "numpy": lambda s, y, g: np.exp(s).mean(),
    "scipy": lambda s, y, g: scipy.special.expit(s).mean(),
    "float": lambda s, y, g: float(s.sum()),
    "math": lambda s, y, g: math.exp(s[0]),
    "branch": lambda s, y, g: s.sum() if s.sum() > 0 else -s.sum(),
    "boolean index": lambda s, y, g: s[s > 0].sum(),
    "sort by numpy": lambda s, y, g: np.sort(s)[0],
}


@pytest.mark.parametrize("kind", NUMPY_ONLY)
def test_a_numpy_function_is_refused_with_the_way_to_mend_it(kind):
    _, y, groups = rows(0, 2, "classification")
    with pytest.raises(ArgumentError, match=r"trace.*jax\.numpy instead of numpy") as caught:
        metrics.custom(NUMPY_ONLY[kind]).bind(y, groups)
    assert caught.value.argument == "function"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda s, y, g: s, r"shape \(60,\).*a real scalar"),
        (lambda s, y, g: jnp.sum(s > 0), "int64.*a real scalar"),
        (lambda s, y, g: 1j * jnp.sum(s), "complex128.*a real scalar"),
        (lambda s, y, g: (jnp.sum(s), 1), "a real scalar"),
        (lambda s, y, g: None, "None.*a real scalar"),
        (lambda s, y: jnp.sum(s), "TypeError.*positional"),
        (lambda s, y, g: s.nosuch, "AttributeError.*nosuch"),
        (lambda s, y, g: jax.lax.while_loop(lambda v: v[0] < 9, lambda v: v + 1, s)[0], "ValueError.*[Rr]everse-mode"),
    ],
)
def test_a_function_that_returns_no_differentiable_scalar_is_refused(function, words):
    _, y, groups = rows(0, 2, "classification")
    with pytest.raises(ArgumentError, match=words) as caught:
        metrics.custom(function).bind(y, groups)
    assert caught.value.argument == "function"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda s, y, g: jnp.log(-jnp.sum(s**2)), "returned nan"),
        (lambda s, y, g: jnp.exp(1e6 + jnp.sum(s)), "returned inf"),
        (lambda s, y, g: jnp.sqrt(jnp.sum((s - s) ** 2)), "derivative of <lambda> is nan in row 0"),
    ],
)
def test_nan_is_refused(function, words):
    z, y, groups = rows(0, 2, "classification")
    with pytest.raises(ArgumentError, match=words):
        metrics.custom(function).bind(y, groups).value_and_derivative(z)


def test_the_documented_example():
    outcome = doctest.testmod(importlib.import_module("fairfront.metrics.custom"))
    assert outcome.attempted > 0 and outcome.failed == 0


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match="callable of"):
        metrics.custom("demographic_parity")


def test_jax_is_imported_only_when_a_custom_metric_is_bound():
    program = (
        "import sys, fairfront.metrics as m\n"
        "metric = m.custom(lambda s, y, g: s.mean())\n"
        "heavy = {'jax', 'scipy', 'pandas', 'sklearn', 'torch', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "metric.bind([0, 1], [0, 1])\n"
        "assert 'jax' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
