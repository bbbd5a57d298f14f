from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

from netqos.model.traffic import Decision
from netqos.runtime.agent import STREAM_BACKLOG, DecisionFeed
from tests.unit.runtime.test_ticks import QUIET


def publish_from_a_thread(feed: DecisionFeed, decisions: tuple[Decision, ...]) -> None:
    thread = threading.Thread(target=feed.publish, args=(decisions,))
    thread.start()
    thread.join()


async def test_every_reader_gets_what_a_loop_thread_publishes() -> None:
    feed = DecisionFeed(asyncio.get_running_loop())
    readers = [feed.read(), feed.read()]
    waiting = [asyncio.ensure_future(anext(reader)) for reader in readers]
    await asyncio.sleep(0)
    publish_from_a_thread(feed, (QUIET,))
    assert await asyncio.gather(*waiting) == [QUIET, QUIET]
    for reader in readers:
        await reader.aclose()  # type: ignore[attr-defined]  # it is an async generator


async def test_a_slow_reader_misses_the_newest_and_delays_nobody() -> None:
    feed = DecisionFeed(asyncio.get_running_loop())
    reader = feed.read()
    first = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    ticks = [replace(QUIET, at_s=float(number)) for number in range(STREAM_BACKLOG + 50)]
    publish_from_a_thread(feed, tuple(ticks))
    await asyncio.sleep(0)
    got = [(await first).at_s] + [(await anext(reader)).at_s for _ in range(STREAM_BACKLOG - 1)]
    assert got == [float(number) for number in range(STREAM_BACKLOG)]
    await reader.aclose()  # type: ignore[attr-defined]  # as above


async def test_nobody_reading_costs_nothing() -> None:
    feed = DecisionFeed(asyncio.get_running_loop())
    feed.publish((QUIET,))
    assert feed._readers == set()
