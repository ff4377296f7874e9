"""Training a physics-informed network under its conditions, by any method of `fairfront.constrained`.

A `Configuration` says everything but the seed; those of ``configurations.toml`` are named: "paper" is the second
paper's own (B.4), "solved" one that solves the equations.  Nothing here writes a file: the state of an unfinished run
goes, as bytes, to a `fairfront.constrained.training.Checkpoint`.
"""

from __future__ import annotations

import dataclasses
import io
import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from fairfront.constrained import (
    PenalizedParameters,
    SPBMParameters,
    SSLALMParameters,
    SSwParameters,
)
from fairfront.constrained.optimizer import ConstrainedOptimizer
from fairfront.constrained.schedules import WarmupCosine
from fairfront.constrained.training import Checkpoint, KKTReport, method_of
from fairfront.errors import ArgumentError, DataError, unknown_name
from fairfront.pde.networks import TanhNetwork
from fairfront.pde.problems import EPSILON, Evaluation, Problem, problem
from fairfront.pde.soap import SOAP

__all__ = [
    "METHODS",
    "Configuration",
    "TrainingResult",
    "configuration",
    "configuration_names",
    "train",
]

MethodParameters: TypeAlias = SPBMParameters | SSLALMParameters | SSwParameters | PenalizedParameters

METHODS: dict[str, type[MethodParameters]] = {
    "spbm": SPBMParameters,
    "ssl-alm": SSLALMParameters,
    "ssw": SSwParameters,
    "adam-reg": PenalizedParameters,
}
"""Every method by name, and the parameters that it takes."""

_BASES: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "soap": SOAP}
_GRID = 51  # points along each input of the training grid
_FORMAT = 1
_SHORTEST = 10.0  # steps: a memory as short as this is not shortened


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that a run depends on, beside the problem and the seed.

    Attributes
    ----------
    parameters : SPBMParameters, SSLALMParameters, SSwParameters or PenalizedParameters
        The method's own; SSw's ``horizon`` is set to the run's length.
    lr : float
        Step size, under a warm-up over 5 % of the steps and a cosine to 0.
    iterations : int
        Steps.
    base : {"adam", "soap"}
        The optimiser of the primal step (`fairfront.pde.soap`).
    base_options : dict
        Its further arguments.
    hidden, width, initialisation, frequency
        The network (`fairfront.pde.networks.TanhNetwork`).
    points : {"grid", "resampled"}
        Where the residual is taken: on shuffled passes over the 51 x 51 grid, or on points drawn anew, uniformly, for
        every step.  Conditions are always taken on all of their grid points.
    batch : int
        Points of a step; the last batch of a pass over the grid is smaller.
    scale : float
        Constraints are ``(mean squared deviation - 1e-4) / scale``: at 1e-4 in their own units.
    """

    parameters: MethodParameters
    lr: float
    iterations: int
    base: Literal["adam", "soap"] = "adam"
    base_options: dict[str, Any] = field(default_factory=dict)
    hidden: int = 8
    width: int = 64
    initialisation: str = "torch"
    frequency: float = 1.0
    points: Literal["grid", "resampled"] = "grid"
    batch: int = 1000
    scale: float = 1.0

    def __post_init__(self) -> None:
        method_of(self.parameters)
        if self.base not in _BASES:
            raise unknown_name("base", self.base, _BASES)
        if self.points not in ("grid", "resampled"):
            raise unknown_name("points", self.points, ("grid", "resampled"))
        for name, whole in (("iterations", self.iterations), ("batch", self.batch)):
            if isinstance(whole, bool) or not isinstance(whole, int) or whole < 1:
                raise ArgumentError(name, f"is {whole!r}", "a whole number of at least 1")
        for name, number in (("lr", self.lr), ("scale", self.scale)):
            if not (isinstance(number, (int, float)) and math.isfinite(number) and number > 0):
                raise ArgumentError(name, f"is {number!r}", "a number > 0")

    @property
    def epoch(self) -> int:
        """Steps an epoch: those of one pass over as many points as the grid has."""
        return math.ceil(_GRID**2 / self.batch)

    def over(self, iterations: int) -> Configuration:
        """Return the same configuration over another number of steps, what is slow in it as slow as before.

        The learning rate's schedule and SSw's tolerance run over the whole of a run anyway. SPBM's averages of
        multipliers and penalties forget in 1/(1 - gamma) and 1/(1 - kappa) steps: such a time, where it is longer than
        ten steps, keeps its share of the run, down to ten steps. SSL-ALM's step on the multipliers grows as the steps
        become fewer, up to rho where the shifted penalty bounds it.

        Parameters
        ----------
        iterations : int
            Steps.
        """
        share, p = iterations / self.iterations, self.parameters
        if isinstance(p, SPBMParameters):
            p = dataclasses.replace(p, gamma=_average(p.gamma, share), kappa=_average(p.kappa, share))
        elif isinstance(p, SSLALMParameters):
            bound = p.rho if p.penalty == "shifted" and p.rho > 0 else math.inf
            p = dataclasses.replace(p, eta=min(p.eta / share, max(bound, p.eta)))
        return dataclasses.replace(self, parameters=p, iterations=iterations)


def _average(weight: float, share: float) -> float:
    """Return the weight of the old value in an average whose memory keeps its share of a run of another length."""
    if weight <= 1 - 1 / _SHORTEST:
        return weight
    return 1 - 1 / max(share / (1 - weight), _SHORTEST)


@cache
def _configurations() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("configurations.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def configuration_names() -> tuple[str, ...]:
    """Return the names of the configurations."""
    return tuple(_configurations())


def configuration(name: str, problem_name: str, method: str, **changes: Any) -> Configuration:
    """Return a named configuration of a problem and a method.

    Parameters
    ----------
    name : str
        "paper" or "solved" (`configuration_names`).
    problem_name : str
        A key of `fairfront.pde.problems.PROBLEMS`.
    method : {"spbm", "ssl-alm", "ssw", "adam-reg"}
        A key of :data:`METHODS`.
    **changes
        Fields to replace, ``iterations`` for one.

    Returns
    -------
    Configuration

    Raises
    ------
    ArgumentError
        For an unknown name, or a field that does not exist.
    """
    every = _configurations()
    if name not in every:
        raise unknown_name("configuration", name, every)
    problem(problem_name)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    shared = {key: value for key, value in every[name].items() if not isinstance(value, dict) or key == "base_options"}
    mine = {key: value for key, value in every[name][problem_name].items() if key not in METHODS}
    own = dict(every[name][problem_name][method])
    parameters = METHODS[method](**own.pop("parameters"))
    fields = {item.name for item in dataclasses.fields(Configuration)}
    for key in changes:
        if key not in fields:
            raise unknown_name(key, key, fields)
    return Configuration(**{**shared, **mine, **own, "parameters": parameters, **changes})


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained network and how it came about.

    Attributes
    ----------
    network : TanhNetwork
        As it is after the last step.
    history : DataFrame
        One row an evaluation on the whole training grid: iteration, epoch, lr, loss, max_violation (the largest mean
        squared deviation less 1e-4), mean_violation, feasible (within 10 %), relative_l2, collapsed, prediction_ratio.
    conditions : DataFrame
        One row an evaluation and condition: iteration, condition, deviation (its mean squared one), multiplier, penalty
        (NaN for a method that has none).  Multipliers are in units of the objective over scaled constraints.
    evaluation : Evaluation
        That of the last step.
    report : KKTReport
        The first-order conditions there, on the whole grid, of the scaled constraints; satisfied within 10 % of 1e-4.
    """

    network: TanhNetwork
    history: pd.DataFrame
    conditions: pd.DataFrame
    evaluation: Evaluation
    report: KKTReport


def train(
    problem_name: str,
    method: str = "spbm",
    settings: str | Configuration = "solved",
    *,
    seed: int = 0,
    iterations: int | None = None,
    evaluate_every: int = 50,
    dtype: torch.dtype = torch.float32,
    checkpoint: Checkpoint | None = None,
    checkpoint_every: int = 500,
    progress: Callable[..., Iterator[Any]] = lambda items, description, total=None: iter(items),
) -> TrainingResult:
    """Train a network on a problem by a method from a seed.

    Parameters
    ----------
    problem_name : {"helmholtz", "burgers", "klein_gordon"}
        A key of `fairfront.pde.problems.PROBLEMS`.
    method : {"spbm", "ssl-alm", "ssw", "adam-reg"}, default "spbm"
        A key of :data:`METHODS`.
    settings : str or Configuration, default "solved"
        A name for `configuration`, or a configuration of that method.
    seed : int, default 0
        Of the network and the points.
    iterations : int, optional
        Steps, instead of the configuration's own; the schedule is stretched over them.
    evaluate_every : int, default 50
        Steps between two evaluations; the last step always gives one.
    dtype : torch.dtype, default torch.float32
        Of everything.
    checkpoint : Checkpoint, optional
        Holds the state of an interrupted run of the same problem, from which training goes on to the same numbers.
    checkpoint_every : int, default 500
        Steps between two states kept.
    progress : callable, optional
        ``progress(iterable, description, total)``; by default nothing is shown.

    Returns
    -------
    TrainingResult

    Raises
    ------
    ArgumentError
        For unknown names, numbers out of range, a configuration of another method, or a checkpoint of another run.
    DataError
        When the checkpoint cannot be read.
    """
    equation = problem(problem_name)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if isinstance(settings, str):
        settings = configuration(settings, problem_name, method)
    if type(settings.parameters) is not METHODS[method]:
        raise ArgumentError("settings", f"are of {type(settings.parameters).__name__}", f"those of {method}")
    if iterations is not None:
        settings = dataclasses.replace(settings, iterations=iterations)
    for name, whole in (("evaluate_every", evaluate_every), ("checkpoint_every", checkpoint_every)):
        if isinstance(whole, bool) or not isinstance(whole, int) or whole < 1:
            raise ArgumentError(name, f"is {whole!r}", "a whole number of at least 1")

    run = _Run(equation, settings, seed, dtype)
    described = {
        "format": _FORMAT,
        "problem": problem_name,
        "method": method,
        "settings": _plain(dataclasses.asdict(settings)),
        "seed": seed,
        "evaluate_every": evaluate_every,
        "dtype": str(dtype),
    }
    start = run.resume(checkpoint, described) if checkpoint is not None else 0
    horizon = settings.iterations
    for iteration in progress(range(start + 1, horizon + 1), f"{equation.title}, {method}", horizon - start):
        run.step()
        if iteration == horizon or iteration % evaluate_every == 0:
            run.evaluate()
        if checkpoint is not None and (iteration == horizon or iteration % checkpoint_every == 0):
            checkpoint.write(run.saved(described))
    history, conditions = pd.DataFrame(run.rows), pd.DataFrame(run.condition_rows)
    return TrainingResult(run.network, history, conditions, equation.evaluate(run.network, _GRID), run.report())


class _Run:
    """A run between two steps."""

    def __init__(self, equation: Problem, settings: Configuration, seed: int, dtype: torch.dtype) -> None:
        self.equation, self.settings, self.dtype = equation, settings, dtype
        self.generator = torch.Generator().manual_seed(seed)
        self.network = TanhNetwork(
            settings.hidden,
            settings.width,
            initialisation=settings.initialisation,
            frequency=settings.frequency,
            seed=self.generator,
            dtype=dtype,
        )
        parameters = settings.parameters
        if isinstance(parameters, SSwParameters):
            parameters = dataclasses.replace(parameters, horizon=settings.iterations)
        self.optimizer: ConstrainedOptimizer = method_of(parameters)(
            self.network.parameters(),
            len(equation.conditions),
            base=_BASES[settings.base],
            base_options=settings.base_options,
            lr=settings.lr,
            parameters=parameters,
        )
        self.schedule = WarmupCosine()
        self.grid = equation.grid(_GRID, dtype=dtype)
        self.edges = equation.condition_points(_GRID, dtype=dtype)
        self.order = torch.empty(0, dtype=torch.int64)
        self.iteration = 0
        self.rows: list[dict[str, Any]] = []
        self.condition_rows: list[dict[str, Any]] = []

    def points(self) -> Tensor:
        """Return the next step's points."""
        if self.settings.points == "resampled":
            return self.equation.sample(self.settings.batch, self.generator, dtype=self.dtype)
        if not len(self.order):
            self.order = torch.randperm(len(self.grid), generator=self.generator)
        batch, self.order = self.order[: self.settings.batch], self.order[self.settings.batch :]
        return self.grid[batch]

    def step(self) -> None:
        """Take one step."""
        self.factor = self.schedule.factor(self.iteration, self.settings.iterations)
        self.optimizer.rescale_lr(self.factor)
        loss, deviations = self.equation.loss_and_deviations(self.network, self.points(), self.edges)
        self.optimizer.zero_grad()
        self.optimizer.step(loss, (deviations - EPSILON) / self.settings.scale)
        self.iteration += 1

    def evaluate(self) -> None:
        """Add a row of the history."""
        found = self.equation.evaluate(self.network, _GRID)
        violations = [deviation - EPSILON for deviation in found.deviations.values()]
        self.rows.append(
            {
                "iteration": self.iteration,
                "epoch": self.iteration / self.settings.epoch,
                "lr": self.settings.lr * self.factor,
                "loss": found.loss,
                "max_violation": found.max_violation,
                "mean_violation": sum(violations) / len(violations),
                "feasible": found.feasible(),
                "relative_l2": found.relative_l2,
                "collapsed": found.collapse.collapsed,
                "prediction_ratio": found.collapse.prediction_ratio,
            }
        )
        multipliers, penalties = self.optimizer.multipliers.tolist(), self.optimizer.penalties
        for number, (name, deviation) in enumerate(found.deviations.items()):
            self.condition_rows.append(
                {
                    "iteration": self.iteration,
                    "condition": name,
                    "deviation": deviation,
                    "multiplier": multipliers[number],
                    "penalty": math.nan if penalties is None else float(penalties[number]),
                }
            )

    def report(self) -> KKTReport:
        """Return how far the network is from the first-order conditions on the whole grid."""
        scale, names = self.settings.scale, self.equation.names
        parameters = list(self.network.parameters())
        loss, deviations = self.equation.loss_and_deviations(self.network, self.grid, self.edges)
        g, multipliers = (deviations - EPSILON) / scale, self.optimizer.multipliers.to(self.dtype)
        norms = [
            math.hypot(*(float(part.norm()) for part in torch.autograd.grad(term, parameters, retain_graph=True)))
            for term in (loss, loss + torch.dot(multipliers, g))
        ]
        values, tolerance = g.detach(), 0.1 * EPSILON / scale
        violated = int((values > tolerance).sum())
        return KKTReport(
            objective=float(loss.detach()),
            max_constraint=float(values.max()),
            worst=names[int(values.argmax())],
            violated=violated,
            constraints=len(names),
            feasible=violated == 0,
            tolerance=tolerance,
            stationarity=norms[1],
            gradient=norms[0],
            complementarity=float((multipliers * values).abs().max()),
            lambda_min=float(multipliers.min()),
            lambda_max=float(multipliers.max()),
            skipped=int(self.optimizer.skip_counts.sum()),
            never_seen=int(self.optimizer.never_seen.sum()),
        )

    def saved(self, described: dict[str, Any]) -> bytes:
        """Return the state as bytes."""
        buffer = io.BytesIO()
        torch.save(
            {
                "run": described,
                "iteration": self.iteration,
                "network": self.network.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "generator": self.generator.get_state(),
                "order": self.order.clone(),
                "rows": self.rows,
                "condition_rows": self.condition_rows,
            },
            buffer,
        )
        return buffer.getvalue()

    def resume(self, checkpoint: Checkpoint, described: dict[str, Any]) -> int:
        """Take over a kept state, if there is one, and return the steps that it has behind it."""
        content = checkpoint.read()
        if content is None:
            return 0
        try:
            state = torch.load(io.BytesIO(content), weights_only=True)
            saved = state["run"]
        except Exception as error:  # torch names no one class: zip, pickle, key and runtime errors mean the same here
            raise DataError(f"checkpoint: cannot be read: {type(error).__name__} (remove it to start anew)") from error
        other = [key for key in described if saved.get(key) != described[key]]
        if other:
            raise ArgumentError(
                "checkpoint", f"is of another run: other {', '.join(other)}", "the same problem, or no file"
            )
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.order, self.iteration = state["order"], int(state["iteration"])
        self.rows, self.condition_rows = state["rows"], state["condition_rows"]
        return self.iteration


def _plain(value: Any) -> Any:
    """Return settings as a checkpoint gives them back: lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
