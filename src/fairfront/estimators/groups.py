"""Sensitive features as a user has them, in columns of a frame or in an array, turned into groups 0..S-1."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairfront.datasets.groups import Partition, merge
from fairfront.errors import ArgumentError
from fairfront.risks import SmallGroupWarning

__all__ = ["SensitiveGroups", "groups_or_all", "sensitive_groups", "small_groups_by_name"]

_JOIN = " & "
# Groups with fewer rows are used, with a warning that names them.
_FEW_ROWS = 5


@dataclass(frozen=True, eq=False)
class SensitiveGroups:
    """How values of sensitive features become groups.

    Attributes
    ----------
    columns : tuple of str
        Names of the sensitive features.
    cells : tuple of tuple
        Every combination of values met, in order.
    number : ndarray of int64, shape (len(cells),)
        The group of each cell, in 0..S-1.
    names : tuple of str
        Names of the groups (S).
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[Hashable, ...], ...]
    number: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def merged(self) -> dict[str, tuple[str, ...]]:
        """Names of the merged groups, and the cells in each."""
        members: dict[str, tuple[str, ...]] = dict.fromkeys(self.names, ())
        for cell, group in zip(self.cells, self.number, strict=True):
            members[self.names[group]] += (_name(cell),)
        return {name: inside for name, inside in members.items() if len(inside) > 1}

    def encode(self, sensitive_features: Any, n_rows: int) -> NDArray[np.int64]:
        """Return the group of each row, shape (n,), 0..S-1.

        Parameters
        ----------
        sensitive_features : frame, series or array
            As `sensitive_groups` takes it, with the same columns.
        n_rows : int
            How many rows there must be.

        Raises
        ------
        ArgumentError
            As `sensitive_groups`, for other columns, and for a combination of values that was not met before.
        """
        table = _table(sensitive_features, n_rows)
        if len(table) != len(self.columns):
            problem = f"has {len(table)} columns, the groups were made of {len(self.columns)}"
            raise ArgumentError("sensitive_features", problem, f"the columns {', '.join(self.columns)}")
        if set(table) == set(self.columns):
            table = {name: table[name] for name in self.columns}
        ids, cells = _cells(table)
        known = dict(zip(self.cells, self.number.tolist(), strict=True))
        new = [cell for cell in cells if cell not in known]
        if new:
            shown = ", ".join(repr(_name(cell)) for cell in new[:5]) + (", ..." if len(new) > 5 else "")
            raise ArgumentError("sensitive_features", f"holds groups that were not met before: {shown}")
        return np.array([known[cell] for cell in cells], dtype=np.int64)[ids]


def sensitive_groups(
    sensitive_features: Any, n_rows: int, n_groups: int | None = None
) -> tuple[SensitiveGroups, NDArray[np.int64]]:
    """Return the groups that sensitive features make, and the group of each row.

    Parameters
    ----------
    sensitive_features : frame, series or array, of shape (n,) or (n, m)
        One or several columns; of several, each combination of values that occurs is a group. Any eager frame or
        series that narwhals knows (pandas, polars, Arrow), a NumPy array or a list.
    n_rows : int
        How many rows there must be.
    n_groups : int, optional
        Merge the smallest groups, two at a time, until so many are left (`fairfront.datasets.groups.merge`); default:
        merge none.

    Returns
    -------
    groups : SensitiveGroups
        In the order of the sorted values, the first column varying slowest.
    ids : ndarray of int64, shape (n,)
        0..S-1.

    Raises
    ------
    ArgumentError
        For another number of rows, missing values, or fewer groups than asked for.
    """
    table = _table(sensitive_features, n_rows)
    ids, cells = _cells(table)
    names = tuple(_name(cell) for cell in cells)
    if n_groups is None:
        return SensitiveGroups(tuple(table), cells, np.arange(len(cells)), names), ids
    try:
        merged = merge(Partition(ids, names), n_groups)
    except ArgumentError as error:
        raise ArgumentError("n_groups", *str(error).partition(": ")[2:]) from None
    number = np.zeros(len(cells), dtype=np.int64)
    number[ids] = merged.ids
    return SensitiveGroups(tuple(table), cells, number, merged.names), merged.ids


def groups_or_all(
    sensitive_features: Any, n_rows: int, n_groups: int | None = None
) -> tuple[SensitiveGroups, NDArray[np.int64]]:
    """Return what `sensitive_groups` does; without sensitive features one group of all rows."""
    if sensitive_features is None:
        return SensitiveGroups((), ((),), np.zeros(1, np.int64), ("all",)), np.zeros(n_rows, np.int64)
    return sensitive_groups(sensitive_features, n_rows, n_groups)


@contextmanager
def small_groups_by_name(names: tuple[str, ...], ids: NDArray[np.int64], *, stacklevel: int = 3) -> Iterator[None]:
    """Warn of groups with few rows by name, and keep the risks made inside from warning of them by number.

    Parameters
    ----------
    names : tuple of str
        Names of the groups (S).
    ids : array of shape (n,)
        Group of each row. A single group is never small.
    stacklevel : int, default 3
        As of :func:`warnings.warn`, counted from the caller.

    Warns
    -----
    SmallGroupWarning
        For groups of fewer than 5 rows, with their sizes.
    """
    sizes = np.bincount(ids, minlength=len(names))
    small = np.flatnonzero(sizes < _FEW_ROWS)
    if len(small) and len(names) > 1:
        listed = ", ".join(f"{names[a]!r} ({sizes[a]})" for a in small[:5]) + (", ..." if len(small) > 5 else "")
        message = f"sensitive_features: groups with few rows, and how many: {listed} (n_groups=... merges small groups)"
        warnings.warn(message, SmallGroupWarning, stacklevel=stacklevel + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallGroupWarning)
        yield


def _name(cell: tuple[Hashable, ...]) -> str:
    return _JOIN.join(map(str, cell))


def _table(values: Any, n_rows: int) -> dict[str, pd.Series]:
    """Return the columns by name, none with a missing value."""
    if nw.dependencies.is_into_dataframe(values):
        frame = nw.from_native(values, eager_only=True)
        table = {str(column.name): column.to_pandas() for column in frame.iter_columns()}
        if len(table) != len(frame.columns):
            raise ArgumentError("sensitive_features", "names a column twice")
    elif nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
        table = {str(series.name or "sensitive_features"): series.to_pandas()}
    elif nw.dependencies.is_polars_lazyframe(values):
        raise ArgumentError("sensitive_features", "is a lazy frame", "collect() it first")
    else:
        table = _array_columns(values)
    if not table:
        raise ArgumentError("sensitive_features", "has no column")
    for name, column in table.items():
        if len(column) != n_rows:
            raise ArgumentError("sensitive_features", f"has {len(column)} rows, X has {n_rows}", "one value a row")
        missing = int(column.isna().sum())
        if missing:
            remedy = "drop those rows, or give them a value of their own"
            where = f" in column {name!r}" if len(table) > 1 else ""
            raise ArgumentError("sensitive_features", f"missing values{where} ({missing} of {n_rows} rows)", remedy)
    return table


def _array_columns(values: Any) -> dict[str, pd.Series]:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim == 1:
        return {"sensitive_features": pd.Series(array)}
    if array.ndim != 2:
        raise ArgumentError("sensitive_features", f"has shape {array.shape}", "one or several columns: (n,) or (n, m)")
    return {f"sensitive_{j}": pd.Series(array[:, j]) for j in range(array.shape[1])}


def _cells(table: dict[str, pd.Series]) -> tuple[NDArray[np.int64], tuple[tuple[Hashable, ...], ...]]:
    """Return the cell of each row, and the values of each cell that has rows."""
    ids = np.zeros(len(next(iter(table.values()))), dtype=np.int64)
    cells: list[tuple[Hashable, ...]] = [()]
    for name, column in table.items():
        try:
            codes, uniques = pd.factorize(column)
        except TypeError:
            raise ArgumentError("sensitive_features", f"column {name!r} holds values that cannot be compared") from None
        levels = [_plain(value) for value in uniques]
        keys = [_order(value) for value in levels]
        ranking = sorted(range(len(levels)), key=keys.__getitem__)
        rank = np.empty(len(levels), dtype=np.int64)
        rank[ranking] = np.arange(len(levels))
        # Only combinations that occur are kept from column to column: never more than there are rows.
        occurring, ids = np.unique(ids * len(levels) + rank[codes], return_inverse=True)
        cells = [(*cells[code // len(levels)], levels[ranking[code % len(levels)]]) for code in occurring]
    return ids, tuple(cells)


def _plain(value: Any) -> Hashable:
    return value.item() if isinstance(value, np.generic) else value


def _order(value: Hashable) -> tuple[int, Any]:
    """Return a key that puts numbers before all else, and sorts what cannot be compared by its text."""
    return (0, value) if isinstance(value, (int, float)) else (1, str(value))
