"""Make the embedded Parquet files from the raw ones: ``python data/make_embedded.py [RAW_FOLDER] [--out FOLDER]``.

RAW_FOLDER (default: the folder named by FAIRFRONT_DATA) holds the raw files under the paths that registry.toml gives;
each is verified by its SHA-256 before it is read. The files are written to data/, or to FOLDER, and a line a file says
whether it has the SHA-256 of the registry. The same raw files give the same bytes with the same pyarrow.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fairfront import paths
from fairfront.datasets.files import read_verified
from fairfront.datasets.registry import FileInfo, files
from fairfront.datasets.sources import RAW
from fairfront.errors import FairfrontError


def make(file: FileInfo, raw_folder: Path, out: Path) -> Path:
    """Write one embedded file and return its path.

    Raises
    ------
    DataError
        A raw file is absent or is not the registry's.
    """
    raw = [raw_folder / item.path for item in file.raw]
    for path, item in zip(raw, file.raw, strict=True):
        read_verified(path, item.sha256, f"get it from {file.canonical}")
    # No pandas metadata: it would carry the versions of pandas and pyarrow into the bytes.
    table = pa.Table.from_pandas(RAW[file.name](raw), preserve_index=False).replace_schema_metadata(None)
    if file.path is None:
        raise ValueError(f"{file.name} is not embedded")
    target = out / file.path.name
    with tempfile.TemporaryDirectory(dir=out) as folder:
        unfinished = Path(folder) / file.path.name
        pq.write_table(table, unfinished, compression="zstd", compression_level=19, version="2.6", store_schema=False)
        os.replace(unfinished, target)
    return target


def main() -> int:
    """Make every file; the exit status is 1 where one differs from the registry, 2 where one cannot be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", nargs="?", type=Path, default=paths.external_data(), metavar="RAW_FOLDER")
    parser.add_argument("--out", type=Path, default=paths.data(), metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.raw is None:
        parser.error("no folder of raw files: give it, or set FAIRFRONT_DATA")
    arguments.out.mkdir(parents=True, exist_ok=True)
    same = True
    for file in files(embedded=True).values():
        try:
            path = make(file, arguments.raw, arguments.out)
        except FairfrontError as error:
            print(error, file=sys.stderr)
            return 2
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        same &= digest == file.sha256
        verdict = "as in the registry" if digest == file.sha256 else "NOT the registry's"
        print(f"{path.name}: {path.stat().st_size:,} bytes, sha256 {digest}, {verdict}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
