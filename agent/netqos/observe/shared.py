"""One reading for many readers: what costs something is not done again for each client that asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from netqos.host.clock import Clock

T = TypeVar("T")

SHARED_S = 0.25
"""How old a result may be that a second reader is given."""


class Shared(Generic[T]):
    """Reads something costly for one caller at a time, and gives a result that is fresh enough to all who wait."""

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Clock) -> None:
        """`read` is called at most once every `SHARED_S` seconds."""
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: tuple[float, T] | None = None

    async def get(self) -> T:
        """The newest result."""
        async with self._lock:
            if self._kept is None or self._clock.monotonic() - self._kept[0] >= SHARED_S:
                result = await self._read()
                self._kept = (self._clock.monotonic(), result)
            return self._kept[1]
