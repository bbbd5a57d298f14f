"""The C library's heap, told to stay small: a daemon of many threads, of which one computes at a time.

glibc gives each thread an arena of its own, so that threads do not wait for each other's allocations, and keeps what is
freed. Behind the interpreter's lock nobody waits, and 500 pods took 4 MiB more for it.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD = -1
_ARENA_MAX = -8
_KEPT_BYTES = 64 << 10
"""malloc.h of glibc: what may be free at the top of the heap before it is given back; and how many heaps there are."""


def keep_heap_small() -> None:
    """Call it before the first thread starts. Nothing happens where the C library has no such knobs (musl)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
