"""The store of results: computed once, found again by what they were computed from.

An entry is a folder ``STUDY/ADDRESS`` with one Parquet file a table, ``measurements.json`` and ``provenance.json``. The
address is the SHA-256 of the study, its parameters with the profile's sizes filled in, the digests of its data, the
package's version and the digest of the code that computes it. An entry appears at once or not at all.
"""

from __future__ import annotations

import dataclasses
import errno
import inspect
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import fairfront
from fairfront import paths, studies
from fairfront.errors import ArgumentError, OutputError
from fairfront.runs import provenance
from fairfront.runs.files import require_writable, temporary_folder, writing
from fairfront.runs.ledger import Measurement, checked
from fairfront.runs.progress import ProgressFunction, shown
from fairfront.studies.parameters import StudyParameters, to_json

__all__ = ["Entry", "Result", "address", "compute", "entries", "study_source"]

_log = logging.getLogger(__name__)
_PROVENANCE, _MEASUREMENTS = "provenance.json", "measurements.json"
_STORE = "store (FAIRFRONT_STORE)"


@dataclass(frozen=True, eq=False)
class Result:
    """What a study computed.

    Attributes
    ----------
    study : str
        The study.
    parameters : StudyParameters
        Its parameters, the profile's sizes filled in.
    tables : dict of str to DataFrame
        The study's tables by name; the first one is the main one.
    measurements : tuple of Measurement
        What was measured of the papers' claims.
    provenance : dict
        Commit, versions, seed, wall time (seconds), date, digests.
    address : str
        Where the store keeps it (SHA-256, hexadecimal).
    reused : bool
        Whether it was found in the store rather than computed now.
    """

    study: str
    parameters: StudyParameters
    tables: dict[str, pd.DataFrame]
    measurements: tuple[Measurement, ...]
    provenance: dict[str, Any]
    address: str
    reused: bool

    @property
    def frame(self) -> pd.DataFrame:
        """The main table."""
        return next(iter(self.tables.values()))


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of the store without its tables: study, address, provenance and measurements."""

    study: str
    address: str
    provenance: dict[str, Any]
    measurements: tuple[Measurement, ...]


def compute(
    study: str | Any,
    parameters: StudyParameters | None = None,
    *,
    progress: bool | ProgressFunction = True,
    refresh: bool = False,
) -> Result:
    """Return a study's result: from the store where it is there, else computed and put there.

    Parameters
    ----------
    study : str or module
        Name of a study, or a module (or an object like one) that has what a study has.
    parameters : StudyParameters, optional
        An instance of the study's ``Parameters``; its defaults where None.
    progress : bool or callable, default True
        Whether to show bars on a terminal, or the function ``progress(iterable, description, total)`` to use.
    refresh : bool, default False
        Whether to compute even if the store has the result.

    Returns
    -------
    Result
        The tables are read back from the store in both cases, so that they are the same in both.

    Raises
    ------
    ArgumentError
        If the study is unknown, or the parameters are not its own.
    OutputError
        If the store cannot be written; found out before anything is computed.
    """
    module = studies.get(study) if isinstance(study, str) else study
    name = _name(module)
    parameters = module.Parameters() if parameters is None else parameters
    if not isinstance(parameters, module.Parameters):
        raise ArgumentError("parameters", f"{type(parameters).__qualname__} given", f"{name} takes its own Parameters")
    resolved = parameters.resolved()
    key = _key(module, resolved)
    place = paths.store() / name / provenance.digest(key)

    found = None if refresh else _read(place)
    if found is not None:
        tables, measurements, origin = found
        return Result(name, resolved, tables, measurements, origin, place.name, reused=True)

    require_writable(place.parent, _STORE)
    started = time.perf_counter()
    with shown(progress) as track:
        made = module.run(resolved, track)
    _check_tables(name, made)
    with temporary_folder(place) as outer:
        folder = outer / "entry"
        with writing(place, _STORE):
            folder.mkdir()
            for table, frame in made.items():
                frame.to_parquet(_table_path(folder, table), index=False)
        tables = {table: pd.read_parquet(_table_path(folder, table)) for table in made}
        measurements = checked(module.measure(tables, resolved))
        origin = {
            **key,
            "default": resolved == type(resolved)(profile=resolved.profile).resolved(),
            "seed": resolved.seed,
            **provenance.commit(),
            "versions": provenance.versions(),
            "wall_seconds": round(time.perf_counter() - started, 3),
            "date": provenance.now(),
            "tables": list(made),
        }
        with writing(place, _STORE):
            _write_json(folder / _MEASUREMENTS, [dataclasses.asdict(measurement) for measurement in measurements])
            origin["files"] = {path.name: provenance.file_digest(path) for path in sorted(folder.iterdir())}
            origin["digest"] = provenance.digest(origin)
            _write_json(folder / _PROVENANCE, origin)
            _publish(folder, place, outer, replace=refresh)
    return Result(name, resolved, tables, measurements, origin, place.name, reused=False)


def address(study: str | Any, parameters: StudyParameters) -> str:
    """Return the address (SHA-256, hexadecimal) under which the store keeps a result.

    Parameters
    ----------
    study : str or module
        As for `compute`.
    parameters : StudyParameters
        An instance of the study's ``Parameters``.
    """
    module = studies.get(study) if isinstance(study, str) else study
    return provenance.digest(_key(module, parameters.resolved()))


def entries() -> Iterator[Entry]:
    """Yield the store's whole entries, study by study; what is damaged or still being written is passed over."""
    for place in sorted(paths.store().glob("*/*")):
        if re.fullmatch("[0-9a-f]{64}", place.name):
            try:
                origin, measurements = _read_records(place)
            except _DAMAGE:
                continue
            yield Entry(place.parent.name, place.name, origin, measurements)


_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException)
"""What reading an entry that is absent, cut short or altered can raise."""


def _key(module: Any, resolved: StudyParameters) -> dict[str, Any]:
    from fairfront import datasets

    return {
        "study": _name(module),
        "parameters": to_json(resolved),
        "data": {name: datasets.info(name).sha256 for name in module.datasets(resolved)},
        "version": fairfront.__version__,
        "source": study_source(module),
    }


def study_source(module: Any) -> str:
    """Return the digest of the code that a study runs (see `provenance.source_digest`)."""
    return provenance.source_digest([Path(getattr(module, "__file__", None) or inspect.getfile(module.run))])


def _name(module: Any) -> str:
    return str(module.__name__).rpartition(".")[2]


def _table_path(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def _check_tables(study: str, tables: Mapping[str, pd.DataFrame]) -> None:
    if not tables:
        raise ArgumentError(f"study {study}", "no table", "run returns at least one")
    for name in tables:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise ArgumentError(f"study {study}", f"a table named {name!r}", "letters, digits, - and _ only")


def _read(place: Path) -> tuple[dict[str, pd.DataFrame], tuple[Measurement, ...], dict[str, Any]] | None:
    """Return an entry's tables, measurements and provenance, or None where it is absent or damaged."""
    if not place.is_dir():
        return None
    try:
        origin, measurements = _read_records(place)
        for name, expected in origin["files"].items():
            if provenance.file_digest(place / name) != expected:
                raise ValueError(f"{name} has changed")
        tables = {table: pd.read_parquet(_table_path(place, table)) for table in origin["tables"]}
    except _DAMAGE as error:
        _log.info("damaged entry of the store, computed again: %s (%s)", place, error)
        return None
    return tables, measurements, origin


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")


def _read_records(place: Path) -> tuple[dict[str, Any], tuple[Measurement, ...]]:
    origin = json.loads((place / _PROVENANCE).read_text(encoding="utf-8"))
    said = {name: value for name, value in origin.items() if name != "digest"}
    if origin["study"] != place.parent.name or origin["digest"] != provenance.digest(said):
        raise ValueError("the provenance has changed")
    if origin["files"][_MEASUREMENTS] != provenance.file_digest(place / _MEASUREMENTS):
        raise ValueError("the measurements have changed")
    measurements = json.loads((place / _MEASUREMENTS).read_text(encoding="utf-8"))
    return origin, tuple(Measurement(**measurement) for measurement in measurements)


def _publish(folder: Path, place: Path, outer: Path, *, replace: bool) -> None:
    """Move a finished entry to its place.

    Two processes may have computed the same: the second one finds a whole entry and leaves it. A damaged entry, or one
    that is to be refreshed, is first moved out of the way.
    """
    for attempt in range(100):
        try:
            os.replace(folder, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return
        if not replace and _read(place) is not None:
            return
        try:
            os.replace(place, outer / f"old-{attempt}")
        except FileNotFoundError:
            continue  # another process moved it first
    raise OutputError(f"{_STORE}: {place} is written to by too many at once (try again)")
