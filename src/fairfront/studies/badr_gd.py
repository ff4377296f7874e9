"""Theorem 4 and the lemmas of appendix B.1 of the first paper, where every constant is computed; then on data.

On two small problems and on ACS 2012 tasks badr-gd is followed with exact quantities beside each iterate, at gamma_bar
and at powers of ten of it. Where a hypothesis fails (metrics whose gradient grows with w) its behaviour is recorded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.bilevel import (
    Objective,
    ProblemBounds,
    Theorem4Constants,
    exhaustive_search,
    gd_iterates,
    practical_steps,
)
from fairfront.datasets import info, load
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric, Metric
from fairfront.plotting import FRONT, PATH, legend_below, panels, style
from fairfront.risks import GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta, split
from fairfront.theory import badr_gd as theory
from fairfront.theory.check import Check

__all__ = [
    "STATEMENTS",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_behaviour",
    "figure_gamma",
    "figure_lemmas",
    "figure_theorem",
    "measure",
    "run",
    "table_constants",
    "table_largest",
    "units",
]

TITLE = "badr-gd: Theorem 4 on problems whose constants are computed"
TASKS = ("employment", "income", "travel-time")
LIPSCHITZ = ("demographic_parity", "equal_opportunity")
PARTS = ("small", "iterates", "behaviour")
STARTS = {"zero": False, "solution": True}

ALONG: dict[str, Callable[[theory.Trajectory], Check]] = {
    "badr-lemma-descent": theory.descent,
    "badr-lemma-contract": theory.contraction,
    "badr-lemma-drift-w": theory.drift_w,
    "badr-lemma-bound-v": theory.dual_bound,
    "badr-lemma-drift-v": theory.drift_v,
    "badr-lemma-grad-error": theory.gradient_error,
}
STATEMENTS: dict[str, str] = {
    "badr-lemma-lip": "solution map Lipschitz",
    "badr-lemma-smooth": "phi smooth",
    "badr-lemma-descent": "descent of phi",
    "badr-lemma-contract": "contraction of w and v",
    "badr-lemma-drift-w": "drift of the lower error",
    "badr-lemma-bound-v": "uniform bound of v",
    "badr-lemma-drift-v": "drift of the dual solution",
    "badr-lemma-grad-error": "error of the hypergradient",
    "badr-thm4": "Theorem 4",
}
"""The claims of this study, and how figures and tables call them."""
_LOST = {
    "badr-lemma-drift-v": "M_v's print is lost in the text at hand; derived",
    "badr-lemma-grad-error": "the right side's print is lost in the text at hand; derived",
}


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe badr_gd`` shows the same in a table."""

    task: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="tasks on the ACS 2012 sample", choices=TASKS)
    )
    sensitive: str = field(
        default="gender",
        metadata=meta(help="sensitive attribute; its two values are the groups", choices=("gender", "age", "citizen")),
    )
    l2: float = field(
        default=0.1, metadata=meta(help="weight of |w|^2/2 on the data, ones column included", low=1e-4, high=1e3)
    )
    decades: int = field(
        default=12,
        metadata=meta(help="gamma goes up to 10^decades gamma_bar, on the data to its square", low=1, high=30),
    )
    decades_step: int | None = field(
        default=None, metadata=meta(help="decades from one gamma to the next", low=1, high=30)
    )
    steps: int | None = field(default=None, metadata=meta(help="T on the small problems", low=10, high=1000000))
    data_steps: int | None = field(default=None, metadata=meta(help="T on the data", low=5, high=1000000))
    run_steps: int | None = field(
        default=None, metadata=meta(help="most steps of the runs with practical steps", low=20, high=1000000)
    )
    pace: float = field(
        default=0.05,
        metadata=meta(help="how fast the weights move in the runs with practical steps", low=1e-6, high=10),
    )
    pairs: int | None = field(default=None, metadata=meta(help="random pairs of weights", low=2, high=100000))
    part: str = field(default="all", metadata=meta(help="one part of the tables alone", choices=("all", *PARTS)))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return tuple(f"acs2012-{task}" for task in parameters.resolved().task or ())


@dataclass(frozen=True, eq=False)
class _Problem:
    name: str
    risks: GroupRisks
    metric: Metric
    bound: BoundMetric
    steps: int
    decades: tuple[int, ...]


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts of the work: the small problems, then iterates on a task each, then behaviour on a task each."""
    if parameters.part == "all":
        return tuple(unit for part in PARTS for unit in units(dataclasses.replace(parameters, part=part)))
    if parameters.part == "small":
        return (dataclasses.replace(parameters, task=()),)
    return split(parameters, "task")


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
        checks: a row per problem, start, decade (gamma = 10^decade gamma_bar; -1 where gamma plays no part) and claim:
        measured, bound, holds, cases.
        sides: both sides of Theorem 4 at T equally spaced in their logarithm.
        ends: phi's excess over its minimum at the start and after the last step, and the slope of the left side.
        constants: of each problem.
        behaviour: metrics on the data with practical steps, and how their gradient grows with w.
        curves: those runs' excess and dual norm at t equally spaced in their logarithm.
    """
    parameters = parameters.resolved()
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("checks", "sides", "ends", "constants", "behaviour", "curves")
    }
    for problem in _problems(parameters):
        _examine(problem, parameters, progress, tables)
    tasks = parameters.task or () if parameters.part in ("all", "behaviour") else ()
    cases = [(task, metric) for task in tasks for metric in metrics.names()]
    for task, metric in progress(cases, "behaviour on the data", len(cases)):
        row, curve = _behaviour(task, metric, parameters)
        tables["behaviour"].append(row)
        tables["curves"] += curve
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def _problems(parameters: Parameters) -> Iterable[_Problem]:
    assert parameters.data_steps and parameters.decades_step and parameters.task is not None
    decades = tuple(range(0, parameters.decades + 1, parameters.decades_step))
    if parameters.part in ("all", "small"):
        yield from _small_problems(parameters, decades)
    for task in parameters.task if parameters.part in ("all", "iterates") else ():
        risks = _risks(task, parameters)
        for name in LIPSCHITZ:
            yield _problem(
                f"{task}, {name.replace('_', ' ')}",
                risks,
                metrics.get(name),
                parameters.data_steps,
                tuple(2 * decade for decade in decades),
            )


def _small_problems(parameters: Parameters, decades: tuple[int, ...]) -> Iterable[_Problem]:
    assert parameters.steps
    generator = np.random.default_rng(parameters.seed)
    groups, d = np.repeat([0, 1], 40), 3
    X = generator.normal(size=(80, d)) + 0.5 * generator.normal(size=(2, d))[groups]
    truth = generator.normal(size=(2, d))
    scores = np.einsum("ij,ij->i", X, truth[groups])
    targets = scores + 0.3 * generator.normal(size=80)
    labels = (generator.random(80) < 1 / (1 + np.exp(-scores))).astype(float)
    ridge = GroupRisks(X, targets, groups, loss="squared", l2=0.5, intercept=None)
    yield _problem("ridge, mean scores", ridge, theory.LipschitzSpread(task="regression"), parameters.steps, decades)
    logistic = GroupRisks(X, labels, groups, l2=0.5, intercept=None)
    metric = metrics.get("equal_opportunity")
    yield _problem("logistic, equal opportunity", logistic, metric, parameters.steps, decades)


def _problem(name: str, risks: GroupRisks, metric: Metric, steps: int, decades: tuple[int, ...]) -> _Problem:
    return _Problem(name, risks, metric, metric.bind(risks.y, risks.groups, risks.n_groups), steps, decades)


def _risks(task: str, parameters: Parameters) -> GroupRisks:
    data = load(f"acs2012-{task}", sensitive=[parameters.sensitive], test_size=0.0, seed=parameters.seed)
    if data.n_groups != 2:
        raise ArgumentError("sensitive", f"{parameters.sensitive} has {data.n_groups} groups, the chapter needs two")
    return GroupRisks.from_data(data, l2=parameters.l2, penalize_intercept=True)


def _examine(
    problem: _Problem, parameters: Parameters, progress: ProgressFunction, tables: dict[str, list[dict[str, Any]]]
) -> None:
    """Add one problem's rows to the tables."""
    assert parameters.pairs is not None
    risks, bound = problem.risks, problem.bound
    bounds = theory.problem_bounds(risks, problem.metric)
    constants = Theorem4Constants(ProblemBounds(**bounds))
    named = bounds | {name: getattr(constants, name) for name in ("kappa", "M_v", "L_phi", "gamma_bar", "dual_bound")}
    tables["constants"] += [{"problem": problem.name, "name": name, "value": v} for name, v in named.items()]
    least = exhaustive_search(risks, bound, resolution=101).value

    def add(claim: str, check: Check, start: str = "", decade: int = -1) -> None:
        where = {"problem": problem.name, "start": start, "decade": decade, "claim": claim}
        tables["checks"].append(where | check.numbers())

    generator = np.random.default_rng(parameters.seed)
    add("badr-lemma-lip", theory.lipschitz_solution(risks, constants, generator, pairs=parameters.pairs))
    add("badr-lemma-smooth", theory.smooth_objective(risks, bound, constants, generator, pairs=parameters.pairs))
    runs = [(start, decade) for start in STARTS for decade in problem.decades]
    for start, decade in progress(runs, f"iterates, {problem.name}", len(runs)):
        run = theory.follow(risks, bound, bounds, 10.0**decade, problem.steps, at_solution=STARTS[start])
        for claim, check in ALONG.items():
            add(claim, check(run), start, decade)
        # The search's least value may be beaten by rounding along a run that converges.
        lowest = min(least, float(run.phi.min()))
        add("badr-thm4", theory.theorem_4(run, lowest), start, decade)
        left, right = theory.theorem_4_sides(run, lowest)
        where = {"problem": problem.name, "start": start, "decade": decade}
        for t in _spaced(len(left)):
            tables["sides"].append(where | {"T": t, "left": left[t - 1], "right": right[t - 1]})
        half = len(left) // 2
        slope = np.log(left[-1] / left[half - 1]) / np.log(len(left) / half)
        tables["ends"].append(
            where
            | {
                "gamma": run.steps.gamma,
                "gap_start": run.phi[0] - lowest,
                "gap_end": run.phi[-1] - lowest,
                "slope": slope,
            }
        )


def _spaced(count: int, points: int = 40) -> list[int]:
    return sorted({int(t) for t in np.geomspace(1, count, min(points, count)).round()})


def _behaviour(task: str, name: str, parameters: Parameters) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run badr-gd with practical steps under one metric, and look at the hypotheses on it."""
    risks = _risks(task, parameters)
    bound = metrics.get(name, variant="paper").bind(risks.y, risks.groups, risks.n_groups)
    objective, found = Objective(risks, bound, tolerance=1e-9), exhaustive_search(risks, bound, resolution=51)
    w = objective.evaluate([0.5, 0.5]).model.w

    def steepness(scale: float) -> float:
        point = risks.at(scale * w)
        return float(np.linalg.norm(point.score_gradient(bound.value_and_derivative(point.scores)[1])))

    steps = practical_steps(risks, bound, pace=parameters.pace)
    assert parameters.run_steps is not None
    keep, curve, most, status = set(_spaced(parameters.run_steps, 60)), [], 0.0, "iteration limit"
    for t, state in enumerate(gd_iterates(risks, bound, steps), start=1):
        most = max(most, float(np.linalg.norm(state.v)))
        done = state.stationarity(steps.gamma) <= 1e-6
        if t in keep or done:
            gap = objective.value(state.weights) - found.value
            curve.append({"task": task, "metric": name, "t": t, "gap": gap, "dual": float(np.linalg.norm(state.v))})
        if done or t >= parameters.run_steps:
            status = "stationary" if done else status
            break
    base = steepness(1.0)
    values = [objective.value([first, 1.0 - first]) for first in np.linspace(0.0, 1.0, 11)]
    row = {
        "task": task,
        "metric": name,
        "lipschitz": name in (*LIPSCHITZ, "equalized_odds"),
        "growth_10": steepness(10.0) / base,
        "growth_100": steepness(100.0) / base,
        "status": status,
        "steps": t,
        "gap_start": curve[0]["gap"],
        "gap_end": curve[-1]["gap"],
        "range": max(values) - found.value,
        "local_minima": len(found.local_minima),
        "largest_dual": most,
    }
    return row, curve


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_constants(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return every problem's constants, a column a problem."""
    wide = tables["constants"].pivot_table(index="name", columns="problem", values="value")
    order = tables["constants"].drop_duplicates("name").name
    return wide.loc[order, tables["constants"].problem.unique()].rename_axis(columns=None).reset_index()


def table_largest(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, for each statement about iterates, problem and start, the largest gamma that it survives."""
    rows = []
    along = tables["checks"][tables["checks"].decade >= 0]
    for (claim, problem, start), mine in along.groupby(["claim", "problem", "start"], sort=False):
        mine = mine.sort_values("decade")
        good = mine.holds.to_numpy()
        count = int(good.argmin()) if not good.all() else len(good)
        rows.append(
            {
                "statement": STATEMENTS[str(claim)],
                "problem": problem,
                "start": start,
                "left over right at gamma_bar": float(mine.measured.iloc[0] / mine.bound.iloc[0]),
                "holds up to": f"10^{mine.decade.iloc[count - 1]}" if count else "nowhere",
                "fails at": "" if good.all() else f"10^{mine.decade.iloc[count]}",
            }
        )
    return pd.DataFrame(rows)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    checks, ends, behaviour = tables["checks"], tables["ends"], tables["behaviour"]
    constants = tables["constants"].set_index(["problem", "name"]).value
    small = checks.problem.iloc[0]
    largest = table_largest(tables).set_index(["statement", "problem", "start"])
    theorem = checks[(checks.claim == "badr-thm4") & (checks.decade == 0)].set_index(["problem", "start"]).measured
    lemmas = checks[checks.claim != "badr-thm4"]
    zero = ends[(ends.problem == small) & (ends.start == "zero")]
    best = zero.nsmallest(1, "gap_end").iloc[0]
    bars = constants.xs("gamma_bar", level="name")
    theorems = checks[checks.claim == "badr-thm4"].merge(ends, on=["problem", "start", "decade"])
    # Step sizes at which the inequality fails on the first problem, and phi reaches its minimum all the same.
    works = (theorems.problem == small) & ~theorems.holds & (theorems.gap_end <= 1e-6 * theorems.gap_start)
    working = theorems[works].decade
    settled = behaviour[behaviour.status == "stationary"]
    unfit, fit = behaviour[~behaviour.lipschitz], behaviour[behaviour.lipschitz]
    tasks = ", ".join(parameters.task or ())
    return {
        "setting": (
            f"two synthetic problems (80 rows, 3 features, seed {parameters.seed}) and the ACS 2012 sample ({tasks}) "
            f"by {parameters.sensitive}, all rows, logistic, l2 {parameters.l2:g}, ones column penalised; "
            f"profile {parameters.profile}; metrics in the variant cited"
        ),
        "setting_data": (
            f"ACS 2012 sample ({tasks}; persons of 2012) by {parameters.sensitive}, all rows, logistic, "
            f"l2 {parameters.l2:g}, ones column penalised; profile {parameters.profile}; variant paper"
        ),
        "small_gamma": f"{bars[small]:.1e}",
        "data_gamma": f"{bars.drop(bars.index[:2]).min():.0e} to {bars.drop(bars.index[:2]).max():.0e}",
        "small_T": f"{parameters.steps:,}",
        "data_T": f"{parameters.data_steps:,}",
        "tight_zero": f"{theorem[small, 'zero']:.2g}",
        "tight_solution": f"{theorem[small, 'solution']:.1e}",
        "largest_zero": largest.loc[("Theorem 4", small, "zero"), "holds up to"],
        "largest_solution": largest.loc[("Theorem 4", small, "solution"), "holds up to"],
        "lemma_cases": f"{int(lemmas.cases.sum()):,}",
        "lemma_failures": f"{int((~lemmas.holds).sum())}",
        "moved_at_bar": f"{1 - zero.gap_end.iloc[0] / zero.gap_start.iloc[0]:.1e}",
        "best_decade": f"10^{int(best.decade)}",
        "best_gap": "0 to rounding" if best.gap_end < 1e-14 else f"{best.gap_end:.0e}",
        "best_start": f"{best.gap_start:.1e}",
        "growth": f"{unfit.growth_100.min():.0f} to {unfit.growth_100.max():.0f}",
        "growth_fit": f"{behaviour[behaviour.lipschitz].growth_100.max():.2f}",
        "converges": f"10^{int(working.max())}" if len(working) else "none",
        "stationary": f"{int((behaviour.status == 'stationary').sum())} of {len(behaviour)}",
        "unfit_gap": f"{(unfit.gap_end / unfit.range).max():.1%}",
        "fit_gap": f"{(fit.gap_end / fit.range).max():.1%}",
        "settled_gap": f"{(settled.gap_end / settled.range).max():.1%}" if len(settled) else "-",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims; one part of them alone says nothing."""
    if parameters.part != "all":
        return ()
    titles = "; ".join(info(name).title for name in datasets(parameters))
    data = f"two synthetic problems with computed constants; {titles} by {parameters.sensitive}, ones column penalised"
    return tuple(_verdict(tables, claim, data) for claim in STATEMENTS)


def _verdict(tables: dict[str, pd.DataFrame], claim: str, data: str) -> Measurement:
    mine = tables["checks"][tables["checks"].claim == claim]
    printed, beyond = mine[mine.decade <= 0], mine[mine.decade > 0]
    if claim == "badr-lemma-descent":  # an excess, which is negative where the inequality is strict
        measured = f"largest excess over the right side {printed.measured.max():.1e}"
    else:
        measured = f"largest left over right {(printed.measured / printed.bound).max():.1e}"
    measured += f" in {printed.cases.sum():,} cases on {printed.problem.nunique()} problems"
    if claim == "badr-thm4":
        solution = printed[printed.start == "solution"].measured.max()
        measured += f" (start at the solution: {solution:.1e}), every T"
    if len(beyond):
        failing = beyond[~beyond.holds].decade
        until = f"fails first at 10^{failing.min()}" if len(failing) else f"holds up to 10^{beyond.decade.max()}"
        measured += f"; with gamma beyond gamma_bar: {until} gamma_bar"
    if not printed.holds.all():
        worst = printed[~printed.holds].problem.unique()
        return Measurement(claim, measured, "not reproduced", f"violated on {', '.join(worst)}", data)
    return Measurement(claim, measured, "reproduced", _LOST.get(claim, ""), data)


# --- figures ---------------------------------------------------------------------------------------------------------


def _colours(count: int) -> list[Any]:
    import matplotlib as mpl

    return [mpl.colormaps["viridis"](x) for x in np.linspace(0.0, 0.92, count)]


def figure_theorem(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw left over right of Theorem 4 at every T on the two small problems, a line for each gamma."""
    sides = tables["sides"]
    problems = list(sides.problem.unique()[:2])
    with style():
        figure, axes = panels(2, 2, width=3.9)
        for row, problem in enumerate(problems):
            for column, start in enumerate(STARTS):
                mine = sides[(sides.problem == problem) & (sides.start == start)]
                ax, decades = axes[row, column], sorted(mine.decade.unique())
                for decade, colour in zip(decades, _colours(len(decades)), strict=True):
                    line = mine[mine.decade == decade]
                    label = r"$\bar\gamma$" if decade == 0 else rf"$10^{{{decade}}}\bar\gamma$"
                    ax.loglog(line["T"], line.left / line.right, color=colour, label=label)
                ax.axhline(1.0, color="#000000", linewidth=1.2, linestyle="--")
                ax.set(title=f"{problem}\nstart at {'0' if start == 'zero' else 'the solution'}")
        for ax in axes[1]:
            ax.set_xlabel("T")
        for ax in axes[:, 0]:
            ax.set_ylabel("left / right of Theorem 4")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
    return figure


def figure_lemmas(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw how tight each statement is at gamma_bar, a marker for each problem."""
    checks = tables["checks"]
    mine = checks[(checks.decade <= 0) & (checks.claim != "badr-lemma-descent") & (checks.start != "solution")]
    names = {claim: name for claim, name in STATEMENTS.items() if claim != "badr-lemma-descent"}
    rows = {claim: len(names) - 1 - i for i, claim in enumerate(names)}
    markers = ("o", "s", "^", "v", "D", "P", "X", "*")
    with style():
        figure, axes = panels(1, 1, width=7.4, height=3.6)
        ax = axes[0, 0]
        problems = list(checks.problem.unique())
        for problem, marker, colour in zip(problems, markers, _colours(len(problems)), strict=False):
            here = mine[mine.problem == problem]
            ratio = (here.measured / here.bound).clip(lower=1e-12)
            heights = [rows[claim] + 0.06 * (problems.index(problem) - 3) for claim in here.claim]
            ax.semilogx(ratio, heights, linestyle="none", marker=marker, color=colour, label=problem, markersize=5)
        ax.axvline(1.0, color="#000000", linestyle="--", linewidth=1.2)
        ax.set_yticks(list(rows.values()), list(names.values()))
        ax.set(xlabel="largest left / right at the printed step (1: tight)")
        legend_below(ax, 2, fontsize=8)
    return figure


def figure_gamma(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw phi's remaining excess after the last step and the theorem's ratio, against gamma over gamma_bar."""
    ends, checks = tables["ends"], tables["checks"]
    problems = list(ends.problem.unique()[:2])
    with style():
        figure, axes = panels(1, 2, width=3.9, height=3.2)
        for ax, problem in zip(axes[0], problems, strict=True):
            mine = ends[(ends.problem == problem) & (ends.start == "zero")]
            share = (mine.gap_end / mine.gap_start).clip(lower=1e-16)
            ax.loglog(10.0**mine.decade, share, color=FRONT, marker="o", label=r"$\varphi$'s excess left")
            for start, line in (("zero", "-"), ("solution", ":")):
                theorem = checks[(checks.problem == problem) & (checks.start == start) & (checks.claim == "badr-thm4")]
                label = f"left / right, start at {'0' if start == 'zero' else 'the solution'}"
                ax.loglog(10.0**theorem.decade, theorem.measured, color=PATH, linestyle=line, marker="s", label=label)
            ax.axhline(1.0, color="#000000", linestyle="--", linewidth=1.2)
            ax.set(title=problem, xlabel=r"$\gamma / \bar\gamma$", ylim=(1e-17, None))
        legend_below(axes[0, 0], 3)
    return figure


def figure_behaviour(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw phi's excess over its range along badr-gd with practical steps, a line for each metric."""
    curves = tables["curves"].merge(
        tables["behaviour"][["task", "metric", "range", "lipschitz"]], on=["task", "metric"]
    )
    tasks = list(curves.task.unique())
    colours = dict(zip(metrics.names(), _colours(len(metrics.names())), strict=True))
    with style():
        figure, axes = panels(1, len(tasks), width=3.0 if len(tasks) > 1 else 5.0, height=3.4)
        for ax, task in zip(axes[0], tasks, strict=True):
            for name, colour in colours.items():
                mine = curves[(curves.task == task) & (curves.metric == name)]
                line = "-" if mine.lipschitz.all() else "--"
                share = (mine.gap / mine["range"]).clip(lower=1e-12)
                ax.loglog(mine.t, share, color=colour, linestyle=line, label=name.replace("_", " "))
            ax.set(title=task, xlabel="step t")
        axes[0, 0].set_ylabel(r"excess of $\varphi(\lambda_t)$ / range")
        legend_below(axes[0, 0], 3 if len(tasks) > 1 else 2)
    return figure
