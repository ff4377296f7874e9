"""Hard metrics: equal to fairlearn's, function by function."""

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_squared_error, zero_one_loss

from fairfront.errors import ArgumentError
from fairfront.metrics import hard

METHODS = st.sampled_from(["between_groups", "to_overall"])


@st.composite
def decisions(draw):
    """Return labels, predictions and groups; every group has both labels."""
    n_groups, extra = draw(st.integers(1, 5)), draw(st.integers(0, 40))
    bits = st.lists(st.integers(0, 1), min_size=2 * n_groups + extra, max_size=2 * n_groups + extra)
    y = np.array(draw(bits))
    y[: 2 * n_groups] = np.tile([0, 1], n_groups)
    groups = np.array(draw(st.lists(st.integers(0, n_groups - 1), min_size=len(y), max_size=len(y))))
    groups[: 2 * n_groups] = np.repeat(np.arange(n_groups), 2)
    order = draw(st.permutations(range(len(y))))
    return y[order], np.array(draw(bits)), groups[order]


PAIRS = {
    hard.demographic_parity_difference: fairlearn.demographic_parity_difference,
    hard.demographic_parity_ratio: fairlearn.demographic_parity_ratio,
    hard.equal_opportunity_difference: fairlearn.equal_opportunity_difference,
    hard.equal_opportunity_ratio: fairlearn.equal_opportunity_ratio,
    hard.misclassification_rate_difference: fairlearn.zero_one_loss_difference,
    hard.misclassification_rate_ratio: fairlearn.zero_one_loss_ratio,
    hard.false_positive_rate_difference: fairlearn.false_positive_rate_difference,
    hard.false_positive_rate_ratio: fairlearn.false_positive_rate_ratio,
    hard.false_negative_rate_difference: fairlearn.false_negative_rate_difference,
    hard.false_negative_rate_ratio: fairlearn.false_negative_rate_ratio,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning:pandas")
@pytest.mark.parametrize("ours", PAIRS, ids=lambda function: function.__name__)
@settings(max_examples=25, deadline=None)
@given(problem=decisions(), method=METHODS)
def test_rates(ours, problem, method):
    y, predicted, groups = problem
    expected = PAIRS[ours](y, predicted, sensitive_features=groups, method=method)
    assert ours(y, predicted, groups, method=method) == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(problem=decisions(), method=METHODS, agg=st.sampled_from(["worst_case", "mean"]))
def test_equalized_odds(problem, method, agg):
    y, predicted, groups = problem
    for ours, theirs in (
        (hard.equalized_odds_difference, fairlearn.equalized_odds_difference),
        (hard.equalized_odds_ratio, fairlearn.equalized_odds_ratio),
    ):
        reached = ours(y, predicted, groups, method=method, agg=agg)
        expected = theirs(y, predicted, sensitive_features=groups, method=method, agg=agg)
        if np.isnan(expected) and not np.isnan(reached):
            # Every true positive rate is 0: their minimum then depends on which of the two rates comes first.
            assert not predicted[y == 1].any() and agg == "worst_case"
            continue
        assert reached == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(problem=decisions(), method=METHODS, seed=st.integers(0, 1000))
def test_group_losses(problem, method, seed):
    y, _, groups = problem
    prediction = np.random.default_rng(seed).normal(size=len(y))
    frame = fairlearn.MetricFrame(metrics=mean_squared_error, y_true=y, y_pred=prediction, sensitive_features=groups)
    losses = (y - prediction) ** 2
    assert hard.group_loss_difference(losses, groups, method=method) == pytest.approx(frame.difference(method=method))
    assert hard.group_loss_ratio(losses, groups, method=method) == pytest.approx(frame.ratio(method=method))


def test_group_loss_of_wrong_predictions_is_the_misclassification_rate():
    y, predicted, groups = np.array([0, 1, 1, 0]), np.array([1, 1, 0, 0]), np.array([0, 0, 0, 1])
    assert hard.group_loss_difference(y != predicted, groups) == pytest.approx(2 / 3)
    assert hard.misclassification_rate_difference(y, predicted, groups) == pytest.approx(2 / 3)
    assert zero_one_loss(y[groups == 0], predicted[groups == 0]) == pytest.approx(2 / 3)


def test_ratio_of_rates_that_are_all_zero_is_nan():
    assert np.isnan(hard.demographic_parity_ratio([0, 1], [0, 0], [0, 1]))


def test_counterparts_take_labels_predictions_and_groups():
    y, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    for name in ("demographic_parity", "equal_opportunity", "equalized_odds", "disparate_mistreatment"):
        assert hard.COUNTERPARTS[name](y, y, groups) == 0.0


@pytest.mark.parametrize(
    ("call", "argument", "words"),
    [
        (lambda: hard.demographic_parity_difference([0, 1], [0, 0.5], [0, 1]), "y_pred", "0.5"),
        (lambda: hard.demographic_parity_difference([0, 1], [0], [0, 1]), "y_pred", "1 rows"),
        (lambda: hard.demographic_parity_difference([0, 1], [0, 1], [0, 2]), "groups", "3 groups in 2 rows"),
        (lambda: hard.demographic_parity_difference([0, 1, 1], [0, 1, 1], [0, 2, 0]), "groups", "group 1"),
        (lambda: hard.equal_opportunity_difference([0, 1], [0, 1], [0, 1]), "y_true", "group 0"),
        (lambda: hard.false_positive_rate_ratio([0, 1], [0, 1], [0, 1]), "y_true", "group 1"),
        (lambda: hard.demographic_parity_ratio([0, 1], [0, 1], [0, 1], method="between"), "method", "between_groups"),
        (lambda: hard.equalized_odds_ratio([0, 1], [0, 1], [0, 0], agg="worst"), "agg", "worst_case"),
        (lambda: hard.group_loss_ratio([1.0, -1.0], [0, 1]), "losses", "negative"),
        (lambda: hard.group_loss_difference([1.0, np.nan], [0, 1]), "losses", "row 1"),
        (lambda: hard.predicted([0.0, np.inf]), "z", "row 1"),
    ],
)
def test_bad_input_is_named(call, argument, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        call()
    assert caught.value.argument == argument
