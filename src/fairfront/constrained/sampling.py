"""Group-balanced batches as rows of one index matrix an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from fairfront.errors import ArgumentError, unknown_name

__all__ = ["EpochLength", "GroupSampler", "Objective", "feed", "seeded"]

EpochLength: TypeAlias = Literal["cover", "rows", "smallest"] | int
Objective: TypeAlias = Literal["population", "balanced"]

_EPOCHS = ("cover", "rows", "smallest")
_OBJECTIVES = ("population", "balanced")
_GATHERED_BYTES = 2**20  # of one gather of several batches: past the fixed cost of a call, within a core's cache


class GroupSampler:
    """Batches with a fixed number of rows of every group.

    Each group is an endless stream: one shuffle of all its rows after another.  A batch takes the next b_r rows of the
    stream of group r, so no row comes a second time before every other row of its group came, wherever an epoch ends;
    the rows that an epoch leaves over come first in the next one.  Groups of unequal size, groups smaller than b_r (a
    single row is repeated) and batch sizes that the number of groups does not divide are all in order.

    Parameters
    ----------
    groups : array of int, shape (n,)
        The group of each row, 0..R-1.
    batch_size : int
        Rows in a batch, B >= R.  Every group gives B // R of them, the B % R largest groups one more.
    generator : torch.Generator
        A generator on the CPU: the batches do not depend on the device.
    n_groups : int, optional
        R; by default the largest number in `groups` plus one.
    epoch : {"cover", "rows", "smallest"} or int, default "cover"
        Batches in an epoch.  "cover": as many as it takes to meet every row, max_r ceil(n_r / b_r); "rows":
        ceil(n / B); "smallest": as many as the smallest group fills, min_r floor(n_r / b_r) (at least 1), as the
        authors do.
    device : torch.device or str, optional
        Where the index matrices go; by default the CPU.

    Attributes
    ----------
    n_rows, n_groups, batch_size, steps : int
        n, R, B and the number of batches in an epoch.
    group_sizes, per_group : Tensor of int64, shape (R,)
        n_r and b_r.
    batch_groups : Tensor of int64, shape (B,)
        The group of each place in a batch, ascending, the same for all batches.

    Raises
    ------
    ArgumentError
        When a group has no row, the batch is smaller than the number of groups, or another argument is out of range.
    """

    def __init__(
        self,
        groups: Any,
        batch_size: int,
        *,
        generator: torch.Generator,
        n_groups: int | None = None,
        epoch: EpochLength = "cover",
        device: torch.device | str | None = None,
    ) -> None:
        numbers = _checked_groups(groups)
        sizes = _checked_sizes(numbers, n_groups)
        n_rows, n_groups = len(numbers), len(sizes)
        if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer):
            raise ArgumentError("batch_size", f"is {batch_size!r}", "a whole number of rows")
        if batch_size < n_groups:
            problem = f"{batch_size} rows cannot hold one of each of the {n_groups} groups"
            raise ArgumentError("batch_size", problem, f"at least {n_groups}")
        if not isinstance(generator, torch.Generator) or generator.device.type != "cpu":
            raise ArgumentError("generator", f"is {generator!r}", "a torch.Generator on the CPU")
        self.generator = generator
        self.device = torch.device("cpu" if device is None else device)
        self.n_rows, self.n_groups, self.batch_size = n_rows, n_groups, int(batch_size)
        largest_first = np.argsort(-sizes, kind="stable")
        per_group = np.full(n_groups, batch_size // n_groups)
        per_group[largest_first[: batch_size % n_groups]] += 1
        self.steps = _epoch_length(epoch, sizes, per_group)
        self.group_sizes, self.per_group = torch.from_numpy(sizes), torch.from_numpy(per_group)
        self.batch_groups = torch.arange(n_groups).repeat_interleave(self.per_group).to(self.device)
        by_group = torch.from_numpy(np.argsort(numbers, kind="stable"))
        self._members = by_group.split(sizes.tolist())
        self._left_over: tuple[Tensor, ...] = tuple(rows[:0] for rows in self._members)

    def epoch(self) -> Tensor:
        """Draw the next epoch.

        Returns
        -------
        Tensor of int64, shape (steps, B)
            Row numbers, a batch a row, each sorted by group as `batch_groups` says.
        """
        columns, left_over = [], []
        streams = zip(self._members, self._left_over, self.per_group.tolist())
        for members, left, rows in streams:
            needed = self.steps * rows
            shuffles = -(-max(needed - len(left), 0) // len(members))
            if shuffles:
                left = torch.cat((left, _shuffles(members, shuffles, self.generator)))
            columns.append(left[:needed].view(self.steps, rows))
            # A copy: a view would keep the whole stream of the epoch alive, and a checkpoint would write it.
            left_over.append(left[needed:].clone())
        self._left_over = tuple(left_over)
        return torch.cat(columns, 1).to(self.device)

    def weights(self, objective: Objective = "population", dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the weight of each place of a batch in the objective.

        Parameters
        ----------
        objective : {"population", "balanced"}, default "population"
            "population": (n_r / n) / b_r, which makes the weighted sum an unbiased estimate of the mean over all rows
            (the paper's note 7, for any b_r).  "balanced": 1 / B, the paper's own objective, whose expectation is a
            mean over groups instead.
        dtype : torch.dtype, default float32
            Of the result.

        Returns
        -------
        Tensor of shape (B,)
            Positive, with sum 1.
        """
        if objective not in _OBJECTIVES:
            raise unknown_name("objective", objective, _OBJECTIVES)
        if objective == "balanced":
            return torch.full((self.batch_size,), 1.0 / self.batch_size, dtype=dtype, device=self.device)
        share = self.group_sizes.double() / (self.n_rows * self.per_group)
        return share.repeat_interleave(self.per_group).to(self.device, dtype)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of what the next epochs depend on: the generator's state and the rows left over."""
        return {"generator": self.generator.get_state(), "left_over": [rows.clone() for rows in self._left_over]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a sampler of the same rows, batch size and epoch was.

        Raises
        ------
        ArgumentError
            When the state is that of another set of groups.
        """
        left_over = state["left_over"]
        fits = len(left_over) == self.n_groups and all(
            bool(torch.isin(rows, members).all()) for rows, members in zip(left_over, self._members)
        )
        if not fits:
            raise ArgumentError("state", "is of a sampler of other groups", "resume with the same rows and groups")
        self.generator.set_state(state["generator"])
        self._left_over = tuple(rows.clone() for rows in left_over)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        return self.steps

    def __iter__(self) -> Iterator[Tensor]:
        """Draw an epoch and yield its batches, index tensors of shape (B,)."""
        return iter(self.epoch().unbind(0))


def seeded(seed: int) -> torch.Generator:
    """Return a generator on the CPU.

    Raises
    ------
    ArgumentError
        When the seed is no whole number >= 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError("seed", f"is {seed!r}", "a whole number >= 0")
    return torch.Generator().manual_seed(int(seed))


def feed(batches: Tensor, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the rows of some tensors batch by batch.

    Several batches are gathered by one call, and each is a view of what was gathered.

    Parameters
    ----------
    batches : Tensor of int64, shape (steps, B)
        Row numbers, as `GroupSampler.epoch` gives them.
    *tensors : Tensor of shape (n, ...)
        What to gather, on the device of `batches`.

    Yields
    ------
    tuple of Tensor
        For each tensor its rows of the batch, shape (B, ...).
    """
    batch_bytes = batches.shape[1] * sum(t[:1].numel() * t.element_size() for t in tensors)
    for several in batches.split(max(1, _GATHERED_BYTES // max(batch_bytes, 1))):
        rows = several.flatten()
        gathered = (t.index_select(0, rows).view(*several.shape, *t.shape[1:]).unbind(0) for t in tensors)
        yield from zip(*gathered)


def _shuffles(members: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Return `count` shuffles of the members, one after another."""
    if count == 1:
        return members[torch.randperm(len(members), generator=generator)]
    # Sorting random keys shuffles all at once: a group of one row takes thousands of shuffles an epoch.
    keys = torch.rand(count, len(members), generator=generator, dtype=torch.float64)
    return members[keys.argsort(1)].flatten()


def _checked_groups(groups: Any) -> np.ndarray:
    """Return (n,) int64 group numbers."""
    numbers = np.asarray(groups.cpu() if isinstance(groups, Tensor) else groups)
    if numbers.ndim != 1 or not numbers.size:
        raise ArgumentError("groups", f"has shape {numbers.shape}", "one group a row: shape (n,), n >= 1")
    if numbers.dtype.kind not in "iub":
        raise ArgumentError("groups", f"has type {numbers.dtype}", "integers 0..R-1")
    return numbers.astype(np.int64, copy=False)


def _checked_sizes(numbers: np.ndarray, n_groups: int | None) -> np.ndarray:
    """Return the size of each group, (R,) int64, none of them 0."""
    low, high = int(numbers.min()), int(numbers.max())
    n_groups = high + 1 if n_groups is None else n_groups
    if low < 0 or high >= n_groups:
        raise ArgumentError("groups", f"runs from {low} to {high}", f"0 to {n_groups - 1} for {n_groups} groups")
    # One table entry a group: refuse a stray huge number before it asks for memory.
    if n_groups > len(numbers):
        raise ArgumentError("groups", f"{n_groups} groups in {len(numbers)} rows", "number the groups 0..R-1")
    sizes = np.bincount(numbers, minlength=n_groups)
    empty = np.flatnonzero(sizes == 0)
    if empty.size:
        listed = ", ".join(map(str, empty[:5])) + (" ..." if empty.size > 5 else "")
        raise ArgumentError("groups", f"no row in group {listed}", "drop the groups that never occur and renumber")
    return sizes


def _epoch_length(epoch: EpochLength, sizes: np.ndarray, per_group: np.ndarray) -> int:
    """Return the number of batches in an epoch."""
    if isinstance(epoch, str):
        lengths = {
            "cover": int((-(-sizes // per_group)).max()),
            "rows": int(-(-sizes.sum() // per_group.sum())),
            "smallest": max(1, int((sizes // per_group).min())),
        }
        if epoch not in lengths:
            raise unknown_name("epoch", epoch, _EPOCHS)
        return lengths[epoch]
    if isinstance(epoch, bool) or not isinstance(epoch, int | np.integer) or epoch < 1:
        raise ArgumentError("epoch", f"is {epoch!r}", f"a number of batches or one of {', '.join(_EPOCHS)}")
    return int(epoch)
