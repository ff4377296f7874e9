"""The harness of the benchmarks: pinning, processes, and what it says when something is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from benchmarks.harness import BenchmarkError, one_core, peak_mb, peer_python, run_side

linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="pinning needs Linux")


@pytest.mark.parametrize("made", [(), ("bin/python",), (".ready",)])
def test_an_absent_or_half_made_environment_is_answered_by_make_peers(made: tuple[str, ...], tmp_path: Path) -> None:
    for name in made:
        (tmp_path / "badr" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "badr" / name).touch()
    with pytest.raises(BenchmarkError, match="make peers"):
        peer_python("badr", tmp_path)


def test_a_complete_environment_gives_its_python(tmp_path: Path) -> None:
    (tmp_path / "badr" / "bin").mkdir(parents=True)
    for name in ("bin/python", ".ready"):
        (tmp_path / "badr" / name).touch()
    assert peer_python("badr", tmp_path) == tmp_path / "badr" / "bin" / "python"


@linux
def test_one_core_pins_and_frees_again() -> None:
    before = os.sched_getaffinity(0)
    with one_core() as core:
        assert os.sched_getaffinity(0) == {core} == {max(before)}
    assert os.sched_getaffinity(0) == before
    with pytest.raises(BenchmarkError, match="core 100000"), one_core(100_000):
        pass


@linux
def test_a_side_runs_on_the_core_with_one_thread_and_the_librarys_own_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import benchmarks.sides

    (tmp_path / "echo_side.py").write_text(
        "import json, os, sys\n"
        "print('said before the result')\n"
        "print(json.dumps({'core': sorted(os.sched_getaffinity(0)), 'threads': os.environ['OPENBLAS_NUM_THREADS'],\n"
        "                  'forced': 'OPENBLAS_CORETYPE' in os.environ, 'arguments': sys.argv[1:]}))\n"
    )
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    side = _temporary_side(tmp_path / "echo_side.py", Path(benchmarks.sides.__file__).parent)
    try:
        with one_core() as core:
            result = run_side(sys.executable, side.stem, ["a", "b"])
    finally:
        side.unlink()
    assert result == {"core": [core], "threads": "1", "forced": False, "arguments": ["a", "b"]}


def test_a_side_that_fails_is_an_error_with_what_it_said() -> None:
    with pytest.raises(BenchmarkError, match=r"no_such_side ended with status 1[\s\S]*No module named"):
        run_side(sys.executable, "no_such_side", [])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_peak_memory_sees_an_allocation() -> None:
    before = peak_mb()
    held = bytearray(80_000_000)
    held[::4096] = b"x" * len(held[::4096])
    assert before + 40 < peak_mb() < before + 200


def _temporary_side(source: Path, folder: Path) -> Path:
    side = folder / f"_test_{os.getpid()}_{source.name}"
    side.write_text(source.read_text())
    return side
