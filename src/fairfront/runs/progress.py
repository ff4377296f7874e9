"""Showing progress: bars on a terminal, a line a step elsewhere, nothing inside a notebook.

Studies get a callable ``progress(iterable, description, total=None)`` that yields the items of the iterable.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Count", "ProgressFunction", "counted", "lines", "on_terminal", "quiet", "shown"]

ProgressFunction: TypeAlias = Callable[..., Iterator[Any]]
Count: TypeAlias = Callable[[str, str, float], None]


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
        with _bars() as bars:

            def track(iterable: Iterable[Any], description: str, total: int | None = None) -> Iterator[Any]:
                yield from bars.track(iterable, description=description, total=total)

            yield track


@contextlib.contextmanager
def counted(description: str, total: int, progress: bool = True) -> Generator[Count]:
    """Give a function ``count(outcome, what, seconds)`` that shows how many of a number of things came to what.

    Parameters
    ----------
    description : str
        What is counted.
    total : int
        How many there are.
    progress : bool, default True
        Whether to show anything: a bar with the count of each outcome on a terminal, a line a thing elsewhere.
    """
    outcomes: Counter[str] = Counter()

    def words() -> str:
        return ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))

    if progress and on_terminal():
        with _bars() as bars:
            task = bars.add_task(description, total=total)

            def show(outcome: str, what: str, seconds: float) -> None:
                outcomes[outcome] += 1
                bars.update(task, advance=1, description=f"{description}: {words()}")

            yield show
    else:

        def tell(outcome: str, what: str, seconds: float) -> None:
            outcomes[outcome] += 1
            if progress:
                place = f"[{outcomes.total()}/{total}]"
                print(f"{place} {outcome} in {seconds:.1f} s: {what}", file=sys.stderr, flush=True)

        yield tell


def _bars() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
