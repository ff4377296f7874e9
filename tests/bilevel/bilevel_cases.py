"""Small problems for the tests of the engine."""

from __future__ import annotations

import numpy as np

from fairfront import metrics
from fairfront.metrics import BoundMetric
from fairfront.risks import GroupRisks


def rows(n_groups: int, *, task: str = "classification", n: int = 150, d: int = 5, seed: int = 0):
    """Return X (n S, d) with a ones column, y and unsorted groups."""
    generator = np.random.default_rng([seed, n_groups, task == "regression"])
    groups = generator.permutation(np.repeat(np.arange(n_groups), n))
    X = generator.normal(size=(n * n_groups, d)) + 0.3 * generator.normal(size=(n_groups, d))[groups]
    X[:, 0] = 1.0
    z = np.einsum("ij,ij->i", X, (generator.normal(size=d) + 0.7 * generator.normal(size=(n_groups, d)))[groups])
    if task == "regression":
        return X, z + generator.normal(size=len(z)), groups
    return X, (generator.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float), groups


def problem(
    loss: str, n_groups: int, metric: str, *, variant: str = "cited", seed: int = 0, n: int = 150, **options
) -> tuple[GroupRisks, BoundMetric]:
    """Return risks and a metric bound to their rows."""
    task = "regression" if loss == "squared" else "classification"
    X, y, groups = rows(n_groups, task=task, seed=seed, n=n)
    risks = GroupRisks(X, y, groups, loss=loss, **options)
    return risks, metrics.get(metric, variant=variant, task=task).bind(risks.y, risks.groups, n_groups)


def metrics_for(loss: str) -> list[tuple[str, str]]:
    """Return every (metric, variant) that is defined for a loss's task."""
    task = "regression" if loss == "squared" else "classification"
    found = []
    for name in metrics.names():
        for variant in ("cited", "paper"):
            try:
                metrics.get(name, variant=variant, task=task)
            except ValueError:
                continue
            found.append((name, variant))
    return found
