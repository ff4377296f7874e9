"""Step functions: performance and data profiles."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from fairfront.plotting.style import Mark

__all__ = ["draw_profile"]


def draw_profile(ax: Axes, steps: pd.DataFrame, marks: Mapping[str, Mark]) -> None:
    """Draw the step functions of a profile, a line and a few markers for each solver.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    steps : DataFrame
        Columns solver, x, share; between two rows of a solver its share is that of the first one.
    marks : mapping of str to Mark
        Solver: label, colour and marker; the order is that of drawing, solvers without rows are left out.
    """
    for number, (solver, mark) in enumerate(marks.items()):
        mine = steps[steps.solver == solver]
        if len(mine):
            ax.plot(
                mine.x,
                mine.share,
                drawstyle="steps-post",
                color=mark.colour,
                marker=mark.marker,
                markersize=0.75 * mark.size,
                # Markers at places of their own, so that lines that coincide can be told apart.
                markevery=(0.04 * number, 0.25),
                label=mark.label,
                clip_on=False,
            )
    ax.set(ylim=(0, 1), ylabel="share of problems")
