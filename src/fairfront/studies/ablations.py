"""Tables 4 and 5 of the second paper: SPBM with one of its components taken away.

An ablation is a grid of its own: gamma, kappa or mu at 0, or one penalty rule only. The paper's rule of selection takes
one entry of each grid. Here an ablation is always tried on the configuration that the paper selected, and beside it on
a balanced part, or the whole, of its grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.plotting import METHODS, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies import gridruns, hypergrids
from fairfront.studies.gridruns import GridParameters
from fairfront.studies.hypergrids import ABLATIONS, Choice, Kind
from fairfront.studies.parameters import meta

__all__ = [
    "LABELS",
    "PAPER",
    "TITLE",
    "Parameters",
    "datasets",
    "effect",
    "facts",
    "figure_ablations",
    "measure",
    "run",
    "table_ablations",
    "table_agreement",
    "table_effects",
    "units",
]

TITLE = "Ablations: what each part of SPBM is for"

LABELS = {
    "alm": "ALM rule",
    "adapt": "ADAPT rule",
    "gamma": "gamma = 0",
    "kappa": "kappa = 0",
    "mu": "mu = 0",
}
"""The rows of Tables 4 and 5."""

_Row = tuple[float, float, float, float]
PAPER: dict[str, dict[str, _Row]] = {
    "E1": {
        "alm": (0.373, 0.001, 0.000, 0.002),
        "adapt": (0.372, 0.001, 0.001, 0.003),
        "gamma": (0.372, 0.001, 0.000, 0.001),
        "kappa": (0.374, 0.001, 0.000, 0.002),
        "mu": (0.376, 0.002, 0.000, 0.001),
    },
    "E2": {
        "alm": (0.359, 0.001, 0.000, 0.002),
        "adapt": (0.350, 0.003, 0.002, 0.007),
        "gamma": (0.386, 0.004, 0.000, 0.009),
        "kappa": (0.356, 0.002, 0.000, 0.005),
        "mu": (0.366, 0.003, 0.004, 0.004),
    },
    "E3": {
        "alm": (0.487, 0.009, 0.001, 0.020),
        "adapt": (0.467, 0.003, 0.001, 0.004),
        "gamma": (0.487, 0.009, 0.001, 0.020),
        "kappa": (0.475, 0.002, 0.000, 0.006),
        "mu": (0.467, 0.003, 0.001, 0.004),
    },
    "E4": {
        "alm": (0.750, 0.041, 0.000, 0.011),
        "adapt": (0.016, 0.004, 0.000, 0.013),
        "gamma": (2.117, 0.106, 0.000, 0.024),
        "kappa": (0.187, 0.017, 0.000, 0.018),
        "mu": (0.235, 0.012, 0.000, 0.052),
    },
    "E5": {
        "alm": (4.487, 0.041, 0.000, 0.029),
        "adapt": (0.001, 0.000, 0.000, 0.002),
        "gamma": (4.604, 0.001, 0.000, 0.042),
        "kappa": (0.017, 0.006, 0.000, 0.012),
        "mu": (0.002, 0.000, 0.000, 0.002),
    },
    "E6": {
        "alm": (4010.463, 3274.490, 0.0000, 0.0002),
        "adapt": (6680.601, 7.048, 0.0000, 0.0002),
        "gamma": (5347.308, 2673.634, 0.0000, 0.0002),
        "kappa": (6684.120, 0.008, 0.0000, 0.0000),
        "mu": (4010.463, 3274.490, 0.0000, 0.0002),
    },
    "E7": {
        "alm": (0.000, 0.000, 0.0000, 0.0000),
        "adapt": (0.000, 0.000, 0.0000, 0.0000),
        "gamma": (0.000, 0.000, 0.0000, 0.0000),
        "kappa": (0.004, 0.005, 0.0001, 0.0001),
        "mu": (0.000, 0.000, 0.0000, 0.0000),
    },
    "E8": {
        "alm": (0.252, 0.109, 0.0003, 0.0004),
        "adapt": (1815.751, 3577.152, 0.0607, 0.1055),
        "gamma": (0.252, 0.109, 0.0003, 0.0004),
        "kappa": (4163.698, 5079.520, 0.1199, 0.1423),
        "mu": (3.079, 2.051, 0.0018, 0.0008),
    },
}
"""Experiment -> row -> best loss, its deviation over the seeds, violation, its deviation: Tables 4 and 5."""

SAME = 0.01
"""Losses that differ by no more than this share, or by half of the last digit that the tables print, are the same."""
_DIGIT = 5e-4


@dataclass(frozen=True, kw_only=True)
class Parameters(GridParameters):
    """What the study can be told; ``fairfront describe ablations`` shows the same in a table."""

    ablation: tuple[str, ...] = field(
        default=ABLATIONS, metadata=meta(help="rows of the tables", choices=ABLATIONS, distinct=True)
    )
    configurations: tuple[int, int, int, int, int, int, int, int] | None = field(
        default=None,
        metadata=meta(help="entries of an ablation's grid beside the selected one, for E1 to E8", low=0, high=1000),
    )


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return gridruns.data_names(parameters)


def _entries(parameters: Parameters, experiment: str, ablation: str) -> tuple[Choice, ...]:
    """Return what is tried: the selected configuration so ablated, then a part of the ablation's grid."""
    assert parameters.configurations is not None
    lists = hypergrids.ablated(gridruns.kind(experiment), ablation)
    own = _selected(experiment, ablation)
    size = parameters.configurations[gridruns.EXPERIMENTS.index(experiment)]
    if not size:
        return own
    generator = np.random.default_rng([parameters.seed, ABLATIONS.index(ablation)])
    return tuple(dict.fromkeys((*own, *hypergrids.part(lists, size, generator))))


def _selected(experiment: str, ablation: str) -> tuple[Choice, ...]:
    """Return the paper's selected configuration under an ablation; one for each number of a rule that it lacks."""
    lists = hypergrids.ablated(gridruns.kind(experiment), ablation)
    row = gridruns.selected(experiment, "spbm").row
    rule = {name: row[name] for name in ("rule", "kappa", "rho") if name in row}
    values = {name: rule if name == "rule" else row[name] for name in lists}
    if ablation in ("gamma", "mu"):
        return (hypergrids.choice({**values, ablation: 0.0}),)
    if ablation == rule["rule"]:
        return (hypergrids.choice(values),)
    return tuple(hypergrids.choice({**values, "rule": other}) for other in lists["rule"])


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts: chunks of one ablation's entries on one experiment."""
    filled = parameters.resolved()
    return gridruns.chunks(filled, "ablation", lambda experiment, name: len(_entries(filled, experiment, name)))


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Parameters
    ----------
    parameters : Parameters
        What to compute; fields left at None take their profile's value, or the paper's.
    progress : callable
        ``progress(iterable, description, total=None)`` yields the items and shows where it is.

    Returns
    -------
    dict of DataFrame
        runs: a row a run, and values: a row a run and constrained quantity, as `fairfront.studies.gridruns.train` gives
        them, and the column ablation.
    """
    parameters = parameters.resolved()
    assert parameters.experiment is not None
    runs: list[pd.DataFrame] = []
    values: list[pd.DataFrame] = []
    for experiment in parameters.experiment:
        for ablation in parameters.ablation:
            chosen = _entries(parameters, experiment, ablation)[parameters.first : parameters.last]
            found = gridruns.train(experiment, "spbm", chosen, parameters.every_seed, parameters.sizes, progress)
            for frames, frame in zip((runs, values), found, strict=True):
                frames.append(frame.assign(ablation=ablation))
    return {"runs": pd.concat(runs, ignore_index=True), "values": pd.concat(values, ignore_index=True)}


# --- tables ----------------------------------------------------------------------------------------------------------


def effect(loss: float, reference: float) -> str:
    """Return what a loss is beside another: "higher", "lower", or "same" (within `SAME` or half a printed digit)."""
    margin = max(SAME * abs(reference), _DIGIT)
    if math.isnan(loss) or math.isnan(reference):
        return "unknown"
    return "higher" if loss > reference + margin else "lower" if loss < reference - margin else "same"


def _best(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the entry that the rule selects of each ablation: indexed by experiment and ablation."""
    table = gridruns.over_seeds(tables["runs"], tables["values"], ("experiment", "ablation", "configuration"))
    places = {
        (str(experiment), str(ablation)): hypergrids.select(mine, gridruns.epsilon(str(experiment)))
        for (experiment, ablation), mine in table.groupby(["experiment", "ablation"], sort=False)
    }
    best = table.loc[list(places.values())]
    entries = table.groupby(["experiment", "ablation"], sort=False).size()
    return best.set_index(["experiment", "ablation"]).assign(entries=entries)


def table_ablations(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return Tables 4 and 5: a row an experiment and ablation, the paper's numbers beside ours.

    Columns: experiment, ablation, the paper's loss and violation, our loss, its deviation over the seeds, our
    violation, feasible (within 10 %), entries (how many were tried), the selected configuration.
    """
    best = _best(tables)
    rows = []
    for (experiment, ablation), (_, row) in zip(best.index, best.iterrows(), strict=True):
        loss, _, violation, _ = PAPER[experiment][ablation]
        rows.append(
            {
                "experiment": experiment,
                "ablation": LABELS[ablation],
                "paper's loss": loss,
                "our loss": row.loss,
                "our deviation": row.loss_std,
                "paper's violation": violation,
                "our violation": max(0.0, row.violation),
                "feasible": bool(row.feasible),
                "entries": int(row.entries),
                "selected": row.configuration,
            }
        )
    return pd.DataFrame(rows)


def table_effects(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what each ablation does to the loss, in the paper and here: a row an experiment and comparison.

    An ablation is compared with the whole method under the penalty rules that its own entries have, the better one
    where it has both: kappa = 0 with ADAPT, which alone has a kappa. The row "ALM rule" compares that rule with ADAPT.

    Columns: experiment, ablation (its name), paper's ratio (of losses), our ratio, paper, ours (`effect`; "infeasible"
    where the ablation has no feasible entry and the whole method has; "unknown" where the whole method has none, nor
    one that violates as little as the paper's own, or where its best entry is the trivial solution of an equation for
    every seed), agrees (None where ours is unknown).
    """
    best = _best(tables)
    rules = tables["runs"].groupby(["experiment", "ablation"]).rule.agg(set)
    rows: list[dict[str, Any]] = []
    for experiment in dict.fromkeys(best.index.get_level_values(0)):
        mine = best.loc[experiment]
        for ablation in ("gamma", "kappa", "mu", "alm"):
            if ablation not in mine.index:
                continue
            used = {"adapt"} if ablation == "alm" else rules[experiment, ablation]
            against = [rule for rule in ("adapt", "alm") if rule in used]
            if not set(against) <= set(mine.index):
                continue
            whole = mine.loc[against]
            reference = whole.loc[hypergrids.select(whole, gridruns.epsilon(experiment))]
            printed, allowed = min((PAPER[experiment][name][0], PAPER[experiment][name][2]) for name in against)
            loss, row = PAPER[experiment][ablation][0], mine.loc[ablation]
            ours = "unknown"
            trivial = reference.collapsed == reference.seeds
            if not trivial and (reference.feasible or reference.violation <= allowed):
                good = row.feasible or row.violation <= max(allowed, reference.violation)
                ours = effect(row.loss, reference.loss) if good else "infeasible"
            paper = effect(loss, printed)
            rows.append(
                {
                    "experiment": experiment,
                    "ablation": ablation,
                    "paper's ratio": loss / printed if printed else math.nan,
                    "our ratio": row.loss / reference.loss if reference.loss else math.nan,
                    "paper": paper,
                    "ours": ours,
                    # An infeasible model is the worse one, as one of higher loss is.
                    "agrees": None if ours == "unknown" else ours.replace("infeasible", "higher") == paper,
                }
            )
    return pd.DataFrame(
        rows, columns=["experiment", "ablation", "paper's ratio", "our ratio", "paper", "ours", "agrees"]
    )


def table_agreement(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how often the paper's effect was found: a row an ablation, a column an experiment, in words."""
    effects = table_effects(tables)
    effects = effects.assign(words=effects.paper + " / " + effects.ours, row=effects.ablation.map(LABELS))
    wide = effects.pivot_table(index="row", columns="experiment", values="words", aggfunc="first", sort=False)
    return wide.fillna("").rename_axis(columns=None).reset_index().rename(columns={"row": "paper / here"})


# --- verdicts --------------------------------------------------------------------------------------------------------

_CLAIMS = {
    "spbm-table4-gamma": ("gamma",),
    "spbm-table4-kappa": ("kappa",),
    "spbm-table4-mu": ("mu",),
    "spbm-table4-rule": ("alm",),
    "spbm-table5": ("gamma", "kappa", "mu", "alm"),
}


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims."""
    parameters = parameters.resolved()
    effects = table_effects(tables)
    return tuple(_judged(claim, names, effects, tables, parameters) for claim, names in _CLAIMS.items())


def _judged(
    claim: str, names: Sequence[str], effects: pd.DataFrame, tables: dict[str, pd.DataFrame], parameters: Parameters
) -> Measurement:
    kind: Kind = "pinn" if claim == "spbm-table5" else "fairness"
    every = [e for e in gridruns.EXPERIMENTS if gridruns.kind(e) == kind]
    mine = effects[effects.ablation.isin(names) & effects.experiment.isin(every)]
    covered = list(dict.fromkeys(mine.experiment))
    lacks = [f"not run: {', '.join(e for e in every if e not in covered)}"] if len(covered) < len(every) else []
    data = "; ".join(gridruns.setting(e, parameters.sizes) for e in covered)
    words = "; ".join(
        f"{row.experiment}{f' {LABELS[str(row.ablation)]}' if len(names) > 1 else ''}: {row.ours}"
        f"{'' if row.ours == 'unknown' else f' (x {row[3]:.3g})'}, paper {row.paper}"
        for row in mine.itertuples(index=False)
    )
    known = mine[mine.agrees.notna()]
    if known.empty:
        reason = (
            "the whole method has no feasible entry but the trivial solution"
            if covered
            else "no such comparison among those run"
        )
        return Measurement(claim, words or "nothing", "not testable", "; ".join([reason, *lacks]), data or "none")
    unknown = sorted(set(mine.experiment[mine.agrees.isna()]))
    if unknown:
        lacks.append(f"no feasible entry of the whole method on {', '.join(unknown)}")
    agrees = known.agrees.astype(bool)
    other = [f"{row.experiment} {LABELS[str(row.ablation)]}" for row in known[~agrees].itertuples()]
    if other:
        lacks.insert(0, f"another effect: {', '.join(other)}")
    short = any(length is not None for length in (parameters.steps, parameters.single_steps, parameters.iterations))
    if short:
        lacks.append("shorter runs than the paper's")
    sizes = {name: len(hypergrids.grid(hypergrids.ablated(kind, name))) for name in ABLATIONS}
    tried = _best(tables).entries
    if any(tried[e, name] < sizes[name] for e in covered for name in names):
        lacks.append("parts of the grids")
    if agrees.any():
        verdict = "reproduced in part" if lacks else "reproduced"
    else:  # what short runs do not show, long ones may
        verdict = "not testable" if short else "not reproduced"
    return Measurement(claim, words, verdict, "; ".join(lacks), data)


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    effects, best = table_effects(tables), _best(tables)
    experiments = list(dict.fromkeys(effects.experiment))
    known = effects[effects.agrees.notna()]
    seeds = f"{len(parameters.every_seed)} seed{'s' if len(parameters.every_seed) != 1 else ''}"
    words = {
        "setting": (
            f"{'; '.join(gridruns.setting(e, parameters.sizes) for e in experiments)}; "
            f"{int(best.entries.sum())} entries, {seeds}; profile {parameters.profile}; variant: Algorithm 1"
        ),
        "absent": " ".join(parameters.absent) or "All of this profile's data are at hand.",
        "agrees": f"{int(known.agrees.sum())} of {len(known)}",
        "unknown": f"{len(effects) - len(known)}",
    }
    for ablation in ("gamma", "kappa", "mu", "alm"):
        mine = effects[(effects.ablation == ablation) & (effects.ours != "unknown")]
        found = [f"{row.experiment} {row.ours} ({row[3]:.3g})" for row in mine.itertuples(index=False)]
        words[f"{ablation}_ours"] = ", ".join(found) or "nowhere known"
    return words


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_ablations(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the loss of each ablation over that of the whole method, ours and the paper's, a panel an experiment."""
    effects, best = table_effects(tables), _best(tables)
    names = list(dict.fromkeys(effects.experiment))
    order = ["alm", "mu", "kappa", "gamma"]
    columns = min(4, len(names))
    mark = METHODS["spbm"]
    with style():
        figure, axes = panels(-(-len(names) // columns), columns, width=2.1, height=1.9)
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
        for ax, experiment in zip(axes.flat, names, strict=False):
            mine = effects[effects.experiment == experiment].set_index("ablation").reindex(order)
            feasible = best.feasible[experiment].reindex(order).fillna(False).to_numpy(dtype=bool)
            y = np.arange(len(order))
            paper, ours = mine["paper's ratio"].to_numpy(float), mine["our ratio"].to_numpy(float)
            ax.plot(paper, y + 0.15, linestyle="none", marker="|", markersize=13, color="#000000", label="paper")
            kind = {"linestyle": "none", "marker": mark.marker, "markersize": 7, "markeredgecolor": mark.colour}
            ax.plot(ours[feasible], y[feasible] - 0.15, markerfacecolor=mark.colour, label="here, feasible", **kind)
            ax.plot(ours[~feasible], y[~feasible] - 0.15, markerfacecolor="none", label="here, infeasible", **kind)
            ax.axvline(1.0, color="#888888", linewidth=1)
            ax.set(title=experiment, xscale="log", ylim=(-0.6, len(order) - 0.4))
            shown = np.concatenate([paper, ours])
            shown = shown[np.isfinite(shown) & (shown > 0)]
            if len(shown) and shown.max() < 3 and shown.min() > 0.3:
                ax.set_xscale("linear")
                ax.margins(x=0.15)
                ax.locator_params(axis="x", nbins=4)
            ax.set_yticks(y, [LABELS[name] if ax in axes[:, 0] else "" for name in order])
        for ax in axes.flat[max(0, len(names) - columns) : len(names)]:
            ax.set_xlabel("loss / whole method's")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(3, columns + 1))
    return figure
