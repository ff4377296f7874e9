"""Figure 1 and Propositions 1 to 3 of the first paper: regularising for fairness leaves the Pareto front.

For each task the study traces the front of the two groups' risks, fits every strategy of section 5.1.3, follows the
regularisation path ``0.5 F_1 + 0.5 F_2 + nu M``, and certifies every point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairfront import metrics, theory
from fairfront.bilevel import BilevelSolution, exhaustive_search
from fairfront.datasets import info, load
from fairfront.errors import ArgumentError
from fairfront.metrics import BoundMetric
from fairfront.pareto import (
    Certificate,
    Front,
    PenalizedModel,
    Strategy,
    balanced_weights,
    certify,
    erm_weights,
    minimax,
    one_group,
    regularization_path,
    scalarized,
    trace,
    two_group_weights,
    uniform_weights,
)
from fairfront.plotting import FRONT, PATH, STRATEGIES, UNFAIRNESS_MAP, legend_below, mark_strategies, panels, style
from fairfront.risks import GroupRisks, RiskPoint
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import RiskParameters, meta

__all__ = [
    "EFFICIENT",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_certificates",
    "figure_coefficients",
    "figure_cost",
    "figure_fronts",
    "measure",
    "run",
    "table_certificates",
    "table_reach",
]

TITLE = "Pareto inefficiency of regularisation"
TASKS = ("employment", "income", "travel-time")
EFFICIENT = 1e-6
"""A certificate at most this large counts as Pareto-efficient."""
DOMINATED = 1e-4
"""A verified improvement above this counts as domination that matters."""
# Of the tables that can come out empty: nothing is dominated where every penalty is tiny.
_COLUMNS = {
    "dominating": (
        *("task", "penalty", "loss_1", "loss_2", "fairness", "certificate", "improvement"),
        *("by_lambda_1", "by_loss_1", "by_loss_2", "by_fairness"),
    ),
    "coefficients": ("task", "feature", "regularised", "dominating"),
}


@dataclass(frozen=True, kw_only=True)
class Parameters(RiskParameters):
    """What the study can be told; ``fairfront describe pareto_inefficiency`` shows the same in a table."""

    task: tuple[str, ...] = field(
        default=TASKS,
        metadata=meta(help="tasks on the ACS 2012 sample, one column of Figure 1 each", choices=TASKS, distinct=True),
    )
    sensitive: str = field(
        default="gender",
        metadata=meta(
            help="sensitive attribute; its two values are the groups",
            choices=("gender", "age", "citizen", "disability"),
        ),
    )
    metric: str = field(default="individual_fairness", metadata=meta(help="unfairness metric", choices=metrics.names))
    variant: Literal["paper", "cited"] = field(
        default="paper", metadata=meta(help="the metric as published, or as the definition that it cites")
    )
    # The bound at the front's ends grows like 1/l2; below this range it is not brought under `EFFICIENT`.
    l2: float = field(default=1e-2, metadata=meta(help="weight of |w|^2/2 in each group's risk", low=5e-3, high=1e3))
    path_weights: str = field(
        default="uniform", metadata=meta(help="weights of the risks along the path", choices=("uniform", "erm"))
    )
    penalty_min: float = field(default=1e-6, metadata=meta(help="least penalty nu of the path", low=1e-12, high=1e6))
    penalty_max: float = field(
        default=0.31622776601683794, metadata=meta(help="largest penalty nu of the path (10^-0.5)", low=1e-12, high=1e6)
    )
    penalties: int | None = field(default=None, metadata=meta(help="points of the path", low=2, high=10000))
    front_points: int | None = field(default=None, metadata=meta(help="points of the front", low=3, high=100000))
    levels: int | None = field(
        default=None, metadata=meta(help="random levels at which Proposition 2 is checked", low=1, high=1000)
    )

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        if self.penalty_min >= self.penalty_max:
            raise ArgumentError(
                "penalty_min", f"must be below penalty_max ({self.penalty_max:g}), got {self.penalty_min:g}"
            )


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return tuple(f"acs2012-{task}" for task in parameters.task)


@dataclass(frozen=True, eq=False)
class _Problem:
    """One task: its risks, its metric, and what was found on it."""

    task: str
    risks: GroupRisks
    metric: BoundMetric
    front: Front
    bilevel: BilevelSolution
    strategies: tuple[Strategy, ...]
    path: tuple[PenalizedModel, ...]


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
        points: a row per point of the front, the path and the strategies (task, curve, name, lambda_1, penalty, loss_1,
        loss_2, fairness, certificate: the dual bound on the total improvement, improvement: the verified one).
        dominating: a row per dominated point of the path with the model that dominates it.
        coefficients: both models' coefficients at the last point of the path.
        minima: every local minimum of the metric along the front.
        groups: rows, groups and features of each task.
        checks: what Propositions 1 to 3 came to.
    """
    parameters = parameters.resolved()
    generator = np.random.default_rng(parameters.seed)
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("points", "dominating", "coefficients", "minima", "groups", "checks")
    }
    for task in parameters.task:
        data = load(f"acs2012-{task}", sensitive=[parameters.sensitive], test_size=0.0, seed=parameters.seed)
        sizes = dict(enumerate(data.group_sizes, start=1))
        tables["groups"].append(
            {"task": task, "target": data.target, "rows": data.n_rows, "features": data.n_features}
            | {f"group_{a}": name for a, name in enumerate(data.group_names, start=1)}
            | {f"rows_{a}": int(size) for a, size in sizes.items()}
        )
        risks = GroupRisks.from_data(data, l2=parameters.l2, penalize_intercept=parameters.penalize_intercept)
        problem = _solve(task, risks, parameters)
        tables["minima"] += _minima(problem)
        rows = list(_points(problem))
        for row, point in progress(rows, f"certificates, {task}", len(rows)):
            certificate = certify(risks, point.w)
            tables["points"].append(row | {"certificate": certificate.slack, "improvement": certificate.improvement})
            if row["curve"] == "regularisation" and certificate.dominating:
                tables["dominating"].append(_domination(problem, row, certificate))
                last = certificate.dominating.w
        slacks = [row["certificate"] for row in tables["points"] if (row["task"], row["curve"]) == (task, "front")]
        tables["checks"] += _checks(problem, slacks, generator, parameters)
        if problem.path and certificate.dominating:
            tables["coefficients"] += [
                {"task": task, "feature": name, "regularised": float(a), "dominating": float(b)}
                for name, a, b in zip(data.feature_names, problem.path[-1].point.w, last, strict=True)
            ]
    example = theory.proposition_3_counterexample()
    tables["checks"].append(
        {
            "task": "counterexample",
            "statement": "Proposition 3 as printed: a min-max model of convex risks is dominated",
            "measured": example.improvement,
            "bound": EFFICIENT,
            "holds": not example.refutes,
            "cases": 1,
        }
    )
    return {name: pd.DataFrame(rows, columns=_COLUMNS.get(name)) for name, rows in tables.items()}


def _solve(task: str, risks: GroupRisks, parameters: Parameters) -> _Problem:
    bound = metrics.get(parameters.metric, variant=parameters.variant).bind(risks.y, risks.groups, risks.n_groups)
    assert parameters.front_points is not None and parameters.penalties is not None
    bilevel = exhaustive_search(risks, bound, resolution=max(parameters.front_points, 101))
    sizes = risks.group_sizes
    found = (
        scalarized(risks, "erm", erm_weights(sizes)),
        scalarized(risks, "uniform", uniform_weights(risks.n_groups)),
        scalarized(risks, "balanced", balanced_weights(sizes)),
        one_group(risks, bound.value),
        minimax(risks),
        Strategy("badr", bilevel.model),
    )
    # Each solved once more from a cold start: strategies that choose the same weights then have the same numbers.
    strategies = tuple(scalarized(risks, strategy.name, strategy.model.weights) for strategy in found)
    base = uniform_weights(2) if parameters.path_weights == "uniform" else erm_weights(sizes)
    penalties = np.geomspace(parameters.penalty_min, parameters.penalty_max, parameters.penalties)
    return _Problem(
        task=task,
        risks=risks,
        metric=bound,
        front=trace(risks, two_group_weights(parameters.front_points)),
        bilevel=bilevel,
        strategies=strategies,
        path=regularization_path(risks, bound, penalties, base),
    )


def _points(problem: _Problem) -> Iterator[tuple[dict[str, Any], RiskPoint]]:
    """Yield every point's row, still without its certificate, and the model behind it."""

    def row(
        curve: str, point: RiskPoint, name: str = "", lambda_1: float = np.nan, penalty: float = np.nan
    ) -> dict[str, Any]:
        first, second = map(float, point.losses)
        return {
            "task": problem.task,
            "curve": curve,
            "name": name,
            "lambda_1": lambda_1,
            "penalty": penalty,
            "loss_1": first,
            "loss_2": second,
            "fairness": problem.metric.value(point.scores),
        }

    for model in problem.front.models:
        yield row("front", model.point, lambda_1=float(model.weights[0])), model.point
    for strategy in problem.strategies:
        model = strategy.model
        yield row("strategy", model.point, strategy.name, lambda_1=float(model.weights[0])), model.point
    for penalized in problem.path:
        yield row("regularisation", penalized.point, penalty=penalized.penalty), penalized.point


def _domination(problem: _Problem, row: dict[str, Any], certificate: Certificate) -> dict[str, Any]:
    model = certificate.dominating
    assert model is not None
    return {
        **{name: row[name] for name in ("task", "penalty", "loss_1", "loss_2", "fairness")},
        "certificate": certificate.slack,
        "improvement": certificate.improvement,
        "by_lambda_1": float(model.weights[0]),
        "by_loss_1": float(model.losses[0]),
        "by_loss_2": float(model.losses[1]),
        "by_fairness": problem.metric.value(model.point.scores),
    }


def _minima(problem: _Problem) -> list[dict[str, Any]]:
    found = problem.bilevel
    return [
        {"task": problem.task, "lambda_1": float(weights[0]), "fairness": float(value), "guarantee": found.message}
        for weights, value in zip(found.local_minima, found.minimum_values, strict=True)
    ]


def _checks(
    problem: _Problem, slacks: list[float], generator: np.random.Generator, parameters: Parameters
) -> list[dict[str, Any]]:
    assert parameters.levels is not None
    checks = (
        theory.proposition_1(slacks, tolerance=EFFICIENT),
        theory.proposition_2(problem.risks, generator, cases=parameters.levels),
        theory.proposition_3(problem.risks, tolerance=EFFICIENT),
    )
    return [{"task": problem.task} | {f.name: getattr(check, f.name) for f in fields(check)} for check in checks]


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_certificates(tables: dict[str, pd.DataFrame], rows: int = 4) -> pd.DataFrame:
    """Return ``rows`` points of each task's path: their risks, certificate, and those of the dominating model."""
    frame = tables["dominating"]
    chosen = [
        group.iloc[np.unique(np.linspace(0, len(group) - 1, rows).round().astype(int))]
        for _, group in frame.groupby("task", sort=False)
    ]
    columns = {
        "task": "task",
        "penalty": "penalty",
        "certificate": "certificate",
        "loss_1": "risk 1",
        "by_loss_1": "dominated by",
        "loss_2": "risk 2",
        "by_loss_2": "dominated by ",
        "fairness": "unfairness",
        "by_fairness": "of dominating",
    }
    return pd.concat(chosen or [frame], ignore_index=True)[list(columns)].rename(columns=columns)


def table_reach(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, for each task, the least unfairness on the front and on the path, with the risks paid for it."""
    rows = []
    for task, points in tables["points"].groupby("task", sort=False):
        best = {
            curve: points[points.curve == curve].nsmallest(1, "fairness").iloc[0]
            for curve in ("front", "regularisation")
        }
        uniform = points[points.name == "uniform"].iloc[0]
        path = best["regularisation"]
        rows.append(
            {
                "task": task,
                "least on the front": best["front"].fairness,
                "largest on the front": points[points.curve == "front"].fairness.max(),
                "least on the path": path.fairness,
                "risk 1: path minus uniform": path.loss_1 - uniform.loss_1,
                "risk 2: path minus uniform": path.loss_2 - uniform.loss_2,
                "certificate there": path.certificate,
            }
        )
    return pd.DataFrame(rows)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    reach = table_reach(tables).set_index("task")
    points, checks = tables["points"], tables["checks"]
    efficient = points[points.curve != "regularisation"].certificate.max()
    path = points[points.curve == "regularisation"]
    share = (path.improvement > DOMINATED).groupby(path.task, sort=False).mean()
    first = parameters.task[0]
    beyond = [str(task) for task, row in reach.iterrows() if row["least on the path"] < row["least on the front"]]
    dearer = [
        str(task)
        for task, row in reach.iterrows()
        if min(row["risk 1: path minus uniform"], row["risk 2: path minus uniform"]) > 0
    ]
    counterexample = checks[checks.task == "counterexample"].iloc[0]
    strategies = points[points.curve == "strategy"].pivot_table(index="task", columns="name", values="fairness")
    tied = [task for task in parameters.task if strategies.loc[task].drop("badr").min() <= strategies.loc[task, "badr"]]
    samples = ", ".join(f"{row.task} {row.rows:,} rows" for row in tables["groups"].itertuples())
    gap_1, gap_2 = (float(reach[f"risk {a}: path minus uniform"].loc[first]) for a in (1, 2))
    least_front, least_path = (float(reach[f"least on the {curve}"].loc[first]) for curve in ("front", "path"))
    return {
        "setting": (
            f"ACS 2012 sample ({samples}; persons of 2012, not the 2018 state files) by {parameters.sensitive}, "
            f"all rows, no split; profile {parameters.profile}; metric {_label(parameters)}, "
            f"variant {parameters.variant}; l2 {parameters.l2:g}, intercept "
            f"{'penalised' if parameters.penalize_intercept else 'free'}; path from {parameters.path_weights} weights"
        ),
        "profile": parameters.profile,
        "task_first": first,
        "front_certificate": f"{efficient:.0e}",
        "front_count": f"{int((points.curve != 'regularisation').sum()):,}",
        "path_count": f"{int((points.curve == 'regularisation').sum()):,}",
        "share_dominated": ", ".join(f"{task} {value:.0%}" for task, value in share.items()),
        "front_least": f"{least_front:.3f}",
        "path_least": f"{least_path:.3f}",
        "path_price_1": f"{gap_1:+.4f}",
        "path_price_2": f"{gap_2:+.4f}",
        "path_start": parameters.path_weights,
        "example": _example(tables["dominating"], first),
        "beyond": _listed(beyond),
        "dearer": _listed(dearer),
        "counterexample": f"{counterexample.measured:.3f}",
        "tied": _listed(tied),
        "minima": ", ".join(
            f"{task} {count}" for task, count in tables["minima"].groupby("task", sort=False).size().items()
        ),
    }


def _listed(tasks: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(tasks[:-1]), *tasks[-1:]])) or "no task"


def _example(dominating: pd.DataFrame, task: str) -> str:
    """Return in words the model of a task's path that can be improved most."""
    mine = dominating[dominating.task == task]
    if mine.empty:
        return f"no model of the path on {task} is seen to be dominated"
    worst = mine.nlargest(1, "improvement").iloc[0]
    return (
        f"on {task}, for instance, the model at \N{GREEK SMALL LETTER NU} = {worst.penalty:.2g} has the risks "
        f"({worst.loss_1:.4f}, {worst.loss_2:.4f}); a model with the risks "
        f"({worst.by_loss_1:.4f}, {worst.by_loss_2:.4f}) exists, better by {worst.improvement:.2g} in total "
        f"and worse for nobody"
    )


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims."""
    points, checks = tables["points"], tables["checks"]
    data = "; ".join(
        f"{info(name).title}, {rows:,} rows by {parameters.sensitive}"
        for name, rows in zip(datasets(parameters), tables["groups"].rows, strict=True)
    )
    return (
        *(_proposition(checks, number, data) for number in (1, 2, 3)),
        _departs(points, parameters, data),
        _least(points, tables["minima"], data),
    )


def _proposition(checks: pd.DataFrame, number: int, data: str) -> Measurement:
    claim = f"badr-prop{number}"
    mine = checks[checks.statement.str.startswith(f"Proposition {number}:")]
    quantity = {1: "largest certificate", 2: "largest difference of a risk", 3: "largest certificate"}[number]
    measured = f"{quantity} {mine.measured.max():.1e} (allowed {mine.bound.max():.0e}) on {mine.cases.sum()} models"
    if not mine.holds.all():
        return Measurement(claim, measured, "not reproduced", "a certificate exceeds its tolerance", data)
    if number == 2:
        return Measurement(claim, measured, "reproduced", "", data)
    example = checks[checks.task == "counterexample"].iloc[0]
    where = "on the simplex's boundary" if number == 1 else "for merely convex risks"
    return Measurement(
        claim,
        f"{measured}; counterexample improved by {example.measured:.3f}",
        "reproduced in part",
        f"holds with strict convexity, not as printed: |w_1| + 1 and |w_2| refute it {where}",
        data,
    )


def _departs(points: pd.DataFrame, parameters: Parameters, data: str) -> Measurement:
    path = points[(points.curve == "regularisation") & (points.penalty >= 1e-3)]
    if path.empty:
        reason = f"the path ends at {parameters.penalty_max:g}"
        return Measurement("badr-fig1-path", "no penalty >= 1e-3", "not testable", reason, data)
    shares = (path.improvement > DOMINATED).groupby(path.task, sort=False).mean()
    worst = points[points.curve == "regularisation"].groupby("task", sort=False).improvement.max()
    measured = "; ".join(
        f"{task}: {shares.get(task, 0.0):.0%} improved by more than 1e-4, at most by {worst[task]:.1e}"
        for task in worst.index
    )
    measured = f"of the points with penalty >= 1e-3, {measured}"
    departs = bool(len(shares) == len(worst) and (shares >= 0.5).all())
    if not departs:
        return Measurement("badr-fig1-path", measured, "not reproduced", "the path stays near the front", data)
    if set(parameters.task) != set(TASKS):
        return Measurement(
            "badr-fig1-path", measured, "reproduced in part", f"{len(parameters.task)} of 3 samples", data
        )
    return Measurement("badr-fig1-path", measured, "reproduced", "", data)


def _least(points: pd.DataFrame, minima: pd.DataFrame, data: str) -> Measurement:
    front = points[points.curve == "front"].groupby("task", sort=False).fairness.agg(["min", "max"])
    strategies = points[points.curve == "strategy"].pivot_table(index="task", columns="name", values="fairness")
    least = bool((strategies.sub(strategies["badr"], axis=0) >= 0).all(axis=None))
    varies = bool((front["max"] > 1.01 * front["min"]).all())
    minimum = minima.groupby("task", sort=False).size()
    rivals = strategies.drop(columns="badr").min(axis=1)
    measured = "; ".join(
        f"{task}: {front['min'][task]:.3f} to {front['max'][task]:.3f} on the front, {minimum[task]} local minima, "
        f"badr {strategies['badr'][task]:.3f}, next best {rivals[task]:.3f}"
        for task in front.index
    )
    if least and varies:
        return Measurement("badr-fig1-metric", measured, "reproduced", "", data)
    reason = "another strategy is fairer" if not least else "the metric does not vary along the front"
    return Measurement("badr-fig1-metric", measured, "not reproduced", reason, data)


# --- figures ---------------------------------------------------------------------------------------------------------


def _label(parameters: Parameters) -> str:
    return parameters.metric.replace("_", " ")


def figure_fronts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw Figure 1: the front and the path in the plane of the risks (top), the metric along the front (bottom)."""
    points, groups = tables["points"], tables["groups"].set_index("task")
    with style():
        figure, axes = panels(2, len(groups))
        for column, task in enumerate(groups.index):
            mine = points[points.task == task]
            _draw_plane(figure, axes[0, column], mine, groups.loc[task])
            _draw_metric(axes[1, column], mine, groups.loc[task])
        axes[1, 0].set_ylabel(_label(parameters))
        legend_below(axes[0, 0], 4)
    return figure


def _draw_plane(figure: Figure, ax: Axes, points: pd.DataFrame, group: pd.Series) -> None:
    front, path = points[points.curve == "front"], points[points.curve == "regularisation"]
    strategies = points[points.curve == "strategy"]
    ax.plot(front.loss_1, front.loss_2, color=FRONT, zorder=2, label="Pareto front")
    ax.plot(path.loss_1, path.loss_2, color=PATH, linestyle="--", zorder=2, label="regularisation path")
    colours = points[points.curve != "strategy"].fairness
    shown = ax.scatter(
        pd.concat([front.loss_1, path.loss_1]),
        pd.concat([front.loss_2, path.loss_2]),
        c=pd.concat([front.fairness, path.fairness]),
        cmap=UNFAIRNESS_MAP,
        vmin=colours.min(),
        vmax=colours.max(),
        s=18,
        zorder=3,
    )
    mark_strategies(ax, {row["name"]: (row.loss_1, row.loss_2) for _, row in strategies.iterrows()})
    figure.colorbar(shown, ax=ax, label="unfairness", aspect=30)
    ax.set(
        title=f"{group.name}, {group.rows:,} rows",
        xlabel=f"risk of group 1 ({group.group_1})",
        ylabel=f"risk of group 2 ({group.group_2})",
    )
    ax.margins(0.12)


def _draw_metric(ax: Axes, points: pd.DataFrame, group: pd.Series) -> None:
    front, strategies = points[points.curve == "front"], points[points.curve == "strategy"]
    ax.plot(front.lambda_1, front.fairness, color=FRONT)
    mark_strategies(ax, {row["name"]: (row.lambda_1, row.fairness) for _, row in strategies.iterrows()})
    ax.set(xlabel=rf"weight $\lambda_1$ of {group.group_1}", xlim=(-0.02, 1.02))
    ax.margins(y=0.12)


def figure_certificates(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the certificates along the path: the dual bound, the verified improvement, and the front's own largest."""
    points = tables["points"]
    with style():
        figure, axes = panels(1, len(parameters.task))
        for ax, task in zip(axes[0], parameters.task, strict=True):
            mine = points[points.task == task]
            path = mine[mine.curve == "regularisation"]
            ax.loglog(path.penalty, path.certificate, color=PATH, label="dual bound on the path")
            ax.loglog(
                path.penalty,
                path.improvement,
                linestyle="none",
                marker="o",
                markersize=4,
                color="#000000",
                markerfacecolor="none",
                label="verified improvement",
            )
            efficient = mine[mine.curve != "regularisation"].certificate.max()
            ax.axhline(efficient, color=FRONT, linestyle=":", label="largest on front and strategies")
            ax.axhline(EFFICIENT, color="#777777", linewidth=1, label=f"tolerance {EFFICIENT:g}")
            ax.set(title=task, xlabel=r"penalty $\nu$")
        axes[0, 0].set_ylabel("total improvement")
        legend_below(axes[0, 0], 2)
    return figure


def figure_cost(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw what efficiency costs: the path's unfairness against its certificate, and the least on the front."""
    points = tables["points"]
    with style():
        figure, axes = panels(1, len(parameters.task))
        for ax, task in zip(axes[0], parameters.task, strict=True):
            mine = points[points.task == task]
            path, front = mine[mine.curve == "regularisation"], mine[mine.curve == "front"]
            ax.axvspan(
                front.fairness.min(),
                front.fairness.max(),
                color=FRONT,
                alpha=0.15,
                linewidth=0,
                label="range on the front",
            )
            badr = mine[mine.name == "badr"].iloc[0]
            ax.axvline(badr.fairness, color=STRATEGIES["badr"].colour, linestyle=":", label="badr")
            ax.semilogy(
                path.fairness, path.certificate.clip(lower=1e-12), color=PATH, marker="o", markersize=4, label="path"
            )
            ax.set(title=task, xlabel=_label(parameters), ylim=(1e-7, None))
        axes[0, 0].set_ylabel("total improvement")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def figure_coefficients(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the coefficients of the most regularised model beside those of the model that dominates it."""
    frame = tables["coefficients"]
    tasks = [task for task in parameters.task if (frame.task == task).any()]
    with style():
        figure, axes = panels(1, max(len(tasks), 1), height=3.8)
        if not tasks:
            axes[0, 0].set_axis_off()
            axes[0, 0].text(0.5, 0.5, "no path ends at a dominated model", ha="center", transform=axes[0, 0].transAxes)
            return figure
        for ax, task in zip(axes[0], tasks, strict=True):
            mine = frame[frame.task == task].iloc[::-1].reset_index(drop=True)
            ax.hlines(mine.index, mine.regularised, mine.dominating, color="#bbbbbb", linewidth=2, zorder=1)
            ax.plot(mine.regularised, mine.index, "o", color=PATH, label="regularised", zorder=2)
            ax.plot(mine.dominating, mine.index, "D", color=FRONT, label="dominating", zorder=2, markersize=5)
            ax.axvline(0.0, color="#777777", linewidth=1)
            ax.set_yticks(mine.index, mine.feature, fontsize=7)
            ax.set(title=task, xlabel="standardised coefficient")
        legend_below(axes[0, 0], 2)
    return figure
