"""All strategies on one partition: each is what it is called, badr is never beaten, test rows are judged as such."""

from __future__ import annotations

import numpy as np
import pytest

from fairfront import metrics, studies
from fairfront.datasets import GroupedData
from fairfront.errors import ArgumentError
from fairfront.pareto import scalarized
from fairfront.risks import GroupRisks
from fairfront.studies.instances import Instance, Unfit, loaded, partitions
from fairfront.studies.strategies import NAMES, RANDOM, Rivals, compare, metric_for, prediction_error, random_search

CASES = [
    ("acs2012-income", ("gender",), "logistic"),
    ("compas", ("age",), "squared_hinge"),
    ("german", ("gender", "age"), "logistic"),
    ("communities", ("race",), "squared"),
]


def _names(loss: str) -> tuple[str, ...]:
    if loss == "squared":
        return ("demographic_parity", "individual_fairness", "group_variance")
    return ("demographic_parity", "equalized_odds", "group_variance", "individual_fairness")


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0])
def case(request: pytest.FixtureRequest) -> tuple[GroupedData, str]:
    name, sensitive, loss = request.param
    return Instance(name, sensitive).load(), loss


def test_badr_is_never_beaten_where_it_was_fitted(case: tuple[GroupedData, str]) -> None:
    data, loss = case
    frame = compare(data, _names(loss), loss=loss)
    wide = frame.pivot_table(index="metric", columns="strategy", values="train_metric")
    assert set(wide.columns) == set(NAMES)
    assert (wide.sub(wide["badr"], axis=0) >= 0).all(axis=None)
    assert (wide["badr"] < wide["uniform"] - 1e-6).any(), "badr gains nothing anywhere"


def test_strategies_are_what_they_are_called(case: tuple[GroupedData, str]) -> None:
    data, loss = case
    risks = GroupRisks.from_data(data, loss=loss)
    bound = metric_for("individual_fairness", loss=loss).bind(risks.y, risks.groups, risks.n_groups)
    found = Rivals(risks).compare(bound, resolution=11, vertices=1)
    weights = {name: strategy.model.weights for name, strategy in found.strategies.items()}
    sizes = risks.group_sizes
    assert weights["uniform"] == pytest.approx(np.full(risks.n_groups, 1 / risks.n_groups))
    assert weights["erm"] == pytest.approx(sizes / sizes.sum())
    assert weights["balanced"] * sizes == pytest.approx(np.full(len(sizes), (weights["balanced"] * sizes)[0]))
    assert sorted(weights["one-group"]) == [0.0] * (risks.n_groups - 1) + [1.0]
    worst = {name: strategy.model.losses.max() for name, strategy in found.strategies.items()}
    assert worst["minimax"] <= min(worst.values()) + 1e-8
    vertices = [bound.value(scalarized(risks, "", vertex).model.point.scores) for vertex in np.eye(risks.n_groups)]
    assert found.unfairness["one-group"] == min(vertices)
    assert found.unfairness[found.rival] == min(v for name, v in found.unfairness.items() if name != "badr")


def test_test_rows_are_judged_by_the_metric_bound_to_them(case: tuple[GroupedData, str]) -> None:
    data, loss = case
    frame = compare(data, ("group_variance",), loss=loss).set_index("strategy")
    risks = GroupRisks.from_data(data, loss=loss, penalize_intercept=False)
    w = scalarized(risks, "uniform", np.full(data.n_groups, 1 / data.n_groups)).model.w
    X, y, groups = data.rows("test")
    expected = metric_for("group_variance", loss=loss).bind(y, groups, data.n_groups).value(X @ w)
    assert frame.test_metric["uniform"] == pytest.approx(expected, rel=1e-9)
    assert frame.test_error["uniform"] == prediction_error(X @ w, y, data.task)
    assert (frame.test_metric != frame.train_metric).all()
    assert [len(weights) for weights in frame.weights] == [data.n_groups] * len(NAMES)


def test_group_variance_has_the_models_own_loss() -> None:
    assert {metric_for("group_variance", loss=loss).loss for loss in ("logistic", "squared_hinge", "squared")} == {
        "logistic",
        "squared_hinge",
        "squared_error",
    }


def test_errors_of_predictions() -> None:
    z, y = np.array([1.0, -1.0, 2.0, -3.0]), np.array([1.0, 1.0, 1.0, 0.0])
    assert prediction_error(z, y, "classification") == 0.25
    assert prediction_error(z, y, "regression") == pytest.approx(np.sqrt((4 + 1 + 9) / 4))


def test_without_test_rows_the_tests_columns_are_empty() -> None:
    frame = compare(Instance("german", ("gender",)).load(0.0), ("hsic",), resolution=11)
    assert frame.test_metric.isna().all() and frame.test_error.isna().all()


def test_partitions_are_the_attributes_and_their_intersections() -> None:
    assert partitions(["german"], most_attributes=1) == (("german", ("gender",)), ("german", ("age",)))
    assert partitions(["german"])[-1] == ("german", ("gender", "age"))
    assert len(partitions(["compas"], most_attributes=3)) == 7


def test_instances_that_do_not_fit_say_why() -> None:
    wanted = [Instance("compas", ("gender",)), Instance("compas", ("gender", "race")), Instance("compas", ("race",))]
    found = dict(loaded(wanted, least_rows=40))
    assert isinstance(found[wanted[0]], GroupedData)
    assert "no test rows" in found[wanted[1]].reason
    assert "11 rows in the group 'Native American'" in found[wanted[2]].reason
    assert isinstance(found[wanted[2]], Unfit)
    assert wanted[1].title == "COMPAS by gender x race"


def test_a_metric_that_lacks_rows_or_is_not_for_the_task_is_refused() -> None:
    data = Instance("communities", ("race",)).load()
    with pytest.raises(ArgumentError, match="regression"):
        compare(data, ("equalized_odds",), loss="squared")
    with pytest.raises(ArgumentError, match="metric"):
        metric_for("individual")
    assert set(metrics.names()) > set(_names("logistic"))


def test_what_studies_share_is_no_study() -> None:
    assert not {"strategies", "instances", "parameters"} & set(studies.names())


def test_the_random_search_finds_the_fairest_of_its_draws(case: tuple[GroupedData, str]) -> None:
    data, loss = case
    risks = GroupRisks.from_data(data, loss=loss, penalize_intercept=False)
    bound = metric_for("individual_fairness", loss=loss).bind(risks.y, risks.groups, risks.n_groups)
    weights = np.random.default_rng(3).dirichlet(np.ones(risks.n_groups), 6)
    values = [bound.value(scalarized(risks, "", lam).model.point.scores) for lam in weights]
    found = random_search(risks, bound, np.random.default_rng(3), 6)
    assert np.array_equal(found.weights, weights[int(np.argmin(values))])
    frame = compare(data, ("individual_fairness",), loss=loss, resolution=5, draws=6, seed=3).set_index("strategy")
    assert list(frame.index) == [*NAMES, RANDOM]
    assert frame.train_metric[RANDOM] == pytest.approx(min(values), rel=1e-9)
    assert frame.train_metric["badr"] <= frame.train_metric.min()
