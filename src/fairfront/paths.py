"""Every path of the project, once.

In a checkout the folders are those of the repository; in an installed wheel the data and the chapters lie inside the
package and results go to the user's own folders.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["build", "cache", "checkout", "data", "external_data", "notebooks", "package", "store"]


def package() -> Path:
    """Return the folder of the importable package."""
    return Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Return the root of the checkout that the package is imported from, or None in an installed wheel."""
    root = package().parents[1]
    return root if (root / "pyproject.toml").is_file() and (root / "data").is_dir() else None


def data() -> Path:
    """Return the folder of the embedded data, its datasheets, the registry and the claims."""
    root = checkout()
    return root / "data" if root else package() / "_data"


def notebooks() -> Path:
    """Return the folder of the chapters (Jupytext py:percent scripts)."""
    root = checkout()
    return root / "notebooks" if root else package() / "_notebooks"


def external_data() -> Path | None:
    """Return the folder named by FAIRFRONT_DATA, which holds raw files that may not be embedded, or None."""
    folder = os.environ.get("FAIRFRONT_DATA")
    return Path(folder).expanduser().resolve() if folder else None


def cache() -> Path:
    """Return the folder of downloaded files: FAIRFRONT_CACHE, else the user's cache."""
    folder = os.environ.get("FAIRFRONT_CACHE")
    return Path(folder).expanduser().resolve() if folder else platformdirs.user_cache_path("fairfront")


def build() -> Path:
    """Return the folder of everything that is made: `_build` of the checkout, else in the user's cache."""
    root = checkout()
    return root / "_build" if root else cache() / "build"


def store() -> Path:
    """Return the folder of results: FAIRFRONT_STORE, else `store` in the build folder."""
    folder = os.environ.get("FAIRFRONT_STORE")
    return Path(folder).expanduser().resolve() if folder else build() / "store"
