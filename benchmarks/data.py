"""Reading a person file and cutting rows into groups, beside pandas' own reading of the same columns.

``python -m benchmarks.data [--rows N] [--task TASK] [--repeats K] [--json FILE]``: writes a CSV file of N SYNTHETIC
persons with the 286 columns of a state's file, then times, in fresh processes and in turn, pandas' bare ``read_csv`` of
the task's columns by pyarrow and our way from the file to grouped arrays, and their peaks of memory above what the
imports take; then the partition of 3,000,000 rows into groups.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = 286
STATE = "FL"


def write_persons(path: Path, rows: int) -> None:
    """Write synthetic persons with as many columns as a state's file has, the others filled with small codes."""
    from fairfront.datasets.synthetic import persons

    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    filler: pd.Series | None = None
    with path.open("w", encoding="utf-8") as stream:
        for number, lot in enumerate(persons(rows)):
            lot = lot.assign(ST=12).astype("Int64")
            names = [f"PWGTP{k}" for k in range(1, COLUMNS - lot.shape[1] + 1)]
            if filler is None:
                codes = draw.integers(0, 200, (4096, len(names))).astype(str)
                filler = pd.Series([",".join(line) for line in codes])
                stream.write(",".join([*lot.columns, *names]) + "\n")
            known = lot.to_csv(index=False, header=False).splitlines()
            rest = filler.iloc[draw.integers(0, len(filler), len(known))]
            stream.write("\n".join(f"{left},{right}" for left, right in zip(known, rest, strict=True)) + "\n")
            print(f"\r{min((number + 1) * 65536, rows):,} rows written", end="", file=sys.stderr)
    print(f", {path.stat().st_size / 1e6:,.0f} MB", file=sys.stderr)


def side(which: str, folder: Path, task: str) -> None:
    """Run one side in this process and print what it took as JSON."""
    import folktables  # noqa: F401
    import pyarrow.csv  # noqa: F401

    from fairfront.datasets import info, load
    from fairfront.datasets.sources import acs

    os.environ["FAIRFRONT_DATA"] = str(folder)
    path = folder / info(f"{task}/2018/{STATE}").file.raw[0].path
    columns = list(acs.columns(task))
    base, peak, ended = _resident(), [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.002):
            peak[0] = max(peak[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    if which == "ours":
        data = load(f"{task}/2018/{STATE}", sensitive=["gender", "race"], groups=6)
        arrays = (data.X, data.y, data.groups, data.train, data.test)
        result, rows = sum(array.nbytes for array in arrays), data.n_rows
    else:
        frame = pd.read_csv(path, usecols=columns, engine="pyarrow")
        result, rows = int(frame.memory_usage().sum()), len(frame)
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    print(json.dumps({"seconds": seconds, "peak_mb": peak[0] - base, "result_mb": result / 1e6, "rows": rows}))


def partition_seconds(rows: int) -> float:
    """Return the least of five times of cutting synthetic persons by gender, race and age, merged to 18 groups."""
    from fairfront.datasets import info
    from fairfront.datasets.groups import partition
    from fairfront.datasets.sources import acs
    from fairfront.datasets.synthetic import persons

    known = info("acs-travel-time")
    frame = pd.concat([lot[["SEX", "RAC1P", "MAR", "DIS", "AGEP"]] for lot in persons(rows)], ignore_index=True)
    values, chosen = acs.attributes(frame), [known.attribute(name) for name in ("gender", "race", "age")]
    times = []
    for _ in range(5):
        started = time.perf_counter()
        partition(values, chosen, groups=18)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--task", default="acs-employment", choices=("acs-employment", "acs-income", "acs-travel-time"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        side(arguments.side[0], Path(arguments.side[1]), arguments.task)
        return
    runs: dict[str, list[dict[str, float]]] = {"pandas": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        write_persons(Path(folder) / "acs" / "2018" / "1-Year" / "psam_p12.csv", arguments.rows)
        for _ in range(arguments.repeats):
            for which, results in runs.items():
                command = [sys.executable, "-m", "benchmarks.data", "--task", arguments.task, "--side", which, folder]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results.append(json.loads(done.stdout))
    least = {which: min(results, key=lambda result: result["seconds"]) for which, results in runs.items()}
    summary = {
        "task": arguments.task,
        "persons": arguments.rows,
        **{f"{which}_{key}": round(value, 3) for which, best in least.items() for key, value in best.items()},
        "time_ratio": round(least["ours"]["seconds"] / least["pandas"]["seconds"], 3),
        "peak_over_result": round(least["ours"]["peak_mb"] / least["ours"]["result_mb"], 3),
        "partition_3m_seconds": round(partition_seconds(3_000_000), 3),
    }
    print(json.dumps(summary, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


def _resident() -> float:
    """Return the memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
