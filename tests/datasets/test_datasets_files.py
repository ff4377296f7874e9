"""Reading a verified file."""

from __future__ import annotations

import hashlib

import pandas as pd
import pytest

from fairfront.datasets.files import read_parquet, read_verified
from fairfront.errors import DataError


def test_every_caller_gets_a_frame_of_its_own(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": [1, 2]}).to_parquet(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    one = read_parquet(path, digest)
    one["b"] = 3
    one.loc[0, "a"] = 7
    assert read_parquet(path, digest).to_dict("list") == {"a": [1, 2]}


def test_content_is_returned_only_when_its_digest_is_right(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"rows")
    assert read_verified(path, hashlib.sha256(b"rows").hexdigest(), "ask") == b"rows"
    with pytest.raises(DataError, match=r"a\.bin: corrupted, its SHA-256 is \w{64}, the registry expects 0{64}; ask"):
        read_verified(path, "0" * 64, "ask")


def test_an_absent_file_and_a_folder(tmp_path):
    with pytest.raises(DataError, match=r"none: cannot be read: No such file or directory; ask"):
        read_verified(tmp_path / "none", "0" * 64, "ask")
    with pytest.raises(DataError, match=r"cannot be read: .*; ask"):
        read_verified(tmp_path, "0" * 64, "ask")
