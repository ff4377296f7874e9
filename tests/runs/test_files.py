from __future__ import annotations

from pathlib import Path

import pytest

from fairfront.errors import OutputError
from fairfront.runs.files import require_writable, temporary_folder, write_together


def write(text: str) -> object:
    return lambda path: path.write_text(text)


def test_a_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    folder = require_writable(tmp_path / "a" / "b", "--out")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("place", ["file/inside", "file"])
def test_a_folder_that_cannot_be_is_an_error_that_names_the_argument(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(OutputError, match=r"^--out: cannot write to .*file"):
        require_writable(tmp_path / place, "--out")
    assert (tmp_path / "file").read_text() == "kept"


def test_files_are_written_together(tmp_path: Path) -> None:
    write_together({tmp_path / "a": write("1"), tmp_path / "b": write("2")}, "--out")  # type: ignore[dict-item]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "1", "b": "2"}


def test_if_one_fails_none_changes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"^--out: cannot write to .*: No space left on device"):
        write_together({tmp_path / "a": write("new"), tmp_path / "b": fail}, "--out")  # type: ignore[dict-item]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(OutputError, match=r"^--out: cannot write to .*it is a folder"):
        write_together({tmp_path / "a": write("1"), tmp_path / "b": write("2")}, "--out")  # type: ignore[dict-item]
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_temporary_folder_lies_beside_and_goes(tmp_path: Path) -> None:
    with temporary_folder(tmp_path / "entry") as folder:
        assert folder.parent == tmp_path
        (folder / "file").write_text("1")
    assert list(tmp_path.iterdir()) == []
