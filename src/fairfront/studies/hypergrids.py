"""The grids of hyper-parameters of the second paper (appendix B.3), parts of them, and its rule of selection.

The grids are data, ``grids/hyperparameters.toml``: a list a factor, the product of the lists is the grid. An entry is a
`Choice`: the learning rate, and what differs from a method's other parameters.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fairfront.errors import ArgumentError, unknown_name

__all__ = ["ABLATIONS", "TOLERANCE", "Choice", "Kind", "ablated", "choice", "factors", "grid", "part", "select"]

Kind: TypeAlias = Literal["fairness", "pinn"]

ABLATIONS: tuple[str, ...] = ("alm", "adapt", "gamma", "kappa", "mu")
"""The five rows of each experiment in Tables 4 and 5: the two penalty rules, and a parameter set to 0."""

TOLERANCE = 0.1
"""A configuration is feasible when no constraint exceeds its bound by more than this share of the bound."""


@dataclass(frozen=True)
class Choice:
    """One entry of a grid.

    Attributes
    ----------
    lr : float
        Learning rate of the primal step.
    settings : tuple of (str, float or str)
        The method's parameters that the grid varies, by name.
    """

    lr: float
    settings: tuple[tuple[str, float | str], ...]

    @property
    def row(self) -> dict[str, float | str]:
        """The entry as columns of a table: lr and every setting."""
        return {"lr": self.lr, **dict(self.settings)}

    def __str__(self) -> str:
        """Return the entry in words."""
        return ", ".join(value if isinstance(value, str) else f"{name} {value:g}" for name, value in self.row.items())


@cache
def _file() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("grids", "hyperparameters.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def factors(kind: Kind, method: str) -> dict[str, list[Any]]:
    """Return the lists whose product is the grid of a method, as the paper prints them.

    Parameters
    ----------
    kind : {"fairness", "pinn"}
        The experiments E1 to E5, or E6 to E8.
    method : str
        spbm, ssl-alm, ssw, and adam (fairness) or adam-reg (pinn).

    Raises
    ------
    ArgumentError
        For an unknown kind or method.
    """
    kinds = {name: value for name, value in _file().items() if name != "ablation"}
    if kind not in kinds:
        raise unknown_name("kind", kind, kinds)
    if method not in kinds[kind]:
        raise unknown_name("method", method, kinds[kind])
    return dict(kinds[kind][method])


def ablated(kind: Kind, ablation: str) -> dict[str, list[Any]]:
    """Return the factors of SPBM's grid under an ablation: one of `ABLATIONS`."""
    if ablation not in _file()["ablation"]:
        raise unknown_name("ablation", ablation, ABLATIONS)
    changes = dict(_file()["ablation"][ablation])
    lists = factors(kind, "spbm")
    only = changes.pop("only", None)
    if only is not None:
        lists["rule"] = [entry for entry in lists["rule"] if entry["rule"] == only]
    return lists | changes


def grid(lists: Mapping[str, Sequence[Any]]) -> tuple[Choice, ...]:
    """Return the product of some factors, the last one running fastest."""
    return tuple(choice(dict(zip(lists, values))) for values in itertools.product(*lists.values()))


def part(lists: Mapping[str, Sequence[Any]], size: int | None, generator: np.random.Generator) -> tuple[Choice, ...]:
    """Return a balanced random part of a grid: within it every factor takes its values about equally often.

    Parameters
    ----------
    lists : mapping of str to sequence
        The factors.
    size : int or None
        How many entries; None, or no fewer than there are: the whole grid.
    generator : numpy Generator
        Draws which.

    Returns
    -------
    tuple of Choice
        All different, in the order of the grid. One after another is drawn among those whose values, summed over the
        factors, have been taken least often so far.

    Raises
    ------
    ArgumentError
        When the size is below 1.
    """
    if size is not None and size < 1:
        raise ArgumentError("size", f"is {size}", "at least 1")
    whole = grid(lists)
    if size is None or size >= len(whole):
        return whole
    levels = np.array(list(itertools.product(*(range(len(values)) for values in lists.values()))))
    taken = [np.zeros(len(values)) for values in lists.values()]
    free = np.ones(len(whole), dtype=bool)
    for _ in range(size):
        # A factor of two values meets each of them five times as often as one of ten.
        use = sum(len(count) * count[column] for count, column in zip(taken, levels.T))
        use = np.where(free, use, np.inf)
        place = generator.choice(np.flatnonzero(use == use.min()))
        free[place] = False
        for count, level in zip(taken, levels[place]):
            count[level] += 1
    return tuple(entry for entry, left in zip(whole, free) if not left)


def choice(values: Mapping[str, Any]) -> Choice:
    """Return the entry that takes a value of each factor; a penalty rule is a table with its number, as in the file."""
    settings: dict[str, float | str] = {}
    for name, value in values.items():
        if name != "lr":
            settings |= value if isinstance(value, dict) else {name: value}
    return Choice(float(values["lr"]), tuple(settings.items()))


def select(runs: pd.DataFrame, epsilon: pd.Series | float) -> int:
    """Return the row that the paper's rule takes: among feasible ones that of least loss, else the least infeasible.

    Parameters
    ----------
    runs : DataFrame
        A row a configuration: loss and violation (the largest constraint value g, at most 0 when all hold), both means
        over the seeds and then over the last epochs.
    epsilon : float or Series
        The bound: a violation of at most `TOLERANCE` times the bound counts as feasible.

    Returns
    -------
    int
        Index label of the row.

    Raises
    ------
    ArgumentError
        When no row holds finite numbers.
    """
    finite = runs[np.isfinite(runs.loss) & np.isfinite(runs.violation)]
    if finite.empty:
        raise ArgumentError("runs", "hold no finite loss and violation", "at least one run that did not diverge")
    feasible = finite[finite.violation <= TOLERANCE * epsilon]
    return (finite.violation if feasible.empty else feasible.loss).idxmin()
