"""The stratified split: shares, coverage, reproducibility."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairfront.datasets.splits import stratified_split

STRATA = st.lists(st.integers(0, 5), min_size=1, max_size=80).map(lambda values: np.array(values, dtype=np.int64))


@given(STRATA, st.floats(0, 0.99), st.integers(0, 5))
def test_rows_once_each_and_every_stratum_keeps_a_training_row(strata, test_size, seed):
    train, test = stratified_split(strata, test_size, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(strata)))
    assert (np.diff(train) > 0).all() and (np.diff(test) > 0).all()
    assert set(strata[train]) == set(strata)
    for stratum in set(strata):
        size, drawn = np.sum(strata == stratum), np.sum(strata[test] == stratum)
        assert drawn in {np.floor(test_size * size), np.ceil(test_size * size), size - 1}
    assert len(test) <= round(test_size * len(strata))


@given(st.lists(st.integers(2, 40), min_size=1, max_size=6), st.floats(0, 0.5))
def test_the_test_set_has_its_size(sizes, test_size):
    strata = np.repeat(np.arange(len(sizes)), sizes)
    _, test = stratified_split(strata, test_size, np.random.default_rng(0))
    assert len(test) == round(test_size * len(strata))


def test_every_row_is_drawn_equally_often():
    strata = np.repeat([0, 1], [20, 10])
    counts = np.zeros(30)
    generator = np.random.default_rng(0)
    for _ in range(2000):
        counts[stratified_split(strata, 0.3, generator)[1]] += 1
    # 600 of 2,000 are expected, with a standard deviation of 20.5: five of them.
    assert np.abs(counts - 600).max() < 103


def test_same_seed_same_split():
    strata = np.arange(50) % 3
    one, two, other = (stratified_split(strata, 0.3, np.random.default_rng(seed))[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
