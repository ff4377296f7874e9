"""Synthetic rows that look like a census table: what both sides of a benchmark are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["make", "write"]

# No group is smaller, however many there are.
_LEAST = 30


def make(rows: int, groups: int, features: int = 17, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and groups of a classification problem.

    Parameters
    ----------
    rows, groups : int
        n and S, with n at least 60 S; group sizes fall as 1/a^0.9, none below 30.
    features : int, default 17
        d, of which column 0 is the ones column; the others are standardised, every third of them whole-numbered before.
    seed : int, default 0
        Of the generator.

    Returns
    -------
    X : (n, d) float64 array
        Correlated features whose means differ between the groups.
    y : (n,) float64 array
        0 or 1, drawn from a logistic model of the group's own.
    ids : (n,) int64 array
        Groups 0..S-1.
    """
    if rows < 2 * _LEAST * groups:
        raise ValueError(f"rows: {rows} is too few for {groups} groups, at least {2 * _LEAST * groups}")
    rng = np.random.default_rng([seed, groups])
    shares = 1.0 / np.arange(1, groups + 1) ** 0.9
    # Every group has its least number of rows, the others fall where they fall.
    free = rng.choice(groups, size=rows - _LEAST * groups, p=shares / shares.sum())
    ids = rng.permutation(np.concatenate([np.repeat(np.arange(groups), _LEAST), free]))
    d = features - 1
    means = 0.6 * rng.standard_normal((groups, d))
    mixing = np.eye(d) + 0.25 * rng.standard_normal((d, d)) / np.sqrt(d)
    X = np.empty((rows, features))
    X[:, 0] = 1.0
    X[:, 1:] = rng.standard_normal((rows, d)) @ mixing + means[ids]
    X[:, 1::3] = np.round(X[:, 1::3])
    coefficients = 0.6 * rng.standard_normal(d) + 0.5 * rng.standard_normal((groups, d))
    scores = 0.7 * rng.standard_normal(groups)[ids]
    for j in range(d):  # column by column: no (n, d) array of everybody's coefficients
        scores += X[:, 1 + j] * coefficients[ids, j]
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-scores))).astype(np.float64)
    X[:, 1:] -= X[:, 1:].mean(axis=0)
    X[:, 1:] /= X[:, 1:].std(axis=0)
    return X, y, ids


def write(folder: Path, rows: int, groups: int, features: int = 17, seed: int = 0) -> None:
    """Write X.npy, y.npy and groups.npy into ``folder``: `make`, for both sides to read."""
    for name, array in zip(("X", "y", "groups"), make(rows, groups, features, seed), strict=True):
        np.save(folder / f"{name}.npy", array)
