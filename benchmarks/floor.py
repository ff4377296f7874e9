"""The floor of one evaluation of phi and its gradient: the passes over the rows that it cannot do without.

One evaluation solves the lower level and one adjoint system. With everything reused that can be, that takes one pass
for gradient and Hessian together, one for the gradient at the point reached, and one Hessian-vector product. The
kernels here do only that arithmetic, for one group and the logistic loss, in NumPy and BLAS over row blocks that stay
in the cache, in buffers made beforehand: no groups, no metric, no tests of convergence.

Times are the processor's, of one thread, so that waiting for a busy core is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

__all__ = ["BLOCKS", "Kernels", "kernel_times", "summary"]

# Rows a block; the fastest counts, which depends on the cache.
BLOCKS = (1024, 2048, 4096, 8192, 16384)


class Kernels:
    """The three passes over rows kept as columns.

    Parameters
    ----------
    Xt : (d, n) float64 array
        Features, C-contiguous.
    y : (n,) float64 array
        Labels 0 and 1.
    block : int
        Rows a block.
    """

    def __init__(self, Xt: np.ndarray, y: np.ndarray, block: int) -> None:
        (d, n) = Xt.shape
        # Each block contiguous, as a pass over memory likes it best.
        starts = range(0, n, block)
        self.blocks = [(np.ascontiguousarray(Xt[:, i : i + block]), y[i : i + block]) for i in starts]
        self.curvatures = [np.empty(len(labels)) for _, labels in self.blocks]
        self.p, self.slope, self.scaled = np.empty(block), np.empty(block), np.empty((d, block))
        self.d = d

    def _slopes(self, w: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, slope = self.p[: len(y)], self.slope[: len(y)]
        np.dot(w, X, out=p)
        np.negative(p, out=p)
        np.exp(p, out=p)
        p += 1.0
        np.reciprocal(p, out=p)
        return p, np.subtract(p, y, out=slope)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return X'(p - y), p the probabilities at w; shape (d,)."""
        total = np.zeros(self.d)
        for X, y in self.blocks:
            total += X @ self._slopes(w, X, y)[1]
        return total

    def gradient_and_hessian(self, w: np.ndarray, *, symmetric: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return X'(p - y) and X' diag(p(1 - p)) X, keeping the curvatures p(1 - p).

        ``symmetric`` uses the symmetric rank-k product, half the arithmetic; which is faster depends on the library.
        """
        gradient, hessian = np.zeros(self.d), np.zeros((self.d, self.d))
        for (X, y), curvature in zip(self.blocks, self.curvatures, strict=True):
            p, slope = self._slopes(w, X, y)
            gradient += X @ slope
            np.multiply(p, p, out=curvature)
            np.subtract(p, curvature, out=curvature)
            scaled = self.scaled[:, : len(y)]
            if symmetric:
                np.multiply(X, np.sqrt(curvature, out=p), out=scaled)
                hessian += dsyrk(1.0, scaled.T, trans=1, lower=1)
            else:
                hessian += np.multiply(X, curvature, out=scaled) @ X.T
        if symmetric:
            hessian = np.tril(hessian) + np.tril(hessian, -1).T
        return gradient, hessian

    def hessian_product(self, x: np.ndarray) -> np.ndarray:
        """Return X' diag(curvature) X x with the curvatures of the last Hessian, shape (d,)."""
        total = np.zeros(self.d)
        for (X, _), curvature in zip(self.blocks, self.curvatures, strict=True):
            product = np.dot(x, X, out=self.p[: X.shape[1]])
            product *= curvature
            total += X @ product
        return total


def kernel_times(X: np.ndarray, y: np.ndarray, w: np.ndarray, *, repeats: int = 40) -> dict[str, float]:
    """Return the least time of each pass over (n, d) rows, over block sizes and repetitions.

    Parameters
    ----------
    X, y : (n, d) and (n,) arrays
        Rows and labels.
    w : (d,) array
        Where to evaluate.
    repeats : int, default 40
        So often each pass is made at each block size.

    Returns
    -------
    dict
        ``gradient_hessian_s``, ``gradient_s``, ``hessian_product_s`` and their sum ``floor_s``.
    """
    Xt = np.ascontiguousarray(X.T)
    least: dict[str, float] = {}
    for block in BLOCKS:
        kernels = Kernels(Xt, y, block)
        passes: dict[str, list[Callable[[], object]]] = {
            "gradient_hessian_s": [
                lambda k=kernels: k.gradient_and_hessian(w),
                lambda k=kernels: k.gradient_and_hessian(w, symmetric=False),
            ],
            "gradient_s": [lambda k=kernels: k.gradient(w)],
            "hessian_product_s": [lambda k=kernels: k.hessian_product(w)],
        }
        for name, ways in passes.items():
            for way in ways:
                least[name] = min(least.get(name, np.inf), _least(way, repeats))
    return least | {"floor_s": sum(least.values())}


def _least(run: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def summary(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the least of every time of several processes, and evaluation over floor.

    Parameters
    ----------
    results : sequence of dict
        Times, whose keys end in ``_s``, among them those of `kernel_times`, ``evaluation_s`` and
        ``solve_evaluation_s``, and further numbers.

    Returns
    -------
    dict
        The least times; ``over_floor`` = evaluation_s / floor_s, ``solve_over_floor`` = solve_evaluation_s / floor_s;
        the further numbers of the first process.
    """
    least = {key: min(result[key] for result in results) for key in results[0] if key.endswith("_s")}
    least["floor_s"] = least["gradient_hessian_s"] + least["gradient_s"] + least["hessian_product_s"]
    return {
        **{key: value for key, value in results[0].items() if not key.endswith("_s")},
        **least,
        "over_floor": least["evaluation_s"] / least["floor_s"],
        "solve_over_floor": least["solve_evaluation_s"] / least["floor_s"],
    }
