"""What is at hand: every data set with its state, and the fetching of what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairfront.datasets import files, images
from fairfront.datasets.fetching import by_hand, fetch, where_from
from fairfront.datasets.places import downloads, find
from fairfront.datasets.registry import DatasetInfo, FileInfo, image_info, image_names, info, names
from fairfront.datasets.tables import table
from fairfront.errors import DataError

__all__ = ["State", "at_hand", "bring", "describe", "glance", "states", "verify"]


@dataclass(frozen=True)
class State:
    """The state of a data set.

    Attributes
    ----------
    name : str
        The data set.
    kind : {"table", "images"}
        What `load` or `load_images` returns.
    state : {"embedded", "present", "missing", "corrupt"}
        Whether it comes with the package, was found below FAIRFRONT_DATA or in the cache, is neither, or is not what
        the registry says.
    rows : int or None
        Rows of the table, or images; None where that is not known without the file.
    where : str
        Where it lies.
    source : str
        Where to get it, and where to put it by hand.
    problem : str
        What is wrong with a corrupt one.
    """

    name: str
    kind: Literal["table", "images"]
    state: Literal["embedded", "present", "missing", "corrupt"]
    rows: int | None
    where: str
    source: str
    problem: str = ""


def states() -> Iterator[State]:
    """Yield the state of every data set of the registry, and of every state and year of a survey that is at hand.

    Every file that is at hand is read and checked.
    """
    for name in names():
        known = info(name)
        yield verify(name)
        if known.survey is not None:
            for year in known.survey.years:
                for state in known.survey.states:
                    if find(known.survey.raw(year, state)):
                        yield verify(f"{name}/{year}/{state}")
    for name in image_names():
        yield verify(name)


def at_hand(name: str) -> bool:
    """Return whether a data set can be loaded without a download. Nothing is read.

    Raises
    ------
    ArgumentError
        There is no such set.
    """
    return glance(name).state != "missing"


def glance(name: str) -> State:
    """Return the state of one data set or image set as far as it can be told without reading a file.

    Raises
    ------
    ArgumentError
        There is no such set.
    """
    if name in image_names():
        image = image_info(name)
        if image.file is None:
            return State(name, "images", "embedded", None, "", image.notice)
        place = find(image.file.raw[0])
        state: Literal["present", "missing"] = "present" if place else "missing"
        return State(name, "images", state, None, str(place[0]) if place else "", _source(image.file))
    file, source = info(name).file, _source(info(name).file)
    found = [place[0] for place in map(find, file.raw) if place]
    if len(found) == len(file.raw):
        place_of_all = str(found[0] if len(found) == 1 else found[0].parent)
        return State(name, "table", "present", file.rows or None, place_of_all, source)
    if file.path is not None:
        return State(name, "table", "embedded", file.rows, str(file.path), source)
    part = f"{len(found)} of {len(file.raw)} files" if found else ""
    return State(name, "table", "missing", file.rows or None, part, source)


def verify(name: str) -> State:
    """Return the state of one data set or image set; what is at hand of it is read and checked, nothing is downloaded.

    Raises
    ------
    ArgumentError
        There is no such set.
    """
    seen = glance(name)
    if name in image_names():
        return seen if seen.state == "missing" else _checked(seen, lambda: _count(name))
    known = info(name)
    if seen.state == "missing" or (known.survey is not None and len(known.states) > 1):
        return seen  # the states of a survey are checked one by one
    return _checked(seen, lambda: _rows(known))


def bring(name: str, progress: Callable[..., Iterable[Any]] | None = None) -> list[Path]:
    """Download what is missing of a data set or image set, and return where its files lie.

    Parameters
    ----------
    name : str
        The set; a task on a survey with year and place, as in "acs-income/2018/south".
    progress : callable, optional
        ``progress(iterable, description, total)`` yields the files.

    Raises
    ------
    ArgumentError
        There is no such set.
    DataError
        A file cannot be downloaded, or is corrupt.
    """
    file = image_info(name).file if name in image_names() else info(name).file
    if file is None:
        return []
    if file.path is not None:
        return [file.path]
    raws = file.raw if progress is None else progress(file.raw, f"files of {name}", len(file.raw))
    paths = []
    for raw in raws:
        path, form = find(raw) or fetch(raw, downloads())
        paths.append(files.verified(path, files.digests(raw, form)))
    return paths


def describe(name: str) -> dict[str, Any]:
    """Return all that the registry says of a data set or image set, and its datasheet, as plain values.

    Raises
    ------
    ArgumentError
        There is no such set.
    """
    if name in image_names():
        image = image_info(name)
        words: dict[str, Any] = {"name": name, "kind": "images", "title": image.title, "notice": image.notice}
        words |= {"classes": image.classes}
        file = image.file
    else:
        known = info(name)
        words = {"name": name, "kind": "table", "title": known.title, "task": known.task, "target": known.target}
        words |= {"notice": known.notice, "sensitive": {item.name: list(item.levels) for item in known.sensitive}}
        file = known.file
    if file is None:
        return words
    words |= {"rows": file.rows or None, "licence": file.licence, "canonical": file.canonical}
    words |= {"citation": file.citation, "source": _source(file), "embedded": file.embedded}
    raws = [{"path": raw.path, "sha256": raw.sha256, "from": where_from(raw)} for raw in file.raw[:3]]
    return words | {"files": raws, "n_files": len(file.raw), "datasheet": file.datasheet.read_text(encoding="utf-8")}


def _count(name: str) -> int:
    data = images.load_images(name)
    return len(data.images) + len(data.test_images)


def _rows(known: DatasetInfo) -> int:
    if known.survey is not None:
        return len(table(known).target)
    return len(files.read(known.file))


def _checked(state: State, rows: Callable[[], int]) -> State:
    try:
        return State(state.name, state.kind, state.state, rows(), state.where, state.source)
    except DataError as error:
        return State(state.name, state.kind, "corrupt", state.rows, state.where, state.source, str(error))


def _source(file: FileInfo) -> str:
    if file.path is not None:
        return f"comes with the package ({file.canonical})"
    first = file.raw[0]
    more = f" and {len(file.raw) - 1} more" if len(file.raw) > 1 else ""
    return f"{where_from(first)}{more}; by hand: {by_hand(first, downloads())}, or the same path below FAIRFRONT_DATA"
