"""Sweeps on real Dask workers: processes that are killed, and threads of this process where nothing dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import distributed
import pandas as pd
import pytest

from fairfront import cli, paths, studies
from fairfront.errors import ArgumentError, DataError
from fairfront.runs import compute, store
from fairfront.runs.sweep import sweep

DRIVER = """import sys
from pathlib import Path
from fairfront import cli, paths, studies
studies.__path__.append(str(Path(__file__).parent / "parted"))
if __name__ == "__main__":
    cli.main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Return the address of a scheduler whose two workers are threads of this process."""
    options = {"processes": False, "dashboard_address": None, "protocol": "tcp", "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def start(folders: Path, parted: ModuleType) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts ``fairfront sweep parted`` in a process of its own, with workers of its own."""
    (folders / "driver.py").write_text(DRIVER, encoding="utf-8")
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(folders / "driver.py"), "sweep", "parted", *words]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = {**os.environ, "OMP_NUM_THREADS": "3"}
        started.append(subprocess.Popen(command, start_new_session=True, env=environment, **pipes))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def until(happened: Callable[[], bool], seconds: float = 40.0) -> None:
    limit = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


def stored(folders: Path) -> list[Path]:
    return [path for path in (folders / "store" / "parted").glob("*") if not path.name.startswith(".")]


def test_a_sweep_that_is_killed_in_the_middle_is_finished_by_the_next(
    start: Callable[..., Any], parted: ModuleType, workshop: Any, folders: Path
) -> None:
    for task in ("dddd", "eeeee", "ffffff"):
        workshop.make("hold", task)
    first = start("--profile", "full", "--workers", "2")
    until(lambda: workshop.count("begun") == 5 and len(stored(folders)) == 3)
    first.kill()
    first.communicate(timeout=40)
    for task in ("dddd", "eeeee", "ffffff"):
        workshop.release("hold", task)
    until(lambda: not _alive(workshop))
    second = start("--profile", "full", "--workers", "2", "--out", str(folders / "all.csv"))
    out, err = second.communicate(timeout=40)
    assert second.returncode == 0, err
    assert (err.count("reused in"), err.count("computed in")) == (3, 3)
    assert "parted at full: parts: 3 computed, 3 reused; the whole is in the store" in out
    assert pd.read_csv(folders / "all.csv")["task"].tolist() == list(parted.Parameters(profile="full").resolved().task)
    assert [workshop.count("done", task) for task in ("a", "bb", "ccc")] == [1, 1, 1]
    whole = compute("parted", parted.Parameters(profile="full"))
    assert whole.reused
    assert set(whole.tables["threads"]["threads"]) == {"1"}, "one thread for each worker"


def test_ctrl_c_leaves_the_store_whole(start: Callable[..., Any], workshop: Any, folders: Path) -> None:
    workshop.make("hold", "bb")
    process = start("--workers", "1")
    until(lambda: workshop.count("begun", "bb") == 1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    _, err = process.communicate(timeout=40)
    assert process.returncode == 130
    last = "interrupted: what is done is in the store, and the same command goes on from there"
    assert [line for line in err.splitlines() if not line.startswith("[1/3] computed in ")] == [last]
    assert len(stored(folders)) == 1


def _alive(workshop: Any) -> bool:
    """Return whether a process that began a part is still there."""
    pids = {int(line.split()[2]) for line in (workshop.home / "toy.log").read_text().splitlines()}
    return any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


def test_a_worker_that_is_killed_is_survived(start: Callable[..., Any], workshop: Any, folders: Path) -> None:
    workshop.make("kill", "bb")
    done = start("--workers", "1")
    out, err = done.communicate(timeout=40)
    assert done.returncode == 0, err
    assert "the whole is in the store" in out
    assert (workshop.count("begun", "bb"), workshop.count("done", "bb")) == (2, 1)
    assert len(stored(folders)) == 4


def test_two_sweeps_at_once_both_finish(
    scheduler: str, parted: ModuleType, workshop: Any, start: Callable[..., Any], folders: Path
) -> None:
    for task in ("a", "bb", "ccc"):
        workshop.make("hold", task)
    other = start("--workers", "1")
    until(lambda: workshop.count("begun", "a") == 1)
    for task in ("a", "bb", "ccc"):
        workshop.release("hold", task)
    (swept,) = sweep([("parted", parted.Parameters())], scheduler=scheduler, progress=False)
    out, err = other.communicate(timeout=40)
    assert other.returncode == 0, err
    assert "the whole is in the store" in out
    assert swept.result is not None
    assert swept.counts.total() == 3
    assert len(stored(folders)) == 4
    assert compute("parted").reused


# -- on threads of this process


def test_parts_are_computed_once_and_the_whole_is_stored(scheduler: str, parted: ModuleType, workshop: Any) -> None:
    store.compute_part("parted", parted.Parameters(task=("bb",)))
    (swept,) = sweep([("parted", parted.Parameters())], scheduler=scheduler, progress=False)
    assert dict(swept.counts) == {"reused": 1, "computed": 2}
    assert swept.failures == ()
    assert swept.result is not None
    assert [found.measured for found in swept.result.measurements] == ["3 rows"]
    assert workshop.count("begun") == 3
    (again,) = sweep([("parted", parted.Parameters())], progress=False)
    assert again.result is not None
    assert (again.result.reused, again.counts.total()) == (True, 0)


@pytest.mark.parametrize("label", ["", "none", "1", 1])
def test_parameters_reach_a_worker_as_they_are(scheduler: str, parted: ModuleType, label: Any) -> None:
    (swept,) = sweep([("parted", parted.Parameters(label=label))], scheduler=scheduler, progress=False)
    assert swept.result is not None, swept.failures


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["sweep", *arguments])
    return (int(ended.value.code or 0), *capfd.readouterr())


def test_a_part_that_fails_is_named_and_the_rest_finishes(
    scheduler: str, parted: ModuleType, workshop: Any, folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    workshop.make("fail", "bb")
    status, out, err = run(capfd, "parted", "--scheduler", scheduler)
    assert status == 1
    assert "parted at quick: parts: 2 computed, 1 failed; no result" in out
    assert "failed: parted task=bb: RuntimeError: no rows of bb\n" in err
    assert err.splitlines()[-1] == "all else is in the store; the same command tries again only what failed"
    assert workshop.count("begun", "bb") == 3, "tried again twice"
    assert len(stored(folders)) == 2
    workshop.release("fail", "bb")
    status, out, err = run(capfd, "parted", "--scheduler", scheduler, "--out", str(folders / "f.parquet"))
    assert (status, workshop.count("done")) == (0, 3)
    assert "parted at quick: parts: 1 computed, 2 reused; the whole is in the store" in out
    assert len(pd.read_parquet(folders / "f.parquet")) == 3
    assert len(pd.read_parquet(folders / "f.threads.parquet")) == 3


def test_what_no_second_try_mends_is_not_tried_again(
    scheduler: str, parted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    def refuse(parameters: Any, progress: Any) -> Any:
        tried.append(parameters.task)
        raise DataError(f"{parameters.task[0]}: not at hand; fetch it")

    monkeypatch.setattr(parted, "run", refuse)
    (swept,) = sweep([("parted", parted.Parameters(task=("a", "bb")))], scheduler=scheduler, progress=False)
    assert sorted(map(str, swept.failures)) == [
        "parted task=a: a: not at hand; fetch it",
        "parted task=bb: bb: not at hand; fetch it",
    ]
    assert len(tried) == 2
    assert swept.result is None


def test_a_whole_that_cannot_be_joined_is_a_failure(
    scheduler: str, parted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def join(parts: Any, parameters: Any) -> Any:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(parted, "join", join, raising=False)
    (swept,) = sweep([("parted", parted.Parameters())], scheduler=scheduler, progress=False)
    assert [str(failure) for failure in swept.failures] == ["parted: all parts are there, but ZeroDivisionError: no"]
    assert swept.counts["computed"] == 3


def test_several_studies_together(
    scheduler: str, parted: ModuleType, toy: ModuleType, toy_runs: Callable[[], int], capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capfd, "parted", "toy", "--profile", "smoke", "--scheduler", scheduler)
    assert status == 0
    assert err.count(" computed in ") == 2
    assert "[2/2] computed in " in err
    assert "toy at smoke: parts: 1 computed; the whole is in the store" in out
    assert {entry.study for entry in store.entries()} == {"parted", "toy"}
    assert compute("toy", toy.Parameters(profile="smoke")).reused


def test_a_study_whose_data_is_absent_does_not_stop_the_others(
    scheduler: str, parted: ModuleType, toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(parameters: Any) -> Any:
        raise DataError("the states are not at hand; fetch them")

    monkeypatch.setattr(parted, "units", absent)
    jobs = [("parted", parted.Parameters()), ("toy", toy.Parameters(profile="smoke"))]
    failed, swept = sweep(jobs, scheduler=scheduler, progress=False)
    assert [str(failure) for failure in failed.failures] == ["parted: the states are not at hand; fetch them"]
    assert swept.result is not None
    with pytest.raises(DataError, match="the states are not at hand"):
        sweep(jobs[:1], scheduler=scheduler, progress=False)


def test_a_study_that_takes_times_is_alone(
    scheduler: str, parted: ModuleType, toy: ModuleType, workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "ALONE", True, raising=False)
    run = toy.run
    seen: list[int] = []

    def watch(parameters: Any, progress: Any) -> Any:
        seen.append(workshop.count("done"))
        return run(parameters, progress)

    monkeypatch.setattr(toy, "run", watch)
    jobs = [("toy", toy.Parameters(profile="smoke")), ("parted", parted.Parameters())]
    swept = sweep(jobs, scheduler=scheduler, progress=False)
    assert seen == [3], "after all parts of the other"
    assert all(item.result for item in swept)


def test_all_of_them(parted: ModuleType, toy: ModuleType, scheduler: str, monkeypatch: Any, capfd: Any) -> None:
    monkeypatch.setattr(studies, "names", lambda: ("parted", "toy"))
    status, out, _ = run(capfd, "--all", "--profile", "smoke", "--scheduler", scheduler)
    assert status == 0
    assert out.count("the whole is in the store") == 2


def test_workers_that_write_elsewhere_or_run_other_code_are_refused(
    scheduler: str, parted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [("parted", parted.Parameters(task=("a",)))]
    with monkeypatch.context() as patch:
        patch.setattr("fairfront.runs.sweep.store.address", lambda module, parameters: "0" * 64)
        with pytest.raises(ArgumentError, match=r"^scheduler: its workers run other code than this"):
            sweep(jobs, scheduler=scheduler, progress=False)

    def compute_elsewhere(study: str, parameters: Any) -> Any:
        return types.SimpleNamespace(reused=False, address=store.address(study, parameters))

    monkeypatch.setattr("fairfront.runs.sweep.store.compute_part", compute_elsewhere)
    shutil.rmtree(paths.store())
    with pytest.raises(ArgumentError, match=r"^scheduler: its workers do not write where this process reads: "):
        sweep(jobs, scheduler=scheduler, progress=False)


def test_a_scheduler_that_is_not_there_is_named(parted: ModuleType, monkeypatch: Any, capfd: Any) -> None:
    monkeypatch.setattr(distributed, "Client", _refuse)
    status, _, err = run(capfd, "parted", "--scheduler", "tcp://127.0.0.1:1")
    assert status == 2
    assert err.startswith("error: scheduler: no scheduler at tcp://127.0.0.1:1")


def _refuse(address: str, timeout: int) -> Any:
    raise OSError("timed out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "STUDY: none named (name studies, or give --all)"),
        (("parted", "--all"), "STUDY: named, and --all (name studies, or give --all)"),
        (("toy",), "STUDY: toy has no parts (fairfront study toy computes it as one)"),
        (("prated",), "study: unknown: 'prated'"),
        (("parted", "--workers", "0"), "workers: not a number of processes: 0 (a whole number, at least 1)"),
        (("parted", "--workers", "1", "--scheduler", "tcp://h:1"), "workers: the scheduler at tcp://h:1 has its own"),
        (("parted", "toy", "--out", "f.csv"), "--out: 2 studies"),
        (("parted", "--out", "f.txt"), "--out: unknown ending: 'f.txt'"),
        (("parted", "-p", "tsak=a"), "parameter: unknown: 'tsak' (did you mean task?"),
        (("parted", "toy", "-p", "points=3"), "parameter: unknown: 'points'"),
    ],
)
def test_bad_arguments_are_refused(
    parted: ModuleType, toy: ModuleType, workshop: Any, capfd: Any, words: tuple[str, ...], message: str
) -> None:
    status, _, err = run(capfd, *words)
    assert status == 2
    assert err.startswith(f"error: {message}")
    assert workshop.count("begun") == 0
