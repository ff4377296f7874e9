"""What Figures 6 and 7 ask of an implicit fairness function: how it varies, its minima, and who else finds the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fairfront.metrics import Metric
from fairfront.studies.strategies import Comparison

__all__ = ["SAME", "VARIES", "judge", "pair_row"]

VARIES = 0.05
"""A metric varies along the front when the best weights remove at least this share of its excess over the worst."""
SAME = 1e-3
"""Differences up to this share of the metric's range along the front count as none."""


def pair_row(metric: Metric, n_groups: int, largest: float, found: Comparison) -> dict[str, Any]:
    """Return the numbers of one data set and metric.

    Parameters
    ----------
    metric : Metric
        The metric.
    n_groups : int
        Number of groups.
    largest : float
        The metric's largest value along the front.
    found : Comparison
        The strategies, and the minima that badr's search met.

    Returns
    -------
    dict
        floor (of the metric), least and largest along the front, minima, interior_minima (all weights positive), rival
        (the fairest strategy other than badr), and the unfairness of rival, balanced and uniform.
    """
    return {
        "floor": metric.floor(n_groups),
        "least": found.unfairness["badr"],
        "largest": largest,
        "minima": len(found.bilevel.local_minima),
        "interior_minima": int((found.bilevel.local_minima > 0).all(axis=1).sum()),
        "rival": found.rival,
        "rival_unfairness": found.unfairness[found.rival],
        "balanced": found.unfairness["balanced"],
        "uniform": found.unfairness["uniform"],
    }


def judge(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return what the claims ask of each row of `pair_row`.

    Returns
    -------
    DataFrame
        metric; varies (the share of the largest unfairness on the front, counted from the metric's floor, that the best
        weights remove); minima; inside (those with all weights positive); next fairest (the strategy); gain (by how
        much badr is fairer than that one, as a share of the metric's range along the front); reached (the gain is at
        most `SAME`); balanced - uniform (as a share of the same range).
    """
    span = (pairs.largest - pairs.least).clip(lower=np.finfo(float).tiny)
    gain = (pairs.rival_unfairness - pairs.least) / span
    return pd.DataFrame(
        {
            "metric": pairs.metric.str.replace("_", " "),
            "varies": 1.0 - (pairs.least - pairs.floor).clip(lower=0.0) / (pairs.largest - pairs.floor),
            "minima": pairs.minima,
            "inside": pairs.interior_minima,
            "next fairest": pairs.rival,
            "gain": gain,
            "reached": gain <= SAME,
            "balanced - uniform": (pairs.balanced - pairs.uniform) / span,
        }
    )
