"""Rows, labels and groups, ready for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairfront.errors import ArgumentError

__all__ = ["GroupedData"]


@dataclass(frozen=True, eq=False)
class GroupedData:
    """A data set cut into sensitive groups and into training and test rows.

    Attributes
    ----------
    name : str
        The data set's name in the registry.
    task : {"classification", "regression"}
        The kind of task.
    target : str
        What is predicted, in words.
    X : ndarray of float64, shape (n, d)
        Design matrix. Column 0 is the intercept (1 in every row), the others have mean 0 and variance 1 (divisor n) on
        the training rows.
    y : ndarray of float64, shape (n,)
        Labels in {0, 1} for a classification task, else the target in the file's units.
    groups : ndarray of int64, shape (n,)
        The group of each row, in 0..S-1. One partition of all rows: training and test rows share it.
    feature_names : tuple of str
        The columns of X (d); the first is "intercept".
    group_names : tuple of str
        The groups (S), in the registry's order of the attribute's values.
    train, test : ndarray of int64
        Sorted row numbers; together every row once. `test` is empty where no test set was asked for.
    sensitive : tuple of str
        The attributes whose intersections are the groups.
    digest : str
        SHA-256 of the file that the rows come from, in hexadecimal.
    report : tuple of str
        What was done to a user's own rows, a sentence each; empty for a data set of the registry, whose datasheet says.
    """

    name: str
    task: Literal["classification", "regression"]
    target: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: NDArray[np.int64]
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    sensitive: tuple[str, ...]
    digest: str
    report: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows n, training and test rows together."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns d of the design matrix, the intercept among them."""
        return self.X.shape[1]

    @property
    def n_groups(self) -> int:
        """Number of groups S."""
        return len(self.group_names)

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Number of rows of each group, training and test rows together, shape (S,)."""
        return np.bincount(self.groups, minlength=self.n_groups)

    def rows(
        self, part: Literal["train", "test", "all"]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the design matrix, labels and groups of a part of the rows.

        Parameters
        ----------
        part : {"train", "test", "all"}
            Which rows.

        Returns
        -------
        X : ndarray of float64, shape (m, d)
        y : ndarray of float64, shape (m,)
        groups : ndarray of int64, shape (m,)

        Raises
        ------
        ArgumentError
            `part` is none of the three.
        """
        if part == "all":
            return self.X, self.y, self.groups
        if part not in ("train", "test"):
            raise ArgumentError("part", f"unknown: {part!r}", "train, test or all")
        index = self.train if part == "train" else self.test
        return self.X[index], self.y[index], self.groups[index]

    def __repr__(self) -> str:
        """Return one line that says what the data are."""
        sizes = ", ".join(f"{name}: {size}" for name, size in zip(self.group_names, self.group_sizes, strict=True))
        split = f"{len(self.train)} training and {len(self.test)} test rows"
        return f"GroupedData({self.name}, {self.task}: {self.target}; {split}, {self.n_features} columns; {sizes})"
