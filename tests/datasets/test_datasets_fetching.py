"""Downloads against a local server: what arrives, what is refused, and that nothing half done is left behind."""

from __future__ import annotations

import errno
import hashlib
import http.server
import io
import re
import tarfile
import threading
import time
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from fairfront.datasets import fetching
from fairfront.datasets.registry import Address, RawFile
from fairfront.errors import DataError

CONTENT = b"a,b\n1,2\n" * 5000  # 40,000 bytes: a half is more than a chunk


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Server:
    """A folder of answers; ``faults`` maps a path to what goes wrong with it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, str] = {}
        self.requests: list[tuple[str, str | None]] = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, *words: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.requests.append((request.path, wanted))
        fault, content = self.faults.get(request.path), self.files.get(request.path)
        if fault == "forbidden" or content is None:
            body = b"<!DOCTYPE html><html><body>403 Forbidden</body></html>"
            request.send_response(403 if fault == "forbidden" else 404)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted else 0
        request.send_response(206 if wanted else 200)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        if fault == "breaks once":
            del self.faults[request.path]
            request.wfile.write(content[: len(content) // 2])
        elif fault == "breaks always":
            request.wfile.write(content[start : start + len(content) // 2 - start])
        elif fault == "slow":
            for part in range(start, len(content), len(content) // 4):
                request.wfile.write(content[part : part + len(content) // 4])
                request.wfile.flush()
                time.sleep(0.1)
        elif fault == "hangs":
            time.sleep(1.5)
        else:
            request.wfile.write(content[start:])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("FAIRFRONT_OFFLINE", "0")
    monkeypatch.setattr("pooch.core.time", types.SimpleNamespace(sleep=lambda seconds: None))
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()


def left(folder: Path) -> list[str]:
    """What lies in the folder, the parts that a next trial goes on from aside."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".part"
    )


def test_a_file_arrives_under_its_path_and_once(server, tmp_path):
    server.files["/a.csv"] = CONTENT
    raw = RawFile("uci/a.csv", digest(CONTENT), (Address(f"{server.url}/a.csv"),))
    path, form = fetching.fetch(raw, tmp_path)
    assert path == tmp_path / "uci" / "a.csv" and form == raw
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == ["uci/a.csv"] and len(server.requests) == 1


def test_a_member_of_a_zip_of_a_tar_and_of_a_zip_in_a_zip(server, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("folder/a.csv")
        entry.size = len(CONTENT)
        archive.addfile(entry, io.BytesIO(CONTENT))
    server.files = {
        "/a.zip": zipped(**{"a.csv": CONTENT, "readme": b"x"}),
        "/a.tar.gz": packed.getvalue(),
        "/outer.zip": zipped(**{"inner.zip": zipped(**{"a.csv": CONTENT})}),
    }
    for url, member in (("a.zip", "a.csv"), ("a.tar.gz", "folder/a.csv"), ("outer.zip", "inner.zip!a.csv")):
        raw = RawFile(f"{url}.d/a.csv", digest(CONTENT), (Address(f"{server.url}/{url}", member),))
        assert fetching.fetch(raw, tmp_path)[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "content", "message"),
    [
        ("forbidden", CONTENT, "403 Client Error"),
        (None, b"<!DOCTYPE html><html>busy</html>", "HTML page in place of the file|does not match"),
        (None, zipped(**{"a.csv": CONTENT})[:-3000], "a damaged archive|no archive"),
        (None, zipped(**{"b.csv": CONTENT}), "holds no file 'a.csv'"),
        (None, zipped(**{"a.csv": b"other"}), "has the SHA-256 .* the registry expects"),
        (None, zipped(**{"../evil": b"x", "a.csv": CONTENT}), "refused, its member '../evil' would leave the folder"),
        (None, zipped(**{"/evil": b"x", "a.csv": CONTENT}), "refused, its member '/evil' would leave the folder"),
        ("breaks always", zipped(**{"a.csv": CONTENT}), "bytes arrived|no connection|broken"),
    ],
)
def test_what_is_refused_leaves_nothing(server, tmp_path, fault, content, message):
    server.files["/a.zip"] = content
    if fault:
        server.faults["/a.zip"] = fault
    raw = RawFile("acs/a.csv", digest(CONTENT), (Address(f"{server.url}/a.zip", "a.csv"),))
    with pytest.raises(DataError, match=message) as error:
        fetching.fetch(raw, tmp_path)
    text = str(error.value)
    assert text.startswith("acs/a.csv: absent") and f"{server.url}/a.zip" in text
    assert f"put it by hand at {tmp_path / 'acs' / 'a.csv'}" in text
    assert left(tmp_path) == [] and not (tmp_path.parent / "evil").exists()


def test_a_wrong_hash_is_refused(server, tmp_path):
    server.files["/a.csv"] = CONTENT
    raw = RawFile("a.csv", "0" * 64, (Address(f"{server.url}/a.csv"),))
    with pytest.raises(DataError, match="does not match the known hash"):
        fetching.fetch(raw, tmp_path)
    assert left(tmp_path) == [] and len(server.requests) == fetching.RETRIES


def test_a_broken_transfer_goes_on_where_it_stopped(server, tmp_path):
    server.files["/a.csv"], server.faults["/a.csv"] = CONTENT, "breaks once"
    raw = RawFile("a.csv", digest(CONTENT), (Address(f"{server.url}/a.csv"),))
    assert fetching.fetch(raw, tmp_path)[0].read_bytes() == CONTENT
    assert server.requests == [("/a.csv", None), ("/a.csv", f"bytes={fetching.CHUNK}-")]
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_part_of_an_earlier_session_is_gone_on_from(server, tmp_path):
    server.files["/a.csv"], server.faults["/a.csv"] = CONTENT, "breaks always"
    raw = RawFile("a.csv", digest(CONTENT), (Address(f"{server.url}/a.csv"),))
    with pytest.raises(DataError):
        fetching.fetch(raw, tmp_path)
    server.faults.clear()
    server.requests.clear()
    assert fetching.fetch(raw, tmp_path)[0].read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == [f"bytes={fetching.CHUNK}-"]


def test_a_slow_connection_is_waited_for_and_a_dead_one_is_not(server, tmp_path, monkeypatch):
    server.files |= {"/a.csv": CONTENT, "/b.csv": CONTENT}
    server.faults |= {"/a.csv": "slow", "/b.csv": "hangs"}
    raw = RawFile("a.csv", digest(CONTENT), (Address(f"{server.url}/a.csv"),))
    monkeypatch.setattr(fetching, "TIMEOUT", 0.4)
    monkeypatch.setattr(fetching, "RETRIES", 1)
    assert fetching.fetch(raw, tmp_path)[0].read_bytes() == CONTENT
    with pytest.raises(DataError, match=r"no answer within|no connection"):
        fetching.fetch(RawFile("b.csv", digest(CONTENT), (Address(f"{server.url}/b.csv"),)), tmp_path)


def test_the_second_address_and_the_second_form_are_tried(server, tmp_path):
    server.files |= {"/b.csv": CONTENT}
    other = RawFile("b.csv", digest(CONTENT), (Address(f"{server.url}/b.csv"),))
    raw = RawFile("a.csv", "0" * 64, (Address(f"{server.url}/none"), Address(f"{server.url}/b.csv")), also=(other,))
    path, form = fetching.fetch(raw, tmp_path)
    assert form == other and path.name == "b.csv"


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFRONT_OFFLINE", "0")
    monkeypatch.setattr(fetching, "RETRIES", 1)

    def refuse(*arguments: object, **options: object) -> None:
        raise requests.ConnectionError("no route")

    monkeypatch.setattr(requests, "get", refuse)
    raw = RawFile("a.csv", "0" * 64, (Address("https://example.invalid/a.csv"),))
    with pytest.raises(DataError, match=r"https://example\.invalid/a\.csv: no connection .*put it by hand at"):
        fetching.fetch(raw, tmp_path)


def test_no_room_on_the_disk(server, tmp_path, monkeypatch):
    server.files["/a.zip"] = zipped(**{"a.csv": CONTENT})

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetching.shutil, "copyfileobj", full)
    raw = RawFile("a.csv", digest(CONTENT), (Address(f"{server.url}/a.zip", "a.csv"),))
    with pytest.raises(DataError, match="no room on the disk"):
        fetching.fetch(raw, tmp_path)
    assert left(tmp_path) == []


def test_switched_off_and_without_an_address(tmp_path, monkeypatch):
    raw = RawFile("a.csv", "0" * 64, (Address("https://example.invalid/a.csv"),))
    with pytest.raises(
        DataError, match=r"switched off .*to be had from https://example\.invalid/a\.csv; put it by hand"
    ):
        fetching.fetch(raw, tmp_path)
    monkeypatch.setenv("FAIRFRONT_OFFLINE", "0")
    with pytest.raises(DataError, match="no address that gives this very file"):
        fetching.fetch(RawFile("a.csv", "0" * 64), tmp_path)
