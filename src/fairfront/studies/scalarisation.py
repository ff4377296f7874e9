"""Propositions 1 to 3 of the first paper on random problems: strictly convex, merely convex, and not convex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.plotting import FRONT, PATH, legend_below, panels, style
from fairfront.risks import LOSSES, Array, GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta, split
from fairfront.theory import Check, proposition_3
from fairfront.theory import scalarisation as theory

__all__ = [
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_flat",
    "figure_nonconvex",
    "figure_random",
    "join",
    "measure",
    "run",
    "table_checks",
    "table_conditions",
    "table_flat",
    "units",
]

TITLE = "Scalarisation and minimax: three propositions and their conditions"
IMPROVED = 1e-6
"""A verified improvement above this counts as domination."""


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe scalarisation`` shows the same in a table."""

    loss: tuple[str, ...] = field(
        default=tuple(LOSSES), metadata=meta(help="losses of the random problems", choices=tuple(LOSSES))
    )
    groups: tuple[int, ...] = field(
        default=(2, 3, 5), metadata=meta(help="numbers of groups of the random problems", low=2, high=20)
    )
    sharpness: tuple[float, ...] = field(
        default=(1.0, 2.4, 4.0), metadata=meta(help="how far from convex the third kind is", low=1e-3, high=100)
    )
    problems: int | None = field(default=None, metadata=meta(help="random problems of each kind", low=1, high=100000))
    weights: int | None = field(default=None, metadata=meta(help="random weights of each problem", low=1, high=10000))
    points: int | None = field(default=None, metadata=meta(help="points of the non-convex fronts", low=11, high=100001))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return nothing: the problems are random."""
    return ()


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts into which the study's work falls: a loss and a number of groups each."""
    return split(parameters, "loss", "groups")


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
        checks: a row per random strictly convex problem and statement: measured, bound, holds, cases.
        flat: merely convex problems, a row per random solution: what it solves, and by how much it is improved upon (at
        positive weights: at most).
        nonconvex: points of fronts that are not convex, and whether a weighted sum reaches them.
    """
    parameters = parameters.resolved()
    assert parameters.problems and parameters.weights and parameters.points
    checks: list[dict[str, Any]] = []
    kinds = [
        (loss, count, i) for loss in parameters.loss for count in parameters.groups for i in range(parameters.problems)
    ]
    for loss, count, i in progress(kinds, "random convex problems", len(kinds)):
        generator = np.random.default_rng([parameters.seed, i, count])
        for check in _strict(_random(loss, count, generator), parameters.weights, generator):
            where = {"loss": loss, "groups": count, "problem": i, "statement": check.statement}
            checks.append(where | check.numbers())
    flat = [row for i in range(parameters.problems) for row in _flat(i, parameters)]
    nonconvex = []
    for sharpness in parameters.sharpness:
        front = theory.bump_front(sharpness, parameters.points)
        for t, (point, reached) in enumerate(zip(front, theory.on_lower_hull(front), strict=True)):
            place = t / (parameters.points - 1)
            row = {"sharpness": sharpness, "t": place, "loss_1": point[0], "loss_2": point[1], "reached": bool(reached)}
            nonconvex.append(row)
    return {"checks": pd.DataFrame(checks), "flat": pd.DataFrame(flat), "nonconvex": pd.DataFrame(nonconvex)}


def join(parts: Sequence[dict[str, pd.DataFrame]], parameters: Parameters) -> dict[str, pd.DataFrame]:
    """Return the tables of all parts; those that depend on neither the loss nor the number of groups come once."""
    return parts[0] | {"checks": pd.concat([part["checks"] for part in parts], ignore_index=True)}


def _random(loss: str, count: int, generator: np.random.Generator) -> GroupRisks:
    """Return the strictly convex risks of 25 random rows a group, each group with a truth of its own."""
    rows, d = 25, 4
    groups = np.repeat(np.arange(count), rows)
    X = generator.normal(size=(len(groups), d)) + 0.5 * generator.normal(size=(count, d))[groups]
    scores = np.einsum("ij,ij->i", X, generator.normal(size=(count, d))[groups]) + 0.3 * generator.normal(
        size=len(groups)
    )
    y = scores if LOSSES[loss].task == "regression" else (scores > 0).astype(float)
    return GroupRisks(X, y, groups, loss=loss, l2=float(10 ** generator.uniform(-2, 0)), intercept=None)


def _strict(risks: GroupRisks, count: int, generator: np.random.Generator) -> Iterator[Check]:
    S = risks.n_groups
    inside = generator.dirichlet(np.ones(S), size=count)
    faces = inside * (generator.random((count, S)) < 0.5)  # some groups get no weight at all
    faces = np.array([row / row.sum() if row.sum() > 0 else np.eye(S)[0] for row in faces])
    yield theory.sums_efficient(risks, np.concatenate([inside, faces, np.eye(S)]))
    yield theory.sums_reach(risks, generator, cases=max(1, count // 2))
    if S == 2:  # with the robust extension, for intervals of the first group's probability
        low = float(generator.uniform(0.05, 0.45))
        yield proposition_3(risks, ((low, low + 0.3),))
    else:
        yield theory.minimax_efficient(risks)


def _flat(i: int, parameters: Parameters) -> Iterator[dict[str, Any]]:
    generator = np.random.default_rng([parameters.seed, i, 1000])
    problem = theory.FlatProblem.random(generator)
    assert parameters.weights is not None
    vertex = np.array([1.0, 0.0])
    for _ in range(parameters.weights):
        first = float(generator.uniform(0.05, 0.95))
        inside = np.array([first, 1.0 - first])
        w = problem.minimiser(inside, generator)
        yield {"problem": i, "solves": "weighted sum, positive weights", "improvement": problem.certificate(w, inside)}
        w = problem.minimiser(vertex, generator)
        yield {"problem": i, "solves": "weighted sum, weights (1, 0)", "improvement": problem.improvement(w)}
        w = problem.minimax_solution(generator)
        yield {"problem": i, "solves": "min-max", "improvement": problem.improvement(w)}


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_checks(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the worst of each statement on strictly convex problems, by number of groups."""
    grouped = tables["checks"].groupby(["statement", "groups"], sort=False)
    return grouped.agg(
        problems=("problem", "size"),
        cases=("cases", "sum"),
        measured=("measured", "max"),
        bound=("bound", "max"),
        holds=("holds", "all"),
    ).reset_index()


def table_flat(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how many random solutions of merely convex problems are dominated, by what they solve."""
    frame = tables["flat"].assign(dominated=tables["flat"].improvement > IMPROVED)
    return (
        frame.groupby("solves", sort=False)
        .agg(solutions=("improvement", "size"), dominated=("dominated", "sum"), largest=("improvement", "max"))
        .reset_index()
    )


def table_conditions(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, for each proposition and kind of risks, what was found, in words made of the numbers."""
    strict = tables["checks"].groupby(tables["checks"].statement.str.slice(0, 13), sort=False).holds.all()
    flat = table_flat(tables).set_index("solves")

    def share(solves: str) -> str:
        return f"{flat.dominated[solves]} of {flat.solutions[solves]} dominated"

    reached = tables["nonconvex"].groupby("sharpness").reached.mean()
    word = {True: "holds", False: "violated"}
    interior, vertex, worst = flat.index
    return pd.DataFrame(
        [
            (
                "Proposition 1, positive weights",
                word[bool(strict["Proposition 1"])],
                share(interior),
                "holds (global minimisers)",
            ),
            ("Proposition 1, boundary", word[bool(strict["Proposition 1"])], share(vertex), "needs a unique minimiser"),
            (
                "Proposition 2",
                word[bool(strict["Proposition 2"])],
                "not checked",
                f"down to {reached.min():.0%} reached",
            ),
            ("Proposition 3", word[bool(strict["Proposition 3"])], share(worst), "needs a unique minimiser"),
        ],
        columns=["statement", "strictly convex", "merely convex", "not convex"],
    )


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    checks, flat = tables["checks"], table_flat(tables).set_index("solves")
    reached = tables["nonconvex"].groupby("sharpness", sort=False).reached.mean()
    interior, vertex, worst = flat.index
    of = {number: checks[checks.statement.str.startswith(f"Proposition {number}")] for number in (1, 2, 3)}
    return {
        "setting": (
            f"{checks.groupby(['loss', 'groups', 'problem']).ngroups:,} synthetic random problems "
            f"({', '.join(parameters.loss)}; "
            f"{', '.join(map(str, parameters.groups))} groups), seed {parameters.seed}; profile {parameters.profile}; "
            "no metric, hence no variant"
        ),
        "setting_flat": (
            f"{parameters.problems} synthetic random problems, {parameters.weights} solutions each, "
            f"seed {parameters.seed}; profile {parameters.profile}; no metric, hence no variant"
        ),
        "setting_nonconvex": (
            f"synthetic risks, {parameters.points:,} points; profile {parameters.profile}; no metric, hence no variant"
        ),
        **{f"cases_{number}": f"{int(frame.cases.sum()):,}" for number, frame in of.items()},
        **{f"worst_{number}": f"{frame.measured.max():.0e}" for number, frame in of.items()},
        "flat_interior": f"{max(float(flat.largest[interior]), 0.0):.0e}",
        "flat_vertex": f"{flat.dominated[vertex]} of {flat.solutions[vertex]}",
        "flat_minimax": f"{flat.dominated[worst]} of {flat.solutions[worst]}",
        "flat_largest": f"{flat.largest[vertex]:.2f}",
        "reached": ", ".join(f"{share:.0%} at s = {s:g}" for s, share in reached.items()),
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return nothing: the ledger takes Propositions 1 to 3 from the chapter that certifies them on real rows."""
    return ()


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_random(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw what was measured on every strictly convex problem, a panel a proposition, and its tolerance."""
    frame = tables["checks"]
    colours = dict(zip(LOSSES, (FRONT, PATH, "#009E73"), strict=True))
    with style():
        figure, axes = panels(1, 3, height=2.8)
        for number, ax in enumerate(axes[0], start=1):
            mine = frame[frame.statement.str.startswith(f"Proposition {number}")]
            counts = sorted(mine.groups.unique())
            for shift, loss in enumerate(parameters.loss):
                here = mine[mine.loss == loss]
                places = np.array([counts.index(count) for count in here.groups]) + 0.2 * (shift - 1)
                jitter = 0.06 * np.sin(np.arange(len(here)) * 2.4)
                values = here.measured.clip(lower=1e-16)
                ax.semilogy(
                    places + jitter, values, ".", color=colours[loss], markersize=4, label=loss.replace("_", " ")
                )
            ax.axhline(mine.bound.max(), color="#000000", linestyle="--", linewidth=1.2)
            ax.set_xticks(range(len(counts)), [str(count) for count in counts])
            ax.set(title=f"Proposition {number}", xlabel="groups", ylim=(3e-17, 1e-3))
        axes[0, 0].set_ylabel("certificate, or difference of risks")
        legend_below(axes[0, 0], 3)
    return figure


def figure_flat(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the distribution of improvements over random solutions of merely convex problems."""
    frame = tables["flat"]
    lines = dict(zip(frame.solves.unique(), ((FRONT, "-"), (PATH, "-"), ("#000000", "--")), strict=True))
    with style():
        figure, axes = panels(1, 1, width=5.4, height=3.0)
        ax = axes[0, 0]
        for solves, (colour, line) in lines.items():
            values = np.sort(frame[frame.solves == solves].improvement.clip(lower=1e-17))
            shares = np.arange(1, len(values) + 1) / len(values)
            ax.step(values, shares, where="post", color=colour, linestyle=line, label=solves)
        ax.axvline(IMPROVED, color="#777777", linewidth=1)
        ax.set(
            xscale="log",
            xlabel="total improvement that another model offers",
            ylabel="share of solutions",
            xlim=(5e-18, 30),
        )
        ax.legend(loc="center")
    return figure


def figure_nonconvex(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw fronts that are not convex, what weighted sums reach of them, and models that are dominated."""
    frame = tables["nonconvex"]
    values = list(frame.sharpness.unique())
    with style():
        figure, axes = panels(1, len(values), height=2.8)
        for ax, s in zip(axes[0], values, strict=True):
            cloud = _cloud(s)
            ax.plot(*cloud.T, ".", color="#cccccc", markersize=2, zorder=0, label="other models")
            mine = frame[frame.sharpness == s]
            for reached, colour, line, label in (
                (False, PATH, ":", "efficient, missed by weighted sums"),
                (True, FRONT, "-", "reached by a weighted sum"),
            ):
                shown = mine.reached.to_numpy() == reached
                ax.plot(
                    mine.loss_1.where(shown),
                    mine.loss_2.where(shown),
                    color=colour,
                    linestyle=line,
                    linewidth=3,
                    marker="o" if reached else None,
                    markersize=3,
                    label=label,
                )
            ax.set(title=f"s = {s:g}", xlabel=r"$F_1$")
        axes[0, 0].set_ylabel(r"$F_2$")
        legend_below(axes[0, 0], 3)
    return figure


def _cloud(s: float) -> Array:
    """Return the risks of models around the segment, for the picture."""
    w = np.random.default_rng(0).uniform([-0.3, -0.5], [1.3, 0.5], size=(600, 2))
    return np.column_stack([-np.expm1(-s * ((w - c) ** 2).sum(axis=1)) for c in ([0.0, 0.0], [1.0, 0.0])])
