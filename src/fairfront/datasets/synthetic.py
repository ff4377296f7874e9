"""SYNTHETIC rows of any number in the shape of the ACS person files, for scaling studies: no person stands behind them.

Columns, codes and the dependence of work and income on age, schooling, sex and race are rough likenesses of the survey;
no figure drawn from these rows says anything about people, and whatever is made of them is called synthetic.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairfront.datasets.grouped import GroupedData
from fairfront.datasets.groups import partition, rebin
from fairfront.datasets.loading import assemble, check_seed, check_test_size, check_values
from fairfront.datasets.registry import DatasetInfo, FileInfo, info
from fairfront.datasets.sources import Table, acs
from fairfront.errors import ArgumentError, unknown_name

__all__ = ["describe", "persons", "synthetic_acs", "tables"]

#: Rows that are drawn at a time, each lot by a generator of its own: a longer table begins with the rows of a shorter.
LOT = 1 << 16
_RACES = np.array([0.72, 0.11, 0.008, 0.0005, 0.001, 0.06, 0.002, 0.05, 0.0485])
_RACES /= _RACES.sum()


def persons(rows: int, *, seed: int = 0) -> Iterator[pd.DataFrame]:
    """Yield synthetic persons, with every column that the three tasks of folktables need, in lots of 65,536.

    Parameters
    ----------
    rows : int
        How many in all.
    seed : int, default 0
        Seed of the draw.
    """
    for number, start in enumerate(range(0, _check_rows(rows), LOT)):
        lot = _lot(np.random.default_rng([check_seed(seed), number]))
        yield lot if start + LOT <= rows else lot.head(rows - start)


def tables(rows: int, task: str = "acs-income", *, seed: int = 0) -> Iterator[Table]:
    """Yield the rows of a task among synthetic persons, lot by lot.

    Parameters
    ----------
    rows : int
        How many persons; the task's own filter keeps some of them.
    task : str, default "acs-income"
        "acs-employment", "acs-income" or "acs-travel-time".
    seed : int, default 0
        Seed of the draw.

    Raises
    ------
    ArgumentError
        There is no such task, or `rows` or `seed` is out of range.
    """
    if task not in acs.PROBLEMS:
        raise unknown_name("task", task, acs.PROBLEMS)
    for frame in persons(rows, seed=seed):
        values, labels = acs.select(frame, task)
        features = pd.DataFrame(values, columns=acs.features(task))
        yield Table(features=features, target=labels, attributes=acs.attributes(features))


def synthetic_acs(
    rows: int,
    *,
    sensitive: str | Sequence[str],
    task: str = "acs-income",
    seed: int = 0,
    test_size: float = 0.3,
    groups: int | None = None,
    bins: Mapping[str, Iterable[float]] | None = None,
    keep_sensitive: bool = True,
) -> GroupedData:
    """Return SYNTHETIC rows in the shape of a task on the ACS, in memory.

    Parameters
    ----------
    rows : int
        How many persons; the task's own filter keeps some of them.
    sensitive, test_size, groups, bins, keep_sensitive
        As for `load`.
    task : str, default "acs-income"
        "acs-employment", "acs-income" or "acs-travel-time".
    seed : int, default 0
        Seed of the draw and of the split.

    Returns
    -------
    GroupedData
        Name, target and report say that it is synthetic.

    Raises
    ------
    ArgumentError
        As for `load`.
    """
    described = describe(task)
    attributes = rebin(described.chosen(sensitive), bins)
    test_size, seed = check_test_size(test_size), check_seed(seed)
    parts = list(tables(rows, task, seed=seed))
    table = Table(
        features=pd.concat([part.features for part in parts], ignore_index=True),
        target=np.concatenate([part.target for part in parts]),
        attributes=pd.concat([part.attributes for part in parts], ignore_index=True),
    )
    check_values(table.attributes, attributes)
    cells = partition(table.attributes, attributes, groups)
    word = f"{described.name}/{rows}/{seed}"
    return assemble(
        described,
        attributes,
        table,
        cells,
        test_size=test_size,
        seed=seed,
        keep_sensitive=keep_sensitive,
        digest=hashlib.sha256(word.encode()).hexdigest(),
        report=[f"SYNTHETIC: {rows:,} persons drawn with seed {seed}; {len(table.target):,} rows of the task"],
    )


def describe(task: str) -> DatasetInfo:
    """Return what the registry would say of a task on synthetic persons."""
    if task not in acs.PROBLEMS:
        raise unknown_name("task", task, acs.PROBLEMS)
    real = info(task)
    notice = f"SYNTHETIC rows in the shape of {real.title}: no person stands behind them."
    file = FileInfo("synthetic", None, "", 0, 0, (), "None: made by a formula", "", "", real.file.datasheet)
    title = f"SYNTHETIC {acs.PROBLEMS[task]}"
    return DatasetInfo(f"synthetic-{task}", title, real.task, f"SYNTHETIC: {real.target}", real.sensitive, file, notice)


def _lot(draw: np.random.Generator) -> pd.DataFrame:
    n = LOT
    age = np.minimum(draw.gamma(3.2, 13.0, n).astype(np.int64), 95)
    sex = draw.integers(1, 3, n)
    race = draw.choice(9, n, p=_RACES) + 1
    adult = age > 15
    school = np.clip(draw.normal(17.5, 3.5, n) - 0.8 * np.isin(race, (2, 8)) + 0.7 * (race == 6), 1, 24).astype(
        np.int64
    )
    school = np.where(adult, school, np.minimum(school, np.maximum(age - 2, 1)))
    married = draw.random(n) < np.clip((age - 18) / 40, 0, 0.65)
    marital = np.where(married, 1, np.where(draw.random(n) < age / 160, draw.integers(2, 5, n), 5))
    ability = draw.random(n) < 0.06 + 0.003 * age
    works = adult & (
        draw.normal(size=n) < 1.1 - np.abs(age - 42) / 22 + 0.05 * (school - 16) - 0.25 * (sex == 2) - 0.8 * ability
    )
    hours = np.clip(draw.normal(39 - 3.5 * (sex == 2), 11, n), 1, 99).astype(np.int64)
    log_income = (
        7.25
        + 0.105 * school
        + 0.045 * np.minimum(age, 50)
        - 0.25 * (sex == 2)
        - 0.2 * np.isin(race, (2, 3, 4, 5, 8))
        + 0.06 * (race == 6)
        + 0.012 * (hours - 40)
        + draw.normal(0, 0.7, n)
    )
    income = np.where(works, np.exp(log_income), draw.exponential(9000, n)).astype(np.int64)
    minutes = np.clip(draw.gamma(1.9, 14.0, n), 1, 160).astype(np.int64)

    def among(values: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.where(known, values, np.nan)

    columns = {
        "AGEP": age,
        "SCHL": among(school, age > 2),
        "MAR": marital,
        "RELP": draw.choice(18, n, p=_relations()),
        "DIS": np.where(ability, 1, 2),
        "ESP": among(draw.integers(1, 9, n), age < 18),
        "CIT": draw.choice(5, n, p=[0.86, 0.01, 0.01, 0.06, 0.06]) + 1,
        "MIG": draw.choice(3, n, p=[0.86, 0.01, 0.13]) + 1,
        "MIL": among(draw.choice(4, n, p=[0.005, 0.07, 0.02, 0.905]) + 1, age > 16),
        "ANC": draw.choice(4, n, p=[0.4, 0.25, 0.1, 0.25]) + 1,
        "NATIVITY": draw.choice(2, n, p=[0.87, 0.13]) + 1,
        "DEAR": np.where(draw.random(n) < 0.002 * age / 2, 1, 2),
        "DEYE": np.where(draw.random(n) < 0.03, 1, 2),
        "DREM": among(np.where(draw.random(n) < 0.06, 1, 2), age > 4),
        "SEX": sex,
        "RAC1P": race,
        "COW": among(draw.choice(8, n, p=[0.68, 0.09, 0.07, 0.05, 0.03, 0.04, 0.03, 0.01]) + 1, works),
        "OCCP": among(draw.integers(10, 9830, n), works),
        "POBP": np.where(draw.random(n) < 0.87, draw.integers(1, 57, n), draw.integers(60, 555, n)),
        "WKHP": among(hours, works),
        "PINCP": among(income, adult),
        "ESR": among(np.where(works, 1, np.where(draw.random(n) < 0.08, 3, 6)), adult),
        "JWMNP": among(minutes, works & (draw.random(n) < 0.95)),
        "JWTR": among(draw.choice(12, n, p=_journeys()) + 1, works),
        "POWPUMA": among(draw.integers(1, 90, n) * 100, works),
        "POVPIP": np.clip(income // 130, 0, 501),
        "PUMA": draw.integers(1, 120, n) * 100,
        "ST": draw.choice([1, 6, 12, 13, 17, 36, 42, 48], n),
        "PWGTP": np.maximum(draw.gamma(2.0, 50.0, n).astype(np.int64), 1),
    }
    return pd.DataFrame({name: values.astype(np.float32) for name, values in columns.items()})


def _relations() -> NDArray[np.float64]:
    shares = np.array([38, 18, 26, 1, 1.5, 1.2, 1, 2.5, 0.4, 0.3, 0.9, 0.4, 1.3, 2.4, 0.2, 0.8, 1.4, 2.7])
    return shares / shares.sum()


def _journeys() -> NDArray[np.float64]:
    shares = np.array([85, 2.5, 0.1, 1.8, 0.6, 0.1, 0.2, 0.2, 0.6, 2.8, 5.2, 0.9])
    return shares / shares.sum()


def _check_rows(rows: int) -> int:
    if isinstance(rows, bool) or not isinstance(rows, numbers.Integral) or rows < 1:
        raise ArgumentError("rows", f"not a number of rows: {rows!r}", "a whole number, at least 1")
    return int(rows)
