"""The peer's side of benchmarks.bilevel, run by the peer's own Python: badr 0.1.2 through its public interface.

Usage: python -m benchmarks.sides.badr_bilevel FOLDER METRIC L2. Reads X.npy, y.npy and groups.npy, writes one line
of JSON. Timed are the making of the problem and the run, with neither imports nor the reading of files. The compile
time is what JAX itself reports of tracing, lowering and compiling while the run is on.
"""

import contextlib
import json
import sys
import time
from pathlib import Path

import badr
import jax
import numpy as np
from badr import algorithms, datasets, metrics, models

from benchmarks.harness import peak_mb


def main(folder, metric, l2):
    X, y, groups = (np.load(Path(folder) / f"{name}.npy") for name in ("X", "y", "groups"))
    compiled = []

    def listen(event, seconds, **_):
        if event.startswith("/jax/core/compile/"):
            compiled.append((event, seconds))

    jax.monitoring.register_event_duration_secs_listener(listen)
    # The peer prints its progress; standard output is for the result.
    with contextlib.redirect_stdout(sys.stderr):
        start, processor = time.perf_counter(), time.process_time()
        rows = [np.flatnonzero(groups == a) for a in range(int(groups.max()) + 1)]
        data = datasets.Dataset("synthetic", X, X[:1], y, y[:1], rows, [np.array([0])] * len(rows))
        model = models.LogisticRegression(l2_reg=float(l2), fit_intercept=False)
        unfairness = getattr(metrics, metric)()
        problem = badr.Badr(data, model, unfairness, solver_cls=algorithms.SLSQP, solver_kwargs={"tol": 1e-10})
        problem.run(max_iter=500, verbose=0)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - processor
    stages = {}
    for event, length in compiled:
        name = event.removeprefix("/jax/core/compile/")
        stages[name] = stages.get(name, 0.0) + length
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "compile_seconds": sum(stages.values()),
        "compile_stages": stages,
        "compilations": sum(event.endswith("backend_compile_duration") for event, _ in compiled),
        "peak_mb": peak_mb(),
        "weights": np.asarray(problem.group_weights, dtype=float).ravel().tolist(),
        "coefficients": np.asarray(problem.coef_, dtype=float).ravel().tolist(),
        "value": float(problem.fairness),
        "versions": {"badr": badr.__version__, "jax": jax.__version__, "numpy": np.__version__},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
