from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from netqos.host.heap import give_back, keep_heap_small

HEAPS = """
import ctypes, sys, threading
from netqos.host.heap import keep_heap_small
if sys.argv[1] == "small":
    keep_heap_small()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
places, together = set(), threading.Barrier(4)
def take():
    together.wait()
    places.add(libc.malloc(ctypes.c_size_t(1000)) >> 26)
    together.wait()
threads = [threading.Thread(target=take) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(places))
"""


def test_where_the_c_library_has_no_knobs_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _name: SimpleNamespace())
    keep_heap_small()
    give_back()


def test_all_threads_allocate_from_one_heap() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAPS, "small"], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "1\n"
