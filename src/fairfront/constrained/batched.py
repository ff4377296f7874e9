"""Many small networks trained at once: one (configuration, seed) pair each, a stack of them a step.

On a small network the cost of a step is that of launching its kernels.  A stack of S networks of one shape launches
them once for all S, with a learning rate, gamma, kappa, rho, mu and barrier of its own for each.  The parameters of the
whole stack are views of one vector, and the gradient of the ReLU network is written out, so that no graph is built.
Every operation is apart for each network: one that diverges does not touch the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fairfront.constrained import barriers, updates
from fairfront.constrained.constraints import PairwiseGroups
from fairfront.constrained.networks import mlp
from fairfront.constrained.sampling import EpochLength, GroupSampler, Objective, feed, seeded
from fairfront.constrained.schedules import WarmupCosine
from fairfront.constrained.updates import PenalizedParameters, SPBMParameters, SSLALMParameters
from fairfront.errors import ArgumentError

__all__ = ["BatchedResult", "Job", "StackedMLP", "StackedTraining", "train_batched"]

Parameters: TypeAlias = SPBMParameters | SSLALMParameters | PenalizedParameters
Array: TypeAlias = NDArray[np.float64]

_EVALUATION_ROWS = 256  # the activations of a stack then stay in the cache


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: a method with its parameters, a learning rate and a seed.

    Parameters
    ----------
    parameters : SPBMParameters, SSLALMParameters or PenalizedParameters
        The method; `PenalizedParameters` with ``beta=0`` is plain Adam.
    lr : float
        Of Adam, at the top of the schedule.
    seed : int
        Of the initial network and the batches.
    """

    parameters: Parameters
    lr: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, SPBMParameters | SSLALMParameters | PenalizedParameters):
            problem = f"is {type(self.parameters).__name__}"
            raise ArgumentError("parameters", problem, "SPBMParameters, SSLALMParameters or PenalizedParameters")
        if isinstance(self.lr, bool) or not 0 < self.lr < math.inf:
            raise ArgumentError("lr", f"is {self.lr!r}", "a positive number")


# ------------------------------------------------------------------------------------------------ networks


class StackedMLP:
    """ReLU networks of one shape whose parameters are views of one vector.

    Parameters
    ----------
    networks : sequence of nn.Sequential
        Linear, ReLU, ..., Linear with one output, as `fairfront.constrained.networks.mlp` makes them.  Their parameters
        are copied.

    Attributes
    ----------
    size : int
        S, how many there are.
    flat, gradients : Tensor of shape (P,)
        All parameters, layer by layer and within a layer network by network; their gradients.
    """

    def __init__(self, networks: Sequence[nn.Sequential]) -> None:
        layers = [[layer for layer in network if isinstance(layer, nn.Linear)] for network in networks]
        self.size = len(networks)
        first = layers[0]
        shapes = [(self.size, *parameter.shape) for layer in first for parameter in (layer.weight, layer.bias)]
        stacked = [
            torch.stack([getattr(network[depth], kind).detach() for network in layers])
            for depth in range(len(first))
            for kind in ("weight", "bias")
        ]
        self.flat = torch.cat([parameter.flatten() for parameter in stacked])
        self.gradients = torch.zeros_like(self.flat)
        self._parameters, self._gradients = _views(self.flat, shapes), _views(self.gradients, shapes)
        self._widths = [layer.out_features for layer in first]
        self._buffers: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def expand(self, per_network: Tensor) -> Tensor:
        """Return a number a network, shape (S,), as one a parameter, shape (P,)."""
        parts = [
            per_network.view(self.size, *[1] * (view.ndim - 1)).expand(view.shape).flatten()
            for view in self._parameters
        ]
        return torch.cat(parts)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, shape (S, B), of a batch (B, d) for all networks or (S, B, d), one each.

        The result lies in a buffer that the next call with as many rows overwrites.
        """
        activations, _ = self._workspace(x.shape[-2])
        below = x.mT
        for depth, out in enumerate(activations):
            weight, bias = self._parameters[2 * depth : 2 * depth + 2]
            if below.ndim == 2:  # a batch that all share: the first layer of all networks is one product
                torch.mm(weight.view(-1, weight.shape[2]), below, out=out.view(-1, out.shape[2]))
            else:
                torch.bmm(weight, below, out=out)
            below = out.add_(bias.unsqueeze(2))
            if depth < len(activations) - 1:
                below.relu_()
        return below.squeeze(1)

    def backward(self, x: Tensor, by_logit: Tensor) -> None:
        """Write the gradient with respect to the parameters into `gradients`, after `forward` of the same batch.

        Parameters
        ----------
        x : Tensor of shape (B, d) or (S, B, d)
            The batch.
        by_logit : Tensor of shape (S, B)
            Derivative of each network's objective with respect to its logits.
        """
        activations, deltas = self._workspace(x.shape[-2])
        deltas[-1].copy_(by_logit.unsqueeze(1))
        for depth in reversed(range(len(deltas))):
            delta, by_weight, by_bias = deltas[depth], *self._gradients[2 * depth : 2 * depth + 2]
            torch.sum(delta, 2, out=by_bias)
            if depth:
                torch.bmm(delta, activations[depth - 1].mT, out=by_weight)
                torch.bmm(self._parameters[2 * depth].mT, delta, out=deltas[depth - 1])
                deltas[depth - 1].mul_(activations[depth - 1].sign_())  # ReLU's derivative, in the used-up buffer
            elif x.ndim == 2:
                torch.mm(delta.view(-1, delta.shape[2]), x, out=by_weight.view(-1, by_weight.shape[2]))
            else:
                torch.bmm(delta, x, out=by_weight)

    def network(self, index: int) -> nn.Sequential:
        """Return one network as a module of its own."""
        n_features = self._parameters[0].shape[2]
        module = mlp(n_features, self._widths[:-1], generator=torch.Generator(), dtype=self.flat.dtype)
        with torch.no_grad():
            for parameter, view in zip(module.parameters(), self._parameters):
                parameter.copy_(view[index])
        return module.to(self.flat.device)

    def _workspace(self, rows: int) -> tuple[list[Tensor], list[Tensor]]:
        if rows not in self._buffers:
            empty = [self.flat.new_empty(self.size, width, rows) for width in self._widths]
            self._buffers[rows] = empty, [torch.empty_like(buffer) for buffer in empty]
        return self._buffers[rows]


def _views(flat: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Return consecutive parts of a vector, each in its shape."""
    return [part.view(shape) for part, shape in zip(flat.split([math.prod(s) for s in shapes]), shapes)]


# -------------------------------------------------------------------------------------------------- duals


class _MixedBarrier(barriers.Barrier):
    """phi_QL for some networks of a stack and phi_QR for the others."""

    def __init__(self, quadratic_logarithmic: Tensor) -> None:
        super().__init__("mixed", math.nan, barriers.QL.left)
        object.__setattr__(self, "_ql", quadratic_logarithmic)

    def derivative(self, t: Tensor) -> Tensor:
        ql: Tensor = self._ql  # type: ignore[attr-defined]
        return torch.where(ql, barriers.QL.derivative(t), barriers.QR.derivative(t))


def _stacked_numbers(parameters: Sequence[Parameters], like: Tensor) -> dict[str, Any]:
    """Return each numeric parameter of a method as a tensor (S, 1, 1)."""
    values = [dataclasses.asdict(p) for p in parameters]
    # lambda_init and penalty_init may be None for some.
    numeric = [name for name in values[0] if all(isinstance(value[name], int | float) for value in values)]
    return {name: _per_network([value[name] for value in values], like) for name in numeric}


def _per_network(values: Iterable[float], like: Tensor) -> Tensor:
    """Return a number a network as a tensor (S, 1, 1)."""
    return torch.tensor(list(values), dtype=like.dtype, device=like.device).view(-1, 1, 1)


class _SPBMDual:
    """Multipliers and penalty parameters of a stack under Algorithm 1."""

    def __init__(self, parameters: Sequence[SPBMParameters], n_groups: int, like: Tensor) -> None:
        numbers = _stacked_numbers(parameters, like)
        shape = (len(parameters), n_groups, n_groups)

        def start(name: str, default: str) -> Tensor:
            given = [getattr(p, name) for p in parameters]
            values = [getattr(p, default) if v is None else v for p, v in zip(parameters, given)]
            return _per_network(values, like).expand(shape).clone()

        self.multipliers = start("lambda_init", "lambda_min")
        self.penalties = start("penalty_init", "penalty_max")
        self._dual = numbers["gamma"], numbers["lambda_min"], numbers["lambda_max"]
        self._kappa, self._rho = numbers["kappa"], numbers["rho"]
        self._penalty_box = numbers["penalty_min"], numbers["penalty_max"]
        self._rules = {
            rule: torch.tensor([p.rule == rule for p in parameters], device=like.device).view(-1, 1, 1)
            for rule in dict.fromkeys(p.rule for p in parameters)
        }
        names = {p.phi for p in parameters}
        ql = torch.tensor([p.phi == "ql" for p in parameters], device=like.device).view(-1, 1, 1)
        self._phi = barriers.get(names.pop()) if len(names) == 1 else _MixedBarrier(ql)

    def weights(self, g: Tensor, seen: Tensor | None) -> Tensor:
        weights = updates.barrier_weights(g, self.multipliers, self.penalties, self._phi)
        multipliers = updates.barrier_multipliers(self.multipliers, weights, *self._dual)
        penalties = self.penalties
        for rule, chosen in self._rules.items():
            if rule == "adapt":
                moved = updates.adapt_penalties(self.penalties, g, self._phi, self._kappa, *self._penalty_box)
            elif rule == "alm":
                moved = updates.alm_penalties(multipliers, self._rho, *self._penalty_box)
            else:
                continue
            penalties = moved if len(self._rules) == 1 else torch.where(chosen, moved, penalties)
        if seen is not None:
            weights = torch.where(seen, weights, 0.0)
            multipliers = torch.where(seen, multipliers, self.multipliers)
            penalties = torch.where(seen, penalties, self.penalties)
        self.multipliers, self.penalties = multipliers, penalties
        return weights


class _SSLALMDual:
    """Multipliers of a stack under SSL-ALM."""

    penalties: Tensor | None = None

    def __init__(self, parameters: Sequence[SSLALMParameters], n_groups: int, like: Tensor) -> None:
        numbers = _stacked_numbers(parameters, like)
        self.multipliers = numbers["lambda_init"].expand(-1, n_groups, n_groups).clone()
        self._box = numbers["lambda_min"], numbers["lambda_max"]
        self._eta, self._rho = numbers["eta"], numbers["rho"]
        # With rho = 0 both penalties are none, and the shifted form would divide by it.
        shifted = [p.penalty == "shifted" and p.rho > 0 for p in parameters]
        self._shifted = torch.tensor(shifted, device=like.device).view(-1, 1, 1) if any(shifted) else None
        self._ratio = self._eta / torch.where(self._rho > 0, self._rho, 1.0)

    def weights(self, g: Tensor, seen: Tensor | None) -> Tensor:
        known = g if seen is None else torch.where(seen, g, 0.0)
        multipliers = self.multipliers + self._eta * known
        if self._shifted is not None:
            bent = (self.multipliers + self._rho * known).clamp(min=0.0)
            multipliers = torch.where(self._shifted, torch.lerp(self.multipliers, bent, self._ratio), multipliers)
        multipliers = multipliers.clamp(*self._box)
        weights = multipliers + self._rho * known
        if self._shifted is not None:
            weights = torch.where(self._shifted, weights.clamp(min=0.0), weights)
        if seen is not None:
            weights = torch.where(seen, weights, 0.0)
            multipliers = torch.where(seen, multipliers, self.multipliers)
        self.multipliers = multipliers
        return weights


class _PenalizedDual:
    """Fixed weights beta of a stack; plain Adam with beta = 0."""

    multipliers: Tensor | None = None
    penalties: Tensor | None = None

    def __init__(self, parameters: Sequence[PenalizedParameters], n_groups: int, like: Tensor) -> None:
        self._beta = _stacked_numbers(parameters, like)["beta"]
        self._hinge = torch.tensor([p.penalty == "hinge" for p in parameters], device=like.device).view(-1, 1, 1)

    def weights(self, g: Tensor, seen: Tensor | None) -> Tensor:
        weights = self._beta * torch.where(self._hinge, (g > 0).to(g.dtype), 1.0)
        return weights if seen is None else torch.where(seen, weights, 0.0)


_DUALS: dict[type, Callable[..., Any]] = {
    SPBMParameters: _SPBMDual,
    SSLALMParameters: _SSLALMDual,
    PenalizedParameters: _PenalizedDual,
}


# ------------------------------------------------------------------------------------------------ training


class StackedTraining:
    """A stack of runs of one method, step by step.

    Parameters
    ----------
    networks : StackedMLP
        The initial networks; they are trained in place.
    jobs : sequence of Job
        One a network, all of one method.
    constraint : PairwiseGroups
        The constraints between groups, with a statistic known by name.
    batch_groups : Tensor of int64, shape (B,)
        The group of each place in a batch.
    weights : Tensor of shape (B,)
        The weight of each place in the objective.

    Raises
    ------
    ArgumentError
        When the jobs are of several methods, or the constraint's statistic is a function.
    """

    def __init__(
        self,
        networks: StackedMLP,
        jobs: Sequence[Job],
        constraint: PairwiseGroups,
        batch_groups: Tensor,
        weights: Tensor,
    ) -> None:
        parameters = [job.parameters for job in jobs]
        kinds = {type(p) for p in parameters}
        if len(kinds) > 1 or len(parameters) != networks.size:
            problem = f"{len(jobs)} of {len(kinds)} methods for {networks.size} networks"
            raise ArgumentError("jobs", problem, "one a network, all of one method")
        if not isinstance(constraint.statistic, str):
            raise ArgumentError("constraint", "compares a function", "a statistic known by name")
        self.networks, self.constraint, self.step_count = networks, constraint, 0
        like = networks.flat
        self.dual = _DUALS[kinds.pop()](parameters, constraint.n_groups, like)
        self._statistic = constraint.statistic
        self._member = nn.functional.one_hot(batch_groups, constraint.n_groups).to(like)
        self._mean = self._member / self._member.sum(0)
        self._weights = weights.to(like)

        def number(values: Iterable[float]) -> Tensor:
            return networks.expand(torch.tensor(list(values), dtype=like.dtype, device=like.device))

        self._rate = number(job.lr for job in jobs)
        self._mu = number(p.mu for p in parameters) if any(p.mu for p in parameters) else None
        self._stay = number(1 - p.delta for p in parameters)
        self._centre = like.clone()
        modes = {getattr(p, "mode", "algorithm1") for p in parameters if p.mu}
        if len(modes) > 1:
            raise ArgumentError("jobs", "mix two modes of SPBM", "train them in two calls")
        self._early_centre = modes == {"package"}
        # Adam with step size 1 from 0 gives the direction, which each network then takes at its own learning rate.
        self._direction = torch.zeros_like(like)
        self._direction.grad = networks.gradients
        self._adam = torch.optim.Adam([self._direction], lr=1.0, fused=True)

    @torch.no_grad()
    def step(self, x: Tensor, y: Tensor, factor: float = 1.0) -> None:
        """Take one step of every network.

        Parameters
        ----------
        x : Tensor of shape (B, d) or (S, B, d)
            A batch that all networks share, or one each.
        y : Tensor of shape (B,) or (S, B)
            Labels 0 and 1.
        factor : float, default 1
            Share of each network's learning rate.
        """
        logits = self.networks.forward(x)
        probability = logits.sigmoid()
        residual = probability - y
        mean, seen = self._means(y)
        if self._statistic == "loss":
            row, by_logit = nn.functional.softplus(logits) - y * logits, residual
        else:
            row, by_logit = probability, probability * (1.0 - probability)
        statistics = row @ mean if mean.ndim == 2 else (row.unsqueeze(1) @ mean).squeeze(1)
        g = statistics.unsqueeze(2) - (statistics.unsqueeze(1) + self.constraint.epsilon)
        g /= self.constraint.scale
        weights = self.dual.weights(g, seen)
        by_statistic = (weights.sum(2) - weights.sum(1)) / self.constraint.scale
        by_row = by_statistic @ mean.mT if mean.ndim == 2 else (mean @ by_statistic.unsqueeze(2)).squeeze(2)
        self.networks.backward(x, torch.addcmul(self._weights * residual, by_row, by_logit))
        self._update(factor)

    def _means(self, y: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the (B, R) or (S, B, R) averages of a batch's rows by group, and the pairs that it holds."""
        if self._statistic in ("positive_rate", "loss"):
            return self._mean, None
        counts = y > 0.5 if self._statistic == "true_positive_rate" else y <= 0.5
        member = self._member * counts.unsqueeze(-1)
        size = member.sum(-2, keepdim=True)
        held = (size > 0).squeeze(-2)
        return member / size.clamp(min=1.0), held.unsqueeze(-1) & held.unsqueeze(-2)

    def _update(self, factor: float) -> None:
        values, gradients, centre = self.networks.flat, self.networks.gradients, self._centre
        if self._mu is not None:
            gradients.addcmul_(self._mu, values).addcmul_(self._mu, centre, value=-1.0)
            if self._early_centre:
                centre.lerp_(values, self._stay)
        self._direction.zero_()
        self._adam.step()
        values.addcmul_(self._rate, self._direction, value=factor)
        if self._mu is not None and not self._early_centre:
            centre.lerp_(values, self._stay)
        self.step_count += 1

    @torch.no_grad()
    def evaluate(self, x: Tensor, y: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
        """Return the unweighted mean loss and the groups' statistics over some rows.

        Parameters
        ----------
        x : Tensor of shape (n, d)
            Rows.
        y : Tensor of shape (n,)
            Labels 0 and 1.
        groups : Tensor of int64, shape (n,)
            Groups.

        Returns
        -------
        loss : Tensor of float64, shape (S,)
        statistics : Tensor of float64, shape (S, R)
            NaN for a group that no row counts for.
        """
        size, n_groups = self.networks.size, self.constraint.n_groups
        loss = torch.zeros(size, dtype=torch.float64, device=x.device)
        sums = torch.zeros(size, n_groups, dtype=torch.float64, device=x.device)
        counts = {"true_positive_rate": y > 0.5, "false_positive_rate": y <= 0.5}.get(self._statistic)
        member = nn.functional.one_hot(groups, n_groups).to(x)
        if counts is not None:
            member = member * counts.unsqueeze(1)
        for rows, labels, belongs in zip(*(t.split(_EVALUATION_ROWS) for t in (x, y, member))):
            logits = self.networks.forward(rows)
            losses = nn.functional.softplus(logits) - labels * logits
            loss += losses.sum(1)
            sums += (losses if self._statistic == "loss" else logits.sigmoid()) @ belongs
        return loss / len(y), sums / member.sum(0, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class BatchedResult:
    """What many runs gave.

    Attributes
    ----------
    jobs : tuple of Job
        The runs, in the order asked for.
    history : DataFrame
        A row a job and evaluated epoch: job, epoch (from 1), objective (mean loss over all rows, unweighted),
        max_constraint and mean_constraint (over the R(R-1) values g; max_constraint <= 0 is feasible), and lambda_max
        (NaN where the method has no multipliers).
    statistics : array of shape (jobs, evaluated epochs, R)
        The groups' statistics over all rows: every constraint is a difference of two, less epsilon, over the scale.
    networks : list of nn.Sequential
        The trained networks.
    """

    jobs: tuple[Job, ...]
    history: pd.DataFrame
    statistics: Array
    networks: list[nn.Sequential]


def train_batched(
    X: Any,
    y: Any,
    groups: Any,
    jobs: Iterable[Job],
    *,
    constraint: PairwiseGroups,
    hidden: Sequence[int],
    batch_size: int,
    epochs: int,
    epoch: EpochLength = "cover",
    objective: Objective = "population",
    schedule: WarmupCosine = WarmupCosine(),  # noqa: B008 (frozen)
    stack: int = 20,
    evaluate_last: int | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: Callable[..., Iterator[Any]] = lambda items, description, total=None: iter(items),
) -> BatchedResult:
    """Train many networks, a stack at a time.

    A job gives what the same job gives alone, whatever stack it is in, up to rounding.  Jobs of one method and seed are
    put into the same stacks, where they share their batches.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    y : array of shape (n,)
        Labels 0 and 1.
    groups : array of int, shape (n,)
        Groups 0..R-1.
    jobs : iterable of Job
        The runs.
    constraint : PairwiseGroups
        The constraints between the groups.
    hidden : sequence of int
        Widths of the hidden layers.
    batch_size, epochs : int
        Rows in a batch; passes.
    epoch, objective
        See `GroupSampler`.
    schedule : WarmupCosine
        Of the learning rates.
    stack : int, default 20
        Networks in a stack.
    evaluate_last : int, optional
        Evaluate after each of the last so many epochs; by default after every one.
    dtype : torch.dtype, default float32
        Of the networks.
    device : torch.device or str, default "cpu"
        Where to train.
    progress : callable, optional
        ``progress(iterable, description, total)``; by default nothing is shown.

    Returns
    -------
    BatchedResult
        History, statistics and networks.

    Raises
    ------
    ArgumentError
        When an argument is out of range, naming it.
    """
    jobs = tuple(jobs)
    if not jobs:
        raise ArgumentError("jobs", "are none", "at least one")
    for argument, value in (("epochs", epochs), ("stack", stack)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(argument, f"is {value!r}", "at least 1")
    rows = torch.as_tensor(X, dtype=dtype, device=device).contiguous()
    labels = torch.as_tensor(y, dtype=dtype, device=device)
    numbers = torch.as_tensor(groups, device=device)
    if rows.ndim != 2 or labels.shape != rows.shape[:1] or numbers.shape != rows.shape[:1]:
        shapes = ", ".join(str(tuple(t.shape)) for t in (rows, labels, numbers))
        raise ArgumentError("X, y, groups", f"have shapes {shapes}", "(n, d), (n,), (n,)")
    if not bool(rows.isfinite().all()):
        raise ArgumentError("X", "holds a number that is not finite", "drop or impute such rows")
    if not bool(((labels == 0) | (labels == 1)).all()):
        raise ArgumentError("y", "holds other labels than 0 and 1", "encode the two classes as 0 and 1")
    order = sorted(range(len(jobs)), key=lambda i: (type(jobs[i].parameters).__name__, jobs[i].seed, i))
    stacks: list[list[int]] = []
    for index in order:
        fresh = not stacks or len(stacks[-1]) == stack
        if fresh or type(jobs[stacks[-1][0]].parameters) is not type(jobs[index].parameters):
            stacks.append([])
        stacks[-1].append(index)

    first = epochs - min(epochs, epochs if evaluate_last is None else evaluate_last)
    frames: list[pd.DataFrame] = []
    statistics = np.full((len(jobs), epochs - first, constraint.n_groups), np.nan)
    trained: dict[int, nn.Sequential] = {}

    def passes() -> Iterator[tuple[int, StackedTraining, list[int]]]:
        for indices in stacks:
            chosen = [jobs[i] for i in indices]
            samplers, networks, which = _starts(chosen, rows, numbers, constraint, hidden, batch_size, epoch, device)
            training = StackedTraining(
                networks, chosen, constraint, samplers[0].batch_groups, samplers[0].weights(objective, dtype)
            )
            horizon = epochs * samplers[0].steps
            for number in range(epochs):
                for x, target in _stacked_feed(samplers, which, rows, labels):
                    training.step(x, target, schedule.factor(training.step_count, horizon))
                yield number, training, indices
            trained.update((index, networks.network(place)) for place, index in enumerate(indices))

    for number, training, indices in progress(passes(), "training", len(stacks) * epochs):
        if number < first:
            continue
        loss, by_group = training.evaluate(rows, labels, numbers)
        statistics[indices, number - first] = by_group.numpy(force=True)
        frames.append(_evaluated(number + 1, indices, loss, by_group, training))
    history = pd.concat(frames, ignore_index=True).sort_values(["job", "epoch"], ignore_index=True)
    return BatchedResult(jobs, history, statistics, [trained[i] for i in range(len(jobs))])


def _starts(
    jobs: Sequence[Job],
    rows: Tensor,
    groups: Tensor,
    constraint: PairwiseGroups,
    hidden: Sequence[int],
    batch_size: int,
    epoch: EpochLength,
    device: torch.device | str,
) -> tuple[list[GroupSampler], StackedMLP, Tensor | None]:
    """Return a sampler a distinct seed, the initial networks, and each network's sampler (None: all share one)."""
    samplers: dict[int, GroupSampler] = {}
    starts: dict[int, nn.Sequential] = {}
    for job in jobs:
        if job.seed not in samplers:
            generator = seeded(job.seed)
            starts[job.seed] = mlp(rows.shape[1], hidden, generator=generator, dtype=rows.dtype).to(device)
            samplers[job.seed] = GroupSampler(
                groups, batch_size, generator=generator, n_groups=constraint.n_groups, epoch=epoch, device=device
            )
    networks = StackedMLP([starts[job.seed] for job in jobs])
    seeds = list(samplers)
    which = None if len(seeds) == 1 else torch.tensor([seeds.index(job.seed) for job in jobs], device=device)
    return list(samplers.values()), networks, which


def _stacked_feed(
    samplers: Sequence[GroupSampler], which: Tensor | None, rows: Tensor, labels: Tensor
) -> Iterator[tuple[Tensor, ...]]:
    """Yield the batches of an epoch: (B, d) where all networks share them, else (S, B, d)."""
    epochs = [sampler.epoch() for sampler in samplers]
    if which is None:
        yield from feed(epochs[0], rows, labels)
    else:
        for batch in torch.stack(epochs, 1).unbind(0):
            chosen = batch[which]
            yield rows[chosen], labels[chosen]


def _evaluated(
    epoch: int, indices: Sequence[int], loss: Tensor, statistics: Tensor, training: StackedTraining
) -> pd.DataFrame:
    """Return a row a network: objective, constraints, multipliers."""
    constraint = training.constraint
    off = ~torch.eye(constraint.n_groups, dtype=torch.bool, device=statistics.device)
    gaps = (statistics.unsqueeze(2) - statistics.unsqueeze(1) - constraint.epsilon)[:, off] / constraint.scale
    multipliers = training.dual.multipliers
    largest = loss * math.nan if multipliers is None else multipliers[:, off].amax(1)
    columns = {
        "objective": loss,
        "max_constraint": gaps.amax(1),
        "mean_constraint": gaps.mean(1),
        "lambda_max": largest.double(),
    }
    return pd.DataFrame({"job": indices, "epoch": epoch} | {k: v.numpy(force=True) for k, v in columns.items()})
