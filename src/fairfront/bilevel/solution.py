"""What every bilevel solver returns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairfront.bilevel.objective import Objective
from fairfront.metrics import BoundMetric
from fairfront.pareto import ScalarizedModel
from fairfront.risks import Array, GroupRisks

__all__ = ["BilevelSolution", "History", "Record"]


class Record(NamedTuple):
    """One iterate of a solver.

    Attributes
    ----------
    iteration : int
        0 at the start.
    time : float
        Seconds since the solver began.
    value : float
        phi there; what a single-loop method computes on its way instead is said by it.
    weights : array of shape (S,)
        lambda.
    solves : int
        Lower-level and adjoint problems solved by then: evaluations of phi and of its gradient.
    passes : int
        Passes over the rows by then.
    """

    iteration: int
    time: float
    value: float
    weights: Array
    solves: int = 0
    passes: int = 0


class History:
    """Records of a running solver, on some rows."""

    def __init__(self, risks: GroupRisks) -> None:
        self._begun = time.perf_counter()
        self._source, self._passes = risks.source, risks.source.passes
        self._objective: Objective | None = None
        self.records: list[Record] = []

    def watch(self, objective: Objective) -> Objective:
        """Return an objective whose evaluations the records count from now on."""
        self._objective = objective
        return objective

    @property
    def elapsed(self) -> float:
        """Seconds since the solver began."""
        return time.perf_counter() - self._begun

    def add(self, value: float, weights: Array, iteration: int | None = None) -> None:
        """Append an iterate, by default the one after the last."""
        number = len(self.records) if iteration is None else iteration
        asked = self._objective
        solves = 0 if asked is None else asked.lower_solves + asked.adjoint_solves
        passes = self._source.passes - self._passes
        self.records.append(Record(number, self.elapsed, float(value), np.array(weights), solves, passes))


@dataclass(frozen=True, eq=False)
class BilevelSolution:
    """A solution of the bilevel problem.

    Attributes
    ----------
    model : ScalarizedModel
        The best weights found and their model, solved to 1e-11.
    value : float
        phi there, corrected to first order for what the solve leaves: to 1e-12, however the weights were found.
    local_minima : array of shape (m, S)
        Weights of every distinct local minimum met, the best first.
    minimum_values : array of shape (m,)
        phi at each of them.
    lower_solves : int
        Number of lower-level problems solved.
    message : str
        What the solver says of the solution.
    solver : str
        Name of the solver.
    status : str
        "converged", "iteration limit", "time limit" or "stalled".
    adjoint_solves : int
        Number of adjoint systems solved.
    seconds : float
        Wall time.
    history : tuple of Record
        The iterates.
    """

    model: ScalarizedModel
    value: float
    local_minima: Array
    minimum_values: Array
    lower_solves: int
    message: str
    solver: str = "exhaustive"
    status: str = "converged"
    adjoint_solves: int = 0
    seconds: float = 0.0
    history: tuple[Record, ...] = field(default=(), repr=False)

    @property
    def weights(self) -> Array:
        """lambda, shape (S,)."""
        return self.model.weights

    @property
    def converged(self) -> bool:
        """Whether the solver met its own criterion."""
        return self.status == "converged"

    def frame(self) -> pd.DataFrame:
        """Return the history: columns iteration, time, value and weight_0 .. weight_{S-1}."""
        weights = np.array([record.weights for record in self.history]).reshape(len(self.history), -1)
        columns = {name: [getattr(record, name) for record in self.history] for name in ("iteration", "time", "value")}
        return pd.DataFrame(columns | {f"weight_{a}": weights[:, a] for a in range(weights.shape[1])})


def exact(risks: GroupRisks, metric: BoundMetric, weights: Array) -> tuple[ScalarizedModel, float]:
    """Return the model and the metric at some weights, the same numbers wherever they are computed (`settle`)."""
    return Objective(risks, metric).settle(weights)
