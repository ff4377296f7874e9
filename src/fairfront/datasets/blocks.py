"""Rows in blocks: one interface for rows in memory and rows in a Parquet file, both sorted by group.

Everything that the bilevel half computes from rows is a sum over them (gradients, Hessians) or a number for each of
them (scores).  So a source of rows only has to hand them out in blocks, features as rows of a (d, m) array, and say
where in a block each group is; rows that live elsewhere, as partitions on Dask workers, need only another
`RowSource.reduce`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from os import PathLike
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairfront.errors import ArgumentError, DataError, OutputError
from fairfront.scratch import Scratch

__all__ = ["Block", "MemoryRows", "ParquetRows", "Reducible", "RowSource", "write_blocks"]

Array = NDArray[np.float64]

# Measured at 17 columns: matrix-vector products are fastest in blocks of a megabyte, which fill a core's second-level
# cache and make few calls.
_BLOCK_BYTES = 1 << 20
_LABEL, _GROUP = "label", "group"


class Block(NamedTuple):
    """Some consecutive rows.

    Attributes
    ----------
    rows : slice
        Which of the source's stored rows these are.
    X : array of shape (d, m)
        Features as rows.
    y : array of shape (m,)
        Labels.
    groups : list of (int, slice)
        Each group that has rows here, and which of the block's rows they are.
    """

    rows: slice
    X: Array
    y: Array
    groups: list[tuple[int, slice]]


class Reducible(Protocol):
    """A result for some rows that can be joined with the result for the rows that follow them."""

    def merge(self, other: Self, /) -> Self:
        """Return the result for both."""


R = TypeVar("R", bound=Reducible)


class RowSource(ABC):
    """Rows sorted by group.

    Attributes
    ----------
    y : array of shape (n,)
        Labels, in memory.
    group_sizes : array of shape (S,)
        Rows of each group, all at least 1.
    offsets : array of shape (S + 1,)
        Where each group begins, and n.
    n_features : int
        Columns d.
    passes : int
        How often all rows were gone over by `reduce` so far.
    scratch : Scratch
        Vectors of length n for numbers a row.
    """

    def __init__(self, y: Array, group_sizes: NDArray[np.int64], n_features: int) -> None:
        self.y, self.group_sizes, self.n_features = y, group_sizes, n_features
        self.offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(group_sizes)]).astype(np.int64)
        self.passes = 0
        self.scratch = Scratch()
        self._step = int(np.clip(_BLOCK_BYTES // (8 * n_features), 64, 8192))
        self._spans: dict[tuple[int, int], list[tuple[slice, slice, list[tuple[int, slice]]]]] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns (n, d)."""
        return len(self.y), self.n_features

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, Array]]:
        """Yield the stored rows in order, as (first row, (d, m) array), in pieces that fit in memory."""

    def blocks(self) -> Iterator[Block]:
        """Yield every row once, in order, in blocks that fit a core's cache."""
        for first, X in self.pieces():
            for rows, within, groups in self._divided(first, first + X.shape[1]):
                yield Block(rows, X[:, within], self.y[rows], groups)

    def block(self) -> Array:
        """Return an array that a block's features fit into, shape (d, m)."""
        return np.empty((self.n_features, min(self._step, len(self.y))))

    def _divided(self, first: int, last: int) -> list[tuple[slice, slice, list[tuple[int, slice]]]]:
        """Return the blocks of a piece: which rows, where in the piece, and where each group is. Found once."""
        if (first, last) not in self._spans:
            spans = []
            for i in range(first, last, self._step):
                j = min(i + self._step, last)
                begin, end = np.searchsorted(self.offsets, i, side="right") - 1, np.searchsorted(self.offsets, j)
                bounds = [
                    (int(a), int(max(i, self.offsets[a])), int(min(j, self.offsets[a + 1]))) for a in range(begin, end)
                ]
                groups = [(a, slice(low - i, high - i)) for a, low, high in bounds if low < high]
                spans.append((slice(i, j), slice(i - first, j - first), groups))
            self._spans[first, last] = spans
        return self._spans[first, last]

    def reduce(self, task: Callable[[RowSource], R]) -> R:
        """Return ``task`` of all rows.

        Here that is one call.  A source with its rows elsewhere sends ``task`` to each of its parts, a `RowSource` of
        its own with the same groups, and merges the results in the order of the rows.
        """
        self.passes += 1
        return task(self)

    def sample(self, step: int) -> MemoryRows:
        """Return every ``step``-th row of each group, its first among them, in memory."""
        chosen = np.concatenate([np.arange(i, j, step) for i, j in zip(self.offsets[:-1], self.offsets[1:])])
        Xt = np.empty((self.n_features, len(chosen)))
        for first, X in self.pieces():
            low, high = np.searchsorted(chosen, (first, first + X.shape[1]))
            Xt[:, low:high] = X[:, chosen[low:high] - first]
        return MemoryRows(Xt, self.y[chosen], -(-self.group_sizes // step))

    def __getitem__(self, rows: slice) -> Array:
        """Return some stored rows, shape (m, d)."""
        start, stop, stride = rows.indices(len(self.y))
        if stride != 1:
            raise ArgumentError("rows", "must be a slice without a stride")
        return np.concatenate([piece.T for piece in self._read(start, stop)] or [np.empty((0, self.n_features))])

    @abstractmethod
    def _read(self, start: int, stop: int) -> Iterator[Array]:
        """Yield the stored rows start..stop as (d, m) arrays."""


class MemoryRows(RowSource):
    """Rows in one (d, n) array.

    Parameters
    ----------
    Xt : array of shape (d, n)
        Features as rows, columns sorted by group.
    y : array of shape (n,)
        Labels.
    group_sizes : array of shape (S,)
        Rows of each group.
    """

    def __init__(self, Xt: Array, y: Array, group_sizes: NDArray[np.int64]) -> None:
        super().__init__(y, group_sizes, Xt.shape[0])
        self.Xt = Xt
        self._blocks: list[Block] = []

    def __reduce__(self) -> tuple[type[MemoryRows], tuple[Array, Array, NDArray[np.int64]]]:
        return MemoryRows, (self.Xt, self.y, self.group_sizes)

    def blocks(self) -> Iterator[Block]:
        """Yield every row once, in order; the blocks are views, made once."""
        if not self._blocks:
            self._blocks = list(super().blocks())
        return iter(self._blocks)

    def pieces(self) -> Iterator[tuple[int, Array]]:
        """Yield the whole array."""
        yield 0, self.Xt

    def sample(self, step: int) -> MemoryRows:
        """Return every ``step``-th row of each group."""
        parts = [self.Xt[:, i:j:step] for i, j in zip(self.offsets[:-1], self.offsets[1:])]
        labels = [self.y[i:j:step] for i, j in zip(self.offsets[:-1], self.offsets[1:])]
        return MemoryRows(np.concatenate(parts, axis=1), np.concatenate(labels), -(-self.group_sizes // step))

    def __getitem__(self, rows: slice) -> Array:
        """Return some stored rows, shape (m, d), without a copy."""
        return self.Xt[:, rows].T

    def _read(self, start: int, stop: int) -> Iterator[Array]:
        yield self.Xt[:, start:stop]


class ParquetRows(RowSource):
    """Rows of a Parquet file that `write_blocks` made, read one row group at a time at every pass.

    Parameters
    ----------
    path : path
        The file: columns "label" and "group" and one column a feature; rows sorted by group.

    Raises
    ------
    DataError
        If there is no such file, it is no Parquet file, lacks a column, is not sorted by group, has a group without
        rows, or holds values that are not finite numbers.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path, memory_map=False, pre_buffer=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{path}: cannot be read as a Parquet file ({error})") from None
        names = self._file.schema_arrow.names
        missing = [name for name in (_LABEL, _GROUP) if name not in names]
        if missing:
            raise DataError(f"{path}: no column {' and no column '.join(missing)}; write the file with write_blocks")
        self.feature_names = tuple(name for name in names if name not in (_LABEL, _GROUP))
        y, sizes = self._labels_and_sizes()
        super().__init__(y, sizes, len(self.feature_names))
        metadata = self._file.metadata
        rows = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        self._kept: tuple[int, Array] | None = None
        for first, X in self.pieces():
            if not np.isfinite(X).all():
                raise DataError(f"{path}: a feature is NaN or infinite in rows {first}..{first + X.shape[1] - 1}")

    def _labels_and_sizes(self) -> tuple[Array, NDArray[np.int64]]:
        labels, sizes, last = [], np.zeros(0, dtype=np.int64), 0
        for k in range(self._file.metadata.num_row_groups):
            table = self._file.read_row_group(k, columns=[_LABEL, _GROUP], use_threads=False)
            labels.append(table[_LABEL].to_numpy().astype(np.float64))
            groups = table[_GROUP].to_numpy()
            if len(groups) and (groups.dtype.kind not in "iu" or groups[0] < last or (np.diff(groups) < 0).any()):
                raise DataError(f"{self.path}: rows are not sorted by group 0..S-1; write the file with write_blocks")
            last = int(groups[-1]) if len(groups) else last
            counts = np.bincount(groups, minlength=len(sizes))
            counts[: len(sizes)] += sizes
            sizes = counts.astype(np.int64)
        y = np.concatenate(labels) if labels else np.empty(0)
        if not len(y) or (sizes == 0).any():
            raise DataError(f"{self.path}: no rows, or a group without rows")
        if not np.isfinite(y).all():
            raise DataError(f"{self.path}: a label is NaN or infinite")
        return y, sizes

    def pieces(self) -> Iterator[tuple[int, Array]]:
        """Yield the file's row groups."""
        # One buffer for all row groups: the table that was read is dropped before the next one comes.
        buffer = np.empty((self.n_features, int(np.diff(self._starts).max())))
        for k, first in enumerate(self._starts[:-1]):
            yield int(first), self._row_group(k, buffer)

    def _row_group(self, k: int, buffer: Array) -> Array:
        table = self._file.read_row_group(k, columns=list(self.feature_names), use_threads=False)
        X = buffer[:, : table.num_rows]
        for row, column in zip(X, table.columns):
            row[:] = column.to_numpy() if column.num_chunks != 1 else column.chunk(0).to_numpy(zero_copy_only=False)
        return X

    def _read(self, start: int, stop: int) -> Iterator[Array]:
        for k, (first, last) in enumerate(zip(self._starts[:-1], self._starts[1:])):
            if first < stop and start < last:
                if self._kept is None or self._kept[0] != k:  # metrics ask for one slice after the other
                    self._kept = k, self._row_group(k, np.empty((self.n_features, int(last - first))))
                yield self._kept[1][:, max(start - first, 0) : stop - first]


def write_blocks(
    path: str | PathLike[str],
    X: Array,
    y: Array,
    groups: NDArray[np.int64],
    *,
    feature_names: tuple[str, ...] | None = None,
    block_rows: int = 32768,
) -> None:
    """Write rows, sorted by group, to a Parquet file for `ParquetRows`.

    Values are stored plainly (no compression, no dictionary): each pass of a solver decodes the file anew.

    Parameters
    ----------
    path : path
        The file to make; an existing one is replaced.
    X : array of shape (n, d)
        Features.
    y : array of shape (n,)
        Labels, numbers.
    groups : array of shape (n,)
        Group of each row, 0..S-1.
    feature_names : tuple of str, optional
        Names of the columns; default x0, x1, ...
    block_rows : int, default 32768
        Rows of a row group: what a pass holds in memory at once.

    Raises
    ------
    ArgumentError
        For shapes that do not match, or names that are not d different ones or clash with "label" and "group".
    OutputError
        If the file cannot be written.
    """
    n, d = np.shape(X)
    names = feature_names or tuple(f"x{k}" for k in range(d))
    if np.shape(y) != (n,) or np.shape(groups) != (n,):
        raise ArgumentError("y" if np.shape(y) != (n,) else "groups", f"must have shape ({n},) like the rows of X")
    if len(set(names)) != d or {_LABEL, _GROUP} & set(names):
        raise ArgumentError("feature_names", f"must be {d} different names, none of them {_LABEL} or {_GROUP}")
    if block_rows < 1:
        raise ArgumentError("block_rows", f"must be at least 1, got {block_rows}")
    order = np.argsort(groups, kind="stable")
    fields = [(name, pa.float64()) for name in (*names, _LABEL)]
    schema = pa.schema([*fields, (_GROUP, pa.int64())])
    try:
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False, write_statistics=False) as writer:
            for start in range(0, n, block_rows):
                rows = order[start : start + block_rows]
                columns = [pa.array(column) for column in np.asarray(X[rows], dtype=np.float64).T.copy()]
                labels = pa.array(np.asarray(y[rows], dtype=np.float64))
                table = pa.table([*columns, labels, pa.array(np.asarray(groups[rows], dtype=np.int64))], schema=schema)
                writer.write_table(table, row_group_size=block_rows)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error})") from None
