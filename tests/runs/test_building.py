from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from fairfront import paths
from fairfront.errors import ArgumentError, OutputError
from fairfront.runs import book, notebooks

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(folders: Path, toy_chapter: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small checkout: the real configuration and static files, a landing page and the toy chapter."""
    root = folders / "checkout"
    (root / "book").mkdir(parents=True)
    shutil.copy(ROOT / "_config.yml", root)
    for name in ("_static", "_ext"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name)
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    (root / "book" / "index.md").write_text("# A book\n\nSee {prf:ref}`thm-toy`.\n")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: notebooks/toy\n")
    data = paths.data()
    monkeypatch.setattr(paths, "data", lambda: data)
    monkeypatch.setattr(paths, "checkout", lambda: root)
    return root


@pytest.mark.book
def test_a_book_is_built_once_and_again_only_when_something_changed(
    checkout: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    html = book.build("smoke")
    assert html == folders / "build" / "html"
    assert "Squares" in (html / "notebooks" / "toy.html").read_text()
    stamp = json.loads((html / ".fairfront-build.json").read_text())
    assert stamp["profile"] == "smoke"
    assert stamp["parameters"] == {"toy": {"profile": "smoke"}}
    assert str(folders) not in (html / ".fairfront-build.json").read_text()
    assert "smoke 0 0.5" in (html / "notebooks" / "toy.html").read_text()
    assert {path.name for path in (folders / "build").iterdir()} == {"html", "notebooks", "book.log"}

    with monkeypatch.context() as patch:
        patch.setattr(book, "_jupyter_book", lambda *a, **k: pytest.fail("built again"))
        assert book.build("smoke") == html

    # A page that goes wrong fails the build, says why, and leaves the book before it.
    before = (html / "book" / "index.html").read_text()
    (checkout / "book" / "index.md").write_text("# A book\n\nSee {prf:ref}`thm-of-nobody`.\n")
    with pytest.raises(book.BuildError, match=r"(?s)^jupyter-book failed:.*thm-of-nobody"):
        book.build("smoke")
    assert (html / "book" / "index.html").read_text() == before
    with pytest.raises(book.BuildError):
        book.build("smoke")

    # Parameters of a chapter go into the book, and out of it again.
    (checkout / "book" / "index.md").write_text("# Another book\n\nSee {prf:ref}`thm-toy`.\n")
    book.build("smoke", "toy", {"seed": "1"})
    assert "smoke 1 0.5" in (html / "notebooks" / "toy.html").read_text()
    assert "Another book" in (html / "book" / "index.html").read_text()
    assert json.loads((html / ".fairfront-build.json").read_text())["parameters"]["toy"]["seed"] == 1


@pytest.mark.parametrize("changed", ["page", "configuration", "contents", "notebook", "ledger", "strict"])
def test_the_key_is_of_everything_that_shows(
    checkout: Path, folders: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    notebook, strict = folders / "toy.ipynb", True
    notebook.write_text("{}")
    before = book._key([notebook], strict)
    assert book._key([notebook], strict) == before
    match changed:
        case "page":
            (checkout / "book" / "index.md").write_text("# Other\n")
        case "configuration":
            (checkout / "_config.yml").write_text("title: Other\n")
        case "contents":
            (checkout / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
        case "notebook":
            notebook.write_text("[]")
        case "ledger":
            monkeypatch.setattr(book, "ledger", lambda: [])
        case "strict":
            strict = False
    assert book._key([notebook], strict) != before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("huge",), r"^profile: unknown: 'huge'"),
        (("smoke", "tyo"), r"^chapter: unknown: 'tyo' .*did you mean toy"),
        (("smoke", "toy", {"sead": "1"}), r"^parameter: unknown: 'sead'"),
        (("smoke", "toy", {"seed": "x"}), r"^seed: wrong type"),
        (("smoke", None, {"seed": "1"}), r"^chapter: parameters are given"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_executed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[Any, ...], problem: str
) -> None:
    monkeypatch.setattr(notebooks, "execute", lambda *a, **k: pytest.fail("executed"))
    with pytest.raises(ArgumentError, match=problem):
        book.build(*arguments)


def test_a_folder_that_is_no_book_is_not_replaced(
    checkout: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "execute", lambda *a, **k: pytest.fail("executed"))
    kept = folders / "thesis" / "chapter.tex"
    kept.parent.mkdir()
    kept.write_text("years of work", encoding="utf-8")
    for out in (kept.parent, kept):
        with pytest.raises(ArgumentError, match=r"^--out: .*no book"):
            book.build("smoke", out=out)
    assert kept.read_text(encoding="utf-8") == "years of work"


def test_a_book_that_cannot_be_written_is_found_out_before_anything_is_executed(
    checkout: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "execute", lambda *a, **k: pytest.fail("executed"))
    (folders / "file").write_text("")
    with pytest.raises(OutputError, match=r"^--out: cannot write to "):
        book.build("smoke", out=folders / "file" / "book")


def test_a_book_needs_a_checkout(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "checkout", lambda: None)
    assert not book.can_build()
    with pytest.raises(ArgumentError, match=r"^book: .*checkout"):
        book.build()
    with pytest.raises(ArgumentError, match=r"^page: .*checkout"):
        book.page(folders / "toy.ipynb", folders)


@pytest.mark.book
def test_a_page_of_its_own_looks_as_in_the_book(checkout: Path, folders: Path) -> None:
    text = (
        "# Alone\n\n```{prf:theorem} Squares\n$x^2 \\ge 0$, {cite:t}`tanji2026`.\n```\n\nSee {doc}`/book/elsewhere`.\n"
    )
    notebook = folders / "alone.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)]), notebook)
    (folders / "out").mkdir()
    (folders / "out" / "index.html").write_text("mine")
    page = book.page(notebook, folders / "out")
    assert page == folders / "out" / "alone.html"
    html = page.read_text()
    assert "Theorem 1" in html and "Squares" in html
    assert 'id="references"' in html and "tex-chtml-full.js" in html
    assert (folders / "out" / "_static" / "mathjax" / "tex-chtml-full.js").is_file()
    assert (folders / "out" / "index.html").read_text() == "mine"
    assert str(folders) not in html


def test_a_page_that_cannot_be_written_is_found_out_first(
    checkout: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "_jupyter_book", lambda *a, **k: pytest.fail("built"))
    (folders / "file").write_text("")
    with pytest.raises(OutputError, match=r"^--out: cannot write to "):
        book.page(folders / "toy.ipynb", folders / "file" / "out")
