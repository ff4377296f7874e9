"""The way in: a name and sensitive attributes go in, rows ready for a model come out."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairfront.datasets import published
from fairfront.datasets.encoding import INTERCEPT, design_matrix, one_hot
from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.groups import Partition, categorise, partition, rebin
from fairfront.datasets.registry import Attribute, DatasetInfo, info
from fairfront.datasets.sources import Table
from fairfront.datasets.splits import stratified_split
from fairfront.datasets.tables import table
from fairfront.errors import ArgumentError

__all__ = ["assemble", "check_seed", "check_test_size", "check_values", "load"]


def load(
    name: str,
    *,
    sensitive: str | Sequence[str],
    test_size: float = 0.3,
    seed: int = 0,
    keep_sensitive: bool = True,
    groups: int | None = None,
    bins: Mapping[str, Iterable[float]] | None = None,
    as_published: bool = False,
) -> GroupedData:
    """Load a data set, cut into sensitive groups and into training and test rows.

    A file is looked for in the folder named by FAIRFRONT_DATA, then in the user's cache, then in the package; else it
    is downloaded. It is verified before it is read. Text columns become indicators, missing numbers the training rows'
    mean, and every column is standardised on the training rows. The split is stratified by group, and by label where
    the task is a classification.

    Parameters
    ----------
    name : str
        One of `names()`; for a task on a survey also NAME/YEAR/PLACE, as in "acs-income/2018/FL".
    sensitive : str or sequence of str
        Sensitive attributes of the data set (`info(name).sensitive`); several give their intersections.
    test_size : float, default 0.3
        Share of the test rows, in [0, 1). With 0 every row is a training row.
    seed : int, default 0
        Seed of the split, at least 0. The partition into groups does not depend on it.
    keep_sensitive : bool, default True
        Whether the columns that carry the sensitive attributes stay among the features.
    groups : int, optional
        Merge the smallest intersections until this many groups are left, from 2 to 36; default: merge none.
    bins : mapping of str to iterable of float, optional
        Numeric sensitive attribute -> the increasing lower ends of its second and later bins, in the place of the
        registry's.
    as_published : bool, default False
        Do what the papers' authors did to the data set, leaks included: their split, and two groups merged from the
        cells of their recipe, whatever `sensitive` names. For the audit of their records alone.

    Returns
    -------
    GroupedData

    Raises
    ------
    ArgumentError
        There is no such data set or attribute, an argument is out of range, or a group has no rows, or (in a
        classification task) rows of one class only, among the training rows.
    DataError
        A file is corrupt, or it is absent and cannot be downloaded: the message says which, where it is from, and
        where to put it by hand.
    """
    dataset = info(name)
    attributes = rebin(dataset.chosen(sensitive), bins)
    test_size, seed = check_test_size(test_size), check_seed(seed)
    rows = table(dataset, as_published=as_published)
    if as_published:
        return _published(dataset, attributes, rows, test_size, seed, 2 if groups is None else groups)
    check_values(rows.attributes, attributes)
    parts = partition(rows.attributes, attributes, groups)
    return assemble(dataset, attributes, rows, parts, test_size=test_size, seed=seed, keep_sensitive=keep_sensitive)


def check_values(values: pd.DataFrame, sensitive: Sequence[Attribute]) -> None:
    """Refuse a sensitive attribute that has one value in all rows.

    Parameters
    ----------
    values : pandas.DataFrame, shape (n, m)
        A column per attribute, by name.
    sensitive : sequence of Attribute
        The attributes.

    Raises
    ------
    ArgumentError
        One has one value.
    DataError
        A row has no value, or one that is not listed.
    """
    for attribute in sensitive:
        codes = categorise(values[attribute.name], attribute)
        if codes.size and codes.min() == codes.max():
            problem = f"{attribute.name} has one value in all {len(codes):,} rows: {attribute.levels[codes[0]]}"
            raise ArgumentError("sensitive", problem, "groups need two values; other bins, or another attribute")


def assemble(
    dataset: DatasetInfo,
    attributes: Sequence[Attribute],
    table: Table,
    groups: Partition,
    *,
    test_size: float,
    seed: int,
    keep_sensitive: bool = True,
    digest: str | None = None,
    report: Iterable[str] = (),
) -> GroupedData:
    """Split, encode and standardise a task's rows once they are cut into groups.

    Parameters
    ----------
    dataset : DatasetInfo
        What the rows are.
    attributes : sequence of Attribute
        The sensitive attributes.
    table : Table
        The rows.
    groups : Partition
        Their groups.
    test_size, seed, keep_sensitive
        As for `load`.
    digest, report
        As in the result; the digest is by default that of the registry.

    Returns
    -------
    GroupedData

    Raises
    ------
    ArgumentError
        The target is constant, or a group has no rows, or rows of one class only, among the training rows.
    """
    if np.ptp(table.target) == 0:
        raise ArgumentError("target", f"{dataset.name}: every row is {table.target[0]:g}", "nothing is to be learnt")
    classes = table.target.astype(np.int64) if dataset.task == "classification" else np.zeros_like(groups.ids)
    train, test = stratified_split(2 * groups.ids + classes, test_size, np.random.default_rng(seed))
    _check_groups(dataset, groups, table.target, train, test)
    dropped = [] if keep_sensitive else [column for attribute in attributes for column in attribute.columns]
    encoded = one_hot(table.features.drop(columns=dropped))
    made = _grouped(dataset, attributes, table, groups, encoded, train, test, digest)
    return dataclasses.replace(made, report=tuple(report))


def _published(
    dataset: DatasetInfo, attributes: Sequence[Attribute], table: Table, test_size: float, seed: int, groups: int
) -> GroupedData:
    if table.cells is None:  # only the choice of rows is the authors'
        parts = partition(table.attributes, attributes)
        return assemble(dataset, attributes, table, parts, test_size=test_size, seed=seed)
    train, test = published.split(table.cells, test_size, seed)
    merged = published.merge_apart(table.cells, (train, test) if test.size else (train,), groups)
    # Their indicators have no reference.
    return _grouped(dataset, attributes, table, merged, one_hot(table.features, drop_first=False), train, test)


def _grouped(
    dataset: DatasetInfo,
    attributes: Sequence[Attribute],
    table: Table,
    groups: Partition,
    encoded: pd.DataFrame,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    digest: str | None = None,
) -> GroupedData:
    return GroupedData(
        name=dataset.name,
        task=dataset.task,
        target=dataset.target,
        X=design_matrix(encoded, train),
        y=table.target,
        groups=groups.ids,
        feature_names=(INTERCEPT, *map(str, encoded.columns)),
        group_names=groups.names,
        train=train,
        test=test,
        sensitive=tuple(attribute.name for attribute in attributes),
        digest=dataset.sha256 if digest is None else digest,
    )


def check_test_size(test_size: float) -> float:
    """Return the share of the test rows once it is seen to be one."""
    if isinstance(test_size, bool) or not isinstance(test_size, numbers.Real) or not 0 <= test_size < 1:
        raise ArgumentError("test_size", f"not a share of the rows: {test_size!r}", "a number in [0, 1)")
    return float(test_size)


def check_seed(seed: int) -> int:
    """Return the seed once it is seen to be one."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise ArgumentError("seed", f"not a seed: {seed!r}", "a whole number, at least 0")
    return int(seed)


def _check_groups(
    dataset: DatasetInfo,
    groups: Partition,
    target: NDArray[np.float64],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> None:
    remedy = "choose fewer or coarser sensitive attributes, merge cells by groups=, or choose another test_size"
    for number, name in enumerate(groups.names):
        labels = target[train][groups.ids[train] == number]
        if not labels.size:
            raise ArgumentError("sensitive", f"{dataset.name} has no training rows in the group {name!r}", remedy)
        if dataset.task == "classification" and np.ptp(labels) == 0:
            raise ArgumentError(
                "sensitive",
                f"{dataset.name} has {labels.size} training rows in the group {name!r}, all of class {labels[0]:.0f}",
                remedy,
            )
        if test.size and not np.any(groups.ids[test] == number):
            raise ArgumentError("sensitive", f"{dataset.name} has no test rows in the group {name!r}", remedy)
