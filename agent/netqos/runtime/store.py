"""Cells: the latest value of one thing, written by one task and read by many.

Tasks pass the newest value, never a queue that grows. A reader that was away misses what is outdated anyway.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Wake:
    """Says "look again" to one waiting task; many calls before it looks count as one."""

    def __init__(self) -> None:
        """Start with nothing to look at."""
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the waiting task, or the next one that waits."""
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether the task, once it waits, is woken at once."""
        return self._event.is_set()

    async def wait(self, timeout_s: float | None) -> bool:
        """Return True when woken, False after `timeout_s` seconds (None: wait for ever)."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Cell(Generic[T]):
    """The latest value of one thing; setting a different value wakes the task that depends on it."""

    def __init__(self, value: T, *, wake: Wake) -> None:
        """Start with `value`; `wake` belongs to the reader that must look again."""
        self._value = value
        self._wake = wake

    @property
    def value(self) -> T:
        """The latest value."""
        return self._value

    def set(self, value: T) -> bool:
        """Keep `value`; True, and the reader is woken, when it differs from the one before."""
        if value == self._value:
            return False
        self._value = value
        self._wake.set()
        return True
