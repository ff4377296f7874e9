"""Theorem 3 of the second paper by the package's Algorithm 2, where every expectation is a finite sum.

Cases within the theorem's hypotheses, on two problems, and cases whose schedules are not summable. Every lemma of the
appendix is held against the path; the four items are read off at a finite number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.plotting import FRONT, PATH, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta
from fairfront.theory import spbm_convergence as theory
from fairfront.theory.check import Check
from fairfront.theory.single_unit import COUNTEREXAMPLE, KINKED, SingleUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CASES",
    "ITEMS",
    "LEMMAS",
    "TITLE",
    "Case",
    "Parameters",
    "datasets",
    "facts",
    "figure_duals",
    "figure_items",
    "figure_lemmas",
    "figure_limits",
    "figure_schedules",
    "measure",
    "run",
    "table_breaks",
    "table_cases",
    "table_items",
    "units",
]

TITLE = "Convergence: Theorem 3 by Algorithm 2 on finite problems"


@dataclass(frozen=True)
class Case:
    """One setting of Algorithm 2.

    Attributes
    ----------
    words : str
        What is special about it.
    power : float
        1 - gamma^k falls like k to minus this.
    held : bool
        Whether gamma and kappa stay at their start for a while (L > 0).
    problem : SingleUnit
    batch : int
        B.
    start : float
        w + b at the start.
    """

    words: str
    power: float = 1.5
    held: bool = True
    problem: SingleUnit = COUNTEREXAMPLE
    batch: int = 8
    start: float = 0.7

    @property
    def within(self) -> bool:
        """Whether the theorem's hypotheses hold."""
        return self.power > 1


CASES: dict[str, Case] = {
    "summable": Case("deviations like k^-1.5"),
    "large batch": Case("the same with B = 64", batch=64),
    "kink": Case("absolute errors, two constraints, the minimum at a kink", problem=KINKED, start=1.2),
    "no hold": Case("the same from the first step on (L = 0)", held=False),
    "barely": Case("deviations like k^-1.1", power=1.1),
    "flat start": Case("started where everything is flat", start=-2.0),
    "harmonic": Case("deviations like 1/k: not summable", power=1.0),
    "root": Case("deviations like k^-0.5: not summable", power=0.5),
    "constant": Case("constant gamma and kappa: not summable", power=0.0),
}
"""The cases; those after "flat start" are outside of the theorem."""

ITEMS: dict[str, str] = {
    "spbm-thm3-1": "(1) multipliers and penalties",
    "spbm-thm3-2": "(2) |x - s|",
    "spbm-thm3-3": "(3) values of L^emp",
    "spbm-thm3-4": "(4) limit points",
}
"""The four items of the theorem, which are this study's claims."""
LEMMAS: dict[str, str] = {
    "recursion": "Algorithm 2 itself",
    "lemma-10": "Lemma 10, boxes and series",
    "lemma-11": "Lemma 11, phi",
    "lemma-12": "Lemma 12, Lagrangians Lipschitz",
    "lemma-13-mean": "Lemma 13, mean direction",
    "lemma-13-bounded": "Lemma 13, bounded directions",
    "lemma-13-conservative": "Lemma 13, conservative field",
    "lemma-14": "Lemma 14, second moment",
    "lemma-15": "Lemma 15, martingale difference",
    "lemma-16": "Lemma 16, sum of alpha zeta",
    "lemma-17": "Lemma 17, paths of the duals",
    "lemma-18": "Lemma 18, recursion of |x - s|",
    "lemma-18-limit": "Lemmas 9 and 18, |x - s|",
    "lemma-19": "Lemma 19, field against duals",
    "lemma-20": "Lemma 20, limiting field",
    "lemma-21": "Lemma 21, Cesaro averages",
    "lemma-22": "Lemma 22, bounded below",
    "lemma-23": "Lemma 23, critical values",
    "lemma-24": "Lemma 24, descent",
}
"""What is checked beside them, and how figures and tables call it."""
# Bounds that are a number for rounding, a count or a normal quantile: no left over right to draw.
_NO_RATIO: tuple[str, ...] = (
    "recursion",
    "lemma-10",
    "lemma-11",
    "lemma-13-mean",
    "lemma-13-conservative",
    "lemma-15",
    "lemma-18",
)
_NO_RATIO += ("lemma-22", "lemma-23", "lemma-24")


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe spbm_convergence`` shows the same in a table."""

    case: tuple[str, ...] = field(
        default=tuple(CASES), metadata=meta(help="settings of Algorithm 2", choices=tuple(CASES))
    )
    runs: int | None = field(default=None, metadata=meta(help="independent runs of each case", low=2, high=1000))
    steps: int | None = field(default=None, metadata=meta(help="steps K of each run", low=200, high=10_000_000))
    hold: float = field(default=0.1, metadata=meta(help="share of the steps with constant gamma, L/K", low=0, high=0.5))
    alpha0: float = field(default=0.1, metadata=meta(help="first step size", low=1e-6, high=10))
    decay: float = field(default=0.75, metadata=meta(help="alpha^k falls like k to minus this", low=0.51, high=1))
    mu: float = field(default=1.0, metadata=meta(help="Moreau smoothing", low=0, high=1000))
    lambda_max: float = field(default=10.0, metadata=meta(help="upper end of the multipliers' box", low=1, high=1e6))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads: none, its samples are synthetic."""
    return ()


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return one part a case."""
    parameters = parameters.resolved()
    return tuple(replace(parameters, case=(name,)) for name in parameters.case)


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
        checks: a row per case and statement: measured, bound, holds, cases.
        paths: a row per case, run and recorded step: x = w + b, gap |x - s|, value (L^emp with the last multipliers),
        distance (to the nearest critical point of that L^emp).
        duals: lambda and p of each constraint at the same steps.
        windows: a row per case and dyadic window of steps: lengths of the paths of lambda and p, what the schedule
        allows, the range of lambda, the largest gap, the range of the value, the largest distance (means over the
        runs).
        ends: a row per case and run: x, g (largest constraint, exact), lambda and p of the first constraint, distance,
        flat (whether x < 0).
    """
    parameters = parameters.resolved()
    tables: dict[str, list[Any]] = {name: [] for name in ("checks", "paths", "duals", "windows", "ends")}
    for name in progress(parameters.case, "Algorithm 2", len(parameters.case)):
        _examine(name, parameters, tables)
    return {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}


def _examine(name: str, parameters: Parameters, tables: dict[str, list[Any]]) -> None:
    assert parameters.steps is not None and parameters.runs is not None
    case = CASES[name]
    schedule = theory.Schedule(
        power=case.power,
        hold=round(parameters.hold * parameters.steps) if case.held else 0,
        alpha0=parameters.alpha0,
        decay=parameters.decay,
    )
    path = theory.follow(
        case.problem,
        case.batch,
        schedule,
        runs=parameters.runs,
        steps=parameters.steps,
        start=case.start,
        seed=parameters.seed,
        mu=parameters.mu,
        lambda_max=parameters.lambda_max,
    )
    rows = [
        {"case": name, "statement": key, **_row(check)} for key, check in _checks(path, parameters.seed, name).items()
    ]
    tables["checks"].append(pd.DataFrame(rows))
    at = np.unique(np.concatenate([[0], np.geomspace(1, path.steps, 120).round().astype(int)]))
    runs = np.arange(path.x.shape[1])
    grid = {"case": name, "run": np.tile(runs, len(at)), "step": np.repeat(at, len(runs))}
    measured = {"x": path.x, "gap": path.gap, "value": path.value, "distance": path.distance}
    tables["paths"].append(pd.DataFrame(grid | {key: y[at].ravel() for key, y in measured.items()}))
    for i in range(case.problem.m):
        duals = {"constraint": i, "lam": path.lam[at, :, i].ravel(), "p": path.p[at, :, i].ravel()}
        tables["duals"].append(pd.DataFrame(grid | duals))
    tables["windows"].append(pd.DataFrame([{"case": name} | row for row in _windows(path)]))
    end = case.problem.evaluate(path.x[-1])
    ends = {"x": path.x[-1], "g": end.g.max(-1), "lam": path.lam[-1, :, 0], "p": path.p[-1, :, 0]}
    ends |= {"distance": path.distance[-1], "flat": path.x[-1] < 0}
    tables["ends"].append(pd.DataFrame({"case": name, "run": runs} | ends))


def _checks(path: theory.Path, seed: int, name: str) -> dict[str, Check]:
    generator, bounds = np.random.default_rng(seed), theory.Bounds.of(path)
    found = {
        "recursion": theory.recursion(path),
        "lemma-10": theory.lemma_10(path),
        "lemma-11": theory.lemma_11(bounds, path),
        "lemma-12": theory.lemma_12(path, bounds, generator),
        "lemma-13-mean": theory.lemma_13_mean(path),
        "lemma-13-bounded": theory.lemma_13_bounded(path, bounds),
        "lemma-13-conservative": theory.lemma_13_conservative(path, generator),
        "lemma-14": theory.lemma_14(path, bounds),
        "lemma-15": theory.lemma_15(path),
        "lemma-16": theory.lemma_16(path),
        "lemma-17": theory.lemma_17(path, bounds),
        "lemma-18": theory.lemma_18(path),
        "lemma-18-limit": theory.lemma_18_limit(path, bounds),
        "lemma-19": theory.lemma_19(path, bounds, generator),
        "lemma-20": theory.lemma_20(path, bounds),
        "lemma-21": theory.lemma_21(path),
        "lemma-22": theory.lemma_22(path),
        "lemma-23": theory.lemma_23(path),
        "lemma-24": theory.lemma_24(path),
    }
    items = (theory.theorem_3_1, theory.theorem_3_2, theory.theorem_3_3, theory.theorem_3_4)
    return found | {claim: item(path) for claim, item in zip(ITEMS, items, strict=True)}


def _row(check: Check) -> dict[str, Any]:
    return {"measured": check.measured, "bound": check.bound, "holds": check.holds, "cases": check.cases}


def _windows(path: theory.Path) -> list[dict[str, Any]]:
    fade = path.schedule.deviation(np.arange(path.steps))
    rows = []
    for low, high in theory.window_edges(path.steps, hold=path.schedule.hold):
        inside = slice(low, high + 1)
        moved = {key: np.abs(np.diff(y[inside], axis=0)).sum((0, 2)) for key, y in (("lam", path.lam), ("p", path.p))}
        rows.append(
            {
                "first": low,
                "last": high,
                "schedule": float(fade[low:high].sum()),
                "lam_length": float(moved["lam"].mean()),
                "p_length": float(moved["p"].mean()),
                "lam_range": float(np.ptp(path.lam[inside], axis=0).max(-1).mean()),
                "gap": float(path.gap[inside].max(0).mean()),
                "value_range": float(np.ptp(path.value[inside], axis=0).mean()),
                "distance": float(path.distance[inside].max(0).mean()),
            }
        )
    return rows


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def _present(tables: dict[str, pd.DataFrame], within: bool | None = None) -> list[str]:
    """Return the cases at hand, in order: those within the theorem, outside of it, or all."""
    here = set(tables["ends"].case)
    return [name for name, case in CASES.items() if name in here and within in (None, case.within)]


def table_cases(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, for each case, what it is and where its runs ended (median and quartiles over the runs)."""

    def middle(y: pd.Series) -> str:
        low, median, high = y.quantile([0.25, 0.5, 0.75])
        return f"{median:.3f} ({low:.3f}, {high:.3f})"

    rows = []
    for name in _present(tables):
        mine = tables["ends"][tables["ends"].case == name]
        rows.append(
            {
                "case": name,
                "what": CASES[name].words,
                "in the theorem": "yes" if CASES[name].within else "no",
                "x": middle(mine.x),
                "λ": middle(mine.lam),
                "p": f"{mine.p.median():.2f}",
                "g": f"{mine.g.median():+.4f}",
                "ends at x < 0": f"{int(mine.flat.sum())} of {len(mine)}",
            }
        )
    return pd.DataFrame(rows)


def table_items(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the four items in the cases within the theorem: what was measured, and what it must be below."""
    checks = tables["checks"][tables["checks"].statement.isin(ITEMS)]
    rows = []
    for name in _present(tables, within=True):
        mine = checks[checks.case == name].set_index("statement")
        cells = {words: f"{mine.measured[key]:.3f} ≤ {mine.bound[key]:.3f}" for key, words in ITEMS.items()}
        failing = {words: cells[words].replace("≤", ">") for key, words in ITEMS.items() if not mine.holds[key]}
        rows.append({"case": name} | cells | failing)
    return pd.DataFrame(rows)


def table_breaks(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what the schedule's power does: how the last two dyadic windows compare, and where the runs end."""
    rows = []
    names = [name for name in ("summable", "barely", "harmonic", "root", "constant") if name in _present(tables)]
    for name in names:
        windows = tables["windows"][tables["windows"].case == name].sort_values("first", ascending=False)
        last, before = windows.iloc[0], windows.iloc[1]
        mine = tables["ends"][tables["ends"].case == name]
        rows.append(
            {
                "1 - γ": f"k^-{CASES[name].power:g}" if CASES[name].power else "not at all",
                "summable": "yes" if CASES[name].within else "no",
                "path of λ, quotient": last.lam_length / before.lam_length,
                "schedule's own": last.schedule / before.schedule,
                "range of λ": last.lam_range,
                "spread of last λ": mine.lam.std(),
                "range of L, quotient": last.value_range / before.value_range,
                "last g": mine.g.median(),
            }
        )
    return pd.DataFrame(rows)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    checks, ends, windows = tables["checks"], tables["ends"], tables["windows"]
    inside, lemmas = _present(tables, within=True), checks[checks.statement.isin(LEMMAS)]
    judged = lemmas[lemmas.case.isin(inside)]
    beyond = lemmas[~lemmas.case.isin(inside)]
    bounds = checks[checks.statement.isin(("lemma-13-bounded", "lemma-17", "lemma-19"))]
    tight = (bounds.measured / bounds.bound).groupby(bounds.statement).max()
    by_case = dict(iter(ends.groupby("case")))

    def end(name: str, column: str) -> str:
        return f"{by_case[name][column].median():.3f}" if name in by_case else "-"

    def ratio(name: str, column: str) -> str:
        mine = windows[windows.case == name].sort_values("first", ascending=False)
        return f"{mine[column].iloc[0] / mine[column].iloc[1]:.2f}" if len(mine) > 1 else "-"

    dead = ends[(ends.case != "flat start") & ends.flat]
    return {
        "conv_setting": (
            f"synthetic labels, {parameters.runs} runs a case, {parameters.steps:,} steps, step sizes "
            f"{parameters.alpha0:g} (k + 1)^-{parameters.decay:g}, mu {parameters.mu:g}, "
            f"L {round(parameters.hold * (parameters.steps or 0))} (0 in no hold), seed {parameters.seed}; "
            f"profile {parameters.profile}; variant Algorithm 2 with phi_QL and the ADAPT rule"
        ),
        "conv_steps": f"{parameters.steps:,}",
        "conv_runs": f"{parameters.runs}",
        "conv_inside": str(len(inside)),
        "conv_lemma_cases": f"{int(judged.cases.sum()):,}",
        "conv_lemma_failures": f"{int((~judged.holds).sum())}",
        "conv_beyond_failures": f"{int((~beyond[beyond.statement != 'lemma-10'].holds).sum())}",
        "conv_tight_direction": f"{tight['lemma-13-bounded']:.0e}",
        "conv_tight_paths": f"{tight['lemma-17']:.1e}",
        "conv_tight_field": f"{tight['lemma-19']:.2g}",
        "conv_x_summable": end("summable", "x"),
        "conv_lam_summable": end("summable", "lam"),
        "conv_lam_batch": end("large batch", "lam"),
        "conv_x_no_hold": end("no hold", "x"),
        "conv_lam_no_hold": end("no hold", "lam"),
        "conv_g_no_hold": end("no hold", "g"),
        "conv_g_flat": end("flat start", "g"),
        "conv_lam_flat": end("flat start", "lam"),
        "conv_ratio_summable": ratio("summable", "lam_length"),
        "conv_ratio_barely": ratio("barely", "lam_length"),
        "conv_ratio_harmonic": ratio("harmonic", "lam_length"),
        "conv_ratio_root": ratio("root", "lam_length"),
        "conv_ratio_constant": ratio("constant", "lam_length"),
        "conv_value_constant": ratio("constant", "value_range"),
        "conv_value_summable": ratio("summable", "value_range"),
        "conv_spread_summable": f"{by_case['summable'].lam.std():.2f}" if "summable" in by_case else "-",
        "conv_spread_root": f"{by_case['root'].lam.std():.2f}" if "root" in by_case else "-",
        "conv_spread_constant": f"{by_case['constant'].lam.std():.2f}" if "constant" in by_case else "-",
        "conv_dead": f"{len(dead)} of {int((ends.case != 'flat start').sum())}",
        "conv_dead_cases": ", ".join(dead.case.unique()) or "none",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims."""
    parameters = parameters.resolved()
    inside = _present(tables, within=True)
    checks = tables["checks"][tables["checks"].case.isin(inside)]
    data = f"synthetic: single units with finite labels, {len(inside)} cases x {parameters.runs} runs"
    return tuple(_verdict(checks, claim, data, parameters) for claim in ITEMS)


_BASIS = {
    "spbm-thm3-1": ("lemma-10", "lemma-17"),
    "spbm-thm3-2": ("lemma-18", "lemma-18-limit"),
    "spbm-thm3-3": ("lemma-16", "lemma-22", "lemma-24"),
    "spbm-thm3-4": ("lemma-12", "lemma-13-mean", "lemma-19", "lemma-20", "lemma-21", "lemma-23"),
}
_QUANTITY = {
    "spbm-thm3-1": "length of the paths of lambda and p, last dyadic window over the third before it",
    "spbm-thm3-2": "root mean square of |x - s|, last dyadic window over the third before it",
    "spbm-thm3-3": "range of L^emp, last dyadic window over the third before it",
    "spbm-thm3-4": "distance to the nearest critical point, last dyadic window over the third before it",
}


def _verdict(checks: pd.DataFrame, claim: str, data: str, parameters: Parameters) -> Measurement:
    mine = checks[checks.statement == claim]
    lemmas = checks[checks.statement.isin(_BASIS[claim])]
    if mine.empty:
        return Measurement(claim, "", "not testable", "no case within the theorem was run", data)
    measured = (
        f"{_QUANTITY[claim]}: {mine.measured.min():.2f} to {mine.measured.max():.2f} "
        f"(below {mine.bound.min():.2f} to {mine.bound.max():.2f} wanted); its lemmas hold in "
        f"{int(lemmas.holds.sum())} of {len(lemmas)} checks"
    )
    limit = f"numerical: {parameters.steps:,} steps, the limits replaced by the last iterates"
    if not lemmas.holds.all():
        return Measurement(claim, measured, "not reproduced", "an inequality of its proof is violated", data)
    if mine.holds.all():
        return Measurement(claim, measured, "reproduced", limit, data)
    slow = ", ".join(mine[~mine.holds].case)
    verdict = "reproduced in part" if mine.holds.any() else "not reproduced"
    return Measurement(claim, measured, verdict, f"{limit}; not yet seen in: {slow}", data)


# --- figures ---------------------------------------------------------------------------------------------------------


def _colour(name: str, names: Sequence[str]) -> Any:
    return mpl.colormaps["viridis"](np.linspace(0.0, 0.9, max(len(names), 2))[list(names).index(name)])


def _lines(ax: Axes, frame: pd.DataFrame, column: str, **how: Any) -> None:
    """Draw a line a run against k + 1."""
    for _, mine in frame.groupby("run"):
        ax.plot(mine.step + 1, mine[column], linewidth=0.7, alpha=0.6, **how)


def figure_duals(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw lambda and p of the first constraint against the step, a line a run, for some cases."""
    wanted = [name for name in ("summable", "no hold", "flat start", "constant") if name in _present(tables)]
    duals = tables["duals"][tables["duals"].constraint == 0]
    with style():
        figure, axes = panels(2, len(wanted), width=2.3, height=2.2)
        for column, name in enumerate(wanted):
            mine = duals[duals.case == name]
            _lines(axes[0, column], mine, "lam", color=PATH)
            _lines(axes[1, column], mine, "p", color=FRONT)
            axes[0, column].set(title=name, ylim=(0, max(1.75, 1.05 * mine.lam.max())))
            if name != "flat start":
                axes[0, column].axhline(1.6, color="#000000", linestyle=":", linewidth=1.2)
            axes[1, column].set(xlabel="k + 1", ylim=(0, 1.05))
            for ax in axes[:, column]:
                ax.set_xscale("log")
        axes[0, 0].set_ylabel(r"$\lambda^k$")
        axes[1, 0].set_ylabel(r"$p^k$")
    return figure


def figure_items(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw |x - s|, the distance of L^emp from its last value, and the distance to the critical points."""
    names = [name for name in _present(tables, within=True) if name != "flat start"]
    paths = tables["paths"]
    titles = {
        "gap": r"$|x^k - s^k|$",
        "value": r"$|L^{emp}(x^k) - L^{emp}(x^K)|$",
        "distance": "distance to critical points",
    }
    with style():
        figure, axes = panels(1, 3, width=3.0, height=3.1)
        for ax, (column, title) in zip(axes[0], titles.items(), strict=True):
            for name in names:
                mine = paths[(paths.case == name) & (paths.step > 0)].copy()
                if column == "value":
                    final = mine[mine.step == mine.step.max()].set_index("run").value
                    mine["value"] = (mine.value - mine.run.map(final)).abs()
                    mine = mine[mine.step < mine.step.max()]
                middle = np.sqrt((mine[column] ** 2).groupby(mine.step).mean())
                middle = middle[middle > 0]
                ax.loglog(middle.index, middle, color=_colour(name, names), linewidth=1.3, label=name)
            rate = parameters.decay * {"gap": 1.0, "value": 1.0, "distance": 0.5}[column]
            steps = np.array([10.0, float(paths.step.max())])
            start = {"gap": 0.3, "value": 1.0, "distance": 0.6}[column]
            ax.loglog(steps, start * (steps / 10) ** -rate, color="#000000", linestyle=":", label="slope of the step")
            ax.set(title=title, xlabel="k")
        axes[0, 0].set_ylabel("root mean square over the runs")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8.5)
    return figure


def figure_schedules(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw, for each power of the schedule, the length of lambda's path in dyadic windows, and what L^emp does."""
    names = [name for name in ("summable", "barely", "harmonic", "root", "constant") if name in _present(tables)]
    windows = tables["windows"]
    with style():
        figure, axes = panels(1, 3, width=3.0, height=3.1)
        titles = {
            "lam_length": r"length of $\lambda$'s path",
            "lam_range": r"range of $\lambda$",
            "value_range": r"range of $L^{emp}$",
        }
        for ax, (column, title) in zip(axes[0], titles.items(), strict=True):
            for name in names:
                mine = windows[windows.case == name].sort_values("first")
                power = CASES[name].power
                label = rf"$k^{{-{power:g}}}$" if power else "constant"
                ax.loglog(
                    mine["last"], mine[column], marker="o", markersize=4, color=_colour(name, names), label=label,
                    linestyle="-" if CASES[name].within else "--",
                )  # fmt: skip
            ends = sorted(windows[windows.case.isin(names)]["last"].unique())
            ax.set(title=title, xlabel="end of the window of steps")
            ax.set_xticks([ends[0], ends[-1]], [f"{end:,}" for end in (ends[0], ends[-1])])
            ax.tick_params(which="minor", labelbottom=False)
        axes[0, 0].set_ylabel("mean over the runs")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def figure_limits(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw where the runs on the paper's problem end: x against lambda, beside the KKT point."""
    names = [name for name in _present(tables) if CASES[name].problem is COUNTEREXAMPLE and name != "flat start"]
    markers = ("o", "s", "^", "v", "D", "P", "X")
    with style():
        figure, axes = panels(1, 1, width=5.6, height=3.6)
        ax = axes[0, 0]
        for name, marker in zip(names, markers, strict=False):
            mine = tables["ends"][(tables["ends"].case == name) & ~tables["ends"].flat]
            filled = CASES[name].within
            ax.plot(
                mine.x, mine.lam, linestyle="none", marker=marker, markersize=5, alpha=0.8, label=name,
                color=_colour(name, names), markerfacecolor=_colour(name, names) if filled else "none",
            )  # fmt: skip
        ax.plot(0.5, 1.6, marker="*", markersize=17, color=PATH, linestyle="none", label=r"$(x^\star, \lambda^\star)$")
        ax.axvline(0.5, color="#000000", linestyle=":", linewidth=1.2)
        ax.set(xlabel="x at the last step (feasible from 0.5 on)", ylabel=r"$\lambda$ at the last step")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")
    return figure


def figure_lemmas(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw how tight the lemmas' inequalities are: left over right, a marker a case."""
    checks = tables["checks"]
    rows = [key for key in LEMMAS if key not in _NO_RATIO][::-1]
    markers = ("o", "s", "^", "v", "D", "P", "X", "*", "<")
    names = _present(tables)
    with style():
        figure, axes = panels(1, 1, width=7.4, height=3.9)
        ax = axes[0, 0]
        for name, marker in zip(names, markers, strict=True):
            mine = checks[(checks.case == name) & checks.statement.isin(rows)]
            ratio = mine.measured / mine.bound
            heights = np.array([rows.index(key) for key in mine.statement]) + 0.07 * (names.index(name) - 4)
            ax.semilogx(
                ratio[ratio > 0], heights[ratio > 0], linestyle="none", marker=marker, markersize=5, label=name,
                color=_colour(name, names), markerfacecolor=_colour(name, names) if CASES[name].within else "none",
            )  # fmt: skip
        ax.axvline(1.0, color="#000000", linestyle="--", linewidth=1.2)
        ax.set_yticks(range(len(rows)), [LEMMAS[key] for key in rows])
        ax.set(xlabel="left / right (1: tight)")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")
    return figure
