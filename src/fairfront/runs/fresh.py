"""A function in a process of its own: for the peak of its memory, which one that did other work cannot tell."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairfront.errors import FairfrontError

__all__ = ["FreshProcessError", "in_fresh_process", "peak_mb"]


class FreshProcessError(FairfrontError):
    """A process of its own ended without a result; the message holds the end of what it said."""


def peak_mb() -> float:
    """Return the peak of this process's resident memory so far, in MB (10^6 bytes); NaN where the system does not say.

    On Linux it is that of this program alone; elsewhere it may count what the parent held when it started it.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:")), float("nan"))
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1.0 if sys.platform == "darwin" else 1024.0  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns when it is called by a new interpreter that has done nothing else.

    Parameters
    ----------
    function : callable
        A function of an importable module.
    *arguments
        Its arguments; they and the result are JSON values.

    Raises
    ------
    FreshProcessError
        When the process fails.
    """
    order = json.dumps([function.__module__, function.__qualname__, arguments])
    # The new interpreter finds the modules where this one does.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import _answer; _answer()"],
        input=order,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise FreshProcessError(f"{function.__qualname__}: a process of its own failed ({said[0]})")
    return json.loads(done.stdout.splitlines()[-1])


def _answer() -> None:
    """Call the function that standard input names, and print its result as the last line."""
    module, name, arguments = json.loads(sys.stdin.read())
    result = getattr(importlib.import_module(module), name)(*arguments)
    print(json.dumps(result))
