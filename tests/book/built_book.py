"""A built book, read as files: its pages and their elements."""

from __future__ import annotations

from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


def toc() -> list[str]:
    """Return the pages of the table of contents, as paths without a suffix, in order."""
    content = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return [content["root"], *(chapter["file"] for part in content["parts"] for chapter in part["chapters"])]


def chapters() -> list[str]:
    """Return the executed ones of these pages."""
    return [page for page in toc() if page.startswith("notebooks/")]


class Element:
    """An element of a page: its tag, attributes and text, and what encloses it."""

    def __init__(self, tag: str, attributes: dict[str, str], parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.text = ""

    def inside(self, tag: str) -> Element | None:
        """Return the nearest enclosing element of that tag, or None."""
        element = self.parent
        while element is not None and element.tag != tag:
            element = element.parent
        return element


class Page(HTMLParser):
    """A page's elements, in the order of the source."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: Element | None = None
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self._open)
        self.elements.append(element)
        if tag not in VOID:
            self._open = element

    def handle_endtag(self, tag: str) -> None:
        closing = self._open
        while closing is not None and closing.tag != tag:
            closing = closing.parent
        if closing is not None:
            self._open = closing.parent

    def handle_data(self, data: str) -> None:
        element = self._open
        while element is not None:
            element.text += data
            element = element.parent

    def all(self, tag: str) -> list[Element]:
        """Return the elements of that tag."""
        return [element for element in self.elements if element.tag == tag]

    @cached_property
    def ids(self) -> set[str]:
        """Every anchor of the page."""
        return {element.attributes["id"] for element in self.elements if "id" in element.attributes}


class Book:
    """A built book."""

    def __init__(self, html: Path) -> None:
        self.html = html
        self._pages: dict[str, Page] = {}

    def page(self, name: str) -> Page:
        """Return a page by its path without a suffix."""
        if name not in self._pages:
            self._pages[name] = Page((self.html / f"{name}.html").read_text("utf-8"))
        return self._pages[name]

    def names(self) -> list[str]:
        """Return every page, as paths without a suffix."""
        return sorted(path.relative_to(self.html).with_suffix("").as_posix() for path in self.html.rglob("*.html"))
