"""What is at hand: every data set with its state, and the fetching of what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairfront.datasets import files, images
from fairfront.datasets.fetching import by_hand, fetch, where_from
from fairfront.datasets.places import downloads, find
from fairfront.datasets.registry import DatasetInfo, FileInfo, ImageInfo, image_info, image_names, info, names
from fairfront.datasets.tables import table
from fairfront.errors import DataError

__all__ = ["State", "bring", "describe", "states", "verify"]


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


def verify(name: str) -> State:
    """Return the state of one data set or image set; what is at hand of it is read and checked, nothing is downloaded.

    Raises
    ------
    ArgumentError
        There is no such set.
    """
    if name in image_names():
        return _images(image_info(name))
    known = info(name)
    source = _source(known.file)
    found = [find(raw) for raw in known.file.raw]
    if not all(found):
        if known.file.path is None:
            at_hand = f"{sum(map(bool, found))} of {len(found)} files" if len(found) > 1 and any(found) else ""
            return State(name, "table", "missing", known.file.rows or None, at_hand, source)
        place = str(known.file.path)
        return _checked(State(name, "table", "embedded", known.file.rows, place, source), lambda: _rows(known))
    place = str(found[0][0].parent if len(found) > 1 else found[0][0]) if found[0] else ""
    if known.survey is not None and len(found) > 1:
        return State(name, "table", "present", None, place, source)  # its states are checked one by one
    return _checked(State(name, "table", "present", known.file.rows or None, place, source), lambda: _rows(known))


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


def _images(known: ImageInfo) -> State:
    if known.file is None:
        data = images.load_images(known.name)
        return State(known.name, "images", "embedded", len(data.images) + len(data.test_images), "", known.notice)
    source = _source(known.file)
    found = find(known.file.raw[0])
    if found is None:
        return State(known.name, "images", "missing", None, "", source)

    def count() -> int:
        data = images.load_images(known.name)
        return len(data.images) + len(data.test_images)

    return _checked(State(known.name, "images", "present", None, str(found[0]), source), count)


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
