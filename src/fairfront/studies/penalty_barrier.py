"""Section 2 and appendix E.2 of the second paper: phi, the classical method, the reduction, a problem solved by hand.

Everything is held against something exact: the printed formulas in exact arithmetic, a KKT point in closed form, a
rate in closed form, and iterates that have to be the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.plotting import FRONT, METHODS, PATH, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta
from fairfront.theory.check import Check

__all__ = [
    "RUNS",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_functions",
    "figure_multipliers",
    "figure_pbm",
    "figure_reduction",
    "figure_trajectories",
    "measure",
    "run",
    "table_checks",
    "table_ends",
]

TITLE = "From penalty and barrier to SPBM"
START = (-1.0, 1.4)
BARRIERS = {"ql": "QL", "qr": "QR"}
SHRINK = (1.0, 0.5, 0.1)
RATES_AT = (1.0, 0.5)

RUNS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "spbm": ("spbm", {}),
    "ssl-alm": ("ssl-alm", {"rho": 1.0, "penalty": "shifted"}),
    "ssw": ("ssw", {}),
    "adam-reg": ("adam-reg", {}),
    "adam": ("adam", {}),
    "spbm, QR": ("spbm", {"phi": "qr"}),
    "spbm, ALM": ("spbm", {"rule": "alm"}),
    "spbm, fast": ("spbm", {"gamma": 0.9}),
    "spbm, slow": ("spbm", {"gamma": 0.999}),
    "ssl-alm, no penalty": ("ssl-alm", {"rho": 0.0}),
    "ssl-alm, quadratic": ("ssl-alm", {"rho": 1.0, "penalty": "quadratic"}),
    "ssw, SGD": ("ssw", {"base": "SGD"}),
}
"""The runs on the problem in two variables: the method, and what differs from the parameters."""


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe penalty_barrier`` shows the same in a table."""

    lr: float = field(default=0.02, metadata=meta(help="learning rate of Adam, all methods", low=1e-5, high=1.0))
    gamma: float = field(default=0.99, metadata=meta(help="SPBM: weight of the past multipliers", low=0.0, high=0.9999))
    mu: float = field(default=1.0, metadata=meta(help="Moreau smoothing, all methods", low=0.0, high=100.0))
    eta: float = field(default=0.02, metadata=meta(help="SSL-ALM: step size of the multipliers", low=1e-5, high=1.0))
    beta: float = field(
        default=1.0, metadata=meta(help="Adam (reg.): weight of the hinge penalty", low=0.0, high=100.0)
    )
    multiplier: float = field(default=0.1, metadata=meta(help="SPBM: multipliers at the start", low=1e-4, high=100.0))
    steps: int | None = field(default=None, metadata=meta(help="steps of each method", low=100, high=1000000))
    iterations: int | None = field(default=None, metadata=meta(help="iterations of PBM", low=4, high=100))
    reduction_steps: int | None = field(default=None, metadata=meta(help="steps of the reduction", low=10, high=100000))
    problems: int | None = field(default=None, metadata=meta(help="random problems of the reduction", low=1, high=1000))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads: none."""
    return ()


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
        checks: claim ("" where the paper claims nothing), subject, statement, measured, bound, holds, cases.
        functions: t, function, value, derivative, second; and the scaled p phi(t/p) for several p (function, p).
        pbm: phi, shrink, iteration, penalty, error (of the multipliers), error_x.
        reduction: problem, base, mu, step, e2, ssl_alm, least.
        solutions: source ("by hand", "cvxpy"), x_1, x_2, lambda_1, lambda_2, objective.
        paths: run, method, step, x_1, x_2, lambda_1, lambda_2, p_1, p_2, objective, g_1, g_2.
    """
    from fairfront.theory import penalty_barrier as theory

    parameters = parameters.resolved()
    assert parameters.iterations is not None
    checks: list[dict[str, Any]] = []

    def add(claim: str, subject: str, check: Check) -> None:
        found = {"measured": check.measured, "bound": check.bound, "holds": check.holds, "cases": check.cases}
        checks.append({"claim": claim, "subject": subject, "statement": check.statement} | found)

    symbolic = (theory.vanishes_at_zero, theory.slope_at_zero, theory.joined, theory.increasing)
    for name, label in BARRIERS.items():
        for statement in (*symbolic, theory.convex_and_bounded, theory.implemented):
            add("spbm-phi", label, statement(name))
        for penalty in RATES_AT:
            add("", label, theory.pbm_rate(name, penalty))
    add("", "by hand", theory.kkt(theory.closed_form()))
    reductions = pd.concat(list(_reductions(parameters, progress, add)), ignore_index=True)
    paths = list(progress(_paths(parameters), "methods on the problem in two variables", len(RUNS)))
    return {
        "checks": pd.DataFrame(checks),
        "functions": _functions(),
        "pbm": pd.concat(list(_pbm(parameters.iterations)), ignore_index=True),
        "reduction": reductions,
        "solutions": _solutions(),
        "paths": pd.concat(paths, ignore_index=True),
    }


def _functions() -> pd.DataFrame:
    import torch

    from fairfront.constrained import barriers

    t = torch.linspace(-2.5, 1.5, 401, dtype=torch.float64)
    frames = []
    for name, label in BARRIERS.items():
        phi = barriers.get(name)
        parts = {"value": phi.value(t), "derivative": phi.derivative(t), "second": phi.second_derivative(t)}
        frames.append(pd.DataFrame({"t": t.numpy(), "function": label, "p": 1.0} | _numpy(parts)))
        frames += [
            pd.DataFrame({"t": t.numpy(), "function": label, "p": p} | _numpy({"value": p * phi.value(t / p)}))
            for p in (0.3, 0.1, 0.03)
        ]
    quadratic = {"value": t + t**2 / 2, "derivative": 1 + t, "second": torch.ones_like(t)}
    frames.append(pd.DataFrame({"t": t.numpy(), "function": "quadratic", "p": 1.0} | _numpy(quadratic)))
    return pd.concat(frames, ignore_index=True)


def _numpy(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _pbm(iterations: int) -> Iterator[pd.DataFrame]:
    from fairfront.theory import penalty_barrier as theory

    exact = theory.closed_form()
    for name, label in BARRIERS.items():
        for shrink in SHRINK:
            path = theory.pbm(name, shrink=shrink, iterations=iterations)
            yield pd.DataFrame(
                {
                    "phi": label,
                    "shrink": shrink,
                    "iteration": np.arange(iterations + 1),
                    "penalty": path.penalties,
                    "error": np.abs(path.multipliers - exact.multipliers).max(axis=1),
                    "error_x": np.abs(path.x - exact.x).max(axis=1),
                    "rate": theory.printed_rate(name, 1.0),
                }
            )


def _reductions(
    parameters: Parameters, progress: ProgressFunction, add: Callable[[str, str, Check], None]
) -> Iterator[pd.DataFrame]:
    import torch

    from fairfront.theory import penalty_barrier as theory

    assert parameters.reduction_steps is not None and parameters.problems is not None
    steps, generator = parameters.reduction_steps, np.random.default_rng(parameters.seed)
    seeds = generator.integers(2**31, size=parameters.problems).tolist()
    cases = [(seed, base, mu) for seed in seeds for base in ("SGD", "Adam") for mu in (0.0, 2.0)]
    for seed, base, mu in progress(cases, "reduction to an augmented Lagrangian", len(cases)):
        start, evaluate = theory.noisy_problem(seed, steps=steps)
        found = theory.reduction(start, evaluate, steps=steps, mu=mu, base=getattr(torch.optim, base))
        subject = f"random, {base}, mu {mu:g}"
        for check in found.check(-0.5):
            add("spbm-e2", subject, check)
        yield _reduction_frame("random", seed, base, mu, found)

    def by_hand(x: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return theory.objective(x), torch.stack(theory.constraints(x))

    start = torch.tensor([0.6, 0.6], dtype=torch.float64)
    found = theory.reduction(start, by_hand, steps=steps, rho=1.0, multiplier=1.0)
    for check in found.check(-0.5):
        add("spbm-e2", "two variables", check)
    yield _reduction_frame("two variables", parameters.seed, "SGD", 1.0, found)


def _reduction_frame(problem: str, seed: int, base: str, mu: float, found: Any) -> pd.DataFrame:
    series = {"e2": found.update, "ssl_alm": found.ssl_alm, "least": found.least}
    head = {"problem": problem, "seed": seed, "base": base, "mu": mu, "step": np.arange(len(found.least))}
    return pd.DataFrame(head | series)


def _solutions() -> pd.DataFrame:
    from fairfront.theory import penalty_barrier as theory

    points = {"by hand": theory.closed_form(), "cvxpy": theory.oracle()}
    return pd.DataFrame(
        {
            "source": source,
            "x_1": point.x[0],
            "x_2": point.x[1],
            "lambda_1": point.multipliers[0],
            "lambda_2": point.multipliers[1],
            "objective": point.value,
        }
        for source, point in points.items()
    )


def _paths(parameters: Parameters) -> Iterator[pd.DataFrame]:
    """Yield each run's path on the problem in two variables, without noise, all under the same schedule."""
    import torch

    from fairfront.constrained import WarmupCosine
    from fairfront.theory import penalty_barrier as theory

    assert parameters.steps is not None
    schedule = WarmupCosine()
    for name, (method, changed) in RUNS.items():
        x = torch.tensor(START, dtype=torch.float64, requires_grad=True)
        optimizer = _optimizer(x, method, changed, parameters)
        rows = []
        for step in range(parameters.steps + 1):
            f, g = theory.objective(x), torch.stack(theory.constraints(x))
            p = optimizer.penalties
            penalties = (np.nan, np.nan) if p is None else p.tolist()
            rows.append((step, *x.tolist(), *optimizer.multipliers.tolist(), *penalties, f.item(), *g.tolist()))
            if step < parameters.steps:
                optimizer.rescale_lr(schedule.factor(step, parameters.steps))
                optimizer.zero_grad()
                optimizer.step(f, g)
        columns = ["step", "x_1", "x_2", "lambda_1", "lambda_2", "p_1", "p_2", "objective", "g_1", "g_2"]
        frame = pd.DataFrame(rows, columns=columns)
        frame.insert(0, "run", name)
        frame.insert(1, "method", method)
        yield frame


def _optimizer(x: Any, method: str, changed: dict[str, Any], parameters: Parameters) -> Any:
    import torch

    from fairfront.constrained import SPBM, SSLALM, PenalizedAdam, SSw

    shared: dict[str, Any] = {"lr": parameters.lr, "mu": parameters.mu}
    if method == "spbm":
        own: dict[str, Any] = {"gamma": parameters.gamma, "lambda_init": parameters.multiplier} | changed
        return SPBM([x], 2, **shared, **own)
    if method == "ssl-alm":
        return SSLALM([x], 2, eta=parameters.eta, **shared, **changed)
    if method == "ssw":
        base = getattr(torch.optim, changed.get("base", "Adam"))
        return SSw([x], 2, base=base, constraint_lr=parameters.lr, **shared)
    return PenalizedAdam([x], 2, beta=parameters.beta if method == "adam-reg" else 0.0, **shared)


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_checks(tables: dict[str, pd.DataFrame], claim: str) -> pd.DataFrame:
    """Return the checks of a claim, one row a subject and statement, without the claim's column."""
    mine = tables["checks"][tables["checks"].claim == claim]
    return mine.drop(columns="claim").reset_index(drop=True)


def table_ends(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return where each run ends: distance to x*, violation, objective above f*, and its multipliers."""
    exact = tables["solutions"].iloc[0]
    ends = tables["paths"].groupby("run", sort=False).tail(1)
    dual = ends.method.isin(("spbm", "ssl-alm"))
    return pd.DataFrame(
        {
            "run": ends.run,
            "distance to x*": np.hypot(ends.x_1 - exact.x_1, ends.x_2 - exact.x_2),
            "largest g": ends[["g_1", "g_2"]].max(axis=1),
            "f - f*": ends.objective - exact.objective,
            "lambda_1": ends.lambda_1.where(dual),
            "lambda_2": ends.lambda_2.where(dual),
        }
    ).reset_index(drop=True)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    checks, solutions = tables["checks"], tables["solutions"]
    ends = {row["run"]: row for row in table_ends(tables).to_dict("records")}
    hand, solver = solutions.iloc[0], solutions.iloc[1]
    columns = ["x_1", "x_2", "lambda_1", "lambda_2"]
    random = tables["reduction"][tables["reduction"].problem == "random"]
    other = tables["reduction"][tables["reduction"].problem == "two variables"]
    left = other[other.least < -0.5].step
    pbm = tables["pbm"][(tables["pbm"].phi == "QL") & (tables["pbm"].iteration == 8)].set_index("shrink").error
    rates = checks[(checks.claim == "") & checks.statement.str.contains("rate")]
    quadratic = ends["ssl-alm, quadratic"]
    return {
        "setting": (
            f"synthetic: the problem in two variables, without noise; profile {parameters.profile}; "
            f"{parameters.steps:,} steps, Adam with learning rate {parameters.lr:g}, mu {parameters.mu:g}; "
            f"variant: SPBM as printed (Algorithm 1), gamma {parameters.gamma:g}, ADAPT, QL"
        ),
        "setting_functions": f"synthetic (no data); profile {parameters.profile}; variant: as printed",
        "setting_pbm": (
            f"synthetic: the problem in two variables; profile {parameters.profile}; "
            f"variant: p = 1 and both multipliers 1 at the start"
        ),
        "setting_reduction": (
            f"synthetic: {random.seed.nunique()} random problems with noise, and the problem in two variables; profile "
            f"{parameters.profile}; variant: p = rho lambda (ALM), unclipped"
        ),
        "phi_error": f"{checks[checks.statement.str.contains('as implemented')].measured.max():.0e}",
        "x1": f"{hand.x_1:.4f}",
        "x2": f"{hand.x_2:.4f}",
        "lambda1": f"{hand.lambda_1:.4f}",
        "optimum": f"{hand.objective:.4f}",
        "margin": f"{0.75 - hand.x_2:.2f}",
        "solver_gap": f"{np.abs(hand[columns].to_numpy(float) - solver[columns].to_numpy(float)).max():.0e}",
        "pbm_constant": f"{pbm[1.0]:.2g}",
        "pbm_half": f"{pbm[0.5]:.0e}",
        "pbm_tenth": "0 to rounding" if pbm[0.1] < 1e-12 else f"{pbm[0.1]:.0e}",
        "rate_gap": f"{rates.measured.max():.0e}",
        "e2_gap": f"{random.e2.max():.0e}",
        "e2_alm_gap": f"{random.ssl_alm.max():.0e}",
        "e2_steps": f"{len(random):,}",
        "e2_left": f"{left.min()}" if len(left) else "none",
        "e2_apart": f"{other.e2.max():.1g}",
        "spbm_distance": f"{ends['spbm']['distance to x*']:.0e}",
        "spbm_lambda": f"{ends['spbm']['lambda_1']:.4f}",
        "alm_distance": f"{ends['ssl-alm']['distance to x*']:.0e}",
        "ssw_distance": f"{ends['ssw']['distance to x*']:.2g}",
        "ssw_sgd_distance": f"{ends['ssw, SGD']['distance to x*']:.0e}",
        "reg_violation": f"{ends['adam-reg']['largest g']:.3f}",
        "reg_exact": f"{max((np.hypot(2, 1) / (1 + parameters.beta)) ** 2 - 1, 0):.3f}",
        "beta": f"{parameters.beta:g}",
        "adam_violation": f"{ends['adam']['largest g']:.2f}",
        "quadratic_distance": f"{quadratic['distance to x*']:.3f}",
        "quadratic_lambda": f"{quadratic['lambda_1']:.3f}",
        "fast_distance": f"{ends['spbm, fast']['distance to x*']:.2g}",
        "slow_distance": f"{ends['spbm, slow']['distance to x*']:.2g}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims."""
    checks = tables["checks"]
    phi, e2 = checks[checks.claim == "spbm-phi"], checks[checks.claim == "spbm-e2"]
    implemented = phi[phi.statement.str.contains("as implemented")]
    of_phi = (
        f"{int(phi.holds.sum())} of {len(phi)} checks hold: five statements exactly on each printed formula; "
        f"the functions in use differ from them by at most {implemented.measured.max():.0e}"
    )
    random = e2[e2.subject != "two variables"]
    of_e2 = (
        f"largest relative difference of x, s and lambda {random.measured.max():.0e} over {int(random.cases.sum()):,} "
        f"steps; with eta = (1 - gamma)/rho and penalty gamma/rho SSL-ALM itself is the same"
    )
    return (
        _verdict("spbm-phi", of_phi, phi, "exact arithmetic on the printed formulas"),
        _verdict("spbm-e2", of_e2, e2, "random convex problems with noise, SGD and Adam, with and without smoothing"),
    )


def _verdict(claim: str, measured: str, checks: pd.DataFrame, data: str) -> Measurement:
    failing = checks[~checks.holds | (checks.cases == 0)]
    if len(failing) or checks.empty:
        reason = "; ".join(f"{row.subject}: {row.statement}" for row in failing.itertuples()) or "nothing was checked"
        return Measurement(claim, measured, "not reproduced", reason, data)
    return Measurement(claim, measured, "reproduced", "", data)


# --- figures ---------------------------------------------------------------------------------------------------------

_COLOURS = {"QL": FRONT, "QR": PATH, "quadratic": "#555555"}
_LINES = {"QL": "-", "QR": "-.", "quadratic": ":"}


def figure_functions(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw phi, phi', phi'' and p phi(t/p) for p towards 0."""
    functions = tables["functions"]
    titles = {"value": r"$\varphi(t)$", "derivative": r"$\varphi'(t)$", "second": r"$\varphi''(t)$"}
    with style():
        figure, axes = panels(2, 2, width=3.6, height=2.6)
        for ax, (column, title) in zip(axes.flat, titles.items(), strict=False):
            for name, colour in _COLOURS.items():
                mine = functions[(functions.function == name) & (functions.p == 1.0)]
                ax.plot(mine.t, mine[column], color=colour, linestyle=_LINES[name], label=name)
            for joint, name in ((-1 / 2, "QL"), (-1 / 3, "QR")):
                ax.axvline(joint, color=_COLOURS[name], linewidth=0.7, alpha=0.6)
            ax.set(title=title, xlabel="t")
        axes[0, 0].set_ylim(-1, 2.7)
        axes[0, 0].legend()
        ax = axes[1, 1]
        for p, width in ((1.0, 1.0), (0.3, 1.5), (0.1, 2.0), (0.03, 2.5)):
            mine = functions[(functions.function == "QL") & (functions.p == p)]
            ax.plot(
                mine.t, mine.value, color=FRONT, alpha=0.35 + 0.25 * (width - 1), linewidth=width, label=f"p = {p:g}"
            )
        ax.set(title=r"$p\,\varphi_{QL}(t/p)$", xlabel="t", ylim=(-1.2, 3))
        ax.legend(loc="upper left")
    return figure


def figure_pbm(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the error of PBM's multipliers by iteration, a line for each factor of p, beside the closed-form rate."""
    pbm = tables["pbm"]
    marks: dict[Any, str] = {1.0: "o", 0.5: "s", 0.1: "^"}
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.0)
        for ax, (label, mine) in zip(axes[0], pbm.groupby("phi", sort=False), strict=True):
            for shrink, path in mine.groupby("shrink", sort=False):
                name = "p constant" if shrink == 1.0 else rf"$p \leftarrow {shrink:g}\,p$"
                ax.semilogy(
                    path.iteration, path.error.clip(lower=1e-15), marker=marks[shrink], markersize=4, label=name
                )
            constant = mine[mine.shrink == 1.0]
            rate, last = constant.rate.iloc[0], constant.iloc[-1]
            slope = last.error * rate ** (constant.iteration - last.iteration)
            ax.semilogy(
                constant.iteration, slope, color="#000000", linestyle="--", linewidth=1, label="closed-form rate"
            )
            ax.set(title=str(label), xlabel="iteration", ylim=(1e-15, 10))
        axes[0, 0].set_ylabel(r"error of $\lambda$")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def figure_reduction(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw how far the update of E.2 and SSL-ALM are from SPBM, step by step."""
    reduction = tables["reduction"]
    random = reduction[reduction.problem == "random"]
    first = random[(random.seed == random.seed.iloc[0]) & (random.base == "SGD") & (random.mu > 0)]
    shown = {
        "random problem": first,
        "two variables, one constraint inactive": reduction[reduction.problem == "two variables"],
    }
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.0)
        for ax, (title, mine) in zip(axes[0], shown.items(), strict=True):
            ax.semilogy(mine.step, mine.e2.clip(lower=1e-17), color=FRONT, label="update of E.2")
            ax.semilogy(mine.step, mine.ssl_alm.clip(lower=1e-17), color=PATH, linestyle=":", label="SSL-ALM")
            left = mine[mine.least < -0.5].step
            if len(left):
                label = r"$g_i/p_i$ leaves the quadratic"
                ax.axvline(left.min(), color="#000000", linestyle="--", linewidth=1, label=label)
            ax.axhline(np.finfo(float).eps, color="#999999", linewidth=1, label="unit in the last place")
            ax.set(title=title, xlabel="step", ylim=(1e-17, 10))
        axes[0, 0].set_ylabel("relative difference from SPBM")
        figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def figure_trajectories(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the methods' paths over the objective's contour lines, the feasible set shaded."""
    from fairfront.theory import penalty_barrier as theory

    paths, exact = tables["paths"], tables["solutions"].iloc[0]
    grid = np.meshgrid(np.linspace(-1.3, 2.2, 351), np.linspace(-0.75, 1.65, 241))
    worst = np.maximum(*theory.constraints(grid))
    with style():
        figure, axes = panels(1, 1, width=7.0, height=4.7)
        ax = axes[0, 0]
        ax.contourf(*grid, worst, levels=[-10.0, 0.0], colors=["#dcebd5"])
        levels = [0.1, 0.4, 1.0, exact.objective, 2.5, 4.0, 6.0, 9.0]
        ax.contour(*grid, theory.objective(grid), levels=levels, colors="#999999", linewidths=0.7)
        for method, mark in METHODS.items():
            mine = paths[paths.run == method]
            ax.plot(mine.x_1, mine.x_2, color=mark.colour, linewidth=1.5, alpha=0.9)
            last = mine.iloc[-1]
            edge = {} if mark.marker == "x" else {"markeredgecolor": "white"}
            ax.plot(
                last.x_1,
                last.x_2,
                color=mark.colour,
                marker=mark.marker,
                markersize=8,
                linestyle="-",
                **edge,
                label=mark.label,
                zorder=6,
            )
        ax.plot(*START, marker="o", color="#000000", markersize=6, linestyle="none")
        ax.annotate("start", START, xytext=(7, 0), textcoords="offset points", va="center")
        ax.plot(
            exact.x_1, exact.x_2, marker="+", color="#000000", markersize=16, linestyle="none", label="$x^*$", zorder=7
        )
        ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(-1.3, 2.2), ylim=(-0.75, 1.65))
        ax.grid(False)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def figure_multipliers(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the multipliers of SPBM and SSL-ALM and of their variants against the step, beside their exact values."""
    paths, exact = tables["paths"], tables["solutions"].iloc[0]
    shown = {
        "the methods": {"spbm": "-", "ssl-alm": "-"},
        r"SPBM, its $\varphi$ and rules": {"spbm": "-", "spbm, QR": "--", "spbm, ALM": ":"},
        r"SPBM, its $\gamma$": {"spbm": "-", "spbm, fast": "--", "spbm, slow": ":"},
        "SSL-ALM, its penalty": {"ssl-alm": "-", "ssl-alm, no penalty": "--", "ssl-alm, quadratic": ":"},
    }
    labels = {
        "spbm": "SPBM" if parameters.gamma == 0.99 else rf"SPBM, $\gamma = {parameters.gamma:g}$",
        "spbm, fast": r"$\gamma = 0.9$",
        "spbm, slow": r"$\gamma = 0.999$",
        "ssl-alm": "SSL-ALM",
    }
    with style():
        figure, axes = panels(2, 2, width=3.7, height=2.5)
        for ax, (title, runs) in zip(axes.flat, shown.items(), strict=True):
            for name, line in runs.items():
                mine = paths[paths.run == name]
                mark = METHODS[mine.method.iloc[0]]
                label = labels.get(name, name.partition(", ")[2])
                ax.plot(mine.step, mine.lambda_1, color=mark.colour, linestyle=line, label=label)
                ax.plot(mine.step, mine.lambda_2, color=mark.colour, linestyle=line, linewidth=0.8, alpha=0.6)
            for value in (exact.lambda_1, exact.lambda_2):
                ax.axhline(value, color="#000000", linewidth=0.9, linestyle=(0, (1, 1)))
            ax.set(title=title, xlabel="step", ylim=(-0.1, 3.0))
            ax.legend(loc="upper right")
        for ax in axes[:, 0]:
            ax.set_ylabel(r"$\lambda_1$ (thick), $\lambda_2$ (thin)")
    return figure
