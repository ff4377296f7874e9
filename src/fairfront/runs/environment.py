"""What processes that are started inherit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

__all__ = ["environment"]


@contextlib.contextmanager
def environment(**wanted: str) -> Iterator[None]:
    """Set variables of the environment inside the block, and put them back as they were after it."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
