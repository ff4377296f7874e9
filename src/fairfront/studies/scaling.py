"""Figures 4 and 5 of the first paper: the outer solvers as groups become many, and both kinds of method as rows do.

Figure 4 asks what each two-loop solver has spent when the metric first is at most 1e-4, on subsamples cut into 2 to 36
groups. Figure 5 sets the two-loop method beside badr-sgd as the sample grows. Verdicts are read from counts that are
the same on every machine: passes over the rows, rows read. Seconds stand beside them. Memory is the peak that the
operating system reports of a process of its own, which does nothing else.
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from fairfront import metrics
from fairfront.datasets import GroupedData, info, load
from fairfront.datasets.blocks import ParquetRows, write_blocks
from fairfront.datasets.conversion import convert
from fairfront.datasets.records import benchmark_records
from fairfront.datasets.synthetic import describe
from fairfront.errors import ArgumentError
from fairfront.plotting import OUTER_SOLVERS, legend_below, panels, style
from fairfront.risks import GroupRisks, SmallGroupWarning
from fairfront.runs.fresh import in_fresh_process
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance, require_classification, thinned
from fairfront.studies.parameters import StudyParameters, meta, split
from fairfront.studies.solver_runs import (
    COSTS,
    READINGS,
    StoppingRules,
    judged,
    large_run,
    rule,
    solve_file,
    two_loop_runs,
)
from fairfront.studies.strategies import metric_for

__all__ = [
    "ALONE",
    "SOLVERS",
    "TITLE",
    "WAYS",
    "Parameters",
    "datasets",
    "facts",
    "figure_groups",
    "figure_rows",
    "join",
    "measure",
    "run",
    "table_groups",
    "table_memory",
    "table_peer",
    "table_recorded",
    "table_rows",
    "table_success",
    "units",
]

TITLE = "Scaling: many groups, many rows"
ALONE = True

SOLVERS: tuple[str, ...] = ("slsqp", "slsqp-tight", "trust-constr", "frank-wolfe")
METHODS: tuple[str, ...] = ("slsqp-tight", "badr-sgd")
"""Of Figure 5: the two-loop method and the stochastic one."""
WAYS: tuple[str, ...] = ("two-loop", "two-loop from disk", "badr-sgd")
"""How the rows are held when memory is measured, and by which method."""
_SYNTHETIC = "synthetic-"
_PAPER_ROWS, _PAPER_MB, _PUBLISHED_ROWS = 25_000, 32_000.0, 150_000
_MEMORY = ("population", "way", "rows", "features", "rows_mb", "imports_mb", "loaded_mb", "peak_mb", "value")
_SUBSAMPLES = 7


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe scaling`` shows the same in a table."""

    partition: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="DATA:ATTRIBUTE+ATTRIBUTE to cut into groups (Figure 4)")
    )
    age_cuts: tuple[int, ...] | None = field(
        default=None,
        metadata=meta(help="lower ends of the second and later bins of an age", low=1, high=99, distinct=True),
    )
    draws: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="subsamples of each partition, by number", low=0, distinct=True)
    )
    share: float | None = field(default=None, metadata=meta(help="share of the rows in a subsample", low=0.01, high=1))
    groups: tuple[int, ...] | None = field(
        default=None,
        metadata=meta(help="numbers of groups: the smallest cells are merged", low=2, high=36, distinct=True),
    )
    target: float = field(default=1e-4, metadata=meta(help="value of the metric that counts as success", low=0))
    metric: str = field(
        default="disparate_mistreatment", metadata=meta(help="unfairness metric of Figure 4", choices=metrics.names)
    )
    variant: Literal["paper", "cited"] = field(
        default="paper", metadata=meta(help="the metrics as published, or the definitions that they cite")
    )
    l2: float = field(
        default=1e-2, metadata=meta(help="weight of |w|^2/2 in each group's risk, Figure 4", low=1e-6, high=1e3)
    )
    max_iterations: int | None = field(default=None, metadata=meta(help="most steps of a two-loop solver", low=1))
    population: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="DATA:ATTRIBUTE or synthetic-TASK:ATTRIBUTE to draw samples from (Figure 5)")
    )
    rows: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="sample sizes; more than a data set has are left out", low=200, distinct=True)
    )
    row_draws: int | None = field(default=None, metadata=meta(help="samples of each size", low=1))
    row_metric: str = field(
        default="individual_fairness", metadata=meta(help="unfairness metric of Figure 5", choices=metrics.names)
    )
    row_l2: float = field(
        default=1e-1, metadata=meta(help="weight of |w|^2/2 in each group's risk, Figure 5", low=1e-6, high=1e3)
    )
    sgd_steps: int | None = field(default=None, metadata=meta(help="most steps of badr-sgd", low=10))
    batch: int = field(default=64, metadata=meta(help="rows of each group in a mini-batch", low=1))
    memory_rows: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="sample sizes at which memory is measured", low=200)
    )
    memory_ways: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(
            help="methods of which memory is measured, the two-loop one both ways", choices=WAYS, distinct=True
        ),
    )

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        for name in ("partition", "population"):  # either may be empty: a part is of one figure
            values = getattr(self, name) or ()
            if len(set(values)) != len(values):
                raise ArgumentError(name, f"must name each once, got {', '.join(values)}")
        if list(self.age_cuts or ()) != sorted(self.age_cuts or ()):
            raise ArgumentError("age_cuts", f"must increase, got {', '.join(map(str, self.age_cuts or ()))}")
        for words in self.partition or ():
            require_classification("partition", Instance.parse(words).data)
        for words in self.population or ():
            if not words.startswith(_SYNTHETIC):
                require_classification("population", Instance.parse(words, argument="population").data)
            else:
                _synthetic(words)


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads; synthetic rows are none."""
    parameters = parameters.resolved()
    words = [*(parameters.partition or ()), *(parameters.population or ())]
    return tuple(dict.fromkeys(Instance.parse(word).data for word in words if not word.startswith(_SYNTHETIC)))


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts: one subsample of one partition, or one sample size of one population."""
    parameters = parameters.resolved()
    found = (
        *split(dataclasses.replace(parameters, population=()), "partition", "draws"),
        *split(dataclasses.replace(parameters, partition=()), "population", "rows"),
    )
    return found if len(found) > 1 else (parameters,)


def join(parts: Sequence[Mapping[str, pd.DataFrame]], parameters: Parameters) -> dict[str, pd.DataFrame]:
    """Return the tables of all parts, one below the other; a part is without rows in some of them."""
    return {
        name: pd.concat([part[name] for part in parts if len(part[name])] or [parts[0][name]], ignore_index=True)
        for name in parts[0]
    }


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
        groups: a row per partition, draw, number of groups and solver (rows, smallest: of the groups; start: phi at
        uniform weights; value: phi at what the solver returned; status; evaluations, passes and seconds until phi was
        at most the target, inf where it never was).
        rows: a row per population, sample size, draw and method (features; start; value; seconds; read: rows that were
        read, each as often as it was; steps: evaluations of phi and its gradient, or steps).
        memory: a row per population, size and way to hold the rows (rows_mb: what the features take; imports_mb,
        loaded_mb, peak_mb: peaks of resident memory before, after loading and at the end; value).
    """
    parameters = parameters.resolved()
    tables: dict[str, list[dict[str, Any]]] = {"groups": [], "rows": [], "memory": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallGroupWarning)  # how small they are is in the table
        for words in progress(parameters.partition or (), "partitions", len(parameters.partition or ())):
            tables["groups"].extend(_group_rows(words, parameters))
    sizes = [(words, rows) for words in parameters.population or () for rows in parameters.rows or ()]
    for words, rows in progress(sizes, "sample sizes", len(sizes)):
        _sized(words, rows, parameters, tables)
    found = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return found if tables["memory"] else found | {"memory": pd.DataFrame(columns=list(_MEMORY))}


# --- Figure 4: groups ------------------------------------------------------------------------------------------------


def _group_rows(words: str, parameters: Parameters) -> Iterator[dict[str, Any]]:
    assert parameters.groups is not None and parameters.draws is not None and parameters.share is not None
    assert parameters.max_iterations is not None
    rules = StoppingRules(max_iterations=parameters.max_iterations)
    cuts = {groups: _cut(words, groups, parameters) for groups in sorted(parameters.groups)}
    fitting = {groups: data for groups, data in cuts.items() if data is not None}
    if not fitting:
        raise ArgumentError("partition", f"{words} cannot be cut into {min(cuts)} groups", "another partition")
    for draw in parameters.draws:
        # The same rows for every number of groups: drawn from each of the most groups, of which the others are unions.
        kept = _drawn(fitting[max(fitting)].groups, parameters.share, [parameters.seed, draw])
        for groups, data in fitting.items():
            risks = GroupRisks(data.X[kept], data.y[kept], data.groups[kept], l2=parameters.l2)
            metric = metric_for(parameters.metric, variant=parameters.variant).bind(risks.y, risks.groups, groups)
            for name, found in two_loop_runs(risks, metric, rules, SOLVERS).items():
                yield {
                    "partition": words,
                    "draw": draw,
                    "groups": groups,
                    "solver": name,
                    "rows": risks.n_rows,
                    "smallest": int(risks.group_sizes.min()),
                    "start": found.records[0].value,
                    "value": found.value,
                    "status": found.status,
                } | {cost: found.until(parameters.target, cost) for cost in COSTS}


def _cut(words: str, groups: int, parameters: Parameters) -> GroupedData | None:
    """Return a partition cut down to some groups, or None where it has fewer cells."""
    instance = Instance.parse(words)
    bins = {"age": parameters.age_cuts} if parameters.age_cuts and "age" in instance.sensitive else None
    try:
        return load(instance.data, sensitive=instance.sensitive, groups=groups, test_size=0.0, bins=bins)
    except ArgumentError:
        return None


def _drawn(groups: NDArray[np.int64], share: float, seed: list[int]) -> NDArray[np.int64]:
    """Return a share of each group's rows, at least one, drawn without replacement."""
    generator = np.random.default_rng(seed)
    parts = [generator.permutation(np.flatnonzero(groups == a)) for a in range(int(groups.max()) + 1)]
    return np.sort(np.concatenate([part[: int(np.ceil(share * len(part)))] for part in parts]))


# --- Figure 5: rows --------------------------------------------------------------------------------------------------


def _sized(words: str, rows: int, parameters: Parameters, tables: dict[str, list[dict[str, Any]]]) -> None:
    """Add what both methods do on samples of one size, and their memory where it is asked for."""
    assert parameters.row_draws is not None and parameters.memory_rows is not None and parameters.sgd_steps is not None
    assert parameters.memory_ways is not None
    for draw in range(parameters.row_draws):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            if not _written(words, rows, [parameters.seed, draw], path):
                return
            if draw == 0 and rows in parameters.memory_rows:
                for way in parameters.memory_ways:
                    found = in_fresh_process(
                        solve_file,
                        str(path),
                        way,
                        parameters.row_metric,
                        parameters.variant,
                        parameters.row_l2,
                        min(parameters.sgd_steps, 500),
                        parameters.batch,
                    )
                    tables["memory"].append({"population": words, "way": way} | found)
            source = ParquetRows(path).sample(1)
        risks = GroupRisks.from_source(source, l2=parameters.row_l2)
        for method in METHODS:
            found = large_run(
                risks,
                method,
                parameters.row_metric,
                parameters.variant,
                parameters.sgd_steps,
                parameters.batch,
                [parameters.seed, draw],
            )
            key = {"population": words, "rows": risks.n_rows, "features": risks.n_features, "draw": draw}
            tables["rows"].append(key | {"method": method} | found)


def _written(words: str, rows: int, seed: list[int], path: Path) -> bool:
    """Write a sample for the engine to read in blocks; return whether there are so many rows."""
    if words.startswith(_SYNTHETIC):
        name, sensitive = _synthetic(words)
        # Persons, of whom a task keeps some; one number for both, as the name of synthetic rows wants it.
        convert(f"{name}/{rows}/{1000 * seed[0] + seed[1]}", path, sensitive=sensitive)
        return True
    data = Instance.parse(words).load(0.0)
    if data.n_rows < rows:
        return False
    X, y, groups = thinned(data, rows, seed=1000 * seed[0] + seed[1])
    write_blocks(path, X, y, groups)
    return True


def _synthetic(words: str) -> tuple[str, tuple[str, ...]]:
    """Return the name and the attributes of a population of synthetic persons."""
    name, _, listed = words.partition(":")
    described = describe(name.removeprefix(_SYNTHETIC))
    if not listed:
        known = ", ".join(attribute.name for attribute in described.sensitive)
        raise ArgumentError("population", f"{words!r} names no attribute", f"{name}:ATTRIBUTE, of {known}")
    return name, tuple(described.attribute(attribute).name for attribute in listed.split("+"))


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_groups(tables: Mapping[str, pd.DataFrame], cost: str = "passes") -> pd.DataFrame:
    """Return a row per number of groups and solver.

    Columns: runs, success (share), and of the successful runs the cost's mean and quartiles (low, high).

    Parameters
    ----------
    tables : dict of DataFrame
        Of `run`.
    cost : str, default "passes"
        One of :data:`fairfront.studies.solver_runs.COSTS`.
    """
    rows = []
    for (groups, solver), mine in tables["groups"].groupby(["groups", "solver"], sort=False):
        costs = mine[cost].to_numpy()
        solved = costs[np.isfinite(costs)]
        low, high = np.quantile(solved, [0.25, 0.75]) if len(solved) else (np.nan, np.nan)
        rows.append(
            {
                "groups": groups,
                "solver": solver,
                "runs": len(mine),
                "success": len(solved) / len(mine),
                "mean": float(solved.mean()) if len(solved) else np.nan,
                "low": float(low),
                "high": float(high),
            }
        )
    return pd.DataFrame(rows).sort_values(["groups", "solver"], ignore_index=True)


def table_success(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, by number of groups, each solver's share of successful runs and in brackets the mean passes of these."""
    table = table_groups(tables)
    cells = table.assign(
        cell=[f"{share:.0%} ({mean:.0f})" if share else "0%" for share, mean in zip(table.success, table["mean"])],
        solver=[OUTER_SOLVERS[name].label for name in table.solver],
    )
    wide = cells.pivot_table(index="groups", columns="solver", values="cell", aggfunc="first")
    return wide[[OUTER_SOLVERS[name].label for name in SOLVERS]].rename_axis(columns=None).reset_index()


def table_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the means over the draws: a row per population, size and method."""
    columns = ["seconds", "read", "steps", "value"]
    keys = ["population", "rows", "method"]
    means = tables["rows"].groupby(keys, sort=False)[columns].mean().reset_index()
    return means.assign(**{name: means[name].round().astype(np.int64) for name in ("read", "steps")})


def table_memory(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the peaks of memory, in MB: imports, the rows themselves, and what loading and solving added."""
    found = tables["memory"]
    return pd.DataFrame(
        {
            "rows from": found.population,
            "rows": found.rows,
            "way": found.way,
            "imports, MB": found.imports_mb,
            "the rows, MB": found.rows_mb,
            "loading added, MB": found.loaded_mb - found.imports_mb,
            "solving added, MB": found.peak_mb - found.loaded_mb,
            "peak, MB": found.peak_mb,
        }
    )


def table_peer() -> pd.DataFrame:
    """Return what is recorded of the memory of the authors' package and of ours, on the same synthetic rows."""
    return pd.DataFrame(
        {
            "rows": record["figures"]["rows"],
            "metric": record["figures"]["metric"].replace("_", " "),
            "badr 0.1.2, MB": record["figures"]["peer_rss_mb"],
            "ours, MB": record["figures"]["ours_rss_mb"],
            "pairs of rows, MB": 8e-6 * (record["figures"]["rows"] / 2) ** 2,
        }
        for record in benchmark_records("memory")
    ).sort_values(["metric", "rows"], ascending=[False, True], ignore_index=True)


def table_recorded() -> pd.DataFrame:
    """Return what is recorded of the two-loop method on the most synthetic rows, in memory and from a file."""
    records = [record["figures"] for record in benchmark_records("bilevel") if "source" in record["figures"]]
    most = max(figures["rows"] for figures in records)
    return pd.DataFrame(
        {
            "rows": figures["rows"],
            "groups": figures["groups"],
            "metric": figures["metric"].replace("_", " "),
            "held in": "a file" if figures["source"] == "parquet" else "memory",
            "seconds": figures["ours_s"],
            "peak, MB": figures["ours_rss_mb"],
        }
        for figures in records
        if figures["rows"] == most
    )


def _mean_cost(table: pd.DataFrame, solver: str, groups: Sequence[int]) -> float:
    """Return the mean over some numbers of groups of a solver's mean cost."""
    return float(table[(table.solver == solver) & table.groups.isin(groups)]["mean"].mean())


def _rates(table: pd.DataFrame, solver: str) -> dict[int, float]:
    mine = table[table.solver == solver]
    return dict(zip(mine.groups, mine.success, strict=True))


def _growth(table: pd.DataFrame, solver: str) -> float:
    """Return by what factor a solver's mean cost grows beyond ten groups: from the lower half to the upper one."""
    many = sorted(int(groups) for groups in table.groups.unique() if groups > 10)
    half = (len(many) + 1) // 2
    low, high = _mean_cost(table, solver, many[:half]), _mean_cost(table, solver, many[half:])
    return high / low if low > 0 else np.nan


def _stopped(tables: Mapping[str, pd.DataFrame], parameters: Parameters) -> tuple[int, int]:
    """Return how many runs of badr-sgd ended before their limit of steps, and how many there are."""
    assert parameters.sgd_steps is not None
    steps = tables["rows"][tables["rows"].method == METHODS[1]].steps
    return int((steps < parameters.sgd_steps).sum()), len(steps)


def _times(factor: float) -> str:
    return f"{factor:.1f}" if np.isfinite(factor) else "-"


def _slope(mine: pd.DataFrame, column: str) -> float:
    """Return the exponent of a power of the rows that a column grows with (least squares, logarithms)."""
    if mine.rows.nunique() < 2:
        return np.nan
    return float(np.polyfit(np.log(mine.rows), np.log(mine[column]), 1)[0])


def _title(words: str) -> str:
    if words.startswith(_SYNTHETIC):
        return f"{describe(_synthetic(words)[0].removeprefix(_SYNTHETIC)).title} rows"
    return info(Instance.parse(words).data).title


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    groups, rows = tables["groups"], tables["rows"]
    if rows.empty:
        raise ArgumentError("rows", "no population has so many rows", "fewer rows, or another population")
    passes, seconds = table_groups(tables), table_groups(tables, "seconds")
    few = [count for count in passes.groups.unique() if count < 10]
    subsamples = len(groups[["partition", "draw"]].drop_duplicates())
    titles = ", ".join(dict.fromkeys(_title(words) for words in parameters.partition or ()))
    spans = {words: rows[rows.population == words].rows for words in parameters.population or ()}
    populations = "; ".join(
        f"{_title(words)} by {words.partition(':')[2]}, {span.min():,} to {span.max():,}"
        for words, span in spans.items()
        if len(span)
    )
    means = table_rows(tables)
    two, sgd = means[means.method == METHODS[0]], means[means.method == METHODS[1]]
    last = two.nlargest(1, "rows").iloc[0]
    last_sgd = sgd.nlargest(1, "rows").iloc[0]
    start = groups[groups.solver == SOLVERS[0]]
    rates = {name: passes[passes.solver == name].success for name in SOLVERS}
    excess = sgd.value.to_numpy() / two.value.to_numpy() - 1.0
    return {
        "setting_groups": (
            f"{titles}, {subsamples} subsamples of {groups.rows.min():,} to {groups.rows.max():,} rows, cut into "
            f"{passes.groups.min()} to {passes.groups.max()} groups; {parameters.metric.replace('_', ' ')}, variant "
            f"{parameters.variant}; logistic, l2 {parameters.l2:g}, intercept penalised; at most "
            f"{parameters.max_iterations} iterations; profile {parameters.profile}"
        ),
        "setting_rows": (
            f"{populations} rows; {parameters.row_metric.replace('_', ' ')}, variant {parameters.variant}; logistic, "
            f"l2 {parameters.row_l2:g}, intercept penalised; draws of each size: {parameters.row_draws}; batches of "
            f"{parameters.batch} rows a group, at most {parameters.sgd_steps:,} steps; profile {parameters.profile}"
        ),
        "subsamples": f"{subsamples}",
        "smallest": f"{groups.smallest.min()}",
        "at_start": f"{(start.start <= parameters.target).mean():.0%}",
        "success_slsqp": f"{rates['slsqp'].mean():.0%}",
        "success_tight": f"{rates['slsqp-tight'].mean():.0%}",
        "success_trust": f"{rates['trust-constr'].mean():.0%}",
        "success_fw": f"{rates['frank-wolfe'].mean():.0%}",
        "few_ratio": _times(_mean_cost(passes, "frank-wolfe", few) / _mean_cost(passes, "slsqp-tight", few)),
        "few_ratio_clock": _times(_mean_cost(seconds, "frank-wolfe", few) / _mean_cost(seconds, "slsqp-tight", few)),
        "growth_slsqp": _times(_growth(passes, "slsqp-tight")),
        "growth_trust": _times(_growth(passes, "trust-constr")),
        "growth_fw": _times(_growth(passes, "frank-wolfe")),
        "largest": f"{int(last.rows):,}",
        "largest_seconds": f"{last.seconds:.2g}",
        "largest_read": f"{last['read'] / last.rows:.0f}",
        "sgd_stopped": "{} of {}".format(*_stopped(tables, parameters)),
        "sgd_limit": f"{parameters.sgd_steps:,}",
        "sgd_seconds": f"{last_sgd.seconds:.2g}",
        "sgd_read": f"{last_sgd['read'] / last_sgd.rows:.2g}",
        "sgd_excess": f"{100 * max(float(excess.max()), 0.0):.2g} %",
        "crossing": f"{last_sgd['read'] / (last['read'] / last.rows):,.0f}",
        **_memory_facts(tables["memory"]),
    }


def _memory_facts(memory: pd.DataFrame) -> dict[str, str]:
    """Return the numbers on memory; those that were not measured say so."""
    two = memory[memory.way == "two-loop"]
    at = two[two.rows >= min(_PAPER_ROWS, two.rows.max())].sort_values("rows").head(1)
    big = memory[memory.rows == memory.rows.max()].drop_duplicates("way", keep="last")
    peer = table_peer()
    pairs = peer[peer.metric == "individual fairness"].nlargest(1, "rows").iloc[0]

    def first(values: pd.Series) -> str:
        return f"{values.iloc[0]:,.0f}" if len(values) else "(not measured)"

    return {
        "paper_rows": first(at.rows),
        "paper_peak": first(at.peak_mb),
        "paper_solving": first(at.peak_mb - at.loaded_mb),
        "memory_rows": first(big.rows),
        "memory_peak": first(big.peak_mb[big.way == WAYS[0]]),
        "memory_data": first(big.rows_mb),
        "memory_disk": first(big.peak_mb[big.way == WAYS[1]]),
        "recorded_rows": f"{table_recorded()['rows'].max():,}",
        "peer_rows": f"{int(pairs.rows):,}",
        "peer_peak": f"{pairs['badr 0.1.2, MB']:,.0f}",
        "peer_factor": f"{_PAPER_MB / pairs['badr 0.1.2, MB']:.0f}",
        "peer_pairs": f"{pairs['pairs of rows, MB']:,.0f}",
        "peer_dates": ", ".join(sorted({record["date"] for record in benchmark_records("memory")})),
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims, by counts; seconds stand beside them."""
    parameters = parameters.resolved()
    return (
        *(_group_verdicts(tables, parameters) if len(tables["groups"]) else ()),
        *(_row_verdicts(tables, parameters) if len(tables["rows"]) else ()),
    )


def _group_verdicts(tables: Mapping[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    groups, passes, seconds = tables["groups"], table_groups(tables), table_groups(tables, "seconds")
    counts = sorted(int(count) for count in passes.groups.unique())
    subsamples = len(groups[["partition", "draw"]].drop_duplicates())
    titles = "; ".join(dict.fromkeys(_title(words) for words in parameters.partition or ()))
    data = f"{subsamples} subsamples of {groups.rows.min():,} to {groups.rows.max():,} rows: {titles}"
    claims = ("badr-fig4-few", "badr-fig4-many", "badr-fig4-success")
    if subsamples < _SUBSAMPLES or sum(count > 10 for count in counts) < 2:
        why = f"{subsamples} subsamples in {', '.join(map(str, counts))} groups are too few; see the profile quick"
        return tuple(Measurement(claim, "too little at this size", "not testable", why, data) for claim in claims)
    few, smallest = [count for count in counts if count < 10], [count for count in counts if count <= 5]
    names = {reading: solvers[0] for reading, solvers in READINGS.items()}
    rates = {name: _rates(passes, name) for name in SOLVERS}

    def failing(solver: str) -> float:
        return 1.0 - float(np.mean([rates[solver][count] for count in smallest]))

    def ratio(table: pd.DataFrame, reading: str) -> float:
        return _mean_cost(table, "frank-wolfe", few) / _mean_cost(table, names[reading], few)

    def below(reading: str) -> list[int]:
        others = ("trust-constr", "frank-wolfe")
        mine = rates[names[reading]]
        return [count for count in counts if mine[count] < max(rates[other][count] for other in others) - 1e-12]

    def said(words: Any) -> str:
        return "; ".join(f"{words(reading)} ({rule(reading)})" for reading in READINGS)

    growths = {name: _growth(passes, name) for name in SOLVERS}
    clock = {name: _growth(seconds, name) for name in SOLVERS}
    return (
        judged(
            claims[0],
            said(
                lambda r: (
                    f"mean cost of Frank-Wolfe over SLSQP's {ratio(passes, r):.2f} in passes, {ratio(seconds, r):.2f} "
                    f"in seconds; failures at 2 to 5 groups: SLSQP {failing(names[r]):.0%}, trust-region "
                    f"{failing('trust-constr'):.0%}, Frank-Wolfe {failing('frank-wolfe'):.0%}"
                )
            ),
            {
                r: {
                    "mean costs of SLSQP and Frank-Wolfe differ by more than a factor 2.5": 0.4
                    <= ratio(passes, r)
                    <= 2.5,
                    "the trust-region method does not fail much more often (20 points)": failing("trust-constr")
                    - max(failing(names[r]), failing("frank-wolfe"))
                    >= 0.2,
                }
                for r in READINGS
            },
            data,
        ),
        judged(
            claims[1],
            "growth of the mean cost beyond 10 groups, from the lower half of the numbers of groups to the upper: "
            + said(lambda r: f"SLSQP {growths[names[r]]:.2f} in passes, {clock[names[r]]:.2f} in seconds")
            + "; "
            + ", ".join(
                f"{OUTER_SOLVERS[name].label} {growths[name]:.2f} and {clock[name]:.2f}"
                for name in ("trust-constr", "frank-wolfe")
            ),
            {
                r: {
                    "SLSQP's cost grows by more than a factor 1.5": growths[names[r]] <= 1.5,
                    "Frank-Wolfe's does not": growths["frank-wolfe"] > 1.5,
                    "the trust-region method's does not": growths["trust-constr"] > 1.5,
                }
                for r in READINGS
            },
            data,
        ),
        judged(
            claims[2],
            said(
                lambda r: (
                    f"success {np.mean(list(rates[names[r]].values())):.0%} on average, below another's at "
                    f"{', '.join(map(str, below(r))) or 'no number'} of {len(counts)} numbers of groups"
                )
            ),
            {r: {f"below at {', '.join(map(str, below(r)))} groups": set(below(r)) <= {12}} for r in READINGS},
            data,
        ),
    )


def _row_verdicts(tables: Mapping[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    memory, means = tables["memory"], table_rows(tables)
    titles = "; ".join(dict.fromkeys(_title(words) for words in parameters.population or ()))
    in_memory = memory[(memory.way == "two-loop") & (memory.rows >= _PAPER_ROWS)] if len(memory) else memory
    peer = table_peer()
    package = peer[(peer.metric == "individual fairness") & (peer.rows == _PAPER_ROWS)]["badr 0.1.2, MB"].max()
    of_peer = "stays below" if package < _PAPER_MB else "passes"
    if len(in_memory):
        out = bool((in_memory.peak_mb > _PAPER_MB).any())
        peaks = ", ".join(
            f"{row.peak_mb:.0f} MB at {row.rows:,} rows ({_title(str(row.population))})"
            for row in in_memory.itertuples()
        )
        memory_claim = Measurement(
            "badr-fig5-memory",
            f"peak of a process of its own, two-loop: {peaks}; recorded of the authors' package 0.1.2 (individual "
            f"fairness, synthetic rows): {package:,.0f} MB at {_PAPER_ROWS:,} rows",
            "reproduced" if out else "not reproduced",
            ""
            if out
            else "a two-loop method needs no such memory: the claim is about the implementation that the paper ran. "
            f"The paper names neither metric nor version; the package as published {of_peer} 32 GB at these rows",
            titles,
        )
    else:
        why = f"no memory measured at {_PAPER_ROWS:,} rows or more; see the profile quick"
        memory_claim = Measurement("badr-fig5-memory", "too little at this size", "not testable", why, titles)
    # Of the population that reaches farthest: the others have other columns.
    widest = means[means.population == means.nlargest(1, "rows").population.iloc[0]]
    two, sgd = (widest[widest.method == name] for name in METHODS)
    largest, slope = int(sgd.rows.max()), _slope(sgd, "read")
    real = max(
        (int(n) for words, n in zip(means.population, means.rows) if not words.startswith(_SYNTHETIC)), default=0
    )
    far, moderate = largest >= _PUBLISHED_ROWS, slope <= 0.5
    reasons = [] if far else [f"only up to {largest:,} rows; see the profile quick"]
    reasons += [] if moderate else [f"rows read grow like n^{slope:.2f}"]
    # A limit of steps is the same at every size: what is read up to it cannot grow, whatever the method would do.
    stopped, runs = _stopped(tables, parameters)
    if stopped < runs:
        reasons.append(
            f"{runs - stopped} runs ended at the limit of steps, the same at every size: no growth is seen there"
        )
    if not far:
        verdict = "not testable"
    elif not moderate:
        verdict = "not reproduced"
    else:
        verdict = "reproduced" if stopped == runs else "reproduced in part"
    sgd_claim = Measurement(
        "badr-fig5-sgd",
        f"badr-sgd up to {largest:,} rows ({real:,} of real persons): rows read grow like n^{slope:.2f}, its time like "
        f"n^{_slope(sgd, 'seconds'):.2f}, the two-loop method's like n^{_slope(two, 'seconds'):.2f}; "
        f"{stopped} of {runs} runs stopped by their own rule within {parameters.sgd_steps:,} steps",
        verdict,
        "; ".join(reasons),
        titles,
    )
    return memory_claim, sgd_claim


# --- figures ---------------------------------------------------------------------------------------------------------


_DRAWN = dict(zip(WAYS, (("#E69F00", "v"), ("#0072B2", "s"), ("#7F7F7F", "*")), strict=True))


def figure_groups(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the paper's Figure 4: the cost of the successful runs (mean, quartiles) and their share, against groups."""
    with style():
        figure, axes = panels(1, 3, width=2.9, height=3.1)
        for ax, cost in zip(axes[0], ("passes", "seconds"), strict=False):
            table = table_groups(tables, cost)
            for name in SOLVERS:
                mine, mark = table[table.solver == name], OUTER_SOLVERS[name]
                ax.fill_between(mine.groups, mine.low, mine.high, color=mark.colour, alpha=0.13, linewidth=0)
                ax.plot(mine.groups, mine["mean"], color=mark.colour, marker=mark.marker, label=mark.label, ms=5)
            ax.set_yscale("log")
            ax.set(xlabel="groups", ylabel=f"{cost} until {parameters.target:g}")
        _draw_success(axes[0, 2], table_groups(tables))
        legend_below(axes[0, 0], 4)
    return figure


def _draw_success(ax: Axes, table: pd.DataFrame) -> None:
    for number, name in enumerate(SOLVERS):
        mine, mark = table[table.solver == name], OUTER_SOLVERS[name]
        # A little apart, so that lines at the same height can be told apart.
        ax.plot(mine.groups, mine.success - 0.006 * number, color=mark.colour, marker=mark.marker, ms=5)
    ax.set(xlabel="groups", ylabel="share that succeeds", ylim=(0, 1.04))


def figure_rows(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the paper's Figure 5: time, rows read and memory of both methods against the sample size."""
    means, memory, peer = table_rows(tables), tables["memory"], table_peer()
    with style():
        figure, axes = panels(1, 3, width=2.9, height=3.3)
        for ax, column, words in zip(axes[0], ("seconds", "read"), ("seconds", "rows read"), strict=False):
            for population, method in itertools.product(means.population.unique(), METHODS):
                mine = means[(means.population == population) & (means.method == method)]
                mark, made = OUTER_SOLVERS[method], str(population).startswith(_SYNTHETIC)
                label = f"{'two-loop' if method == METHODS[0] else 'badr-sgd'}, {'SYNTHETIC' if made else 'real'} rows"
                ax.loglog(
                    mine.rows,
                    mine[column],
                    color=mark.colour,
                    marker=mark.marker,
                    linestyle="--" if made else "-",
                    label=label,
                    ms=5,
                )
            ax.set(xlabel="rows", ylabel=words)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower left", ncols=2, fontsize=8)
        ax = axes[0, 2]
        for way, population in itertools.product(memory.way.unique(), memory.population.unique()):
            mine = memory[(memory.way == way) & (memory.population == population)].sort_values("rows")
            colour, marker = _DRAWN[str(way)]
            made = str(population).startswith(_SYNTHETIC)
            line, label = ("--", "_synthetic") if made else ("-", way)
            ax.loglog(mine.rows, mine.peak_mb, color=colour, marker=marker, linestyle=line, label=label, ms=5)
        pairs = peer[peer.metric == "individual fairness"]
        ax.loglog(pairs.rows, pairs["badr 0.1.2, MB"], color="#009E73", marker="^", label="authors' package", ms=5)
        ax.axhline(_PAPER_MB, color="#000000", linestyle=":", linewidth=1.2, label="32 GB")
        ax.plot(_PAPER_ROWS, _PAPER_MB, marker="x", color="#000000", linestyle="none", ms=8, label="the paper")
        ax.set(xlabel="rows", ylabel="peak memory, MB", ylim=(50, 1e5))
        for ax in axes[0]:
            ax.xaxis.set_minor_formatter(NullFormatter())  # labels between the powers of ten would overlap
        figure.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside lower right", ncols=2, fontsize=8)
    return figure
