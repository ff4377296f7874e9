"""Run the suites of benchmarks and keep what was measured, for the chapters that show it.

    python -m benchmarks.record                      # all cases of suite.toml, into data/benchmarks
    python -m benchmarks.record --only "20,000"      # the cases whose names hold the text; the others' records stay
    python -m benchmarks.record --suite pinn --new   # one suite's, those that are not recorded yet

A suite's file is written anew after every case, so that a run that is stopped keeps what it has.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT

__all__ = ["cases", "judged", "main"]

SUITE = Path(__file__).with_name("suite.toml")
RECORDS = ROOT / "data" / "benchmarks"
MODULES = {"bilevel": "bilevel", "constrained": "constrained", "memory": "bilevel", "pinn": "pinn_runs"}
"""The suites, and the benchmark that runs each one's cases."""


def cases(path: Path = SUITE) -> list[dict[str, Any]]:
    """Return every case of a file of suites; one with ``over`` stands for the product of what it lists.

    A case's name and arguments are then filled in by `str.format` with each combination.
    """
    found = []
    for case in tomllib.loads(path.read_text("utf-8"))["case"]:
        over = case.pop("over", {})
        for values in itertools.product(*over.values()):
            chosen = dict(zip(over, values, strict=True))
            filled = {key: case[key].format(**chosen) if over else case[key] for key in ("name", "arguments")}
            found.append({"suite": "bilevel"} | case | filled)
    return found


def judged(case: dict[str, Any], figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row per target of a case: key, target, how it is held, measured, and whether it is met."""
    rows = []
    for sense in ("at_least", "at_most"):
        for key, target in case.get(sense, {}).items():
            measured = float(figures[key])
            met = measured >= target if sense == "at_least" else measured <= target
            rows.append({"key": key, "sense": sense, "target": target, "measured": measured, "met": met})
    return rows


def main(command: Sequence[str] | None = None) -> int:
    """Run the suites; returns the exit status: 1 where a case could not be run, whether or not targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names hold this text")
    parser.add_argument("--suite", choices=tuple(MODULES), help="the cases of this suite")
    parser.add_argument("--new", action="store_true", help="only cases that are not recorded yet")
    parser.add_argument("--into", type=Path, default=RECORDS, metavar="FOLDER", help="where the records are kept")
    arguments = parser.parse_args(command)
    chosen = [case for case in cases() if arguments.only in case["name"] and arguments.suite in (None, case["suite"])]
    if not chosen:
        parser.error(f"--only: no case's name holds {arguments.only!r}")
    failed = False
    for case in chosen:
        path = arguments.into / f"{case['suite']}.json"
        kept = json.loads(path.read_text("utf-8")) if path.exists() else []
        records = {record["name"]: record for record in kept}
        if arguments.new and case["name"] in records:
            continue
        print(f"{case['name']} ...", flush=True)
        module = f"benchmarks.{MODULES[case['suite']]}"
        with tempfile.TemporaryDirectory() as place:
            result = Path(place) / "result.json"
            options = [*shlex.split(case["arguments"]), "--json", str(result)]
            done = subprocess.run([sys.executable, "-m", module, *options], cwd=ROOT, check=False)
            if done.returncode:
                failed = True
                continue
            figures = json.loads(result.read_text("utf-8"))
        figures.pop("runs", None)
        if isinstance(figures.get("rows"), list):  # of a benchmark that makes a table, a case is one row
            (figures,) = figures["rows"]
        records[case["name"]] = {
            "name": case["name"],
            "command": f"python -m {module} {case['arguments']}",
            "date": datetime.date.today().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "load": round(os.getloadavg()[0], 1),
            "targets": judged(case, figures),
            "figures": figures,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_written(list(records.values())), encoding="utf-8")
    return int(failed)


def _written(records: list[dict[str, Any]]) -> str:
    """Return records as JSON, an entry a line down to the figures; a list of numbers stays on its line."""
    text = json.dumps(records, indent=1)
    for record in records:
        for values in (record["figures"].get("history") or {}).values():
            text = text.replace(json.dumps(values, indent=1).replace("\n", "\n" + " " * 4), json.dumps(values))
    return text + "\n"


if __name__ == "__main__":
    sys.exit(main())
