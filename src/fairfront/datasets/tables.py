"""From a name of the registry to the rows of its task."""

from __future__ import annotations

import inspect

from fairfront.datasets import files
from fairfront.datasets.registry import DatasetInfo, names
from fairfront.datasets.sources import TASKS, Table, acs
from fairfront.errors import ArgumentError

__all__ = ["has_recipe", "table"]


def table(dataset: DatasetInfo, *, as_published: bool = False) -> Table:
    """Return the rows of a data set's task.

    Parameters
    ----------
    dataset : DatasetInfo
        The data set.
    as_published : bool, default False
        Whether to do what the papers' authors did, their leaks included.

    Raises
    ------
    ArgumentError
        No such recipe is known for this data set.
    DataError
        A file is corrupt, or absent and cannot be downloaded.
    """
    if as_published and not has_recipe(dataset.name):
        known = ", ".join(name for name in names() if has_recipe(name))
        problem = f"what the authors did with {dataset.name} beyond this package's own way is not known"
        raise ArgumentError("as_published", problem, f"known for: {known}")
    if dataset.survey is not None:
        paths = [files.verified(path, digests) for path, digests in files.locate(dataset.file)]
        numbers = [int(dataset.survey.states[state]) for state in dataset.states]
        return acs.table(dict(zip(numbers, paths, strict=True)), dataset.name.split("/")[0])
    recipe = {"as_published": True} if as_published else {}
    return TASKS[dataset.name](files.read(dataset.file), **recipe)


def has_recipe(name: str) -> bool:
    """Return whether `as_published` means something for a data set."""
    return name in TASKS and "as_published" in inspect.signature(TASKS[name]).parameters
