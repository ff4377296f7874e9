"""The way in: a name and sensitive attributes go in, rows ready for a model come out."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fairfront.datasets import files
from fairfront.datasets.encoding import design_matrix, one_hot
from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.groups import Partition, partition
from fairfront.datasets.registry import Attribute, DatasetInfo, info
from fairfront.datasets.sources import TASKS
from fairfront.datasets.splits import stratified_split
from fairfront.errors import ArgumentError

__all__ = ["load"]


def load(
    name: str,
    *,
    sensitive: str | Sequence[str],
    test_size: float = 0.3,
    seed: int = 0,
    keep_sensitive: bool = True,
) -> GroupedData:
    """Load an embedded data set, cut into sensitive groups and into training and test rows.

    The file's SHA-256 is verified first. Text columns become indicators, missing numbers the training rows' mean, and
    every column is standardised on the training rows. The split is stratified by group, and by label where the task
    is a classification.

    Parameters
    ----------
    name : str
        One of `names()`.
    sensitive : str or sequence of str
        Sensitive attributes of the data set (`info(name).sensitive`); several give their intersections.
    test_size : float, default 0.3
        Share of the test rows, in [0, 1). With 0 every row is a training row.
    seed : int, default 0
        Seed of the split, at least 0. The partition into groups does not depend on it.
    keep_sensitive : bool, default True
        Whether the columns that carry the sensitive attributes stay among the features.

    Returns
    -------
    GroupedData

    Raises
    ------
    ArgumentError
        There is no such data set or attribute, `test_size` or `seed` is out of range, or a group has no rows, or (in a
        classification task) rows of one class only, among the training rows.
    DataError
        The embedded file is absent or corrupted.
    """
    dataset = info(name)
    attributes = _attributes(dataset, sensitive)
    test_size, seed = _check_test_size(test_size), _check_seed(seed)

    table = TASKS[name](files.read(dataset.file))
    groups = partition(table.attributes, attributes)
    classes = table.target.astype(np.int64) if dataset.task == "classification" else np.zeros_like(groups.ids)
    train, test = stratified_split(2 * groups.ids + classes, test_size, np.random.default_rng(seed))
    _check_groups(dataset, groups, table.target, train, test)

    sensitive_columns = [column for attribute in attributes for column in attribute.columns]
    encoded = one_hot(table.features if keep_sensitive else table.features.drop(columns=sensitive_columns))
    return GroupedData(
        name=name,
        task=dataset.task,
        target=dataset.target,
        X=design_matrix(encoded, train),
        y=table.target,
        groups=groups.ids,
        feature_names=("intercept", *encoded.columns),
        group_names=groups.names,
        train=train,
        test=test,
        sensitive=tuple(attribute.name for attribute in attributes),
        digest=dataset.sha256,
    )


def _attributes(dataset: DatasetInfo, sensitive: str | Sequence[str]) -> tuple[Attribute, ...]:
    asked = [sensitive] if isinstance(sensitive, str) else list(sensitive) if isinstance(sensitive, Iterable) else []
    if not asked:
        known = ", ".join(attribute.name for attribute in dataset.sensitive)
        raise ArgumentError("sensitive", f"no attributes: {sensitive!r}", f"at least one of: {known}")
    attributes = tuple(dataset.attribute(name) for name in asked)
    if len(set(attributes)) < len(attributes):
        raise ArgumentError("sensitive", f"an attribute twice: {', '.join(asked)}", "each attribute once")
    return attributes


def _check_test_size(test_size: float) -> float:
    if isinstance(test_size, bool) or not isinstance(test_size, numbers.Real) or not 0 <= test_size < 1:
        raise ArgumentError("test_size", f"not a share of the rows: {test_size!r}", "a number in [0, 1)")
    return float(test_size)


def _check_seed(seed: int) -> int:
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
    remedy = "choose fewer or coarser sensitive attributes, or another test_size"
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
