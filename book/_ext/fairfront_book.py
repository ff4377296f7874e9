"""What the book needs from Sphinx beyond its packages: the full MathJax bundle, and pages that are read, never typed.

Directives
----------
``{claims} PAPER|chapters``
    The claims ledger: every claim of a paper, or the claims of both that a chapter examines.
``{claims-summary}``
    How many claims of each paper stand where.
``{data-sets}``
    What can be loaded, from the registry.
``{datasheets}``
    The datasheets of the embedded files.
``{api}``
    The reference of every part of the package: first the modules that are its lines, then what they miss.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import fairfront
from fairfront import datasets
from fairfront.runs.ledger import VERDICTS, ClaimRecord, ledger

MATHJAX = "mathjax/tex-chtml-full.js"
PAPERS = {"badr": "First paper (bilevel)", "spbm": "Second paper (penalty-barrier)"}
NOT_AN_API = {"fairfront.cli", "fairfront.__main__"}
UNINTENDED = re.compile(r"(?<!\\)\||(?<![\\*\w])\*\*(?=\w+\b(?!.*\*\*))")
Cell = str | nodes.Node | Sequence[nodes.Node]


def select_full_mathjax(app: Sphinx, config: Config) -> None:
    """Load MathJax's full bundle: sphinx-mathjax-offline carries it, but always selects a smaller one."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    folders = spec.submodule_search_locations if spec else None
    if not folders or not (Path(folders[0]) / "static" / MATHJAX).is_file():
        raise ExtensionError(f"sphinx-mathjax-offline does not carry {MATHJAX}: install requirements.lock anew")
    config.mathjax_path = MATHJAX


def skip_generated(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn generates, whose text refers to pages of its own book."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def escape_marks(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep the bars of absolute values and the stars of keyword arguments in docstrings from being read as markup."""

    def escaped(mark: re.Match[str]) -> str:
        return "".join(f"\\{character}" for character in mark[0])

    for number, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            parts = re.split(r"(``.*?``)", line)
            lines[number] = "".join(p if p.startswith("``") else UNINTENDED.sub(escaped, p) for p in parts)


def link_fields(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.TextElement) -> Any:
    """Lead a reference to a field of a documented class to the class, whose docstring describes its fields."""
    if node.get("refdomain") != "py" or node["reftype"] != "attr":
        return None
    owner, _, field = node["reftarget"].rpartition(".")
    domain = env.get_domain("py")
    for name, _entry in domain.find_obj(env, node.get("py:module"), node.get("py:class"), owner, "class", 1):
        module, _, cls = name.rpartition(".")
        if field in getattr(importlib.import_module(module), cls).__annotations__:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "class", name, node, text)
    return None


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], widths: Sequence[int]) -> nodes.table:
    """Return a table; a cell is text, a node of text or a sequence of paragraphs."""

    def entry(cell: Cell) -> nodes.entry:
        if isinstance(cell, str):
            cell = nodes.Text(cell)
        return nodes.entry("", *([nodes.paragraph("", "", cell)] if isinstance(cell, nodes.Node) else cell))

    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(head))
    group += nodes.thead("", nodes.row("", *map(entry, head)))
    group += nodes.tbody("", *(nodes.row("", *map(entry, row)) for row in rows))
    return nodes.table("", group, classes=["ledger"])


def lines(*texts: str) -> list[nodes.Node]:
    """Return a paragraph for each text that is not empty; an apostrophe stays one, as phi' needs."""
    return [nodes.paragraph("", "", nodes.Text(text), support_smartquotes=False) for text in texts if text]


class Claims(SphinxDirective):
    """The claims ledger as a table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_reread()
        scope, records = self.arguments[0], ledger()
        papers = {record.paper for record in records}
        if scope not in papers | {"chapters"}:
            raise self.error(f"no such paper: {scope!r} (known: {', '.join(sorted(papers))}, chapters)")
        shown = [r for r in records if (r.chapter if scope == "chapters" else r.paper == scope)]
        return [table(("Item", "Claim", "Measured here", "Verdict"), map(self._row, shown), (14, 34, 34, 18))]

    def _row(self, claim: ClaimRecord) -> Sequence[Cell]:
        paper = f"Paper: {claim.paper_value}" if claim.paper_value else ""
        where = "; ".join(filter(None, (claim.data, claim.profile and f"profile {claim.profile}")))
        verdict = lines(claim.verdict, claim.reason)
        if claim.chapter:
            verdict.append(nodes.paragraph("", "", self._link(claim.chapter)))
        return claim.item, lines(claim.statement, paper), lines(claim.measured, where), verdict

    def _link(self, chapter: str) -> nodes.Node:
        target = f"/notebooks/{chapter}"
        return addnodes.pending_xref(
            "",
            nodes.inline("", chapter),
            refdomain="std",
            reftype="doc",
            reftarget=target,
            refdoc=self.env.docname,
            refexplicit=False,
            refwarn=True,
        )


class ClaimsSummary(SphinxDirective):
    """How many claims of each paper have which verdict."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_reread()
        records = ledger()
        papers = dict.fromkeys(record.paper for record in records)
        verdicts = dict.fromkeys([*VERDICTS, *(record.verdict for record in records)])
        counts = Counter((record.paper, record.verdict) for record in records)
        rows = [(v, *(str(counts[p, v]) for p in papers)) for v in verdicts]
        rows.append(("all", *(str(sum(r.paper == p for r in records)) for p in papers)))
        return [table(("Verdict", *(PAPERS[p] for p in papers)), rows, (40, *(20 for _ in papers)))]


class DataSets(SphinxDirective):
    """The data sets of the registry."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        infos = [datasets.info(name) for name in datasets.names(embedded=True)]
        rows = [
            (
                nodes.literal("", info.name),
                lines(f"{info.target} ({info.task})", info.notice),
                ", ".join(attribute.name for attribute in info.sensitive),
                f"{info.file.rows:,}",
                info.file.licence,
            )
            for info in infos
        ]
        return [
            table(("Name", "Target", "Sensitive attributes", "Rows of the file", "Terms"), rows, (20, 34, 18, 10, 18))
        ]


class Parsed(SphinxDirective):
    """Base of the directives that write Markdown and have it parsed, headings included."""

    def markdown(self) -> Iterator[str]:
        """Return the lines to parse."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return what the Markdown parses to."""
        parent = nodes.section()
        parent.document = self.state.document
        self.state.nested_parse(
            StringList(list(self.markdown()), source=self.env.docname), 0, parent, match_titles=True
        )
        return parent.children


class Datasheets(Parsed):
    """The datasheets of the embedded files, two heading levels down."""

    def markdown(self) -> Iterator[str]:
        """Return the lines to parse."""
        sheets = dict.fromkeys(datasets.info(name).file.datasheet for name in datasets.names())
        for sheet in sheets:
            self.env.note_dependency(str(sheet))
            yield from re.sub(r"^#", "###", sheet.read_text("utf-8"), flags=re.MULTILINE).splitlines()
            yield ""


class Api(Parsed):
    """The reference of modules: every public object once, where it is to be imported from."""

    has_content = True

    def markdown(self) -> Iterator[str]:
        """Return the lines to parse."""
        first = [line.strip() for line in self.content if line.strip()]
        parts = [f"fairfront.{module.name}" for module in pkgutil.iter_modules(fairfront.__path__)]
        seen: set[int] = set()
        for name in dict.fromkeys([*first, *sorted(set(parts) - NOT_AN_API)]):
            yield from self._module(importlib.import_module(name), seen)

    def _module(self, module: ModuleType, seen: set[int]) -> Iterator[str]:
        public = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
        fresh = {n: o for n, o in public.items() if not inspect.ismodule(o) and id(o) not in seen}
        seen.update(map(id, fresh.values()))
        code = [name for name, item in fresh.items() if inspect.isclass(item) or inspect.isroutine(item)]
        yield from (f"## `{module.__name__}`", "", "```{eval-rst}", f".. automodule:: {module.__name__}")
        yield from ["   :members: " + ", ".join(code)] if code else []
        # Constants and aliases of types get a place that docstrings can link to, even where they say nothing.
        for name in sorted(fresh.keys() - set(code)):
            alias = typing.get_origin(fresh[name]) is not None
            entry = f".. py:data:: {module.__name__}.{name}" if alias else f".. autodata:: {module.__name__}.{name}"
            yield from ("", entry, *([] if alias else ["   :no-value:"]))
        yield from ("```", "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and the choice of MathJax."""
    app.connect("config-inited", select_full_mathjax, priority=900)
    app.connect("missing-reference", link_fields)
    app.connect("autodoc-process-docstring", escape_marks, priority=100)
    app.connect("autodoc-skip-member", skip_generated)
    app.add_directive("claims", Claims)
    app.add_directive("claims-summary", ClaimsSummary)
    app.add_directive("data-sets", DataSets)
    app.add_directive("datasheets", Datasheets)
    app.add_directive("api", Api)
    return {"version": fairfront.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
