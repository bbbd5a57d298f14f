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
    _call("mallopt", _ARENA_MAX, 1)
    _call("mallopt", _TRIM_THRESHOLD, _KEPT_BYTES)


def give_back() -> None:
    """Give pages back that hold nothing, also from within the heap; it takes milliseconds, and no thread waits."""
    _call("malloc_trim", 0)


def _call(name: str, *numbers: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*numbers)
