"""How a table is shown in the book."""

from __future__ import annotations

import numbers
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

__all__ = ["present"]


def present(frame: pd.DataFrame, digits: int = 4) -> Styler:
    """Return a table ready to be shown: no index, numbers to ``digits`` significant digits, long texts wrapped.

    Parameters
    ----------
    frame : DataFrame
        What to show.
    digits : int, default 4
        Significant digits of the numbers that are not whole.
    """

    def word(value: Any) -> str:
        if isinstance(value, numbers.Integral):  # booleans are shown as such, counts with separators
            return str(bool(value)) if isinstance(value, bool) or type(value).__name__ == "bool" else f"{int(value):,}"
        return f"{value:.{digits}g}" if isinstance(value, numbers.Real) else str(value)

    return frame.style.format(word, na_rep="").hide(axis="index").set_table_attributes('class="fairfront-table"')
