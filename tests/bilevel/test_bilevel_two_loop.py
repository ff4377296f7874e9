import itertools

import bilevel_cases as cases
import numpy as np
import pytest

from fairfront.bilevel import (
    Objective,
    exhaustive_search,
    frank_wolfe,
    multi_start,
    slsqp,
    standard_starts,
    trust_constr,
)
from fairfront.errors import ArgumentError
from fairfront.pareto import Scalarization
from fairfront.risks import GroupRisks

LOCAL = (slsqp, trust_constr, frank_wolfe)


@pytest.mark.parametrize("solver", LOCAL)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_no_solver_is_worse_than_its_start_and_its_value_is_exact(solver, loss):
    risks, metric = cases.problem(loss, 3, "demographic_parity")
    solution = solver(risks, metric, max_iterations=50)
    assert solution.value <= Objective(risks, metric).value(np.full(3, 1 / 3)) + 1e-12
    cold = Scalarization(risks).solve(solution.weights)
    np.testing.assert_allclose(solution.model.w, cold.w, rtol=0, atol=1e-9)
    assert solution.value == pytest.approx(metric.value(cold.point.scores), abs=1e-11)
    assert solution.value == pytest.approx(Objective(risks, metric).value(solution.weights), abs=1e-12)
    assert solution.model.gradient_norm <= 1e-11
    frame = solution.frame()
    assert list(frame) == ["iteration", "time", "value", "weight_0", "weight_1", "weight_2"]
    assert frame["value"].min() == pytest.approx(solution.value, abs=1e-7) and frame["time"].is_monotonic_increasing
    np.testing.assert_allclose(frame[["weight_0", "weight_1", "weight_2"]].sum(axis=1), 1.0, atol=1e-12)
    assert solution.lower_solves >= 2 and solution.adjoint_solves >= 1 and solution.seconds > 0
    solves, passes = (np.array([getattr(record, name) for record in solution.history]) for name in ("solves", "passes"))
    assert solves[0] == 1 and (np.diff(solves) >= 0).all()  # the first value comes before its gradient
    assert solves[-1] <= solution.lower_solves + solution.adjoint_solves
    assert passes[0] >= 1 and (np.diff(passes) >= 0).all()


@pytest.mark.parametrize("name", ["demographic_parity", "equalized_odds", "hsic", "individual_fairness"])
@pytest.mark.parametrize("n_groups", [2, 3, 6])
def test_slsqp_ends_where_no_direction_into_the_simplex_descends(name, n_groups):
    risks, metric = cases.problem("logistic", n_groups, name)
    solution = slsqp(risks, metric)
    gradient = Objective(risks, metric).evaluate(solution.weights).gradient
    gap = gradient @ solution.weights - gradient.min()
    assert solution.converged and gap <= 1e-3 * max(np.ptp(gradient), 1e-2)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("n_groups", [2, 3, 6])
@pytest.mark.parametrize("name", ["demographic_parity", "hsic", "individual_fairness"])
def test_loose_solves_on_the_way_lose_nothing(monkeypatch, loss, n_groups, name):
    risks, metric = cases.problem(loss, n_groups, name)
    found = slsqp(risks, metric).value
    monkeypatch.setattr("fairfront.bilevel.two_loop._SEARCH", {"tolerance": 1e-11, "adjoint_tolerance": 1e-11})
    assert found <= slsqp(risks, metric).value + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_multi_start_finds_what_the_exhaustive_search_finds(seed):
    risks, metric = cases.problem("logistic", 2, "demographic_parity", seed=seed)
    everything, several = exhaustive_search(risks, metric), multi_start(risks, metric)
    assert several.value == pytest.approx(everything.value, abs=1e-8)
    assert 1 <= len(several.local_minima) <= len(everything.local_minima)
    assert "distinct" in several.message
    assert slsqp(risks, metric).value >= everything.value - 1e-9


def test_multi_start_tells_minima_apart():
    """Two groups, two basins: the starts at the vertices end in different minima."""
    found = 0
    for seed in range(12):
        risks, metric = cases.problem("logistic", 2, "equal_opportunity", seed=seed)
        everything = exhaustive_search(risks, metric, resolution=41)
        if len(everything.local_minima) > 1:
            several = multi_start(risks, metric, starts=np.vstack([np.eye(2), everything.local_minima]))
            assert len(several.local_minima) > 1
            assert np.all(np.diff(several.minimum_values) >= 0)
            found += 1
    assert found, "no problem had two minima: choose other seeds"


def test_trust_constr_agrees_with_slsqp():
    risks, metric = cases.problem("logistic", 3, "individual_fairness")
    assert trust_constr(risks, metric).value == pytest.approx(slsqp(risks, metric).value, abs=1e-4)


def test_frank_wolfe_takes_the_papers_steps():
    risks, metric = cases.problem("logistic", 3, "demographic_parity")
    solution = frank_wolfe(risks, metric, max_iterations=5)
    weights = [record.weights for record in solution.history]
    objective = Objective(risks, metric)
    for t, (now, then) in enumerate(itertools.pairwise(weights)):
        vertex = np.eye(3)[np.argmin(objective.evaluate(now).gradient)]
        np.testing.assert_allclose(then, now + 2 / (t + 2) * (vertex - now), atol=1e-12)
    assert solution.status == "iteration limit"
    # At a vertex that is the minimum the gap is 0 and the method stops.
    risks, metric = cases.problem("logistic", 2, "demographic_parity")
    assert frank_wolfe(risks, metric, gap=1e3).converged


def test_starts():
    risks, metric = cases.problem("logistic", 3, "demographic_parity")
    assert list(standard_starts(risks)) == [
        "vertex 0",
        "vertex 1",
        "vertex 2",
        "barycentre",
        "erm",
        "balanced",
        "minimax",
    ]
    np.testing.assert_array_equal(slsqp(risks, metric, start=[0.2, 0.3, 0.5]).history[0].weights, [0.2, 0.3, 0.5])
    with pytest.raises(ArgumentError, match="starts"):
        multi_start(risks, metric, starts=[])


@pytest.mark.parametrize("solver", LOCAL)
def test_one_group_is_its_own_fit(solver):
    risks, metric = cases.problem("logistic", 1, "demographic_parity")
    assert solver(risks, metric).weights.tolist() == [1.0]


def test_arguments_are_checked():
    risks, metric = cases.problem("logistic", 3, "demographic_parity")
    for start in ([0.5, 0.5], [1.5, -0.5, 0.0], [np.nan, 0.5, 0.5], [0.5, 0.5, 0.5]):
        with pytest.raises(ArgumentError, match=r"^start"):
            slsqp(risks, metric, start=start)
    with pytest.raises(ArgumentError, match=r"^ftol"):
        slsqp(risks, metric, ftol=0)
    with pytest.raises(ArgumentError, match=r"^gtol"):
        trust_constr(risks, metric, gtol=np.nan)
    with pytest.raises(ArgumentError, match=r"^barrier"):
        trust_constr(risks, metric, barrier=0.0)
    with pytest.raises(ArgumentError, match=r"^gap"):
        frank_wolfe(risks, metric, gap=-1)
    with pytest.raises(ArgumentError, match=r"^max_iterations"):
        slsqp(risks, metric, max_iterations=0)
    with pytest.raises(ArgumentError, match=r"^risks"):
        exhaustive_search(risks, metric)


@pytest.mark.filterwarnings("ignore::fairfront.risks.SmallGroupWarning")
def test_too_many_groups_for_dense_methods_are_refused():
    X, y, _ = cases.rows(1, n=4000)
    risks = GroupRisks(X, y, np.arange(4000) // 2)
    from fairfront import metrics

    metric = metrics.get("hsic").bind(risks.y, risks.groups)
    with pytest.raises(ArgumentError, match="2000 groups"):
        slsqp(risks, metric)
    assert np.isfinite(frank_wolfe(risks, metric, max_iterations=2).value)
