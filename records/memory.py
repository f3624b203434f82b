"""Memory that was freed goes back to the system, so that a long run stays as small as it needs.

glibc keeps a heap for each thread and returns little of it by itself; a run that reads and writes
thousands of parts from a pool of threads holds hundreds of MiB in this way. Elsewhere than on
glibc the functions do less or nothing.
"""

import ctypes
from functools import cache

import pyarrow as pa

M_ARENA_MAX = -8
"""glibc's malloc.h."""

ARENAS = 2
"""Heaps that threads share."""


@cache
def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


def share_heaps() -> None:
    """To be called early in a process: heaps that there are stay."""
    if (glibc := _glibc()) is not None:
        glibc.mallopt(M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Return what is free. Takes some milliseconds: for the ends of stages, not of items."""
    pa.default_memory_pool().release_unused()
    if (glibc := _glibc()) is not None:
        glibc.malloc_trim(0)
