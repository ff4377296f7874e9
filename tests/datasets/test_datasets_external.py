"""Data sets that do not come with the package: against the real files where they are at hand, else skipped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairfront.datasets import load

pytestmark = pytest.mark.usefixtures("with_raw_files")


def test_dutch_has_18_groups_of_sex_and_age(raw_folder):
    data = load("dutch", sensitive=["sex", "age"], test_size=0)
    frame = pd.read_parquet(raw_folder / "dutch" / "dutch.parquet")
    assert data.X.shape == (60420, 41) and data.n_groups == 18
    assert data.y.sum() == (frame.occupation == "2_1").sum() == 28763
    sizes = frame.groupby(["sex", frame.age.astype(int).clip(upper=12)]).size()
    assert data.group_sizes.tolist() == sizes.tolist()
    assert data.group_names[0] == "male & 15 to 19" and data.group_names[-1] == "female & 55 or over"
    np.testing.assert_array_equal(data.groups // 9, frame.sex == "2")
