"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fairfront.errors import OutputError

__all__ = ["require_writable", "temporary_folder", "write_together", "writing"]


def require_writable(folder: Path, argument: str) -> Path:
    """Make a folder where it is missing, prove that files can be written into it, and return it.

    Parameters
    ----------
    folder : Path
        The folder.
    argument : str
        The argument that named it, for the message.

    Raises
    ------
    OutputError
        If it cannot be made or written to.
    """
    with writing(folder, argument):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder


@contextlib.contextmanager
def writing(target: Path, argument: str) -> Iterator[None]:
    """Turn what the system refuses inside the block into an error that names the argument and the target."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problem = f"cannot write to {target}: {reason} (name a place that can be written)"
        raise OutputError(f"{argument}: {problem}") from error


@contextlib.contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """Give a hidden folder beside a path, on the same file system, and remove what is left of it at the end."""
    prefix = f".{beside.name[:16]}-"
    with tempfile.TemporaryDirectory(dir=beside.parent, prefix=prefix, ignore_cleanup_errors=True) as name:
        yield Path(name)


def write_together(writers: Mapping[Path, Callable[[Path], None]], argument: str) -> None:
    """Write several files of one folder: all of them, or none.

    Parameters
    ----------
    writers : mapping of Path to callable
        For each file the function that writes it to the path that it is given.
    argument : str
        The argument that named the files, for the message.

    Raises
    ------
    OutputError
        If one of them cannot be written; then no file has changed.
    """
    first = next(iter(writers))
    require_writable(first.parent, argument)
    with writing(first, argument):
        for target in writers:
            if target.is_dir():
                raise OutputError(f"{argument}: cannot write to {target}: it is a folder (name a file)")
        with temporary_folder(first) as folder:
            for target, write in writers.items():
                write(folder / target.name)
            for target in writers:
                os.replace(folder / target.name, target)
