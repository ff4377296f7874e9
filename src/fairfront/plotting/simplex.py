"""The simplex of three groups' weights, drawn as an equilateral triangle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import TriMesh
from numpy.typing import ArrayLike, NDArray

from fairfront.plotting.style import UNFAIRNESS_MAP

__all__ = ["CORNERS", "barycentric", "draw_simplex"]

CORNERS: NDArray[np.float64] = np.array([[0.5, np.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]])
"""Where all the weight is on the first group (top), the second (bottom left) and the third (bottom right)."""


def barycentric(weights: ArrayLike) -> NDArray[np.float64]:
    """Return the points of the plane, shape (m, 2), of weights, shape (m, 3): the corners' means, so weighted."""
    return np.atleast_2d(np.asarray(weights, dtype=np.float64)) @ CORNERS


def draw_simplex(
    ax: Axes, weights: ArrayLike, values: ArrayLike, labels: Sequence[str], *, ticks: bool = True
) -> TriMesh:
    """Draw values over the simplex as a heat map with barycentric axes.

    Parameters
    ----------
    ax : Axes
        Where to draw; its own axes are hidden.
    weights : array of shape (m, 3)
        Points of the simplex.
    values : array of shape (m,)
        What is shown there: 0 is the least value, 1 that which 1% of the points exceed (a corner can be many times as
        high as all the rest). Nine lines divide the simplex into ten parts with as many points each.
    labels : sequence of str
        What is written at the three corners.
    ticks : bool, default True
        Whether weights of 1/4, 1/2 and 3/4 are marked: those of a group on the edge that leads from its corner to the
        next one's, by ticks in the direction of equal weight.

    Returns
    -------
    TriMesh
        For a colour bar.
    """
    xy, shown = barycentric(weights), np.asarray(values, dtype=np.float64)
    span = float(np.quantile(shown, 0.99) - shown.min())
    normalised = (shown - shown.min()) / span if span > 0 else np.zeros_like(shown)
    levels = np.unique(np.quantile(normalised, np.linspace(0.1, 0.9, 9)))
    mesh = ax.tripcolor(
        xy[:, 0], xy[:, 1], normalised, shading="gouraud", cmap=UNFAIRNESS_MAP, vmin=0.0, vmax=1.0, rasterized=True
    )
    if len(shown) > 3 and len(levels) > 1:
        ax.tricontour(xy[:, 0], xy[:, 1], normalised, levels=levels, colors="white", linewidths=0.5, alpha=0.6)
    outline = np.vstack([CORNERS, CORNERS[:1]])
    ax.plot(outline[:, 0], outline[:, 1], color="#333333", linewidth=1.0, zorder=3)
    for a in range(3):
        one, other = (a + 1) % 3, (a + 2) % 3
        for level in (0.25, 0.5, 0.75):
            ends = np.zeros((2, 3))
            ends[:, a], ends[0, one], ends[1, other] = level, 1 - level, 1 - level
            begin, end = barycentric(ends)
            if ticks:  # on the edge from this group's corner to the next: a tick along the line of equal weight
                direction = (begin - end) / np.linalg.norm(begin - end)
                tip = begin + 0.025 * direction
                ax.plot(*np.array([begin, tip]).T, color="#333333", linewidth=0.8, zorder=3)
                place = begin + 0.065 * direction
                ax.text(place[0], place[1], f"{level:g}", fontsize=5.5, color="#555555", ha="center", va="center")
        middle = CORNERS.mean(axis=0)
        away = (CORNERS[a] - middle) / np.linalg.norm(CORNERS[a] - middle)
        corner = CORNERS[a] + 0.09 * away
        ax.text(corner[0], corner[1], labels[a], fontsize=8, ha="center", va="center")
    ax.set_aspect("equal")
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.12, 0.99))
    ax.set_axis_off()
    return mesh
