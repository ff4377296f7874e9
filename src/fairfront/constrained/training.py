"""The training loop: schedule, history, report, early stop, checkpoint and resume, for any model and any optimiser.

Nothing here writes a file: the package's results and checkpoints are written in `fairfront.runs`, which stands to the
right of this module.  The loop turns its state into bytes and back, and hands them to a `Checkpoint`, of which
`fairfront.runs.checkpoints.CheckpointFile` is the one that keeps them in a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fairfront.constrained.constraints import Constraints, PairwiseGroups, PairwiseValues, VectorValues
from fairfront.constrained.networks import mlp
from fairfront.constrained.optimizer import ConstrainedOptimizer
from fairfront.constrained.penalized import PenalizedAdam
from fairfront.constrained.sampling import EpochLength, GroupSampler, Objective, feed, seeded
from fairfront.constrained.schedules import WarmupCosine
from fairfront.constrained.spbm import SPBM
from fairfront.constrained.ssl_alm import SSLALM
from fairfront.constrained.ssw import SSw
from fairfront.constrained.updates import PenalizedParameters, SPBMParameters, SSLALMParameters, SSwParameters
from fairfront.errors import ArgumentError, DataError

__all__ = [
    "Checkpoint",
    "EarlyStop",
    "KKTReport",
    "Rows",
    "TrainingResult",
    "evaluate",
    "kkt_report",
    "method_of",
    "row_hits",
    "row_losses",
    "train",
    "train_mlp",
]

Array: TypeAlias = NDArray[np.float64]
MethodParameters: TypeAlias = SPBMParameters | SSLALMParameters | SSwParameters | PenalizedParameters
ProgressFunction: TypeAlias = Callable[..., Iterator[Any]]
RowLoss: TypeAlias = Callable[[Tensor, Tensor], Tensor]

_EVALUATION_ROWS = 512  # the activations of a convolution then stay in the cache
_FORMAT = 1

_METHODS: dict[type, type[ConstrainedOptimizer]] = {
    SPBMParameters: SPBM,
    SSLALMParameters: SSLALM,
    SSwParameters: SSw,
    PenalizedParameters: PenalizedAdam,
}


def method_of(parameters: MethodParameters) -> type[ConstrainedOptimizer]:
    """Return the optimiser whose parameters these are.

    Raises
    ------
    ArgumentError
        When they are no method's.
    """
    if type(parameters) not in _METHODS:
        names = ", ".join(kind.__name__ for kind in _METHODS)
        raise ArgumentError("parameters", f"are {type(parameters).__name__}", f"one of {names}")
    return _METHODS[type(parameters)]


def row_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each row's cross-entropy, shape (n,), of one logit (labels 0 and 1) or of K logits (classes 0..K-1)."""
    if logits.ndim == 2 and logits.shape[1] > 1:
        return nn.functional.cross_entropy(logits, labels.long(), reduction="none")
    flat = logits if logits.ndim == 1 else logits.squeeze(1)
    return nn.functional.binary_cross_entropy_with_logits(flat, labels.to(flat.dtype), reduction="none")


def row_hits(logits: Tensor, labels: Tensor) -> Tensor:
    """Return 1 for each row whose label has the largest logit (or the one logit's sign), else 0, shape (n,)."""
    if logits.ndim == 2 and logits.shape[1] > 1:
        return (logits.argmax(1) == labels).to(logits.dtype)
    flat = logits if logits.ndim == 1 else logits.squeeze(1)
    return ((flat > 0) == (labels > 0.5)).to(logits.dtype)


# ---------------------------------------------------------------------------------------------------- rows


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a model is trained on.

    Attributes
    ----------
    X : Tensor of shape (n, ...)
        What the model takes.
    y : Tensor of shape (n,)
        Labels: 0 and 1, or classes.
    groups : Tensor of int64, shape (n,)
        Groups 0..R-1.
    """

    X: Tensor
    y: Tensor
    groups: Tensor

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> Rows:
        """Return rows from arrays.

        Parameters
        ----------
        X, y : array
            Rows and labels.
        groups : array of int, optional
            Groups; by default all rows are one.
        dtype : torch.dtype, default float32
            Of X and, where there are two classes, y.
        device : torch.device or str, default "cpu"
            Where they go.

        Raises
        ------
        ArgumentError
            When the lengths differ, X is not finite or the labels are no classes.
        """
        rows = torch.as_tensor(X, dtype=dtype, device=device)
        labels = torch.as_tensor(y, device=device)
        if groups is None:
            groups = np.zeros(len(rows), np.int64)
        numbers = torch.as_tensor(groups, device=device)
        if rows.ndim < 2 or not len(rows):
            raise ArgumentError("X", f"has shape {tuple(rows.shape)}", "(n, ...), n >= 1")
        for argument, tensor in (("y", labels), ("groups", numbers)):
            if tensor.shape != rows.shape[:1]:
                problem = f"has shape {tuple(tensor.shape)}"
                raise ArgumentError(argument, problem, f"one a row of X: ({len(rows)},)")
        if numbers.is_floating_point():
            raise ArgumentError("groups", f"has type {numbers.dtype}", "integers 0..R-1")
        if not bool(rows.isfinite().all()):
            raise ArgumentError("X", "holds a number that is not finite", "drop or impute such rows")
        if not bool((labels == labels.floor()).all() if labels.is_floating_point() else True) or bool(labels.min() < 0):
            raise ArgumentError("y", "holds a label that is no class", "classes 0..K-1")
        two = bool(labels.max() <= 1)
        return cls(rows.contiguous(), labels.to(dtype) if two else labels.long(), numbers.long())

    def __len__(self) -> int:
        return len(self.X)


# ---------------------------------------------------------------------------------------------- evaluation


def evaluate(
    model: nn.Module,
    constraint: Constraints,
    rows: Rows,
    *,
    loss: RowLoss = row_losses,
) -> tuple[float, Tensor]:
    """Return the unweighted mean loss and the constraint values over all rows, in evaluation mode.

    Parameters
    ----------
    model : nn.Module
        From X to logits.
    constraint : family of constraints
        Called with (logits, labels, groups).
    rows : Rows
        The rows.
    loss : callable
        Each row's loss from (logits, labels).

    Returns
    -------
    objective : float
    constraints : Tensor of shape (m,)
        g, to be <= 0, in the order of ``constraint.names()``.
    """
    return _evaluated(_all_logits(model, rows), constraint, rows, loss)


def _evaluated(logits: Tensor, constraint: Constraints, rows: Rows, loss: RowLoss) -> tuple[float, Tensor]:
    with torch.no_grad():
        return _objective(loss, logits, rows), _vector(_values(constraint, logits, rows.y, rows.groups).evaluate())


def _objective(loss: RowLoss, logits: Tensor, rows: Rows) -> float:
    return loss(logits, rows.y).double().mean().item()


@torch.no_grad()
def _all_logits(model: nn.Module, rows: Rows) -> Tensor:
    with _evaluating(model):
        return torch.cat([model(part) for part in rows.X.split(_EVALUATION_ROWS)])


class _evaluating:
    """Put a model into evaluation mode, and each of its modules back into the mode it was in."""

    def __init__(self, model: nn.Module) -> None:
        self._modes = [(module, module.training) for module in model.modules()]
        self._model = model

    def __enter__(self) -> None:
        self._model.eval()

    def __exit__(self, *_: object) -> None:
        for module, training in self._modes:
            module.training = training


def _values(constraint: Any, logits: Tensor, labels: Tensor, groups: Tensor | None) -> VectorValues | PairwiseValues:
    values = constraint(logits, labels, groups)
    return VectorValues(values) if isinstance(values, Tensor) else values


def _vector(state: Tensor) -> Tensor:
    """Return (m,) values from (m,), or from the off-diagonal of (R, R), row by row as the names are."""
    if state.ndim == 1:
        return state
    return state[~torch.eye(len(state), dtype=torch.bool, device=state.device)]


@dataclass(frozen=True)
class KKTReport:
    """How far a model is from satisfying the first-order conditions, over all rows.

    Attributes
    ----------
    objective : float
        f, the unweighted mean loss.
    max_constraint : float
        max_i g_i; <= 0 is feasible.
    worst : str
        The name of that constraint.
    violated : int
        Constraints with g_i > tolerance.
    constraints : int
        m.
    feasible : bool
        Whether none is.
    tolerance : float
        What counts as satisfied.
    stationarity : float
        |grad f + sum_i lambda_i grad g_i| over the trained parameters.
    gradient : float
        |grad f|, to compare it with.
    complementarity : float
        max_i |lambda_i g_i|.
    lambda_min, lambda_max : float
        The smallest and the largest multiplier; 0 for a method without any.
    skipped : int
        Constraint values that training skipped because they were not finite or their group was absent.
    never_seen : int
        Constraints that were skipped at every step.
    """

    objective: float
    max_constraint: float
    worst: str
    violated: int
    constraints: int
    feasible: bool
    tolerance: float
    stationarity: float
    gradient: float
    complementarity: float
    lambda_min: float
    lambda_max: float
    skipped: int
    never_seen: int

    def __str__(self) -> str:
        verdict = "feasible" if self.feasible else f"{self.violated} of {self.constraints} constraints violated"
        lines = [
            f"objective        {self.objective:.6g}",
            f"feasibility      {verdict} (tolerance {self.tolerance:g})",
            f"largest g        {self.max_constraint:+.4g} ({self.worst})",
            f"stationarity     {self.stationarity:.4g} (|grad f| = {self.gradient:.4g})",
            f"complementarity  {self.complementarity:.4g}",
            f"multipliers      {self.lambda_min:.4g} to {self.lambda_max:.4g}",
        ]
        if self.skipped:
            lines.append(f"skipped          {self.skipped} values; {self.never_seen} constraints were never seen")
        return "\n".join(lines)


def kkt_report(
    model: nn.Module,
    optimizer: ConstrainedOptimizer,
    constraint: Constraints,
    rows: Rows,
    *,
    loss: RowLoss = row_losses,
    tolerance: float = 0.0,
) -> KKTReport:
    """Return the first-order conditions at the model with the optimiser's multipliers, over all rows.

    The gradients are exact, of the unweighted mean loss and of the constraints over all rows, in evaluation mode; the
    model is passed over twice in parts, so that no graph of all rows is held.

    Parameters
    ----------
    model, optimizer, constraint, rows, loss
        As for `train`.
    tolerance : float, default 0
        g_i up to it counts as satisfied.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    logits = _all_logits(model, rows).requires_grad_()
    values = _values(constraint, logits, rows.y, rows.groups)
    state, multipliers = values.evaluate(), optimizer.multipliers
    known = torch.isfinite(state)
    pulled = values.pull(torch.where(known, multipliers.to(state), 0.0))
    objective = loss(logits, rows.y).mean()
    by_f = _chained(model, parameters, rows, logits, [(objective, None)])
    terms: list[tuple[Tensor, Tensor | None]] = [(objective, None)]
    if values.source.requires_grad:
        terms.append((values.source, pulled))
    by_lagrangian = _chained(model, parameters, rows, logits, terms)
    g, lam = _vector(state), _vector(multipliers.to(state))
    ordered = torch.where(torch.isfinite(g), g, -math.inf)
    worst = int(ordered.argmax())
    violated = int((ordered > tolerance).sum())
    return KKTReport(
        objective=_objective(loss, logits.detach(), rows),
        max_constraint=ordered[worst].item(),
        worst=constraint.names()[worst],
        violated=violated,
        constraints=len(g),
        feasible=violated == 0,
        tolerance=tolerance,
        stationarity=by_lagrangian,
        gradient=by_f,
        complementarity=(lam * g)[torch.isfinite(g)].abs().max().item(),
        lambda_min=lam.min().item(),
        lambda_max=lam.max().item(),
        skipped=int(_vector(optimizer.skip_counts).sum()),
        never_seen=int(_vector(optimizer.never_seen).sum()),
    )


def _chained(
    model: nn.Module,
    parameters: Sequence[Tensor],
    rows: Rows,
    logits: Tensor,
    terms: Sequence[tuple[Tensor, Tensor | None]],
) -> float:
    """Return the norm of the parameters' gradient of a weighted sum of terms, through the logits and directly."""
    outputs, weights = [term for term, _ in terms], [weight for _, weight in terms]
    found = torch.autograd.grad(outputs, [logits, *parameters], weights, retain_graph=True, allow_unused=True)
    by_logits, *direct = found
    total = [torch.zeros_like(p) if part is None else part.clone() for p, part in zip(parameters, direct)]
    if by_logits is not None:
        with _evaluating(model), torch.enable_grad():
            for part, weight in zip(rows.X.split(_EVALUATION_ROWS), by_logits.split(_EVALUATION_ROWS)):
                through = torch.autograd.grad(model(part), parameters, weight, allow_unused=True)
                for sum_, gradient in zip(total, through):
                    if gradient is not None:
                        sum_ += gradient
    return math.sqrt(sum(float(gradient.double().square().sum()) for gradient in total))


# ------------------------------------------------------------------------------------------------ stopping


@dataclass(frozen=True)
class EarlyStop:
    """Stop where the best evaluation lies too far back.

    The better of two evaluations is the less infeasible one; among feasible ones that with the lower objective.

    Parameters
    ----------
    patience : int, default 5
        Evaluations without a better one after which training stops.
    min_delta : float, default 0
        What counts as better.
    tolerance : float, default 0
        max_i g_i up to it counts as feasible.
    """

    patience: int = 5
    min_delta: float = 0.0
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.patience, bool) or not isinstance(self.patience, int) or self.patience < 1:
            raise ArgumentError("patience", f"is {self.patience!r}", "a number of evaluations >= 1")
        for argument in ("min_delta", "tolerance"):
            if not 0 <= getattr(self, argument) < math.inf:
                raise ArgumentError(argument, f"is {getattr(self, argument)!r}", "a finite number >= 0")

    def __call__(self, history: pd.DataFrame) -> bool:
        """Return whether to stop after the last row of a history."""
        excess = np.maximum(history["max_constraint"].to_numpy() - self.tolerance, 0.0)
        objective = history["objective"].to_numpy()
        best = 0
        for row in range(1, len(history)):
            if excess[row] > 0 or excess[best] > 0:
                better = excess[row] < excess[best] - self.min_delta or (excess[row] == 0 < excess[best])
            else:
                better = objective[row] < objective[best] - self.min_delta
            best = row if better else best
        return len(history) - 1 - best >= self.patience


# ---------------------------------------------------------------------------------------------- checkpoint


class Checkpoint(Protocol):
    """Where the loop keeps its state between two epochs."""

    def read(self) -> bytes | None:
        """Return what was written last; None if nothing was."""

    def write(self, content: bytes) -> None:
        """Keep the content in place of what was there, all of it or none."""


def _fingerprint(tensors: Iterable[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().contiguous().cpu().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _described(constraint: Any) -> dict[str, Any]:
    named = ("n_groups", "statistic", "epsilon", "bound", "scale")
    settings = {name: getattr(constraint, name) for name in named if hasattr(constraint, name)}
    if callable(settings.get("statistic")):
        settings["statistic"] = getattr(settings["statistic"], "__qualname__", type(settings["statistic"]).__name__)
    names = hashlib.sha256("\n".join(constraint.names()).encode()).hexdigest()
    return {"kind": type(constraint).__name__, "m": constraint.m, "names": names, **settings}


# ---------------------------------------------------------------------------------------------------- loop


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What a run gave.

    Attributes
    ----------
    model : nn.Module
        The trained model (the one that was given).
    optimizer : ConstrainedOptimizer
        The optimiser, with its multipliers.
    history : DataFrame
        A row an evaluation: epoch (from 1), step, lr (share of the learning rate at the epoch's last step), objective
        (mean loss over all rows, unweighted), max_constraint and mean_constraint (over i of g_i; a maximum <= 0 is
        feasible), lambda_max, lambda_mean, penalty_min, penalty_mean (NaN where the method has none), skipped
        (constraint values skipped so far), and a column for each of the metrics asked for.
    constraints, multipliers : array of shape (evaluations, m)
        Every constraint's value over all rows, and its multiplier.
    penalties : array of shape (evaluations, m), or None
        The penalty parameters; None where the method has none.
    names : tuple of str
        The constraints.
    report : KKTReport
        The first-order conditions at the end.
    stopped : bool
        Whether training ended early.
    """

    model: nn.Module
    optimizer: ConstrainedOptimizer
    history: pd.DataFrame
    constraints: Array
    multipliers: Array
    penalties: Array | None
    names: tuple[str, ...]
    report: KKTReport
    stopped: bool

    def constraint_history(self) -> pd.DataFrame:
        """Return a row an evaluation and constraint: epoch, constraint, value, multiplier, penalty."""
        size = len(self.names)
        columns = {
            "epoch": np.repeat(self.history["epoch"].to_numpy(), size),
            "constraint": pd.Categorical(list(self.names) * len(self.history), categories=list(self.names)),
            "value": self.constraints.ravel(),
            "multiplier": self.multipliers.ravel(),
            "penalty": np.nan if self.penalties is None else self.penalties.ravel(),
        }
        return pd.DataFrame(columns)


def train(
    model: nn.Module,
    optimizer: ConstrainedOptimizer,
    constraint: Constraints,
    rows: Rows,
    sampler: GroupSampler,
    *,
    epochs: int,
    objective: Objective = "population",
    schedule: WarmupCosine | None = None,
    loss: RowLoss = row_losses,
    metrics: Mapping[str, RowLoss] | None = None,
    evaluate_every: int = 1,
    stop: Callable[[pd.DataFrame], bool] | None = None,
    checkpoint: Checkpoint | None = None,
    checkpoint_every: int = 1,
    tolerance: float = 0.0,
    progress: ProgressFunction = lambda items, description, total=None: iter(items),
) -> TrainingResult:
    """Train a model under constraints.

    Parameters
    ----------
    model : nn.Module
        From X to logits; trained in place.
    optimizer : ConstrainedOptimizer
        Over the model's parameters, for the same constraints.
    constraint : family of constraints
        Called with (logits, labels, groups) on every batch.
    rows : Rows
        The training rows.
    sampler : GroupSampler
        The batches.
    epochs : int
        Passes; the schedule is stretched over all their steps.
    objective : {"population", "balanced"}
        The batch's weights, see `GroupSampler.weights`.
    schedule : WarmupCosine, optional
        Of the learning rate; by default the paper's.
    loss : callable
        Each row's loss, shape (B,), from (logits, labels); by default the cross-entropy.
    metrics : mapping of str to callable, optional
        Further columns of the history: the mean over all rows of a value a row from (logits, labels), such as
        `row_hits`, whose mean is the accuracy.
    evaluate_every : int, default 1
        Epochs between two rows of the history; the last epoch always gives one.
    stop : callable, optional
        Called with the history after each evaluation; true ends the training (`EarlyStop`).
    checkpoint : Checkpoint, optional
        Holds the state of an interrupted run of the same problem, from which training goes on, to the same bytes as
        without the interruption; its state is replaced as training goes.
    checkpoint_every : int, default 1
        Epochs between two of them; the last epoch always gives one.
    tolerance : float, default 0
        Of the report: g_i up to it counts as satisfied.
    progress : callable, optional
        ``progress(iterable, description, total)``, as in `fairfront.runs.progress`; by default nothing is shown.

    Returns
    -------
    TrainingResult
        History, constraints, multipliers and report.

    Raises
    ------
    ArgumentError
        When an argument is out of range or the checkpoint is that of another problem, naming it.

    Notes
    -----
    Layers that draw at random, such as dropout, draw from torch's global generator.  It is seeded anew for every epoch
    from the sampler's seed, inside a fork, so that such models resume exactly too and the caller's generator stays.
    """
    schedule = WarmupCosine() if schedule is None else schedule
    metrics = {} if metrics is None else metrics
    for argument, value in (
        ("epochs", epochs),
        ("evaluate_every", evaluate_every),
        ("checkpoint_every", checkpoint_every),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(argument, f"is {value!r}", "at least 1")
    _check_family(constraint)
    if optimizer.m != constraint.m:
        raise ArgumentError("optimizer", f"is for {optimizer.m} constraints", f"m = {constraint.m}, as the constraint")
    if sampler.n_rows != len(rows):
        raise ArgumentError("sampler", f"draws from {sampler.n_rows} rows", f"from the {len(rows)} given")
    seed = sampler.generator.initial_seed()
    run = {
        "format": _FORMAT,
        "rows": "" if checkpoint is None else _fingerprint((rows.X, rows.y, rows.groups)),
        "model": [[name, list(value.shape), str(value.dtype)] for name, value in model.state_dict().items()],
        "optimizer": [optimizer.kind, dataclasses.asdict(optimizer.parameters), _rates(optimizer)],
        "constraint": _described(constraint),
        "sampler": [sampler.batch_size, sampler.steps, seed],
        "training": [epochs, objective, dataclasses.asdict(schedule), getattr(loss, "__qualname__", repr(loss))],
        "evaluate_every": evaluate_every,
        "metrics": list(metrics),
    }
    log = _Log(constraint.names())
    start = _resumed(checkpoint, run, model, optimizer, sampler, log) if checkpoint is not None else 0
    weights = sampler.weights(objective, rows.X.dtype)
    # Equal blocks need no group numbers, which is the faster path of pairwise constraints.
    blocks = isinstance(constraint, PairwiseGroups) and sampler.batch_size % sampler.n_groups == 0
    batch_groups = None if blocks else sampler.batch_groups
    horizon = epochs * sampler.steps
    stopped = start > 0 and stop is not None and bool(log.rows) and stop(log.history())
    for epoch in progress(range(epochs if stopped else start, epochs), "training", epochs):
        step = epoch * sampler.steps
        model.train()
        with torch.random.fork_rng([] if rows.X.device.type == "cpu" else [rows.X.device]):
            torch.manual_seed((seed + epoch) % 2**63)
            for x, target in feed(sampler.epoch(), rows.X, rows.y):
                optimizer.rescale_lr(schedule.factor(step, horizon))
                optimizer.zero_grad()
                logits = model(x)
                values = constraint(logits, target, batch_groups)  # type: ignore[operator]
                optimizer.step(torch.dot(loss(logits, target), weights), values)
                step += 1
        last = epoch == epochs - 1
        if last or (epoch + 1) % evaluate_every == 0:
            evaluated = _all_logits(model, rows)
            found = _evaluated(evaluated, constraint, rows, loss)
            more = {name: _objective(metric, evaluated, rows) for name, metric in metrics.items()}
            log.add(epoch + 1, step, schedule.factor(step - 1, horizon), *found, optimizer, more)
            stopped = not last and stop is not None and stop(log.history())
        if checkpoint is not None and (last or stopped or (epoch + 1) % checkpoint_every == 0):
            checkpoint.write(_saved(run, epoch + 1, model, optimizer, sampler, log))
        if stopped:
            break
    report = kkt_report(model, optimizer, constraint, rows, loss=loss, tolerance=tolerance)
    model.eval()
    return TrainingResult(model, optimizer, log.history(), *log.arrays(), log.names, report, stopped)


def _rates(optimizer: ConstrainedOptimizer) -> list[Any]:
    return [[type(optimizer.optimizer).__name__, g.get("initial_lr", g["lr"])] for g in optimizer.param_groups]


class _Log:
    """What the evaluations found."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.rows: list[dict[str, float]] = []
        self.states: dict[str, list[Tensor]] = {"constraints": [], "multipliers": [], "penalties": []}

    def add(
        self,
        epoch: int,
        step: int,
        lr: float,
        objective: float,
        g: Tensor,
        optimizer: ConstrainedOptimizer,
        more: Mapping[str, float],
    ) -> None:
        """Add an evaluation."""
        multipliers, penalties = _vector(optimizer.multipliers), optimizer.penalties
        finite = g[torch.isfinite(g)]
        row: dict[str, float] = {
            "epoch": epoch,
            "step": step,
            "lr": lr,
            "objective": objective,
            "max_constraint": finite.max().item() if len(finite) else math.nan,
            "mean_constraint": finite.mean().item() if len(finite) else math.nan,
            "lambda_max": multipliers.max().item(),
            "lambda_mean": multipliers.mean().item(),
        }
        self.states["constraints"].append(g.detach().cpu())
        self.states["multipliers"].append(multipliers.cpu())
        if penalties is not None:
            penalties = _vector(penalties)
            self.states["penalties"].append(penalties.cpu())
        row["penalty_min"] = math.nan if penalties is None else penalties.min().item()
        row["penalty_mean"] = math.nan if penalties is None else penalties.mean().item()
        row["skipped"] = int(_vector(optimizer.skip_counts).sum())
        row |= more
        self.rows.append(row)

    def history(self) -> pd.DataFrame:
        """Return the rows so far."""
        return pd.DataFrame(self.rows)

    def arrays(self) -> tuple[Array, Array, Array | None]:
        """Return constraints, multipliers and penalties, (evaluations, m) each."""
        constraints, multipliers, penalties = (
            torch.stack(kept).double().numpy() if kept else None for kept in self.states.values()
        )
        assert constraints is not None and multipliers is not None
        return constraints, multipliers, penalties


def _saved(
    run: dict[str, Any],
    epoch: int,
    model: nn.Module,
    optimizer: ConstrainedOptimizer,
    sampler: GroupSampler,
    log: _Log,
) -> bytes:
    """Return the state after an epoch."""
    state = {
        "run": run,
        "epoch": epoch,
        "model": {name: value.clone() for name, value in model.state_dict().items()},
        "optimizer": optimizer.state_dict(),
        "sampler": sampler.state_dict(),
        "rows": log.rows,
        "values": {name: torch.stack(kept) for name, kept in log.states.items() if kept},
    }
    buffer = io.BytesIO()
    torch.save(_interned(state), buffer)
    return buffer.getvalue()


def _interned(state: Any) -> Any:
    """Return a state with one object for all equal words: pickle writes a second mention of an object otherwise."""
    if isinstance(state, str):
        return sys.intern(state)
    if isinstance(state, dict):
        return {_interned(key): _interned(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(map(_interned, state))
    return state


def _resumed(
    checkpoint: Checkpoint,
    run: dict[str, Any],
    model: nn.Module,
    optimizer: ConstrainedOptimizer,
    sampler: GroupSampler,
    log: _Log,
) -> int:
    """Load a checkpoint, if there is one, and return how many epochs it has behind it."""
    content = checkpoint.read()
    if content is None:
        return 0
    try:
        state = torch.load(io.BytesIO(content), weights_only=True)
        saved_run = state["run"]
    except Exception as error:  # torch names no one class: zip, pickle, key and runtime errors all mean the same here
        raise DataError(f"checkpoint: cannot be read: {type(error).__name__} (remove it to start anew)") from error
    other = [key for key in run if saved_run.get(key) != run[key]]
    if other:
        raise ArgumentError(
            "checkpoint", f"is of another run: other {', '.join(other)}", "the same problem, or no file"
        )
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    sampler.load_state_dict(state["sampler"])
    log.rows = state["rows"]
    for name, kept in state["values"].items():
        log.states[name] = list(kept.unbind(0))
    return int(state["epoch"])


def _check_family(constraint: object) -> None:
    if not hasattr(constraint, "state_shape"):
        raise ArgumentError("constraint", f"is {constraint!r}", "a family of constraints, for instance PairwiseGroups")


def train_mlp(
    rows: Rows,
    constraint: Constraints,
    *,
    parameters: MethodParameters,
    lr: float,
    hidden: Sequence[int],
    batch_size: int,
    epochs: int,
    seed: int = 0,
    epoch: EpochLength = "cover",
    n_outputs: int = 1,
    flat: bool = True,
    **options: Any,
) -> TrainingResult:
    """Train one ReLU network by one method from one seed.

    Parameters
    ----------
    rows : Rows
        The training rows.
    constraint : family of constraints
        The constraints, of the logits.
    parameters : SPBMParameters, SSLALMParameters, SSwParameters or PenalizedParameters
        The method; `PenalizedParameters` with ``beta=0`` is plain Adam.
    lr : float
        Learning rate of Adam.
    hidden : sequence of int
        Widths of the hidden layers.
    batch_size, epochs : int
        Rows in a batch; passes.
    seed : int, default 0
        Of the initial network and the batches, as in `fairfront.constrained.batched`.
    epoch
        Length of an epoch, see `GroupSampler`.
    n_outputs : int, default 1
        Logits.
    flat : bool, default True
        Whether the parameters lie in one buffer.
    **options
        See `train`.

    Returns
    -------
    TrainingResult
        Model, history and report.
    """
    _check_family(constraint)
    generator = seeded(seed)
    width = rows.X[0].numel()
    model = mlp(width, hidden, generator=generator, n_outputs=n_outputs, dtype=rows.X.dtype).to(rows.X.device)
    sampler = GroupSampler(
        rows.groups,
        batch_size,
        generator=generator,
        n_groups=getattr(constraint, "n_groups", None),
        epoch=epoch,
        device=rows.X.device,
    )
    optimizer = method_of(parameters)(model.parameters(), constraint, lr=lr, parameters=parameters, flat=flat)
    return train(model, optimizer, constraint, rows, sampler, epochs=epochs, **options)
