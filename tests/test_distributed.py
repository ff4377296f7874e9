"""Rows on Dask workers: the same risks, solutions and gradients as in memory, and nothing but sums travels."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from fairfront import metrics
from fairfront.datasets import convert, load
from fairfront.datasets.blocks import ParquetRows
from fairfront.datasets.partitions import DaskRows, connect
from fairfront.distributed import DaskRisks
from fairfront.errors import ArgumentError, DataError
from fairfront.pareto import Scalarization, scalarization
from fairfront.risks import GroupRisks

S = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    with connect(workers=2) as client:
        yield client


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "persons.parquet"
    convert("synthetic-acs-income/40000", path, sensitive=["gender", "race"], groups=S, block_rows=2048)
    return path


@pytest.fixture(scope="module")
def both(cluster, path) -> tuple[DaskRisks, GroupRisks]:
    there = DaskRisks.from_source(DaskRows.from_parquet(cluster, path, parts=5), l2=1e-2)
    return there, GroupRisks.from_source(ParquetRows(path), l2=1e-2)


def test_rows_are_where_the_file_has_them(both):
    there, here = both
    assert there.source.shape == here.source.shape and there.n_groups == S
    assert len(there.source.parts) == 5 and (there.source.part_sizes == 0).any()
    np.testing.assert_array_equal(there.group_sizes, here.group_sizes)
    np.testing.assert_array_equal(there.y, here.y)
    np.testing.assert_array_equal(there.source[:], here.source[:])
    np.testing.assert_array_equal(there.source[9000:9100], here.source[9000:9100])
    for step in (1, 7, 64):
        mine, theirs = there.source.sample(step), here.source.sample(step)
        np.testing.assert_array_equal(mine.Xt, theirs.Xt)
        np.testing.assert_array_equal(mine.y, theirs.y)
        np.testing.assert_array_equal(mine.group_sizes, theirs.group_sizes)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_sums_are_those_of_the_rows_in_memory(cluster, path, loss):
    options = {"loss": loss, "l2": 0.05, "penalize_intercept": False}
    there = DaskRisks.from_source(DaskRows.from_parquet(cluster, path), **options)
    here = GroupRisks.from_source(ParquetRows(path), **options)
    draw = np.random.default_rng(0)
    w, x, derivative = (
        0.1 * draw.normal(size=there.n_features),
        draw.normal(size=there.n_features),
        draw.normal(size=there.n_rows),
    )
    weights = draw.dirichlet(np.ones(S))
    mine, theirs = there.at(w), here.at(w)
    for one, two in (
        (mine.losses, theirs.losses),
        (mine.gradients, theirs.gradients),
        (mine.mean_curvatures, theirs.mean_curvatures),
        (mine.hessians, theirs.hessians),
        (mine.hessian(weights), theirs.hessian(weights)),
        (mine.hessian_products(x), theirs.hessian_products(x)),
        (mine.hessian_product(weights, x), theirs.hessian_product(weights, x)),
        (mine.scores, theirs.scores),
        (mine.score_gradient(derivative), theirs.score_gradient(derivative)),
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def test_hessians_that_are_not_kept_group_by_group(both, monkeypatch):
    there, here = both
    monkeypatch.setattr(GroupRisks, "separable", property(lambda self: False))
    w, weights = np.full(there.n_features, 0.02), np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(there.at(w).hessian(weights), here.at(w).hessian(weights), rtol=1e-9, atol=1e-12)


def test_the_same_solution_and_only_sums_travel(both, monkeypatch):
    there, here = both
    sizes: list[int] = []
    gather = there.source.client.gather

    def weighed(futures, *words, **options):
        results = gather(futures, *words, **options)
        sizes.extend(len(pickle.dumps(result)) for result in results)
        return results

    there.source._brought = None
    there.sample(scalarization._SAMPLE_STEP)  # the few rows that travel once, for the first guess of the solver
    monkeypatch.setattr(there.source.client, "gather", weighed)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    mine, theirs = (Scalarization(risks).solve(weights) for risks in (there, here))
    np.testing.assert_allclose(mine.w, theirs.w, atol=1e-7)
    np.testing.assert_allclose(mine.losses, theirs.losses, atol=1e-10)
    d = there.n_features
    assert sizes and max(sizes) < 8 * S * (d * d + d + 2) + 2000
    assert max(sizes) < there.n_rows and there.source._brought is None


def test_hessian_products_leave_the_scores_where_they_are(both, monkeypatch):
    there, here = both
    monkeypatch.setattr(type(there.source), "join", lambda *_: pytest.fail("numbers a row travelled"))
    w, x = np.full(there.n_features, 0.02), np.linspace(-1.0, 1.0, there.n_features)
    mine = there.at(w).hessian_products(x)
    assert mine.shape == (S, there.n_features)
    np.testing.assert_allclose(mine, here.at(w).hessian_products(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine, here.at(w).hessians @ x, rtol=1e-9, atol=1e-12)


def test_a_metric_on_scores_that_were_brought_here(both):
    w = np.full(both[0].n_features, 0.03)
    values = [
        metrics.get("demographic_parity").bind(risks.y, risks.groups, S).value(risks.at(w).scores) for risks in both
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_partitions_of_a_dask_frame(cluster):
    data = load("compas", sensitive="gender", test_size=0)
    frame = pd.DataFrame(data.X, columns=list(data.feature_names)).assign(label=data.y, group=data.groups)
    rows = DaskRows.from_dask(cluster, dd.from_pandas(frame, npartitions=3))
    assert len(rows.parts) == 3
    there, here = DaskRisks.from_source(rows), GroupRisks.from_data(data)
    w = np.linspace(-0.1, 0.1, data.n_features)
    np.testing.assert_allclose(there.losses(w), here.losses(w), rtol=1e-12)
    np.testing.assert_allclose(there.at(w).gradients, here.at(w).gradients, atol=1e-12)
    with pytest.raises(DataError, match="no column race among"):
        DaskRows.from_dask(cluster, dd.from_pandas(frame, npartitions=2), group="race")
    broken = frame.assign(label=[np.nan, *data.y[1:]])
    with pytest.raises(DataError, match="a feature or a label is NaN"):
        DaskRows.from_dask(cluster, dd.from_pandas(broken, npartitions=2))


def test_a_scheduler_by_its_address(cluster):
    with connect(cluster.scheduler.address) as other:
        assert len(other.scheduler_info()["workers"]) == 2


def test_bad_input(cluster, path, tmp_path):
    with pytest.raises(ArgumentError, match="parts: not a number of partitions: 0"):
        DaskRows.from_parquet(cluster, path, parts=0)
    with pytest.raises(DataError, match=r"none\.parquet"):
        DaskRows.from_parquet(cluster, tmp_path / "none.parquet")
    with pytest.raises(ArgumentError, match="source: not partitions"):
        DaskRisks.from_source(ParquetRows(path))
    with pytest.raises(ArgumentError, match="loss: unknown: 'hinge'"):
        DaskRisks.from_source(DaskRows.from_parquet(cluster, path), loss="hinge")
    with pytest.raises(ArgumentError, match="l2: must be"):
        DaskRisks.from_source(DaskRows.from_parquet(cluster, path), l2=-1)
    convert("communities", tmp_path / "c.parquet", sensitive="race")
    with pytest.raises(ArgumentError, match="needs labels 0 and 1"):
        DaskRisks.from_source(DaskRows.from_parquet(cluster, tmp_path / "c.parquet"))
