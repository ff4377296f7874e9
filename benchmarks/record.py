"""Run the suite of benchmarks and keep what was measured, for the chapter that shows it.

    python -m benchmarks.record                      # all cases of suite.toml, into data/benchmarks/bilevel.json
    python -m benchmarks.record --only "20,000"      # the cases whose names hold the text; the others' records stay

The file is written anew after every case, so that a run that is stopped keeps what it has.
"""

from __future__ import annotations

import argparse
import datetime
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

__all__ = ["judged", "main"]

SUITE = Path(__file__).with_name("suite.toml")
RECORDS = ROOT / "data" / "benchmarks" / "bilevel.json"


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
    """Run the suite; returns the exit status: 1 where a case could not be run, whether or not targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose names hold this text")
    parser.add_argument("--json", type=Path, default=RECORDS, metavar="FILE", help="where the records are kept")
    arguments = parser.parse_args(command)
    cases = [case for case in tomllib.loads(SUITE.read_text("utf-8"))["case"] if arguments.only in case["name"]]
    if not cases:
        parser.error(f"--only: no case's name holds {arguments.only!r}")
    kept = json.loads(arguments.json.read_text("utf-8")) if arguments.json.exists() else []
    records = {record["name"]: record for record in kept}
    failed = False
    for case in cases:
        print(f"{case['name']} ...", flush=True)
        with tempfile.TemporaryDirectory() as place:
            result = Path(place) / "result.json"
            options = [*shlex.split(case["arguments"]), "--json", str(result)]
            done = subprocess.run([sys.executable, "-m", "benchmarks.bilevel", *options], cwd=ROOT, check=False)
            if done.returncode:
                failed = True
                continue
            figures = json.loads(result.read_text("utf-8"))
        figures.pop("runs")
        records[case["name"]] = {
            "name": case["name"],
            "command": f"python -m benchmarks.bilevel {case['arguments']}",
            "date": datetime.date.today().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "load": round(os.getloadavg()[0], 1),
            "targets": judged(case, figures),
            "figures": figures,
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(list(records.values()), indent=1) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
