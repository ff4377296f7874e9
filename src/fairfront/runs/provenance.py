"""Where a result comes from: digests of the code that made it, the commit, the versions, the date.

Nothing here says on which machine, or under whose name, something was computed.
"""

from __future__ import annotations

import ast
import datetime
import functools
import hashlib
import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import fairfront
from fairfront import paths

__all__ = [
    "NOT_COMPUTATION",
    "canonical_json",
    "commit",
    "digest",
    "file_digest",
    "now",
    "package_files_digest",
    "source_digest",
    "versions",
]

NOT_COMPUTATION: tuple[str, ...] = ("fairfront.plotting", "fairfront.cli", "fairfront.runs")
"""Modules that show, command or store results and never change one."""

_PACKAGES = ("fairfront", "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "cvxpy", "torch", "jax", "matplotlib")


def canonical_json(value: Any) -> str:
    """Return the one spelling of a JSON value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Return the SHA-256 (hexadecimal) of a JSON value's canonical spelling."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hexadecimal) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def now() -> str:
    """Return the time in UTC, to the second, as ISO 8601 writes it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def commit() -> dict[str, Any]:
    """Return the commit of the checkout and whether tracked files differ from it; empty and None outside one."""
    root, git = paths.checkout(), shutil.which("git")
    if root is None or git is None:
        return {"commit": "", "modified": None}

    def ask(*arguments: str) -> str | None:
        answer = subprocess.run([git, "-C", str(root), *arguments], capture_output=True, text=True, check=False)
        return answer.stdout.strip() if answer.returncode == 0 else None

    head, changes = ask("rev-parse", "HEAD"), ask("status", "--porcelain", "--untracked-files=no")
    return {"commit": head or "", "modified": None if head is None else bool(changes)}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    found = {package: _version(package) for package in _PACKAGES}
    return {"python": platform.python_version()} | {package: version for package, version in found.items() if version}


@functools.cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def source_digest(
    sources: Iterable[Path], *, without: tuple[str, ...] = NOT_COMPUTATION, figures: bool = False, text: str = ""
) -> str:
    """Return the SHA-256 of the code that some files run: their own, and every fairfront module they import in turn.

    The syntax trees are hashed, without docstrings and, unless asked for, without functions named ``figure*`` and the
    private functions that only these use: neither a comment, a docstring nor a restyled figure makes a result stale.
    A TOML file that a module names, and that lies beside the module or below, counts with it: its settings compute too.

    Parameters
    ----------
    sources : iterable of Path
        The Python files to begin with.
    without : tuple of str, default `NOT_COMPUTATION`
        Modules, with their submodules, that are not followed.
    figures : bool, default False
        Whether functions named ``figure*`` count.
    text : str, default ""
        Further source text to begin with, for instance a chapter's code.
    """
    units, pending = {}, [(path.stem, path.parent, *_unit(path, path.stat().st_mtime_ns, figures)) for path in sources]
    looked_up: set[str] = set()
    if text:
        pending.append(("", paths.package(), *_parse(text, "", figures)))
    while pending:
        name, folder, tree_digest, imports, settings = pending.pop()
        units[name] = tree_digest
        for file in sorted(found for setting in settings for found in folder.rglob(setting)):
            units[f"{name}:{file.name}"] = file_digest(file)
        for module in imports:
            if module in looked_up or any(module == other or module.startswith(f"{other}.") for other in without):
                continue
            looked_up.add(module)
            path = _module_path(module)
            if path is not None and module not in units:
                units[module] = ""
                pending.append((module, path.parent, *_unit(path, path.stat().st_mtime_ns, figures)))
    return digest(units)


def package_files_digest() -> str:
    """Return the SHA-256 of the package's files that are not code (grids, style sheets); embedded data is left out."""
    root = paths.package()
    files = sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and not path.relative_to(root).parts[0].startswith("_")
    )
    return digest({path.relative_to(root).as_posix(): file_digest(path) for path in files})


@functools.lru_cache(maxsize=1024)
def _unit(path: Path, mtime_ns: int, figures: bool) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return _parse(path.read_text(encoding="utf-8"), _package_of(path), figures)


def _parse(text: str, package: str, figures: bool) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the digest of a module's tree, the modules that it may import, and the files of settings that it names."""
    tree = _Stripper(figures).visit(ast.parse(text))
    words = {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    settings = tuple(sorted(word for word in words if re.fullmatch(r"\w+\.toml", word)))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(_imports(tree, package)), settings


class _Stripper(ast.NodeTransformer):
    """Takes away bare strings (docstrings) and, unless they count, figures: functions ``figure*`` and their helpers."""

    def __init__(self, figures: bool) -> None:
        self.figures = figures

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        drawn = {child for child in node.body if isinstance(child, ast.FunctionDef) and child.name.startswith("figure")}
        while drawn and not self.figures:
            node.body = [child for child in node.body if child not in drawn]
            used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            private = (child for child in node.body if isinstance(child, ast.FunctionDef) and child.name[0] == "_")
            drawn = {child for child in private if child.name not in used}  # now that the figures are gone
        return self.generic_visit(node)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield every fairfront module that a tree may import, its parent packages included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == fairfront.__name__:
                yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _module_path(module: str) -> Path | None:
    """Return the file of a fairfront module, or None where the name is something inside a module."""
    base = paths.package().joinpath(*module.split(".")[1:])
    candidates = (base / "__init__.py", base.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)


def _package_of(path: Path) -> str:
    """Return the dotted name of the package that a file of fairfront belongs to, or "" outside of it."""
    try:
        inside = path.resolve().parent.relative_to(paths.package())
    except ValueError:
        return ""
    return ".".join([fairfront.__name__, *inside.parts])
