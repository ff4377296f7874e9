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

from fairfront import paths
from fairfront.datasets import fetching
from fairfront.datasets.registry import FileInfo, RawFile
from fairfront.datasets.sources import RAW
from fairfront.errors import DataError

__all__ = ["find", "folders", "read", "read_parquet", "read_verified", "sha256", "verified"]

_RESTORE = "restore it with `git checkout -- data`, or reinstall the package"


def folders() -> tuple[Path, ...]:
    """Return the folders in which raw files are looked for, in that order."""
    external = paths.external_data()
    return (*([external] if external else []), paths.cache() / "data")


def find(raw: RawFile) -> tuple[Path, RawFile] | None:
    """Return where a raw file lies and in which of its forms, or None. It is not read."""
    for folder in folders():
        for form in raw.forms:
            if (folder / form.path).is_file():
                return folder / form.path, form
    return None


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
    found = [find(raw) for raw in file.raw]
    if file.path is not None and not all(found):
        return read_parquet(file.path, file.sha256)
    places = [place or fetching.fetch(raw, folders()[-1]) for place, raw in zip(found, file.raw, strict=True)]
    return _read_raw(file, tuple((path, form.sha256, _stamp(path)) for path, form in places)).copy()


def verified(path: Path, digest: str) -> Path:
    """Return a raw file's path once its SHA-256 is seen to be the registry's.

    Parameters
    ----------
    path : Path
        The file.
    digest : str
        The expected SHA-256; empty where there is none to expect.

    Raises
    ------
    DataError
        It cannot be read, or has another SHA-256.
    """
    if digest and (found := sha256(path)) != digest:
        what = "it is an HTML page" if fetching.is_html(path) else f"its SHA-256 is {found}"
        raise DataError(f"{path}: corrupted, {what}, the registry expects SHA-256 {digest}; remove it, or get it anew")
    return path


def sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal, computed once a process while the file stays unchanged.

    Raises
    ------
    DataError
        The file cannot be read.
    """
    return _sha256(path, _stamp(path))


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
    return _parse(path, sha256, _stamp(path)).copy()


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None  # whoever reads it says what is wrong
    return stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=8)
def _parse(path: Path, sha256: str, stamp: tuple[int, int] | None) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(io.BytesIO(read_verified(path, sha256, _RESTORE))).to_pandas()
    return frame


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, stamp: tuple[int, int] | None) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


@functools.lru_cache(maxsize=8)
def _read_raw(file: FileInfo, places: tuple[tuple[Path, str, tuple[int, int] | None], ...]) -> pd.DataFrame:
    raw = [verified(path, digest) for path, digest, _ in places]
    where = ", ".join(map(str, raw))
    try:
        frame = RAW[file.name](raw)
    except (ValueError, KeyError, OSError, NotImplementedError, EOFError) as error:
        raise DataError(f"{where}: cannot be read as {file.name}: {error}") from error
    if file.rows and frame.shape != (file.rows, file.columns) and not file.embedded:
        expected = f"{file.rows:,} rows of {file.columns} columns"
        raise DataError(f"{where}: has {len(frame):,} rows of {frame.shape[1]} columns, {file.name} has {expected}")
    return frame
