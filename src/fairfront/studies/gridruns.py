"""Entries of the second paper's hyper-parameter grids, trained: a row a run, and a row a configuration over its seeds.

E2 and E3 are trained in stacks, many entries at once; every other experiment a run after another. E6 to E8 are trained
in the paper's configuration ("paper" of `fairfront.pde`) with the entry's numbers, on a network of any size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pandas as pd

from fairfront.errors import ArgumentError, DataError, unknown_name
from fairfront.runs.progress import ProgressFunction
from fairfront.studies import experiments, hypergrids
from fairfront.studies.hypergrids import Choice, Kind
from fairfront.studies.parameters import StudyParameters, meta
from fairfront.threads import one_torch_thread

if TYPE_CHECKING:
    from fairfront.pde import Configuration

__all__ = [
    "EQUATIONS",
    "EXPERIMENTS",
    "SETTINGS",
    "GridParameters",
    "Sizes",
    "chunks",
    "data_names",
    "epsilon",
    "kind",
    "missing",
    "over_seeds",
    "selected",
    "setting",
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
_RUN = ("experiment", "method", "configuration")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How long, on what and how many at once; None: as in the paper.

    Attributes
    ----------
    steps, single_steps : int or None
        Steps of a run of E2 and E3, which are trained in stacks, and of E1, E4 and E5; 40 epochs in either case, over
        which the learning rate's schedule is stretched.
    rows : int or None
        At most so many rows.
    sources : tuple of str
        Where rows are read from, of an experiment that has the source; else from its first source at hand.
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
    single_steps: int | None = None
    rows: int | None = None
    sources: tuple[str, ...] = ()
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


def missing(experiment: str, sources: Sequence[str] = ()) -> str:
    """Return what is to be done about an experiment's rows, in words; "" where they are at hand, or none are needed."""
    if kind(experiment) == "fairness":
        try:
            _source(experiment, sources)
        except DataError as error:
            return str(error)
    return ""


def _source(experiment: str, sources: Sequence[str]) -> str:
    """Return where an experiment's rows are read from."""
    wanted = [name for name in experiments.get(experiment).sources if name in sources]
    return experiments.source(experiment, wanted[0] if wanted else None)


def _rows(experiment: str, sizes: Sizes) -> experiments.Data:
    return experiments.rows(experiment, _source(experiment, sizes.sources), limit=sizes.rows)


def selected(experiment: str, method: str) -> Choice:
    """Return the entry that the paper selected for an experiment (its appendix B.4)."""
    if kind(experiment) == "fairness":
        lr, parameters = experiments.SELECTED[experiment][method]
        settings = dict(parameters)
    else:
        from fairfront import pde

        found = pde.configuration("paper", pde.EXPERIMENTS[experiment], method)
        lr, settings = found.lr, dataclasses.asdict(found.parameters)
        unused = {"adapt": "rho", "alm": "kappa"}.get(str(settings.get("rule")))
        settings = {name: settings[name] for name in SETTINGS if name in settings and name != unused}
    return Choice(lr, tuple(settings.items()))


# --- parameters ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GridParameters(StudyParameters):
    """What studies of grids have in common: experiments, seeds, the length of runs, and which entries make a part."""

    experiment: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(help="experiments; by default those whose data are at hand", choices=EXPERIMENTS, distinct=True),
    )
    seeds: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="seeds, each counted from seed", low=0, distinct=True)
    )
    first: int = field(default=0, metadata=meta(help="first of the entries that is trained", low=0))
    last: int | None = field(default=None, metadata=meta(help="the entry before which to stop; none: all", low=1))
    chunk: int | None = field(default=None, metadata=meta(help="entries of a part of the study", low=1))
    steps: int | None = field(default=None, metadata=meta(help="steps of a run of E2 and E3", low=40, high=10**7))
    single_steps: int | None = field(
        default=None, metadata=meta(help="steps of a run of E1, E4 and E5", low=40, high=10**7)
    )
    source: tuple[str, ...] | None = field(
        default=None,
        metadata=meta(
            help="sources that experiments are to take", choices=lambda: tuple(experiments.SOURCES), distinct=True
        ),
    )
    rows: int | None = field(default=None, metadata=meta(help="rows at most, of E1 to E5", low=100))
    iterations: int | None = field(default=None, metadata=meta(help="steps of a run of E6 to E8", low=1, high=10**6))
    network: tuple[int, int] | None = field(
        default=None, metadata=meta(help="hidden layers and width in E6 to E8", low=1, high=1000)
    )
    points: int | None = field(default=None, metadata=meta(help="points of a step in E6 to E8", low=1, high=2601))
    evaluations: int | None = field(default=None, metadata=meta(help="evaluations of a run in E6 to E8", low=1))

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        if self.last is not None and self.last <= self.first:
            raise ArgumentError("last", f"is {self.last}: no entry from {self.first} on", f"above {self.first}")

    def resolved(self) -> Self:
        """Return the same with the profile's sizes and the sources that are read.

        Of the profile's experiments those are taken whose data are at hand.

        Raises
        ------
        DataError
            When the data of an experiment that was asked for are absent; the message says how to fetch them.
        """
        filled = super().resolved()
        wanted, chosen = filled.source or (), filled.experiment or ()
        if self.experiment is None:
            chosen = tuple(experiment for experiment in chosen if not missing(experiment, wanted))
        read = [_source(experiment, wanted) for experiment in chosen if kind(experiment) == "fairness"]
        return dataclasses.replace(filled, experiment=chosen, source=tuple(dict.fromkeys(read)) or None)

    @property
    def absent(self) -> tuple[str, ...]:
        """What is to be done about the data of the profile's experiments that are not at hand, one by one in words."""
        profile = StudyParameters.resolved(type(self)(profile=self.profile))
        every = profile.experiment or ()
        words = [missing(experiment, profile.source or ()) for experiment in every]
        return tuple(filter(None, words)) if self.experiment != every else ()

    @property
    def sizes(self) -> Sizes:
        """How long and on what entries are trained."""
        assert self.chunk is not None and self.evaluations is not None
        return Sizes(
            steps=self.steps,
            single_steps=self.single_steps,
            rows=self.rows,
            sources=self.source or (),
            stack=min(self.chunk, 24),
            iterations=self.iterations,
            network=self.network,
            batch=self.points,
            evaluations=self.evaluations,
        )

    @property
    def every_seed(self) -> list[int]:
        """The seeds of network and batches."""
        return [self.seed + seed for seed in self.seeds or ()]


_P = TypeVar("_P", bound=GridParameters)


def chunks(parameters: _P, dimension: str, size: Callable[[str, str], int]) -> tuple[_P, ...]:
    """Return the parts of a study of grids: some entries of one experiment and one value of another dimension.

    Parameters
    ----------
    parameters : GridParameters
        Of the whole.
    dimension : str
        The field that holds the other dimension: methods, for one.
    size : callable
        How many entries an experiment has at a value of that dimension.
    """
    filled = parameters.resolved()
    assert filled.experiment is not None and filled.chunk is not None
    parts = []
    for experiment in filled.experiment:
        for value in getattr(filled, dimension):
            entries = size(experiment, value)
            end = entries if filled.last is None else min(filled.last, entries)
            for first in range(filled.first, end, filled.chunk):
                change: dict[str, Any] = {"experiment": (experiment,), dimension: (value,)}
                last = min(first + filled.chunk, end)
                parts.append(dataclasses.replace(filled, first=first, last=last, **change).resolved())
    if filled.experiment and not parts:
        raise ArgumentError("first", f"is {filled.first}: no grid has so many entries", "a smaller number")
    return tuple(parts) if len(parts) > 1 else (filled,)


def data_names(parameters: GridParameters) -> tuple[str, ...]:
    """Return the names of the tables that a study of grids reads; images are named by its parameter ``source``."""
    sources = [experiments.SOURCES[name] for name in parameters.resolved().source or ()]
    return tuple(source.data for source in sources if source.is_table)


def setting(experiment: str, sizes: Sizes) -> str:
    """Return what an experiment was trained on and how long, in words."""
    if kind(experiment) == "fairness":
        steps = sizes.steps if experiment in _STACKED else sizes.single_steps
        length = "40 epochs" if steps is None else f"{steps:,} steps"
        return f"{experiment} on {_rows(experiment, sizes).title}, {length}"
    from fairfront import pde

    layers, width = (8, 64) if sizes.network is None else sizes.network
    length = "18,000 steps" if sizes.iterations is None else f"{sizes.iterations:,} steps"
    return f"{experiment}, {pde.problem(pde.EXPERIMENTS[experiment]).title}, {layers} x {width} network, {length}"


# --- training --------------------------------------------------------------------------------------------------------


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
    with one_torch_thread():
        for choice, seed, loss, start, collapsed, values in found:
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


def _stacked(
    experiment: str,
    method: str,
    choices: Sequence[Choice],
    seeds: Sequence[int],
    sizes: Sizes,
    progress: ProgressFunction,
) -> _Found:
    data = _rows(experiment, sizes)
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
    data = _rows(experiment, sizes)
    steps = sizes.steps if experiment in _STACKED else sizes.single_steps
    starts = {seed: _start(experiment, seed, data) for seed in seeds}
    pairs = [(choice, seed) for seed in seeds for choice in choices]
    for choice, seed in progress(pairs, f"{experiment}, {method}", len(pairs)):
        result = experiments.train(
            experiment, method, seed, data=data, steps=steps, lr=choice.lr, **dict(choice.settings)
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


def over_seeds(runs: pd.DataFrame, values: pd.DataFrame, by: Sequence[str] = _RUN) -> pd.DataFrame:
    """Return a row a configuration, as the paper's rule of selection takes them.

    Parameters
    ----------
    runs, values : DataFrame
        Of `train`, for any number of experiments and methods.
    by : sequence of str, default experiment, method, configuration
        The columns that tell configurations apart; experiment is among them.

    Returns
    -------
    DataFrame
        The columns ``by``, those of `SETTINGS`, seeds (how many), loss and start (means over the seeds), loss_std (over
        the seeds), collapsed (how many seeds), violation (every constraint's mean over the seeds and the last epochs,
        of those the largest less the bound; at most 0 when all hold), violation_std (of the seeds' own largest
        constraints), feasible (within 10 % of the bound).
    """
    key = list(by)
    groups = runs.groupby(key, sort=False)
    table = (
        groups[list(SETTINGS)]
        .first()
        .assign(
            seeds=groups.seed.nunique(),
            loss=groups.loss.mean(),
            loss_std=groups.loss.std(ddof=0),
            start=groups.start.mean(),
            collapsed=groups.collapsed.sum(),
        )
    )
    means = values.groupby([*key, "part"], sort=False).value.mean()
    own = _violations(values.set_index([*key, "seed", "part"]).value, [*key, "seed"])
    table = table.assign(violation=_violations(means, key), violation_std=own.groupby(key).std(ddof=0))
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
