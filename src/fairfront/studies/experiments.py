"""The five fairness experiments of the second paper, E1 to E5: data, constraints, networks and selected configurations.

What an experiment is stands in `EXPERIMENTS`, and the configurations that the paper selected (B.4) in `SELECTED`: as
code, not as a file of settings, so that a result of the store is known to be stale once they change.

The paper's rows are not all to be had offline, so that every experiment names several sources, the paper's own first;
`source` finds the first one at hand, and `Data` says in words what was read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairfront.datasets import GroupedData, load, load_images
from fairfront.datasets.inventory import at_hand, glance
from fairfront.errors import ArgumentError, DataError, unknown_name

if TYPE_CHECKING:  # torch takes long to import
    from torch import Generator, nn

    from fairfront.constrained.batched import BatchedResult, Job
    from fairfront.constrained.constraints import Constraints
    from fairfront.constrained.sampling import GroupSampler
    from fairfront.constrained.training import MethodParameters, Rows, TrainingResult

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "SELECTED",
    "SOURCES",
    "TAIL",
    "Data",
    "Experiment",
    "Source",
    "configuration",
    "constraint",
    "get",
    "is_at_hand",
    "job",
    "names",
    "network",
    "rows",
    "source",
    "steps_of_paper",
    "train",
    "train_many",
]

METHODS: tuple[str, ...] = ("spbm", "ssl-alm", "ssw", "adam", "adam-reg")
"""The methods by name; the paper's Table 2 has no regularised Adam for E1 to E5."""

TAIL = 5
"""The paper's numbers of E1 to E5 are means over the last so many epochs."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One of the paper's experiments.

    Attributes
    ----------
    name, title : str
        E1 to E5; what it is, in words.
    statistic : {"norm", "positive_rate", "loss"}
        Equation 20 on every parameter tensor, or Equation 21 on the groups' positive rates or mean losses.
    groups : str
        What the groups are, in words.
    n_groups, m : int
        R (1: no groups) and the number of constraints, on the paper's rows.
    epsilon : float
        The bound.
    network : {"mlp", "conv", "resnet18"}
        The architecture.
    hidden : tuple of int
        Widths of the hidden layers of an "mlp".
    batch_size, epochs : int
        Rows in a batch, and the paper's passes.
    epoch : int or str
        Batches in an epoch (`GroupSampler`). A number where the paper's rows are counted: other rows than those are
        trained on for as many steps (E1: 98,925 rows in batches of 32; E4 and E5: 5,000 and 500 images a class).
    objective : {"balanced", "population"}
        The mean over the balanced batch, as in the paper, or note 7's unbiased estimate.
    sources : tuple of str
        Where the rows may come from, the paper's own first (`SOURCES`).
    """

    name: str
    title: str
    statistic: Literal["norm", "positive_rate", "loss"]
    groups: str
    n_groups: int
    m: int
    epsilon: float
    network: Literal["mlp", "conv", "resnet18"]
    hidden: tuple[int, ...] = ()
    batch_size: int
    epochs: int = 40
    epoch: int | Literal["cover", "rows", "smallest"] = "smallest"
    objective: Literal["balanced", "population"] = "balanced"
    sources: tuple[str, ...]

    @property
    def architecture(self) -> str:
        """The network in words."""
        if self.network == "mlp":
            return f"ReLU network {'-'.join(map(str, self.hidden))}"
        return {"conv": "two convolutions and layers 120-84", "resnet18": "ResNet-18"}[self.network]


EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="E1",
            title="ACSIncome, bounded norms",
            statistic="norm",
            groups="none",
            n_groups=1,
            m=6,
            epsilon=2.0,
            network="mlp",
            hidden=(64, 32),
            batch_size=32,
            epoch=math.ceil(98_925 / 32),
            sources=("florida", "government", "adult", "acs2012", "pums2011"),
        ),
        Experiment(
            name="E2",
            title="ACSIncome, positive rates",
            statistic="positive_rate",
            groups="sex x marital status",
            n_groups=6,
            m=30,
            epsilon=0.1,
            network="mlp",
            hidden=(64, 16),
            batch_size=36,
            sources=("florida", "government", "adult", "acs2012", "pums2011"),
        ),
        Experiment(
            name="E3",
            title="Dutch Census, positive rates",
            statistic="positive_rate",
            groups="sex x age",
            n_groups=18,
            m=306,
            epsilon=0.1,
            network="mlp",
            hidden=(128, 64),
            batch_size=72,
            sources=("dutch",),
        ),
        Experiment(
            name="E4",
            title="CIFAR-10, losses of the classes",
            statistic="loss",
            groups="the classes",
            n_groups=10,
            m=90,
            epsilon=0.1,
            network="conv",
            batch_size=120,
            epoch=5000 // 12,
            sources=("cifar10", "cifar10-part", "digits"),
        ),
        Experiment(
            name="E5",
            title="CIFAR-100, losses of the classes",
            statistic="loss",
            groups="the classes",
            n_groups=100,
            m=9900,
            epsilon=0.1,
            network="resnet18",
            batch_size=400,
            epoch=500 // 4,
            sources=("cifar100", "cifar100-part", "synthetic100"),
        ),
    )
}
"""Table 1's fairness experiments; what appendix B does not print (batches of E1, E2) follows the authors' programs."""

# Of B.4, in the order of its columns; SSw's second number is the step size on a constraint.
SELECTED: Mapping[str, Mapping[str, tuple[float, Mapping[str, Any]]]] = {
    "E1": {
        "adam": (0.001, {}),
        "ssw": (0.001, {"constraint_lr": 0.01, "mu": 1.0}),
        "ssl-alm": (0.001, {"eta": 0.5, "rho": 0.0, "mu": 2.0}),
        "spbm": (0.001, {"phi": "ql", "gamma": 0.9, "rule": "adapt", "kappa": 0.9, "mu": 2.0}),
    },
    "E2": {
        "adam": (0.001, {}),
        "ssw": (0.001, {"constraint_lr": 0.01, "mu": 0.0}),
        "ssl-alm": (0.005, {"eta": 0.01, "rho": 0.0, "mu": 2.0}),
        "spbm": (0.005, {"phi": "ql", "gamma": 0.9, "rule": "adapt", "kappa": 0.9, "mu": 2.0}),
    },
    "E3": {
        "adam": (0.005, {}),
        "ssw": (0.05, {"constraint_lr": 0.001, "mu": 0.0}),
        "ssl-alm": (0.02, {"eta": 0.01, "rho": 0.0, "mu": 1.0}),
        "spbm": (0.02, {"phi": "qr", "gamma": 0.99, "rule": "adapt", "kappa": 0.5, "mu": 1.0}),
    },
    "E4": {
        "adam": (0.001, {}),
        "ssw": (0.001, {"constraint_lr": 0.001, "mu": 0.0}),
        "ssl-alm": (0.01, {"eta": 0.01, "rho": 1.0, "mu": 2.0}),
        "spbm": (0.005, {"phi": "ql", "gamma": 0.9, "rule": "adapt", "kappa": 0.9, "mu": 2.0}),
    },
    "E5": {
        "adam": (0.01, {}),
        "ssw": (0.001, {"constraint_lr": 0.001, "mu": 1.0}),
        "ssl-alm": (0.01, {"eta": 0.01, "rho": 1.0, "mu": 1.0}),
        "spbm": (0.005, {"phi": "ql", "gamma": 0.999, "rule": "adapt", "kappa": 0.9, "mu": 1.0}),
    },
}
"""Experiment -> method -> learning rate and what differs from the method's other parameters: B.4."""


def names() -> tuple[str, ...]:
    """Return the names of the experiments."""
    return tuple(EXPERIMENTS)


def get(name: str | Experiment) -> Experiment:
    """Return an experiment by its name.

    Raises
    ------
    ArgumentError
        If there is no such experiment.
    """
    if isinstance(name, Experiment):
        return name
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


# ---------------------------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Source:
    """Where rows come from.

    Attributes
    ----------
    data : str
        Name of the data set or image set in the registry.
    title : str
        What a caption calls it.
    of_paper : bool
        Whether the paper used these rows.
    read : callable
        From the experiment to rows, labels, groups and the groups' names.
    """

    data: str
    title: str
    of_paper: bool
    read: Callable[[str, Experiment], _Arrays] = field(repr=False)

    @property
    def is_table(self) -> bool:
        """Whether it is a table rather than images."""
        return self.read is not _images


@dataclass(frozen=True, eq=False)
class Data:
    """The training rows of an experiment.

    Attributes
    ----------
    source : str
        Its name in `SOURCES`.
    title : str
        What a caption calls it, with the number of rows.
    as_paper : bool
        Whether these are the rows of the paper, all of them.
    rows : Rows
        What networks are trained on.
    groups : tuple of str
        The groups' names; one where the experiment has none.
    """

    source: str
    title: str
    as_paper: bool
    rows: Rows
    groups: tuple[str, ...]


_Arrays: TypeAlias = "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], tuple[str, ...]]"

# What is coded in ACSIncome: each code becomes an indicator, as the authors' programs have it.
_CODED = frozenset({"COW", "MAR", "OCCP", "POBP", "RELP", "RAC1P"})
_MARITAL = ("married", "no longer married", "never married")
_MARRIED = frozenset({"married", "Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent", "yes"})
_NEVER = frozenset({"never married", "Never-married"})


def _acs(name: str, experiment: Experiment) -> _Arrays:
    """Read a task of the survey's person files, whose marital status is an attribute."""
    grouped = experiment.n_groups > 1
    sensitive = ["gender", "marital"] if grouped else ["gender"]
    data = load(name, sensitive=sensitive, test_size=0.0, keep_sensitive=False)
    columns = [
        block
        for number, feature in enumerate(data.feature_names)
        if feature != "intercept"
        for block in (_indicators(data.X[:, number]) if feature in _CODED else [data.X[:, number]])
    ]
    groups = data.groups if grouped else np.zeros_like(data.groups)
    return np.stack(columns, axis=1), data.y, groups, data.group_names if grouped else ("all",)


def _indicators(codes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return a standardised indicator for each value of a column."""
    ones = [(codes == code).astype(np.float64) for code in np.unique(codes)]
    return [(one - one.mean()) / one.std() for one in ones if 0 < one.mean() < 1]


def _by_indicators(prefix: str, name: str, experiment: Experiment) -> _Arrays:
    """Read a task whose marital status is a feature: its levels are told from its indicators."""
    data = load(name, sensitive=["gender"], test_size=0.0, keep_sensitive=False)
    marital = [number for number, feature in enumerate(data.feature_names) if feature.startswith(prefix)]
    own = {data.feature_names.index("intercept"), *(marital if experiment.n_groups > 1 else ())}
    kept = [number for number in range(data.n_features) if number not in own]
    if experiment.n_groups == 1:
        return data.X[:, kept], data.y, np.zeros_like(data.groups), ("all",)
    status = np.ones(data.n_rows, dtype=np.int64)  # the level without an indicator: divorced, or not married
    for number in marital:
        level = data.feature_names[number].removeprefix(prefix)
        code = 0 if level in _MARRIED else 2 if level in _NEVER else 1
        status[data.X[:, number] > 0] = code
    levels = [_MARITAL[code] for code in np.unique(status)]
    if len(levels) == 2:
        levels[1] = "not married"
    _, status = np.unique(status, return_inverse=True)
    groups = data.groups * len(levels) + status
    return data.X[:, kept], data.y, groups, tuple(f"{sex} & {level}" for sex in data.group_names for level in levels)


def _government(name: str, experiment: Experiment) -> _Arrays:
    return _by_indicators("marital_", name, experiment)


def _adult(name: str, experiment: Experiment) -> _Arrays:
    return _by_indicators("marital_status_", name, experiment)


def _acs2012(name: str, experiment: Experiment) -> _Arrays:
    return _by_indicators("married_", name, experiment)


def _dutch(name: str, experiment: Experiment) -> _Arrays:
    """Read the 59,160 persons under 60; sex and age make the groups and are no features."""
    data: GroupedData = load(name, sensitive=["sex", "age"], test_size=0.0, keep_sensitive=False, as_published=True)
    own = ("intercept", *data.sensitive)  # the network has an intercept; an indicator is named ATTRIBUTE_VALUE
    kept = [number for number, feature in enumerate(data.feature_names) if feature.split("_")[0] not in own]
    X, y, groups = data.rows("all")
    return X[:, kept], y, groups, data.group_names


def _images(name: str, experiment: Experiment) -> _Arrays:
    """Read the training images, scaled to [-1, 1]; the classes are the groups."""
    images = load_images(name)
    pixels = np.ascontiguousarray(images.images.transpose(0, 3, 1, 2)).astype(np.float32) / 127.5 - 1.0
    return pixels, images.labels, images.labels, images.classes


SOURCES: Mapping[str, Source] = {
    "florida": Source("acs-income/2018/FL", "ACSIncome of Florida, 2018", True, _acs),
    "government": Source("acs2018-government", "ACS 2018, government employees (not ACSIncome)", False, _government),
    "adult": Source("adult", "Adult, the survey of 1994 (not ACSIncome)", False, _adult),
    "acs2012": Source("acs2012-income", "ACS 2012 income, the small sample", False, _acs2012),
    "pums2011": Source("pums2011-income", "ACS 2011 sample, income", False, _acs),
    "dutch": Source("dutch", "Dutch Census 2001", True, _dutch),
    "cifar10": Source("cifar10", "CIFAR-10", True, _images),
    "cifar10-part": Source("cifar10", "CIFAR-10, a part", False, _images),
    "digits": Source("digits", "handwritten digits (a stand-in for CIFAR-10)", False, _images),
    "cifar100": Source("cifar100", "CIFAR-100", True, _images),
    "cifar100-part": Source("cifar100", "CIFAR-100, a part", False, _images),
    "synthetic100": Source("synthetic100", "synthetic 100 classes (a stand-in for CIFAR-100)", False, _images),
}
"""Every source of rows by name; a part of an image set is a source of its own: no result of one is the other's."""


def is_at_hand(name: str) -> bool:
    """Return whether the rows of a source can be read without a download. Nothing is read."""
    data = SOURCES[name].data
    parts = [other for other, known in SOURCES.items() if known.data == data and other.endswith("-part")]
    if not parts:
        return at_hand(data)
    seen = glance(data)
    return seen.state != "missing" and (name in parts) == seen.where.endswith(".npz")


def source(experiment: str | Experiment, wanted: str | None = None) -> str:
    """Return the name of the source that an experiment's rows are read from.

    Parameters
    ----------
    experiment : str or Experiment
        The experiment.
    wanted : str, optional
        A source of it; by default the first one at hand.

    Raises
    ------
    ArgumentError
        If the experiment has no such source.
    DataError
        If the one asked for, or every one, is absent; the message says how to fetch it.
    """
    chosen = get(experiment)
    if wanted is not None and wanted not in chosen.sources:
        raise unknown_name(f"source of {chosen.name}", wanted, chosen.sources)
    for name in chosen.sources if wanted is None else (wanted,):
        if is_at_hand(name):
            return name
    missing = SOURCES[wanted or chosen.sources[0]]
    raise DataError(
        f"{chosen.name}: {missing.title} is not at hand; `fairfront data fetch {missing.data}` downloads it, "
        f"`fairfront data info {missing.data}` says where to put it by hand"
    )


def rows(experiment: str | Experiment, from_source: str | None = None, *, limit: int | None = None) -> Data:
    """Return the training rows of an experiment: all rows, as in the paper, which holds none out.

    Parameters
    ----------
    experiment : str or Experiment
        The experiment.
    from_source : str, optional
        One of its sources; by default the first one at hand.
    limit : int, optional
        At most so many rows, drawn with one seed, the same share of each group.

    Returns
    -------
    Data
        Tables: standardised columns, without those that make the groups; images: scaled to [-1, 1].

    Raises
    ------
    ArgumentError, DataError
        See `source`.
    """
    chosen = get(experiment)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ArgumentError("limit", f"is {limit!r}", "a number of rows >= 1")
    return _read(chosen, source(chosen, from_source), limit)


@lru_cache(maxsize=2)
def _read(experiment: Experiment, name: str, limit: int | None) -> Data:
    from fairfront.constrained.training import Rows

    known = SOURCES[name]
    X, y, groups, labels = known.read(known.data, experiment)
    n_rows = len(y)
    if limit is not None and limit < n_rows:
        kept = _share(groups, limit)
        X, y, groups = X[kept], y[kept], groups[kept]
    kind = "rows" if known.is_table else "images"
    of_all = "" if len(y) == n_rows else f" of {n_rows:,}"
    title = f"{known.title}, {len(y):,}{of_all} {kind}"
    # Rows takes labels 0 and 1 for the two classes of one logit.
    return Data(name, title, known.of_paper and len(y) == n_rows, Rows.of(X, y, groups), labels)


def _share(groups: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Return `limit` row numbers, ascending, the same share of each group."""
    order = np.random.default_rng(0).permutation(len(groups))
    place = np.empty(len(groups))
    for group in np.unique(groups):
        mine = order[groups[order] == group]
        place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
    return np.sort(np.argsort(place, kind="stable")[:limit])


# ------------------------------------------------------------------------------------------- configurations


def configuration(experiment: str | Experiment, method: str, **overrides: Any) -> tuple[float, MethodParameters]:
    """Return the paper's selected configuration (B.4): Adam's learning rate, and the method's parameters.

    Regularised Adam, which the paper has no selection of for E1 to E5, takes Adam's rate and f + sum_i [g_i]_+.

    Parameters
    ----------
    experiment : str or Experiment
        The experiment.
    method : str
        One of `METHODS`.
    **overrides
        Parameters of the method that are to differ.

    Raises
    ------
    ArgumentError
        For an unknown experiment, method or parameter.
    """
    from fairfront.constrained import PenalizedParameters, SPBMParameters, SSLALMParameters, SSwParameters
    from fairfront.constrained.updates import parameters_of

    chosen = get(experiment)
    kinds: dict[str, type] = {
        "spbm": SPBMParameters,
        "ssl-alm": SSLALMParameters,
        "ssw": SSwParameters,
        "adam": PenalizedParameters,
        "adam-reg": PenalizedParameters,
    }
    if method not in kinds:
        raise unknown_name("method", method, METHODS)
    lr, settings = SELECTED[chosen.name]["adam" if method == "adam-reg" else method]
    beta = {"adam": {"beta": 0.0}, "adam-reg": {"beta": 1.0}}.get(method, {})
    return lr, parameters_of(kinds[method], None, {**settings, **beta, **overrides})


# --------------------------------------------------------------------------------------------------- training


def network(
    experiment: str | Experiment, data: Data, generator: Generator, *, architecture: str | None = None
) -> nn.Module:
    """Return an experiment's network for some rows, drawn from a generator.

    Parameters
    ----------
    experiment : str or Experiment
        The experiment.
    data : Data
        Its rows.
    generator : torch.Generator
        A generator on the CPU.
    architecture : {"mlp", "conv", "resnet18"}, optional
        Another one than the paper's: E5 with "conv" is what a CPU can train in a minute.
    """
    from fairfront.constrained import convnet, mlp, resnet18

    chosen = get(experiment)
    kind = chosen.network if architecture is None else architecture
    shape = data.rows.X.shape[1:]
    if kind not in ("mlp", "conv", "resnet18"):
        raise unknown_name("architecture", kind, ("mlp", "conv", "resnet18"))
    if (kind == "mlp") != (len(shape) == 1):
        raise ArgumentError("architecture", f"{kind} does not take rows of shape {tuple(shape)}", chosen.network)
    if kind == "mlp":
        return mlp(shape[0], chosen.hidden, generator=generator)
    if kind == "conv":
        return convnet(shape[0], shape[1], len(data.groups), generator=generator)
    return resnet18(shape[0], len(data.groups), generator=generator)


def constraint(experiment: str | Experiment, data: Data, model: nn.Module) -> Constraints:
    """Return an experiment's constraints for some rows and a network."""
    from fairfront.constrained import NormBounds, PairwiseGroups

    chosen = get(experiment)
    if chosen.statistic == "norm":
        return NormBounds(model.named_parameters(), bound=chosen.epsilon)
    return PairwiseGroups(len(data.groups), chosen.statistic, epsilon=chosen.epsilon)


def train(
    experiment: str | Experiment,
    method: str,
    seed: int = 0,
    *,
    data: Data | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    lr: float | None = None,
    architecture: str | None = None,
    objective: str | None = None,
    options: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> TrainingResult:
    """Train an experiment's network by one method from one seed.

    Parameters
    ----------
    experiment : str or Experiment
        The experiment.
    method : str
        One of `METHODS`.
    seed : int, default 0
        Of the initial network and the batches.
    data : Data, optional
        Its rows (`rows`); by default those of the first source at hand.
    epochs : int, optional
        How often the history gets a row; by default the paper's 40.
    steps : int, optional
        Steps in all, shared out among the epochs; by default the experiment's own epochs.
    lr : float, optional
        Another learning rate than the selected one.
    architecture : str, optional
        See `network`.
    objective : str, optional
        Another objective than the paper's.
    options : mapping, optional
        Further arguments of `fairfront.constrained.train`: progress, checkpoint, stop, evaluate_every.
    **overrides
        Parameters of the method that differ from the selected ones.

    Returns
    -------
    TrainingResult
        Its history has the column ``accuracy``.

    Raises
    ------
    ArgumentError
        For an argument out of range, naming it.
    DataError
        If the rows are absent.
    """
    from fairfront.constrained.sampling import seeded
    from fairfront.constrained.training import method_of, row_hits
    from fairfront.constrained.training import train as trained

    chosen = get(experiment)
    data = rows(chosen) if data is None else data
    selected, parameters = configuration(chosen, method, **overrides)
    generator = seeded(seed)
    model = network(chosen, data, generator, architecture=architecture)
    family = constraint(chosen, data, model)
    epochs, epoch = _length(chosen, epochs, steps)
    sampler = _sampler(chosen, data, generator, epoch)
    rate = selected if lr is None else lr
    optimizer = method_of(parameters)(model.parameters(), family, lr=rate, parameters=parameters, flat=True)
    settings = {"objective": chosen.objective if objective is None else objective, **(options or {})}
    return trained(
        model, optimizer, family, data.rows, sampler, epochs=epochs, metrics={"accuracy": row_hits}, **settings
    )


def steps_of_paper(experiment: str | Experiment, data: Data) -> int:
    """Return the number of steps of the paper's epochs; for E2 and E3 that follows from the rows' smallest group."""
    from fairfront.constrained.sampling import seeded

    chosen = get(experiment)
    return chosen.epochs * _sampler(chosen, data, seeded(0), chosen.epoch).steps


def _sampler(experiment: Experiment, data: Data, generator: Generator, epoch: Any) -> GroupSampler:
    from fairfront.constrained import GroupSampler

    size, groups = experiment.batch_size, len(data.groups)
    return GroupSampler(data.rows.groups, size, generator=generator, n_groups=groups, epoch=epoch)


def job(experiment: str | Experiment, method: str, seed: int = 0, *, lr: float | None = None, **overrides: Any) -> Job:
    """Return one run for `train_many`: the selected configuration, except for what is given.

    Raises
    ------
    ArgumentError
        For an unknown method or parameter, or a method that cannot be stacked (ssw).
    """
    from fairfront.constrained.batched import Job

    selected, parameters = configuration(experiment, method, **overrides)
    return Job(parameters=parameters, lr=selected if lr is None else lr, seed=seed)  # type: ignore[arg-type]


def train_many(
    experiment: str | Experiment,
    jobs: Iterable[Job],
    *,
    data: Data | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    **options: Any,
) -> BatchedResult:
    """Train many networks of an experiment at once (`fairfront.constrained.train_batched`): E2 and E3.

    Parameters
    ----------
    experiment : str or Experiment
        An experiment of a small network and of groups.
    jobs : iterable of Job
        The runs (`job`).
    data, epochs, steps
        As for `train`: a job gives what the same run gives alone, up to rounding.
    **options
        Further arguments: stack, evaluate_last, objective, progress.

    Raises
    ------
    ArgumentError
        For an experiment whose networks cannot be stacked.
    """
    from fairfront.constrained import PairwiseGroups, train_batched

    chosen = get(experiment)
    if chosen.network != "mlp" or chosen.statistic == "norm":
        raise ArgumentError("experiment", f"{chosen.name} cannot be stacked", "E2 or E3")
    data = rows(chosen) if data is None else data
    epochs, epoch = _length(chosen, epochs, steps)
    settings = {"objective": chosen.objective, **options}
    return train_batched(
        data.rows.X,
        data.rows.y,
        data.rows.groups,
        jobs,
        constraint=PairwiseGroups(len(data.groups), chosen.statistic, epsilon=chosen.epsilon),
        hidden=chosen.hidden,
        batch_size=chosen.batch_size,
        epochs=epochs,
        epoch=epoch,
        **settings,
    )


def _length(experiment: Experiment, epochs: int | None, steps: int | None) -> tuple[int, Any]:
    """Return the number of epochs, and the batches in one."""
    for argument, value in (("epochs", epochs), ("steps", steps)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ArgumentError(argument, f"is {value!r}", "a whole number >= 1")
    epochs = experiment.epochs if epochs is None else epochs
    if steps is None:
        return epochs, experiment.epoch
    if steps < epochs:
        raise ArgumentError("steps", f"{steps} for {epochs} epochs", "at least one an epoch")
    return epochs, round(steps / epochs)
