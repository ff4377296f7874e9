"""Keeping the state of an interrupted training run in a file."""

from __future__ import annotations

import os
from pathlib import Path

from fairfront.errors import DataError
from fairfront.runs.files import write_together

__all__ = ["CheckpointFile"]


class CheckpointFile:
    """A file that holds the state of a training run, for `fairfront.constrained.training.train`.

    A state replaces the one before at once: an interruption while it is written leaves the one before.

    Parameters
    ----------
    path : str or path
        The file; its folder is made when the first state is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()

    def read(self) -> bytes | None:
        """Return what was written last; None if the file is absent.

        Raises
        ------
        DataError
            When it cannot be read.
        """
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"checkpoint: cannot read {self.path}: {error.strerror}") from error

    def write(self, content: bytes) -> None:
        """Write the content to the file in place of what was there.

        Raises
        ------
        OutputError
            When it cannot be written; then the file has not changed.
        """

        def write(path: Path) -> None:
            path.write_bytes(content)

        write_together({self.path: write}, "checkpoint")
