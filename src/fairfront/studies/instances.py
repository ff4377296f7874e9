"""The instances that several studies share: a data set, a partition of its rows into groups, and a split."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairfront.datasets import GroupedData, info, load
from fairfront.datasets.groups import MOST_GROUPS as _MOST_GROUPS
from fairfront.errors import ArgumentError
from fairfront.risks import Array

__all__ = ["Instance", "Unfit", "expanded", "loaded", "partitions", "require_classification", "thinned"]


@dataclass(frozen=True)
class Instance:
    """A data set, a partition and a split, before anything is read.

    Attributes
    ----------
    data : str
        Name of the data set.
    sensitive : tuple of str
        The attributes whose intersections are the groups.
    seed : int
        Seed of the split.
    groups : int or None
        The smallest cells are merged until so many groups are left; None: none are merged.
    """

    data: str
    sensitive: tuple[str, ...]
    seed: int = 0
    groups: int | None = None

    @classmethod
    def parse(cls, words: str, *, seed: int = 0, groups: int | None = None, argument: str = "partition") -> Self:
        """Return the instance that ``data:attribute`` or ``data:attribute+attribute`` names.

        Raises
        ------
        ArgumentError
            For another form, or an unknown data set or attribute; it names `argument`.
        """
        name, _, listed = words.partition(":")
        try:
            known = info(name)
            chosen = tuple(known.attribute(attribute).name for attribute in listed.split("+") if attribute)
        except ArgumentError as error:
            raise ArgumentError(argument, f"{words!r}: {error.argument} {error.problem}", error.remedy) from None
        if not chosen:
            attributes = ", ".join(attribute.name for attribute in known.sensitive)
            raise ArgumentError(argument, f"{words!r} names no attribute", f"{name}:ATTRIBUTE, of {attributes}")
        return cls(name, chosen, seed, groups)

    @property
    def partition(self) -> str:
        """The partition in words."""
        merged = "" if self.groups is None else f" in {self.groups} groups"
        return " x ".join(self.sensitive) + merged

    @property
    def title(self) -> str:
        """Data set and partition in words."""
        return f"{info(self.data).title} by {self.partition}"

    def load(self, test_size: float = 0.3) -> GroupedData:
        """Return its rows (see :func:`fairfront.datasets.load`)."""
        return load(self.data, sensitive=self.sensitive, test_size=test_size, seed=self.seed, groups=self.groups)


@dataclass(frozen=True)
class Unfit:
    """An instance that cannot be used, and why."""

    instance: Instance
    reason: str


def require_classification(argument: str, *names: str) -> None:
    """Refuse data sets that are no classification task.

    Raises
    ------
    ArgumentError
        Which names the argument and the first of them.
    """
    for name in names:
        if info(name).task != "classification":
            raise ArgumentError(argument, f"{name} is no classification task", "another data set")


def expanded(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of data sets with the stars of surveys filled in.

    Parameters
    ----------
    names : iterable of str
        Data sets; ``NAME/YEAR/*`` stands for every state of a survey in a year, ``NAME/*/*`` for every state and year.

    Raises
    ------
    ArgumentError
        For an unknown data set, or a star where there is no survey.
    """
    return tuple(dict.fromkeys(name for word in names for name in _expanded(word)))


def _expanded(word: str) -> Iterator[str]:
    base, *parts = word.split("/")
    if "*" not in parts:
        yield info(word).name
        return
    survey = info(base).survey
    if survey is None or len(parts) != 2:
        raise ArgumentError("data", f"{word!r} is no survey's years and places", "NAME/YEAR/* or NAME/*/* of a survey")
    for year in survey.years if parts[0] == "*" else (parts[0],):
        for place in survey.states if parts[1] == "*" else (parts[1],):
            yield info(f"{base}/{year}/{place}").name


def partitions(names: Iterable[str], *, most_attributes: int = 2) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return every partition of some data sets: each sensitive attribute, and the intersections of several.

    Parameters
    ----------
    names : iterable of str
        Data sets.
    most_attributes : int, default 2
        Intersections of at most so many attributes.

    Returns
    -------
    tuple of (str, tuple of str)
        Data set and attributes. Whether a partition leaves enough rows in every group is only known once it is loaded
        (`loaded`).
    """
    return tuple(
        (name, chosen)
        for name in names
        for count in range(1, most_attributes + 1)
        for chosen in itertools.combinations([attribute.name for attribute in info(name).sensitive], count)
    )


def loaded(
    instances: Iterable[Instance], *, test_size: float = 0.3, least_rows: int = 1, merge: bool = False
) -> Iterator[tuple[Instance, GroupedData | Unfit]]:
    """Yield each instance with its rows, or with the reason why it cannot be used.

    Parameters
    ----------
    instances : iterable of Instance
        What to load.
    test_size : float, default 0.3
        Share of the test rows.
    least_rows : int, default 1
        Least size of a group, training and test rows together: in a smaller one a risk says little.
    merge : bool, default False
        Whether the smallest cells of an instance that cannot be used are merged to half as many groups, and to half
        of those, as long as three or more are left; the instance that is yielded says to how many.

    Raises
    ------
    DataError
        If a data set is absent or damaged; the message says what to fetch.
    """
    for instance in instances:
        found: GroupedData | Unfit = _loaded(instance, test_size, least_rows)
        used = instance
        if merge and isinstance(found, Unfit):
            levels = {attribute.name: len(attribute.levels) for attribute in info(instance.data).sensitive}
            groups = min(math.prod(levels[name] for name in instance.sensitive), 2 * _MOST_GROUPS) // 2
            while groups >= 3 and isinstance(found, Unfit):
                used = dataclasses.replace(instance, groups=groups)
                found, groups = _loaded(used, test_size, least_rows), groups // 2
            used = instance if isinstance(found, Unfit) else used
        yield used, found


def _loaded(instance: Instance, test_size: float, least_rows: int) -> GroupedData | Unfit:
    try:
        data = instance.load(test_size)
    except ArgumentError as error:
        return Unfit(instance, str(error))
    smallest = int(data.group_sizes.argmin())
    rows = int(data.group_sizes[smallest])
    if rows >= least_rows:
        return data
    return Unfit(instance, f"{rows} rows in the group {data.group_names[smallest]!r}, fewer than {least_rows}")


def thinned(data: GroupedData, rows: int, *, seed: int = 0) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return all rows of a data set, or as many as asked for, drawn without replacement from each group alike.

    Parameters
    ----------
    data : GroupedData
        The data set.
    rows : int
        How many to keep where it has more; 0: all.
    seed : int, default 0
        Of the draw.

    Returns
    -------
    X, y, groups : arrays of shape (n, d), (n,), (n,)
        In the order of the data set.
    """
    X, y, groups = data.rows("all")
    if not rows or len(y) <= rows:
        return X, y, groups
    shuffled = np.random.default_rng(seed).permutation(len(y))
    # The rank of a row within its group, as a share: the same share of each group is kept.
    share = np.empty(len(y))
    for a in range(data.n_groups):
        mine = shuffled[groups[shuffled] == a]
        share[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
    kept = np.sort(np.argsort(share, kind="stable")[:rows])
    return X[kept], y[kept], groups[kept]
