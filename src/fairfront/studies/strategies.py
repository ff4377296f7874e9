"""The strategies of the first paper's section 5.1.3 on one partition of a data set, for any metrics, train and test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairfront import metrics
from fairfront.bilevel import BilevelSolution, exhaustive_search, multi_start
from fairfront.datasets import GroupedData
from fairfront.metrics import BoundMetric, Metric
from fairfront.metrics.base import Variant
from fairfront.pareto import (
    Scalarization,
    ScalarizedModel,
    Strategy,
    balanced_weights,
    erm_weights,
    minimax,
    scalarized,
    uniform_weights,
)
from fairfront.risks import LOSSES, Array, GroupRisks

__all__ = ["NAMES", "RANDOM", "Comparison", "Rivals", "compare", "metric_for", "prediction_error", "random_search"]

NAMES: tuple[str, ...] = ("badr", "minimax", "one-group", "balanced", "uniform", "erm")
"""The strategies. The paper's five are the first five; ERM, which weighs groups by size, is its Equation 1."""
RANDOM = "badr-random"
"""The best of random weights (`random_search`), which is what the published records of Table 2 call badr."""

_OWN_LOSS = {"logistic": "logistic", "squared_hinge": "squared_hinge", "squared": "squared_error"}


def metric_for(name: str, *, loss: str = "logistic", variant: Variant = "paper") -> Metric:
    """Return a metric for models of a loss: of its task, and for the group variance with the model's own loss.

    Parameters
    ----------
    name : str
        One of :func:`fairfront.metrics.names`.
    loss : str, default "logistic"
        A key of :data:`fairfront.risks.LOSSES`.
    variant : {"paper", "cited"}, default "paper"
        The metric as published, or the definition that it cites.

    Raises
    ------
    ArgumentError
        If the metric is unknown or not defined for the loss's task.
    """
    options = {"loss": _OWN_LOSS[loss]} if name == "group_variance" else {}
    return metrics.get(name, variant=variant, task=LOSSES[loss].task, **options)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The strategies for one metric.

    Attributes
    ----------
    strategies : dict of str to Strategy
        By name, in the order of `NAMES`, then `RANDOM` where it was asked for.
    unfairness : dict of str to float
        The metric of each on the rows that it was fitted to. badr's is the least, to the last digit: the weights of
        all the others are among those that it may choose.
    bilevel : BilevelSolution
        What the search for badr's weights found, with all the local minima that it met.
    """

    strategies: dict[str, Strategy]
    unfairness: dict[str, float]
    bilevel: BilevelSolution

    @property
    def rival(self) -> str:
        """The fairest strategy other than badr."""
        return min((name for name in self.unfairness if name != "badr"), key=self.unfairness.__getitem__)


def random_search(
    risks: GroupRisks, metric: BoundMetric, generator: np.random.Generator, draws: int = 200
) -> ScalarizedModel:
    """Return the fairest of the models at weights drawn uniformly from the simplex.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    metric : BoundMetric
        Bound to their rows.
    generator : numpy.random.Generator
        With ``np.random.default_rng(seed of the split)`` the weights are those of the published records.
    draws : int, default 200
        How many, at least 1.
    """
    weights = generator.dirichlet(np.ones(risks.n_groups), draws)
    solver = Scalarization(risks)
    # In order, so that each solve starts near its solution.
    ordered = weights[np.lexsort(weights.T[::-1])]
    values = [metric.value(solver.solve(lam).point.scores) for lam in ordered]
    return scalarized(risks, RANDOM, ordered[int(np.argmin(values))]).model


class Rivals:
    """The strategies on one set of risks; what does not depend on the metric is fitted once for all metrics.

    Every strategy's model is solved from a cold start at its weights, so that strategies with the same weights have the
    same numbers.

    Parameters
    ----------
    risks : GroupRisks
        The group risks.
    """

    def __init__(self, risks: GroupRisks) -> None:
        self.risks = risks

    @cached_property
    def fixed(self) -> dict[str, Strategy]:
        """Minimax, balanced, uniform and ERM: the same for every metric."""
        sizes, n_groups = self.risks.group_sizes, self.risks.n_groups
        weights = {
            "minimax": minimax(self.risks).model.weights,
            "balanced": balanced_weights(sizes),
            "uniform": uniform_weights(n_groups),
            "erm": erm_weights(sizes),
        }
        return {name: scalarized(self.risks, name, lam) for name, lam in weights.items()}

    @cached_property
    def single(self) -> tuple[ScalarizedModel, ...]:
        """The S models that are each fitted to one group."""
        return tuple(scalarized(self.risks, "one-group", vertex).model for vertex in np.eye(self.risks.n_groups))

    def compare(
        self,
        metric: BoundMetric,
        *,
        resolution: int = 101,
        starts: tuple[Array, ...] = (),
        vertices: int | None = None,
        draws: int = 0,
        generator: np.random.Generator | None = None,
    ) -> Comparison:
        """Return every strategy for one metric.

        Parameters
        ----------
        metric : BoundMetric
            Bound to the rows of the risks.
        resolution : int, default 101
            Grid of the exhaustive search, for two groups.
        starts : tuple of arrays of shape (S,), default ()
            Weights from which badr's search starts besides those of the other strategies, for more than two groups.
        vertices : int, optional
            It starts from so many of the vertices, the fairest ones; default from all.
        draws : int, default 0
            Where it is not 0, one more strategy is the fairest of so many random weights (`random_search`).
        generator : numpy.random.Generator, optional
            Of these weights; default of seed 0.
        """
        one_group = sorted(self.single, key=lambda model: metric.value(model.point.scores))
        others = {"minimax": self.fixed["minimax"], "one-group": Strategy("one-group", one_group[0]), **self.fixed}
        if draws:
            drawn = random_search(self.risks, metric, generator or np.random.default_rng(0), draws)
            others[RANDOM] = Strategy(RANDOM, drawn)
        if self.risks.n_groups == 2:
            bilevel = exhaustive_search(self.risks, metric, resolution=resolution)
        else:
            corners = [model.weights for model in one_group[:vertices]]
            fixed = [strategy.model.weights for strategy in self.fixed.values()]
            bilevel = multi_start(self.risks, metric, starts=[*corners, *fixed, *starts])
        candidates = (bilevel.model, *(strategy.model for strategy in others.values()))
        # The search starts at the others' weights and so is never worse, but for rounding: then theirs are chosen.
        best = min(candidates, key=lambda model: metric.value(model.point.scores))
        strategies = {"badr": Strategy("badr", best), **others}
        unfairness = {name: metric.value(strategy.model.point.scores) for name, strategy in strategies.items()}
        return Comparison(strategies, unfairness, bilevel)


def prediction_error(z: Array, y: Array, task: str) -> float:
    """Return what the paper calls prediction performance: the share of wrong labels, or the root mean squared error."""
    if task == "classification":
        return float(np.mean((z > 0) != (y > 0.5)))
    return float(np.sqrt(np.mean((y - z) ** 2)))


def compare(
    data: GroupedData,
    names: tuple[str, ...],
    *,
    variant: Variant = "paper",
    loss: str = "logistic",
    l2: float = 1e-2,
    penalize_intercept: bool = False,
    resolution: int = 101,
    vertices: int | None = None,
    draws: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every strategy on a data set for some metrics: fitted to its training rows, judged on both parts.

    Parameters
    ----------
    data : GroupedData
        The data set with its partition and split.
    names : tuple of str
        Metrics.
    variant, loss : str
        See `metric_for`.
    l2, penalize_intercept : float, bool
        See :class:`fairfront.risks.GroupRisks`.
    resolution, vertices, draws : int
        See `Rivals.compare`.
    seed : int, default 0
        Of the random weights, anew for every metric.

    Returns
    -------
    DataFrame
        A row per metric and strategy: metric, strategy, train_metric, test_metric, train_error, test_error (share of
        wrong labels, or RMSE), worst_loss (largest group risk), weights (list of S numbers), minima (distinct local
        minima that badr's search met). The columns of the test are NaN where there are no test rows.

    Raises
    ------
    ArgumentError
        If a metric is not defined on the training or on the test rows: a group without positives, for instance.
    """
    X, y, groups = data.rows("test")
    chosen = {name: metric_for(name, loss=loss, variant=variant) for name in names}
    # Before anything is fitted: a metric may lack rows in a group.
    on_test: Mapping[str, BoundMetric | None] = {
        name: metric.bind(y, groups, data.n_groups) if len(y) else None for name, metric in chosen.items()
    }
    risks = GroupRisks.from_data(data, loss=loss, l2=l2, penalize_intercept=penalize_intercept)
    bound = {name: metric.bind(risks.y, risks.groups, risks.n_groups) for name, metric in chosen.items()}
    rivals = Rivals(risks)

    def rows() -> Iterator[dict[str, Any]]:
        for name, metric in bound.items():
            generator, tested = np.random.default_rng(seed), on_test[name]
            found = rivals.compare(metric, resolution=resolution, vertices=vertices, draws=draws, generator=generator)
            for strategy in found.strategies.values():
                model = strategy.model
                z = X @ model.w
                yield {
                    "metric": name,
                    "strategy": strategy.name,
                    "train_metric": found.unfairness[strategy.name],
                    "test_metric": tested.value(z) if tested else np.nan,
                    "train_error": prediction_error(model.point.scores, risks.y, data.task),
                    "test_error": prediction_error(z, y, data.task) if tested else np.nan,
                    "worst_loss": float(model.losses.max()),
                    "weights": model.weights.tolist(),
                    "minima": len(found.bilevel.local_minima),
                }

    return pd.DataFrame(rows())
