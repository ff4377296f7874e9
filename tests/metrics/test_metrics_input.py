"""Names, options and bad input: each error names the argument and says what would be right."""

import dataclasses
import pickle

import numpy as np
import pytest
from metrics_cases import CASES, rows

from fairfront import metrics
from fairfront.errors import ArgumentError

GOOD = ([0, 1, 0, 1], [0, 0, 1, 1])


def refused(argument, words, function, *args, **options):
    with pytest.raises(ArgumentError, match=words) as caught:
        function(*args, **options)
    assert caught.value.argument == argument


def test_seven_metrics():
    assert metrics.names() == (
        "demographic_parity",
        "equal_opportunity",
        "equalized_odds",
        "disparate_mistreatment",
        "hsic",
        "group_variance",
        "individual_fairness",
    )


@pytest.mark.parametrize("name", metrics.names())
def test_every_metric_describes_itself_and_cannot_change(name):
    metric = metrics.get(name)
    assert (metric.name, metric.variant, metric.task) == (name, "cited", "classification")
    assert metric.tasks[0] == "classification"
    with pytest.raises(dataclasses.FrozenInstanceError):
        metric.variant = "paper"
    assert pickle.loads(pickle.dumps(metric)) == metric == metrics.get(name)


def test_names_and_options():
    refused("metric", "did you mean demographic_parity", metrics.get, "demografic_parity")
    refused("variant", "did you mean paper", metrics.get, "hsic", variant="papers")
    refused("task", "did you mean regression", metrics.get, "hsic", task="regresion")
    refused("option of hsic", "unknown: 'rho'", metrics.get, "hsic", rho=2.0)
    refused("form", "did you mean false_positive", metrics.get, "disparate_mistreatment", form="false_positives")
    refused("form", "no forms", metrics.get, "disparate_mistreatment", variant="paper", form="false_negative")
    refused("loss", "did you mean squared_hinge", metrics.get, "group_variance", loss="hinge_squared")
    refused("loss", "two classes", metrics.get, "group_variance", task="regression", loss="logistic")
    for rho in (0, -1.0, np.nan, np.inf, "1", True):
        refused("rho", "a positive number", metrics.get, "demographic_parity", rho=rho)
    refused("width", "a positive number", metrics.get, "disparate_mistreatment", width=0.0)


@pytest.mark.parametrize("name", ["equal_opportunity", "equalized_odds", "disparate_mistreatment"])
def test_a_metric_that_the_task_does_not_define(name):
    refused("task", f"{name} is not defined for regression", metrics.get, name, task="regression")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_scores(case):
    _, y, groups = rows(0, 2, case.task)
    bound = case.metric().bind(y, groups)
    for bad in (np.nan, np.inf, -np.inf):
        z = np.zeros(len(y))
        z[7] = bad
        refused("z", "row 7", bound.value, z)
        refused("z", "row 7", bound.value_and_derivative, z)
    refused("z", r"shape \(60,\)", bound.value, np.zeros(59))
    refused("z", r"shape \(60,\)", bound.value, np.zeros((60, 1)))


def test_large_finite_scores_are_no_bad_scores():
    value = metrics.get("demographic_parity").bind(*GOOD).value(np.full(4, 1.7e308))
    assert value == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("name", metrics.names())
def test_bad_labels_and_groups(name):
    bind = metrics.get(name).bind
    y, groups = GOOD
    refused("y", "at least one row", bind, [], [])
    refused("y", "at least one row", bind, [[0, 1]], [0, 1])
    refused("y", "row 1", bind, [0, np.nan, 0, 1], groups)
    refused("y", "holds 2, which is no class", bind, [0, 1, 2, 1], groups)
    refused("y", "holds -1.*0 and 1", bind, [-1, 1, -1, 1], groups)
    refused("y", "something other than numbers", bind, ["no", "yes", "no", "yes"], groups)
    refused("groups", r"shape \(4,\)", bind, y, [0, 1])
    refused("groups", "type float64", bind, y, [0.0, 0.0, 1.0, 1.0])
    refused("groups", "from -1 to 1", bind, y, [-1, 0, 1, 1])
    refused("groups", "from 0 to 1.*0 to 0 for 1 groups", bind, y, groups, 1)
    refused("groups", "no row in group 2", bind, y, groups, 3)
    refused("groups", "no row in group 0", bind, y, [1, 1, 2, 2])
    refused("groups", "1000001 groups in 4 rows", bind, y, [0, 0, 0, 10**6])
    refused("groups", "no row in groups 1, 2, 3, 4, 5 [.]{3}", bind, [0] * 10, [0, 9] * 5)


def test_a_group_that_lacks_a_class():
    y, groups = [0, 1, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]
    refused("y", "no row with label 1 in group 1", metrics.get("equal_opportunity").bind, y, groups)
    refused("y", "no row with label 1 in group 1", metrics.get("equalized_odds").bind, y, groups)
    refused("y", "no row with label 0 in group 2", metrics.get("equalized_odds").bind, [0, 1, 0, 1, 1, 1], groups)
    refused("y", "label 1 in groups 0, 1, 2", metrics.get("equal_opportunity").bind, [0] * 6, groups)
    metrics.get("equal_opportunity").bind([0, 1, 1, 1, 1, 1], groups)


def test_labels_may_be_booleans_or_integers():
    z = [0.1, -0.2, 0.3, 0.4]
    for name in metrics.names():
        values = {
            metrics.get(name).bind(np.array(GOOD[0], dtype=kind), np.array(GOOD[1], dtype=small)).value(z)
            for kind, small in (("bool", "bool"), ("int8", "uint8"), ("float32", "int32"))
        }
        assert len(values) == 1


def test_hsic_of_one_row():
    refused("y", "at least two rows", metrics.get("hsic").bind, [1], [0])


def test_ten_thousand_groups_of_two_rows():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10_000), 2)
    y, z = np.tile([0, 1], 10_000), rng.normal(size=20_000)
    for name in metrics.names():
        value, derivative = metrics.get(name).bind(y, groups).value_and_derivative(z)
        assert np.isfinite(value) and value >= -1e-12 and np.isfinite(derivative).all()
