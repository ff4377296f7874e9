"""Partitions of the rows into sensitive groups: computed once, on all rows, and shared by every split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairfront.datasets.registry import Attribute
from fairfront.errors import DataError

__all__ = ["Partition", "categorise", "partition"]


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


def categorise(values: pd.Series, attribute: Attribute) -> NDArray[np.int64]:
    """Return the position of each row's value among the attribute's values.

    Parameters
    ----------
    values : pandas.Series, shape (n,)
        Text, or numbers where the attribute has cuts: bin k holds cuts[k-1] <= value < cuts[k].
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
        return np.digitize(values.to_numpy(dtype=np.float64), attribute.cuts).astype(np.int64)
    codes = pd.Index(attribute.levels).get_indexer(pd.Index(values))
    if (codes < 0).any():
        strange, known = sorted(map(str, values[codes < 0].unique())), ", ".join(attribute.levels)
        raise DataError(f"{attribute.name}: {', '.join(strange)} not among the registry's values: {known}")
    return codes.astype(np.int64)


def partition(attributes: pd.DataFrame, sensitive: Sequence[Attribute]) -> Partition:
    """Cut the rows into the intersections of sensitive attributes.

    Groups are in lexicographic order of the attributes' own orders: with gender (male, female) and race (white,
    black) they are "male & white", "male & black", "female & white", "female & black". A group may be without rows.

    Parameters
    ----------
    attributes : pandas.DataFrame, shape (n, m)
        A column per attribute, by name.
    sensitive : sequence of Attribute
        The attributes to intersect, at least one, the first varying slowest.

    Returns
    -------
    Partition

    Raises
    ------
    DataError
        A row has no value, or one that the registry does not list.
    """
    codes = tuple(categorise(attributes[attribute.name], attribute) for attribute in sensitive)
    shape = tuple(len(attribute.levels) for attribute in sensitive)
    names = itertools.product(*(attribute.levels for attribute in sensitive))
    return Partition(np.ravel_multi_index(codes, shape).astype(np.int64), tuple(" & ".join(name) for name in names))
