"""A thread that writes lines to a descriptor, so that nobody else ever waits for it."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

MOST_WAITING = 2**20
"""Characters that may wait; more is dropped."""

_BATCH = 64


class LineWriter:
    """Takes lines from any thread without waiting.

    `dropped` counts the lines that found the queue full or could not be written. Once writing works again,
    `report(count)` gives the line that says how many were lost since the last report.
    """

    def __init__(self, descriptor: int, *, report: Callable[[int], str]) -> None:
        """Start the thread; the descriptor stays its owner's."""
        self.dropped = 0
        self._descriptor = descriptor
        self._report = report
        self._reported = 0
        self._lines: deque[str] = deque()
        self._waiting = 0
        self._deadline_s: float | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Leave one line, without its newline."""
        with self._changed:
            if self._waiting + len(line) > MOST_WAITING or self._deadline_s is not None:
                self.dropped += 1
                return
            self._waiting += len(line)
            self._lines.append(line)
            self._changed.notify()

    def close(self, deadline_s: float) -> None:
        """Write what waits, for at most `deadline_s` seconds, and end."""
        with self._changed:
            self._deadline_s = time.monotonic() + deadline_s
            self._changed.notify()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while batch := self._take():
            # The lost lines were newer than those that waited, so their number comes after these.
            if self._write(batch) and not self._lines and self.dropped != self._reported:
                lost, self._reported = self.dropped - self._reported, self.dropped
                self._write([self._report(lost)])

    def _take(self) -> list[str]:
        """The next lines; empty at the end."""
        with self._changed:
            while not self._lines and self._deadline_s is None:
                self._changed.wait()
            batch = [self._lines.popleft() for _ in range(min(_BATCH, len(self._lines)))]
            self._waiting -= sum(map(len, batch))
            return batch

    def _write(self, batch: list[str]) -> bool:
        rest = memoryview("".join(f"{line}\n" for line in batch).encode("utf-8", "backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                if not self._wait_until_writable():
                    break
            except OSError:  # the reader is gone, the disk is full: there is nobody left to tell
                break
        if rest:
            with self._changed:
                self.dropped += len(batch)
        return not rest

    def _wait_until_writable(self) -> bool:
        """Somebody made the descriptor non-blocking. False when the end comes first."""
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLOUT)
        while not waiting.poll(100):
            if self._deadline_s is not None and time.monotonic() > self._deadline_s:
                return False
        return True
