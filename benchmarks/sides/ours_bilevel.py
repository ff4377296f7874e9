"""Our side of benchmarks.bilevel, run by the project's Python: the same task as the peer's side, timed the same way.

Usage: python -m benchmarks.sides.ours_bilevel FOLDER METRIC L2 [parquet]. Reads X.npy, y.npy and groups.npy, writes
one line of JSON. Timed are the making of the problem and the run, with neither imports nor the reading of files. With
"parquet" the rows are those of rows.parquet, read in blocks at every pass, which is in the time.
"""

import importlib.metadata
import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import peak_mb
from fairfront import metrics
from fairfront.bilevel import slsqp
from fairfront.risks import GroupRisks


def main(folder: str, metric: str, l2: str, source: str = "memory") -> None:
    place = Path(folder)
    arrays = [np.load(place / f"{name}.npy") for name in ("X", "y", "groups")] if source == "memory" else []
    before = peak_mb()
    start, processor = time.perf_counter(), time.process_time()
    if source == "memory":
        risks = GroupRisks(*arrays, loss="logistic", l2=float(l2))
    else:
        risks = GroupRisks.from_parquet(place / "rows.parquet", loss="logistic", l2=float(l2))
    unfairness = metrics.get(metric, variant="paper").bind(risks.y, risks.groups)
    found = slsqp(risks, unfairness, ftol=1e-10, max_iterations=500)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - processor
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mb": peak_mb(),
        "loaded_mb": before,
        "weights": found.weights.tolist(),
        "coefficients": found.model.w.tolist(),
        "value": found.value,
        "evaluations": len(found.history),
        "lower_solves": found.lower_solves,
        "status": found.status,
        "versions": {name: importlib.metadata.version(name) for name in ("fairfront", "numpy", "scipy")},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
