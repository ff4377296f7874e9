"""The book: executed chapters and pages, built by jupyter-book; and one chapter as a page of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairfront import paths
from fairfront.errors import ArgumentError, FairfrontError, unknown_name
from fairfront.runs import notebooks, provenance
from fairfront.runs.files import require_writable, temporary_folder, writing
from fairfront.runs.ledger import ledger
from fairfront.studies.parameters import PROFILES

__all__ = ["BuildError", "build", "can_build", "page"]

STAMP = ".fairfront-build.json"
"""File of a built book that says what it was built from."""


class BuildError(FairfrontError):
    """jupyter-book has ended with an error or, in a strict build, with warnings; the message holds them."""


def can_build() -> bool:
    """Return whether the book's configuration is at hand: only in a checkout."""
    root = paths.checkout()
    return root is not None and all((root / name).exists() for name in ("_config.yml", "_toc.yml", "book"))


def build(
    profile: str = "quick",
    chapter: str | None = None,
    assignments: Mapping[str, object] | None = None,
    *,
    strict: bool = True,
    out: Path | None = None,
    workers: int | None = None,
) -> Path:
    """Execute all chapters, build the book from them and return its folder.

    What is up to date is not done again. A build that fails leaves the book before it as it was.

    Parameters
    ----------
    profile : str, default "quick"
        "smoke", "quick" or "full".
    chapter : str, optional
        The chapter that the assignments are for.
    assignments : mapping of str to str or object, optional
        Parameters of that chapter.
    strict : bool, default True
        Whether a warning, or a reference that leads nowhere, is an error.
    out : Path, optional
        The book's folder, replaced as a whole; ``_build/html`` by default.
    workers : int, optional
        How many chapters are executed at once; by default one for each core.

    Raises
    ------
    ArgumentError
        If the chapter, the profile or a parameter is unknown, or a value wrong, or if `out` holds something else than a
        book; before anything is executed.
    ExecutionError
        If a chapter raises an error.
    OutputError
        If the book's folder cannot be written; before anything is executed.
    BuildError
        If jupyter-book fails.
    """
    if not can_build():
        raise ArgumentError("book", "its pages are not here", "run it from a checkout of the repository")
    if profile not in PROFILES:
        raise unknown_name("profile", profile, PROFILES)
    if assignments and chapter is None:
        raise ArgumentError("chapter", "parameters are given, but not of which chapter", "name it: --chapter NAME")
    html = paths.build() / "html" if out is None else out.absolute()
    if out is not None and not _may_replace(html):
        problem = f"{out} holds something that is no book"
        raise ArgumentError("--out", problem, "name a new folder: it is replaced as a whole")
    named = None if chapter is None else notebooks.get(chapter)
    chosen = {
        item.name: notebooks.values(item, (assignments or {}) if named and item.name == named.name else {}, profile)
        for item in notebooks.chapters()
    }
    require_writable(paths.build(), "build folder")
    require_writable(html.parent, "build folder" if out is None else "--out")
    executed = notebooks.execute_all(chosen, workers=workers)
    about = {"profile": profile, "parameters": chosen}
    key = _key(executed.values(), strict)
    if _stamp(html).get("key") == key:
        print(f"book: up to date ({html / 'index.html'})", file=sys.stderr)
        return html
    print("book: building ...", file=sys.stderr, flush=True)
    started = time.perf_counter()
    # A build reads a folder of its own, whose name has no dot in front: jupyter-book passes over hidden ones.
    with (
        writing(html, "build folder" if out is None else "--out"),
        tempfile.TemporaryDirectory(prefix="fairfront-") as staging,
    ):
        source = Path(staging) / "src"
        _stage(source, executed.values(), "notebooks")
        with temporary_folder(html) as folder:
            made = _jupyter_book(source, _root() / "_toc.yml", folder, strict=strict, log=paths.build() / "book.log")
            _write_stamp(made, {**about, "strict": strict, "key": key, "date": provenance.now(), **provenance.commit()})
            if html.exists():
                os.replace(html, folder / "old")
            os.replace(made, html)
    print(f"book: built in {time.perf_counter() - started:.1f} s ({html / 'index.html'})", file=sys.stderr, flush=True)
    return html


def page(notebook: Path, out: Path) -> Path:
    """Build one executed notebook as a page that looks as it does in the book, and return ``OUT/NAME.html``.

    References to other pages of the book lead nowhere here; they are shown as text.

    Parameters
    ----------
    notebook : Path
        The executed notebook.
    out : Path
        A folder; ``_static`` and what else the page needs come beside the page.

    Raises
    ------
    ArgumentError
        If the book's configuration is not at hand (`can_build`).
    OutputError
        If the folder cannot be written.
    BuildError
        If jupyter-book fails.
    """
    if not can_build():
        raise ArgumentError("page", "the book's configuration is not here", "run it from a checkout of the repository")
    require_writable(out, "--out")
    with tempfile.TemporaryDirectory(prefix="fairfront-") as name:
        source = Path(name) / "src"
        _stage(source, [notebook], ".")
        _add_bibliography(source / notebook.name)
        toc = source / "_toc.yml"
        toc.write_text(f"format: jb-book\nroot: {notebook.stem}\n", encoding="utf-8")
        made = _jupyter_book(source, toc, Path(name) / "made", strict=False, log=paths.build() / "page.log")
        with writing(out, "--out"):
            # The index would only lead to the page, and a folder may get several.
            shutil.copytree(made, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "index.html"))
    return out / f"{notebook.stem}.html"


def _root() -> Path:
    root = paths.checkout()
    assert root is not None  # can_build has been asked
    return root


def _stage(source: Path, executed: Iterable[Path], where: str) -> None:
    """Lay out the folder that jupyter-book reads: the pages in book/, the notebooks in a folder."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(_root() / "book", source / "book", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    (source / where).mkdir(exist_ok=True)
    for path in executed:
        shutil.copyfile(path, source / where / path.name)


def _add_bibliography(path: Path) -> None:
    """Give a page of its own the references that it cites."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    if any(cell.cell_type == "markdown" and "{cite" in cell.source for cell in notebook.cells):
        text = "## References\n\n```{bibliography}\n:filter: docname in docnames\n```"
        notebook.cells.append(nbformat.v4.new_markdown_cell(text))
        nbformat.write(notebook, path)


def _jupyter_book(source: Path, toc: Path, output: Path, *, strict: bool, log: Path) -> Path:
    """Run jupyter-book in a process of its own, from nothing, and return the folder of pages."""
    output.mkdir(exist_ok=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(source), "--all"]
    command += ["--config", str(_root() / "_config.yml"), "--toc", str(toc), "--path-output", str(output)]
    command += ["-W", "-n", "--keep-going"] if strict else []
    # Everything is built anew: a page that is taken over from the build before would hide its warnings.
    answer = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=_root(), check=False, errors="replace"
    )
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(answer.stdout, encoding="utf-8")
    made = output / "_build" / "html"
    if answer.returncode != 0 or not made.is_dir():
        lines = answer.stdout.splitlines()
        complaints = [line for line in lines if "WARNING" in line or "ERROR" in line or "rror:" in line]
        raise BuildError("\n".join(["jupyter-book failed:", *(complaints or lines[-20:]), f"(all of it: {log})"]))
    return made


def _key(executed: Iterable[Path], strict: bool) -> str:
    """Return the digest of all that pages depend on; the reference shows the package, the ledger the store."""
    root, data, package = _root(), paths.data(), paths.package()
    patterns = [(root, "_config.yml"), (root, "_toc.yml"), (root, "requirements.lock"), (root, "book/**/*")]
    patterns += [(package, "**/*.py"), (data, "*.toml"), (data, "**/*.md")]
    inputs = [
        [path.relative_to(folder).as_posix(), provenance.file_digest(path)]
        for folder, pattern in patterns
        for path in sorted(folder.glob(pattern))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    return provenance.digest(
        {
            "inputs": inputs,
            "executed": {path.name: provenance.file_digest(path) for path in executed},
            "ledger": [dataclasses.asdict(record) for record in ledger()],
            "strict": strict,
        }
    )


def _may_replace(html: Path) -> bool:
    """Return whether nothing is there, or an empty folder, or a book that `build` has made."""
    return not html.exists() or (html / STAMP).is_file() or (html.is_dir() and not any(html.iterdir()))


def _stamp(html: Path) -> dict[str, Any]:
    """Return what a built book says it was built from; nothing where it is absent or not whole."""
    try:
        stamp = json.loads((html / STAMP).read_text(encoding="utf-8"))
        return dict(stamp) if (html / "index.html").is_file() else {}
    except (OSError, ValueError, TypeError):
        return {}


def _write_stamp(html: Path, about: Mapping[str, Any]) -> None:
    (html / STAMP).write_text(json.dumps(about, indent=1), encoding="utf-8")
