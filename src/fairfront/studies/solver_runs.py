"""What a solver of the outer problem did and what it had cost by then: shared by the studies of Figures 3, 4 and 5."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairfront.bilevel import (
    BilevelSolution,
    Objective,
    Record,
    badr_gd,
    badr_sgd,
    frank_wolfe,
    multi_start,
    practical_steps,
    slsqp,
    trust_constr,
)
from fairfront.datasets.blocks import ParquetRows
from fairfront.metrics import BoundMetric
from fairfront.risks import GroupRisks
from fairfront.runs.fresh import peak_mb
from fairfront.runs.ledger import Measurement
from fairfront.studies.profiles import cost_to_reach
from fairfront.studies.strategies import metric_for

__all__ = [
    "COSTS",
    "READINGS",
    "SolverRun",
    "StoppingRules",
    "gd_run",
    "judged",
    "large_run",
    "multi_start_run",
    "rule",
    "solve_file",
    "two_loop_runs",
]

READINGS: Mapping[str, tuple[str, ...]] = {
    "stated": ("slsqp", "trust-constr", "frank-wolfe"),
    "packaged": ("slsqp-tight", "trust-constr", "frank-wolfe"),
}
"""Who the paper's three are: SLSQP stops at a change of 1e-5, as it states, or of 1e-10, as in the authors' package."""
COSTS: tuple[str, ...] = ("evaluations", "passes", "seconds")
"""Evaluations of phi and its gradient (a single-loop method has none); passes over all rows; wall time."""
_SAMPLED_ROWS = 2_000  # as many for every sample, on which the steps of badr-sgd are found


@dataclass(frozen=True)
class StoppingRules:
    """When the two-loop solvers stop: the paper's values.

    Attributes
    ----------
    ftol : float, default 1e-5
        SLSQP: change of phi.
    gtol : float, default 1e-5
        trust-constr: gradient of the Lagrangian. Its barrier is SciPy's own: the paper names none.
    gap : float, default 1e-6
        Frank-Wolfe: the gap.
    max_iterations : int, default 500
        All of them.
    """

    ftol: float = 1e-5
    gtol: float = 1e-5
    gap: float = 1e-6
    max_iterations: int = 500


@dataclass(frozen=True, eq=False)
class SolverRun:
    """What one solver did on one instance.

    Attributes
    ----------
    records : tuple of Record
        Its iterates; their values are phi.
    value : float
        phi at what it returned.
    status : str
        How it ended.
    minima : int
        Different local minima that it met.
    spent : dict of str to float
        The `COSTS` of all of it; NaN for one that the method does not have.
    """

    records: tuple[Record, ...]
    value: float
    status: str
    minima: int
    spent: dict[str, float]

    @property
    def least(self) -> float:
        """The least phi on the way."""
        return min(record.value for record in self.records)

    def until(self, target: float, cost: str) -> float:
        """Return what had been spent when phi first was at most a target; inf where it never was."""
        if np.isnan(self.spent[cost]):
            return np.nan
        name = {"evaluations": "solves", "passes": "passes", "seconds": "time"}[cost]
        values, costs = zip(*((record.value, getattr(record, name)) for record in self.records), strict=True)
        return cost_to_reach(values, costs, target)


def two_loop_runs(
    risks: GroupRisks, metric: BoundMetric, rules: StoppingRules, solvers: Iterable[str]
) -> dict[str, SolverRun]:
    """Return what two-loop solvers do from uniform weights.

    Parameters
    ----------
    risks, metric
        The instance.
    rules : StoppingRules
        The paper's, for the first three.
    solvers : iterable of str
        Of "slsqp", "trust-constr", "frank-wolfe", "slsqp-tight" (1e-10, the package's) and "trust-constr-tight" (1e-9,
        and a small barrier).
    """
    most = rules.max_iterations
    known: dict[str, Callable[[], BilevelSolution]] = {
        "slsqp": lambda: slsqp(risks, metric, ftol=rules.ftol, max_iterations=most),
        "trust-constr": lambda: trust_constr(risks, metric, gtol=rules.gtol, barrier=0.1, max_iterations=most),
        "frank-wolfe": lambda: frank_wolfe(risks, metric, gap=rules.gap, max_iterations=most),
        "slsqp-tight": lambda: slsqp(risks, metric, ftol=1e-10, max_iterations=most),
        "trust-constr-tight": lambda: trust_constr(risks, metric, gtol=1e-9, max_iterations=most),
    }
    slsqp(risks, metric, max_iterations=1)  # what is made once, as the blocks of the rows, is in nobody's time
    found = {}
    for name in solvers:
        before = risks.source.passes
        solution = known[name]()
        spent = _spent(solution, risks.source.passes - before)
        found[name] = SolverRun(solution.history, solution.value, solution.status, 1, spent)
    return found


def multi_start_run(risks: GroupRisks, metric: BoundMetric, max_iterations: int = 500) -> SolverRun:
    """Return SLSQP from every standard start, one run after the other; the records are those of all runs."""
    records: list[Record] = []
    begun, passes, solves = time.perf_counter(), risks.source.passes, 0

    def one(*arguments: Any, **options: Any) -> BilevelSolution:
        nonlocal solves
        late, before = time.perf_counter() - begun, risks.source.passes - passes
        solution = slsqp(*arguments, **options)
        records.extend(
            record._replace(time=record.time + late, solves=record.solves + solves, passes=record.passes + before)
            for record in solution.history
        )
        solves += solution.lower_solves + solution.adjoint_solves
        return solution

    best = multi_start(risks, metric, solver=one, max_iterations=max_iterations)
    spent = _spent(best, risks.source.passes - passes)
    return SolverRun(tuple(records), best.value, best.status, len(best.local_minima), spent)


def gd_run(risks: GroupRisks, metric: BoundMetric, steps: int) -> SolverRun:
    """Return badr-gd with its practical steps; the values are phi at its weights, found afterwards."""
    before = risks.source.passes
    solution = badr_gd(risks, metric, max_iterations=steps)
    spent = {"evaluations": np.nan, "passes": float(risks.source.passes - before), "seconds": solution.seconds}
    objective = Objective(risks, metric, tolerance=1e-9)
    records = tuple(record._replace(value=objective.value(record.weights)) for record in solution.history)
    return SolverRun(records, solution.value, solution.status, 1, spent)


def _spent(solution: BilevelSolution, passes: int) -> dict[str, float]:
    evaluations = float(solution.lower_solves + solution.adjoint_solves)
    return {"evaluations": evaluations, "passes": float(passes), "seconds": solution.seconds}


def large_run(
    risks: GroupRisks, method: str, metric: str, variant: Any, steps: int, batch: int, seed: list[int]
) -> dict[str, Any]:
    """Return what one method does on many rows.

    Parameters
    ----------
    risks : GroupRisks
        The rows.
    method : {"slsqp-tight", "badr-sgd"}
        The two-loop method or the stochastic one, whose steps are found on a sample of 2,000 rows.
    metric, variant : str
        See :func:`fairfront.studies.strategies.metric_for`.
    steps, batch : int
        Most steps of badr-sgd, and its rows of each group in a mini-batch.
    seed : list of int
        Of its mini-batches.

    Returns
    -------
    dict
        start (phi at uniform weights; NaN for badr-sgd, which does not evaluate it), value (phi at the end), seconds,
        read (rows that were read, each as often as it was), steps (or evaluations of phi and its gradient).
    """
    formula = metric_for(metric, variant=variant)
    bound = formula.bind(risks.y, risks.groups, risks.n_groups)
    before, begun = risks.source.passes, time.perf_counter()
    if method != "badr-sgd":
        solution = slsqp(risks, bound)
        return {
            "start": solution.history[0].value,
            "value": solution.value,
            "seconds": time.perf_counter() - begun,
            "read": float((risks.source.passes - before) * risks.n_rows),
            "steps": solution.lower_solves + solution.adjoint_solves,
        }
    sample = risks.sample(max(1, risks.n_rows // _SAMPLED_ROWS))
    sizes = practical_steps(sample, formula.bind(sample.y, sample.groups, sample.n_groups))
    read = float(sample.source.passes * sample.n_rows)
    found = time.perf_counter() - begun
    solution = badr_sgd(
        risks, bound, steps=sizes, generator=np.random.default_rng(seed), batch=batch, max_iterations=steps
    )
    last = solution.history[-1]  # what comes after it is the exact value at the end, which no step needs
    return {
        "start": np.nan,
        "value": solution.value,
        "seconds": found + last.time,
        "read": read + float((last.iteration + 1) * batch * risks.n_groups),
        "steps": last.iteration,
    }


def solve_file(
    path: str, way: str, metric: str, variant: str, l2: float, steps: int, batch: int
) -> dict[str, float | int]:
    """Solve the problem of a file's rows in this process and return the peaks of its memory.

    Parameters
    ----------
    path : str
        A file of :func:`fairfront.datasets.blocks.write_blocks`.
    way : {"two-loop", "two-loop from disk", "badr-sgd"}
        The method, with the rows in memory or read anew at every pass.
    metric, variant, l2, steps, batch
        As of `large_run`.

    Returns
    -------
    dict
        rows, features, rows_mb, imports_mb, loaded_mb, peak_mb (the features alone; peaks of resident
        memory before and after loading, and at the end) and value.
    """
    imported = peak_mb()
    source = ParquetRows(path)
    risks = GroupRisks.from_source(source if way.endswith("disk") else source.sample(1), l2=l2)
    loaded = peak_mb()
    method = "badr-sgd" if way == "badr-sgd" else "slsqp-tight"
    value = large_run(risks, method, metric, variant, steps, batch, [0])["value"]
    return {
        "rows": risks.n_rows,
        "features": risks.n_features,
        "rows_mb": 8e-6 * risks.n_rows * risks.n_features,
        "imports_mb": imported,
        "loaded_mb": loaded,
        "peak_mb": peak_mb(),
        "value": value,
    }


def rule(reading: str, ftol: float = 1e-5) -> str:
    """Return a reading of SLSQP in words."""
    words = f"{ftol:g}".replace("e-0", "e-")
    return f"tolerance {words}" if reading == "stated" else "tolerance 1e-10, the authors' package's"


def judged(
    claim: str, measured: str, parts: Mapping[str, Mapping[str, bool]], data: str, *, ftol: float = 1e-5
) -> Measurement:
    """Return the verdict on a claim on the paper's three solvers, in both readings of SLSQP.

    Parameters
    ----------
    claim, measured, data : str
        As of :class:`fairfront.runs.ledger.Measurement`.
    parts : mapping of reading to mapping of str to bool
        What the claim says, part by part: what is the case where the part does not hold, and whether it holds.
    ftol : float, default 1e-5
        SLSQP's tolerance as stated, for the words.

    Returns
    -------
    Measurement
        "reproduced" where every part holds in both readings, "not reproduced" where none holds in either.
    """
    outcomes = [ok for reading in READINGS for ok in parts[reading].values()]
    failed = [
        f"{rule(reading, ftol)}: {', '.join(part for part, ok in parts[reading].items() if not ok)}"
        for reading in READINGS
        if not all(parts[reading].values())
    ]
    verdict = "reproduced" if all(outcomes) else "reproduced in part" if any(outcomes) else "not reproduced"
    return Measurement(claim, measured, verdict, "; ".join(failed), data)
