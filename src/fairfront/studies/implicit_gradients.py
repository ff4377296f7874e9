"""Equation 8 of the first paper: the hypergradient, checked by differences, and what leaving out the intercept does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.bilevel import Objective
from fairfront.datasets import info, load
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.metrics.base import VARIANTS
from fairfront.pareto import Scalarization
from fairfront.plotting import FRONT, PATH, legend_below, panels, style
from fairfront.risks import LOSSES, Array, GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import RiskParameters, meta, split
from fairfront.theory import implicit_gradients as theory

__all__ = [
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_agreement",
    "figure_intercept",
    "figure_slopes",
    "figure_steps",
    "measure",
    "run",
    "table_agreement",
    "table_signs",
    "units",
]

TITLE = "Implicit gradients: one adjoint system"
TOLERANCE = 1e-6
TASKS = ("employment", "income", "travel-time")
COUNTS = {"classification": (2, 3, 6), "regression": (2, 3, 4)}
ROWS = {"classification": "acs2012-income", "regression": "communities"}
PARTITIONS: dict[str, tuple[str, ...]] = {"classification": ("gender", "race"), "regression": ("race",)}
_STEPS = np.geomspace(1e-7, 1e-2, 21)
_TOLERANCES = np.geomspace(1e-11, 1e-2, 10)


@dataclass(frozen=True, kw_only=True)
class Parameters(RiskParameters):
    """What the study can be told; ``fairfront describe implicit_gradients`` shows the same in a table."""

    loss: tuple[str, ...] = field(
        default=tuple(LOSSES), metadata=meta(help="losses of the lower level", choices=tuple(LOSSES))
    )
    metric_sees_intercept: bool = field(
        default=True, metadata=meta(help="whether the metrics see the score with its intercept, when that is left out")
    )
    task: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="ACS 2012 tasks on which the intercept is left out", choices=TASKS)
    )
    points: int | None = field(default=None, metadata=meta(help="random weights of each case", low=1, high=1000))
    grid: int | None = field(
        default=None, metadata=meta(help="weights at which the intercept is left out", low=3, high=10000)
    )


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    tasks = {LOSSES[loss].task for loss in parameters.loss}
    names = [ROWS[task] for task in ROWS if task in tasks] + [f"acs2012-{t}" for t in parameters.resolved().task or ()]
    return tuple(dict.fromkeys(names))


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts into which the study's work falls: a loss each, then a task each."""
    assert parameters.task is not None
    losses = split(dataclasses.replace(parameters, task=()), "loss")
    tasks = split(dataclasses.replace(parameters, loss=()), "task")
    return (*losses, *tasks) or (parameters,)


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
        agreement: a row per loss, metric, variant, number of groups and random weights: derivative along a random
        e_a - e_b by the adjoint and by differences, error, and solves.
        steps: error against the step of a plain central difference, and against the lower solve's tolerance.
        intercept: at weights along the simplex of two groups, the derivative by differences, by the whole adjoint and
        by the one without the intercept.
    """
    parameters = parameters.resolved()
    assert parameters.points and parameters.grid and parameters.task is not None
    agreement: list[dict[str, Any]] = []
    cases = list(_cases(parameters))
    problems = {
        (loss, count): _problem(loss, count, parameters)
        for loss in parameters.loss
        for count in COUNTS[LOSSES[loss].task]
    }
    for loss, count, name, variant in progress(cases, "hypergradients", len(cases)):
        agreement += _agreements(problems[loss, count], loss, count, name, variant, parameters)
    steps = [row for loss in parameters.loss for row in _steps(problems[loss, 2], loss)]
    intercept: list[dict[str, Any]] = []
    places = [(task, name) for task in parameters.task for name in metrics.names()]
    for task, name in progress(places, "without the intercept", len(places)):
        intercept += _intercept(task, name, parameters)
    return {"agreement": pd.DataFrame(agreement), "steps": pd.DataFrame(steps), "intercept": pd.DataFrame(intercept)}


def _cases(parameters: Parameters) -> Iterator[tuple[str, int, str, str]]:
    for loss in parameters.loss:
        for count in COUNTS[LOSSES[loss].task]:
            for name in metrics.names():
                for variant in VARIANTS:
                    if _defined(name, variant, loss):
                        yield loss, count, name, variant


def _defined(name: str, variant: str, loss: str) -> bool:
    try:
        metrics.get(name, variant=variant, task=LOSSES[loss].task)  # type: ignore[arg-type]
    except ArgumentError:
        return False
    return True


def _problem(loss: str, count: int, parameters: Parameters) -> GroupRisks:
    task = LOSSES[loss].task
    data = load(ROWS[task], sensitive=PARTITIONS[task], test_size=0.0, seed=parameters.seed, groups=count)
    return GroupRisks.from_data(data, loss=loss, l2=parameters.l2, penalize_intercept=parameters.penalize_intercept)


def _bind(risks: GroupRisks, name: str, variant: str) -> BoundMetric:
    metric = metrics.get(name, variant=variant, task=risks.loss.task)  # type: ignore[arg-type]
    return metric.bind(risks.y, risks.groups, risks.n_groups)


def _agreements(
    risks: GroupRisks, loss: str, count: int, name: str, variant: str, parameters: Parameters
) -> list[dict[str, Any]]:
    """Compare at random weights; weights at which the squared hinge leaves no step alone are drawn again."""
    assert parameters.points is not None
    generator, redrawn = np.random.default_rng(parameters.seed), 0
    rows: list[dict[str, Any]] = []
    bound = _bind(risks, name, variant)
    while len(rows) < parameters.points:
        weights = generator.dirichlet(np.full(count, 5.0))
        a, b = generator.choice(count, size=2, replace=False)
        try:
            found = theory.equation_8(risks, bound, weights, np.eye(count)[a] - np.eye(count)[b])
        except ArgumentError:
            redrawn += 1
            if redrawn > 100:
                raise
            continue
        case = {"loss": loss, "groups": count, "metric": name, "variant": variant}
        numbers = {"exact": found.exact, "numeric": found.numeric, "error": found.error, "step": found.step}
        solves = {"adjoint_solves": found.adjoint_solves, "lower_solves": found.lower_solves, "redrawn": redrawn}
        rows.append(case | numbers | solves)
    return rows


def _steps(risks: GroupRisks, loss: str) -> Iterator[dict[str, Any]]:
    """Yield errors of a plain central difference by its step, and of the hypergradient by the lower tolerance."""
    weights, direction = np.array([0.4, 0.6]), np.array([1.0, -1.0])
    bound = _bind(risks, "individual_fairness", "paper")
    exact = float(Objective(risks, bound, tolerance=1e-13).evaluate(weights).gradient @ direction)
    solver = Scalarization(risks, tolerance=1e-13)
    for h in _STEPS:
        ends = [bound.value(solver.solve(weights + k * h * direction).point.scores) for k in (1, -1)]
        yield {"loss": loss, "what": "step", "x": h, "error": abs((ends[0] - ends[1]) / (2 * h) - exact) / abs(exact)}
    for tolerance in _TOLERANCES:
        objective = Objective(risks, bound, tolerance=tolerance)
        objective.evaluate([0.5, 0.5])  # a warm start from nearby, as in a search
        found = float(objective.evaluate(weights).gradient @ direction)
        yield {"loss": loss, "what": "tolerance", "x": tolerance, "error": abs(found - exact) / abs(exact)}


def _intercept(task: str, name: str, parameters: Parameters) -> list[dict[str, Any]]:
    """Compare the whole adjoint and the truncated one along the simplex, with and without gender among the features."""
    direction = np.array([1.0, -1.0])
    rows: list[dict[str, Any]] = []
    assert parameters.grid is not None
    for features, keep in (("with gender", True), ("without gender", False)):
        data = load(f"acs2012-{task}", sensitive=["gender"], test_size=0.0, seed=parameters.seed, keep_sensitive=keep)
        risks = GroupRisks.from_data(data, l2=parameters.l2, penalize_intercept=parameters.penalize_intercept)
        bound, solver, drop = _bind(risks, name, "paper"), Scalarization(risks), not parameters.metric_sees_intercept
        for first in np.linspace(0.02, 0.98, parameters.grid):
            weights = np.array([first, 1.0 - first])
            model = solver.solve(weights)
            rows.append(
                {
                    "task": task,
                    "metric": name,
                    "features": features,
                    "lambda_1": first,
                    "phi": bound.value(model.point.scores - (model.w[0] if drop else 0.0)),
                    "numeric": theory.slope_by_differences(risks, bound, weights, direction, 1e-4, drop_intercept=drop),
                    "whole": _along(theory.slope_of_model(model, bound, drop_intercept=drop)),
                    "truncated": _along(theory.without_intercept(model, bound, drop_intercept=drop)),
                }
            )
    return rows


def _along(gradient: Array) -> float:
    return float(gradient[0] - gradient[1])


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_agreement(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the largest error by loss and metric, a column for each number of groups."""
    frame = tables["agreement"]
    wide = frame.pivot_table(
        index=["loss", "metric", "variant"], columns="groups", values="error", aggfunc="max", sort=False
    )
    wide.columns = [f"S = {count}" for count in wide.columns]
    return wide.reset_index()


def _judged(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose derivative is clearly not 0, with whether the truncated one has the wrong sign."""
    reach = frame.groupby(["task", "metric", "features"], sort=False).numeric.transform(lambda x: x.abs().max())
    kept = frame[frame.numeric.abs() > 1e-2 * reach].copy()
    kept["wrong"] = np.sign(kept.truncated) != np.sign(kept.numeric)
    kept["off"] = (kept.truncated - kept.numeric).abs() / reach
    kept["whole_off"] = (kept.whole - kept.numeric).abs() / reach
    return kept


def table_signs(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how often the truncated adjoint has the wrong sign, and how far it is off, by task and metric."""
    kept = _judged(tables["intercept"])
    grouped = kept.groupby(["task", "metric", "features"], sort=False)
    return grouped.agg(
        weights=("wrong", "size"), wrong=("wrong", "sum"), off=("off", "max"), whole_off=("whole_off", "max")
    ).reset_index()


def _worst(tables: dict[str, pd.DataFrame]) -> pd.Series:
    """Return, where signs are wrong most often, the row with a wrong sign that is farthest off."""
    kept = _judged(tables["intercept"])
    share = kept.groupby(["task", "metric", "features"], sort=False).wrong.transform("mean")
    most = kept[share == share.max()]
    return (most[most.wrong] if most.wrong.any() else most).nlargest(1, "off").iloc[0]


def _most_wrong(tables: dict[str, pd.DataFrame]) -> str:
    """Return the place with the largest share of wrong signs, in words."""
    signs = table_signs(tables)
    worst = signs.assign(share=signs.wrong / signs.weights).nlargest(1, "share").iloc[0]
    name = str(worst.metric).replace("_", " ")
    return f"{worst.task}, {name}, {worst.features}: {worst.wrong} of {worst.weights}"


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    agreement, kept, worst = tables["agreement"], _judged(tables["intercept"]), _worst(tables)
    steps = tables["steps"]
    plain = steps[steps.what == "step"]
    best = plain.loc[plain.groupby("loss").error.idxmin()]
    where = ", ".join(info(name).title for name in datasets(parameters))
    free = "penalised" if parameters.penalize_intercept else "free"
    shares = kept.groupby("features", sort=False).wrong.mean()
    return {
        "setting": f"{where}, all rows; l2 {parameters.l2:g}, intercept {free}; "
        f"profile {parameters.profile}; both variants",
        "setting_intercept": (
            f"ACS 2012 sample ({', '.join(parameters.task or ())}; persons of 2012) by gender, all rows, logistic, "
            f"l2 {parameters.l2:g}, intercept {free}; profile {parameters.profile}; variant paper; "
            f"metrics see the score {'with' if parameters.metric_sees_intercept else 'without'} its intercept"
        ),
        "cases": f"{len(agreement):,}",
        "largest_error": f"{agreement.error.max():.0e}",
        "median_error": f"{agreement.error.median():.0e}",
        "solves": f"{int(agreement.adjoint_solves.max())}",
        "best_steps": ", ".join(
            f"{x:.0e} ({str(loss).replace('_', ' ')})" for x, loss in zip(best.x, best.loss, strict=True)
        ),
        "judged": f"{len(kept):,}",
        "wrong_with": f"{shares['with gender']:.0%}",
        "wrong_without": f"{shares['without gender']:.0%}",
        "most_wrong": _most_wrong(tables),
        "whole_off": f"{kept.whole_off.max():.0e}",
        "truncated_off": f"{kept.off.max():.1f}",
        "worst_where": f"{worst.task}, {str(worst.metric).replace('_', ' ')}, {worst.features}",
        "worst_lambda": f"{worst.lambda_1:.2f}",
        "worst_numeric": f"{worst.numeric:+.4f}",
        "worst_whole": f"{worst.whole:+.4f}",
        "worst_truncated": f"{worst.truncated:+.4f}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claim."""
    frame = tables["agreement"]
    data = "; ".join(info(name).title for name in datasets(parameters))
    measured = (
        f"one adjoint system each; largest error against central differences {frame.error.max():.1e} (allowed "
        f"{TOLERANCE:.0e}) in {len(frame):,} cases: {frame.loss.nunique()} losses, {frame.metric.nunique()} metrics, "
        f"{', '.join(str(s) for s in sorted(frame.groups.unique()))} groups"
    )
    if (frame.error > TOLERANCE).any() or (frame.adjoint_solves > 1).any():
        bad = frame[frame.error > TOLERANCE]
        where = ", ".join(sorted(set(bad.loss + "/" + bad.metric))) or "more than one solve"
        return (Measurement("badr-eq8", measured, "not reproduced", f"no agreement: {where}", data),)
    if set(parameters.loss) != set(LOSSES):
        missing = ", ".join(sorted(set(LOSSES) - set(parameters.loss)))
        return (Measurement("badr-eq8", measured, "reproduced in part", f"not run: {missing}", data),)
    return (Measurement("badr-eq8", measured, "reproduced", "", data),)


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_agreement(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw every case's error, a panel for each loss, a row for each metric, a marker for each number of groups."""
    frame = tables["agreement"]
    losses, names = list(frame.loss.unique()), list(metrics.names())
    markers = {2: "o", 3: "^", 4: "s", 6: "D"}
    with style():
        figure, axes = panels(1, len(losses), width=2.6, height=3.2)
        for ax, loss in zip(axes[0], losses, strict=True):
            for place, (count, marker) in enumerate(markers.items()):
                mine = frame[(frame.loss == loss) & (frame.groups == count)]
                heights = [len(names) - 1 - names.index(name) + 0.16 * (1.5 - place) for name in mine.metric]
                ax.semilogx(
                    mine.error.clip(lower=1e-16),
                    heights,
                    linestyle="none",
                    marker=marker,
                    markersize=3.5,
                    label=f"S = {count}",
                )
            ax.axvline(TOLERANCE, color="#000000", linestyle="--", linewidth=1.2)
            ax.set_yticks(range(len(names)), [name.replace("_", " ") for name in reversed(names)])
            if ax is not axes[0, 0]:
                ax.tick_params(labelleft=False)
            ax.set(
                title=loss.replace("_", " "), xlabel="relative error", xlim=(1e-17, 1e-4), ylim=(-0.6, len(names) - 0.4)
            )
        legend_below(axes[0, 0], 4)
    return figure


def figure_steps(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw errors against the difference's step (left) and the lower solve's tolerance (right)."""
    frame = tables["steps"]
    colours = dict(zip(LOSSES, (FRONT, PATH, "#009E73"), strict=True))
    with style():
        figure, axes = panels(1, 2, width=3.6, height=2.9)
        for ax, what in zip(axes[0], ("step", "tolerance"), strict=True):
            for loss in frame.loss.unique():
                mine = frame[(frame.loss == loss) & (frame.what == what)]
                label = loss.replace("_", " ")
                ax.loglog(
                    mine.x, mine.error.clip(lower=1e-16), marker="o", markersize=3, color=colours[loss], label=label
                )
        axes[0, 0].set(xlabel="step h of the difference", ylabel="relative error", title="plain central difference")
        axes[0, 1].set(xlabel="tolerance of the lower solve", title="hypergradient")
        legend_below(axes[0, 0], 3)
    return figure


def figure_intercept(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the derivative without the intercept against that by differences, both over the largest by differences."""
    frame = tables["intercept"]
    reach = frame.groupby(["task", "metric", "features"], sort=False).numeric.transform(lambda x: x.abs().max())
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.4)
        for ax, features in zip(axes[0], frame.features.unique(), strict=True):
            mine = frame.features == features
            x = (frame.numeric / reach)[mine]
            for column, colour, marker in (("truncated", PATH, "o"), ("whole", FRONT, ".")):
                label = "adjoint without the intercept" if column == "truncated" else "whole adjoint"
                y = (frame[column] / reach)[mine].clip(-3, 3)
                ax.plot(x, y, linestyle="none", marker=marker, markersize=3.5, color=colour, label=label)
            for corner in ((-1.05, 0.0), (0.0, -3.1)):
                ax.add_patch(_rectangle(corner, 1.05, 3.1))
            ax.set(
                title=f"features {features}",
                xlabel="derivative by differences",
                xlim=(-1.05, 1.05),
                ylim=(-3.1, 3.1),
            )
        axes[0, 0].set_ylabel("derivative by an adjoint")
        legend_below(axes[0, 0], 2)
    return figure


def _rectangle(corner: tuple[float, float], width: float, height: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor="#CC3311", alpha=0.1, linewidth=0, zorder=0)


def figure_slopes(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw phi where the sign is most wrong, with the slopes that the two adjoint systems give."""
    worst, frame = _worst(tables), tables["intercept"]
    mine = frame[(frame.task == worst.task) & (frame.metric == worst.metric) & (frame.features == worst.features)]
    with style():
        figure, axes = panels(1, 1, width=5.0, height=3.2)
        ax = axes[0, 0]
        ax.plot(mine.lambda_1, mine.phi, color="#000000", label=r"$\varphi$")
        half = 0.04
        low, high = mine.phi.min(), mine.phi.max()
        few = mine.iloc[:: max(1, len(mine) // 8)]
        for column, colour, label in (("whole", FRONT, "whole adjoint"), ("truncated", PATH, "without the intercept")):
            for i, (first, phi, slope) in enumerate(zip(few.lambda_1, few.phi, few[column], strict=True)):
                # Steep slopes are drawn shorter, so that they stay in the picture.
                reach = min(half, 0.25 * (high - low) / max(abs(slope), 1e-300))
                x = np.array([first - reach, first + reach])
                y = phi + slope * (x - first)
                ax.plot(x, y, color=colour, linewidth=2.4, label=label if i == 0 else None)
        title = f"{worst.task}, {str(worst.metric).replace('_', ' ')}, {worst.features}"
        ax.set(xlabel=r"weight $\lambda_1$ of group 1 (male)", ylabel=r"$\varphi(\lambda_1)$", title=title)
        ax.legend()
    return figure
