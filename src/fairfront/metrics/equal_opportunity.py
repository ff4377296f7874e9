"""Equal opportunity (Hardt et al. 2016): the same true positive rate in every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairfront.metrics.rates import RateGaps

__all__ = ["EqualOpportunity"]


@dataclass(frozen=True, kw_only=True)
class EqualOpportunity(RateGaps):
    """Smooth gap between the largest and the least true positive rate of a group; classification only.

    The gap of `fairfront.metrics.rates.RateGaps` over the rows with label 1. As rho grows it approaches the equal
    opportunity difference.
    """

    name: ClassVar[str] = "equal_opportunity"
    labels: ClassVar[tuple[int, ...]] = (1,)
