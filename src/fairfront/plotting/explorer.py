"""A page's interactive simplex: pointing at weights shows the group losses and the metric there.

It is one piece of HTML with its numbers and its script inside, so that it works from a file, without a network.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fairfront.plotting.simplex import CORNERS
from fairfront.plotting.style import STRATEGIES

__all__ = ["Html", "simplex_explorer"]


@dataclass(frozen=True)
class Html:
    """A piece of HTML that a notebook shows.

    Attributes
    ----------
    text : str
        The HTML.
    """

    text: str

    def _repr_html_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Html({len(self.text):,} characters)"


def simplex_explorer(sets: Sequence[Mapping[str, Any]], *, name: str, label: str, fallback: str) -> Html:
    """Return the interactive simplex.

    Parameters
    ----------
    sets : sequence of mapping
        One a data set: ``title``; ``groups`` (three names); ``resolution`` R; ``points`` ([i, j] a point, its weights
        being i/R, j/R and the rest); ``losses`` (three numbers a point); ``metrics``, a list of mappings with ``name``,
        ``values`` (one a point), ``strategies`` and ``minima`` (lists of mappings with ``weights``, ``value`` and, for
        a strategy, its ``name``).
    name : str
        Identifier of the element, unique on the page.
    label : str
        What the whole is, for a screen reader.
    fallback : str
        What a reader without JavaScript is told.
    """
    content = {
        "sets": list(sets),
        "corners": CORNERS.round(6).tolist(),
        "marks": {key: {"label": mark.label, "colour": mark.colour} for key, mark in STRATEGIES.items()},
    }
    numbers = json.dumps(content, separators=(",", ":")).replace("</", "<\\/")
    template = resources.files("fairfront.plotting").joinpath("explorer.html").read_text(encoding="utf-8")
    words = {
        "NAME": html.escape(name, quote=True),
        "LABEL": html.escape(label, quote=True),
        "FALLBACK": html.escape(fallback),
        "NUMBERS": numbers,
    }
    for key, text in words.items():
        template = template.replace(f"@{key}@", text)
    return Html(template)
