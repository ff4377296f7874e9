import pickle

import numpy as np

from fairfront.datasets.blocks import MemoryRows
from fairfront.risks import GroupRisks
from fairfront.scratch import Scratch


def address(array):
    return array.__array_interface__["data"][0]


def test_an_array_is_handed_out_again_only_when_no_view_of_it_is_left():
    scratch = Scratch()
    first = scratch.take(10)
    assert address(scratch.take(10)) != address(first)
    part, where = first[3:5], address(first)
    del first
    assert where not in {address(array) for array in [scratch.take(10), scratch.take(10)]}
    del part
    assert where in {address(array) for array in [scratch.take(10), scratch.take(10), scratch.take(10)]}


def test_another_length_is_another_array():
    scratch = Scratch()
    assert scratch.take(4).shape == (4,) and scratch.take(6).shape == (6,)


def test_scores_that_are_kept_stay_as_they_are():
    rng = np.random.default_rng(0)
    risks = GroupRisks(rng.normal(size=(60, 3)), np.arange(60) % 2, np.arange(60) % 3)
    points = [risks.at(w) for w in rng.normal(size=(5, 3))]
    kept = [point.scores for point in points]
    wanted = [risks.Xt.T @ point.w for point in points]
    points.clear()
    for w in rng.normal(size=(5, 3)):
        assert risks.at(w).scores.shape == (60,)
    np.testing.assert_allclose(kept, wanted, rtol=1e-12, atol=1e-12)


def test_copies_of_rows_leave_their_views_and_scratch_behind():
    rows = MemoryRows(np.ones((2, 1000)), np.zeros(1000), np.array([400, 600]))
    before = len(pickle.dumps(rows))
    assert sum(block.X.shape[1] for block in rows.blocks()) == 1000
    rows.scratch.take(1000)
    copy = pickle.loads(pickle.dumps(rows))
    assert len(pickle.dumps(rows)) == before
    np.testing.assert_array_equal(copy.Xt, rows.Xt)
