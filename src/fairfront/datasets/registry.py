"""The registry of data sets, data/registry.toml: what there is, where it comes from, under which terms."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairfront import paths
from fairfront.errors import DataError, unknown_name

__all__ = ["Attribute", "DatasetInfo", "FileInfo", "RawFile", "files", "info", "names"]


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute and its values, in the order that numbers the groups.

    Attributes
    ----------
    name : str
        The name that `load` takes.
    levels : tuple of str
        The values in order; for a numeric attribute the names of its bins, from low to high.
    columns : tuple of str
        The feature columns that carry the attribute; they go when `keep_sensitive` is false.
    cuts : tuple of float
        For a numeric attribute the increasing lower ends of the second and later bins, else empty.
    note : str
        How the attribute was made, where that is not plain.
    """

    name: str
    levels: tuple[str, ...]
    columns: tuple[str, ...]
    cuts: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class RawFile:
    """A raw file: its path below the folder of raw files and its SHA-256."""

    path: str
    sha256: str


@dataclass(frozen=True)
class FileInfo:
    """An embedded file and the raw files that it is made from.

    Attributes
    ----------
    name : str
        Key in the registry.
    path : Path
        Where the Parquet file lies.
    sha256 : str
        Its SHA-256 in hexadecimal.
    rows, columns : int
        Its shape.
    raw : tuple of RawFile
        What it is made from.
    licence, canonical, citation : str
        Terms, canonical address, and how to cite it.
    datasheet : Path
        Its datasheet (Markdown).
    """

    name: str
    path: Path
    sha256: str
    rows: int
    columns: int
    raw: tuple[RawFile, ...]
    licence: str
    canonical: str
    citation: str
    datasheet: Path


@dataclass(frozen=True)
class DatasetInfo:
    """A data set that `load` can return.

    Attributes
    ----------
    name, title : str
        The name that `load` takes, and what a caption calls it.
    task : {"classification", "regression"}
        The kind of task.
    target : str
        What is predicted, in words.
    sensitive : tuple of Attribute
        The sensitive attributes.
    file : FileInfo
        The embedded file that it is cut from.
    notice : str
        What a reader must be told wherever the data set appears.
    """

    name: str
    title: str
    task: Literal["classification", "regression"]
    target: str
    sensitive: tuple[Attribute, ...]
    file: FileInfo
    notice: str = ""

    @property
    def sha256(self) -> str:
        """SHA-256 of the embedded file, in hexadecimal."""
        return self.file.sha256

    def attribute(self, name: str) -> Attribute:
        """Return the sensitive attribute of that name.

        Raises
        ------
        ArgumentError
            The data set has no such attribute.
        """
        for attribute in self.sensitive:
            if attribute.name == name:
                return attribute
        raise unknown_name("sensitive", name, (attribute.name for attribute in self.sensitive))


def names() -> tuple[str, ...]:
    """Return the names of every data set that `load` takes, in the registry's order."""
    return tuple(_registry()[1])


def info(name: str) -> DatasetInfo:
    """Return what the registry says of a data set.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    DatasetInfo

    Raises
    ------
    ArgumentError
        There is no data set of that name; the message gives the nearest ones.
    """
    known = _registry()[1]
    if not isinstance(name, str) or name not in known:
        raise unknown_name("name", name, known)
    return known[name]


def files() -> Mapping[str, FileInfo]:
    """Return every embedded file by its key."""
    return _registry()[0]


def _registry() -> tuple[Mapping[str, FileInfo], Mapping[str, DatasetInfo]]:
    path = paths.data() / "registry.toml"
    try:
        return _parse(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; reinstall the package") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a registry: {error}; restore it with `git checkout -- data`") from error


@functools.lru_cache(maxsize=4)
def _parse(path: Path, mtime_ns: int) -> tuple[Mapping[str, FileInfo], Mapping[str, DatasetInfo]]:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {name: _file(name, table, path.parent) for name, table in content["files"].items()}
    return known, {name: _dataset(name, table, known) for name, table in content["datasets"].items()}


def _file(name: str, table: dict[str, Any], folder: Path) -> FileInfo:
    return FileInfo(
        name=name,
        path=folder / table.pop("path"),
        datasheet=folder / table.pop("datasheet"),
        raw=tuple(RawFile(**raw) for raw in table.pop("raw")),
        **table,
    )


def _dataset(name: str, table: dict[str, Any], known: Mapping[str, FileInfo]) -> DatasetInfo:
    attributes = tuple(
        Attribute(
            name=attribute["name"],
            levels=tuple(attribute["levels"]),
            columns=tuple(attribute["columns"]),
            cuts=tuple(attribute.get("cuts", ())),
            note=attribute.get("note", ""),
        )
        for attribute in table.pop("sensitive")
    )
    return DatasetInfo(name=name, sensitive=attributes, file=known[table.pop("file")], **table)
