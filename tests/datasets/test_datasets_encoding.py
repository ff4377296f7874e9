"""The design matrix on small frames that can be checked by eye."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairfront.datasets.encoding import design_matrix, one_hot


def test_first_value_in_alphabetical_order_is_the_reference():
    frame = pd.DataFrame({"race": ["white", "asian", "black", "asian"], "age": [1, 2, 3, 4]})
    encoded = one_hot(frame)
    assert list(encoded) == ["age", "race_black", "race_white"]
    assert encoded.to_numpy().tolist() == [[1, 0, 1], [2, 0, 0], [3, 1, 0], [4, 0, 0]]
    assert (encoded.dtypes == np.float64).all()


def test_a_missing_text_sets_no_indicator():
    encoded = one_hot(pd.DataFrame({"lang": ["english", None, "other"]}))
    assert list(encoded) == ["lang_other"]
    assert encoded["lang_other"].tolist() == [0, 0, 1]


def test_columns_that_say_nothing_are_left_out():
    frame = pd.DataFrame({"same": [2, 2, 2], "one": ["a", "a", "a"], "empty": [np.nan] * 3, "gap": [1, np.nan, 1]})
    assert list(one_hot(frame)) == ["gap"]


def test_what_is_learnt_is_learnt_on_the_training_rows():
    encoded = pd.DataFrame({"a": [1.0, 3.0, np.nan, 100.0]})
    X = design_matrix(encoded, np.array([0, 1, 2]))
    scale = np.sqrt(2 / 3)  # of 1, 3 and the mean 2, divisor 3
    np.testing.assert_allclose(X, [[1, -1 / scale], [1, 1 / scale], [1, 0], [1, 98 / scale]])
    np.testing.assert_array_equal(
        X[:3], design_matrix(encoded.assign(a=[1.0, 3.0, np.nan, -7.0]), np.array([0, 1, 2]))[:3]
    )


def test_a_column_constant_on_the_training_rows_is_zero_everywhere():
    encoded = pd.DataFrame(
        {"a": [0.1, 0.1, 0.1, 5.0], "never": [np.nan, np.nan, np.nan, 5.0], "b": [0.0, 1.0, 2.0, 3.0]}
    )
    X = design_matrix(encoded, np.array([0, 1, 2]))
    np.testing.assert_array_equal(X[:, 1:3], 0)
    assert X[3, 3] > 1
