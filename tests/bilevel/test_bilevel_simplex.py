import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairfront.bilevel import project
from fairfront.errors import ArgumentError

vectors = arrays(float, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


@given(vectors)
def test_the_projection_is_in_the_simplex_and_obeys_its_variational_inequality(x):
    p = project(x)
    assert (p >= 0).all() and p.sum() == pytest.approx(1.0, abs=1e-12)
    # p is nearest to x iff (x - p)'(e_a - p) <= 0 at every vertex e_a.
    assert ((x - p) - (x - p) @ p).max() <= 1e-9 * max(1.0, np.abs(x).max())


@given(vectors)
def test_projecting_twice_is_projecting_once(x):
    np.testing.assert_allclose(project(project(x)), project(x), atol=1e-15)


@given(vectors, st.randoms())
def test_projection_commutes_with_permutations_and_ignores_shifts(x, random):
    order = np.array(random.sample(range(len(x)), len(x)))
    np.testing.assert_allclose(project(x[order]), project(x)[order], atol=1e-12)
    np.testing.assert_allclose(project(x + 3.0), project(x), atol=1e-9)


@given(vectors.flatmap(lambda x: st.tuples(st.just(x), arrays(float, len(x), elements=st.floats(-1e3, 1e3)))))
def test_projection_is_non_expansive(pair):
    x, y = pair
    assert np.linalg.norm(project(x) - project(y)) <= np.linalg.norm(x - y) * (1 + 1e-12) + 1e-9


@settings(max_examples=10, deadline=None)
@given(arrays(float, st.integers(2, 8), elements=st.floats(-5, 5)))
def test_projection_agrees_with_a_conic_solver(x):
    p = cp.Variable(len(x))
    cp.Problem(cp.Minimize(cp.sum_squares(p - x)), [p >= 0, cp.sum(p) == 1]).solve(solver=cp.CLARABEL)
    # Nearest of all, and near what the solver calls nearest (it is exact to some 1e-4 only).
    assert np.sum((project(x) - x) ** 2) <= np.sum((p.value - x) ** 2) + 1e-6
    np.testing.assert_allclose(project(x), p.value, atol=1e-3)


@pytest.mark.parametrize("x", [[], [np.nan, 1.0], [[1.0]], [np.inf]])
def test_what_is_no_vector_of_numbers_is_refused(x):
    with pytest.raises(ArgumentError, match=r"^x"):
        project(x)
