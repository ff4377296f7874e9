"""Quadratic forms for linear scores: the matrix gives the value and the gradient of the metric itself."""

import numpy as np
import pytest
from metrics_cases import CASES, rows

from fairfront import metrics

QUADRATIC = [
    case
    for case in CASES
    if case.name in ("hsic", "individual_fairness") or (case.name, case.variant) == ("disparate_mistreatment", "paper")
]


def design(n, d=5, offset=3.0):
    rng = np.random.default_rng(n)
    return np.column_stack([np.ones(n), rng.normal(offset, [1.0, 2.0, 0.1, 10.0][: d - 1], (n, d - 1))])


@pytest.mark.parametrize("n_groups", [1, 2, 3, 6])
@pytest.mark.parametrize("case", QUADRATIC, ids=str)
def test_value_and_gradient(case, n_groups):
    _, y, groups = rows(n_groups, n_groups, case.task)
    X = design(len(y))
    bound = case.metric().bind(y, groups)
    Q = bound.quadratic(X)
    np.testing.assert_array_equal(Q, Q.T)
    assert np.linalg.eigvalsh(Q).min() > -1e-12 * np.abs(Q).max() - 1e-300
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=X.shape[1])
        value, derivative = bound.value_and_derivative(X @ w)
        assert w @ Q @ w == pytest.approx(value, rel=1e-9, abs=1e-14)
        np.testing.assert_allclose(2 * Q @ w, X.T @ derivative, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("case", [case for case in CASES if case not in QUADRATIC], ids=str)
def test_the_others_are_no_quadratic_forms(case):
    _, y, groups = rows(0, 2, case.task)
    assert case.metric().bind(y, groups).quadratic(design(len(y))) is None


class InBlocks:
    """A design matrix that only gives slices of rows, as a file would."""

    def __init__(self, X):
        self._X, self.shape, self.most = X, X.shape, 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.most = max(self.most, rows.stop - rows.start)
        return self._X[rows].copy()


@pytest.mark.parametrize("case", QUADRATIC, ids=str)
def test_rows_may_come_in_blocks(case):
    n = 20_000
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, n)
    y = rng.integers(0, 2, n) if case.task == "classification" else rng.normal(size=n)
    X = design(n)
    blocks = InBlocks(X)
    bound = case.metric().bind(y, groups)
    w = rng.normal(size=X.shape[1])
    Q = bound.quadratic(blocks)
    assert blocks.most < n / 2
    assert w @ Q @ w == pytest.approx(bound.value(X @ w), rel=1e-9)


def test_an_offset_of_the_columns_costs_no_digits():
    _, y, groups = rows(1, 3, "classification")
    near, far = design(len(y), offset=0.0), design(len(y), offset=0.0)
    far[:, 1:] += 1e5
    for name in ("hsic", "individual_fairness"):
        bound = metrics.get(name).bind(y, groups)
        np.testing.assert_allclose(bound.quadratic(far), bound.quadratic(near), rtol=1e-7, atol=1e-9)
