"""A chapter's verdicts: what the papers claim beside what its study measured."""

from __future__ import annotations

import pandas as pd

from fairfront.runs.ledger import claims
from fairfront.runs.store import Result

__all__ = ["verdicts"]


def verdicts(result: Result) -> pd.DataFrame:
    """Return a row per claim that a result measured.

    Parameters
    ----------
    result : Result
        What :func:`fairfront.runs.compute` returned.

    Returns
    -------
    DataFrame
        Columns claim, item, statement, measured, verdict, why, data, profile.
    """
    known = {claim.id: claim for claim in claims()}
    return pd.DataFrame(
        {
            "claim": measurement.claim,
            "item": known[measurement.claim].item,
            "statement": known[measurement.claim].statement,
            "measured": measurement.measured,
            "verdict": measurement.verdict,
            "why": measurement.reason,
            "data": measurement.data,
            "profile": result.parameters.profile,
        }
        for measurement in result.measurements
    )
