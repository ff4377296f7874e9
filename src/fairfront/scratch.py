"""Arrays used again: for arrays of megabytes, fresh pages from the system cost more than a pass over them."""

from __future__ import annotations

import sys
from threading import Lock

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scratch"]


def _references(arrays: list[NDArray[np.float64]], i: int) -> int:
    return sys.getrefcount(arrays[i])


# What is counted of an array that nobody uses.
_IDLE = _references([np.empty(0)], 0)


class Scratch:
    """Vectors of one length, handed out without a look at what they hold, and again once nobody refers to them."""

    def __init__(self) -> None:
        self._arrays: list[NDArray[np.float64]] = []
        self._lock = Lock()

    def take(self, n: int) -> NDArray[np.float64]:
        """Return an array of shape (n,) that nobody else has; every view of it keeps it from being handed out."""
        with self._lock:
            self._arrays = [array for array in self._arrays if array.size == n]
            for i in range(len(self._arrays)):
                if _references(self._arrays, i) == _IDLE:
                    return self._arrays[i][:]
            self._arrays.append(np.empty(n))
            return self._arrays[-1][:]

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()  # a copy begins empty
