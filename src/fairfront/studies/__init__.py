"""The studies: one module for each figure, table or theorem of the papers that is computed.

A study module offers ``TITLE``, ``Parameters`` (a frozen dataclass over
`fairfront.studies.parameters.StudyParameters`), ``datasets(parameters)``, ``run(parameters, progress)``,
``measure(tables, parameters)`` and functions ``figure_*(tables, parameters)``. One whose work falls into parts names
them, ``units(parameters)`` (see `fairfront.runs.store`); ``ALONE = True`` says that it takes times.

Every public module of this package other than `parameters`, and `experiments`, `gridruns`, `hypergrids`, `instances`,
`landscapes`, `profiles`, `solver_runs` and `strategies`, which several studies share, is a study.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType

from fairfront.errors import unknown_name

__all__ = ["get", "names", "source", "title"]

_NOT_STUDIES = frozenset(
    {
        "experiments",
        "gridruns",
        "hypergrids",
        "instances",
        "landscapes",
        "parameters",
        "profiles",
        "solver_runs",
        "strategies",
    }
)


def names() -> tuple[str, ...]:
    """Return the names of all studies, in alphabetical order, without importing any of them."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in found if name not in _NOT_STUDIES and not name.startswith("_")))


def get(name: str) -> ModuleType:
    """Return the module of a study.

    Parameters
    ----------
    name : str
        One of `names()`.

    Raises
    ------
    ArgumentError
        If no study has this name; the nearest names are in the message.
    """
    return importlib.import_module(_checked(name))


def source(name: str) -> Path:
    """Return the file of a study, without importing it.

    Raises
    ------
    ArgumentError
        If no study has this name.
    """
    spec = importlib.util.find_spec(_checked(name))
    return Path(str(spec.origin if spec else None))


def title(name: str) -> str:
    """Return a study's ``TITLE``, without importing it; "" where it has none.

    Raises
    ------
    ArgumentError
        If no study has this name.
    """
    for node in ast.parse(source(name).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if [ast.unparse(target) for target in targets] == ["TITLE"]:
                return str(node.value.value)
    return ""


def _checked(name: str) -> str:
    if name not in names():
        raise unknown_name("study", name, names())
    return f"{__name__}.{name}"
