"""Entries of the second paper's hyper-parameter grids, trained: a row a run, and a row a configuration over its seeds.

E2 and E3 are trained in stacks, many entries at once; every other experiment a run after another. E6 to E8 are trained
in the paper's configuration ("paper" of `fairfront.pde`) with the entry's numbers, on a network of any size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairfront.errors import unknown_name
from fairfront.runs.progress import ProgressFunction
from fairfront.studies import experiments, hypergrids
from fairfront.studies.hypergrids import Choice, Kind

if TYPE_CHECKING:
    from fairfront.pde import Configuration

__all__ = [
    "EQUATIONS",
    "EXPERIMENTS",
    "SETTINGS",
    "Sizes",
    "data_name",
    "epsilon",
    "kind",
    "over_seeds",
    "title",
    "train",
]

EQUATIONS: tuple[str, ...] = ("E6", "E7", "E8")
"""The experiments with differential equations."""

EXPERIMENTS: tuple[str, ...] = (*experiments.names(), *EQUATIONS)
"""E1 to E8."""

SETTINGS: tuple[str, ...] = ("lr", "phi", "gamma", "eta", "rule", "kappa", "rho", "mu")
"""The columns that say which entry of a grid a row is about."""

_STACKED = ("E2", "E3")
_PINN_TAIL = 50 / 6000  # of a run's epochs: what the paper's rule averages
_RUN = ["experiment", "method", "configuration"]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How long, on what and how many at once; None: as in the paper.

    Attributes
    ----------
    steps : int or None
        Steps of a run of E1 to E5, in 40 epochs; the learning rate's schedule is stretched over them.
    rows : int or None
        At most so many rows.
    stack : int
        Networks that are trained at once.
    iterations : int or None
        Steps of a run of E6 to E8; None: 18,000.
    network : tuple of int or None
        Hidden layers and their width, in E6 to E8; None: 8 of 64.
    batch : int or None
        Points of a step; None: 1,000.
    evaluations : int
        Evaluations of a run of E6 to E8; those of its last 50 of 6,000 epochs are averaged.
    """

    steps: int | None = None
    rows: int | None = None
    stack: int = 20
    iterations: int | None = None
    network: tuple[int, int] | None = None
    batch: int | None = None
    evaluations: int = 600


def kind(experiment: str) -> Kind:
    """Return which grid an experiment is searched on: that of fairness (E1 to E5) or of equations (E6 to E8)."""
    if experiment not in EXPERIMENTS:
        raise unknown_name("experiment", experiment, EXPERIMENTS)
    return "pinn" if experiment in EQUATIONS else "fairness"


def epsilon(experiment: str) -> float:
    """Return the bound of an experiment's constraints."""
    if kind(experiment) == "fairness":
        return experiments.get(experiment).epsilon
    from fairfront import pde

    return float(pde.EPSILON)


def data_name(experiment: str) -> str | None:
    """Return the data set that an experiment reads: the first of its sources at hand; None for an equation.

    Raises
    ------
    DataError
        When none is at hand; the message says how to fetch it.
    """
    if kind(experiment) == "pinn":
        return None
    return experiments.SOURCES[experiments.source(experiment)].data


def title(experiment: str, sizes: Sizes) -> str:
    """Return what an experiment was trained on, in words."""
    if kind(experiment) == "fairness":
        return f"{experiment} on {experiments.rows(experiment, limit=sizes.rows).title}"
    from fairfront import pde

    layers, width = (8, 64) if sizes.network is None else sizes.network
    return f"{experiment}, {pde.problem(pde.EXPERIMENTS[experiment]).title}, {layers} x {width} network"


def train(
    experiment: str,
    method: str,
    choices: Sequence[Choice],
    seeds: Sequence[int],
    sizes: Sizes,
    progress: ProgressFunction,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train every entry from every seed.

    Parameters
    ----------
    experiment : str
        E1 to E8.
    method : str
        spbm, ssl-alm, or another that the experiment's grid has.
    choices : sequence of Choice
        The entries.
    seeds : sequence of int
        Of network and batches.
    sizes : Sizes
        How long and on what.
    progress : callable
        Shows where it is.

    Returns
    -------
    runs : DataFrame
        A row a run: experiment, method, configuration (the entry in words), the columns of `SETTINGS` (missing where
        the method has no such parameter), seed, loss (unweighted, over all rows or the whole grid of points, mean over
        the last epochs), start, the loss of the network before its first step, and collapsed, whether it ended as the
        trivial solution of an equation (`fairfront.pde.collapse`; never in E1 to E5).
    values : DataFrame
        A row a run and constrained quantity: experiment, method, configuration, seed, part (the group, parameter or
        condition) and value (its positive rate, mean loss, norm or mean squared deviation, mean over the last epochs).
    """
    if kind(experiment) == "pinn":
        found = _equation(experiment, method, choices, seeds, sizes, progress)
    elif experiment in _STACKED and method != "ssw":
        found = _stacked(experiment, method, choices, seeds, sizes, progress)
    else:
        found = _single(experiment, method, choices, seeds, sizes, progress)
    rows, parts = [], []
    for choice, seed, loss, start, collapsed, values in _on_one_thread(found):
        key = {"experiment": experiment, "method": method, "configuration": str(choice)}
        settings = {name: choice.row.get(name) for name in SETTINGS}
        rows.append({**key, **settings, "seed": seed, "loss": loss, "start": start, "collapsed": collapsed})
        parts += [{**key, "seed": seed, "part": part, "value": value} for part, value in values.items()]
    words = dict.fromkeys(("phi", "rule"), "str")
    numbers = dict.fromkeys([name for name in SETTINGS if name not in words], "float64")
    runs = pd.DataFrame(rows).astype(numbers)
    for name in words:
        runs[name] = runs[name].fillna("").astype(str)
    return runs, pd.DataFrame(parts)


_Found = Iterator[tuple[Choice, int, float, float, bool, dict[str, float]]]


def _on_one_thread(found: _Found) -> _Found:
    """Yield what is found, with one thread for torch: the networks are small, and more would change the last digits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from found
    finally:
        torch.set_num_threads(threads)


def _stacked(
    experiment: str,
    method: str,
    choices: Sequence[Choice],
    seeds: Sequence[int],
    sizes: Sizes,
    progress: ProgressFunction,
) -> _Found:
    data = experiments.rows(experiment, limit=sizes.rows)
    pairs = [(choice, seed) for seed in seeds for choice in choices]
    jobs = [experiments.job(experiment, method, seed, lr=c.lr, **dict(c.settings)) for c, seed in pairs]
    result = experiments.train_many(
        experiment,
        jobs,
        data=data,
        steps=sizes.steps,
        stack=sizes.stack,
        evaluate_last=experiments.TAIL,
        progress=progress,
    )
    losses = result.history.groupby("job").objective.mean()
    statistics = result.statistics.mean(axis=1)
    starts = {seed: _start(experiment, seed, data) for seed in seeds}
    for place, (choice, seed) in enumerate(pairs):
        yield choice, seed, losses[place], starts[seed], False, dict(zip(data.groups, statistics[place].tolist()))


def _start(experiment: str, seed: int, data: experiments.Data) -> float:
    """Return the loss of the network that a seed starts from."""
    from fairfront.constrained.sampling import seeded
    from fairfront.constrained.training import evaluate

    model = experiments.network(experiment, data, seeded(seed))
    return evaluate(model, experiments.constraint(experiment, data, model), data.rows)[0]


def _single(
    experiment: str,
    method: str,
    choices: Sequence[Choice],
    seeds: Sequence[int],
    sizes: Sizes,
    progress: ProgressFunction,
) -> _Found:
    data = experiments.rows(experiment, limit=sizes.rows)
    starts = {seed: _start(experiment, seed, data) for seed in seeds}
    pairs = [(choice, seed) for seed in seeds for choice in choices]
    for choice, seed in progress(pairs, f"{experiment}, {method}", len(pairs)):
        result = experiments.train(
            experiment, method, seed, data=data, steps=sizes.steps, lr=choice.lr, **dict(choice.settings)
        )
        loss = float(result.history.objective.tail(experiments.TAIL).mean())
        g = result.constraints[-experiments.TAIL :].mean(axis=0)
        if experiments.get(experiment).statistic == "norm":
            values = dict(zip(result.names, g + epsilon(experiment)))
        else:  # each group's statistic less that of the first: its gap to it, which comes first in its row of gaps
            gaps = g.reshape(len(data.groups), -1)[1:, 0] + epsilon(experiment)
            values = dict(zip(data.groups, [0.0, *gaps]))
        yield choice, seed, loss, starts[seed], False, {part: float(value) for part, value in values.items()}


def _equation(
    experiment: str,
    method: str,
    choices: Sequence[Choice],
    seeds: Sequence[int],
    sizes: Sizes,
    progress: ProgressFunction,
) -> _Found:
    from fairfront import pde

    problem = pde.problem(pde.EXPERIMENTS[experiment])
    pairs = [(choice, seed) for seed in seeds for choice in choices]
    for choice, seed in progress(pairs, f"{experiment}, {method}", len(pairs)):
        settings = _configuration(problem.name, method, choice, sizes)
        start = pde.TanhNetwork(
            settings.hidden,
            settings.width,
            initialisation=settings.initialisation,
            frequency=settings.frequency,
            seed=seed,
        )
        every = max(1, settings.iterations // sizes.evaluations)
        result = pde.train(problem.name, method, settings, seed=seed, evaluate_every=every)
        late = settings.iterations * (1 - _PINN_TAIL)
        history = result.history[result.history.iteration > late]
        conditions = result.conditions[result.conditions.iteration > late]
        means = conditions.groupby("condition", sort=False).deviation.mean()
        values = {str(name): float(mean) for name, mean in means.items()}
        collapsed = bool(history.collapsed.iloc[-1])
        yield choice, seed, float(history.loss.mean()), problem.evaluate(start).loss, collapsed, values


def _configuration(problem: str, method: str, choice: Choice, sizes: Sizes) -> Configuration:
    """Return the paper's configuration with an entry's numbers."""
    from fairfront import pde

    changes: dict[str, Any] = {"lr": choice.lr}
    if sizes.network is not None:
        changes |= {"hidden": sizes.network[0], "width": sizes.network[1]}
    if sizes.batch is not None:
        changes["batch"] = sizes.batch
    found = pde.configuration("paper", problem, method, **changes)
    settings: dict[str, Any] = dict(choice.settings)
    if "rule" in settings:  # the box of p is the rule's
        settings["penalty_max"] = 1.0 if settings["rule"] == "adapt" else 100.0
    found = dataclasses.replace(found, parameters=dataclasses.replace(found.parameters, **settings))
    return found if sizes.iterations is None else found.over(sizes.iterations)


# --- over the seeds --------------------------------------------------------------------------------------------------


def over_seeds(runs: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Return a row a configuration, as the paper's rule of selection takes them.

    Parameters
    ----------
    runs, values : DataFrame
        Of `train`, for any number of experiments and methods.

    Returns
    -------
    DataFrame
        Columns experiment, method, configuration, those of `SETTINGS`, seeds (how many), loss and start (means over the
        seeds), loss_std (over the seeds), collapsed (how many seeds), violation (every constraint's mean over the seeds
        and the last epochs, of those the largest less the bound; at most 0 when all hold), violation_std (of the seeds'
        own largest constraints), feasible (within 10 % of the bound).
    """
    first = runs.groupby(_RUN, sort=False)[list(SETTINGS)].first()
    table = first.assign(
        seeds=runs.groupby(_RUN).seed.nunique(),
        loss=runs.groupby(_RUN).loss.mean(),
        loss_std=runs.groupby(_RUN).loss.std(ddof=0),
        start=runs.groupby(_RUN).start.mean(),
        collapsed=runs.groupby(_RUN).collapsed.sum(),
    )
    means = values.groupby([*_RUN, "part"], sort=False).value.mean()
    own = _violations(values.set_index([*_RUN, "seed", "part"]).value, [*_RUN, "seed"])
    table = table.assign(violation=_violations(means, _RUN), violation_std=own.groupby(_RUN).std(ddof=0))
    bounds = table.index.get_level_values("experiment").map(epsilon).to_numpy()
    return table.assign(feasible=table.violation <= hypergrids.TOLERANCE * bounds).reset_index()


def _violations(values: pd.Series, key: list[str]) -> pd.Series:
    """Return the largest constraint value for each group of values; NaN where one is."""
    grouped = values.groupby(key, sort=False)
    most, least = grouped.agg(lambda part: part.max(skipna=False)), grouped.min()
    names = most.index.get_level_values("experiment")
    gaps = names.map(_compares_groups).to_numpy(dtype=bool)
    return most - least.where(gaps, 0.0) - names.map(epsilon).to_numpy()


def _compares_groups(experiment: str) -> bool:
    return kind(experiment) == "fairness" and experiments.get(experiment).statistic != "norm"
