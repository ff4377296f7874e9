"""One evaluation of ours beside the passes over the rows that it cannot do without.

Usage: python -m benchmarks.sides.floor_bilevel FOLDER METRIC L2. Writes one line of JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.floor import kernel_times
from fairfront import metrics
from fairfront.bilevel import Objective, slsqp
from fairfront.risks import GroupRisks


def main(folder: str, metric: str, l2: str) -> None:
    X, y, groups = (np.load(Path(folder) / f"{name}.npy") for name in ("X", "y", "groups"))
    risks = GroupRisks(X, y, groups, loss="logistic", l2=float(l2))
    unfairness = metrics.get(metric, variant="paper").bind(risks.y, risks.groups)
    start = time.perf_counter()
    found = slsqp(risks, unfairness)
    solve = time.perf_counter() - start

    # The solver's own path again, phi and its gradient at every point of it, at the tolerance the solver uses.
    path = [record.weights for record in found.history]
    objective = Objective(risks, unfairness, tolerance=1e-8)
    start = time.perf_counter()
    objective.evaluate(path[0])
    first = time.perf_counter() - start
    start = time.perf_counter()
    for weights in path[1:]:
        objective.evaluate(weights)
    rest = time.perf_counter() - start
    result = {
        **kernel_times(X, y, found.model.w),
        "first_evaluation_s": first,
        "evaluation_s": rest / max(len(path) - 1, 1),
        "solve_evaluation_s": solve / len(path),
        "evaluations": len(path),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
