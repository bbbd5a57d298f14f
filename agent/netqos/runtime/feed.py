"""What the loops' threads tell, handed to those who read it in the event loop: the stream, and recordings.

A loop's thread only appends, and only while somebody reads: it wakes nobody and waits for nobody. Readers look ten
times a second, so that their wake-ups do not grow with the ticks: each takes the interpreter from the loop. What was
told is kept once for all of them; one that falls behind by more goes on with the oldest that is left, and the numbers
tell what it missed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
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

PACE_S = 0.1


class Feed(Generic[T]):
    """Hands items from any thread to the readers in the event loop."""

    def __init__(self, *, pace_s: float = PACE_S) -> None:
        """`pace_s` is how long a reader that has everything waits before it looks again."""
        self._pace_s = pace_s
        self._ring: list[Numbered[T] | None] = [None] * KEPT
        self._next = 0
        self._readers = 0
        self._publishing = threading.Lock()  # of several loops' threads; readers take it never

    @property
    def is_read(self) -> bool:
        """Whether there is a reader."""
        return self._readers > 0

    def publish(self, items: Sequence[T]) -> None:
        """From any thread; nothing is kept while nobody reads."""
        if not self._readers:
            return
        with self._publishing:
            for item in items:
                self._ring[self._next % KEPT] = Numbered(self._next, item)
                self._next += 1

    async def read(self) -> AsyncGenerator[tuple[Numbered[T], ...], None]:
        """Every item from now on with its number, together those that are there already.

        Where a number is left out, the reader was too slow for it.
        """
        place = self._next
        self._readers += 1
        self._readers_changed()
        try:
            while True:
                there = self._next
                place = max(place, there - KEPT)
                end = min(there, place + TOGETHER)
                found = tuple(self._from_to(place, end))
                place = end
                if found:
                    yield found
                if place == there:
                    await asyncio.sleep(self._pace_s)
        finally:
            self._readers -= 1
            self._readers_changed()

    def _from_to(self, start: int, end: int) -> Iterator[Numbered[T]]:
        """Those of the items that no newer one has replaced meanwhile."""
        for number in range(start, end):
            found = self._ring[number % KEPT]
            if found is not None and found.number == number:
                yield found

    def _readers_changed(self) -> None:
        if not self._readers:
            self._ring = [None] * KEPT


class RoundFeed(Feed[Round]):
    """The rounds of all loops. A loop is listened to only while somebody reads."""

    def __init__(self, *, pace_s: float = PACE_S) -> None:
        """No loop is known yet."""
        super().__init__(pace_s=pace_s)
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

    def __init__(self) -> None:
        """Nobody reads yet."""
        self.stream = Feed[Ground]()
        self.rounds = RoundFeed()
