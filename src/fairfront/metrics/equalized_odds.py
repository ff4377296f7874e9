"""Equalised odds (Hardt et al. 2016): the same true and the same false positive rate in every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairfront.metrics.rates import RateGaps

__all__ = ["EqualizedOdds"]


@dataclass(frozen=True, kw_only=True)
class EqualizedOdds(RateGaps):
    """Mean of the smooth gaps in the true and in the false positive rate; classification only.

    The gaps of `fairfront.metrics.rates.RateGaps` over the rows with label 1 and over those with label 0. As rho grows
    their mean approaches the equalised odds difference with ``agg="mean"``.
    """

    name: ClassVar[str] = "equalized_odds"
    labels: ClassVar[tuple[int, ...]] = (1, 0)
