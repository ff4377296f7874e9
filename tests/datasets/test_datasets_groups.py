"""Partitions against a definition row by row."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront.datasets import load
from fairfront.datasets.groups import Partition, categorise, merge, partition, rebin
from fairfront.datasets.registry import Attribute
from fairfront.errors import ArgumentError, DataError

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


# Merging and binning


@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(2, 12))
def test_merging_is_by_its_definition(sizes, groups):
    filled = [cell for cell, size in enumerate(sizes) if size]
    cells = Partition(np.repeat(np.arange(len(sizes)), sizes), tuple(f"c{cell}" for cell in range(len(sizes))))
    if groups > len(filled):
        with pytest.raises(ArgumentError, match=f"groups cannot be made of {len(filled)} cells"):
            merge(cells, groups)
        return
    merged = merge(cells, groups)
    members = [[cell] for cell in filled]
    while len(members) > groups:  # the two smallest, the earlier cells first among equals
        members.sort(key=lambda group: (sum(sizes[cell] for cell in group), group))
        members = [sorted(members[0] + members[1]), *members[2:]]
    members.sort()
    assert merged.names == tuple(" + ".join(f"c{cell}" for cell in group) for group in members)
    assert merged.sizes.tolist() == [sum(sizes[cell] for cell in group) for group in members]
    assert (merged.sizes > 0).all() and len(merged.ids) == sum(sizes)
    for number, group in enumerate(members):
        np.testing.assert_array_equal(np.isin(cells.ids, group), merged.ids == number)


@pytest.mark.parametrize("groups", [1, 37, 2.0, "2", True])
def test_a_number_of_groups_out_of_range(groups):
    cells = Partition(np.arange(40), tuple(map(str, range(40))))
    with pytest.raises(ArgumentError, match=r"groups: not a number of groups: .*from 2 to 36"):
        merge(cells, groups)


def test_bins_are_those_asked_for():
    (age,) = rebin([AGE], {"age": [30, 65]})
    assert age.levels == ("under 30", "30 to below 65", "65 or over")
    assert categorise(pd.Series([29.5, 30, 64, 65]), age).tolist() == [0, 1, 1, 2]
    assert rebin([AGE, RACE], None) == (AGE, RACE)


@pytest.mark.parametrize("cuts", [[], [3, 3], [4, 2], ["a"], [float("nan")], 7])
def test_bins_that_are_none(cuts):
    with pytest.raises(ArgumentError, match="bins: not increasing numbers: age="):
        rebin([AGE], {"age": cuts})


def test_bins_of_what_is_no_number():
    with pytest.raises(ArgumentError, match=r"bins: 'race' is no numeric sensitive attribute here .numeric ones: age"):
        rebin([AGE, RACE], {"race": [3]})


def test_one_partition_for_every_seed_and_split():
    one, two = (load("adult", sensitive=["gender", "race"], groups=4, seed=seed, test_size=0.3) for seed in (0, 1))
    np.testing.assert_array_equal(one.groups, two.groups)
    assert one.group_names == two.group_names and one.n_groups == 4
    assert set(one.groups[one.train]) == set(one.groups[one.test]) == set(range(4))


def test_bins_by_load():
    data = load("adult", sensitive="age", bins={"age": [30, 50]}, test_size=0)
    assert data.group_names == ("under 30", "30 to below 50", "50 or over")


def test_cells_without_rows_are_named_in_no_group():
    merged = merge(Partition(np.array([0, 0, 2]), ("a", "b", "c")), 2)
    assert merged.names == ("a", "c")


def test_three_million_rows_quickly():
    """Half a second on a free core; here only that nothing is done row by row in Python."""
    n = 3_000_000
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "gender": pd.Categorical.from_codes(draw.integers(0, 2, n), GENDER.levels),
            "race": pd.Categorical.from_codes(draw.integers(0, 3, n), RACE.levels),
            "age": draw.integers(0, 95, n).astype(np.float32),
        }
    )
    started = time.process_time()
    merged = partition(frame, [GENDER, RACE, AGE], groups=6)
    assert time.process_time() - started < 3
    assert merged.sizes.sum() == n and len(merged.names) == 6
