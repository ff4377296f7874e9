"""The claims ledger: what the papers claim, and what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass

from fairfront.errors import ArgumentError, unknown_name

__all__ = ["VERDICTS", "Measurement"]

VERDICTS: tuple[str, ...] = ("reproduced", "reproduced in part", "not reproduced", "not testable")
"""What a measurement can say of a claim."""


@dataclass(frozen=True)
class Measurement:
    """What a study measured of one claim.

    Parameters
    ----------
    claim : str
        Identifier of the claim in data/claims.toml.
    measured : str
        What was measured, with its numbers, in one line.
    verdict : str
        One of `VERDICTS`.
    reason : str, default ""
        Why, wherever the verdict is not "reproduced": required there.
    data : str, default ""
        The data that it was measured on, in words.

    Raises
    ------
    ArgumentError
        If the verdict is none of `VERDICTS`, or one other than "reproduced" comes without a reason.
    """

    claim: str
    measured: str
    verdict: str
    reason: str = ""
    data: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise unknown_name("verdict", self.verdict, VERDICTS)
        if self.verdict != "reproduced" and not self.reason:
            raise ArgumentError("reason", f"missing for {self.claim}", f"a claim that is {self.verdict} says why")
