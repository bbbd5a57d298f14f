"""What the loops' threads tell, handed to those who read it in the event loop: the stream, and recordings.

A loop's thread never waits for a reader and costs nothing while there is none. What was told is kept for a while, once
for all readers; one that falls behind by more goes on with the oldest that is left, and the numbers tell what it
missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from netqos.engine.rounds import Taken
from netqos.engine.why import Ground
from netqos.observe.view import Numbered, Round
from netqos.runtime.fastloop import FastLoop

T = TypeVar("T")

KEPT = 512
"""Items that a reader may be behind before it misses some: five seconds of two units in contention."""


TOGETHER = 32
"""At most so many at once: a reader that has fallen behind is no reason to make others wait."""


class Feed(Generic[T]):
    """Hands items from any thread to the readers in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """`loop` is the event loop in which the readers run."""
        self._loop = loop
        self._kept: deque[T] = deque(maxlen=KEPT)
        self._count = 0
        self._readers = 0
        self._news = asyncio.Event()

    @property
    def is_read(self) -> bool:
        """Whether there is a reader."""
        return self._readers > 0

    def publish(self, items: Sequence[T]) -> None:
        """From any thread; nothing is kept while nobody reads."""
        if self._readers and items:
            self._loop.call_soon_threadsafe(self._take, items)

    async def read(self) -> AsyncGenerator[tuple[Numbered[T], ...], None]:
        """Every item from now on with its number, together those that are there already.

        Where a number is left out, the reader was too slow for it.
        """
        place = self._count
        self._readers += 1
        self._readers_changed()
        try:
            while True:
                while place == self._count:
                    await self._news.wait()
                oldest = self._count - len(self._kept)
                place, end = max(place, oldest), min(self._count, max(place, oldest) + TOGETHER)
                yield tuple(Numbered(one, self._kept[one - oldest]) for one in range(place, end))
                place = end
        finally:
            self._readers -= 1
            self._readers_changed()

    def _readers_changed(self) -> None:
        if not self._readers:
            self._kept.clear()

    def _take(self, items: Sequence[T]) -> None:
        if self._readers:
            self._kept.extend(items)
            self._count += len(items)
            self._news.set()
            self._news.clear()


class RoundFeed(Feed[Round]):
    """The rounds of all loops. A loop is listened to only while somebody reads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """No loop is known yet."""
        super().__init__(loop)
        self._loops: WeakKeyDictionary[FastLoop, str] = WeakKeyDictionary()

    def add(self, name: str, loop: FastLoop) -> None:
        """Let the rounds of this loop be read too."""
        self._loops[loop] = name
        self._listen(name, loop)

    def _readers_changed(self) -> None:
        super()._readers_changed()
        for loop, name in self._loops.items():
            self._listen(name, loop)

    def _listen(self, name: str, loop: FastLoop) -> None:
        loop.listen(partial(self._told, name) if self.is_read else None)

    def _told(self, name: str, taken: Taken) -> None:
        self.publish((Round(name, taken),))


class Feeds:
    """What is told of the loops: each decision with what it was made from, and each round to run it again."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody reads yet."""
        self.stream = Feed[Ground](loop)
        self.rounds = RoundFeed(loop)
