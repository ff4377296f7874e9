"""A user's own rows: any frame or file in, the same grouped data out as of the registry's sets, with a report."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.groups import cut, partition
from fairfront.datasets.loading import assemble, check_seed, check_test_size, check_values
from fairfront.datasets.registry import Attribute, DatasetInfo, FileInfo
from fairfront.datasets.sources import Table
from fairfront.errors import ArgumentError, DataError, unknown_name

__all__ = ["LeakWarning", "from_frame"]

POLICIES = ("refuse", "drop", "fill")
UNKNOWN = "(missing)"
# More values of a number than this need bins; more values of a text than this are no categories.
MOST_VALUES, MOST_CATEGORIES = 12, 1000
# A column that follows the target this closely is one of its names.
LEAK = 0.999


class LeakWarning(UserWarning):
    """A feature is the target under another name, or nearly so."""


def from_frame(
    data: Any,
    *,
    target: str,
    sensitive: str | Sequence[str],
    missing: Literal["refuse", "drop", "fill"] = "refuse",
    task: Literal["classification", "regression"] | None = None,
    positive: object = None,
    drop: Iterable[str] = (),
    bins: Mapping[str, Iterable[float] | int] | None = None,
    groups: int | None = None,
    test_size: float = 0.3,
    seed: int = 0,
    keep_sensitive: bool = True,
    name: str = "own data",
) -> GroupedData:
    """Return a user's own rows, cut into sensitive groups, encoded, standardised and split.

    Text columns become indicators, each but its first value in alphabetical order; a column with one value is left out,
    and so is a text column with another value in every row, which names the rows. What was done is in `report`.

    Parameters
    ----------
    data : frame, path or str
        A pandas or polars frame (or any that narwhals knows), an Arrow table, or a CSV or Parquet file.
    target : str
        The column to predict.
    sensitive : str or sequence of str
        The columns whose intersections are the groups.
    missing : {"refuse", "drop", "fill"}, default "refuse"
        Policy on missing values. "refuse": an error says where they are. "drop": their rows go. "fill": a number
        becomes the training rows' mean, a text a value of its own, in a sensitive column a group of its own; rows
        without a target go.
    task : {"classification", "regression"}, optional
        Default: classification for a target of two values, regression for a number of more.
    positive : object, optional
        The target's value that is labelled 1; default: the last in order (True, "yes", 1).
    drop : iterable of str
        Columns to leave out: identifiers, and what is known only when the target is.
    bins : mapping of str to iterable of float or int, optional
        Numeric sensitive column -> the increasing lower ends of its second and later bins, or how many bins of about
        equal size.
    groups : int, optional
        Merge the smallest intersections until this many groups are left, from 2 to 36.
    test_size, seed, keep_sensitive
        As for `load`.
    name : str, default "own data"
        What messages call the rows.

    Returns
    -------
    GroupedData

    Raises
    ------
    ArgumentError
        A column is not there, the target is constant or has a third class, a sensitive column has one value or too
        many, `groups` is larger than the number of cells, or values are missing and `missing` is "refuse".
    DataError
        The file cannot be read.

    Warns
    -----
    LeakWarning
        A feature is the target under another name.
    """
    if missing not in POLICIES:
        raise ArgumentError("missing", f"unknown: {missing!r}", ", ".join(POLICIES))
    test_size, seed = check_test_size(test_size), check_seed(seed)
    frame, report = _frame(data), []
    chosen, unwanted = _names(sensitive), _names(drop)
    for argument, wanted in (("target", [target]), ("sensitive", chosen), ("drop", unwanted)):
        for column in wanted:
            if column not in frame.columns:
                raise unknown_name(argument, column, frame.columns)
    if not chosen or len(set(chosen)) < len(chosen) or target in chosen:
        problem = f"not different columns beside the target: {sensitive!r}"
        raise ArgumentError("sensitive", problem, "at least one column, each once")
    if {target, *chosen} & set(unwanted):
        raise ArgumentError("drop", f"target and sensitive columns cannot go: {', '.join(unwanted)}", "keep_sensitive=")
    report.append(f"{len(frame):,} rows of {frame.shape[1]} columns were read")
    frame = frame.drop(columns=unwanted)
    digest = hashlib.sha256(np.asarray(pd.util.hash_pandas_object(frame, index=False)).tobytes()).hexdigest()
    frame = _without_gaps(frame, target, chosen, missing, report)
    labels, kind = _target(frame[target], task, positive, report)
    attributes = tuple(_attribute(frame[column], column, (bins or {}).get(column), report) for column in chosen)
    _check_bins(bins, attributes)
    features = _features(frame.drop(columns=target), chosen, report)
    _warn_of_leaks(features, labels)

    values = pd.DataFrame(
        {item.name: frame[item.name] if item.cuts else _texts(frame[item.name]) for item in attributes}
    )
    check_values(values, attributes)
    parts = partition(values, attributes, groups)
    sizes = zip(parts.names, parts.sizes, strict=True)
    report.append(f"{len(parts.names)} groups: " + ", ".join(f"{group} ({size:,})" for group, size in sizes))
    described = DatasetInfo(name, name, kind, target, attributes, _NO_FILE)
    return assemble(
        described,
        attributes,
        Table(features=features, target=labels, attributes=values),
        parts,
        test_size=test_size,
        seed=seed,
        keep_sensitive=keep_sensitive,
        digest=digest,
        report=report,
    )


_NO_FILE = FileInfo("own", None, "", 0, 0, (), "", "", "", Path())


def _frame(data: Any) -> pd.DataFrame:
    if isinstance(data, str | Path):
        return _read(Path(data))
    if isinstance(data, pa.Table):
        return data.to_pandas()
    try:
        frame = nw.from_native(data)
    except TypeError:
        known = "a pandas, polars or Arrow frame, or the path of a CSV or Parquet file"
        raise ArgumentError("data", f"not a frame: {type(data).__name__}", known) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return eager.to_pandas().reset_index(drop=True)


def _read(path: Path) -> pd.DataFrame:
    endings = "".join(path.suffixes[-2:]).lower()
    try:
        if endings.endswith(".parquet"):
            return pd.read_parquet(path)
        if endings.endswith(".csv") or endings.endswith((".csv.gz", ".csv.bz2", ".csv.zip", ".csv.xz", ".csv.zst")):
            return pd.read_csv(path)
    except (OSError, ValueError, pa.ArrowInvalid, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    raise ArgumentError("data", f"unknown ending: {path.name!r}", "name a .csv or .parquet file")


def _names(words: str | Iterable[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _without_gaps(
    frame: pd.DataFrame, target: str, sensitive: list[str], policy: str, report: list[str]
) -> pd.DataFrame:
    numbers = frame.select_dtypes("number").columns
    infinite = [column for column in numbers if np.isinf(frame[column].to_numpy(np.float64, na_value=np.nan)).any()]
    if infinite:
        raise ArgumentError(
            "data", f"infinite values in {', '.join(infinite)}", "replace them by missing ones, or clip"
        )
    gaps = frame.isna().sum()
    gaps = gaps[gaps > 0]
    if gaps.empty:
        report.append("no value is missing")
        return frame
    where = ", ".join(f"{column} ({count:,})" for column, count in gaps.items())
    if policy == "refuse":
        raise ArgumentError(
            "missing", f"values are missing: {where}", 'missing="drop" or missing="fill", or drop= columns'
        )
    needed = list(frame.columns)
    if policy == "fill":
        needed = [target]
        if bad := [column for column in sensitive if column in gaps and column in numbers]:
            problem = f"a number of a sensitive column cannot be filled: {', '.join(bad)}"
            raise ArgumentError("missing", problem, 'every row needs a group: missing="drop", or text in that column')
        if filled := [str(column) for column in gaps.index if column != target]:
            report.append(f"missing values were filled (number: mean of the training rows, text: {UNKNOWN}): {where}")
            texts = {column: frame[column].astype(object).fillna(UNKNOWN) for column in filled if column not in numbers}
            frame = frame.assign(**texts)
    kept = frame.dropna(subset=needed).reset_index(drop=True)
    if len(kept) < len(frame):
        why = "a missing value" if policy == "drop" else "a missing target"
        report.append(f"{len(frame) - len(kept):,} rows with {why} were dropped ({where})")
    if kept.empty:
        raise ArgumentError("missing", f"no row is left: {where}", 'drop= the emptiest columns, or missing="fill"')
    return kept


def _target(
    values: pd.Series, task: str | None, positive: object, report: list[str]
) -> tuple[NDArray[np.float64], Literal["classification", "regression"]]:
    classes = sorted(values.unique(), key=lambda value: (str(type(value)), value))
    if len(classes) < 2:
        problem = f"{values.name} is {classes[0]!r} in every row" if classes else "there is no row"
        raise ArgumentError("target", problem, "nothing is to be learnt from one value")
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    kind = task or ("regression" if numeric and len(classes) > 2 else "classification")
    if kind == "regression":
        if not numeric:
            raise ArgumentError("target", f"{values.name} is no number", 'task="classification", or a numeric column')
        report.append(f"{values.name} is predicted as a number")
        return values.to_numpy(dtype=np.float64, copy=True), "regression"
    if kind != "classification":
        raise ArgumentError("task", f"unknown: {task!r}", "classification or regression")
    if len(classes) != 2:
        listed = ", ".join(map(str, classes[:6])) + (", ..." if len(classes) > 6 else "")
        raise ArgumentError(
            "target", f"{values.name} has {len(classes)} values: {listed}", "two are needed; merge them"
        )
    chosen = classes[-1] if positive is None else positive
    if chosen not in classes:
        raise ArgumentError("positive", f"{chosen!r} is no value of {values.name}", f"{classes[0]} or {classes[1]}")
    report.append(f"{values.name} = {chosen} is labelled 1, {classes[0] if chosen == classes[1] else classes[1]} 0")
    return np.asarray(values == chosen).astype(np.float64), "classification"


def _attribute(values: pd.Series, name: str, cuts: Iterable[float] | int | None, report: list[str]) -> Attribute:
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if numeric and cuts is not None:
        attribute = cut(Attribute(name, (), (name,), cuts=(0.0,)), _cuts(values, name, cuts))
        report.append(f"{name} was cut into {', '.join(attribute.levels)}")
        return attribute
    levels = [
        str(level) for level in (values.cat.categories if values.dtype == "category" else sorted(values.unique()))
    ]
    if len(levels) > MOST_VALUES:
        problem = f"{name} has {len(levels)} values"
        remedy = f"bins={{{name!r}: [..]}}" if numeric else f"merge them into at most {MOST_VALUES}"
        raise ArgumentError("sensitive", problem, remedy)
    present = set(_texts(values))
    return Attribute(name, tuple(level for level in levels if level in present), (name,))


def _cuts(values: pd.Series, name: str, cuts: Iterable[float] | int) -> Iterable[float]:
    if not isinstance(cuts, int):
        return cuts
    if isinstance(cuts, bool) or cuts < 2:
        raise ArgumentError("bins", f"not a number of bins: {name}={cuts!r}", "at least 2, or the bins' lower ends")
    ends = np.unique(np.quantile(values.to_numpy(dtype=np.float64), np.arange(1, cuts) / cuts))
    return [float(end) for end in ends if end > values.min()]


def _check_bins(bins: Mapping[str, Any] | None, attributes: Sequence[Attribute]) -> None:
    numeric = [attribute.name for attribute in attributes if attribute.cuts]
    for column in bins or ():
        if column not in numeric:
            problem = f"{column!r} is no numeric sensitive column"
            raise ArgumentError("bins", problem, f"numeric ones: {', '.join(numeric) or 'none'}")


def _texts(values: pd.Series) -> pd.Series:
    return values.astype(object).map(str).astype("str")


def _features(frame: pd.DataFrame, sensitive: list[str], report: list[str]) -> pd.DataFrame:
    columns: dict[str, pd.Series] = {}
    for name in map(str, frame.columns):
        values = frame[name]
        if pd.api.types.is_datetime64_any_dtype(values) or pd.api.types.is_timedelta64_dtype(values):
            raise ArgumentError("data", f"{name} is a time", "turn it into a number, or drop= it")
        if pd.api.types.is_numeric_dtype(values):
            columns[name] = values.astype(np.float64)
            continue
        texts, count = _texts(values), values.astype(object).map(str).nunique()
        if name not in sensitive and count == len(frame) > MOST_VALUES:
            report.append(f"{name} has another value in every row, it names them: left out")
        elif count > MOST_CATEGORIES:
            raise ArgumentError("data", f"{name} has {count:,} texts", "turn it into fewer categories, or drop= it")
        else:
            columns[name] = texts
    indicators = [name for name, values in columns.items() if not pd.api.types.is_numeric_dtype(values)]
    if indicators:
        report.append(f"indicators of {', '.join(indicators)}, each but its first value")
    if same := [name for name, values in columns.items() if values.nunique(dropna=False) < 2]:
        report.append(f"one value in every row, left out: {', '.join(same)}")
    if not columns:
        raise ArgumentError("data", "no column is left to predict the target from", "keep one")
    return pd.DataFrame(columns)


def _warn_of_leaks(features: pd.DataFrame, labels: NDArray[np.float64]) -> None:
    leaks = []
    for name in features:
        values = features[name]
        if not pd.api.types.is_numeric_dtype(values):
            # A text tells the target as far as the mean of its rows does.
            values = pd.Series(labels).groupby(values.to_numpy()).transform("mean")
            if features[name].nunique() > len(labels) / 4:
                continue
        known = values.notna().to_numpy()
        column, label = values.to_numpy(dtype=np.float64)[known], labels[known]
        if known.sum() > 2 and column.std() > 0 and label.std() > 0 and abs(np.corrcoef(column, label)[0, 1]) > LEAK:
            leaks.append(str(name))
    if leaks:
        problem = f"{', '.join(leaks)}: the target under another name? It would not be known when it is to be predicted"
        warnings.warn(f"{problem}; leave it out by drop=", LeakWarning, stacklevel=3)
