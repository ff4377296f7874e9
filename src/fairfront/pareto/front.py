"""The Pareto front of the group risks, traced by weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairfront.errors import ArgumentError
from fairfront.pareto.scalarization import Scalarization, ScalarizedModel
from fairfront.risks import GroupRisks

__all__ = ["Front", "three_group_weights", "trace", "two_group_weights"]


@dataclass(frozen=True, eq=False)
class Front:
    """Scalarised models in the order in which they were traced.

    Attributes
    ----------
    models : tuple of ScalarizedModel
        One model a weight vector.
    """

    models: tuple[ScalarizedModel, ...]

    @property
    def weights(self) -> np.ndarray:
        """Lambda of each model, shape (m, S)."""
        return np.array([model.weights for model in self.models])

    @property
    def losses(self) -> np.ndarray:
        """Group risks of each model, shape (m, S)."""
        return np.array([model.losses for model in self.models])


def two_group_weights(points: int) -> np.ndarray:
    """Return ``points`` weight vectors (lambda_1, 1 - lambda_1), lambda_1 = 0..1 equally spaced, shape (points, 2)."""
    if points < 2:
        raise ArgumentError("points", f"a front needs at least 2 points, got {points}")
    first = np.linspace(0.0, 1.0, points)
    return np.column_stack([first, 1.0 - first])


def three_group_weights(resolution: int) -> np.ndarray:
    """Return the weights of three groups that are multiples of 1/resolution, shape (m, 3).

    There are m = (resolution + 1)(resolution + 2)/2 of them, 5,151 at 100.  They run to and fro along the rows of the
    triangle, so that each is a neighbour of the one before: a solution is a good start for the next.
    """
    if resolution < 1:
        raise ArgumentError("resolution", f"must be at least 1, got {resolution}")
    first, second = np.triu_indices(resolution + 1)
    second = second - first
    backwards = first % 2 == 1
    second[backwards] = (resolution - first - second)[backwards]
    return np.column_stack([first, second, resolution - first - second]) / resolution


def trace(risks: GroupRisks, weights: Iterable[np.ndarray]) -> Front:
    """Return the minimisers w*(lambda) for each weight vector, each warm-started from the one before.

    By Proposition 1 every one of them is Pareto-efficient when the risks are strictly convex.
    """
    solver = Scalarization(risks)
    return Front(tuple(solver.solve(w) for w in weights))
