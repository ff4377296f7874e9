"""The store of results: computed once, found again by what they were computed from.

An entry is a folder ``STUDY/ADDRESS`` with one Parquet file a table, ``measurements.json`` and ``provenance.json``. The
address is the SHA-256 of the study, its parameters with the profile's sizes filled in, the digests of its data, the
package's version and the digest of the code that computes it. An entry appears at once or not at all.

A study whose work falls into parts names them (``units(parameters)``, parameters of the same study). Each part is an
entry of its own, at the address of its parameters, so that a computation that was interrupted goes on where it stopped.
The whole is joined from them. A part's entry says that it is one, and nothing is measured of it.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa

import fairfront
from fairfront import paths, studies
from fairfront.errors import ArgumentError, OutputError
from fairfront.runs import provenance
from fairfront.runs.files import require_writable, temporary_folder, writing
from fairfront.runs.ledger import Measurement, checked
from fairfront.runs.progress import ProgressFunction, quiet, shown
from fairfront.studies.parameters import StudyParameters, to_json

__all__ = ["Entry", "Result", "address", "compute", "compute_part", "entries", "find", "parts", "study_source"]

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
        Commit, versions, seed, wall time (seconds; all parts' together), date, digests, the parts' addresses.
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

    A study that has several parts (`parts`) is computed part by part; each of them is put into the store as soon as it
    is done, or taken from there. Then their tables are joined: by the study's ``join(parts, parameters)`` where it has
    one, else one below the other, table by table.

    Parameters
    ----------
    study : str or module
        Name of a study, or a module (or an object like one) that has what a study has.
    parameters : StudyParameters, optional
        An instance of the study's ``Parameters``; its defaults where None.
    progress : bool or callable, default True
        Whether to show bars on a terminal, or the function ``progress(iterable, description, total)`` to use.
    refresh : bool, default False
        Whether to compute even if the store has the result, or parts of it.

    Returns
    -------
    Result
        The tables are read back from the store in both cases, so that they are the same in both.

    Raises
    ------
    ArgumentError
        If the study is unknown, or the parameters are not its own, or its parts do not fit together.
    OutputError
        If the store cannot be written; found out before anything is computed.
    """
    module, resolved = _prepared(study, parameters)

    def make() -> _Made:
        with shown(progress) as track:
            units = parts(module, resolved)
            if units == (resolved,):
                return _run(module, resolved, track)
            description = f"{_name(module)}: parts"
            done = [compute_part(module, unit, refresh=refresh) for unit in track(units, description, total=len(units))]
        return _join(module, resolved, done)

    return _obtain(module, resolved, make, part=False, refresh=refresh)


def compute_part(study: str | Any, parameters: StudyParameters, *, refresh: bool = False) -> Result:
    """Return the tables of a part of a study: from the store where it is there, else computed and put there.

    Nothing is measured of a part. What the store holds as a result of its own will do.

    Parameters
    ----------
    study : str or module
        As for `compute`.
    parameters : StudyParameters
        One of `parts`.
    refresh : bool, default False
        Whether to compute even if the store has it.

    Raises
    ------
    ArgumentError
        If the parameters are those of several parts, and as for `compute`.
    OutputError
        As for `compute`.
    """
    module, resolved = _prepared(study, parameters)

    def make() -> _Made:
        if parts(module, resolved) != (resolved,):
            raise ArgumentError(f"study {_name(module)}", "a part has other parts", "units(part) returns (part,)")
        return _run(module, resolved, quiet)

    return _obtain(module, resolved, make, part=True, refresh=refresh)


def find(study: str | Any, parameters: StudyParameters) -> Result | None:
    """Return a study's result if the store has it; None where it has not, or has it only as a part.

    Parameters
    ----------
    study : str or module
        As for `compute`.
    parameters : StudyParameters
        An instance of the study's ``Parameters``.

    Raises
    ------
    ArgumentError
        As for `compute`.
    """
    module, resolved = _prepared(study, parameters)
    place = paths.store() / _name(module) / address(module, resolved)
    found = _read(place)
    if found is None or _is_part(found):
        return None
    return Result(_name(module), resolved, *found, place.name, reused=True)


def parts(study: str | Any, parameters: StudyParameters) -> tuple[StudyParameters, ...]:
    """Return the parts into which a study's work falls: the parameters themselves where it names no others.

    Parameters
    ----------
    study : str or module
        As for `compute`.
    parameters : StudyParameters
        An instance of the study's ``Parameters``.

    Returns
    -------
    tuple of StudyParameters
        Parameters of the same study, the profile's sizes filled in.

    Raises
    ------
    ArgumentError
        If the study names none, or something that is not its ``Parameters``.
    """
    module, resolved = _prepared(study, parameters)
    if not hasattr(module, "units"):
        return (resolved,)
    units = tuple(module.units(resolved))
    if not units or not all(isinstance(unit, module.Parameters) for unit in units):
        raise ArgumentError(f"study {_name(module)}", "its parts are not its Parameters", "units returns one or more")
    return tuple(unit.resolved() for unit in units)


@dataclass(frozen=True, eq=False)
class _Made:
    """Tables, the seconds that they took, and the addresses of the parts that they were joined from."""

    tables: Mapping[str, pd.DataFrame]
    seconds: float
    addresses: Sequence[str] = ()


def _run(module: Any, resolved: StudyParameters, track: ProgressFunction) -> _Made:
    started = time.perf_counter()
    return _Made(module.run(resolved, track), time.perf_counter() - started)


def _join(module: Any, resolved: StudyParameters, done: Sequence[Result]) -> _Made:
    tables = [part.tables for part in done]
    names = list(tables[0])
    for part in done:
        if set(part.tables) != set(names):
            problem = f"its parts have different tables: {', '.join(names)} and {', '.join(part.tables)}"
            raise ArgumentError(f"study {_name(module)}", problem, "run returns the same tables for every part")
    if hasattr(module, "join"):
        joined = module.join(tables, resolved)
    else:
        joined = {name: _below_one_another([part[name] for part in tables]) for name in names}
    seconds = sum(float(part.provenance["wall_seconds"]) for part in done)
    return _Made(joined, seconds, [part.address for part in done])


def _below_one_another(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all rows; a frame without any has no say in the columns and their types where another has rows."""
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def _prepared(study: str | Any, parameters: StudyParameters | None) -> tuple[Any, StudyParameters]:
    """Return a study's module and its parameters, the profile's sizes filled in."""
    module = studies.get(study) if isinstance(study, str) else study
    name = _name(module)
    parameters = module.Parameters() if parameters is None else parameters
    if not isinstance(parameters, module.Parameters):
        raise ArgumentError("parameters", f"{type(parameters).__qualname__} given", f"{name} takes its own Parameters")
    return module, parameters.resolved()


def _obtain(module: Any, resolved: StudyParameters, make: Callable[[], _Made], *, part: bool, refresh: bool) -> Result:
    """Return what the store has, else store what is made; a part in the store becomes a result where one is wanted."""
    name, key = _name(module), _key(module, resolved)
    place = paths.store() / name / provenance.digest(key)
    found = None if refresh else _read(place)
    if found is not None and (part or not _is_part(found)):
        return Result(name, resolved, *found, place.name, reused=True)

    require_writable(place.parent, _STORE)
    made = make() if found is None else _Made(found[0], float(found[2]["wall_seconds"]))
    started = time.perf_counter()
    _check_tables(name, made.tables)
    with temporary_folder(place) as outer:
        folder = outer / "entry"
        with writing(place, _STORE):
            folder.mkdir()
            for table, frame in made.tables.items():
                frame.to_parquet(_table_path(folder, table), index=False)
        tables = {table: pd.read_parquet(_table_path(folder, table)) for table in made.tables}
        measurements = () if part else checked(module.measure(tables, resolved))
        origin = {
            **key,
            "default": resolved == type(resolved)(profile=resolved.profile).resolved(),
            "seed": resolved.seed,
            **provenance.commit(),
            "versions": provenance.versions(),
            "wall_seconds": round(made.seconds + time.perf_counter() - started, 3),
            "date": provenance.now(),
            "tables": list(made.tables),
            "part": part,
            "parts": list(made.addresses),
        }
        with writing(place, _STORE):
            _write_json(folder / _MEASUREMENTS, [dataclasses.asdict(measurement) for measurement in measurements])
            origin["files"] = {path.name: provenance.file_digest(path) for path in sorted(folder.iterdir())}
            origin["digest"] = provenance.digest(origin)
            _write_json(folder / _PROVENANCE, origin)
            _publish(folder, place, outer, part=part, replace=refresh)
    return Result(name, resolved, tables, measurements, origin, place.name, reused=found is not None)


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
    """Yield the store's results, study by study; parts, and what is damaged or still being written, are passed over."""
    for place in sorted(paths.store().glob("*/*")):
        if re.fullmatch("[0-9a-f]{64}", place.name):
            try:
                origin, measurements = _read_records(place)
            except _DAMAGE:
                continue
            if not origin.get("part", False):
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


_Content: TypeAlias = tuple[dict[str, pd.DataFrame], tuple[Measurement, ...], dict[str, Any]]


def _is_part(content: _Content) -> bool:
    return bool(content[2].get("part", False))


def _read(place: Path) -> _Content | None:
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


def _publish(folder: Path, place: Path, outer: Path, *, part: bool, replace: bool) -> None:
    """Move a finished entry to its place.

    Two processes may have computed the same: the second one finds a whole entry and leaves it. A damaged entry, one
    that is to be refreshed, or a part where a result comes, is first moved out of the way.
    """
    for attempt in range(100):
        try:
            os.replace(folder, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return
        there = None if replace else _read(place)
        if there is not None and (part or not _is_part(there)):
            return
        try:
            os.replace(place, outer / f"old-{attempt}")
        except FileNotFoundError:
            continue  # another process moved it first
    raise OutputError(f"{_STORE}: {place} is written to by too many at once (try again)")
