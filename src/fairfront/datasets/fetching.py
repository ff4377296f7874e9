"""Downloads: by pooch into the user's cache, verified, atomic, and never out of the folder.

A server that answers with an error page, half a file or a file of another content leaves nothing behind that a later
reader could take for the data.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import requests

from fairfront.datasets.registry import Address, RawFile
from fairfront.errors import DataError

__all__ = ["by_hand", "extract", "fetch", "is_html", "offline", "where_from"]

# Trials of one address, and seconds without a byte after which one of them is given up.
RETRIES = 3
TIMEOUT = 30.0
# Bytes that are written at a time; fewer than this are lost where a transfer breaks.
CHUNK = 1 << 14


def offline() -> bool:
    """Return whether downloads are switched off (FAIRFRONT_OFFLINE is set and not 0)."""
    return os.environ.get("FAIRFRONT_OFFLINE", "0") not in ("", "0")


def is_html(path: Path) -> bool:
    """Return whether a file begins like an HTML page."""
    try:
        with path.open("rb") as stream:
            start = stream.read(512).lstrip().lower()
    except OSError:
        return False
    return start.startswith((b"<!doctype html", b"<html"))


def where_from(raw: RawFile) -> str:
    """Return the addresses of a file in words."""
    urls = [address.url for form in raw.forms for address in form.addresses]
    return " or ".join(urls) or "no address that gives this very file (see its datasheet)"


def by_hand(raw: RawFile, folder: Path) -> Path:
    """Return where a file that somebody downloads in another way has to be put."""
    return folder / next((form.path for form in raw.forms if form.addresses), raw.path)


def fetch(raw: RawFile, folder: Path) -> tuple[Path, RawFile]:
    """Download a raw file into a folder.

    Parameters
    ----------
    raw : RawFile
        The file. Its forms' addresses are tried in order.
    folder : Path
        The folder of raw files, usually the user's cache.

    Returns
    -------
    path : Path
        Where it lies now: `folder` and the form's own path.
    form : RawFile
        The form that was had.

    Raises
    ------
    DataError
        No address gave the file: no network, an error page, half a file, another content, no room on the disk. The
        message says which file, where from, and where to put it by hand.
    """
    remedy = f"put it by hand at {by_hand(raw, folder)} (or below the folder named by FAIRFRONT_DATA)"
    if offline():
        problem = f"downloads are switched off (FAIRFRONT_OFFLINE); it is to be had from {where_from(raw)}"
        raise DataError(f"{raw.path}: absent; {problem}; {remedy}")
    tried = []
    for form in raw.forms:
        for address in form.addresses:
            try:
                return _fetch(form, address, folder), form
            except (DataError, OSError, ValueError, requests.RequestException) as error:
                tried.append(f"{address.url}: {_reason(error)}")
    problem = f"could not be downloaded from {'; '.join(tried) or where_from(raw)}"
    raise DataError(f"{raw.path}: absent, and {problem}; {remedy}")


def extract(archive: Path, member: str, target: Path) -> Path:
    """Take one file out of a zip or tar archive; the others are not written.

    Parameters
    ----------
    archive : Path
        The archive, of either kind.
    member : str
        The file's path inside it.
    target : Path
        Where to write it; replaced at once or not at all.

    Raises
    ------
    DataError
        It is no archive or a damaged one, has no such file, or holds a member that would leave its folder.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                _check_members(archive, opened.namelist())
                with opened.open(member) as source:
                    return _write(source, target)
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as packed:
                _check_members(archive, packed.getnames())
                content = packed.extractfile(member)
                if content is None:
                    raise KeyError(member)
                with content:
                    return _write(content, target)
    except KeyError as error:
        raise DataError(f"{archive.name}: holds no file {member!r}") from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive.name}: a damaged archive: {error}") from error
    raise DataError(f"{archive.name}: {'an HTML page' if is_html(archive) else 'no archive'}, not a zip or tar file")


def _fetch(form: RawFile, address: Address, folder: Path) -> Path:
    # Here, not above: its progress bar warns of a missing widget in every notebook that only loads embedded data.
    import pooch

    target = folder / form.path
    target.parent.mkdir(parents=True, exist_ok=True)
    # Everything is made in a folder of its own beside the target, so that an interruption leaves nothing in its place
    # but the part that has arrived, which the next trial goes on from.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as place:
        known = address.sha256 if address.member else form.sha256
        pup = pooch.create(path=place, base_url="", registry={"file": known or None}, urls={"file": address.url})
        pup.retry_if_failed = RETRIES - 1
        word = hashlib.sha256(address.url.encode()).hexdigest()[:12]
        arrived = Path(pup.fetch("file", downloader=_Resuming(target.parent / f".{target.name}.{word}.part")))
        if is_html(arrived):
            raise DataError("the server sent an HTML page in place of the file")
        for member in address.member.split("!") if address.member else ():  # archives inside archives, from outside in
            arrived = extract(arrived, member, Path(place) / f"member-{PurePosixPath(member).name}")
        if address.member and form.sha256 and (found := pooch.file_hash(str(arrived))) != form.sha256:
            raise DataError(f"{address.member} has the SHA-256 {found}, the registry expects {form.sha256}")
        os.replace(arrived, target)
    return target


class _Resuming:
    """A downloader for pooch that keeps what has arrived in a file of its own and asks the server only for the rest."""

    def __init__(self, part: Path) -> None:
        self.part = part

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                self.part.unlink()
                raise requests.ConnectionError("the part that had arrived is not of this file")
            response.raise_for_status()
            goes_on = response.status_code == requests.codes.partial_content
            have = have if goes_on else 0
            rest = int(response.headers["Content-Length"]) if "Content-Length" in response.headers else None
            mode = "ab" if goes_on else "wb"
            with _bar(self.part.name.strip("."), have, rest) as advance, self.part.open(mode) as sink:
                for chunk in response.iter_content(CHUNK):
                    sink.write(chunk)
                    advance(len(chunk))
        if rest is not None and self.part.stat().st_size != have + rest:
            raise requests.ConnectionError(f"{self.part.stat().st_size:,} of {have + rest:,} bytes arrived")
        os.replace(self.part, output_file)


@contextlib.contextmanager
def _bar(name: str, have: int, rest: int | None) -> Iterator[Callable[[int], object]]:
    """Give the function to call with the bytes that arrive; it moves a bar where somebody watches standard error."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None if rest is None else have + rest, completed=have)
        yield lambda count: progress.update(task, advance=count)


def _check_members(archive: Path, members: list[str]) -> None:
    for member in members:
        path = PurePosixPath(member.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise DataError(f"{archive.name}: refused, its member {member!r} would leave the folder")


def _write(source: IO[bytes], target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.part")
    with unfinished.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    os.replace(unfinished, target)
    return target


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "no room on the disk"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT:.0f} s"
    if isinstance(error, requests.ConnectionError) and "bytes arrived" not in str(error):
        return "no connection (is there a network?)"
    return " ".join(str(error).split())[:300]
