"""Rows that do not fit in memory: from any source, lot by lot, to a Parquet file sorted by group, for the engine.

Two passes over the source: the first counts the cells of the sensitive attributes and sums what standardisation needs,
the second writes. What is held at a time is one lot of the source and one row group of the file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairfront.datasets import files, synthetic
from fairfront.datasets.encoding import INTERCEPT, one_hot
from fairfront.datasets.groups import merged, partition, rebin
from fairfront.datasets.registry import Attribute, DatasetInfo, info
from fairfront.datasets.sources import Table, acs
from fairfront.datasets.tables import table
from fairfront.errors import ArgumentError, DataError, OutputError

__all__ = ["Converted", "convert", "describe_file", "lots"]

LABEL, GROUP, KEY = "label", "group", b"fairfront"


@dataclass(frozen=True)
class Converted:
    """What a converted file holds; it is written into the file too.

    Attributes
    ----------
    name, target, notice : str
        Of the data set.
    rows : int
        Rows n.
    feature_names : tuple of str
        Columns (d); the first is "intercept".
    group_names : tuple of str
        Groups (S).
    group_sizes : tuple of int
        Rows of each group.
    sensitive : tuple of str
        The attributes whose intersections are the groups.
    synthetic : bool
        Whether no person stands behind the rows.
    """

    name: str
    target: str
    notice: str
    rows: int
    feature_names: tuple[str, ...]
    group_names: tuple[str, ...]
    group_sizes: tuple[int, ...]
    sensitive: tuple[str, ...]
    synthetic: bool


def lots(name: str) -> tuple[DatasetInfo, Callable[[], Iterator[Table]]]:
    """Return a data set's description and what yields its rows lot by lot, anew at every call.

    Parameters
    ----------
    name : str
        A data set of the registry, or "synthetic-TASK/ROWS" or "synthetic-TASK/ROWS/SEED" for SYNTHETIC rows in the
        shape of a task on the ACS, as in "synthetic-acs-income/3000000".

    Raises
    ------
    ArgumentError
        There is no such data set.
    """
    if name.startswith("synthetic-"):
        task, *words = name.removeprefix("synthetic-").split("/")
        described = synthetic.describe(task)
        if len(words) not in (1, 2) or not all(word.isdecimal() for word in words):
            raise ArgumentError("name", f"not synthetic-TASK/ROWS: {name!r}", f"as in synthetic-{task}/1000000")
        rows, seed = int(words[0]), int(words[1]) if len(words) == 2 else 0
        return described, lambda: synthetic.tables(rows, task, seed=seed)
    described = info(name)
    if described.survey is None:
        return described, lambda: iter([table(described)])
    return described, lambda: _states(described)


def convert(
    name: str,
    out: Path | str,
    *,
    sensitive: str | Sequence[str],
    groups: int | None = None,
    bins: Mapping[str, Iterable[float]] | None = None,
    keep_sensitive: bool = True,
    block_rows: int = 32768,
) -> Converted:
    """Write a data set to a Parquet file that `fairfront.datasets.blocks.ParquetRows` reads in blocks.

    Every row goes in, sorted by group, its columns standardised on all of them.

    Parameters
    ----------
    name : str
        As for `lots`.
    out : path
        The file to make, replaced at once or not at all.
    sensitive, groups, bins, keep_sensitive
        As for `load`.
    block_rows : int, default 32768
        Rows of a row group: what a pass of a solver holds in memory at once.

    Returns
    -------
    Converted

    Raises
    ------
    ArgumentError
        As for `load`; or a group has no rows.
    DataError
        As for `load`.
    OutputError
        The file cannot be written.
    """
    if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1:
        raise ArgumentError("block_rows", f"not a number of rows: {block_rows!r}", "a whole number, at least 1")
    described, source = lots(name)
    attributes = rebin(described.chosen(sensitive), bins)
    dropped = () if keep_sensitive else tuple(column for item in attributes for column in item.columns)
    found = _first_pass(source(), attributes, dropped)
    number, names = (np.arange(len(found.counts)), found.cells) if groups is None else found.merged(groups)
    sizes = np.bincount(number, weights=found.counts, minlength=len(names)).astype(np.int64)
    if (sizes == 0).any():
        empty = names[int(np.argmin(sizes))]
        raise ArgumentError(
            "sensitive", f"{described.name} has no rows in the group {empty!r}", "merge cells by groups="
        )
    kept = [column for column, scale in zip(found.columns, found.scales, strict=True) if scale > 0]
    result = Converted(
        name=name,
        target=described.target,
        notice=described.notice,
        rows=int(sizes.sum()),
        feature_names=(INTERCEPT, *kept),
        group_names=tuple(names),
        group_sizes=tuple(map(int, sizes)),
        sensitive=tuple(item.name for item in attributes),
        synthetic=name.startswith("synthetic-"),
    )
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".convert-") as folder:
            spills = [Path(folder) / f"{group}.rows" for group in range(len(names))]
            _second_pass(source(), attributes, dropped, found, number, spills)
            unfinished = Path(folder) / out.name
            _gather(spills, unfinished, result, block_rows)
            os.replace(unfinished, out)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}") from error
    return result


def describe_file(path: Path | str) -> Converted:
    """Return what a converted file says of itself.

    Raises
    ------
    DataError
        It is no file that `convert` made.
    """
    try:
        words: dict[str, Any] = json.loads((pq.read_schema(path).metadata or {})[KEY])
    except (OSError, pa.ArrowInvalid, KeyError, ValueError) as error:
        raise DataError(f"{path}: not a file that `fairfront data convert` made ({error})") from error
    values: dict[str, Any] = {key: tuple(word) if isinstance(word, list) else word for key, word in words.items()}
    return Converted(**values)


def _states(described: DatasetInfo) -> Iterator[Table]:
    assert described.survey is not None
    task = described.name.split("/")[0]
    for state, (path, digests) in zip(described.states, files.locate(described.file), strict=True):
        yield from acs.lots(files.verified(path, digests), int(described.survey.states[state]), task)


@dataclass(frozen=True, eq=False)
class _Found:
    columns: list[str]
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    cells: tuple[str, ...]
    counts: NDArray[np.int64]

    def merged(self, groups: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        return merged(self.counts, self.cells, groups)


def _first_pass(source: Iterable[Table], attributes: Sequence[Attribute], dropped: Sequence[str]) -> _Found:
    columns: list[str] = []
    cells: tuple[str, ...] = ()
    counts = np.zeros(0, dtype=np.int64)
    rows, labels = 0, set()
    for lot in source:
        encoded = _encoded(lot, dropped)
        values = _numbers(encoded).T
        if not rows:
            columns = list(map(str, encoded.columns))
            shift = np.nan_to_num(np.nanmean(values, axis=1))
            known, sums, squares = (np.zeros(len(columns)) for _ in range(3))
        away = values - shift[:, None]
        gaps = np.isnan(away)
        away[gaps] = 0.0
        known += (~gaps).sum(axis=1)
        sums += away.sum(axis=1)
        squares += np.square(away).sum(axis=1)
        parts = partition(lot.attributes, attributes)
        counts = parts.sizes + (counts if len(counts) else 0)
        cells = parts.names
        rows += len(lot.target)
        labels.update(np.unique(lot.target)[:3].tolist())
    if not rows:
        raise ArgumentError("name", "the data set has no rows")
    if len(labels) < 2:
        raise ArgumentError("target", f"every row is {labels.pop():g}", "nothing is to be learnt")
    means = sums / np.maximum(known, 1)
    # Gaps are filled by the mean: they count among the rows, with no distance to it.
    variances = np.maximum(squares - known * np.square(means), 0) / rows
    scales = np.sqrt(np.where(variances > 1e-12 * np.maximum(squares / rows, 1e-300), variances, 0.0))
    return _Found(columns, shift + means, scales, cells, counts)


def _second_pass(
    source: Iterable[Table],
    attributes: Sequence[Attribute],
    dropped: Sequence[str],
    found: _Found,
    number: NDArray[np.int64],
    spills: Sequence[Path],
) -> None:
    kept = found.scales > 0
    with ExitStack() as stack:
        sinks: list[IO[bytes]] = [stack.enter_context(path.open("wb")) for path in spills]
        for lot in source:
            values = (_numbers(_encoded(lot, dropped))[:, kept] - found.means[kept]) / found.scales[kept]
            values[np.isnan(values)] = 0.0
            rows = np.column_stack([np.ones(len(values)), values, lot.target])
            groups = number[partition(lot.attributes, attributes).ids]
            for group in np.unique(groups):
                rows[groups == group].tofile(sinks[group])


def _gather(spills: Sequence[Path], out: Path, result: Converted, block_rows: int) -> None:
    width = len(result.feature_names) + 1
    fields = [*((name, pa.float64()) for name in (*result.feature_names, LABEL)), (GROUP, pa.int64())]
    schema = pa.schema(fields, metadata={KEY: json.dumps(asdict(result), ensure_ascii=False).encode()})
    with (
        ExitStack() as stack,
        pq.ParquetWriter(out, schema, compression="none", use_dictionary=False, write_statistics=False) as writer,
    ):
        sources = [(group, stack.enter_context(path.open("rb"))) for group, path in enumerate(spills)]
        waiting: list[tuple[int, NDArray[np.float64]]] = []
        have = 0
        for group, source in sources:
            while len(rows := np.fromfile(source, count=(block_rows - have) * width).reshape(-1, width)):
                waiting.append((group, rows))
                have += len(rows)
                if have == block_rows:
                    _write(writer, schema, waiting)
                    waiting, have = [], 0
        if waiting:
            _write(writer, schema, waiting)


def _write(writer: Any, schema: Any, waiting: Sequence[tuple[int, NDArray[np.float64]]]) -> None:
    rows = np.concatenate([rows for _, rows in waiting])
    groups = np.concatenate([np.full(len(rows), group) for group, rows in waiting])
    columns = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
    writer.write_table(pa.table([*columns, pa.array(groups)], schema=schema), row_group_size=len(rows))


def _encoded(lot: Table, dropped: Sequence[str]) -> pd.DataFrame:
    features = lot.features.drop(columns=list(dropped))
    # A source of several lots has numbers alone, so that no lot lacks a value that another has.
    return one_hot(features) if features.select_dtypes(exclude=["number", "bool"]).shape[1] else features


def _numbers(encoded: pd.DataFrame) -> NDArray[np.float64]:
    return encoded.to_numpy(dtype=np.float64, na_value=np.nan)
