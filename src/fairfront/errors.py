"""The errors a user can cause, each naming the argument at fault and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["ArgumentError", "DataError", "FairfrontError", "OutputError", "unknown_name"]


class FairfrontError(Exception):
    """Base of every error that a user's input, data or folder can cause.

    The command line prints the message without a traceback and ends with a non-zero status.
    """


class ArgumentError(FairfrontError, ValueError):
    """An argument has a wrong name, type or value.

    Parameters
    ----------
    argument : str
        The argument at fault, as the caller spells it.
    problem : str
        What is wrong with it.
    remedy : str, default ""
        What would be right.
    """

    def __init__(self, argument: str, problem: str, remedy: str = "") -> None:
        self.argument, self.problem, self.remedy = argument, problem, remedy
        super().__init__(f"{argument}: {problem}" + (f" ({remedy})" if remedy else ""))

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, str, str]]:
        """Return what pickle makes it of again, so that it comes out of another process as it is."""
        return type(self), (self.argument, self.problem, self.remedy)


class DataError(FairfrontError):
    """A data file is absent, corrupt, or holds something that it should not."""


class OutputError(FairfrontError, OSError):
    """An output file or folder cannot be written."""


def unknown_name(argument: str, name: object, known: Iterable[str]) -> ArgumentError:
    """Return the error for a name that is not among the known ones, with the nearest of them.

    Parameters
    ----------
    argument : str
        The argument at fault.
    name : object
        What was given.
    known : iterable of str
        Every name that would have been right.

    Returns
    -------
    ArgumentError
        To be raised by the caller.
    """
    known = sorted(known)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return ArgumentError(argument, f"unknown: {name!r}", f"{hint}known: {', '.join(known) or 'none'}")
