"""Showing progress: bars on a terminal, a line a step elsewhere, nothing inside a notebook.

Studies get a callable ``progress(iterable, description, total=None)`` that yields the items of the iterable.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["ProgressFunction", "lines", "on_terminal", "quiet", "shown"]

ProgressFunction: TypeAlias = Callable[..., Iterator[Any]]


def on_terminal() -> bool:
    """Return whether somebody watches standard error."""
    return sys.stderr.isatty()


def quiet(iterable: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
    """Yield the items and show nothing."""
    yield from iterable


def lines(iterable: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
    """Yield the items; print one line to standard error when they are done."""
    started, count = time.perf_counter(), 0
    for item in iterable:
        yield item
        count += 1
    print(f"{description}: {count} in {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)


@contextlib.contextmanager
def shown(progress: bool | ProgressFunction) -> Generator[ProgressFunction]:
    """Give the progress function that is asked for.

    Parameters
    ----------
    progress : bool or callable
        True shows bars where standard error is a terminal, and nothing elsewhere; a callable is used as it is.
    """
    if callable(progress):
        yield progress
    elif not (progress and on_terminal()):
        yield quiet
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

            def track(iterable: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
                yield from bars.track(iterable, description=description, total=total)

            yield track
