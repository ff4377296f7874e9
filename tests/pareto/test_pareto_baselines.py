import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront import metrics
from fairfront.errors import ArgumentError
from fairfront.pareto import (
    Scalarization,
    balanced_weights,
    erm_weights,
    minimax,
    one_group,
    scalarized,
    uniform_weights,
)
from fairfront.risks import GroupRisks


def random_risks(n_groups, loss="logistic", seed=0, sizes=None, l2=0.05):
    generator = np.random.default_rng([seed, n_groups])
    sizes = sizes or [60 + 20 * a for a in range(n_groups)]
    groups = np.repeat(np.arange(n_groups), sizes)
    X = np.column_stack([np.ones(len(groups)), generator.normal(size=(len(groups), 3))])
    noise = np.linspace(0.5, 3.0, n_groups)[groups]
    z = np.sum(X * (1 + generator.normal(size=(n_groups, 4)))[groups], axis=1) / noise
    y = z + noise if loss == "squared" else (generator.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float)
    return GroupRisks(X, y, groups, loss=loss, l2=l2)


def conic_minimax(risks):
    """Return the minimax value and multipliers of Clarabel."""
    w, t = cp.Variable(risks.n_features), cp.Variable()
    constraints = []
    for a in range(risks.n_groups):
        rows = slice(risks.offsets[a], risks.offsets[a + 1])
        z, y = risks.Xt[:, rows].T @ w, risks.y[rows]
        loss = {
            "logistic": lambda z=z, y=y: cp.sum(cp.logistic(z) - cp.multiply(y, z)),
            "squared_hinge": lambda z=z, y=y: cp.sum_squares(cp.pos(1 - cp.multiply(2 * y - 1, z))),
            "squared": lambda z=z, y=y: cp.sum_squares(y - z),
        }[risks.loss.name]()
        constraints.append(loss / len(y) + 0.5 * risks.l2 * cp.sum_squares(w) <= t)
    value = cp.Problem(cp.Minimize(t), constraints).solve(solver=cp.CLARABEL)
    duals = np.array([float(np.squeeze(c.dual_value)) for c in constraints])
    return value, duals / duals.sum(), w.value


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("n_groups", [2, 3, 4, 5, 6])
def test_minimax_agrees_with_a_conic_solver(n_groups, loss):
    risks = random_risks(n_groups, loss)
    ours = minimax(risks)
    value, duals, w = conic_minimax(risks)
    assert ours.model.losses.max() == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(ours.model.w, w, atol=1e-3 * np.abs(w).max())
    np.testing.assert_allclose(ours.model.weights, duals, atol=5e-3)
    # The dual value certifies it without an oracle.
    assert ours.model.losses.max() - ours.model.weights @ ours.model.losses <= 1e-8


def test_minimax_of_a_group_that_is_worst_everywhere_is_its_own_model():
    X = np.ones((40, 1))
    y = np.r_[np.arange(20) % 2, np.zeros(20)]
    risks = GroupRisks(X, y, np.repeat([0, 1], 20), l2=10.0)
    np.testing.assert_array_equal(minimax(risks).model.weights, [1.0, 0.0])


def test_minimax_of_one_group():
    assert minimax(random_risks(1)).model.weights.tolist() == [1.0]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_weights_are_the_published_formulas(sizes):
    n, total = np.array(sizes, dtype=float), float(sum(sizes))
    np.testing.assert_allclose(erm_weights(sizes), n / total)
    np.testing.assert_allclose(uniform_weights(len(n)), 1 / len(n))
    inverse, complement = balanced_weights(sizes), balanced_weights(sizes, "complement")
    np.testing.assert_allclose(inverse * n, (inverse * n)[0])  # proportional to 1/n_a
    if len(n) > 1:
        np.testing.assert_allclose(complement, (total - n) / ((len(n) - 1) * total))
    for weights in (erm_weights(sizes), inverse, complement):
        assert weights.sum() == pytest.approx(1.0) and (weights >= 0).all()
    if len(n) == 2:
        np.testing.assert_allclose(inverse, complement)


def test_the_two_balanced_forms_differ_for_three_groups():
    assert np.abs(balanced_weights([1, 2, 7]) - balanced_weights([1, 2, 7], "complement")).max() > 0.1
    with pytest.raises(ArgumentError, match="did you mean inverse"):
        balanced_weights([1, 2], "inverses")


def test_erm_weights_minimise_the_mean_loss_of_all_rows():
    risks = random_risks(3)
    w = scalarized(risks, "ERM", erm_weights(risks.group_sizes)).model.w
    z = w @ risks.Xt
    gradient = risks.Xt @ (1 / (1 + np.exp(-z)) - risks.y) / risks.n_rows + risks.l2 * w
    assert np.abs(gradient).max() < 1e-10


def test_one_group_is_the_fairest_vertex():
    risks = random_risks(3)
    bound = metrics.get("demographic_parity").bind(risks.y, risks.groups)
    values = [bound.value(Scalarization(risks).solve(vertex).point.scores) for vertex in np.eye(3)]
    found = one_group(risks, bound.value)
    assert bound.value(found.model.point.scores) == pytest.approx(min(values), abs=1e-12)
    np.testing.assert_array_equal(found.model.weights, np.eye(3)[np.argmin(values)])
