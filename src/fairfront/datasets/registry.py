"""The registry of data sets, data/registry.toml: what there is, where it comes from, under which terms."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fairfront import paths
from fairfront.datasets.places import find, sha256
from fairfront.errors import ArgumentError, DataError, unknown_name

__all__ = [
    "Address",
    "Attribute",
    "DatasetInfo",
    "FileInfo",
    "ImageInfo",
    "RawFile",
    "Survey",
    "files",
    "image_info",
    "image_names",
    "info",
    "names",
]


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
class Address:
    """Where a raw file can be downloaded.

    Attributes
    ----------
    url : str
        The file itself, or an archive (zip, tar.gz) that holds it.
    member : str
        The file's path inside the archive, after that of an archive in the archive and "!"; empty where `url` is the
        file itself.
    sha256 : str
        The archive's SHA-256, where its publisher does not change it.
    """

    url: str
    member: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class RawFile:
    """A raw file in one of the forms in which it is distributed.

    Attributes
    ----------
    path : str
        Its path below the folder of raw files.
    sha256 : str
        Its SHA-256; empty where the publisher changes the file or the original bytes were never at hand: then it is
        checked by what it has to hold.
    addresses : tuple of Address
        Where this form can be downloaded, in the order of trial.
    also : tuple of RawFile
        Other forms with the same rows, looked for after this one.
    """

    path: str
    sha256: str = ""
    addresses: tuple[Address, ...] = ()
    also: tuple[RawFile, ...] = ()

    @property
    def forms(self) -> tuple[RawFile, ...]:
        """Every form, this one first."""
        return (self, *self.also)


@dataclass(frozen=True)
class FileInfo:
    """A table: the raw files that it is read from and, where the terms allow it, the embedded copy.

    Attributes
    ----------
    name : str
        Key in the registry.
    path : Path or None
        Where the embedded Parquet file lies; None for a file that may not be embedded.
    sha256 : str
        SHA-256, in hexadecimal, of the embedded file, else of the (first) raw file; empty where it is not fixed.
    rows, columns : int
        The table's shape; 0 where it is not fixed.
    raw : tuple of RawFile
        What it is read from.
    licence, canonical, citation : str
        Terms, canonical address, and how to cite it.
    datasheet : Path
        Its datasheet (Markdown).
    """

    name: str
    path: Path | None
    sha256: str
    rows: int
    columns: int
    raw: tuple[RawFile, ...]
    licence: str
    canonical: str
    citation: str
    datasheet: Path

    @property
    def embedded(self) -> bool:
        """Whether the table comes with the package."""
        return self.path is not None


@dataclass(frozen=True)
class Survey:
    """A survey that is published anew every year, a file for each state.

    Attributes
    ----------
    years : tuple of int
        The years that can be had.
    regions : mapping of str to tuple of str
        The states of each region, by their two letters.
    states : mapping of str to str
        The number of each state.
    url : str
        Where a state's archive lies; {year} and {state} (two letters, lower case) are filled in.
    members : mapping of str to str
        The first year of each way to name a state's file -> that name, with {year}, {state} and {number}.
    """

    years: tuple[int, ...]
    regions: Mapping[str, tuple[str, ...]]
    states: Mapping[str, str]
    url: str
    members: Mapping[str, str]

    def of(self, place: str) -> tuple[str, ...]:
        """Return the states of a place: "us" for all of them, a region's name, or a state's two letters.

        Raises
        ------
        ArgumentError
            There is no such place.
        """
        if place == "us":
            return tuple(self.states)
        if place in self.regions:
            return self.regions[place]
        if place in self.states:
            return (place,)
        raise unknown_name("name", place, ("us", *self.regions, *self.states))

    def raw(self, year: int, state: str) -> RawFile:
        """Return a state's person file of a year, in the layout of folktables."""
        known = [first for first in self.members if int(first) <= year]
        words = {"year": year, "short": f"{year % 100:02d}", "state": state.lower(), "number": self.states[state]}
        member = self.members[max(known, key=int)].format(**words)
        below = f"{year}/1-Year/{member}"
        address = Address(self.url.format(**words), member=member)
        return RawFile(path=f"acs/{below}", addresses=(address,), also=(RawFile(path=below),))


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
        The table that it is cut from.
    notice : str
        What a reader must be told wherever the data set appears.
    survey : Survey or None
        The survey that it is a task on, which is named by NAME/YEAR/PLACE; None for any other.
    year, states : int, tuple of str
        Of which year and of which states' files it is, for a task on a survey.
    """

    name: str
    title: str
    task: Literal["classification", "regression"]
    target: str
    sensitive: tuple[Attribute, ...]
    file: FileInfo
    notice: str = ""
    survey: Survey | None = None
    year: int = 0
    states: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """SHA-256, in hexadecimal, that says which rows these are: what a stored result rests on.

        It is the one of the registry; where that has none, because the publisher changes the file, it is computed from
        the file at hand (from the files' digests in their order, where there are several).

        Raises
        ------
        DataError
            The registry has none, and the file is not at hand.
        """
        if self.file.sha256:
            return self.file.sha256
        found = [find(raw) for raw in self.file.raw]
        absent = [raw.path for raw, place in zip(self.file.raw, found, strict=True) if place is None]
        if absent:
            raise DataError(f"{self.name}: {absent[0]} is not at hand (fairfront data fetch {self.name})")
        digests = [sha256(place[0]) for place in found if place]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

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

    def chosen(self, sensitive: str | Sequence[str]) -> tuple[Attribute, ...]:
        """Return the sensitive attributes of these names, in their order.

        Raises
        ------
        ArgumentError
            There is none, one is not an attribute of this data set, or one comes twice.
        """
        asked = (
            [sensitive] if isinstance(sensitive, str) else list(sensitive) if isinstance(sensitive, Iterable) else []
        )
        if not asked:
            known = ", ".join(attribute.name for attribute in self.sensitive)
            raise ArgumentError("sensitive", f"no attributes: {sensitive!r}", f"at least one of: {known}")
        attributes = tuple(self.attribute(name) for name in asked)
        if len(set(attributes)) < len(attributes):
            raise ArgumentError("sensitive", f"an attribute twice: {', '.join(asked)}", "each attribute once")
        return attributes


@dataclass(frozen=True)
class ImageInfo:
    """An image set that `load_images` can return.

    Attributes
    ----------
    name, title : str
        The name that `load_images` takes, and what a caption calls it.
    classes : int
        How many classes it has.
    notice : str
        What a reader must be told wherever the set appears.
    file : FileInfo or None
        Where it comes from; None for a stand-in that needs no file.
    """

    name: str
    title: str
    classes: int
    notice: str
    file: FileInfo | None = None


def names(*, embedded: bool = False) -> tuple[str, ...]:
    """Return the names of the data sets that `load` takes, in the registry's order.

    Parameters
    ----------
    embedded : bool, default False
        Whether to leave out those that do not come with the package.
    """
    return tuple(name for name, known in _registry()[1].items() if known.file.embedded or not embedded)


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
    base, *parts = name.split("/") if isinstance(name, str) else [name]
    if base not in known:
        raise unknown_name("name", name, known)
    survey = known[base].survey
    if survey is None and parts:
        raise ArgumentError("name", f"unknown: {name!r}", f"{base} is one table, without years and places")
    return known[base] if survey is None else _of_survey(known[base], survey, parts)


def _of_survey(family: DatasetInfo, survey: Survey, parts: list[str]) -> DatasetInfo:
    if len(parts) not in (0, 2):
        problem = f"not NAME/YEAR/PLACE: {'/'.join([family.name, *parts])!r}"
        raise ArgumentError("name", problem, f"as in {family.name}/{survey.years[-1]}/FL")
    word, place = parts or (str(survey.years[-1]), "us")
    if word not in map(str, survey.years):
        known = f"{survey.years[0]} to {survey.years[-1]}"
        raise ArgumentError("name", f"there is no {family.title} of the year {word}", f"years: {known}")
    year, states = int(word), survey.of(place)
    return dataclasses.replace(
        family,
        name=f"{family.name}/{year}/{place}" if parts else family.name,
        title=f"{family.title} {year}, {place}",
        file=dataclasses.replace(family.file, raw=tuple(survey.raw(year, state) for state in states)),
        year=year,
        states=states,
    )


def image_names() -> tuple[str, ...]:
    """Return the names of the image sets that `load_images` takes."""
    return tuple(_registry()[2])


def image_info(name: str) -> ImageInfo:
    """Return what the registry says of an image set.

    Raises
    ------
    ArgumentError
        There is no image set of that name; the message gives the nearest ones.
    """
    known = _registry()[2]
    if not isinstance(name, str) or name not in known:
        raise unknown_name("name", name, known)
    return known[name]


def files(*, embedded: bool = False) -> Mapping[str, FileInfo]:
    """Return every table by its key, or only the embedded ones."""
    return {name: file for name, file in _registry()[0].items() if file.embedded or not embedded}


Registry: TypeAlias = tuple[Mapping[str, FileInfo], Mapping[str, DatasetInfo], Mapping[str, ImageInfo]]


def _registry() -> Registry:
    path = paths.data() / "registry.toml"
    try:
        return _parse(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; reinstall the package") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a registry: {error}; restore it with `git checkout -- data`") from error


@functools.lru_cache(maxsize=4)
def _parse(path: Path, mtime_ns: int) -> Registry:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {name: _file(name, table, path.parent) for name, table in content["files"].items()}
    surveys = {name: _survey(table) for name, table in content.get("surveys", {}).items()}
    datasets = {name: _dataset(name, table, known, surveys) for name, table in content["datasets"].items()}
    return known, datasets, {name: _image(name, table, known) for name, table in content.get("images", {}).items()}


def _raw(table: dict[str, Any]) -> RawFile:
    addresses = tuple(Address(**address) for address in table.pop("addresses", ()))
    return RawFile(addresses=addresses, also=tuple(map(_raw, table.pop("also", ()))), **table)


def _file(name: str, table: dict[str, Any], folder: Path) -> FileInfo:
    raw = tuple(map(_raw, table.pop("raw", ())))
    embedded = table.pop("path", "")
    return FileInfo(
        name=name,
        path=folder / embedded if embedded else None,
        sha256=table.pop("sha256") if embedded else _sha256(raw),
        rows=table.pop("rows", 0),
        columns=table.pop("columns", 0),
        datasheet=folder / table.pop("datasheet"),
        raw=raw,
        **table,
    )


def _image(name: str, table: dict[str, Any], known: Mapping[str, FileInfo]) -> ImageInfo:
    file = known[table.pop("file")] if "file" in table else None
    return ImageInfo(name=name, file=file, **table)


def _sha256(raw: tuple[RawFile, ...]) -> str:
    return next((form.sha256 for form in raw[0].forms if form.sha256), "") if raw else ""


def _survey(table: dict[str, Any]) -> Survey:
    regions = {name: tuple(states) for name, states in table.pop("regions").items()}
    return Survey(years=tuple(table.pop("years")), regions=regions, **table)


def _dataset(
    name: str, table: dict[str, Any], known: Mapping[str, FileInfo], surveys: Mapping[str, Survey]
) -> DatasetInfo:
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
    survey = surveys[table.pop("survey")] if "survey" in table else None
    return DatasetInfo(name=name, sensitive=attributes, file=known[table.pop("file")], survey=survey, **table)
