"""What checking a statement yields."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True)
class Check:
    """A statement of a paper, held against numbers.

    Attributes
    ----------
    statement : str
        What was checked, in words.
    measured : float
        The quantity that the statement bounds, at its worst.
    bound : float
        What the statement allows.
    holds : bool
        Whether ``measured`` is within ``bound``.
    cases : int
        On how many cases.
    """

    statement: str
    measured: float
    bound: float
    holds: bool
    cases: int

    @classmethod
    def at_most(cls, statement: str, measured: float, bound: float, cases: int) -> Check:
        """Return the check of ``measured <= bound``."""
        return cls(statement, float(measured), float(bound), bool(measured <= bound), cases)

    def numbers(self) -> dict[str, float]:
        """Return what a table says of it beside the statement: measured, bound, holds and cases."""
        return {"measured": self.measured, "bound": self.bound, "holds": self.holds, "cases": self.cases}
