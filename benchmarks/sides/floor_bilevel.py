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
    start = time.process_time()
    found = slsqp(risks, unfairness)
    solve = time.process_time() - start

    # The solver's own path again, phi and its gradient at every point of it, at the tolerance the solver uses.
    path = [record.weights for record in found.history]
    first = rest = float("inf")
    for _ in range(3):
        objective = Objective(risks, unfairness, tolerance=1e-8)
        start = time.process_time()
        objective.evaluate(path[0])
        after = time.process_time()
        for weights in path[1:]:
            objective.evaluate(weights)
        first, rest = min(first, after - start), min(rest, time.process_time() - after)
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
