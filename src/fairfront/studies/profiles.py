"""Performance profiles (Dolan and Moré, 2002) and data profiles (Moré and Wild, 2009): how often, within which cost.

A profile is a step function for each solver: the share of the problems that it solves within x. In a performance
profile x is a multiple of the best cost on the same problem, in a data profile a cost in units of the problem's size.
What a cost is (seconds, evaluations, a loss that was reached) is up to the study; a failure is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairfront.errors import ArgumentError

__all__ = ["Profile", "cost_to_reach", "data_profile", "performance_profile"]

Array = NDArray[np.float64]
Costs = pd.DataFrame | Mapping[str, ArrayLike]


@dataclass(frozen=True, eq=False)
class Profile:
    """The step functions of some solvers.

    Attributes
    ----------
    places : dict of str to array
        Solver: where its step function rises, ascending; a place that occurs twice is a rise twice as high.
    problems : dict of str to int
        Solver: of how many problems its shares are.
    begin : float
        Where the functions begin: 1 for a performance profile, 0 for a data profile.
    """

    places: dict[str, Array]
    problems: dict[str, int]
    begin: float

    @property
    def solved(self) -> pd.Series:
        """Share of the problems that each solver solves at all."""
        return self.at(np.inf)

    def at(self, x: float) -> pd.Series:
        """Return each solver's share of the problems solved within ``x`` (the end included)."""
        shares = {s: np.searchsorted(found, x, side="right") / self.problems[s] for s, found in self.places.items()}
        return pd.Series(shares, dtype=float)

    def reaches(self, share: float) -> pd.Series:
        """Return the least x within which each solver solves a share of the problems; inf where it never does.

        Parameters
        ----------
        share : float
            Above 0, at most 1.

        Raises
        ------
        ArgumentError
            For a share out of range.
        """
        if not 0 < share <= 1:
            raise ArgumentError("share", f"must be above 0 and at most 1, got {share}")

        def least(solver: str, found: Array) -> float:
            needed = int(np.ceil(share * self.problems[solver] - 1e-9))
            return float(found[needed - 1]) if needed <= len(found) else np.inf

        return pd.Series({solver: least(solver, found) for solver, found in self.places.items()}, dtype=float)

    def steps(self, end: float | None = None) -> pd.DataFrame:
        """Return the corners of the step functions: columns solver, x, share.

        Parameters
        ----------
        end : float, optional
            Where they end; default the last rise of any of them.

        Returns
        -------
        DataFrame
            From ``begin`` to ``end``; between two rows of a solver its share is that of the first one.
        """
        last = max((found[-1] for found in self.places.values() if len(found)), default=self.begin)
        limit = max(float(last if end is None else end), self.begin)
        frames = []
        for solver in self.places:
            found = self.places[solver]
            x = np.unique(np.concatenate([[self.begin], found[(found > self.begin) & (found < limit)], [limit]]))
            shares = np.searchsorted(found, x, side="right") / self.problems[solver]
            frames.append(pd.DataFrame({"solver": solver, "x": x, "share": shares}))
        return pd.concat(frames, ignore_index=True)


def performance_profile(
    costs: Costs, *, best: ArrayLike | None = None, failures: Literal["counted", "dropped"] = "counted"
) -> Profile:
    """Return the performance profile: the share of the problems solved within tau times the best cost on each.

    Parameters
    ----------
    costs : DataFrame of problems x solvers, or mapping of solver to array
        Positive costs; inf or NaN where a solver failed. The arrays of a mapping need not be equally long when ``best``
        is one number.
    best : float or array of one number a problem, optional
        What costs are divided by; default the least cost of any solver on the problem. One number compares
        configurations of the same problem.
    failures : {"counted", "dropped"}, default "counted"
        Whether shares are of all problems, as Dolan and Moré define them, or only of those that the solver solved.

    Raises
    ------
    ArgumentError
        For no solver or no problem, costs or ``best`` that are not positive or do not match, or ``best`` above a cost.
    """
    columns = _columns(costs)
    if failures not in ("counted", "dropped"):
        raise ArgumentError("failures", f'must be "counted" or "dropped", got {failures!r}')
    for solver, column in columns.items():
        if (column <= 0).any():
            raise ArgumentError("costs", f"{solver} has one that is not positive", "ratios need positive costs")
    lengths = {len(column) for column in columns.values()}
    if best is None:
        if len(lengths) > 1:
            raise ArgumentError("costs", "are not equally many for each solver", "give one number as best")
        reference = np.min(list(columns.values()), axis=0)
    else:
        reference = np.asarray(best, dtype=np.float64)
        if reference.ndim and {len(reference)} != lengths:
            raise ArgumentError("best", f"has shape {reference.shape}, the problems are {max(lengths)}")
        if not (reference > 0).all():
            raise ArgumentError("best", "must be positive")
    places, problems = {}, {}
    for solver, column in columns.items():
        divisor = np.broadcast_to(reference, column.shape)
        # A tie is a ratio of exactly 1: x / x is 1 in floating point.
        ratios = np.sort(column[np.isfinite(column)] / divisor[np.isfinite(column)])
        if len(ratios) and ratios[0] < 1:
            raise ArgumentError("best", f"is above a cost of {solver}")
        places[solver], problems[solver] = ratios, len(column) if failures == "counted" else max(len(ratios), 1)
    return Profile(places, problems, 1.0)


def data_profile(costs: Costs, dimensions: ArrayLike) -> Profile:
    """Return the data profile: the share of the problems solved within x (n_p + 1) units of cost.

    Parameters
    ----------
    costs : DataFrame of problems x solvers, or mapping of solver to array
        Costs at least 0, usually numbers of evaluations; inf or NaN where a solver failed.
    dimensions : array of one number a problem, or one number
        n_p, the number of free variables: n_p + 1 evaluations are what a simplex gradient takes.

    Raises
    ------
    ArgumentError
        For no solver or no problem, negative costs, or dimensions that are negative or do not match.
    """
    columns = _columns(costs)
    sizes = np.asarray(dimensions, dtype=np.float64)
    if not (sizes >= 0).all():
        raise ArgumentError("dimensions", "must be at least 0")
    places = {}
    for solver, column in columns.items():
        if sizes.ndim and len(sizes) != len(column):
            raise ArgumentError("dimensions", f"has shape {sizes.shape}, the problems are {len(column)}")
        if (column < 0).any():
            raise ArgumentError("costs", f"{solver} has a negative one")
        units = column / (sizes + 1.0)
        places[solver] = np.sort(units[np.isfinite(units)])
    return Profile(places, {solver: len(column) for solver, column in columns.items()}, 0.0)


def cost_to_reach(values: ArrayLike, costs: ArrayLike, target: float) -> float:
    """Return what a run had cost when its value first was at most a target; inf where it never was.

    Parameters
    ----------
    values : array of shape (m,)
        What the run found, in its order.
    costs : array of shape (m,)
        What it had cost by then.
    target : float
        The value wanted.

    Raises
    ------
    ArgumentError
        When there are not as many costs as values.
    """
    found, spent = np.asarray(values, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    if found.shape != spent.shape or found.ndim != 1:
        raise ArgumentError("costs", f"has shape {spent.shape}, the values have {found.shape}")
    reached = np.flatnonzero(found <= target)
    return float(spent[reached[0]]) if len(reached) else float("inf")


def _columns(costs: Costs) -> dict[str, Array]:
    """Return the costs by solver, with inf for every failure."""
    columns = {str(solver): np.asarray(column, dtype=np.float64) for solver, column in costs.items()}
    if not columns or any(column.ndim != 1 or not len(column) for column in columns.values()):
        raise ArgumentError("costs", "must hold at least one solver and one problem, and a vector for each solver")
    return {solver: np.where(np.isnan(column), np.inf, column) for solver, column in columns.items()}
