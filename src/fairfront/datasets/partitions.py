"""Rows as partitions on the workers of a Dask cluster: the engine's third source.

Each worker reads its own rows once and keeps them, sorted by group. What is computed from them comes back as sums over
groups; the rows themselves travel only where somebody asks for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairfront.datasets.blocks import MemoryRows, ParquetRows, RowSource
from fairfront.errors import ArgumentError, DataError

__all__ = ["DaskRows", "connect"]

Array = NDArray[np.float64]


def connect(scheduler: str | None = None, *, workers: int | None = None) -> Any:
    """Return a client of a Dask cluster.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler (Slurm, Kubernetes or any other); default: a cluster of processes on this
        machine, one thread each, which ends with the client.
    workers : int, optional
        Processes of that local cluster; default: as many as there are cores.

    Returns
    -------
    distributed.Client
        To be closed after use: ``with connect() as client``.

    Raises
    ------
    ArgumentError
        There is no scheduler at that address.
    """
    import distributed  # takes long to import

    if scheduler is None:
        options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
        return distributed.Client(n_workers=workers, **options)  # what goes wrong comes out as an error
    try:
        return distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ArgumentError("scheduler", f"no scheduler at {scheduler}: {error}", "as in tcp://10.0.0.1:8786") from None


class DaskRows(RowSource):
    """Rows in partitions that stay on the workers of a Dask cluster.

    In the order of the rows all of a group come first from the first partition, then from the second, and so on.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    parts : sequence of futures
        A `MemoryRows` each, all with the same groups and columns; a group may be without rows in one of them.

    Attributes
    ----------
    part_sizes : array of shape (P, S)
        Rows of each partition and group.
    """

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        import distributed

        self.client, self.parts = client, list(parts)
        distributed.wait(self.parts)
        held = client.who_has(self.parts)
        self._homes = [list(held.get(part.key, ())) for part in self.parts]
        described = self.map(_describe)
        groups = max(len(sizes) for sizes, _ in described)
        self.part_sizes = np.array([np.pad(sizes, (0, groups - len(sizes))) for sizes, _ in described], dtype=np.int64)
        columns = {d for _, d in described}
        if len(columns) != 1:
            raise DataError(f"partitions have different numbers of columns: {sorted(columns)}")
        sizes = self.part_sizes.sum(axis=0)
        if (sizes == 0).any():
            raise DataError(f"no rows in group {int(np.argmin(sizes))}")
        self._brought: Array | None = None
        super().__init__(np.empty(0), sizes, columns.pop())
        self._brought = None

    @classmethod
    def from_parquet(cls, client: Any, path: str | PathLike[str], *, parts: int | None = None) -> DaskRows:
        """Return the rows of a file that `convert` or `write_blocks` made, which every worker has to reach.

        Parameters
        ----------
        client : distributed.Client
            The cluster.
        path : path
            The file.
        parts : int, optional
            Number of partitions, at most one a row group of the file; default: two a worker.

        Raises
        ------
        ArgumentError
            `parts` is out of range.
        DataError
            The file cannot be read.
        """
        whole = ParquetRows(path)
        blocks = pq.ParquetFile(path).metadata.num_row_groups
        wanted = 2 * max(1, len(client.scheduler_info()["workers"])) if parts is None else parts
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise ArgumentError("parts", f"not a number of partitions: {parts!r}", "a whole number, at least 1")
        shares = np.array_split(np.arange(blocks), min(wanted, blocks))
        groups = len(whole.group_sizes)
        made = [client.submit(_read_part, str(path), share.tolist(), groups, pure=False) for share in shares]
        return cls(client, made)

    @classmethod
    def from_dask(cls, client: Any, frame: Any, *, label: str = "label", group: str = "group") -> DaskRows:
        """Return the rows of a Dask frame, whose partitions are turned where they lie.

        Parameters
        ----------
        client : distributed.Client
            The cluster.
        frame : dask.dataframe.DataFrame
            Numeric columns, the label and the group (0..S-1) among them.
        label, group : str
            The names of these two.

        Raises
        ------
        DataError
            A partition lacks a column or holds what is not a finite number.
        """
        missing = [name for name in (label, group) if name not in frame.columns]
        if missing:
            raise DataError(f"no column {', '.join(missing)} among {', '.join(map(str, frame.columns))}")
        groups = int(frame[group].max().compute(scheduler=client)) + 1
        delayed = list(client.compute(frame.to_delayed()))
        return cls(client, [client.submit(_turn, part, label, group, groups, pure=False) for part in delayed])

    def map(self, task: Callable[..., Any], *shared: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Run a task on every partition, where it lies, and return the results in order.

        Parameters
        ----------
        task : callable
            Gets a partition's `MemoryRows`, then the shared arguments, then its own one.
        *shared
            What every partition gets.
        each : sequence, optional
            One more argument for each partition.
        """
        own = [()] * len(self.parts) if each is None else [(item,) for item in each]
        futures = [
            self.client.submit(
                task, part, *shared, *more, pure=False, workers=home or None, allow_other_workers=bool(home)
            )
            for part, more, home in zip(self.parts, own, self._homes, strict=True)
        ]
        results: list[Any] = self.client.gather(futures)
        return results

    @property
    def y(self) -> Array:
        """Labels of the stored rows, shape (n,); brought here when first asked for."""
        if self._brought is None:
            self._brought = self.join(self.map(_labels))
        return self._brought

    @y.setter
    def y(self, labels: Array) -> None:
        self._brought = labels

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, d)."""
        return int(self.offsets[-1]), self.n_features

    def join(self, parts: Sequence[Array]) -> Array:
        """Return numbers a row, given partition by partition, in the order of the rows."""
        joined = np.empty(int(self.group_sizes.sum()))
        for piece, slices in zip(parts, self.places(), strict=True):
            for here, there in slices:
                joined[there] = piece[here]
        return joined

    def split(self, values: Array) -> list[Array]:
        """Return numbers a row, given in the order of the rows, partition by partition."""
        return [np.concatenate([values[there] for _, there in slices] or [np.empty(0)]) for slices in self.places()]

    def places(self) -> Iterator[list[tuple[slice, slice]]]:
        """Yield for each partition where its groups lie in it and among the rows."""
        before = self.offsets[:-1].copy()
        for sizes in self.part_sizes:
            ends = np.concatenate([[0], np.cumsum(sizes)])
            yield [
                (slice(low, high), slice(first, first + high - low))
                for low, high, first in zip(ends[:-1], ends[1:], before, strict=True)
                if high > low
            ]
            before += sizes

    def pieces(self) -> Iterator[tuple[int, Array]]:
        """Yield the stored rows in order; here they do travel."""
        for group in range(len(self.group_sizes)):
            first = int(self.offsets[group])
            for part, home, sizes in zip(self.parts, self._homes, self.part_sizes, strict=True):
                if sizes[group]:
                    low = int(sizes[:group].sum())
                    rows = slice(low, low + int(sizes[group]))
                    yield first, self.client.submit(_columns, part, rows, pure=False, workers=home or None).result()
                    first += int(sizes[group])

    def sample(self, step: int) -> MemoryRows:
        """Return every ``step``-th row of each group, its first among them, in memory; only these travel."""
        before = np.zeros_like(self.group_sizes)
        starts = []
        for sizes in self.part_sizes:
            starts.append((-before) % step)
            before = before + sizes
        drawn = self.map(_sampled, step, each=starts)
        Xt = np.concatenate([Xt for group in zip(*(parts for parts in drawn), strict=True) for Xt, _ in group], axis=1)
        y = np.concatenate([y for group in zip(*(parts for parts in drawn), strict=True) for _, y in group])
        return MemoryRows(Xt, y, -(-self.group_sizes // step))

    def _read(self, start: int, stop: int) -> Iterator[Array]:
        for first, X in self.pieces():
            if first < stop and start < first + X.shape[1]:
                yield X[:, max(start - first, 0) : stop - first]


# What runs on the workers


def _read_part(path: str, blocks: Sequence[int], groups: int) -> MemoryRows:
    table = pq.ParquetFile(path).read_row_groups(list(blocks), use_threads=False)
    return _rows(table.to_pandas(), "label", "group", groups)


def _turn(frame: Any, label: str, group: str, groups: int) -> MemoryRows:
    return _rows(frame, label, group, groups)


def _rows(frame: Any, label: str, group: str, groups: int) -> MemoryRows:
    ids = frame[group].to_numpy()
    if len(ids) and (ids.dtype.kind not in "iu" or ids.min() < 0):
        raise DataError(f"{group}: groups are not whole numbers from 0 on")
    order = np.argsort(ids, kind="stable")
    features = frame.drop(columns=[label, group])
    Xt = np.ascontiguousarray(features.to_numpy(dtype=np.float64)[order].T)
    y = frame[label].to_numpy(dtype=np.float64)[order]
    if not (np.isfinite(Xt).all() and np.isfinite(y).all()):
        raise DataError("a feature or a label is NaN or infinite")
    return MemoryRows(Xt, y, np.bincount(ids, minlength=groups).astype(np.int64))


def _describe(part: MemoryRows) -> tuple[NDArray[np.int64], int]:
    return part.group_sizes, part.n_features


def _labels(part: MemoryRows) -> Array:
    return part.y


def _columns(part: MemoryRows, rows: slice) -> Array:
    return part.Xt[:, rows]


def _sampled(part: MemoryRows, step: int, starts: NDArray[np.int64]) -> list[tuple[Array, Array]]:
    ends = zip(part.offsets[:-1], part.offsets[1:], starts, strict=True)
    return [(part.Xt[:, low + start : high : step], part.y[low + start : high : step]) for low, high, start in ends]
