import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from fairfront.datasets.blocks import MemoryRows, ParquetRows, write_blocks
from fairfront.errors import ArgumentError, DataError, OutputError
from fairfront.pareto import Scalarization
from fairfront.risks import LOSSES, GroupRisks, SmallGroupWarning, encode_labels


def data(n=400, n_groups=3, d=5, seed=0, regression=False):
    generator = np.random.default_rng(seed)
    groups = generator.integers(0, n_groups, n)
    groups[:n_groups] = np.arange(n_groups)
    X = np.column_stack([np.ones(n), generator.normal(size=(n, d - 1))])
    z = X @ generator.normal(size=d) + groups
    y = z + generator.normal(size=n) if regression else (generator.random(n) < 1 / (1 + np.exp(-z))).astype(float)
    return X, y, groups


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalize", [True, False])
def test_values_gradients_and_hessians_are_those_of_the_definition(loss, penalize):
    X, y, groups = data(regression=loss == "squared")
    risks = GroupRisks(X, y, groups, loss=loss, l2=0.3, penalize_intercept=penalize)
    w = np.random.default_rng(1).normal(size=5)

    def definition(w):
        z, side = X @ w, 2 * y - 1
        pointwise = {
            "logistic": np.log1p(np.exp(z)) - y * z,
            "squared_hinge": np.maximum(0, 1 - side * z) ** 2,
            "squared": (y - z) ** 2,
        }[loss]
        penalised = w if penalize else w[1:]
        return np.array([pointwise[groups == a].mean() for a in range(3)]) + 0.15 * penalised @ penalised

    point, h = risks.at(w), 1e-5
    np.testing.assert_allclose(point.losses, definition(w), rtol=1e-12)
    steps = h * np.eye(5)
    gradients = np.array([(definition(w + e) - definition(w - e)) / (2 * h) for e in steps]).T
    np.testing.assert_allclose(point.gradients, gradients, rtol=1e-6, atol=1e-8)
    lam = np.array([0.2, 0.5, 0.3])
    hessian = np.array([lam @ (risks.at(w + e).gradients - risks.at(w - e).gradients) / (2 * h) for e in steps])
    np.testing.assert_allclose(point.hessian(lam), hessian, rtol=1e-5, atol=1e-5)
    x = np.arange(5.0)
    np.testing.assert_allclose(risks.at(w).hessian_product(lam, x), point.hessian(lam) @ x, rtol=1e-10)
    np.testing.assert_allclose(risks.at(w).with_hessians().hessians, point.hessians, rtol=1e-12)
    np.testing.assert_allclose(np.tensordot(lam, point.hessians, 1), point.hessian(lam), rtol=1e-12)
    np.testing.assert_allclose(point.score_gradient(risks.y), X[risks.order].T @ risks.y, rtol=1e-12)


def test_the_weighted_hessian_alone_where_groups_are_many(monkeypatch):
    X, y, groups = data()
    risks, lam = GroupRisks(X, y, groups), np.array([0.2, 0.5, 0.3])
    expected, solution = risks.at(np.ones(5)).hessian(lam), Scalarization(risks).solve(lam).w
    monkeypatch.setattr("fairfront.risks._GROUP_HESSIANS", 1)
    assert not risks.separable
    np.testing.assert_allclose(risks.at(np.ones(5)).hessian(lam), expected, rtol=1e-12)
    solver = Scalarization(risks)
    np.testing.assert_allclose(solver.solve(lam).w, solution, atol=1e-9)
    solver.solve([0.3, 0.4, 0.3])
    np.testing.assert_allclose(solver.solve(lam).w, solution, atol=1e-9)


def test_no_overflow_at_large_scores():
    risks = GroupRisks([[1.0], [1.0], [-1.0], [-1.0]] * 5, [0, 1, 0, 1] * 5, [0] * 20, intercept=None)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        point = risks.at([2000.0])
        assert np.isfinite(point.losses).all() and np.isfinite(point.gradients).all()
        np.testing.assert_allclose(point.gradients, 0.5 + 0.01 * 2000, atol=1e-12)


def test_erm_weights_give_scikit_learns_models():
    X, y, groups = data()
    risks = GroupRisks(X, y, groups, l2=0.1, penalize_intercept=False)
    w = Scalarization(risks).solve(risks.group_sizes / 400).w
    theirs = LogisticRegression(C=1 / (0.1 * 400), tol=1e-12, max_iter=10_000).fit(X[:, 1:], y)
    np.testing.assert_allclose(w, np.r_[theirs.intercept_, theirs.coef_[0]], atol=1e-6)
    X, y, groups = data(regression=True)
    risks = GroupRisks(X, y, groups, loss="squared", l2=0.1, penalize_intercept=False)
    w = Scalarization(risks).solve(risks.group_sizes / 400).w
    # |y - Xw|^2 / n + (l2/2)|w|^2 is Ridge's objective over n with alpha = n l2 / 2
    theirs = Ridge(alpha=400 * 0.1 / 2).fit(X[:, 1:], y)
    np.testing.assert_allclose(w, np.r_[theirs.intercept_, theirs.coef_], atol=1e-9)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1, 1], (0, 1)),
        ([-1, 1, 1], (-1, 1)),
        ([False, True, True], (False, True)),
        (["no", "yes", "yes"], ("no", "yes")),
    ],
)
def test_labels_of_two_classes_are_encoded(labels, classes):
    for given in (labels, np.array(labels), pd.Series(labels), np.array(labels, dtype=object)):
        encoded, found = encode_labels(given)
        assert encoded.tolist() == [0.0, 1.0, 1.0] and found == classes


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_the_encoding_does_not_change_the_model(loss):
    X, y, groups = data()
    forms = (y, 2 * y - 1, y == 1, np.where(y == 1, "yes", "no"))
    models = [Scalarization(GroupRisks(X, form, groups, loss=loss)).solve(np.full(3, 1 / 3)).w for form in forms]
    for model in models[1:]:
        np.testing.assert_array_equal(model, models[0])


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([0, 1, 2] * 10, "two classes, got 3"),
        (["a", "b", "c"] * 10, "two classes, got 3"),
        ([1] * 30, "two classes, got 1"),
        ([0, 1, np.nan] * 10, "NaN"),
        (np.array(["a", "b", None] * 10, dtype=object), "missing"),
        (np.array(["a", "b", 3] * 10, dtype=object), "different types"),
        ([0, 1] * 10, "shape"),
    ],
)
def test_bad_labels_are_refused_by_name(labels, problem):
    with pytest.raises(ArgumentError, match=rf"^y: .*{problem}"):
        GroupRisks(np.ones((30, 1)), labels, np.zeros(30, dtype=int))


@pytest.mark.parametrize(
    ("argument", "value", "problem"),
    [
        ("X", np.full((30, 2), np.nan), "NaN"),
        ("X", np.full((30, 2), np.inf), "NaN or infinite"),
        ("X", np.empty((0, 2)), "at least one row"),
        ("X", pd.DataFrame(), "at least one row"),
        ("X", np.ones(30), "shape"),
        ("X", pd.DataFrame({"a": ["x"] * 30, "b": [1.0] * 30}), "not numbers"),
        ("groups", np.zeros(29, dtype=int), "shape"),
        ("groups", np.r_[np.nan, np.zeros(29)], "missing"),
        ("groups", np.zeros(30), "integers"),
        ("groups", np.r_[np.zeros(29, dtype=int), 2], "has no row"),
        ("groups", np.r_[np.zeros(29, dtype=int), 10**9], "without gaps"),
        ("groups", np.r_[np.zeros(29, dtype=int), -1], "integers"),
        ("l2", -1.0, ">= 0"),
        ("l2", np.nan, ">= 0"),
        ("loss", "logistics", "did you mean logistic"),
        ("intercept", 2, "column"),
    ],
)
def test_bad_input_is_refused_by_name(argument, value, problem):
    good = {"X": np.ones((30, 2)), "y": np.arange(30) % 2, "groups": np.zeros(30, dtype=int)}
    with pytest.raises(ArgumentError, match=rf"^{argument}: .*{problem}"):
        GroupRisks(**(good | {argument: value}))


def test_integer_and_boolean_columns_are_numbers():
    X = pd.DataFrame({"one": [1] * 30, "flag": [True, False] * 15})
    risks = GroupRisks(X, np.arange(30) % 2, np.zeros(30, dtype=int))
    assert risks.Xt.dtype == np.float64


def test_targets_that_are_no_numbers_are_refused():
    with pytest.raises(ArgumentError, match=r"^y: .*numbers"):
        GroupRisks(np.ones((4, 1)), ["a"] * 4, [0] * 4, loss="squared")


def test_a_small_group_is_used_with_a_warning_that_gives_its_size():
    X, y, _ = data()
    groups = np.zeros(400, dtype=int)
    groups[7] = 1
    with pytest.warns(SmallGroupWarning, match=r"1 \(1\)"):
        risks = GroupRisks(X, y, groups)
    assert risks.group_sizes.tolist() == [399, 1]
    Scalarization(risks).solve([0.0, 1.0])


def test_a_group_of_one_class_is_allowed():
    X, y, groups = data()
    y[groups == 1] = 1.0
    model = Scalarization(GroupRisks(X, y, groups)).solve([0.0, 1.0, 0.0])
    assert model.gradient_norm < 1e-10


def test_ten_thousand_groups_work():
    X, y, _ = data(20_000)
    with pytest.warns(SmallGroupWarning, match=r"\.\.\."):
        risks = GroupRisks(X, y, np.arange(20_000) // 2)
    model = Scalarization(risks).solve(np.full(10_000, 1e-4))
    assert model.losses.shape == (10_000,)


def test_the_order_of_the_rows_is_known_and_groups_are_contiguous():
    X, y, groups = data()
    risks = GroupRisks(X, y, groups)
    np.testing.assert_array_equal(risks.Xt.T, X[risks.order])
    np.testing.assert_array_equal(risks.y, y[risks.order])
    np.testing.assert_array_equal(risks.groups, groups[risks.order])
    assert (np.diff(risks.groups) >= 0).all()


@pytest.fixture
def parquet(tmp_path):
    X, y, groups = data(5000)
    path = tmp_path / "rows.parquet"
    write_blocks(path, X, y, groups, block_rows=700)
    return path, X, y, groups


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_rows_in_a_file_give_what_rows_in_memory_give(parquet, loss):
    path, X, y, groups = parquet
    ours, theirs = GroupRisks.from_parquet(path, loss=loss), GroupRisks(X, y, groups, loss=loss)
    w, lam = np.linspace(-1, 1, 5), np.array([0.2, 0.5, 0.3])
    np.testing.assert_array_equal(ours.group_sizes, theirs.group_sizes)
    for quantity in ("scores", "losses", "gradients", "hessians"):
        np.testing.assert_allclose(getattr(ours.at(w), quantity), getattr(theirs.at(w), quantity), rtol=1e-12)
    np.testing.assert_allclose(
        ours.at(w).with_hessians().hessian_product(lam, w), theirs.at(w).hessian_product(lam, w), rtol=1e-12
    )
    np.testing.assert_allclose(ours.at(w).score_gradient(ours.y), theirs.at(w).score_gradient(theirs.y), rtol=1e-12)
    np.testing.assert_array_equal(ours.source[650:1500], theirs.source[650:1500])
    np.testing.assert_array_equal(ours.sample(16).Xt, theirs.sample(16).Xt)
    np.testing.assert_allclose(Scalarization(ours).solve(lam).w, Scalarization(theirs).solve(lam).w, atol=1e-11)
    with pytest.raises(ArgumentError, match="not in memory"):
        _ = ours.Xt


def test_passes_over_parts_merge_to_passes_over_all(parquet):
    """A source with its rows elsewhere only needs another reduce, as partitions on workers will."""
    _, X, y, groups = parquet
    whole = GroupRisks(X, y, groups)

    class Halves(MemoryRows):
        def reduce(self, task):
            results = []
            for i, j in ((0, 2100), (2100, 5000)):
                sizes = np.array([max(0, min(j, b) - max(i, a)) for a, b in zip(self.offsets[:-1], self.offsets[1:])])
                results.append(task(MemoryRows(self.Xt[:, i:j], self.y[i:j], sizes)))
            return results[0].merge(results[1])

    halves = GroupRisks.from_source(Halves(whole.Xt, whole.y, whole.group_sizes))
    w = np.linspace(-1, 1, 5)
    for point in (halves.at(w), halves.at(w).with_hessians()):
        np.testing.assert_allclose(point.scores, whole.at(w).scores, rtol=1e-12)
        np.testing.assert_allclose(point.gradients, whole.at(w).gradients, rtol=1e-10)
        np.testing.assert_allclose(point.losses, whole.at(w).losses, rtol=1e-12)


def test_faults_of_files_are_named(tmp_path, parquet):
    import pyarrow as pa
    import pyarrow.parquet as pq

    _path, X, y, groups = parquet
    with pytest.raises(DataError, match="cannot be read"):
        ParquetRows(tmp_path / "absent.parquet")
    (tmp_path / "text").write_text("no parquet")
    with pytest.raises(DataError, match="cannot be read"):
        ParquetRows(tmp_path / "text")

    def fault(table, match):
        pq.write_table(table, tmp_path / "fault.parquet")
        with pytest.raises(DataError, match=match):
            ParquetRows(tmp_path / "fault.parquet")

    good = {"x": [1.0, 2.0], "label": [0.0, 1.0], "group": [0, 1]}
    fault(pa.table({k: good[k] for k in ("x", "label")}), "no column group")
    fault(pa.table(good | {"group": [1, 0]}), "not sorted")
    fault(pa.table(good | {"group": [0, 2]}), "without rows")
    fault(pa.table(good | {"x": [np.nan, 1.0]}), "feature is NaN")
    fault(pa.table(good | {"label": [np.nan, 1.0]}), "label is NaN")
    with pytest.raises(OutputError, match="cannot be written"):
        write_blocks(tmp_path / "no" / "folder", X, y, groups)
    with pytest.raises(ArgumentError, match="feature_names"):
        write_blocks(tmp_path / "x", X, y, groups, feature_names=("a",))
    with pytest.raises(ArgumentError, match=r"^y"):
        write_blocks(tmp_path / "x", X, y[1:], groups)
    write_blocks(tmp_path / "labels", X, y + 1, groups)
    with pytest.raises(ArgumentError, match="labels 0 and 1"):
        GroupRisks.from_parquet(tmp_path / "labels")


def test_training_and_test_rows_share_one_partition():
    """The peer merges small groups of training and test rows on their own, so that group k differs between them."""
    from fairfront import datasets

    data = datasets.load("german", sensitive="gender")
    parts = {part: GroupRisks.from_data(data, part) for part in ("train", "test")}
    for part, risks in parts.items():
        rows = getattr(data, part)
        np.testing.assert_array_equal(risks.groups, data.groups[rows][risks.order])
        assert risks.n_groups == data.n_groups
    whole = GroupRisks.from_data(data, "all")
    np.testing.assert_array_equal(parts["train"].group_sizes + parts["test"].group_sizes, whole.group_sizes)
