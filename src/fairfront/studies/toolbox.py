"""Section 4 of the first paper, sentence by sentence: what its text promises of a toolbox, tried out on this one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairfront import metrics
from fairfront.bilevel import BilevelSolution, multi_start
from fairfront.datasets import from_frame, info, load
from fairfront.datasets.inventory import at_hand
from fairfront.metrics import BoundMetric
from fairfront.pareto import Scalarization, uniform_weights
from fairfront.risks import LOSSES, Array, GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters
from fairfront.studies.the_data import TABLE_1

__all__ = ["TITLE", "Parameters", "datasets", "facts", "measure", "run"]

TITLE = "The toolbox of section 4"
_DATA = "german"


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """The study takes no parameters of its own."""


@dataclass(frozen=True)
class _Found:
    """What a check found: whether the sentence holds, and what was seen."""

    holds: bool
    seen: str


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return (_DATA,)


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's table.

    Returns
    -------
    dict of DataFrame
        checks: a row per sentence: sentence (of the paper, shortened), tried (what is done here), seen, holds.
    """
    rows = [
        {"sentence": sentence, "tried": tried, "seen": found.seen, "holds": found.holds}
        for sentence, tried, check in progress(_CHECKS, "sentences", len(_CHECKS))
        for found in (check(),)
    ]
    return {"checks": pd.DataFrame(rows)}


def _persons() -> pd.DataFrame:
    """Return a user's own table, with numbers, words and two sensitive columns."""
    generator = np.random.default_rng(0)
    n = 400
    sex, town = generator.choice(["f", "m"], n), generator.choice(["north", "south"], n)
    score = generator.normal(size=n) + 0.5 * (sex == "m")
    passed = (score + 0.5 * generator.normal(size=n) > 0).astype(int)
    return pd.DataFrame({"score": score, "town": town, "sex": sex, "passed": passed})


def _problem(name: str = "demographic_parity") -> tuple[GroupRisks, BoundMetric]:
    risks = GroupRisks.from_data(load(_DATA, sensitive="gender", test_size=0.0), penalize_intercept=False)
    return risks, metrics.get(name, variant="paper").bind(risks.y, risks.groups, risks.n_groups)


def _scikit_learn() -> _Found:
    from sklearn.base import clone, is_classifier, is_regressor

    from fairfront.estimators import FairParetoClassifier, FairParetoRegressor

    persons = _persons()
    X, y, sex = persons[["score"]], persons["passed"], persons["sex"]
    made = clone(FairParetoClassifier(l2=0.5).set_params(l2=0.1))
    made.fit(X, y, sensitive_features=sex)
    right = float(made.score(X, y))
    holds = is_classifier(made) and is_regressor(FairParetoRegressor()) and made.get_params()["l2"] == 0.1
    holds = holds and set(made.predict(X)) <= {0, 1} and right > 0.5
    return _Found(bool(holds), f"cloned, set, fitted to a DataFrame, {right:.0%} of the labels right")


def _seven_metrics() -> _Found:
    values = {}
    for name in metrics.names():
        risks, bound = _problem(name)
        values[name] = bound.value(Scalarization(risks).solve(uniform_weights(2)).point.scores)
    return _Found(len(values) == 7 and bool(np.isfinite(list(values.values())).all()), f"{len(values)} of them")


def _custom_metric() -> _Found:
    import jax.numpy as jnp

    def gap(scores: Any, labels: Any, groups: Any) -> Any:
        first = groups == 0
        means = [jnp.sum(jnp.where(side, scores, 0.0)) / jnp.sum(side) for side in (first, ~first)]
        return (means[0] - means[1]) ** 2

    risks, _ = _problem()
    bound = metrics.custom(gap).bind(risks.y, risks.groups, risks.n_groups)
    uniform = bound.value(Scalarization(risks).solve(uniform_weights(2)).point.scores)
    best = multi_start(risks, bound).value
    return _Found(best <= uniform, f"a user's function: {uniform:.4f} at uniform weights, {best:.4f} at the best")


def _eleven_sets() -> _Found:
    names = [name for _, name, _, _ in TABLE_1]
    here = [name for name in names if at_hand(name)]
    addresses = [name for name in names if name in here or info(name).file.raw]
    return _Found(
        len(names) == 11 and addresses == names, f"{len(names)} by name, {len(here)} at hand, the rest by download"
    )


def _any_frame() -> _Found:
    data = from_frame(_persons(), target="passed", sensitive=["sex", "town"])
    train = data.X[data.train, 1:]
    standard = bool(np.allclose(train.mean(axis=0), 0) and np.allclose(train.std(axis=0), 1))
    return _Found(
        standard and data.n_groups == 4, f"one call: split, standardised, {data.n_groups} groups of two columns"
    )


def _models() -> _Found:
    rows = load(_DATA, sensitive="gender", test_size=0.0)
    norms = {}
    for name in LOSSES:
        risks = GroupRisks(rows.X, rows.y, rows.groups, loss=name)
        norms[name] = Scalarization(risks).solve(uniform_weights(2)).gradient_norm
    return _Found(max(norms.values()) < 1e-8, f"{', '.join(norms)}: fitted, gradient below {max(norms.values()):.0e}")


def _solvers() -> _Found:
    from fairfront.estimators import FairParetoClassifier
    from fairfront.estimators.linear import SOLVERS

    persons = _persons()
    found = {}
    for name in SOLVERS:
        made = FairParetoClassifier(
            metric="demographic_parity", variant="paper", solver=name, l2=0.1, max_iter=2000, tol=1e-4, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stochastic method may end by its limit; its value is what is compared
            made.fit(persons[["score"]], persons["passed"], sensitive_features=persons["sex"])
        found[name] = float(made.fairness_)
    spread = max(found.values()) - min(found.values())
    return _Found(spread < 0.01 and {"badr-gd", "badr-sgd"} <= set(found), f"{', '.join(found)}: within {spread:.1e}")


def _own_algorithm() -> _Found:
    """Try a solver of one's own: the best of a grid of starts, each passed on by a function that the user wrote."""
    from fairfront.bilevel import slsqp

    calls = []

    def mine(risks: GroupRisks, metric: BoundMetric, *, start: Array) -> BilevelSolution:
        calls.append(start)
        return slsqp(risks, metric, start=start, ftol=1e-8)

    risks, bound = _problem("individual_fairness")
    best = multi_start(risks, bound, solver=mine, starts=[np.array([0.2, 0.8]), np.array([0.8, 0.2])])
    uniform = bound.value(Scalarization(risks).solve(uniform_weights(2)).point.scores)
    return _Found(len(calls) == 2 and best.value <= uniform, f"called from {len(calls)} starts; {best.value:.4f} found")


_CHECKS: tuple[tuple[str, str, Callable[[], _Found]], ...] = (
    (
        "conforms to the scikit-learn interface; trains and predicts directly from DataFrames",
        "clone, set_params, fit, predict and score of FairParetoClassifier on a DataFrame",
        _scikit_learn,
    ),
    ("seven unfairness metrics", "each evaluated on German Credit", _seven_metrics),
    ("user-defined custom metrics", "a function written with jax.numpy, minimised on German Credit", _custom_metric),
    ("eleven widely used data sets can be fetched", "each of Table 1 has a name that load takes", _eleven_sets),
    ("any pandas DataFrame: split, normalised, partitioned", "from_frame on a table made here", _any_frame),
    ("linear regression, logistic regression, support vector machines", "each fitted to German Credit", _models),
    ("badr-gd, badr-sgd, and two-loop algorithms", "each solver of the estimator on the same rows", _solvers),
    (
        "users can plug in their own optimisation algorithm",
        "a function of one's own given to multi_start",
        _own_algorithm,
    ),
)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose quotes, as words, by name."""
    checks = tables["checks"]
    return {"toolbox_holds": f"{int(checks.holds.sum())} of {len(checks)}"}


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the table says of the paper's claim on its toolbox."""
    checks = tables["checks"]
    failed = checks[~checks.holds].sentence.tolist()
    measured = f"{len(checks) - len(failed)} of {len(checks)} sentences hold of this package, tried out"
    reason = f"does not hold here: {'; '.join(failed)}" if failed else ""
    if len(failed) * 2 > len(checks):
        return (
            Measurement("badr-toolbox", measured, "not reproduced", reason, "German Credit, and a table made here"),
        )
    about = (
        "the sentences are about the authors' own package; of its version 0.1.2 badr-gd is not a part, and its "
        "trust-region solver cannot be constructed"
    )
    why = "; ".join(filter(None, [reason, about]))
    return (Measurement("badr-toolbox", measured, "reproduced in part", why, "German Credit, and a table made here"),)
