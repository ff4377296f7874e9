"""Sweeps: the parts of one study, or of many, on the processes of a Dask cluster.

A part is what `fairfront.runs.store.parts` names. A worker looks into the store before it computes one, and puts it
there when it is done, so that a sweep that was stopped, however hard, goes on where it was. Nothing but parameters
travels: the store is a folder that the workers have to reach under the same path.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairfront import paths, studies
from fairfront.errors import ArgumentError, FairfrontError
from fairfront.runs import store
from fairfront.runs.environment import environment
from fairfront.runs.progress import Count, counted
from fairfront.runs.store import Result
from fairfront.studies.parameters import StudyParameters, spelled, to_json

__all__ = ["Failure", "Sweep", "sweep"]

_RETRIES = 2  # of a part that fails by anything but an argument or data
_FOLDERS = ("FAIRFRONT_DATA", "FAIRFRONT_CACHE")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Failure:
    """A part that could not be computed.

    Attributes
    ----------
    study : str
        The study.
    parameters : str
        What tells the part from the whole, as ``name=value`` words; "" for the whole.
    error : str
        Why.
    """

    study: str
    parameters: str
    error: str

    def __str__(self) -> str:
        return f"{self.study} {self.parameters}".rstrip() + f": {self.error}"


@dataclass(frozen=True, eq=False)
class Sweep:
    """What came of one study.

    Attributes
    ----------
    study : str
        The study.
    parameters : StudyParameters
        Its parameters, the profile's sizes filled in.
    counts : Counter
        How many of its parts were "reused", "computed" and "failed".
    failures : tuple of Failure
        The parts that failed.
    result : Result or None
        The whole; None where something failed.
    """

    study: str
    parameters: StudyParameters
    counts: Counter[str]
    failures: tuple[Failure, ...]
    result: Result | None


def sweep(
    jobs: Sequence[tuple[str, StudyParameters]],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = True,
) -> tuple[Sweep, ...]:
    """Compute all parts of some studies on a Dask cluster, then join each study's and store the whole.

    A part that fails does not keep the others from being computed. A study without parts is one part; one that takes
    times (``ALONE``) is computed in this process when all the others are done, with nothing beside it.

    Parameters
    ----------
    jobs : sequence of (str, StudyParameters)
        Names of studies, each with an instance of its ``Parameters``.
    workers : int, optional
        Processes on this machine, one thread each, at least 1; default: as many as there are cores.
    scheduler : str, optional
        Address of a running scheduler (Slurm, Kubernetes or any other) to use in their place. Its workers need this
        package in this version, and the store and the data under the same paths.
    progress : bool, default True
        Whether to show on standard error which parts are done: a bar on a terminal, a line a part elsewhere.

    Returns
    -------
    tuple of Sweep
        One for each job.

    Raises
    ------
    ArgumentError
        If there is no scheduler at the address, `workers` is out of range, the workers run other code or write to
        another store, or a study or its parameters are wrong.
    """
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ArgumentError("workers", f"not a number of processes: {workers!r}", "a whole number, at least 1")
    if workers is not None and scheduler is not None:
        raise ArgumentError("workers", f"the scheduler at {scheduler} has its own", "name one of the two")
    studied = [_Study(name, parameters) for name, parameters in jobs]
    for study in studied:
        study.begin(alone=len(studied) == 1)
    pending = [part for study in studied for part in study.parts]
    beside = [part for part in pending if not part.study.alone]
    with counted("parts", len(pending), progress) as count:
        if beside:
            _distribute(beside, workers, scheduler, count)
        for part in pending:
            if part.study.alone:
                part.settle(_attempt(part.study.name, part.parameters), count)
    return tuple(study.swept() for study in studied)


class _Study:
    """A study of a sweep: its parts, and what has come of them."""

    def __init__(self, name: str, parameters: StudyParameters) -> None:
        self.name, self.module = name, studies.get(name)
        self.alone = bool(getattr(self.module, "ALONE", False))
        self.parameters = parameters.resolved()
        self.counts: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.result: Result | None = None
        self.parts: list[_Part] = []

    def begin(self, *, alone: bool) -> None:
        """Find out what there is to do; for a study among others whose data is not at hand that is nothing."""
        try:
            self.result = store.find(self.module, self.parameters)
            units = () if self.result else store.parts(self.module, self.parameters)
        except FairfrontError as error:
            if alone:
                raise
            self.failures.append(Failure(self.name, "", str(error)))
        else:
            self.parts = [_Part(self, unit) for unit in units]

    def swept(self) -> Sweep:
        return Sweep(self.name, self.parameters, self.counts, tuple(self.failures), self.result)

    def settle(self, words: str, done: _Done, count: Count) -> None:
        """Note what has come of a part; after the last of them join the whole."""
        self.counts[done.outcome] += 1
        if done.error:
            self.failures.append(Failure(self.name, words, done.error))
        count(done.outcome, f"{self.name} {words}".rstrip() + (f": {done.error}" if done.error else ""), done.seconds)
        if not self.failures and sum(self.counts.values()) == len(self.parts):
            try:
                self.result = store.compute(self.module, self.parameters, progress=False)
            except Exception as error:
                self.failures.append(Failure(self.name, "", f"all parts are there, but {_said(error)}"))


@dataclass(frozen=True, eq=False)
class _Part:
    study: _Study
    parameters: StudyParameters

    def words(self) -> str:
        """Return what tells the part from the whole."""
        names = [field.name for field in dataclasses.fields(self.parameters)]
        pairs = [(name, getattr(self.parameters, name)) for name in names]
        return " ".join(
            f"{name}={spelled(value)}" for name, value in pairs if value != getattr(self.study.parameters, name)
        )

    def settle(self, done: _Done, count: Count) -> None:
        self.study.settle(self.words(), done, count)


@dataclass(frozen=True)
class _Done:
    """What has come of a part: "reused", "computed" or "failed", its address, the seconds it took, why it failed."""

    outcome: str
    address: str = ""
    seconds: float = 0.0
    error: str = ""


def _distribute(parts: Sequence[_Part], workers: int | None, scheduler: str | None, count: Count) -> None:
    from dask.system import CPU_COUNT

    from fairfront.datasets.partitions import connect

    folders = {"FAIRFRONT_STORE": str(paths.store())}
    folders |= {name: os.environ[name] for name in _FOLDERS if name in os.environ}
    processes = min(CPU_COUNT if workers is None else workers, len(parts)) if scheduler is None else None
    with environment(**_ONE_THREAD), connect(scheduler, workers=processes) as client:
        futures = {
            client.submit(
                _work,
                part.study.name,
                to_json(part.parameters),
                folders,
                key=f"{part.study.name}-{place}-{time.time_ns()}",
                priority=-place,
                pure=False,
                retries=_RETRIES,
            ): part
            for place, part in enumerate(parts)
        }
        for future, done in _finished(futures):
            if done.address:
                _require_seen(futures[future], done.address)
            futures.pop(future).settle(done, count)


def _finished(futures: Mapping[Any, _Part]) -> Iterator[tuple[Any, _Done]]:
    """Yield each future with what has come of it, as they are done."""
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    for future in as_completed(list(futures)):
        try:
            done = future.result()
        except KilledWorker:
            done = _Done("failed", error="its process died again and again (out of memory?)")
        except Exception as error:
            done = _Done("failed", error=_said(error))
        yield future, done


def _require_seen(part: _Part, address: str) -> None:
    """Refuse workers whose results this process would not find."""
    if address != store.address(part.study.module, part.parameters):
        raise ArgumentError("scheduler", "its workers run other code than this", "install the same fairfront there")
    if not (paths.store() / part.study.name / address).is_dir():
        problem = f"its workers do not write where this process reads: {paths.store()}"
        raise ArgumentError("scheduler", problem, "set FAIRFRONT_STORE to a folder that all of them reach")


def _work(study: str, values: dict[str, Any], folders: dict[str, str]) -> _Done:
    """Compute a part on a worker."""
    os.environ.update(folders)
    return _attempt(study, studies.get(study).Parameters(**values), again=True)


def _attempt(study: str, parameters: StudyParameters, *, again: bool = False) -> _Done:
    """Compute a part; errors that trying again would mend are raised where that is going to happen."""
    started = time.perf_counter()
    try:
        part = store.compute_part(study, parameters)
    except Exception as error:
        if again and not isinstance(error, FairfrontError):
            raise
        return _Done("failed", error=_said(error))
    return _Done("reused" if part.reused else "computed", part.address, time.perf_counter() - started)


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, FairfrontError) else f"{type(error).__name__}: {error}"
