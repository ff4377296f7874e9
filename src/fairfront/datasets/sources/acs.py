"""American Community Survey, person files (PUMS): the tasks of folktables [1]_, by its own definitions.

Its downloader and its reader are not used: here a file is checked before it is read, and read in blocks of rows, so
that only the columns and the rows of the task are ever in memory.

References
----------
.. [1] Ding, F., Hardt, M., Miller, J. and Schmidt, L. (2021). Retiring Adult: new datasets for fair machine learning.
   Advances in Neural Information Processing Systems 34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from fairfront.datasets.sources.base import Table
from fairfront.errors import DataError

__all__ = ["PROBLEMS", "attributes", "columns", "features", "lots", "read_persons", "select", "table"]

#: Task -> name of its definition in folktables.
PROBLEMS: Mapping[str, str] = {
    "acs-employment": "ACSEmployment",
    "acs-income": "ACSIncome",
    "acs-travel-time": "ACSTravelTime",
}
# What the filters of the definitions look at, beyond features and target, and the state, which says that a file is the
# one that was asked for.
STATE = "ST"
FILTERS = {"acs-employment": (STATE,), "acs-income": ("PWGTP", STATE), "acs-travel-time": ("PWGTP", "ESR")}
# Columns of the sensitive attributes, all of them features of every task.
LEVELS: Mapping[str, Mapping[int, str]] = {
    "SEX": {1: "male", 2: "female"},
    "RAC1P": {
        1: "White",
        2: "Black",
        3: "American Indian",
        4: "Alaska Native",
        5: "American Indian or Alaska Native, other",
        6: "Asian",
        7: "Pacific Islander",
        8: "other race",
        9: "two or more races",
    },
    "MAR": {1: "married", 2: "no longer married", 3: "no longer married", 4: "no longer married", 5: "never married"},
    "DIS": {1: "disability", 2: "no disability"},
}
ATTRIBUTES = {"gender": "SEX", "race": "RAC1P", "marital": "MAR", "disability": "DIS"}
# From 2019 on the relationship to the householder has another name and other codes.
RELATION, NEW_RELATION = "RELP", "RELSHIPP"
NEW_CODES = {
    **{20: 0, 21: 1, 22: 13, 23: 1, 24: 13, 25: 2, 26: 3, 27: 4, 28: 5, 29: 6},
    **{30: 7, 31: 8, 32: 9, 33: 10, 34: 12, 35: 14, 36: 15, 37: 16, 38: 17},
}
# Some early files pad with blanks; numbers are trimmed by the reader, an empty cell is a missing value.
BLANKS = ["", *(" " * width for width in range(1, 9))]
BLOCK_BYTES = 1 << 19
FRAME_ROWS = 1 << 15


def columns(task: str) -> tuple[str, ...]:
    """Return the columns of a person file that a task needs."""
    problem = _problem(task)
    return tuple(dict.fromkeys([*problem.features, problem.target, *FILTERS[task]]))


def features(task: str) -> list[str]:
    """Return the features of a task, in the order of their columns."""
    return list(_problem(task).features)


def read_persons(path: Path, task: str) -> Iterator[pd.DataFrame]:
    """Yield the columns of a task from a person file in blocks of rows, as float32 (every code fits exactly).

    Raises
    ------
    DataError
        It is no CSV file, lacks a column, or holds a word where a number has to be.
    """
    needed = columns(task)
    header = _header(path)
    missing = [name for name in needed if name not in header and not (name == RELATION and NEW_RELATION in header)]
    if missing:
        what = "it is an HTML page, not a CSV file" if header[0].lower().startswith(("<!doctype", "<html")) else ""
        problem = what or f"no column {', '.join(missing)}; {task} needs {', '.join(needed)}"
        raise DataError(f"{path}: {problem}")
    asked = [NEW_RELATION if name == RELATION and RELATION not in header else name for name in needed]
    convert = pa.csv.ConvertOptions(
        include_columns=asked, column_types={name: pa.float32() for name in asked}, null_values=BLANKS
    )
    try:
        with pa.csv.open_csv(path, pa.csv.ReadOptions(block_size=BLOCK_BYTES), convert_options=convert) as reader:
            for batches in _gathered(reader):
                values = map(_numbers, pa.Table.from_batches(batches).columns)
                yield _relation(path, pd.DataFrame(dict(zip(asked, values, strict=True))))
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: cannot be read as a person file: {error}") from error


def select(frame: pd.DataFrame, task: str) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the features and the labels of a task's rows, by the definition of folktables.

    A missing value becomes 0: the definitions call numpy's `nan_to_num` with -1 in the place of its argument `copy`.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of a person file, with the task's columns.
    task : str
        One of `PROBLEMS`.

    Returns
    -------
    features : ndarray of float32, shape (m, k)
    labels : ndarray of float64, shape (m,)
    """
    values, labels, _ = _problem(task).df_to_numpy(frame)
    return values.astype(np.float32, copy=False), labels.astype(np.float64)


def table(states: Mapping[int, Path], task: str) -> Table:
    """Return a task's rows of one or more states, in their order.

    Parameters
    ----------
    states : mapping of int to Path
        Number of a state -> its person file.
    task : str
        One of `PROBLEMS`.

    Raises
    ------
    DataError
        A file cannot be read or is that of another state, or none has a row of the task, or a sensitive column holds an
        unknown code.
    """
    blocks, labels = [], []
    for number, path in states.items():
        for block, label in _selected(path, number, task):
            blocks.append(block)
            labels.append(label)
    rows = sum(map(len, blocks))
    if not rows:
        raise DataError(f"{', '.join(map(str, states.values()))}: not one row of {task}")
    names = features(task)
    # Feature by feature, each in one piece: a block is let go as soon as it is copied.
    values = np.empty((len(names), rows), dtype=np.float32)
    start = 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        values[:, start : start + len(block)] = block.T
        start += len(block)
    # An array on its own for each column, in one piece with the others: pandas neither copies nor joins them.
    frame = pd.DataFrame({name: pd.Series(column, copy=False) for name, column in zip(names, values, strict=True)})
    return Table(features=frame, target=np.concatenate(labels), attributes=attributes(frame))


def lots(path: Path, state: int, task: str) -> Iterator[Table]:
    """Yield a task's rows of one state lot by lot, as `table` has them all.

    Raises
    ------
    DataError
        As for `table`.
    """
    for block, label in _selected(path, state, task):
        frame = pd.DataFrame(block, columns=features(task))
        yield Table(features=frame, target=label, attributes=attributes(frame))


def _selected(path: Path, state: int, task: str) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float64]]]:
    for frame in read_persons(path, task):
        if (frame[STATE] != state).any():
            raise DataError(f"{path}: holds persons of another state than number {state}")
        block, label = select(frame, task)
        if len(label):
            yield block, label


def attributes(features: pd.DataFrame) -> pd.DataFrame:
    """Return the sensitive attributes of a task's rows.

    Raises
    ------
    DataError
        A column holds an unknown code.
    """
    named = {name: _levels(features[column], column) for name, column in ATTRIBUTES.items() if column in features}
    return pd.DataFrame({**named, "age": features["AGEP"]})


def _levels(codes: pd.Series, column: str) -> pd.Categorical[str]:
    known = LEVELS[column]
    values = codes.to_numpy()
    numbers = values.astype(np.int64)
    levels = list(dict.fromkeys(known.values()))
    positions = np.full(max(known) + 2, -1, dtype=np.int64)
    positions[list(known)] = [levels.index(name) for name in known.values()]
    found: NDArray[np.int64] = positions[np.clip(numbers, -1, max(known) + 1)]
    if (found < 0).any():
        strange = sorted({f"{value:g}" for value in values[found < 0]})
        raise DataError(f"{column}: unknown code {', '.join(strange[:5])}; known: {', '.join(map(str, known))}")
    return pd.Categorical.from_codes(found, pd.Index(levels))


def _relation(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    if NEW_RELATION not in frame:
        return frame
    codes = frame[NEW_RELATION].map(NEW_CODES)
    strange = frame[NEW_RELATION][codes.isna() & frame[NEW_RELATION].notna()].unique()
    if len(strange):
        raise DataError(
            f"{path}: {NEW_RELATION}: unknown code {strange[0]:g}; known: {min(NEW_CODES)} to {max(NEW_CODES)}"
        )
    return frame.assign(**{RELATION: codes.astype(np.float32)})


def _gathered(reader: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield lists of batches with enough rows between them that what pandas costs a frame does not count."""
    batches: list[pa.RecordBatch] = []
    for batch in reader:
        batches.append(batch)
        if sum(batch.num_rows for batch in batches) >= FRAME_ROWS:
            yield batches
            batches = []
    if batches:
        yield batches


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float32]:
    values: NDArray[np.float32] = column.to_numpy()
    return values


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.readline().strip().split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a CSV file: {error}") from error


def _problem(task: str) -> Any:
    import folktables  # takes long to import

    return getattr(folktables, PROBLEMS[task])
