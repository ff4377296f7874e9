"""A function in a process of its own: its result, its failure, and memory that is its own."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fairfront.runs.fresh import FreshProcessError, in_fresh_process, peak_mb


def filled(megabytes: int) -> list[float]:
    """Return the peak of memory before and after so much of it was written."""
    before = peak_mb()
    array = np.ones(megabytes * 125_000)
    return [before, peak_mb(), float(array[-1])]


def failing(word: str) -> None:
    """Fail."""
    raise ValueError(f"no {word}")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the parent's memory may be counted")
def test_memory_is_that_of_the_process_alone() -> None:
    ballast = np.ones(40_000_000)  # 320 MB of this process
    before, after, one = in_fresh_process(filled, 100)
    assert one == 1.0 and ballast[-1] == 1.0
    assert after - before == pytest.approx(100, abs=15)
    assert before < 300 < peak_mb()


def test_a_failure_is_told() -> None:
    with pytest.raises(FreshProcessError, match=r"failing.*ValueError: no luck"):
        in_fresh_process(failing, "luck")
