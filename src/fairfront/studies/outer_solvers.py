"""Figure 3 of the first paper: performance profiles of the solvers of the outer problem, on many partitions.

An instance is a partition of a data set cut down to some number of groups. Every solver runs once from uniform weights
and says, for each value of phi that it saw, what it had cost by then: evaluations of phi and of its gradient, passes
over the rows, seconds. A solver has solved an instance to a precision when its value is within it of a reference. The
first two costs are the same on every machine and under every load; verdicts are read from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.bilevel import exhaustive_search
from fairfront.datasets import info
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.plotting import OUTER_SOLVERS, Mark, draw_profile, legend_below, panels, style
from fairfront.risks import GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance, require_classification, thinned
from fairfront.studies.parameters import RiskParameters, meta, split
from fairfront.studies.profiles import Profile, data_profile, performance_profile
from fairfront.studies.solver_runs import (
    COSTS,
    READINGS,
    SolverRun,
    StoppingRules,
    gd_run,
    judged,
    multi_start_run,
    rule,
    two_loop_runs,
)
from fairfront.studies.strategies import metric_for

__all__ = [
    "ALONE",
    "COSTS",
    "PRECISIONS",
    "READINGS",
    "REFERENCES",
    "SOLVERS",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_all",
    "figure_budget",
    "figure_published",
    "measure",
    "profile",
    "run",
    "table_ends",
    "table_factor",
    "table_solved",
    "units",
]

TITLE = "Which outer solver?"
ALONE = True

SOLVERS: tuple[str, ...] = (
    "slsqp",
    "trust-constr",
    "frank-wolfe",
    "slsqp-tight",
    "trust-constr-tight",
    "multi-start",
    "badr-gd",
)
"""The paper's three with the stopping rules that it states (and SciPy's own barrier for the trust-region method), the
first two with tighter rules, SLSQP from several starts, and the single-loop method."""
PRECISIONS: tuple[float, ...] = (1e-3, 1e-5, 1e-7)
REFERENCES: tuple[str, ...] = (*READINGS, "best")
"""What a precision is counted from: the least value that the paper's three met (its definition), or any method here."""
_LEAST_INSTANCES = 20  # with fewer, a share in per cent says nothing
_LEAST_ROWS = 100  # with fewer, thinning may leave a group without rows


@dataclass(frozen=True, kw_only=True)
class Parameters(RiskParameters):
    """What the study can be told; ``fairfront describe outer_solvers`` shows the same in a table."""

    partition: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(help="DATA:ATTRIBUTE+ATTRIBUTE; each is cut down to every number of groups", distinct=True),
    )
    groups: tuple[int, ...] | None = field(
        default=None,
        metadata=meta(help="numbers of groups: the smallest cells are merged", low=2, high=36, distinct=True),
    )
    metric: str = field(
        default="disparate_mistreatment", metadata=meta(help="unfairness metric", choices=metrics.names)
    )
    variant: Literal["paper", "cited"] = field(
        default="paper", metadata=meta(help="the metric as published, or the definition that it cites")
    )
    rows: int | None = field(
        default=None, metadata=meta(help="data sets with more rows are thinned to so many; 0: never", low=0)
    )
    ftol: float = field(default=1e-5, metadata=meta(help="SLSQP stops at this change of phi", low=1e-15, high=1.0))
    gtol: float = field(
        default=1e-5, metadata=meta(help="trust-constr stops at this gradient norm", low=1e-15, high=1.0)
    )
    gap: float = field(default=1e-6, metadata=meta(help="Frank-Wolfe stops at this gap", low=1e-15, high=1.0))
    max_iterations: int = field(default=500, metadata=meta(help="most steps of a two-loop solver", low=1))
    gd_steps: int | None = field(default=None, metadata=meta(help="most steps of badr-gd", low=10))

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        if self.rows is not None and 0 < self.rows < _LEAST_ROWS:
            raise ArgumentError("rows", f"out of range: {self.rows}", f"0 for all, or at least {_LEAST_ROWS}")
        require_classification("partition", *(Instance.parse(words).data for words in self.partition or ()))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return tuple(dict.fromkeys(Instance.parse(words).data for words in parameters.resolved().partition or ()))


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts: one partition each."""
    return split(parameters, "partition")


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Parameters
    ----------
    parameters : Parameters
        What to compute; fields left at None take their profile's value.
    progress : callable
        ``progress(iterable, description, total=None)`` yields the items and shows where it is.

    Returns
    -------
    dict of DataFrame
        costs: a row per instance, solver, reference and precision (partition, groups, solver, reference, precision;
        evaluations, passes and seconds until the value was within the precision of the reference: inf where it never
        was, NaN where a method has no such cost).
        ends: a row per instance and solver (partition, groups, rows, solver, value: phi at what it returned; excess:
        that less the best reference; status; evaluations, passes and seconds of the whole run; minima: different ones
        met).
    """
    parameters = parameters.resolved()
    assert parameters.partition is not None and parameters.groups is not None and parameters.rows is not None
    instances = [Instance.parse(words, groups=s) for words in parameters.partition for s in parameters.groups]
    tables: dict[str, list[dict[str, Any]]] = {"costs": [], "ends": []}
    for instance in progress(instances, "instances", len(instances)):
        assert instance.groups is not None
        data = instance.load(0.0)
        X, y, groups = thinned(data, parameters.rows, seed=parameters.seed)
        risks = GroupRisks(X, y, groups, l2=parameters.l2, penalize_intercept=parameters.penalize_intercept)
        metric = metric_for(parameters.metric, variant=parameters.variant).bind(risks.y, risks.groups, instance.groups)
        runs = _runs(risks, metric, parameters)
        references = {reading: min(runs[name].least for name in solvers) for reading, solvers in READINGS.items()}
        references["best"] = min(found.least for found in runs.values())
        if instance.groups == 2:
            references["best"] = min(references["best"], exhaustive_search(risks, metric).value)
        key = {"partition": f"{instance.data}:{'+'.join(instance.sensitive)}", "groups": instance.groups}
        for name, found in runs.items():
            tables["ends"].append(
                key
                | {"rows": risks.n_rows, "solver": name, "value": found.value}
                | {"excess": found.value - references["best"], "status": found.status}
                | found.spent
                | {"minima": found.minima}
            )
            for reference, value in references.items():
                for precision in PRECISIONS:
                    costs = {cost: found.until(value + precision, cost) for cost in COSTS}
                    tables["costs"].append(
                        key | {"solver": name, "reference": reference, "precision": precision} | costs
                    )
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def _runs(risks: GroupRisks, metric: BoundMetric, parameters: Parameters) -> dict[str, SolverRun]:
    """Return what every solver does on one instance, in the order of `SOLVERS`."""
    rules = StoppingRules(parameters.ftol, parameters.gtol, parameters.gap, parameters.max_iterations)
    assert parameters.gd_steps is not None
    found = two_loop_runs(risks, metric, rules, SOLVERS[:5])
    found["multi-start"] = multi_start_run(risks, metric, parameters.max_iterations)
    found["badr-gd"] = gd_run(risks, metric, parameters.gd_steps)
    return found


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def _wide(tables: Mapping[str, pd.DataFrame], cost: str, precision: float, reference: str) -> pd.DataFrame:
    """Return one cost to one precision: a row an instance, a column a solver."""
    costs = tables["costs"]
    mine = costs[(costs.precision == precision) & (costs.reference == reference)]
    names = [name for name in SOLVERS if name in set(mine.solver)]
    return mine.pivot_table(index=["partition", "groups"], columns="solver", values=cost, dropna=False, sort=False)[
        names
    ]


def profile(tables: Mapping[str, pd.DataFrame], cost: str, precision: float, reference: str = "stated") -> Profile:
    """Return the performance profile of the solvers that a reference is the best value of.

    Parameters
    ----------
    tables : dict of DataFrame
        Of `run`.
    cost : str
        One of `COSTS`.
    precision : float
        One of `PRECISIONS`.
    reference : {"stated", "packaged", "best"}, default "stated"
        One of `REFERENCES`: a reading of the paper's three solvers, or all of them here.
    """
    wide = _wide(tables, cost, precision, reference)
    return performance_profile(wide[list(READINGS.get(reference, SOLVERS))])


def table_solved(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the share of the instances that each solver solves: a row a solver, a column a reference and precision."""
    names = {"stated": "of the best of the three", "best": "of the best of all"}
    columns = {
        f"{_short(precision)} {name}": np.isfinite(_wide(tables, "passes", precision, reference)).mean()
        for reference, name in names.items()
        for precision in PRECISIONS
    }
    return pd.DataFrame(columns).loc[list(SOLVERS)].rename_axis("solver").reset_index()


def table_factor(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the share of the instances that SLSQP solves within 1, 2 and 3 times the fastest of the paper's three.

    A row per reading, cost and precision.
    """
    rows = []
    for reading, solvers in READINGS.items():
        for cost in COSTS:
            for precision in PRECISIONS:
                found = profile(tables, cost, precision, reading)
                within = {f"within {factor}": float(found.at(factor)[solvers[0]]) for factor in (1, 2, 3)}
                key = {"SLSQP": f"as {reading}", "cost": cost, "precision": precision}
                rows.append(key | within | {"at all": float(found.solved[solvers[0]])})
    return pd.DataFrame(rows)


def table_ends(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how each solver's runs end, over the instances.

    Columns: by its own rule (share that did), medians of evaluations, passes, milliseconds and of the excess of phi
    over the best value met, and in another valley (share with an excess above 1e-3).
    """
    rows = []
    for name in SOLVERS:
        mine = tables["ends"][tables["ends"].solver == name]
        rows.append(
            {
                "solver": name,
                "by its own rule": float((mine.status == "converged").mean()),
                "evaluations": float(mine.evaluations.median()),
                "passes": float(mine.passes.median()),
                "milliseconds": 1e3 * float(mine.seconds.median()),
                "median excess": max(float(mine.excess.median()), 0.0),
                "in another valley": float((mine.excess > 1e-3).mean()),
            }
        )
    return pd.DataFrame(rows)


def _shares(tables: Mapping[str, pd.DataFrame], solver: str, reference: str) -> list[float]:
    """Return the share of the instances that a solver solves to each precision."""
    return [float(np.isfinite(_wide(tables, "passes", p, reference)[solver]).mean()) for p in PRECISIONS]


def _within(tables: Mapping[str, pd.DataFrame], cost: str, factor: float, reading: str) -> list[float]:
    """Return the share of the instances that SLSQP solves to each precision within a factor of the fastest."""
    return [float(profile(tables, cost, p, reading).at(factor)[READINGS[reading][0]]) for p in PRECISIONS]


def _percent(shares: list[float]) -> str:
    words = [f"{share:.0%}" for share in shares]
    return " and ".join([", ".join(words[:-1]), words[-1]])


def _short(number: float) -> str:
    return f"{number:g}".replace("e-0", "e-")


def _count(tables: Mapping[str, pd.DataFrame]) -> int:
    return len(tables["ends"][["partition", "groups"]].drop_duplicates())


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    assert parameters.partition is not None and parameters.groups is not None
    ends, rows, count = tables["ends"], tables["ends"].rows, _count(tables)
    titles = dict.fromkeys(info(name).title for name in datasets(parameters))
    medians = table_ends(tables).set_index("solver")
    evaluations, valleys = medians["evaluations"].to_dict(), medians["in another valley"].to_dict()
    best = {name: _shares(tables, name, "best") for name in SOLVERS}
    three = {name: _shares(tables, name, "stated") for name in READINGS["stated"]}
    own = _shares(tables, "slsqp-tight", "packaged")
    winners = [name for name in SOLVERS if best[name][2] == max(shares[2] for shares in best.values())]
    clock = [
        abs(counted - timed)
        for reading in READINGS
        for counted, timed in zip(
            _within(tables, "evaluations", 2, reading), _within(tables, "seconds", 2, reading), strict=True
        )
    ]
    return {
        "setting": (
            f"{', '.join(titles)}, {len(parameters.partition)} partitions, each in "
            f"{', '.join(map(str, parameters.groups))} groups: {count} instances of {rows.min():,} to {rows.max():,} "
            f"rows; {parameters.metric.replace('_', ' ')}, variant {parameters.variant}; logistic, "
            f"l2 {parameters.l2:g}, intercept {'penalised' if parameters.penalize_intercept else 'free'}; "
            f"profile {parameters.profile}"
        ),
        "instances": f"{count}",
        "ftol": _short(parameters.ftol),
        "slsqp_low": f"{three['slsqp'][0]:.0%}",
        "slsqp_high": _percent(three["slsqp"][1:]),
        "packaged_low": f"{own[0]:.0%}",
        "packaged_high": _percent(own[1:]),
        "trust": _percent(three["trust-constr"]),
        "trust_tight": _percent(_shares(tables, "trust-constr-tight", "stated")),
        "frank_wolfe": _percent(three["frank-wolfe"]),
        "frank_wolfe_evaluations": f"{evaluations['frank-wolfe']:.0f}",
        "limit": f"{parameters.max_iterations:,}",
        "limit_evaluations": f"{2 * (parameters.max_iterations + 1):,}",
        "slsqp_evaluations": f"{evaluations['slsqp']:.0f}",
        "packaged_evaluations": f"{evaluations['slsqp-tight']:.0f}",
        "multi_evaluations": f"{evaluations['multi-start']:.0f}",
        "two_stated": _percent(_within(tables, "evaluations", 2, "stated")[1:]),
        "two_packaged": _percent(_within(tables, "evaluations", 2, "packaged")[1:]),
        "two_packaged_passes": _percent(_within(tables, "passes", 2, "packaged")[1:]),
        "two_packaged_clock": _percent(_within(tables, "seconds", 2, "packaged")[1:]),
        "three_packaged": _percent(_within(tables, "evaluations", 3, "packaged")[1:]),
        "clock_difference": f"{100 * max(clock):.0f}",
        "winners": " and ".join(winners),
        "multi_best": f"{best['multi-start'][2]:.0%}",
        "packaged_best": f"{best['slsqp-tight'][2]:.0%}",
        "gd_best": f"{best['badr-gd'][0]:.0%}",
        "gd_steps": f"{parameters.gd_steps:,}",
        "valleys": f"{valleys['slsqp-tight']:.0%}",
        "several_minima": f"{(ends[ends.solver == 'multi-start'].minima > 1).mean():.0%}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims.

    By evaluations and by the paper's own reference, for both readings of SLSQP. A verdict is "reproduced" when
    everything that a claim says holds in both readings, "not reproduced" when nothing of it holds in either.
    """
    parameters = parameters.resolved()
    count = _count(tables)
    titles = "; ".join(dict.fromkeys(info(name).title for name in datasets(parameters)))
    rows = tables["ends"].rows
    data = f"{count} instances of {rows.min():,} to {rows.max():,} rows: {titles}"
    slsqp_of = {reading: _shares(tables, solvers[0], reading) for reading, solvers in READINGS.items()}
    trust = {reading: _shares(tables, "trust-constr", reading) for reading in READINGS}
    two = {reading: _within(tables, "evaluations", 2, reading)[1:] for reading in READINGS}
    three = {reading: _within(tables, "evaluations", 3, reading)[1:] for reading in READINGS}
    passes = {reading: _within(tables, "passes", 2, reading)[1:] for reading in READINGS}
    clock = {reading: _within(tables, "seconds", 2, reading)[1:] for reading in READINGS}

    def said(words: Callable[[str], str]) -> str:
        return "; ".join(f"{words(reading)} ({rule(reading, parameters.ftol)})" for reading in READINGS)

    def verdict(claim: str, measured: str, parts: Mapping[str, Mapping[str, bool]]) -> Measurement:
        if count < _LEAST_INSTANCES:
            few = f"{count} instances are too few for a share in per cent; the profile quick has 50"
            return Measurement(claim, measured, "not testable", few, data)
        return judged(claim, measured, parts, data, ftol=parameters.ftol)

    return (
        verdict(
            "badr-fig3-slsqp-low",
            said(lambda reading: f"{slsqp_of[reading][0]:.0%} at 1e-3"),
            {reading: {"not all": shares[0] == 1.0} for reading, shares in slsqp_of.items()},
        ),
        verdict(
            "badr-fig3-slsqp-high",
            said(lambda reading: f"{_percent(slsqp_of[reading][1:])} at 1e-5 and 1e-7"),
            {
                reading: {
                    f"more than 5 points from 94 % at {_short(p)}": abs(share - 0.94) <= 0.05
                    for p, share in zip(PRECISIONS[1:], shares[1:], strict=True)
                }
                for reading, shares in slsqp_of.items()
            },
        ),
        verdict(
            "badr-fig3-trust",
            f"{_percent(trust['stated'])} at 1e-3, 1e-5 and 1e-7 of the best with SLSQP's "
            f"{rule('stated', parameters.ftol)}; "
            f"{_percent(_shares(tables, 'trust-constr-tight', 'stated'))} with a gradient tolerance of 1e-9 and a "
            "small barrier",
            {
                reading: {
                    "more than 10 points from 80 % at 1e-3": abs(shares[0] - 0.8) <= 0.1,
                    "not 20 points fewer at 1e-7": shares[0] - shares[2] >= 0.2,
                }
                for reading, shares in trust.items()
            },
        ),
        verdict(
            "badr-fig3-factor",
            said(
                lambda reading: (
                    f"within 2 at 1e-5 and 1e-7: {_percent(two[reading])} by evaluations, {_percent(passes[reading])} "
                    f"by passes, {_percent(clock[reading])} by the clock; within 3: {_percent(three[reading])} by "
                    "evaluations"
                )
            ),
            {
                reading: {
                    "within 2 in fewer than 85 %": min(two[reading]) >= 0.85,
                    "slower by more than 3 in more than 5 %": all(
                        share - within <= 0.05
                        for share, within in zip(slsqp_of[reading][1:], three[reading], strict=True)
                    ),
                }
                for reading in READINGS
            },
        ),
    )


# --- figures ---------------------------------------------------------------------------------------------------------

_TAU = r"$\tau$"


def _precision(value: float) -> str:
    return rf"$\varepsilon = 10^{{{round(np.log10(value))}}}$"


def figure_published(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the paper's Figure 3: its three solvers and its reference, both readings in evaluations, one in seconds."""
    rows = (("stated", "evaluations"), ("packaged", "evaluations"), ("packaged", "seconds"))
    with style():
        figure, axes = panels(3, 3, height=2.3)
        for number, (row, (reading, cost)) in enumerate(zip(axes, rows, strict=True)):
            for ax, precision in zip(row, PRECISIONS, strict=True):
                marks = {name: OUTER_SOLVERS[name] for name in READINGS[reading]}
                _draw(ax, profile(tables, cost, precision, reading), marks)
                ax.set(title="" if number else _precision(precision), xlabel=f"{_TAU} in {cost}")
            row[0].set_ylabel(f"share of instances\nSLSQP as {reading}")
        lines = {line.get_label(): line for ax in axes[:, 0] for line in ax.lines}
        figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=4)
    return figure


def figure_all(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the profiles of all methods in passes over the rows, against the best value that any of them met."""
    with style():
        figure, axes = panels(1, 3, height=2.9)
        for ax, precision in zip(axes[0], PRECISIONS, strict=True):
            _draw(ax, profile(tables, "passes", precision, "best"), OUTER_SOLVERS)
            ax.set(title=_precision(precision), xlabel=f"{_TAU} in passes over the rows")
        axes[0, 0].set_ylabel("share of instances")
        legend_below(axes[0, 0], 4)
    return figure


def figure_budget(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw data profiles: the share solved against the budget of evaluations for each group."""
    solvers = [name for name in SOLVERS if name != "badr-gd"]
    with style():
        figure, axes = panels(1, 3, height=2.9)
        for ax, precision in zip(axes[0], PRECISIONS, strict=True):
            wide = _wide(tables, "evaluations", precision, "best")[solvers]
            # S weights that sum to one are S - 1 variables.
            free = wide.index.get_level_values("groups").to_numpy() - 1
            draw_profile(ax, data_profile(wide, free).steps(100.0), {name: OUTER_SOLVERS[name] for name in solvers})
            ax.set_xscale("symlog", linthresh=1.0)
            ax.set(title=_precision(precision), xlabel="evaluations / groups", ylabel="", xlim=(0, 100))
        axes[0, 0].set_ylabel("share of instances")
        legend_below(axes[0, 0], 3)
    return figure


def _draw(ax: Axes, found: Profile, marks: Mapping[str, Mark]) -> None:
    draw_profile(ax, found.steps(64.0), marks)
    ax.set_xscale("log", base=2)
    ax.set(xlim=(1, 64), ylabel="")
