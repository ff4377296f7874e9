"""Partitions against a definition row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront.datasets.groups import categorise, partition
from fairfront.datasets.registry import Attribute
from fairfront.errors import DataError

GENDER = Attribute("gender", ("male", "female"), ("gender",))
RACE = Attribute("race", ("white", "black", "asian"), ("race",))
AGE = Attribute("age", ("under 25", "25 to 44", "45 or over"), ("age",), cuts=(25, 45))


@given(
    st.lists(
        st.tuples(st.sampled_from(GENDER.levels), st.sampled_from(RACE.levels), st.integers(0, 99)),
        min_size=1,
        max_size=30,
    )
)
def test_every_row_is_in_the_group_of_its_values(rows):
    frame = pd.DataFrame(rows, columns=["gender", "race", "age"])
    result = partition(frame, [GENDER, RACE, AGE])
    assert len(result.names) == len(set(result.names)) == 18
    assert result.ids.dtype == np.int64
    for (gender, race, age), number in zip(rows, result.ids, strict=True):
        bin_name = "under 25" if age < 25 else "25 to 44" if age < 45 else "45 or over"
        assert result.names[number] == f"{gender} & {race} & {bin_name}"


def test_order_is_lexicographic_in_the_registrys_order():
    frame = pd.DataFrame({"gender": ["female", "male"], "race": ["white", "asian"]})
    result = partition(frame, [RACE, GENDER])
    assert result.names[:3] == ("white & male", "white & female", "black & male")
    assert result.ids.tolist() == [1, 4]


def test_cuts_are_the_lower_ends_of_their_bins():
    assert categorise(pd.Series([24, 24.9, 25, 44, 45, 90]), AGE).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_row_without_a_value_is_refused():
    with pytest.raises(DataError, match="gender: 1 rows have no value"):
        categorise(pd.Series(["male", None]), GENDER)
    with pytest.raises(DataError, match="age: 2 rows have no value"):
        categorise(pd.Series([float("nan"), 3, None]), AGE)


def test_an_unlisted_value_is_refused():
    with pytest.raises(DataError, match="race: inuit, maori not among the registry's values: white, black, asian"):
        categorise(pd.Series(["white", "maori", "inuit", "maori"]), RACE)
