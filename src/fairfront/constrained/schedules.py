"""The learning rate over a run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairfront.errors import ArgumentError

__all__ = ["WarmupCosine"]


@dataclass(frozen=True)
class WarmupCosine:
    """Linear warm-up, then a cosine to 0, both rescaled to the horizon (the paper's B.2, item 6).

    Parameters
    ----------
    warmup : float, default 0.05
        Share of the steps of the warm-up, in [0, 1).
    start : float, default 1/3
        Where the warm-up starts, as a share of the learning rate, in (0, 1].
    decay : bool, default True
        False holds the learning rate after the warm-up.
    """

    warmup: float = 0.05
    start: float = 1 / 3
    decay: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.warmup, (int, float)) or not 0 <= self.warmup < 1:
            raise ArgumentError("warmup", f"is {self.warmup!r}", "a share in [0, 1)")
        if not isinstance(self.start, (int, float)) or not 0 < self.start <= 1:
            raise ArgumentError("start", f"is {self.start!r}", "a share in (0, 1]")

    def factor(self, step: int, horizon: int) -> float:
        """Return the share of the learning rate in force at a step, 0 <= step < horizon."""
        warm = self.warmup * horizon
        if step < warm:
            return self.start + (1 - self.start) * step / warm
        if not self.decay:
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / (horizon - warm)))
