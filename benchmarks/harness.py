"""What every benchmark needs: one core, one thread, a process a run, and the peers' environments.

It imports the standard library alone, because the peers' own environments import it too.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "BenchmarkError", "one_core", "peak_mb", "peer_python", "run_side"]

ROOT = Path(__file__).parents[1]

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
# Some machines force a processor type on OpenBLAS; a benchmark takes what the library would choose.
_FORCED_KERNELS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


class BenchmarkError(Exception):
    """A benchmark cannot be run here; the message says what to do."""


def peer_python(environment: str, peers: Path | None = None) -> Path:
    """Return the Python of a peer's environment.

    Parameters
    ----------
    environment : str
        Name of the environment: benchmarks/peers-NAME.txt makes .peers/NAME.
    peers : Path, optional
        Where the environments are; default .peers of the repository.

    Raises
    ------
    BenchmarkError
        When the environment is absent or half made.
    """
    folder = (peers or ROOT / ".peers") / environment
    python = folder / "bin" / "python"
    if not python.exists() or not (folder / ".ready").exists():
        raise BenchmarkError(f"{folder} is not there or not complete: run `make peers` first")
    return python


@contextmanager
def one_core(core: int | None = None) -> Iterator[int | None]:
    """Pin this process, and all that it starts, to one core; yields its number (None where that cannot be done).

    Parameters
    ----------
    core : int, optional
        Which one; default the last that this process may use.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    allowed = os.sched_getaffinity(0)
    chosen = max(allowed) if core is None else core
    if chosen not in allowed:
        raise BenchmarkError(f"core {chosen} is not among those this process may use: {sorted(allowed)}")
    os.sched_setaffinity(0, {chosen})
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, allowed)


def peak_mb() -> float:
    """Return the peak of this process's resident memory in MB (10^6 bytes), as Linux counts it for this program alone.

    The figure of getrusage would count what the parent held when it started this process, too.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6


def run_side(python: Path | str, name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run one side in a process of its own, with one thread, and return the JSON object of its last line of output.

    Parameters
    ----------
    python : path
        Interpreter.
    name : str
        Module in benchmarks/sides.
    arguments : sequence of str
        The program's arguments.

    Raises
    ------
    BenchmarkError
        When the process fails or its last line is no JSON object; with the end of what it said.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _FORCED_KERNELS} | _ONE_THREAD
    command = [str(python), "-m", f"benchmarks.sides.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    try:
        result = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    except (IndexError, json.JSONDecodeError):
        result = None
    if not isinstance(result, dict):
        said = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise BenchmarkError(f"{name} ended with status {done.returncode} and no result:\n{said}")
    return result
