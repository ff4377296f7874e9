"""Finding and reading files: every byte is checked against the registry before it is parsed.

A raw file is looked for in the folder named by FAIRFRONT_DATA, then in the user's cache; then comes the embedded copy,
where the terms allow one, and last the download.
"""

from __future__ import annotations

import functools
import hashlib
import io
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from fairfront.datasets import fetching
from fairfront.datasets.places import downloads, find, sha256, stamp
from fairfront.datasets.registry import FileInfo, RawFile
from fairfront.datasets.sources import RAW
from fairfront.errors import DataError

__all__ = ["digests", "locate", "read", "read_parquet", "read_verified", "verified"]

_RESTORE = "restore it with `git checkout -- data`, or reinstall the package"


def read(file: FileInfo) -> pd.DataFrame:
    """Return a table of the registry as a frame of one's own.

    Parameters
    ----------
    file : FileInfo
        The table.

    Raises
    ------
    DataError
        A file is corrupt, or it is absent and cannot be downloaded; the message says which file, where it is from and
        where to put it by hand.
    """
    if file.path is not None and not all(map(find, file.raw)):
        return read_parquet(file.path, file.sha256)
    return _read_raw(file, tuple((path, digests, stamp(path)) for path, digests in locate(file))).copy()


def locate(file: FileInfo) -> list[tuple[Path, frozenset[str]]]:
    """Return where a table's raw files lie, each with the SHA-256 it may have; what is absent is downloaded.

    Raises
    ------
    DataError
        A file is absent and cannot be downloaded.
    """
    places = [find(raw) or fetching.fetch(raw, downloads()) for raw in file.raw]
    return [(path, digests(raw, form)) for (path, form), raw in zip(places, file.raw, strict=True)]


def digests(raw: RawFile, found: RawFile) -> frozenset[str]:
    """Return the SHA-256 that a file found in a form may have; none where a form of that path is checked otherwise."""
    known = {form.sha256 for form in raw.forms if form.path == found.path}
    return frozenset() if "" in known else frozenset(known)


def verified(path: Path, digests: frozenset[str]) -> Path:
    """Return a raw file's path once its SHA-256 is seen to be the registry's.

    Parameters
    ----------
    path : Path
        The file.
    digests : frozenset of str
        The SHA-256 that it may have; empty where it is checked by what it has to hold.

    Raises
    ------
    DataError
        It cannot be read, or has another SHA-256.
    """
    if digests and (found := sha256(path)) not in digests:
        what = "it is an HTML page" if fetching.is_html(path) else f"its SHA-256 is {found}"
        expected = " or ".join(sorted(digests))
        raise DataError(f"{path}: corrupted, {what}, the registry expects {expected}; remove it, or get it anew")
    return path


def read_verified(path: Path, sha256: str, remedy: str) -> bytes:
    """Return a file's content once its SHA-256 is seen to be the registry's.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str
        The expected digest in hexadecimal.
    remedy : str
        What to do when the file is absent or differs; ends the error's message.

    Returns
    -------
    bytes
        The content, the very bytes that were hashed.

    Raises
    ------
    DataError
        The file is absent, cannot be read, or has another digest.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; {remedy}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(f"{path}: corrupted, its SHA-256 is {found}, the registry expects {sha256}; {remedy}")
    return content


def read_parquet(path: Path, sha256: str) -> pd.DataFrame:
    """Return an embedded Parquet file as a frame of one's own, read once a process while it stays unchanged.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str
        The expected digest in hexadecimal.

    Raises
    ------
    DataError
        The file is absent or corrupted.
    """
    return _parse(path, sha256, stamp(path)).copy()


@functools.lru_cache(maxsize=8)
def _parse(path: Path, sha256: str, stamp: tuple[int, int] | None) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(io.BytesIO(read_verified(path, sha256, _RESTORE))).to_pandas()
    return frame


@functools.lru_cache(maxsize=8)
def _read_raw(file: FileInfo, located: tuple[tuple[Path, frozenset[str], tuple[int, int] | None], ...]) -> pd.DataFrame:
    raw = [verified(path, digests) for path, digests, _ in located]
    where = ", ".join(map(str, raw))
    try:
        frame = RAW[file.name](raw)
    except (ValueError, KeyError, OSError, NotImplementedError, EOFError) as error:
        raise DataError(f"{where}: cannot be read as {file.name}: {error}") from error
    if file.rows and frame.shape != (file.rows, file.columns) and not file.embedded:
        expected = f"{file.rows:,} rows of {file.columns} columns"
        raise DataError(f"{where}: has {len(frame):,} rows of {frame.shape[1]} columns, {file.name} has {expected}")
    return frame
