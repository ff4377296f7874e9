"""Reading the embedded files: every byte is checked against the registry before it is parsed."""

from __future__ import annotations

import functools
import hashlib
import io
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from fairfront.errors import DataError

__all__ = ["read_parquet", "read_verified"]


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
    try:
        stamp = path.stat()
    except OSError:
        stamp = None  # read_verified says what is wrong
    key = (stamp.st_mtime_ns, stamp.st_size) if stamp else None
    return _parse(path, sha256, key).copy()


@functools.lru_cache(maxsize=8)
def _parse(path: Path, sha256: str, stamp: tuple[int, int] | None) -> pd.DataFrame:
    remedy = "restore it with `git checkout -- data`, or reinstall the package"
    frame: pd.DataFrame = pq.read_table(io.BytesIO(read_verified(path, sha256, remedy))).to_pandas()
    return frame
