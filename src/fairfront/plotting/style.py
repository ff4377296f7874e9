"""One style sheet and one table of colours and markers for every figure of the book."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

__all__ = [
    "FRONT",
    "METHODS",
    "OUTER_SOLVERS",
    "PATH",
    "STRATEGIES",
    "UNFAIRNESS_MAP",
    "Mark",
    "legend_below",
    "mark_minima",
    "mark_strategies",
    "panels",
    "style",
]


@dataclass(frozen=True)
class Mark:
    """How a strategy is drawn: its label, colour (Okabe and Ito's palette, told apart without colour by the marker)."""

    label: str
    colour: str
    marker: str
    size: float = 7.0


FRONT = "#0072B2"
"""Colour of the Pareto front."""
PATH = "#D55E00"
"""Colour of the regularisation path."""
UNFAIRNESS_MAP = "viridis"
"""Colour map of an unfairness metric."""

STRATEGIES: Mapping[str, Mark] = {
    "badr": Mark("badr", "#D55E00", "*", 16.0),
    "minimax": Mark("minimax", "#CC79A7", "D", 7.5),
    "one-group": Mark("one-group", "#009E73", "s", 5.0),
    "balanced": Mark("balanced", "#E69F00", "^", 8.0),
    "uniform": Mark("uniform", "#56B4E9", "o", 8.0),
    "erm": Mark("ERM", "#000000", "x"),
}
"""The strategies of the first paper, in the order in which they are listed."""

METHODS: Mapping[str, Mark] = {
    "spbm": Mark("SPBM", "#D55E00", "o"),
    "ssl-alm": Mark("SSL-ALM", "#0072B2", "s"),
    "ssw": Mark("SSw", "#009E73", "^"),
    "adam": Mark("Adam", "#000000", "x"),
    "adam-reg": Mark("Adam (reg.)", "#CC79A7", "D"),
}
"""The methods of the second paper, in the order in which they are listed."""

OUTER_SOLVERS: Mapping[str, Mark] = {
    "slsqp": Mark("SLSQP", "#D55E00", "o"),
    "trust-constr": Mark("trust-region", "#0072B2", "s"),
    "frank-wolfe": Mark("Frank-Wolfe", "#009E73", "^"),
    "slsqp-tight": Mark("SLSQP, 1e-10", "#E69F00", "v"),
    "trust-constr-tight": Mark("trust-region, tight", "#56B4E9", "P"),
    "multi-start": Mark("multi-start", "#CC79A7", "D"),
    "badr-gd": Mark("badr-gd", "#000000", "x"),
    "badr-sgd": Mark("badr-sgd", "#7F7F7F", "*", 10.0),
}
"""The solvers of the first paper's bilevel problem, in the order in which they are listed."""

_RC: Any = {
    "figure.facecolor": "white",  # opaque, so that a figure reads the same on a dark page
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "mathtext.fontset": "cm",
}


@contextmanager
def style() -> Generator[None]:
    """Draw in the book's style within this context."""
    with mpl.rc_context(_RC):
        yield


def panels(rows: int, columns: int, *, width: float = 2.75, height: float = 2.6) -> tuple[Figure, np.ndarray]:
    """Return a figure of ``rows`` x ``columns`` axes, each ``width`` x ``height`` inches, and the array of the axes.

    The figure is taken from pyplot, which lets a notebook show it, and closed at once, so that it is shown only where
    it is asked for and held only by its owner.
    """
    import matplotlib.pyplot as plt  # only where something is drawn

    figure, axes = plt.subplots(rows, columns, figsize=(width * columns + 0.6, height * rows), squeeze=False)
    plt.close(figure)
    return figure, axes


def legend_below(ax: Axes, columns: int, **options: Any) -> None:
    """Draw the legend of one of the axes below the whole figure, in so many columns."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=columns, **options)


def mark_minima(
    ax: Axes, x: ArrayLike, y: ArrayLike, *, size: float = 12.0, colour: str = "#555555", zorder: float = 4.0
) -> None:
    """Circle local minima, so that what is marked inside stays to be seen."""
    ax.plot(
        x,
        y,
        linestyle="none",
        marker="o",
        markersize=size,
        markerfacecolor="none",
        markeredgecolor=colour,
        label="local minimum",
        zorder=zorder,
        clip_on=False,
    )


def mark_strategies(ax: Axes, coordinates: Mapping[str, tuple[float, float]]) -> None:
    """Mark strategies at their (x, y); those that may coincide lie in order of their size."""
    for depth, (name, mark) in enumerate(STRATEGIES.items()):
        if name in coordinates:
            x, y = coordinates[name]
            filled = mark.marker != "x"
            ax.plot(
                x,
                y,
                linestyle="none",
                marker=mark.marker,
                markersize=mark.size,
                markerfacecolor=mark.colour,
                markeredgecolor="white" if filled else mark.colour,
                markeredgewidth=0.8 if filled else 2.0,
                label=mark.label,
                zorder=5 + depth,
                clip_on=False,
            )
