"""The command line: ``fairfront list | describe | run | study | sweep | book | claims | data``.

What takes long to import is imported by the command that needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fairfront.errors import ArgumentError, FairfrontError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

    from fairfront.runs import Result

__all__ = ["app", "main"]

app = typer.Typer(
    name="fairfront",
    help="The executed book over fairness-informed Pareto optimisation and constrained training.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="The data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--parameter",
        metavar="NAME=VALUE",
        help="A parameter; again for each. Values: true, false, none, numbers, words; a comma list for several.",
    ),
]
Profile = Annotated[str | None, typer.Option(metavar="smoke|quick|full", help="Seconds, minutes, the papers' sizes.")]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE.csv|FILE.parquet", help="Where the main table goes; others beside it.")
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its status: 2 for an error of the user's, with one message.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; those of the process where None.
    """
    try:
        app(args=None if arguments is None else list(arguments))
    except FairfrontError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


@app.command("list")
def list_() -> None:
    """Show the chapters, the studies, and what the store holds of each."""
    from fairfront import studies
    from fairfront.runs import notebooks

    stored = _stored_profiles()
    _show(
        "Chapters (fairfront describe CHAPTER)",
        ("chapter", "title"),
        [(chapter.name, chapter.title) for chapter in notebooks.chapters()],
    )
    _show(
        "Studies (fairfront study NAME)",
        ("study", "title", "results in the store"),
        [(name, studies.title(name), stored.get(name, "none")) for name in studies.names()],
    )


@app.command()
def describe(chapter: Annotated[str, typer.Argument(help="A chapter, or a study.")]) -> None:
    """Show the parameters of a chapter: types, defaults, ranges; and what each profile costs."""
    from fairfront import studies
    from fairfront.runs import notebooks
    from fairfront.studies.parameters import PROFILES, cost
    from fairfront.studies.parameters import describe as describe_study

    known = [item.name for item in notebooks.chapters()]
    if chapter in known:
        found = notebooks.get(chapter)
        title, parameters, costs = found.title, notebooks.parameters(found), notebooks.costs(found)
    elif chapter in studies.names():
        cls = studies.get(chapter).Parameters
        title, parameters = studies.title(chapter), describe_study(cls)
        costs = {profile: cost(cls, profile) for profile in PROFILES}
    else:
        raise unknown_name("chapter", chapter, {*known, *studies.names()})
    rows = [
        (item.name, item.type, _default(item.default, item.by_profile), item.allowed, item.help) for item in parameters
    ]
    _show(f"{chapter}: {title}", ("parameter", "type", "default", "allowed", "meaning"), rows)
    _show("Profiles", ("profile", "cost"), [(profile, costs[profile] or "not stated") for profile in PROFILES])


@app.command()
def run(
    chapter: Annotated[str, typer.Argument(help="The chapter.")],
    parameter: Assignments = None,
    profile: Profile = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for CHAPTER.ipynb and CHAPTER.html (else: ./CHAPTER).")
    ] = None,
) -> None:
    """Execute a chapter, with parameters of your own, to a notebook and an HTML page."""
    from fairfront.runs import book, notebooks

    found, assignments = notebooks.get(chapter), _assignments(parameter)
    out = Path(found.name) if out is None else out
    notebook = notebooks.execute(found, assignments, profile, out)
    print(notebook)
    if book.can_build():
        print(book.page(notebook, out))
    else:
        print("no page: the book's configuration comes only with a checkout of the repository", file=sys.stderr)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="The study.")],
    parameter: Assignments = None,
    profile: Profile = None,
    out: Out = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Compute again what the store has.")] = False,
) -> None:
    """Compute a study without a notebook, and write its tables."""
    from fairfront import studies
    from fairfront.runs import progress, store
    from fairfront.studies.parameters import parse

    parameters = parse(studies.get(name).Parameters, _with_profile(_assignments(parameter), profile))
    _require_target(out)
    bars_or_lines = True if progress.on_terminal() else progress.lines
    result = store.compute(name, parameters, progress=bars_or_lines, refresh=refresh)
    _write_tables(result, out)
    seconds = result.provenance["wall_seconds"]
    how = f"reused from the store (computed on {result.provenance['date'][:10]} in" if result.reused else "computed (in"
    print(f"{name} at {parameters.profile}: {how} {seconds:.1f} s)")


@app.command("sweep")
def sweep_(
    names: Annotated[list[str] | None, typer.Argument(metavar="STUDY...", help="The studies.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All studies.")] = False,
    parameter: Assignments = None,
    profile: Profile = None,
    workers: Annotated[int | None, typer.Option(help="Processes on this machine (else: one for each core).")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A running Dask scheduler in their place: tcp://HOST:PORT.")
    ] = None,
    out: Out = None,
) -> None:
    """Compute the parts of studies on many processes; what was stopped goes on where it was."""
    from fairfront import studies
    from fairfront.runs.sweep import sweep
    from fairfront.studies.parameters import parse

    if bool(names) == all_:
        raise ArgumentError("STUDY", "named, and --all" if names else "none named", "name studies, or give --all")
    chosen = list(dict.fromkeys(names)) if names else list(studies.names())
    if out is not None and len(chosen) > 1:
        raise ArgumentError("--out", f"{len(chosen)} studies", "write one at a time: fairfront study NAME --out FILE")
    assignments = _with_profile(_assignments(parameter), profile)
    jobs = [(name, parse(studies.get(name).Parameters, assignments)) for name in chosen]
    if len(chosen) == 1 and not hasattr(studies.get(chosen[0]), "units"):
        raise ArgumentError("STUDY", f"{chosen[0]} has no parts", f"fairfront study {chosen[0]} computes it as one")
    _require_target(out)
    try:
        swept = sweep(jobs, workers=workers, scheduler=scheduler)
    except KeyboardInterrupt:
        print("interrupted: what is done is in the store, and the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    for item in swept:
        counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(item.counts.items()))
        whole = "no result" if item.result is None else "the whole is in the store"
        print(f"{item.study} at {item.parameters.profile}: {f'parts: {counts}; ' if counts else ''}{whole}")
    failures = [failure for item in swept for failure in item.failures]
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if failures:
        print("all else is in the store; the same command tries again only what failed", file=sys.stderr)
        raise typer.Exit(1)
    if swept[0].result is not None and len(swept) == 1:
        _write_tables(swept[0].result, out)


@app.command("book")
def book_(
    profile: Profile = None,
    chapter: Annotated[str | None, typer.Option(help="The chapter that the parameters are for.")] = None,
    parameter: Assignments = None,
    strict: Annotated[bool, typer.Option("--strict/--not-strict", help="Whether warnings are errors.")] = True,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the book (else: _build/html).")] = None,
    workers: Annotated[int | None, typer.Option(help="Chapters executed at once (else: one for each core).")] = None,
) -> None:
    """Execute the chapters and build the book into _build/html (what `make book` does)."""
    from fairfront.runs import book

    values = _assignments(parameter)
    profile = "quick" if profile is None else profile
    built = book.build(profile, chapter, values, strict=strict, out=out, workers=workers)
    print(built / "index.html")


@app.command()
def claims(
    json: Annotated[bool, typer.Option("--json", help="As JSON, one record a claim.")] = False,
    profile: Profile = None,
) -> None:
    """Show the claims of the papers, and what the store holds of each."""
    import dataclasses
    import json as json_module

    from fairfront.runs.ledger import ledger

    records = ledger(profile)
    if json:
        plain = [dataclasses.asdict(record) for record in records]
        print(json_module.dumps(plain, indent=1, ensure_ascii=False))
        return
    rows = [
        (record.id, record.item, record.measured, record.profile, f"{record.verdict}: {record.reason}".rstrip(": "))
        for record in records
    ]
    _show("Claims", ("claim", "item", "measured", "profile", "verdict"), rows)


Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """Show the data sets and image sets: what is predicted, for whom, how many rows, and whether they come with us."""
    from fairfront import datasets
    from fairfront.datasets import inventory

    if json:
        known = [*datasets.names(), *datasets.image_names()]
        _print_json([{k: v for k, v in inventory.describe(name).items() if k != "datasheet"} for name in known])
        return
    infos = [datasets.info(name) for name in datasets.names()]
    rows: list[Sequence[object]] = [
        (
            info.name,
            info.task,
            info.target,
            ", ".join(attribute.name for attribute in info.sensitive),
            info.file.rows or "",
            "embedded" if info.file.embedded else "by fetch",
        )
        for info in infos
    ]
    for name in datasets.image_names():
        image = datasets.image_info(name)
        rows.append(
            (name, "images", image.title, f"{image.classes} classes", "", "by fetch" if image.file else "embedded")
        )
    columns = ("data set", "task", "target", "sensitive attributes", "rows of the file", "comes")
    _show("Data sets", columns, rows)


@data_app.command("info")
def data_info(name: Annotated[str, typer.Argument(help="A data set or an image set.")], json: Json = False) -> None:
    """Show what the registry says of a data set, its state, and its datasheet."""
    import dataclasses

    from fairfront.datasets import inventory
    from fairfront.studies.parameters import spelled

    words = inventory.describe(name)
    state = dataclasses.asdict(inventory.verify(name))
    if json:
        _print_json(words | {"state": state["state"], "where": state["where"], "problem": state["problem"]})
        return
    for key, value in words.items():
        if key not in ("datasheet", "files"):
            print(f"{key}: {spelled(value)}")
    print(f"state: {state['state']} {state['where']} {state['problem']}".rstrip())
    if "datasheet" in words:
        print(f"\n{words['datasheet']}")


@data_app.command("verify")
def data_verify(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; all where none is named.")] = None,
    json: Json = False,
) -> None:
    """Check every file that is at hand. What is missing is no failure; the status is 1 where something is corrupt."""
    import dataclasses

    from fairfront.datasets import inventory

    found = [inventory.verify(name) for name in names] if names else list(inventory.states())
    if json:
        _print_json([dataclasses.asdict(state) for state in found])
    else:
        rows = [(item.name, item.state, item.rows or "", item.problem or item.where or item.source) for item in found]
        _show("Data sets", ("data set", "state", "rows", "where"), rows)
    if any(item.state == "corrupt" for item in found):
        raise typer.Exit(1)


@data_app.command("fetch")
def data_fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets; a survey's as acs-income/2018/FL.")],
) -> None:
    """Download what is not at hand, into the user's cache."""
    from fairfront.datasets import inventory
    from fairfront.runs import progress

    for name in names:
        paths = inventory.bring(name, progress.lines if len(names) > 1 or progress.on_terminal() else None)
        print(
            f"{name}: {paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}"
            if paths
            else f"{name}: no file"
        )


@data_app.command("convert")
def data_convert(
    name: Annotated[str, typer.Argument(help="A data set, or synthetic-TASK/ROWS for SYNTHETIC rows.")],
    out: Annotated[Path, typer.Option(metavar="FILE.parquet", help="The file to make.")],
    sensitive: Annotated[str, typer.Option(help="Sensitive attributes, by commas.")],
    groups: Annotated[int | None, typer.Option(help="Merge the smallest cells until so many groups are left.")] = None,
    block_rows: Annotated[int, typer.Option(help="Rows that a pass of a solver holds at once.")] = 32768,
    json: Json = False,
) -> None:
    """Write a data set, however large, to a Parquet file in blocks, sorted by group and standardised."""
    import dataclasses

    from fairfront import datasets

    _writer(out)
    words = [word.strip() for word in sensitive.split(",") if word.strip()]
    result = datasets.convert(name, out, sensitive=words, groups=groups, block_rows=block_rows)
    if json:
        _print_json(dataclasses.asdict(result))
        return
    sizes = ", ".join(f"{k} ({v:,})" for k, v in zip(result.group_names, result.group_sizes, strict=True))
    print(f"{out}: {result.rows:,} rows of {len(result.feature_names)} columns; {sizes}")
    if result.notice:
        print(result.notice)


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=1, ensure_ascii=False))


def _assignments(words: Sequence[str] | None) -> dict[str, str]:
    """Return the parameters of ``-p name=value`` words."""
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name.strip() and equals):
            raise ArgumentError("-p", f"not an assignment: {word!r}", "write -p name=value")
        if name.strip() in found:
            raise ArgumentError("-p", f"{name.strip()} is given twice", "name it once; several values: name=a,b")
        found[name.strip()] = value.strip()
    return found


def _with_profile(assignments: dict[str, str], profile: str | None) -> dict[str, str]:
    """Return the assignments with the profile of --profile among them."""
    if profile is not None and assignments.setdefault("profile", profile) != profile:
        problem = f"--profile {profile} against -p profile={assignments['profile']}"
        raise ArgumentError("profile", problem, "name it once")
    return assignments


def _require_target(out: Path | None) -> None:
    """Refuse a file that tables cannot be written to, before anything is computed."""
    from fairfront.runs.files import require_writable

    if out is not None:
        _writer(out)
        require_writable(out.parent, "--out")


def _write_tables(result: Result, out: Path | None) -> None:
    """Write a result's tables, or say what they are."""
    from fairfront.runs.files import write_together

    if out is None:
        for table, frame in result.tables.items():
            print(f"{table}: {len(frame)} rows, columns {', '.join(frame.columns)} (write it: --out FILE.csv)")
        return
    others = list(result.tables)[1:]
    targets = [out, *(out.with_name(f"{out.stem}.{table}{out.suffix}") for table in others)]
    frames = dict(zip(targets, result.tables.values(), strict=True))
    write_together({target: _writer(target, frame) for target, frame in frames.items()}, "--out")
    for target, frame in frames.items():
        print(f"{target}: {len(frame)} rows")


def _writer(path: Path, frame: pd.DataFrame | None = None) -> Any:
    """Return what writes a table in the format of a path's ending; without a table only the ending is checked."""
    if path.suffix == ".csv":
        return lambda target: frame.to_csv(target, index=False) if frame is not None else None
    if path.suffix == ".parquet":
        return lambda target: frame.to_parquet(target, index=False) if frame is not None else None
    raise ArgumentError("--out", f"unknown ending: {path.name!r}", "name a file that ends in .csv or .parquet")


def _stored_profiles() -> dict[str, str]:
    """Return for each study how many results the store holds, by profile."""
    from collections import Counter

    from fairfront.runs import store
    from fairfront.studies.parameters import PROFILES

    counts = Counter((entry.study, entry.provenance["parameters"]["profile"]) for entry in store.entries())
    studies = {study for study, _ in counts}
    return {
        study: ", ".join(f"{profile} ({counts[study, profile]})" for profile in PROFILES if counts[study, profile])
        for study in studies
    }


def _default(value: object, by_profile: dict[str, object]) -> str:
    from fairfront.studies.parameters import spelled

    if value is None and by_profile:
        return ", ".join(f"{profile} {spelled(chosen)}" for profile, chosen in by_profile.items())
    return spelled(value)


def _show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; where nobody watches, wide enough that a script finds its words unbroken."""
    console = Console(width=None if sys.stdout.isatty() else 200, markup=False, highlight=False)
    table = Table(*columns, show_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(title, style="bold")
    console.print(table if rows else "none")
    console.print()
