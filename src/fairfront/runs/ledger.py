"""The claims ledger: what the papers claim, and what was measured of it.

data/claims.toml lists every claim with the papers' own values, which no measurement changes. Studies measure claims;
the store keeps what they measured; `ledger` joins the two.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fairfront
from fairfront import paths, studies
from fairfront.errors import ArgumentError, DataError, unknown_name
from fairfront.runs import provenance
from fairfront.studies.parameters import PROFILES

if TYPE_CHECKING:
    from fairfront.runs.store import Entry

__all__ = ["NOT_MEASURED", "VERDICTS", "Claim", "ClaimRecord", "Measurement", "checked", "claims", "ledger"]

VERDICTS: tuple[str, ...] = ("reproduced", "reproduced in part", "not reproduced", "not testable")
"""What a measurement can say of a claim."""

NOT_MEASURED: tuple[str, ...] = ("not run at this profile", "no chapter yet")
"""What the ledger says of a claim for which the store holds no measurement."""


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


@dataclass(frozen=True)
class Claim:
    """A claim of one of the papers.

    Attributes
    ----------
    id, paper, item, kind, statement : str
        Identifier, "badr" or "spbm", where in the paper, what kind of item, what it says.
    paper_value : str
        The value that the paper prints, or "".
    chapter : str
        The chapter that checks it, or "" while there is none.
    check : str
        How it is checked, in words.
    tolerance : float or None
        The number that the check compares with, where there is one.
    """

    id: str
    paper: str
    item: str
    kind: str
    statement: str
    paper_value: str
    chapter: str
    check: str
    tolerance: float | None


@dataclass(frozen=True)
class ClaimRecord:
    """A line of the ledger: a claim, and the measurement that the store holds of it.

    `measured`, `profile`, `data` and `reason` are "" where nothing was measured; `verdict` is then one of
    `NOT_MEASURED`.
    """

    id: str
    paper: str
    item: str
    statement: str
    paper_value: str
    measured: str
    profile: str
    data: str
    verdict: str
    reason: str
    chapter: str


def claims() -> tuple[Claim, ...]:
    """Return every claim of data/claims.toml, in its order.

    Raises
    ------
    DataError
        If the file is absent or is not what it should be.
    """
    path = paths.data() / "claims.toml"
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)["claim"]
        return tuple(Claim(**{**table, "tolerance": table["tolerance"] or None}) for table in tables)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; reinstall the package") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a list of claims: {error}; restore it with `git checkout -- data`") from error


def checked(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Return the measurements if each is of a claim that exists, and none is measured twice.

    Raises
    ------
    ArgumentError
        Otherwise; the nearest identifiers are in the message.
    """
    measurements = tuple(measurements)
    known = {claim.id for claim in claims()}
    seen: set[str] = set()
    for measurement in measurements:
        if measurement.claim not in known:
            raise unknown_name("claim", measurement.claim, known)
        if measurement.claim in seen:
            raise ArgumentError("claim", f"{measurement.claim} is measured twice by one study", "join the two")
        seen.add(measurement.claim)
    return measurements


def ledger(profile: str | None = None) -> list[ClaimRecord]:
    """Return the ledger: every claim with the newest measurement that the store holds of it.

    Only measurements made by the code as it stands count. Among several, one at the study's default parameters comes
    before one at others, a larger profile before a smaller one, a newer one before an older one.

    Parameters
    ----------
    profile : str, optional
        Consider only what was measured at this profile.

    Raises
    ------
    ArgumentError
        If the profile is unknown.
    """
    if profile is not None and profile not in PROFILES:
        raise unknown_name("profile", profile, PROFILES)
    best: dict[str, tuple[tuple[Any, ...], Entry, Measurement]] = {}
    for entry in _current_entries():
        if profile in (None, _profile(entry)):
            for measurement in entry.measurements:
                candidate = (_rank(entry), entry, measurement)
                if measurement.claim not in best or candidate[0] > best[measurement.claim][0]:
                    best[measurement.claim] = candidate
    return [_record(claim, *best.get(claim.id, (None, None, None))[1:]) for claim in claims()]


def _current_entries() -> Iterable[Entry]:
    """Yield the entries of the store that the studies as they stand would make."""
    from fairfront.runs import store

    sources = {}
    for entry in store.entries():
        if entry.study in studies.names():
            if entry.study not in sources:
                sources[entry.study] = provenance.source_digest([studies.source(entry.study)])
            made_by = (entry.provenance.get("source"), entry.provenance.get("version"))
            if made_by == (sources[entry.study], fairfront.__version__):
                yield entry


def _profile(entry: Entry) -> str:
    return str(entry.provenance["parameters"]["profile"])


def _rank(entry: Entry) -> tuple[Any, ...]:
    return (bool(entry.provenance["default"]), PROFILES.index(_profile(entry)), str(entry.provenance["date"]))


def _record(claim: Claim, entry: Entry | None, measurement: Measurement | None) -> ClaimRecord:
    return ClaimRecord(
        id=claim.id,
        paper=claim.paper,
        item=claim.item,
        statement=claim.statement,
        paper_value=claim.paper_value,
        measured=measurement.measured if measurement else "",
        profile=_profile(entry) if entry else "",
        data=measurement.data if measurement else "",
        verdict=measurement.verdict if measurement else NOT_MEASURED[0 if claim.chapter else 1],
        reason=measurement.reason if measurement else "",
        chapter=claim.chapter,
    )
