"""How long the bilevel engine takes: on this machine, against the number of rows, and beside the authors' package.

Times are no claim of the paper's and are never compared by a test; the chapter shows them and what targets are met.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront import metrics
from fairfront.bilevel import slsqp
from fairfront.datasets import synthetic_acs
from fairfront.datasets.records import benchmark_records
from fairfront.plotting import FRONT, PATH, panels, style
from fairfront.risks import GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.parameters import StudyParameters, meta

__all__ = [
    "ALONE",
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_ratios",
    "figure_rows",
    "measure",
    "run",
    "table_peer",
    "table_targets",
]

TITLE = "How fast is the engine?"
ALONE = True
"""Times are taken with nothing beside them."""


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe engine_speed`` shows the same in a table."""

    rows: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="synthetic rows to time on", low=500, high=100_000_000)
    )
    groups: tuple[int, ...] = field(default=(2, 6), metadata=meta(help="numbers of groups", low=2, high=36))
    metric: str = field(default="demographic_parity", metadata=meta(help="unfairness metric", choices=metrics.names))
    l2: float = field(default=1e-2, metadata=meta(help="weight of |w|^2/2 in each group's risk", low=1e-6, high=1e3))
    repeats: int | None = field(default=None, metadata=meta(help="so often each solve is timed", low=1, high=1000))


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads: none, its rows are synthetic."""
    return ()


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Returns
    -------
    dict of DataFrame
        times: a row per problem (rows, groups, seconds: the least wall time of a solve, evaluations, seconds per
        evaluation, nanoseconds per evaluation and row, fairness).
    """
    parameters = parameters.resolved()
    assert parameters.rows is not None and parameters.repeats is not None
    cases = [(rows, groups) for rows in parameters.rows for groups in parameters.groups]
    found = []
    for rows, groups in progress(cases, "timing", len(cases)):
        # Marital status and race cut the synthetic persons into more than enough cells to merge into 2..36 groups.
        data = synthetic_acs(rows, sensitive=["race", "marital"], seed=parameters.seed, test_size=0.0, groups=groups)
        risks = GroupRisks.from_data(data, l2=parameters.l2)
        metric = metrics.get(parameters.metric, variant="paper").bind(risks.y, risks.groups, risks.n_groups)
        seconds = np.inf
        for _ in range(parameters.repeats):
            start = time.perf_counter()
            solution = slsqp(risks, metric)
            seconds = min(seconds, time.perf_counter() - start)
        evaluations = max(solution.adjoint_solves, 1)
        found.append(
            {
                "rows": risks.n_rows,
                "features": risks.n_features,
                "groups": groups,
                "seconds": seconds,
                "evaluations": evaluations,
                "seconds per evaluation": seconds / evaluations,
                "ns per evaluation and row": 1e9 * seconds / evaluations / risks.n_rows,
                "fairness": solution.value,
            }
        )
    return {"times": pd.DataFrame(found)}


# --- the records -----------------------------------------------------------------------------------------------------


def table_targets() -> pd.DataFrame:
    """Return a row per target of the recorded suite: case, figure, target, measured, met, date, machine, command."""
    return pd.DataFrame(
        {
            "case": record["name"],
            "figure": row["key"].replace("_", " "),
            "target": f"{'>=' if row['sense'] == 'at_least' else '<='} {row['target']:g}",
            "measured": row["measured"],
            "met": row["met"],
        }
        for record in benchmark_records("bilevel")
        for row in record["targets"]
    )


def table_peer() -> pd.DataFrame:
    """Return a row per recorded comparison with the authors' package: seconds, ratios, values, memory."""
    columns = {
        "ours_s": "ours, s",
        "peer_s": "peer, s",
        "peer_compile_s": "of it compiling, s",
        "ratio": "ratio",
        "ratio_without_compile": "without compiling",
        "ratio_cpu": "of processor times",
        "ours_value": "our value",
        "peer_value": "peer's value",
        "ours_rss_mb": "ours, MB",
        "peer_rss_mb": "peer, MB",
    }
    return pd.DataFrame(
        {"case": record["name"]} | {title: record["figures"][key] for key, title in columns.items()}
        for record in benchmark_records("bilevel")
        if "ratio" in record["figures"]
    )


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    times, targets, peer = tables["times"], table_targets(), table_peer()
    records = benchmark_records("bilevel")
    excess = max(0.0, float((peer["our value"] - peer["peer's value"]).max()))
    largest = times[times.rows == times.rows.max()].iloc[-1]
    return {
        "setting": (
            f"synthetic rows in the shape of ACSIncome, {times.rows.min():,} to {times.rows.max():,}, "
            f"{times.features.max()} features; metric {parameters.metric.replace('_', ' ')}, variant paper; "
            f"profile {parameters.profile}; least of {parameters.resolved().repeats} runs on the machine of this build"
        ),
        "largest_rows": f"{int(largest.rows):,}",
        "largest_groups": f"{int(largest.groups)}",
        "largest_seconds": f"{largest.seconds:.2g}",
        "largest_evaluations": f"{int(largest.evaluations)}",
        "recorded": ", ".join(sorted({record["date"] for record in records})),
        "recorded_on": "; ".join(sorted({record["machine"] for record in records})),
        "recorded_load": f"{min(r['load'] for r in records):g} to {max(r['load'] for r in records):g}",
        "met": f"{int(targets.met.sum())} of {len(targets)}",
        "missed": "; ".join(f"{row.case} ({row.figure})" for row in targets[~targets.met].itertuples()) or "none",
        "ratio_least": f"{peer.ratio.min():.0f}",
        "ratio_most": f"{peer.ratio.max():.0f}",
        "bare_least": f"{peer['without compiling'].min():.1f}",
        "bare_most": f"{peer['without compiling'].max():.0f}",
        "value_excess": f"{excess:.0e}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return nothing: no claim of the papers is about this engine."""
    return ()


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_rows(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the time of one evaluation against the rows, by number of groups, with a line of slope one."""
    times = tables["times"]
    with style():
        figure, axes = panels(1, 1, width=5.0, height=3.4)
        ax = axes[0, 0]
        for colour, (groups, mine) in zip((FRONT, PATH, "#009E73", "#CC79A7") * 9, times.groupby("groups")):
            ax.loglog(mine.rows, mine["seconds per evaluation"], marker="o", color=colour, label=f"{groups} groups")
        first = times.iloc[0]
        line = np.array([times.rows.min(), times.rows.max()], dtype=float)
        ax.loglog(line, first["seconds per evaluation"] * line / first.rows, ":", color="#777777", label="slope 1")
        ax.set(xlabel="rows", ylabel="seconds per evaluation")
        ax.legend()
    return figure


def figure_ratios(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the recorded ratios of the authors' package's time to ours, with and without its compilation."""
    peer = table_peer().iloc[::-1]
    with style():
        figure, axes = panels(1, 1, width=6.4, height=3.4)
        ax, places = axes[0, 0], np.arange(len(peer))
        ax.barh(places + 0.2, peer.ratio, 0.38, color=FRONT, label="whole time")
        ax.barh(places - 0.2, peer["without compiling"], 0.38, color=PATH, label="without the peer's compilation")
        ax.axvline(1.0, color="#777777", linewidth=1)
        ax.set_xscale("log")
        ax.set_yticks(places, peer.case, fontsize=8)
        ax.set(xlabel="time of the authors' package over ours")
        figure.legend(loc="outside lower center", ncols=2)
    return figure
