"""Where raw files lie: the folder named by FAIRFRONT_DATA, then the user's cache."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from fairfront import paths
from fairfront.errors import DataError

if TYPE_CHECKING:
    from fairfront.datasets.registry import RawFile

__all__ = ["downloads", "find", "folders", "sha256", "stamp"]


def downloads() -> Path:
    """Return the folder that downloads go to, in the user's cache."""
    return paths.cache() / "data"


def folders() -> tuple[Path, ...]:
    """Return the folders in which raw files are looked for, in that order."""
    external = paths.external_data()
    return (external, downloads()) if external else (downloads(),)


def find(raw: RawFile) -> tuple[Path, RawFile] | None:
    """Return where a raw file lies and in which of its forms, or None. It is not read."""
    for folder in folders():
        for form in raw.forms:
            if (folder / form.path).is_file():
                return folder / form.path, form
    return None


def stamp(path: Path) -> tuple[int, int] | None:
    """Return what changes with a file (time of change, size), or None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal, computed once a process while the file stays unchanged.

    Raises
    ------
    DataError
        The file cannot be read.
    """
    return _sha256(path, stamp(path))


@functools.lru_cache(maxsize=1024)
def _sha256(path: Path, stamp: tuple[int, int] | None) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
