from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

from netqos.engine.rounds import Steering, Taken
from netqos.observe.view import Numbered, Round
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.feed import KEPT, TOGETHER, Feed, RoundFeed
from netqos.settings.values import LoopSettings

NOTHING = Steering(states={})
TAKEN = Taken(before=NOTHING, after=NOTHING, samples=(), policies={}, decisions=())


def publish_from_a_thread(feed: Feed[int], *items: int) -> None:
    thread = threading.Thread(target=feed.publish, args=(items,))
    thread.start()
    thread.join()


Reader = AsyncGenerator[tuple[Numbered[int], ...], None]


async def listening(feed: Feed[int]) -> tuple[Reader, asyncio.Future[tuple[Numbered[int], ...]]]:
    """A reader that waits for its first items."""
    reader = feed.read()
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    return reader, waiting


def items(first: int, *values: int) -> tuple[Numbered[int], ...]:
    return tuple(Numbered(number, value) for number, value in enumerate(values, first))


async def test_every_reader_gets_what_a_loop_thread_publishes() -> None:
    feed = Feed[int](pace_s=0.001)
    readers = [await listening(feed) for _ in range(3)]
    publish_from_a_thread(feed, 11, 12)
    assert await asyncio.gather(*(first for _, first in readers)) == [items(0, 11, 12)] * 3
    late, first = await listening(feed)
    publish_from_a_thread(feed, 13)
    assert await first == items(2, 13)
    assert [await anext(reader) for reader, _ in readers] == [items(2, 13)] * 3
    for reader in (late, *(reader for reader, _ in readers)):
        await reader.aclose()


async def test_a_slow_reader_goes_on_with_the_oldest_that_is_left_and_delays_nobody() -> None:
    feed = Feed[int](pace_s=0.001)
    slow, first = await listening(feed)
    publish_from_a_thread(feed, 0)
    assert await first == items(0, 0)
    publish_from_a_thread(feed, *range(1, KEPT + 51))
    got = [await anext(slow) for _ in range(KEPT // TOGETHER)]
    assert max(map(len, got)) == TOGETHER
    assert [one for some in got for one in some] == list(items(51, *range(51, KEPT + 51)))
    await slow.aclose()


async def test_nothing_is_kept_while_nobody_reads() -> None:
    feed = Feed[int](pace_s=0.001)
    publish_from_a_thread(feed, 1)
    reader, first = await listening(feed)
    publish_from_a_thread(feed, 2)
    assert await first == items(0, 2)
    await reader.aclose()
    publish_from_a_thread(feed, 3)
    assert (feed.is_read, any(feed._ring)) == (False, False)


async def test_loops_are_listened_to_only_while_somebody_reads_and_new_ones_too() -> None:
    feed = RoundFeed(pace_s=0.001)
    early, later = (FastLoop(name, LoopSettings(), on_lost=lambda _why: None) for name in ("tc", "terway"))
    feed.add("tc", early)
    assert early._steerer.on_sample is None
    reader = feed.read()
    first = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    feed.add("terway", later)
    for loop in (early, later):
        assert loop._steerer.on_sample is not None
        loop._steerer.on_sample(TAKEN)
    assert await first == (Numbered(0, Round("tc", TAKEN)), Numbered(1, Round("terway", TAKEN)))
    await reader.aclose()
    assert [loop._steerer.on_sample for loop in (early, later)] == [None, None]


async def test_several_threads_are_told_in_one_order() -> None:
    feed = Feed[int](pace_s=0.001)
    reader, first = await listening(feed)

    def tell() -> None:
        for _ in range(100):
            feed.publish((1, 2))

    threads = [threading.Thread(target=tell) for _ in range(2)]
    for thread in threads:
        thread.start()
    found = list(await first)
    while len(found) < 400:
        found += await anext(reader)
    assert [one.number for one in found] == list(range(400))
    for thread in threads:
        thread.join()
    await reader.aclose()
