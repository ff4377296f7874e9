"""Train and test rows, drawn stratum by stratum with a seeded generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["stratified_split"]


def stratified_split(
    strata: NDArray[np.int64], test_size: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw a test set that has the strata's shares of the rows.

    A stratum of m rows gives test_size * m rows to the test set, rounded down or up so that the test set as a whole has
    round(test_size * n) of them (largest remainders first). It always keeps at least one for training, even where the
    test set then falls short.

    Parameters
    ----------
    strata : ndarray of int64, shape (n,)
        The stratum of each row.
    test_size : float
        Share of the test rows, in [0, 1).
    generator : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    train, test : ndarray of int64
        Sorted row numbers; together every row once.
    """
    _, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    quotas = test_size * sizes
    counts = np.floor(quotas).astype(np.int64)
    short = round(test_size * len(strata)) - int(counts.sum())
    # A stable sort: equal remainders are served in the strata's order, so that the draw is reproducible.
    counts[np.argsort(counts - quotas, kind="stable")[:short]] += 1
    counts = np.minimum(counts, sizes - 1)

    # A random order of the rows, then by stratum: the first counts[k] rows of stratum k are its test rows.
    shuffled = generator.permutation(len(strata))
    ordered = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    place = np.arange(len(strata)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_test = place < np.repeat(counts, sizes)
    return np.sort(ordered[~is_test]), np.sort(ordered[is_test])
