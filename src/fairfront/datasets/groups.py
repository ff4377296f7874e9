"""Partitions of the rows into sensitive groups: computed once, on all rows, and shared by every split."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairfront.datasets.registry import Attribute
from fairfront.errors import ArgumentError, DataError

__all__ = ["MOST_GROUPS", "Partition", "categorise", "cut", "merge", "merged", "partition", "rebin"]

#: The largest number of groups that cells are merged to.
MOST_GROUPS = 36
_JOIN_ATTRIBUTES, _JOIN_CELLS = " & ", " + "


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of n rows into S groups.

    Attributes
    ----------
    ids : ndarray of int64, shape (n,)
        The group of each row, in 0..S-1.
    names : tuple of str
        The groups' names (S).
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each group, shape (S,)."""
        return np.bincount(self.ids, minlength=len(self.names))


def categorise(values: pd.Series, attribute: Attribute) -> NDArray[np.int64]:
    """Return the position of each row's value among the attribute's values.

    Parameters
    ----------
    values : pandas.Series, shape (n,)
        Text or a categorical, or numbers where the attribute has cuts: bin k holds cuts[k-1] <= value < cuts[k].
    attribute : Attribute
        The attribute, as the registry describes it.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    DataError
        A row has no value, or one that the registry does not list.
    """
    if values.isna().any():
        raise DataError(f"{attribute.name}: {int(values.isna().sum())} rows have no value, so they are in no group")
    if attribute.cuts:
        number, array = np.zeros(len(values), dtype=np.int64), values.to_numpy(dtype=np.float64)
        for end in attribute.cuts:  # few: a comparison for each is faster than a search for each row
            number += array >= end
        return number
    codes, uniques = pd.factorize(values)
    position = pd.Index(attribute.levels).get_indexer(pd.Index(np.asarray(uniques)))
    if (position < 0).any():
        strange, known = sorted(map(str, np.asarray(uniques)[position < 0])), ", ".join(attribute.levels)
        raise DataError(f"{attribute.name}: {', '.join(strange)} not among the registry's values: {known}")
    return position.astype(np.int64)[codes]


def partition(attributes: pd.DataFrame, sensitive: Sequence[Attribute], groups: int | None = None) -> Partition:
    """Cut the rows into the intersections of sensitive attributes.

    Groups are in lexicographic order of the attributes' own orders: with gender (male, female) and race (white,
    black) they are "male & white", "male & black", "female & white", "female & black". A group may be without rows,
    unless cells are merged.

    Parameters
    ----------
    attributes : pandas.DataFrame, shape (n, m)
        A column per attribute, by name.
    sensitive : sequence of Attribute
        The attributes to intersect, at least one, the first varying slowest.
    groups : int, optional
        Merge the smallest cells until this many are left (see `merge`); default: merge none.

    Returns
    -------
    Partition

    Raises
    ------
    ArgumentError
        `groups` is out of range.
    DataError
        A row has no value, or one that the registry does not list.
    """
    ids = categorise(attributes[sensitive[0].name], sensitive[0])
    for attribute in sensitive[1:]:
        ids *= len(attribute.levels)
        ids += categorise(attributes[attribute.name], attribute)
    names = itertools.product(*(attribute.levels for attribute in sensitive))
    cells = Partition(ids, tuple(map(_JOIN_ATTRIBUTES.join, names)))
    return cells if groups is None else merge(cells, groups)


def merge(cells: Partition, groups: int) -> Partition:
    """Merge the smallest cells, two at a time, until `groups` are left; cells without rows are dropped first.

    Among cells of one size the earlier ones are taken first. A merged group stands where its first cell stood, and its
    name joins those of its cells by " + ".

    Parameters
    ----------
    cells : Partition
        The cells.
    groups : int
        How many to leave, from 2 to 36.

    Returns
    -------
    Partition
        Every row is in a group, and no group is without rows.

    Raises
    ------
    ArgumentError
        `groups` is out of range, or larger than the number of cells with rows.
    """
    number, names = merged(cells.sizes, cells.names, groups)
    return Partition(number[cells.ids], names)


def merged(sizes: NDArray[np.int64], names: Sequence[str], groups: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return where `merge` puts each cell, known by its size alone, and the groups' names.

    Parameters
    ----------
    sizes : ndarray of int64, shape (C,)
        Rows of each cell.
    names : sequence of str
        The cells' names (C).
    groups : int
        How many to leave, from 2 to 36.

    Returns
    -------
    number : ndarray of int64, shape (C,)
        The group of each cell; 0 for a cell without rows.
    names : tuple of str
        The groups' names.

    Raises
    ------
    ArgumentError
        `groups` is out of range, or larger than the number of cells with rows.
    """
    if isinstance(groups, bool) or not isinstance(groups, numbers.Integral) or not 2 <= groups <= MOST_GROUPS:
        raise ArgumentError("groups", f"not a number of groups: {groups!r}", f"a whole number from 2 to {MOST_GROUPS}")
    filled = np.flatnonzero(sizes)
    if groups > len(filled):
        problem = f"{groups} groups cannot be made of {len(filled)} cells with rows"
        raise ArgumentError("groups", problem, f"at most {len(filled)}, or more sensitive attributes, or finer bins")
    # (size, cells): the tuple of cells breaks ties, and its first cell is the group's place.
    heap = [(int(sizes[cell]), (int(cell),)) for cell in filled]
    heapq.heapify(heap)
    while len(heap) > groups:
        (one, left), (two, right) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (one + two, tuple(sorted(left + right))))
    members = sorted(group for _, group in heap)
    number = np.zeros(len(sizes), dtype=np.int64)
    for position, group in enumerate(members):
        number[list(group)] = position
    return number, tuple(_JOIN_CELLS.join(names[cell] for cell in group) for group in members)


def rebin(attributes: Sequence[Attribute], bins: Mapping[str, Iterable[float]] | None) -> tuple[Attribute, ...]:
    """Return the attributes with the cuts that were asked for in the place of the registry's.

    Parameters
    ----------
    attributes : sequence of Attribute
        The sensitive attributes.
    bins : mapping of str to iterable of float, optional
        Attribute -> the increasing lower ends of its second and later bins.

    Raises
    ------
    ArgumentError
        An attribute is not among the sensitive ones or not a number, or cuts are absent or do not increase.
    """
    if not bins:
        return tuple(attributes)
    numeric = [attribute.name for attribute in attributes if attribute.cuts]
    for name in bins:
        if name not in numeric:
            known = ", ".join(numeric) or "none"
            raise ArgumentError("bins", f"{name!r} is no numeric sensitive attribute here", f"numeric ones: {known}")
    return tuple(cut(item, bins[item.name]) if item.name in bins else item for item in attributes)


def cut(attribute: Attribute, cuts: Iterable[float]) -> Attribute:
    """Return a numeric attribute with other cuts, its bins named by them.

    Raises
    ------
    ArgumentError
        There is no cut, or they do not increase.
    """
    try:
        ends = tuple(float(end) for end in cuts)
    except (TypeError, ValueError):
        ends = ()
    if not ends or not all(np.isfinite(ends)) or any(low >= high for low, high in itertools.pairwise(ends)):
        raise ArgumentError("bins", f"not increasing numbers: {attribute.name}={cuts!r}", "the lower ends of the bins")
    middle = (f"{low:g} to below {high:g}" for low, high in itertools.pairwise(ends))
    levels = (f"under {ends[0]:g}", *middle, f"{ends[-1]:g} or over")
    return dataclasses.replace(attribute, levels=levels, cuts=ends)
