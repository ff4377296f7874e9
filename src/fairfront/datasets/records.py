"""Records of the benchmarks: what `python -m benchmarks.record` measured, where, and when."""

from __future__ import annotations

import json
from typing import Any

from fairfront import paths
from fairfront.errors import DataError, unknown_name

__all__ = ["benchmark_records"]


def benchmark_records(name: str) -> list[dict[str, Any]]:
    """Return the records of one suite of benchmarks.

    Parameters
    ----------
    name : str
        The suite, for instance "bilevel".

    Returns
    -------
    list of dict
        Keys name, command, date, machine, load (of the machine, before the case ended), targets (a list of dicts with
        keys key, sense, target, measured, met) and figures.

    Raises
    ------
    ArgumentError
        When there is no such suite.
    DataError
        When its file is damaged.
    """
    folder = paths.data() / "benchmarks"
    known = [path.stem for path in folder.glob("*.json")]
    if name not in known:
        raise unknown_name("name", name, known)
    try:
        records: list[dict[str, Any]] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(
            f"{folder / name}.json: damaged: {error}; make it anew by python -m benchmarks.record"
        ) from error
    return records
