"""Figure 1(b) and section 4.2 of the second paper: how many entries of a hyper-parameter grid give a good model.

Entries of the grids of SPBM and SSL-ALM are trained, all of them or a balanced random part, in which every setting of
SPBM's comes with both penalty-barrier functions. Their losses make Moré-Wild profiles, with infeasible entries left out
of the denominator, as published, and counted as failures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.plotting import METHODS, draw_profile, panels, style
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies import gridruns, hypergrids
from fairfront.studies.gridruns import GridParameters
from fairfront.studies.hypergrids import Choice, Kind
from fairfront.studies.parameters import meta
from fairfront.studies.profiles import Profile, data_profile

__all__ = [
    "GRIDS",
    "LEVEL",
    "LOW",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_configurations",
    "figure_profiles",
    "measure",
    "profile",
    "run",
    "scores",
    "table_best",
    "table_counts",
    "table_factors",
    "table_grids",
    "table_phi",
    "table_shares",
    "units",
]

TITLE = "Robustness: how much of a grid works"

_METHODS = ("spbm", "ssl-alm")
_KINDS: dict[Kind, str] = {"fairness": "fairness", "pinn": "PINNs"}

GRIDS: dict[tuple[Kind, str], int] = {
    ("fairness", "spbm"): 360,
    ("fairness", "ssl-alm"): 100,
    ("pinn", "spbm"): 384,
    ("pinn", "ssl-alm"): 360,
}
"""Sizes of the grids as section 4.2 states them."""

LEVEL = 1e-3
"""Losses of the two penalty-barrier functions that differ by no more than this share are level."""

LOW = 0.1
"""A low loss: at most so much of the way from the best feasible loss to that of the untrained network."""


@dataclass(frozen=True, kw_only=True)
class Parameters(GridParameters):
    """What the study can be told; ``fairfront describe robustness`` shows the same in a table."""

    methods: tuple[str, ...] = field(default=_METHODS, metadata=meta(help="methods", choices=_METHODS, distinct=True))
    configurations: int | None = field(
        default=None, metadata=meta(help="entries of each fairness grid, at most", low=2, high=1000)
    )
    pinn_configurations: int | None = field(
        default=None, metadata=meta(help="entries of each grid of equations, at most", low=2, high=1000)
    )


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    return gridruns.data_names(parameters)


def _entries(parameters: Parameters, experiment: str, method: str) -> tuple[Choice, ...]:
    """Return the part of a method's grid that is trained: the same for all experiments that share the grid."""
    kind = gridruns.kind(experiment)
    size = parameters.configurations if kind == "fairness" else parameters.pinn_configurations
    lists = hypergrids.factors(kind, method)
    functions = lists.pop("phi", None)
    generator = np.random.default_rng([parameters.seed, list(GRIDS).index((kind, method))])
    if functions is None:
        return hypergrids.part(lists, size, generator)
    chosen = hypergrids.part(lists, None if size is None else max(1, size // len(functions)), generator)
    return tuple(Choice(c.lr, (("phi", phi), *c.settings)) for phi in functions for c in chosen)


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts: chunks of one method's entries on one experiment."""
    filled = parameters.resolved()
    return gridruns.chunks(filled, "methods", lambda experiment, method: len(_entries(filled, experiment, method)))


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
        runs: a row a run, and values: a row a run and constrained quantity; see `fairfront.studies.gridruns.train`.
    """
    parameters = parameters.resolved()
    assert parameters.experiment is not None
    found = [
        gridruns.train(
            experiment,
            method,
            _entries(parameters, experiment, method)[parameters.first : parameters.last],
            parameters.every_seed,
            parameters.sizes,
            progress,
        )
        for experiment in parameters.experiment
        for method in parameters.methods
    ]
    runs, values = zip(*found, strict=True)
    return {"runs": pd.concat(runs, ignore_index=True), "values": pd.concat(values, ignore_index=True)}


# --- tables ----------------------------------------------------------------------------------------------------------


def table_grids() -> pd.DataFrame:
    """Return the sizes of the grids that the paper's lists make, beside those that it states."""
    rows = []
    for (kind, method), stated in GRIDS.items():
        lists = hypergrids.factors(kind, method)
        product = " x ".join(f"{len(values)} {name}" for name, values in lists.items())
        size = len(hypergrids.grid(lists))
        rows.append(
            {
                "grid": _KINDS[kind],
                "method": METHODS[method].label,
                "lists": product,
                "size": size,
                "stated": stated,
                "same": size == stated,
            }
        )
    return pd.DataFrame(rows)


def scores(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row a configuration (`fairfront.studies.gridruns.over_seeds`) with its kind and its score.

    The score is max((Q - Q*) / (Q0 - Q*), 0): Q the loss, Q* the least loss of a feasible configuration of either
    method on the same experiment, Q0 the loss of the untrained network. It is NaN for an infeasible configuration, for
    one that diverged, and where Q0 is no larger than Q*.
    """
    table = gridruns.over_seeds(tables["runs"], tables["values"])
    best = table[table.feasible].groupby("experiment").loss.min()
    least = table.experiment.map(best)
    room = table.start - least
    score = ((table.loss - least) / room.where(room > 0)).clip(lower=0.0)
    return table.assign(kind=table.experiment.map(gridruns.kind), score=score.where(table.feasible))


def profile(table: pd.DataFrame, kind: Kind, *, counted: bool) -> Profile:
    """Return the Moré-Wild profile of each method over the experiments of a kind.

    Parameters
    ----------
    table : DataFrame
        Of `scores`.
    kind : {"fairness", "pinn"}
        Which experiments.
    counted : bool
        Whether infeasible configurations count as failures; else they are left out of the denominator, as published.
    """
    mine = table[table.kind == kind]
    costs = {}
    for method, rows in mine.groupby("method", sort=False):
        kept = rows if counted else rows[rows.feasible]
        costs[str(method)] = kept.score if len(kept) else [math.nan]
    return data_profile(costs, 0)  # a score is a cost in units of its own


def table_counts(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how many configurations are feasible, an experiment and method a row, and what their losses are.

    "feasible and u = 0" counts those that collapsed to the trivial solution of an equation for at least one seed.
    """
    table = scores(tables)
    rows = []
    for (experiment, method), mine in table.groupby(["experiment", "method"], sort=False):
        kind = gridruns.kind(str(experiment))
        feasible = mine[mine.feasible]
        rows.append(
            {
                "experiment": experiment,
                "method": METHODS[str(method)].label,
                "trained": len(mine),
                "grid": GRIDS[kind, str(method)],
                "feasible": len(feasible),
                "share feasible": len(feasible) / len(mine),
                "feasible and u = 0": int((feasible.collapsed > 0).sum()),
                f"within {LOW:g} of the best": int((mine.score <= LOW).sum()),
                "best feasible loss": feasible.loss.min(),
                "median feasible loss": feasible.loss.median(),
            }
        )
    return pd.DataFrame(rows)


def table_shares(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what the claims compare: each method's shares over the experiments of a kind, pooled.

    Columns: kind, method, entries, feasible (how many), share feasible, and the share of low losses (a score of at most
    `LOW`) among the feasible ones, as published, and among all.
    """
    table = scores(tables)
    rows = []
    for (kind, method), mine in table.groupby(["kind", "method"], sort=False):
        low = int((mine.score <= LOW).sum())
        feasible = int(mine.feasible.sum())
        rows.append(
            {
                "kind": kind,
                "method": method,
                "entries": len(mine),
                "feasible": feasible,
                "share feasible": feasible / len(mine),
                "low of feasible": low / feasible if feasible else math.nan,
                "low of all": low / len(mine),
            }
        )
    return pd.DataFrame(rows)


def table_best(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the configuration that the paper's rule selects, and the paper's own, an experiment and method a row."""
    table = scores(tables)
    rows = []
    for (experiment, method), mine in table.groupby(["experiment", "method"], sort=False):
        place = hypergrids.select(mine, gridruns.epsilon(str(experiment)))
        best = mine.loc[place]
        rows.append(
            {
                "experiment": experiment,
                "method": METHODS[str(method)].label,
                "selected": best.configuration,
                "loss": best.loss,
                "violation": max(0.0, best.violation),
                "feasible": bool(best.feasible),
                "the paper's": str(gridruns.selected(str(experiment), str(method))),
            }
        )
    return pd.DataFrame(rows)


def table_phi(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how the two penalty-barrier functions compare, an experiment a row.

    Columns: experiment, the loss of the configuration that the paper's rule selects with either function, and whether
    it is feasible; better (the function it selects of both); pairs (settings trained with both functions and feasible
    with both) and in how many of them phi_QL has the lower loss; paper (the function that B.4 says is better).
    """
    table = scores(tables)
    table = table[table.method == "spbm"]
    rest = [name for name in gridruns.SETTINGS if name != "phi"]
    names = {"ql": "phi_QL", "qr": "phi_QR"}
    rows = []
    for experiment, mine in table.groupby("experiment", sort=False):
        bound = gridruns.epsilon(str(experiment))
        best = {str(phi): mine.loc[hypergrids.select(part, bound)] for phi, part in mine.groupby("phi")}
        better = names[str(mine.loc[hypergrids.select(mine, bound)].phi)]
        if all(row.feasible for row in best.values()):
            low, high = sorted(row.loss for row in best.values())
            better = "level" if high - low <= LEVEL * abs(low) else better
        both = mine[mine.feasible].fillna({"kappa": -1.0, "rho": -1.0, "eta": -1.0})
        losses = both.pivot_table(index=rest, columns="phi", values="loss").reindex(columns=list(names)).dropna()
        rows.append(
            {
                "experiment": experiment,
                **{f"{names[phi]} loss": row.loss for phi, row in best.items()},
                **{f"{names[phi]} feasible": bool(row.feasible) for phi, row in best.items()},
                "better": better,
                "pairs": len(losses),
                "phi_QL lower in": int((losses["ql"] < losses["qr"]).sum()),
                "paper": names["qr" if experiment == "E3" else "ql"],
            }
        )
    return pd.DataFrame(rows)


def table_factors(tables: dict[str, pd.DataFrame], experiment: str, method: str) -> pd.DataFrame:
    """Return what each value of a factor does: the shares of feasible entries and of low losses among those with it."""
    table = scores(tables)
    mine = table[(table.experiment == experiment) & (table.method == method)]
    mine = mine.assign(rule=mine.rule + mine.kappa.map(_suffix) + mine.rho.map(_suffix))
    if method != "spbm":
        mine = mine.drop(columns="rule").rename(columns={"rho": "rule"})
    labels = {"rule": "penalty rule" if method == "spbm" else "rho"}
    rows: list[dict[str, Any]] = []
    for factor in ("lr", "phi", "gamma", "eta", "rule", "mu"):
        for value, part in mine[mine[factor].notna() & (mine[factor] != "")].groupby(factor):
            rows.append(
                {
                    "factor": labels.get(factor, factor),
                    "value": f"{value:g}" if isinstance(value, float) else str(value),
                    "entries": len(part),
                    "share feasible": part.feasible.mean(),
                    "share of low losses": (part.score <= LOW).mean(),
                }
            )
    return pd.DataFrame(rows)


def _suffix(value: float) -> str:
    return "" if math.isnan(value) else f" {value:g}"


# --- verdicts --------------------------------------------------------------------------------------------------------


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the grids and the tables say of the paper's claims."""
    parameters = parameters.resolved()
    return (
        _grid_sizes(),
        _low_losses(tables, parameters),
        _feasible(tables, parameters),
        _phi_choice(tables, parameters),
    )


def _data(tables: dict[str, pd.DataFrame], parameters: Parameters) -> str:
    """Return what was trained on what, in words."""
    words = []
    for experiment, mine in table_counts(tables).groupby("experiment", sort=False):
        trained = ", ".join(f"{row['trained']} of {row['grid']} {row['method']}" for _, row in mine.iterrows())
        words.append(f"{gridruns.setting(str(experiment), parameters.sizes)}: {trained}")
    return "; ".join(words)


def _grid_sizes() -> Measurement:
    table = table_grids()
    measured = "; ".join(f"{row.method} {row.size} ({row.grid})" for row in table.itertuples())
    if table.same.all():
        return Measurement("spbm-grids", measured, "reproduced", "", "the lists of appendix B.3")
    wrong = ", ".join(f"{row.method} {row.grid}" for row in table[~table.same].itertuples())
    verdict = "reproduced in part" if table.same.any() else "not reproduced"
    return Measurement("spbm-grids", measured, verdict, f"other sizes: {wrong}", "the lists of appendix B.3")


def _compared(shares: pd.DataFrame, column: str, count: str) -> dict[str, tuple[float, float, float]]:
    """Return for each kind SPBM's share, SSL-ALM's, and the standard error of their difference; NaN where none is."""
    found = {}
    for kind, mine in shares.groupby("kind", sort=False):
        rows = mine.set_index("method").reindex(_METHODS)
        ours, theirs = rows[column]
        error = math.sqrt(sum(p * (1 - p) / max(n, 1) for p, n in zip(rows[column], rows[count])))
        found[str(kind)] = (ours, theirs, error)
    return found


def _claim(
    claim: str, holds: dict[str, bool | None], measured: str, reasons: Sequence[str], whole: bool, data: str
) -> Measurement:
    """Return the verdict on a claim of several kinds: what holds is True, what does not False, None: not to be told."""
    known = [value for value in holds.values() if value is not None]
    if not known:
        return Measurement(claim, measured, "not testable", "; ".join(reasons), data)
    if not any(known):
        verdict = "not reproduced"
    else:
        verdict = "reproduced" if all(known) and len(known) == len(_KINDS) and whole else "reproduced in part"
    return Measurement(claim, measured, verdict, "; ".join(reasons) if verdict != "reproduced" else "", data)


def _whole(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[bool, list[str]]:
    """Return whether every grid of the paper was trained as in the paper, and what was not."""
    counts = table_counts(tables)
    lacking = [e for e in gridruns.EXPERIMENTS if e not in set(counts.experiment)]
    reasons = [f"not run: {', '.join(lacking)}"] if lacking else []
    if (counts.trained < counts["grid"]).any():
        reasons.append("a part of each grid")
    if any(length is not None for length in (parameters.steps, parameters.single_steps, parameters.iterations)):
        reasons.append("shorter runs than the paper's")
    return not reasons, reasons


def _trivial(tables: dict[str, pd.DataFrame]) -> list[str]:
    """Return that the feasible entries of an equation are its trivial solution, where all are."""
    table = gridruns.over_seeds(tables["runs"], tables["values"])
    feasible = table[table.feasible & (table.experiment.map(gridruns.kind) == "pinn")]
    known = feasible.groupby("experiment", sort=False).collapsed.min()
    return [f"{experiment}: every feasible entry is the trivial solution" for experiment in known[known > 0].index]


def _low_losses(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Measurement:
    shares = table_shares(tables)
    whole, lacking = _whole(tables, parameters)
    reasons = [*_trivial(tables), *lacking]
    published = _compared(shares, "low of feasible", "feasible")
    counted = _compared(shares, "low of all", "entries")
    holds: dict[str, bool | None] = {}
    words = []
    for kind, (ours, theirs, error) in published.items():
        name = _KINDS[kind]  # type: ignore[index]
        if math.isnan(ours) and math.isnan(theirs):
            words.append(f"{name}: no feasible entry")
            holds[kind] = None
            continue
        words.append(
            f"{name}: {_percent(ours)} of SPBM's feasible entries have a low loss, {_percent(theirs)} of SSL-ALM's; of "
            f"all entries {_percent(counted[kind][0])} and {_percent(counted[kind][1])}"
        )
        if math.isnan(ours) or math.isnan(theirs):
            holds[kind] = None
            reasons = [f"{name}: a method has no feasible entry at this length", *reasons]
        else:
            clear = abs(ours - theirs) > 2 * error or whole
            holds[kind] = ours > theirs if clear else None
            if ours <= theirs:
                reasons = [f"{name}: not so with the published denominator", *reasons]
            if not clear:
                reasons = [f"{name}: within two standard errors of a part of the grid", *reasons]
            if counted[kind][0] <= counted[kind][1]:
                reasons = [f"{name}: not so when infeasible entries count as failures", *reasons]
    return _claim("spbm-fig1-loss", holds, "; ".join(words), reasons, whole, _data(tables, parameters))


def _feasible(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Measurement:
    shares = table_shares(tables)
    whole, lacking = _whole(tables, parameters)
    reasons = [*_trivial(tables), *lacking]
    found = _compared(shares, "share feasible", "entries")
    holds: dict[str, bool | None] = {}
    words = []
    for kind, (ours, theirs, error) in found.items():
        name = _KINDS[kind]  # type: ignore[index]
        words.append(f"{name}: {_percent(ours)} of SPBM's entries are feasible, {_percent(theirs)} of SSL-ALM's")
        lead = theirs - ours if kind == "fairness" else ours - theirs
        if math.isnan(lead) or ours == theirs == 0:
            holds[kind] = None
            reasons = [f"{name}: no feasible entry at this length", *reasons]
        else:
            clear = abs(lead) > 2 * error or whole
            holds[kind] = lead > 0 if clear else None
            if lead <= 0:
                reasons = [f"{name}: not so", *reasons]
            if not clear:
                reasons = [f"{name}: within two standard errors of a part of the grid", *reasons]
    return _claim("spbm-fig1-feasible", holds, "; ".join(words), reasons, whole, _data(tables, parameters))


def _phi_choice(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Measurement:
    claim, data, table = "spbm-phi-choice", _data(tables, parameters), table_phi(tables)
    known = table[table["phi_QL feasible"] | table["phi_QR feasible"]]
    measured = "; ".join(
        f"{row.experiment}: {row.better} {'at the end' if row.better == 'level' else 'selected'}, phi_QL lower in "
        f"{row[7]} of {row.pairs} pairs"
        for row in known.itertuples(index=False)
    )
    if known.empty:
        return Measurement(claim, "no feasible entry", "not testable", "runs too short for a feasible entry", data)
    level = known.better == "level"
    whole, reasons = _whole(tables, parameters)
    if level.any():
        reasons.insert(0, f"level within {LEVEL:g} on {', '.join(known.experiment[level])}")
    if level.all():
        return Measurement(claim, measured, "not testable", "; ".join(reasons), data)
    known = known[~level]
    agrees = known.better == known.paper
    if agrees.all() and whole and not level.any():
        return Measurement(claim, measured, "reproduced", "", data)
    other = ", ".join(known.experiment[~agrees])
    verdict = "reproduced in part" if agrees.any() else "not reproduced"
    return Measurement(claim, measured, verdict, "; ".join([f"otherwise on {other}"] * bool(other) + reasons), data)


def _percent(share: float) -> str:
    return "none" if math.isnan(share) else f"{share:.0%}"


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    shares, counts, phi = table_shares(tables), table_counts(tables), table_phi(tables)
    whole, lacking = _whole(tables, parameters)
    seeds = f"{len(parameters.every_seed)} seed{'s' if len(parameters.every_seed) != 1 else ''}"
    words = {
        "setting": (
            f"{_data(tables, parameters)}; {seeds}; profile {parameters.profile}; "
            "variant: Algorithm 1, SSL-ALM with its quadratic penalty"
        ),
        "coverage": "the whole of the paper's grids" if whole else "; ".join(lacking),
        "absent": " ".join(parameters.absent) or "All of this profile's data are at hand.",
        "trained": f"{int(counts.trained.sum()):,}",
        "low": f"{LOW:g}",
        "trivial": "; ".join(_trivial(tables)) or "none of them, or not all, the trivial solution",
        "phi_pairs": "; ".join(f"{row.experiment}: {row[7]} of {row.pairs}" for row in phi.itertuples(index=False)),
        "phi_selected": "; ".join(f"{row.experiment}: {row.better}" for row in phi.itertuples(index=False)),
    }
    for kind, name in _KINDS.items():
        mine = shares[shares.kind == kind].set_index("method").reindex(_METHODS)
        for method, row in mine.iterrows():
            key = f"{kind}_{str(method).replace('-', '_')}"
            words[f"{key}_feasible"] = (
                "not run"
                if math.isnan(row.entries)
                else (f"{int(row.feasible)} of {int(row.entries)} ({row['share feasible']:.0%})")
            )
            words[f"{key}_published"] = _percent(row["low of feasible"])
            words[f"{key}_counted"] = _percent(row["low of all"])
        words[f"{kind}_name"] = name
    return words


# --- figures ---------------------------------------------------------------------------------------------------------

_DENOMINATORS = {False: "infeasible left out (as published)", True: "infeasible counted as failures"}
_FLOOR = 1e-3  # the axis of the score is logarithmic and begins here


def figure_profiles(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the Moré-Wild profiles: a column a kind of problem, a row a denominator."""
    table = scores(tables)
    kinds = [kind for kind in _KINDS if (table.kind == kind).any()]
    with style():
        figure, axes = panels(2, len(kinds), width=3.6, height=2.5)
        for column, kind in enumerate(kinds):
            for row, (counted, words) in enumerate(_DENOMINATORS.items()):
                ax = axes[row, column]
                steps = profile(table, kind, counted=counted).steps(1.0)
                draw_profile(ax, steps.assign(x=steps.x.clip(lower=_FLOOR)), METHODS)
                ax.set(xscale="log", xlim=(_FLOOR, 1.0), ylim=(0, 1.02), ylabel="")
                ax.axvline(LOW, color="#888888", linestyle=":", linewidth=1)
                ax.set_title(f"{_KINDS[kind]}: {words}", fontsize=8.5)
                if not table[table.kind == kind].feasible.any():
                    ax.text(0.5, 0.5, "no feasible entry", transform=ax.transAxes, ha="center", color="#555555")
            axes[1, column].set_xlabel(r"score $\tau$")
        for ax in axes[:, 0]:
            ax.set_ylabel("share of entries")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def figure_configurations(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw every configuration: violation in units of the bound against loss, a panel an experiment."""
    table = scores(tables)
    table = table[np.isfinite(table.loss) & np.isfinite(table.violation)]
    names = list(table.experiment.unique())
    columns = min(3, len(names))
    with style():
        figure, axes = panels(-(-len(names) // columns), columns, width=2.7, height=2.6)
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
        for ax, experiment in zip(axes.flat, names, strict=False):
            bound = gridruns.epsilon(str(experiment))
            for method in _METHODS:
                mark = METHODS[method]
                mine = table[(table.experiment == experiment) & (table.method == method)]
                ax.plot(
                    mine.loss,
                    mine.violation / bound,
                    linestyle="none",
                    marker=mark.marker,
                    markersize=4.5,
                    markerfacecolor="none",
                    markeredgecolor=mark.colour,
                    label=mark.label,
                )
            ax.axhline(hypergrids.TOLERANCE, color="#555555", linestyle="--", linewidth=1, label="feasible below")
            ax.set(title=experiment, xlabel="loss")
            if (table.violation[table.experiment == experiment] > 20 * bound).any():
                ax.set_yscale("symlog")
            ax.margins(0.08)
            ax.locator_params(axis="x", nbins=4)
        for ax in axes[:, 0]:
            ax.set_ylabel("violation / bound")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(3, columns + 1))
    return figure
