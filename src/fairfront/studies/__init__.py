"""The studies: one module for each figure, table or theorem of the papers that is computed.

A study module offers ``TITLE``, ``Parameters`` (a frozen dataclass over
`fairfront.studies.parameters.StudyParameters`), ``datasets(parameters)``, ``run(parameters, progress)``,
``measure(tables, parameters)`` and functions ``figure_*(tables, parameters)``. Every public module of this package
other than `parameters` is a study.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from fairfront.errors import unknown_name

__all__ = ["get", "names"]

_NOT_STUDIES = frozenset({"parameters"})


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
    if name not in names():
        raise unknown_name("study", name, names())
    return importlib.import_module(f"{__name__}.{name}")
