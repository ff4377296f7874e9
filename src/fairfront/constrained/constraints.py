"""Constraints g(x) <= 0: bounds on parameter norms, pairwise gaps between groups, equalities, and the user's own.

A constraint family is a callable that gives, on a batch, what an optimiser's ``step`` takes: a tensor (m,), or for
the m = R (R - 1) gaps between R groups a `PairwiseValues`, which never forms the graph of m numbers: the gaps
``D_ij = (s_i - s_j - epsilon) / scale`` depend on R statistics only, so that one R-vector,
``dL/ds_r = (sum_j W_rj - sum_i W_ir) / scale``, carries every multiplier back.

Units
-----
A multiplier grows by a factor that depends on g/p, so constraints whose natural size is far from 1 need other
multipliers, or many steps: with mean squared errors near a bound of 1e-3 it takes 23,000 steps for a factor of ten
(p = 1, gamma = 0.9).  Every family therefore takes a ``scale``: g is divided by it.  ``scale="epsilon"`` measures a
constraint in multiples of its own bound (g/eps = value/eps - 1); the feasible set is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from fairfront.constrained import kernels
from fairfront.errors import ArgumentError, unknown_name

__all__ = [
    "STATISTICS",
    "BinaryValues",
    "Constraints",
    "NormBounds",
    "PairwiseGroups",
    "PairwiseValues",
    "UserConstraints",
    "VectorValues",
    "equality",
    "group_means",
]

Scale = float | Literal["epsilon"]

# Up to this many entries a matrix of averages is quicker than a reduction by groups.
_DENSE = 2**13


class Constraints(Protocol):
    """What an optimiser needs to know of a family: ``m`` may be given as one."""

    @property
    def m(self) -> int:
        """Number of constraints."""

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of the multipliers: (m,) or (R, R)."""

    def names(self) -> tuple[str, ...]:
        """Return one name a constraint, in the order of the values."""


# --------------------------------------------------------------------------------------------------- values


class VectorValues:
    """Constraint values as a tensor.

    Attributes
    ----------
    source : tensor of shape (m,)
        The values, with their graph.
    """

    __slots__ = ("source",)

    def __init__(self, source: Tensor) -> None:
        self.source = source

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of the multipliers."""
        return tuple(self.source.shape)

    def evaluate(self) -> Tensor:
        """Return the values without a graph."""
        return self.source.detach()

    def pull(self, weights: Tensor) -> Tensor:
        """Return the gradient with respect to ``source`` of sum_i weights_i g_i, in memory of its own."""
        return weights.clone()

    def detach(self) -> VectorValues:
        """Return the values without their graph."""
        return VectorValues(self.source.detach())

    def carries(self, loss: Tensor) -> bool:
        """Return whether a gradient of the loss can be had."""
        return loss.requires_grad

    def backward(self, loss: Tensor | None, pulled: Tensor | None, *, retain_graph: bool = False) -> None:
        """Accumulate the gradients of the loss and of pulled'source, either of which may be left out."""
        if pulled is not None and not self.source.requires_grad:
            pulled = None
        if pulled is None:
            if loss is not None:
                torch.autograd.backward(loss, retain_graph=retain_graph)
        elif loss is None:
            torch.autograd.backward(self.source, pulled, retain_graph=retain_graph)
        else:
            torch.autograd.backward((loss, self.source), (None, pulled), retain_graph=retain_graph)


class PairwiseValues(VectorValues):
    """All ordered gaps between R group statistics, as an R x R matrix that is formed without a graph.

    Parameters
    ----------
    source : tensor of shape (R,)
        The groups' statistics, with their graph.
    epsilon : float
        The bound: s_i - s_j <= epsilon for every i != j.
    scale : float, default 1
        Gaps are divided by it.
    present : bool tensor of shape (R,), optional
        Groups that the batch holds; default: all.  Gaps with an absent group are NaN, which every optimiser skips.
    """

    __slots__ = ("epsilon", "present", "scale", "size")

    def __init__(self, source: Tensor, epsilon: float, scale: float = 1.0, present: Tensor | None = None) -> None:
        self.source = source
        self.size = source.shape[0]
        self.epsilon = epsilon
        self.scale = scale
        self.present = present

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of the multipliers."""
        return (self.size, self.size)

    @property
    def m(self) -> int:
        """Number of constraints, R (R - 1)."""
        return self.size * (self.size - 1)

    def evaluate(self) -> Tensor:
        """Return D of shape (R, R) without a graph; the diagonal, which is no constraint, holds -epsilon / scale."""
        s = self.source.detach()
        gaps = s[:, None] - (s + self.epsilon)
        if self.scale != 1.0:
            gaps = gaps / self.scale
        if self.present is not None:
            gaps = torch.where(self.present[:, None] & self.present, gaps, math.nan)
        return gaps

    def pull(self, weights: Tensor) -> Tensor:
        """Return the gradient (R,) with respect to ``source`` of sum_ij weights_ij D_ij."""
        pulled = weights.sum(1) - weights.sum(0)
        return pulled if self.scale == 1.0 else pulled / self.scale

    def vector(self) -> Tensor:
        """Return the m gaps (row by row, without the diagonal) as a tensor with a graph: slow, for other solvers."""
        gaps = (self.source[:, None] - self.source - self.epsilon) / self.scale
        if self.present is not None:
            gaps = torch.where(self.present[:, None] & self.present, gaps, math.nan)
        return gaps[~torch.eye(self.size, dtype=torch.bool, device=gaps.device)]

    def detach(self) -> PairwiseValues:
        """Return the values without their graph."""
        return PairwiseValues(self.source.detach(), self.epsilon, self.scale, self.present)


class BinaryValues(PairwiseValues):
    """Gaps of a batch of binary logits, whose loss is their weighted cross-entropy: the gradient is written out.

    Made by `PairwiseGroups.binary`.  Neither ``loss`` nor ``source`` has a graph; ``backward`` forms their gradient in
    the logits and goes on from there.
    """

    __slots__ = ("_logits", "_slope", "loss")

    def __init__(
        self,
        family: PairwiseGroups,
        source: Tensor,
        loss: Tensor,
        logits: Tensor,
        slope: Callable[[bool, Tensor | None], Tensor],
    ) -> None:
        super().__init__(source, family.epsilon, family.scale)
        self.loss = loss
        self._logits, self._slope = logits, slope

    def carries(self, loss: Tensor) -> bool:
        """Return whether a gradient of the loss can be had."""
        return (self._logits if loss is self.loss else loss).requires_grad

    def backward(self, loss: Tensor | None, pulled: Tensor | None, *, retain_graph: bool = False) -> None:
        """Accumulate the gradients of the loss (its own, or another) and of pulled'source."""
        own = loss is self.loss
        if not own and loss is not None:
            torch.autograd.backward(loss, retain_graph=True)
        if own or pulled is not None:
            slope = self._slope(own, pulled)
            torch.autograd.backward(self._logits, slope.view(self._logits.shape), retain_graph=retain_graph)


# --------------------------------------------------------------------------------------------------- groups


def group_means(
    values: Tensor, n_groups: int, groups: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return each group's mean of the rows' values, and which groups have a row.

    Parameters
    ----------
    values : tensor of shape (n,)
        One number a row.
    n_groups : int
        R.
    groups : integer tensor of shape (n,), optional
        The rows' groups 0..R-1.  Without it the rows come in R blocks of equal size, group by group, as a balanced
        sampler lays them.
    mask : bool tensor of shape (n,), optional
        Rows that count; default: all.

    Returns
    -------
    means : tensor of shape (R,)
        Means; 0 for a group without a row.
    present : bool tensor of shape (R,), or None
        Groups with a row that counts; None if all have one.

    Raises
    ------
    ArgumentError
        If ``values`` or ``groups`` has another shape, or the blocks are unequal.
    """
    if values.ndim != 1:
        raise ArgumentError("values", f"has shape {tuple(values.shape)}", "one number a row: (n,)")
    if groups is None:
        if len(values) % n_groups or not len(values):
            raise ArgumentError("groups", f"{len(values)} rows are no {n_groups} equal blocks", "give the rows' groups")
        if mask is None:
            return values.view(n_groups, -1).mean(1), None
        weights = mask.to(values.dtype).view(n_groups, -1)
        counts = weights.sum(1)
        # where(), not a product: a NaN in a row that does not count must not count
        sums = torch.where(mask, values, 0.0).view(n_groups, -1).sum(1)
    else:
        if groups.shape != values.shape:
            raise ArgumentError("groups", f"has shape {tuple(groups.shape)}", f"one a row: {tuple(values.shape)}")
        kept = values if mask is None else torch.where(mask, values, 0.0)
        ones = torch.ones_like(values) if mask is None else mask.to(values.dtype)
        zero = values.new_zeros(n_groups)
        counts = zero.index_add(0, groups, ones.detach())
        sums = zero.index_add(0, groups, kept)
    present = counts > 0
    if values.device.type == "cpu" and bool(present.all()):  # elsewhere asking would wait for the device
        return sums / counts, None
    return sums / counts.clamp(min=1.0), present


RowStatistic = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]


def _positive_rate(logits: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return torch.sigmoid(_one_logit(logits)), None


def _true_positive_rate(logits: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return torch.sigmoid(_one_logit(logits)), _labels(labels, "true_positive_rate") > 0.5


def _false_positive_rate(logits: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    return torch.sigmoid(_one_logit(logits)), _labels(labels, "false_positive_rate") <= 0.5


def _loss(logits: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    labels = _labels(labels, "loss")
    if logits.ndim == 2 and logits.shape[1] > 1:
        return torch.nn.functional.cross_entropy(logits, labels.long(), reduction="none"), None
    z = _one_logit(logits)
    return torch.nn.functional.binary_cross_entropy_with_logits(z, labels.to(z.dtype), reduction="none"), None


def _one_logit(logits: Tensor) -> Tensor:
    if logits.ndim == 2 and logits.shape[1] == 1:
        return logits.squeeze(1)
    if logits.ndim != 1:
        raise ArgumentError("logits", f"has shape {tuple(logits.shape)}", "one logit a row: (n,) or (n, 1)")
    return logits


def _labels(labels: Tensor | None, statistic: str) -> Tensor:
    if labels is None:
        raise ArgumentError("labels", "are missing", f"the statistic {statistic} needs the rows' labels")
    return labels


STATISTICS: dict[str, RowStatistic] = {
    "positive_rate": _positive_rate,
    "true_positive_rate": _true_positive_rate,
    "false_positive_rate": _false_positive_rate,
    "loss": _loss,
}


_Binary = tuple[Tensor, Tensor, Callable[[bool, Tensor | None], Tensor]]


class _Layout:
    """What follows from the groups of a batch's rows."""

    def __init__(self, key: Tensor | None, numbers: Tensor, n_groups: int, dtype: torch.dtype) -> None:
        counts = torch.bincount(numbers, minlength=n_groups)
        self._key, self._version, self._dtype = key, None if key is None else key._version, dtype
        self.complete = len(counts) == n_groups and bool((counts > 0).all())
        self.groups = numbers.numpy().copy()
        self.units = (1.0 / counts.to(dtype)).numpy()
        self.shares = torch.full((len(numbers),), 1 / len(numbers), dtype=dtype).numpy()
        self.average: Tensor | None = None
        self.members: Tensor | None = None
        if self.complete and n_groups * len(numbers) <= _DENSE:
            self.members = torch.nn.functional.one_hot(numbers, n_groups).to(dtype) / counts
            self.average = self.members.T.contiguous()

    def serves(self, groups: Tensor | None, n: int, dtype: torch.dtype) -> bool:
        """Return whether it is that of these groups, unless they were written to in the meantime."""
        if groups is not self._key or (groups is not None and groups._version != self._version):
            return False
        return len(self.groups) == n and dtype == self._dtype


class PairwiseGroups:
    """Equation 21: every group's statistic within epsilon of every other's, m = R (R - 1) constraints.

    Parameters
    ----------
    n_groups : int, >= 2
        R.
    statistic : str or callable
        "positive_rate" (mean sigmoid of the logit), "true_positive_rate" and "false_positive_rate" (the same over the
        rows labelled 1, or 0), "loss" (mean cross-entropy; labels are classes where there is a column of logits a
        class), or a function of (logits, labels) that returns one number a row, (n,), whose group means are compared,
        or a pair of that and a bool mask (n,) of the rows that count.
    epsilon : float, >= 0
        The bound.
    scale : float or "epsilon", default 1
        Gaps are divided by it (see the module).
    compiled : bool, default False
        Have numba compile what `binary` does on the CPU (a second or two, once a process).

    Examples
    --------
    >>> import torch
    >>> constraint = PairwiseGroups(2, "positive_rate", epsilon=0.1)
    >>> constraint(torch.tensor([0.0, 0.0]), groups=torch.tensor([0, 1])).evaluate()
    tensor([[-0.1000, -0.1000],
            [-0.1000, -0.1000]])
    """

    def __init__(
        self,
        n_groups: int,
        statistic: str | Callable[..., Tensor | tuple[Tensor, Tensor | None]] = "positive_rate",
        *,
        epsilon: float = 0.1,
        scale: Scale = 1.0,
        compiled: bool = False,
    ) -> None:
        if isinstance(n_groups, bool) or not isinstance(n_groups, int) or n_groups < 2:
            raise ArgumentError("n_groups", f"is {n_groups!r}", "at least 2 groups")
        if isinstance(statistic, str) and statistic not in STATISTICS:
            raise unknown_name("statistic", statistic, STATISTICS)
        self.n_groups = n_groups
        self.statistic = statistic
        self.epsilon = _nonnegative("epsilon", epsilon)
        self.scale = _scale(scale, self.epsilon)
        self._rows = STATISTICS[statistic] if isinstance(statistic, str) else statistic
        self.compiled = compiled
        self._kept: _Layout | None = None

    @classmethod
    def of(
        cls,
        groups: Tensor,
        statistic: str | Callable[..., Tensor | tuple[Tensor, Tensor | None]] = "positive_rate",
        *,
        n_groups: int | None = None,
        epsilon: float = 0.1,
        scale: Scale = 1.0,
    ) -> PairwiseGroups:
        """Return the constraints between the groups of all training rows.

        Raises
        ------
        ArgumentError
            For a group that never occurs: its constraints could never be seen.
        """
        if groups.ndim != 1 or groups.is_floating_point() or not len(groups):
            raise ArgumentError("groups", f"has shape {tuple(groups.shape)}, {groups.dtype}", "integers 0..R-1, (n,)")
        highest = int(groups.max())
        n_groups = highest + 1 if n_groups is None else n_groups
        if int(groups.min()) < 0 or highest >= n_groups:
            raise ArgumentError("groups", f"reach from {int(groups.min())} to {highest}", f"0 to {n_groups - 1}")
        absent = (torch.bincount(groups, minlength=n_groups) == 0).nonzero().flatten().tolist()
        if absent:
            listed = ", ".join(map(str, absent[:5])) + (" ..." if len(absent) > 5 else "")
            raise ArgumentError("groups", f"group {listed} never occurs", "drop or merge empty groups and renumber")
        return cls(n_groups, statistic, epsilon=epsilon, scale=scale)

    @property
    def m(self) -> int:
        """Number of constraints, R (R - 1)."""
        return self.n_groups * (self.n_groups - 1)

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of the multipliers, (R, R)."""
        return (self.n_groups, self.n_groups)

    def names(self) -> tuple[str, ...]:
        """Return one name a constraint, row by row of the matrix without its diagonal."""
        size = range(self.n_groups)
        return tuple(f"group {i} - group {j}" for i in size for j in size if i != j)

    def statistics(
        self, logits: Tensor, labels: Tensor | None = None, groups: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the groups' statistics (R,), and which groups are present (None: all)."""
        rows = self._rows(logits, labels)
        values, mask = rows if isinstance(rows, tuple) else (rows, None)
        return group_means(values, self.n_groups, groups, mask)

    def __call__(self, logits: Tensor, labels: Tensor | None = None, groups: Tensor | None = None) -> PairwiseValues:
        """Return the gaps on a batch.

        Parameters
        ----------
        logits : tensor of shape (n,), (n, 1) or (n, K)
            The model's output.
        labels : tensor of shape (n,), optional
            0 and 1, or classes.
        groups : integer tensor of shape (n,), optional
            The rows' groups; without it, R blocks of equal size.
        """
        statistics, present = self.statistics(logits, labels, groups)
        return PairwiseValues(statistics, self.epsilon, self.scale, present)

    def binary(
        self, logits: Tensor, labels: Tensor, groups: Tensor | None = None, weights: Tensor | None = None
    ) -> tuple[Tensor, PairwiseValues]:
        """Return the cross-entropy of a batch of binary logits and the gaps, with both gradients written out.

        The same numbers as from `torch.nn.functional.binary_cross_entropy_with_logits` and a call of the family, for
        less: a step on a small network spends much of its time on launching kernels.  Where there is nothing to
        save (other statistics, other devices, NaN, large batches of many groups) it is just that.

        Parameters
        ----------
        logits : tensor of shape (n,) or (n, 1)
            The model's output.
        labels : tensor of shape (n,)
            0 and 1.
        groups : integer tensor of shape (n,), optional
            The rows' groups; without it, R blocks of equal size.  Pass the same tensor at every step: what follows
            from it is kept.
        weights : tensor of shape (n,), optional
            The loss is ``sum_i weights_i l_i``; default: the mean.

        Returns
        -------
        loss : scalar tensor
            For ``step`` together with the values; it has no graph of its own.
        values : PairwiseValues
            The gaps.
        """
        z = logits.detach()
        if z.ndim != 1:
            z = _one_logit(z)
        y = labels if labels.dtype == z.dtype else labels.to(z.dtype)
        made = None
        if z.device.type == "cpu" and self.statistic in ("positive_rate", "loss"):
            layout = self._layout(len(z), groups, z)
            if layout is not None:
                made = (self._binary_compiled if self.compiled else self._binary)(z, y, layout, weights)
        if made is not None:
            statistics, loss, slope = made
            return loss, BinaryValues(self, statistics, loss, logits, slope)
        rows = torch.nn.functional.binary_cross_entropy_with_logits(_one_logit(logits), y, reduction="none")
        return (rows.mean() if weights is None else torch.dot(weights, rows)), self(logits, labels, groups)

    def _binary(self, z: Tensor, y: Tensor, layout: _Layout, weights: Tensor | None) -> _Binary | None:
        if layout.average is None or layout.members is None:
            return None
        members = layout.members
        with torch.no_grad():
            probability = torch.sigmoid(z)
            error = probability - y
            rows = torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")
            of_loss = self.statistic == "loss"
            statistics = torch.mv(layout.average, rows if of_loss else probability)
            # In a product with the averages one NaN would be every group's.
            if not math.isfinite(statistics.sum().item()):
                return None
            loss = rows.mean() if weights is None else torch.dot(weights, rows)

        def slope(own: bool, pulled: Tensor | None) -> Tensor:
            with torch.no_grad():
                along = error / len(z) if weights is None else error * weights
                if pulled is None:
                    return along
                each = error if of_loss else probability - probability * probability
                through = torch.mv(members, pulled).mul_(each)
                return through.add_(along) if own else through

        return statistics, loss, slope

    def _binary_compiled(self, z: Tensor, y: Tensor, layout: _Layout, weights: Tensor | None) -> _Binary:
        n, size = len(z), self.n_groups
        both, slopes = torch.empty(size + 1, dtype=z.dtype), torch.empty((3, n), dtype=z.dtype)
        shares = layout.shares if weights is None else weights.numpy()
        kernel, gather = kernels.compiled_binary()
        arrays = (both.numpy(), slopes.numpy(), layout.groups, layout.units)
        kernel(z.numpy(), y.numpy(), shares, *arrays, self.statistic == "loss")

        def slope(own: bool, pulled: Tensor | None) -> Tensor:
            if pulled is None:
                return slopes[0]
            gather(arrays[1], layout.groups, layout.units, pulled.numpy(), own)
            return slopes[2]

        return both[:size], both[size], slope

    def _layout(self, n: int, groups: Tensor | None, like: Tensor) -> _Layout | None:
        """Return what follows from the rows' groups, kept from step to step; None if a group is absent."""
        kept = self._kept
        if kept is None or not kept.serves(groups, n, like.dtype):
            if groups is None:
                if not n or n % self.n_groups:
                    raise ArgumentError("groups", f"{n} rows are no {self.n_groups} equal blocks", "give the groups")
                numbers = torch.arange(self.n_groups).repeat_interleave(n // self.n_groups)
            elif groups.shape != (n,):
                raise ArgumentError("groups", f"has shape {tuple(groups.shape)}", f"one a row: ({n},)")
            else:
                numbers = groups.long()
            self._kept = kept = _Layout(groups, numbers, self.n_groups, like.dtype)
        return kept if kept.complete else None

    def from_statistics(self, statistics: Tensor, present: Tensor | None = None) -> PairwiseValues:
        """Return the gaps between statistics (R,) of one's own making."""
        if statistics.shape != (self.n_groups,):
            raise ArgumentError("statistics", f"has shape {tuple(statistics.shape)}", f"({self.n_groups},)")
        return PairwiseValues(statistics, self.epsilon, self.scale, present)


# ---------------------------------------------------------------------------------------- norms, user's own


class NormBounds:
    """Equation 20: ``|W|_F <= bound`` for each parameter tensor, biases included.

    Parameters
    ----------
    parameters : iterable of tensor, or of (name, tensor)
        ``model.parameters()`` or ``model.named_parameters()``.  Frozen ones, which no step moves, are left out.
    bound : float, >= 0
        The bound.
    scale : float or "epsilon", default 1
        Values are divided by it; "epsilon" stands for the bound.
    """

    def __init__(
        self, parameters: Iterable[Tensor] | Iterable[tuple[str, Tensor]], *, bound: float = 2.0, scale: Scale = 1.0
    ) -> None:
        named = [
            item if isinstance(item, tuple) else (f"parameter {number}", item) for number, item in enumerate(parameters)
        ]
        named = [(name, tensor) for name, tensor in named if tensor.requires_grad]
        if not named:
            raise ArgumentError("parameters", "none requires a gradient", "at least one to bound")
        self._names = tuple(f"norm of {name}" for name, _ in named)
        self._tensors = [tensor for _, tensor in named]
        self.bound = _nonnegative("bound", bound)
        self.scale = _scale(scale, self.bound)

    @property
    def m(self) -> int:
        """Number of constraints: one a tensor."""
        return len(self._tensors)

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of the multipliers, (m,)."""
        return (self.m,)

    def names(self) -> tuple[str, ...]:
        """Return one name a constraint."""
        return self._names

    def __call__(self, *batch: object) -> Tensor:
        """Return the values (m,); the batch does not matter."""
        norms = torch.stack([torch.linalg.vector_norm(tensor) for tensor in self._tensors])
        return (norms - self.bound) / self.scale


class UserConstraints:
    """Constraints of one's own: a function that returns a tensor (m,), and their names.

    Parameters
    ----------
    function : callable
        Called with whatever the family is called with; returns g, (m,), to be <= 0.
    names : sequence of str
        One a constraint; m is their number.
    scale : float, > 0
        Values are divided by it.
    """

    def __init__(self, function: Callable[..., Tensor], names: Sequence[str], *, scale: float = 1.0) -> None:
        if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
            raise ArgumentError("names", f"are {names!r}", "one name a constraint")
        if len(set(names)) < len(names):
            raise ArgumentError("names", "hold one name twice", "one name a constraint")
        self._function, self._names = function, tuple(names)
        self.scale = _scale(scale, math.nan)

    @property
    def m(self) -> int:
        """Number of constraints."""
        return len(self._names)

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of the multipliers, (m,)."""
        return (self.m,)

    def names(self) -> tuple[str, ...]:
        """Return one name a constraint."""
        return self._names

    def __call__(self, *batch: object) -> Tensor:
        """Return the values (m,).

        Raises
        ------
        ArgumentError
            If the function returns another shape.
        """
        values = self._function(*batch)
        if not isinstance(values, Tensor) or values.shape != (self.m,):
            shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ArgumentError("function", f"returns {shape}", f"a tensor of shape ({self.m},): one value a name")
        return values if self.scale == 1.0 else values / self.scale


def equality(values: Tensor, tolerance: float, *, scale: Scale = 1.0) -> Tensor:
    """Return the two inequalities that stand for |h| <= tolerance: h - tolerance and -h - tolerance.

    Parameters
    ----------
    values : tensor of shape (k,)
        h, to be 0.
    tolerance : float, >= 0
        How far h may be from 0.
    scale : float or "epsilon", default 1
        Values are divided by it; "epsilon" stands for the tolerance.

    Returns
    -------
    tensor of shape (2 k,)
        All upper sides, then all lower sides.

    Raises
    ------
    ArgumentError
        For another shape or a negative tolerance.
    """
    if values.ndim != 1:
        raise ArgumentError("values", f"has shape {tuple(values.shape)}", "one number an equality: (k,)")
    tolerance = _nonnegative("tolerance", tolerance)
    return torch.cat((values - tolerance, -values - tolerance)) / _scale(scale, tolerance)


def _nonnegative(argument: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ArgumentError(argument, f"is {value!r}", "a finite number >= 0")
    return float(value)


def _scale(scale: object, epsilon: float) -> float:
    if scale == "epsilon":
        if not epsilon > 0:
            raise ArgumentError("scale", 'is "epsilon", and there is no bound above 0', "a number > 0")
        return epsilon
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not math.isfinite(scale) or scale <= 0:
        raise ArgumentError("scale", f"is {scale!r}", 'a number > 0, or "epsilon"')
    return float(scale)
