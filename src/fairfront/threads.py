"""One thread for torch, for as long as it takes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["one_torch_thread"]


@contextmanager
def one_torch_thread() -> Generator[None]:
    """Let torch compute with one thread within this context, and with as many as before after it.

    The studies' networks are small: more threads would not be faster, and the last digits would depend on their number.
    """
    import torch  # takes a second: only where something is computed

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
