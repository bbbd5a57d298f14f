"""A bell between threads: one waits for it or for a time, others ring.

A bare lock, since `threading.Event` makes a new lock for each wait: the fast loop waits twenty times a second and more.
"""

from __future__ import annotations

import contextlib
import threading


class Bell:
    """Rung before it is waited for, it is heard at once; rung several times, it is heard once."""

    def __init__(self) -> None:
        """Silent."""
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake the one who waits; from any thread."""
        with contextlib.suppress(RuntimeError):  # it has been rung already
            self._lock.release()

    def wait(self, timeout_s: float | None) -> bool:
        """Whether it was rung within the time; None waits for ever."""
        return self._lock.acquire(timeout=-1 if timeout_s is None else max(0.0, timeout_s))
