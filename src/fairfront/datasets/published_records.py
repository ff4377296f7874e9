"""The records that the first paper's authors published of their Table 2, regression, where the file is at hand.

The file may not be embedded. It has a JSON object a line, for each data set, seed of the split and method: dset (as in
"lawschool_seed0"), method, train_rmse, test_rmse, train_metric, test_metric, weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from fairfront.datasets.places import folders, sha256
from fairfront.errors import DataError

__all__ = ["DATA", "FILE", "METHODS", "digest", "read_records"]

FILE = "badr_table2_regression_records.jsonl"
DATA = {
    "lawschool": "lsac-law-school",
    "parkinsons": "parkinsons",
    "communities_and_crime": "communities",
    "student_performance": "student",
}
"""Their names of the data sets, and this package's."""
METHODS = {
    "ERM": "uniform",
    "Balanced": "balanced",
    "One-Fit": "one-group",
    "MinMax": "minimax",
    "BADR": "badr-random",
}
"""Their names of the strategies, and this package's: what they call ERM has uniform weights."""
_FIGURES = ("train_rmse", "test_rmse", "train_metric", "test_metric")


def digest() -> str:
    """Return the SHA-256 of the file of records, or "" where it is not at hand."""
    path = _find()
    return sha256(path) if path else ""


def read_records(expected: str) -> pd.DataFrame:
    """Return the records.

    Parameters
    ----------
    expected : str
        SHA-256 that the file must have (`digest`).

    Returns
    -------
    DataFrame
        Columns data, seed, strategy, train_rmse, test_rmse, train_metric, test_metric, lambda (a list in JSON), by this
        package's names.

    Raises
    ------
    DataError
        The file is not at hand, is another one, or is damaged; the message says where to put it.
    """
    path = _find()
    remedy = (
        f"put the authors' records, as {FILE}, below the folder named by FAIRFRONT_DATA, or beside it in reference/"
    )
    if path is None:
        raise DataError(f"{FILE}: not at hand; {remedy}")
    if sha256(path) != expected:
        raise DataError(f"{path}: has the SHA-256 {sha256(path)}, asked for {expected}; {remedy}")
    try:
        return pd.DataFrame(map(_record, path.read_text(encoding="utf-8").splitlines()))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged: {error!r}; {remedy}") from error


def _find() -> Path | None:
    return next((path for path in _candidates() if path.is_file()), None)


def _candidates() -> Iterator[Path]:
    for folder in folders():
        for place in (folder, folder / "reference", folder.parent / "reference"):
            yield place / FILE


def _record(line: str) -> dict[str, Any]:
    record = json.loads(line)
    name, _, seed = record["dset"].rpartition("_seed")
    figures = {key: float(record[key]) for key in _FIGURES}
    weights = json.dumps(list(map(float, record["weights"])))
    return {"data": DATA[name], "seed": int(seed), "strategy": METHODS[record["method"]], **figures, "lambda": weights}
