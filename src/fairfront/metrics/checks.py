"""Checks of labels and group numbers, shared by the smooth metrics and their hard counterparts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairfront.errors import ArgumentError

__all__ = ["checked_groups", "checked_numbers", "checked_two_classes", "listed"]


def checked_numbers(argument: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return an (n,) float64 array of finite numbers, n >= 1.

    Parameters
    ----------
    argument : str
        Name of the argument, for the error.
    values : array
        What the caller gave.

    Raises
    ------
    ArgumentError
        If it is anything else.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(argument, "holds something other than numbers", "encode it to numbers first") from None
    if numbers.ndim != 1 or numbers.size == 0:
        raise ArgumentError(argument, f"has shape {numbers.shape}", "one number a row, and at least one row")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ArgumentError(argument, f"{numbers[row]} in row {row}", "every number finite")
    return numbers


def checked_two_classes(argument: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return an (n,) float64 array of zeros and ones.

    Parameters
    ----------
    argument : str
        Name of the argument, for the error.
    values : array
        What the caller gave.

    Raises
    ------
    ArgumentError
        If it holds anything else.
    """
    classes = checked_numbers(argument, values)
    other = classes[(classes != 0) & (classes != 1)]
    if other.size:
        raise ArgumentError(argument, f"holds {other[0]:g}, which is no class", "encode the two classes as 0 and 1")
    return classes


def checked_groups(groups: ArrayLike, n_groups: int | None, n_rows: int) -> tuple[NDArray[np.int64], int]:
    """Return (n,) int64 group numbers 0..S-1, none of them without a row, and S.

    Parameters
    ----------
    groups : array
        What the caller gave.
    n_groups : int or None
        Number of groups; None for the largest number plus one.
    n_rows : int
        How many rows there must be.

    Raises
    ------
    ArgumentError
        If the length is another, a number is out of range, or a group has no row.
    """
    numbers = np.asarray(groups)
    if numbers.shape != (n_rows,):
        raise ArgumentError("groups", f"has shape {numbers.shape}", f"one group a row of labels: shape ({n_rows},)")
    if numbers.dtype.kind not in "iub":
        raise ArgumentError("groups", f"has type {numbers.dtype}", "integers 0..S-1")
    numbers = numbers.astype(np.int64, copy=False)
    low, high = int(numbers.min()), int(numbers.max())
    if n_groups is None:
        n_groups = high + 1
    if low < 0 or high >= n_groups:
        raise ArgumentError("groups", f"runs from {low} to {high}", f"0 to {n_groups - 1} for {n_groups} groups")
    if n_groups > n_rows:
        raise ArgumentError("groups", f"{n_groups} groups in {n_rows} rows", "number the groups 0..S-1 without gaps")
    empty = np.flatnonzero(np.bincount(numbers, minlength=n_groups) == 0)
    if empty.size:
        raise ArgumentError("groups", f"no row in {listed(empty)}", "drop or merge empty groups and renumber the rest")
    return numbers, n_groups


def listed(groups: NDArray[np.intp]) -> str:
    """Return group numbers in words, the first few of many."""
    noun = "group" if groups.size == 1 else "groups"
    return f"{noun} {', '.join(map(str, groups[:5]))}" + (" ..." if groups.size > 5 else "")
