"""The chapters: which there are, what each can be told, and their execution.

A chapter is a Jupytext py:percent script whose first code cell is tagged ``parameters``. Jupytext reads it, papermill
executes it, one process a notebook. The executed notebook lies in ``_build/notebooks/PROFILE/``, or, where parameters
other than the profile differ from the chapter's own, in ``_build/notebooks/PROFILE@HASH/``.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import itertools
import logging
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fairfront import paths, studies
from fairfront.errors import ArgumentError, FairfrontError, unknown_name
from fairfront.runs import provenance
from fairfront.runs.environment import environment
from fairfront.runs.files import require_writable, write_together
from fairfront.runs.progress import on_terminal
from fairfront.studies.parameters import (
    PROFILES,
    ParameterInfo,
    StudyParameters,
    cost,
    describe,
    describe_like,
    parse,
    parse_like,
)

if TYPE_CHECKING:
    from nbformat import NotebookNode

T = TypeVar("T")

__all__ = [
    "Chapter",
    "ExecutionError",
    "chapters",
    "cores",
    "costs",
    "execute",
    "execute_all",
    "folder",
    "get",
    "parameters",
    "values",
]


class ExecutionError(FairfrontError):
    """A chapter's cell has raised an error; the message says which chapter, which cell and which error."""


@dataclass(frozen=True)
class Chapter:
    """A chapter as its script describes it.

    Attributes
    ----------
    name : str
        The file's name without its suffix; the name of its study where it has one.
    path : Path
        The script.
    title : str
        Its first heading.
    defaults : dict
        The parameters cell: name and value, in order.
    comments : dict
        What stands behind a parameter on its line in the cell.
    """

    name: str
    path: Path
    title: str
    defaults: dict[str, Any]
    comments: dict[str, str]

    @property
    def checks(self) -> type[StudyParameters]:
        """What checks its parameters: ``Parameters`` of the study of the same name, else what all studies have."""
        found: type[StudyParameters] = StudyParameters
        return studies.get(self.name).Parameters if self.name in studies.names() else found


def chapters() -> tuple[Chapter, ...]:
    """Return the chapters in the order of the book's table of contents; those that it lacks come last.

    Raises
    ------
    ArgumentError
        If a script cannot be read as a chapter.
    """
    return tuple(_chapter(path) for path in _scripts())


def get(name: str) -> Chapter:
    """Return the chapter of that name.

    Raises
    ------
    ArgumentError
        If there is none; the nearest names are in the message.
    """
    scripts = {path.stem: path for path in _scripts()}
    if name not in scripts:
        raise unknown_name("chapter", name, scripts)
    return _chapter(scripts[name])


def parameters(chapter: Chapter) -> list[ParameterInfo]:
    """Return what can be said about each parameter of a chapter, in the order of its parameters cell.

    Types, ranges and meanings come from the study of the same name; where it has no such parameter, from the cell.
    """
    known = {info.name: info for info in describe(chapter.checks)}
    return [
        dataclasses.replace(known[name], default=default)
        if name in known
        else describe_like(name, default, chapter.comments[name])
        for name, default in chapter.defaults.items()
    ]


def costs(chapter: Chapter) -> dict[str, str]:
    """Return what each profile of a chapter costs, as its study's grid says it; "" where it does not."""
    return {profile: cost(chapter.checks, profile) for profile in PROFILES}


def values(chapter: Chapter, assignments: Mapping[str, object], profile: str | None = None) -> dict[str, Any]:
    """Return the parameters that differ from the chapter's own, checked and as Python values.

    Parameters
    ----------
    chapter : Chapter
        The chapter.
    assignments : mapping of str to str or object
        Parameters by name, words or values (see `studies.parameters.parse`).
    profile : str, optional
        The profile; "quick" where neither this nor the assignments name one.

    Returns
    -------
    dict
        Always holds ``profile``, first.

    Raises
    ------
    ArgumentError
        For a name that is not in the chapter's parameters cell, a value of a wrong type or out of range, or a profile
        named twice and differently.
    """
    for name in assignments:
        if name not in chapter.defaults:
            raise unknown_name("parameter", name, chapter.defaults)
    if profile is not None and assignments.get("profile", profile) != profile:
        problem = f"--profile {profile} against -p profile={assignments['profile']}"
        raise ArgumentError("profile", problem, "name it once")
    given = {**assignments, "profile": assignments.get("profile", "quick") if profile is None else profile}
    fields = {info.name for info in describe(chapter.checks)}
    own = {name: value for name, value in chapter.defaults.items() if name in fields}
    # Everything at once, so that what a study demands of several parameters together is found out here.
    made = parse(chapter.checks, {**own, **{name: value for name, value in given.items() if name in fields}})
    read = {
        name: getattr(made, name) if name in fields else parse_like(name, value, chapter.defaults[name])
        for name, value in given.items()
    }
    changed = {name: value for name, value in read.items() if name != "profile" and value != chapter.defaults[name]}
    return {"profile": read["profile"], **changed}


def folder(chosen: Mapping[str, Any]) -> Path:
    """Return where executed notebooks of a profile (and of parameters other than a chapter's own) lie.

    Parameters
    ----------
    chosen : mapping
        What `values` returns.
    """
    rest = {name: value for name, value in chosen.items() if name != "profile"}
    variant = f"@{provenance.digest(rest)[:8]}" if rest else ""
    return paths.build() / "notebooks" / f"{chosen['profile']}{variant}"


def execute(
    chapter: str | Chapter,
    assignments: Mapping[str, object] | None = None,
    profile: str | None = None,
    out: Path | None = None,
) -> Path:
    """Execute a chapter and return the executed notebook; one that is up to date is not executed again.

    It is up to date while the script, the parameters, the code and the style sheets of the package, the registry of the
    data and the versions of the packages are what they were.

    Parameters
    ----------
    chapter : str or Chapter
        The chapter, or its name.
    assignments : mapping of str to str or object, optional
        Parameters by name.
    profile : str, optional
        "smoke", "quick" (the default) or "full".
    out : Path, optional
        A folder to put the notebook into; else it stays in the build folder (see `folder`).

    Returns
    -------
    Path
        ``NAME.ipynb``. It holds no path of the machine and no times.

    Raises
    ------
    ArgumentError
        As from `get` and `values`; before anything is executed.
    OutputError
        If a folder cannot be written; before anything is executed.
    ExecutionError
        If a cell raises an error; what was executed is kept as ``NAME.failed.ipynb``.
    """
    chapter = get(chapter) if isinstance(chapter, str) else chapter
    chosen = values(chapter, assignments or {}, profile)
    if out is not None:
        require_writable(out, "--out")
    place = require_writable(folder(chosen), "build folder") / f"{chapter.name}.ipynb"
    key = _key(chapter, chosen)
    if _key_of(place) == key:
        _say(f"{chapter.name}: up to date ({chosen['profile']})")
    else:
        started = time.perf_counter()
        _say(f"{chapter.name}: executing ({chosen['profile']}) ...")
        _run(chapter, chosen, key, place, out or place.parent)
        _say(f"{chapter.name}: executed in {time.perf_counter() - started:.1f} s")
    if out is None:
        return place
    text = place.read_text(encoding="utf-8")
    write_together({out / place.name: lambda path: _write(path, text)}, "--out")
    return out / place.name


def execute_all(chosen: Mapping[str, Mapping[str, Any]], *, workers: int | None = None) -> dict[str, Path]:
    """Execute several chapters, some of them at the same time, and return the executed notebooks by name.

    Parameters
    ----------
    chosen : mapping of str to mapping
        For each chapter's name what `values` returns.
    workers : int, optional
        How many chapters are executed at once, each in processes of its own with one thread; by default as many as this
        process may use cores.

    Raises
    ------
    ArgumentError
        If `workers` is less than 1.
    OutputError
        If a folder cannot be written.
    ExecutionError
        If a cell raises an error: of the first chapter that fails, once those that had begun have ended. No other
        chapter is begun.
    """
    workers = cores() if workers is None else workers
    if workers < 1:
        raise ArgumentError("workers", f"out of range: {workers}", "1 or more")
    stale = [name for name, values in chosen.items() if not _is_up_to_date(name, values)]
    if min(len(stale), workers) < 2:
        return {name: execute(name, values) for name, values in chosen.items()}
    made = dict(zip(stale, _at_once(execute, [(name, chosen[name]) for name in stale], workers), strict=True))
    return {name: made[name] if name in made else execute(name, values) for name, values in chosen.items()}


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- reading scripts -------------------------------------------------------------------------------------------------


def _scripts() -> list[Path]:
    scripts = {path.stem: path for path in sorted(paths.notebooks().glob("*.py"))}
    order = [name for name in _contents() if name in scripts]
    return [scripts[name] for name in [*order, *(name for name in scripts if name not in order)]]


def _contents() -> list[str]:
    """Return the names of the chapters in the table of contents, in its order."""
    root = paths.checkout()
    if root is None or not (root / "_toc.yml").is_file():
        return []
    import yaml  # type: ignore[import-untyped]

    def files(node: Any) -> Iterator[str]:
        if isinstance(node, Mapping):
            if "file" in node:
                yield str(node["file"])
            for child in node.values():
                yield from files(child)
        elif isinstance(node, list):
            for child in node:
                yield from files(child)

    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return [Path(file).stem for file in files(toc) if Path(file).parent.name == "notebooks"]


def _read(path: Path) -> NotebookNode:
    import jupytext

    return jupytext.read(path, fmt="py:percent")


def _chapter(path: Path) -> Chapter:
    notebook = _read(path)
    cell = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)
    if cell is None or "parameters" not in cell.metadata.get("tags", []):
        problem = "its first code cell is not the parameters cell"
        raise ArgumentError(f"chapter {path.stem}", problem, "tag it parameters")
    headings = (
        line[2:].strip()
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("# ")
    )
    defaults, comments = _assignments(path.stem, cell.source)
    if "profile" not in defaults or "seed" not in defaults:
        raise ArgumentError(f"chapter {path.stem}", "its parameters lack profile or seed", "every chapter has both")
    return Chapter(path.stem, path, next(headings, path.stem), defaults, comments)


def _assignments(name: str, source: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the names, values and comments of a parameters cell."""
    defaults, comments, lines = {}, {}, source.splitlines()
    try:
        for node in ast.parse(source).body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(target, ast.Name) or not node.value:
                raise ValueError(f"line {node.lineno} is not an assignment to one name")
            defaults[target.id] = ast.literal_eval(node.value)
            rest = lines[(node.end_lineno or 1) - 1].encode()[node.end_col_offset or 0 :].decode().strip()
            comments[target.id] = rest.removeprefix("#").strip()
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(f"chapter {name}", f"its parameters cell: {error}", "literal values only") from None
    return defaults, comments


# -- executing -------------------------------------------------------------------------------------------------------


def _is_up_to_date(name: str, chosen: Mapping[str, Any]) -> bool:
    chapter = get(name)
    return _key_of(folder(chosen) / f"{name}.ipynb") == _key(chapter, chosen)


def _at_once(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], workers: int) -> list[T]:
    """Return what a function gives for each call, in their order; calls run at once in processes of their own.

    After an error no other call is begun.  Processes and not threads, so that an interruption reaches each of them.
    """
    results: list[T | None] = [None] * len(calls)
    waiting = iter(enumerate(calls))
    running: dict[Future[T], int] = {}
    with ProcessPoolExecutor(min(workers, len(calls)), mp_context=multiprocessing.get_context("spawn")) as pool:

        def begin(number: int) -> None:
            # No more than can run: what a pool holds in its queue cannot be taken back.
            for place, call in itertools.islice(waiting, number):
                running[pool.submit(function, *call)] = place

        begin(workers)
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                results[running.pop(future)] = future.result()
            begin(len(done))
    return cast("list[T]", results)


def _key(chapter: Chapter, chosen: Mapping[str, Any]) -> str:
    """Return the digest of everything that an executed notebook depends on."""
    code = "\n".join(
        line
        for cell in _read(chapter.path).cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
        if not line.startswith(("%", "!"))
    )
    has_study = chapter.name in studies.names()
    registry = paths.data() / "registry.toml"
    return provenance.digest(
        {
            "script": provenance.file_digest(chapter.path),
            "parameters": dict(chosen),
            "source": provenance.source_digest(
                [studies.source(chapter.name)] if has_study else [], without=(), figures=True, text=code
            ),
            "files": provenance.package_files_digest(),
            "data": provenance.file_digest(registry) if registry.is_file() else "",
            "at_hand": _at_hand(),
            "records": [provenance.file_digest(path) for path in sorted((paths.data() / "benchmarks").glob("*.json"))],
            "python": platform.python_version(),
            "versions": provenance.versions(),
        }
    )


def _at_hand() -> list[str]:
    """Return what can be read here: a chapter takes what it finds, and is executed again once there is more."""
    from fairfront.datasets import image_names, inventory, names, published_records

    found = [name for name in (*names(), *image_names()) if inventory.at_hand(name)]
    return [*found, published_records.digest()]


def _key_of(place: Path) -> str | None:
    """Return the key that an executed notebook was made with, or None where it is absent or damaged."""
    import nbformat

    try:
        return str(nbformat.read(place, as_version=4).metadata["fairfront"]["key"])
    except (OSError, ValueError, KeyError, AttributeError, TypeError, nbformat.ValidationError):
        return None


def _run(chapter: Chapter, chosen: dict[str, Any], key: str, place: Path, failed_folder: Path) -> None:
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it warns of parameters that its pattern does not find
    _teach_tuples()
    failed = failed_folder / f"{chapter.name}.failed.ipynb"
    changed = {name: value for name, value in chosen.items() if value != chapter.defaults[name]}
    with tempfile.TemporaryDirectory(prefix="fairfront-") as name:
        work = Path(name) / place.name
        try:
            with _kernel_environment():
                papermill.execute_notebook(
                    _read(chapter.path),
                    work,
                    parameters=changed,
                    kernel_name="python3",
                    progress_bar=on_terminal(),
                    cwd=name,
                    extra_arguments=["--log-level=ERROR"],  # the kernel's remark that its sockets are not encrypted
                )
        except (PapermillExecutionError, DeadKernelError) as error:
            kept = ""
            if work.is_file():
                text = work.read_text(encoding="utf-8")
                write_together({failed: lambda path: _write(path, text)}, "--out")
                kept = f"\nkept: {failed}"
            raise ExecutionError(f"chapter {chapter.name}, {_failure(error)}{kept}") from None
        notebook = nbformat.read(work, as_version=4)
    _clean(notebook, {"profile": chosen["profile"], "parameters": dict(chosen), "key": key})
    text = nbformat.writes(notebook) + "\n"
    write_together({place: lambda path: _write(path, text)}, "build folder")
    failed.unlink(missing_ok=True)


def _teach_tuples() -> None:
    """Have papermill write a tuple as one; by itself it writes the text of it, as a string."""
    from papermill.translators import PythonTranslator, papermill_translators

    class Translator(PythonTranslator):
        @classmethod
        def translate(cls, val: Any) -> str:
            if isinstance(val, tuple):
                comma = "," if len(val) == 1 else ""
                return f"({', '.join(map(cls.translate, val))}{comma})"
            return str(super().translate(val))

    papermill_translators.register("python", Translator)


def _failure(error: Any) -> str:
    """Return which cell failed, and how, in two lines."""
    if not hasattr(error, "exec_count"):
        return "the kernel died (is there enough memory?)"
    first = next((line for line in error.source.splitlines() if line.strip()), "")
    return f"code cell {error.exec_count} ({first.strip()}): {error.ename}: {error.evalue}"


def _kernel_environment() -> contextlib.AbstractContextManager[None]:
    """Set what kernels inherit: one thread unless the caller says otherwise, figures inline, no debugger's remark."""
    return environment(
        OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"),
        MPLBACKEND="module://matplotlib_inline.backend_inline",
        PYDEVD_DISABLE_FILE_VALIDATION="1",
    )


def _clean(notebook: NotebookNode, about: dict[str, Any]) -> None:
    """Take out of an executed notebook what differs from run to run or names a path of this machine."""
    notebook.metadata.pop("papermill", None)
    notebook.metadata.pop("jupytext", None)
    notebook.metadata["fairfront"] = about
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = _without_paths(output["text"])
            if "traceback" in output:
                output["traceback"] = [_without_paths(line) for line in output["traceback"]]
            for kind, value in output.get("data", {}).items():
                if kind.startswith("text/") and isinstance(value, str):
                    output["data"][kind] = _without_paths(value)


def _without_paths(text: str) -> str:
    roots = {paths.checkout(), paths.package().parent, Path(sys.prefix), Path(tempfile.gettempdir()), Path.home()}
    for root in sorted({str(root) for root in roots if root and len(root.parts) > 1}, key=len, reverse=True):
        text = text.replace(root, "...")
    return text


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
