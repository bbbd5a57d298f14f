"""The source on real files, with hints given by hand; real inotify is in test_watching.py."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from netqos.errors import Rejected
from netqos.model.health import error
from netqos.model.inputs import Freshness
from netqos.settings.file import parse_documents
from netqos.settings.issues import Code, Issue
from netqos.settings.values import Settings
from netqos.sources.acceptance import Configuration
from netqos.sources.base import Snapshot, Source
from netqos.sources.localfile import LocalFile, Pace
from netqos.testing.clock import FakeClock

QUICK = Pace(settle_s=0.0, settle_most_s=0.0, recheck_s=60.0, poll_s=0.01, deadline_s=60.0)


class Hints:
    """A watch that tells what the test wants it to tell."""

    def __init__(self) -> None:
        self.refusal = ""
        self.followed: tuple[Path, ...] = ()
        self.is_closed = False
        self.on_change: Callable[[], None] = lambda: None

    def __call__(self, on_change: Callable[[], None]) -> Hints:
        self.on_change = on_change
        return self

    def follow(self, folders: Iterable[Path]) -> str:
        self.followed = tuple(folders)
        return self.refusal

    def close(self) -> None:
        self.is_closed = True


class Reader:
    """Takes snapshots one by one, each with a deadline."""

    def __init__(self, source: LocalFile) -> None:
        self.stream: AsyncIterator[Snapshot[Configuration]] = source.snapshots()

    async def next(self) -> Snapshot[Configuration]:
        return await asyncio.wait_for(anext(self.stream), 10)

    async def close(self) -> None:
        await self.stream.aclose()  # type: ignore[attr-defined]  # it is an async generator


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "netqos.yaml"
    put(path, "onExit: restore\n")
    return path


def put(path: Path, text: str | None) -> None:
    """Replace the file in one step (the source may be reading just now), or remove it."""
    if text is None:
        path.unlink()
    else:
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)


def freshness(source: Source[Configuration]) -> Freshness:
    return source.state.freshness


async def test_a_change_is_delivered_after_a_hint(main: Path) -> None:
    hints = Hints()
    source = LocalFile(main, clock=FakeClock(), pace=QUICK, watch=hints)
    reader = Reader(source)
    assert freshness(source) is Freshness.WAITING
    first = await reader.next()
    assert first.value.documents == (("netqos.yaml", "onExit: restore\n"),)
    assert hints.followed == (main.parent,)
    put(main, "onExit: keep\n")
    hints.on_change()
    second = await reader.next()
    assert second.value.settings.on_exit.value == "keep"
    assert freshness(source) is Freshness.FRESH
    await reader.close()
    assert hints.is_closed


async def test_a_hint_without_a_change_delivers_nothing(main: Path) -> None:
    hints = Hints()
    parsed: list[int] = []

    def parse(documents: object) -> object:
        parsed.append(1)
        return parse_documents(documents)  # type: ignore[arg-type]

    reader = Reader(LocalFile(main, clock=FakeClock(), parse=parse, pace=QUICK, watch=hints))  # type: ignore[arg-type]
    await reader.next()
    waiting = asyncio.ensure_future(reader.next())
    for _ in range(20):
        hints.on_change()
        await asyncio.sleep(0)
    assert not waiting.done()
    put(main, "onExit: keep\n")
    hints.on_change()
    await waiting
    assert len(parsed) == 2
    await reader.close()


async def test_without_watches_it_looks_by_itself(main: Path) -> None:
    hints = Hints()
    hints.refusal = "inotify watch limit reached"
    reader = Reader(LocalFile(main, clock=FakeClock(), pace=QUICK, watch=hints))
    first = await reader.next()
    assert [one.code for one in first.findings] == ["configuration-unwatched"]
    assert "inotify watch limit reached" in first.findings[0].message
    put(main, "onExit: keep\n")
    assert (await reader.next()).value.settings.on_exit.value == "keep"
    hints.refusal = ""
    assert (await reader.next()).findings == ()
    await reader.close()


async def test_what_no_hint_told_is_found_by_the_slow_look(main: Path) -> None:
    pace = Pace(recheck_s=0.01, deadline_s=60.0)
    reader = Reader(LocalFile(main, clock=FakeClock(), pace=pace, watch=Hints()))
    await reader.next()
    put(main, "onExit: keep\n")
    assert (await reader.next()).value.settings.on_exit.value == "keep"
    await reader.close()


async def test_a_request_makes_it_look(main: Path) -> None:
    source = LocalFile(main, clock=FakeClock(), pace=QUICK, watch=Hints())
    reader = Reader(source)
    await reader.next()
    put(main, "onExit: keep\n")
    source.wake()
    assert (await reader.next()).value.settings.on_exit.value == "keep"
    await reader.close()


async def test_a_broken_file_leaves_the_last_good_settings(main: Path) -> None:
    hints = Hints()
    source = LocalFile(main, clock=FakeClock(), pace=QUICK, watch=hints)
    reader = Reader(source)
    first = await reader.next()
    for broken, place in [("", "line 1"), ("onExit: [\n", "line 2"), ("onExit: maybe\n", "line 1")]:
        put(main, broken)
        hints.on_change()
        found = await reader.next()
        assert found.value == first.value
        assert found.findings[0].subject == f"netqos.yaml {place}"
        assert freshness(source) is Freshness.STALE
    put(main, None)
    hints.on_change()
    assert [one.code for one in (await reader.next()).findings] == ["configuration-missing"]
    put(main, "onExit: restore\n")
    hints.on_change()
    assert (await reader.next()).findings == ()
    await reader.close()


async def test_what_others_judge_refuses_a_reading_like_a_wrong_text(main: Path) -> None:
    def check(settings: Settings) -> Iterator[Issue]:
        if "zap" in settings.backends:
            yield Issue(code=Code.BACKEND, path=("backends", 1), message="no", hint="remove it")

    hints = Hints()
    parse = partial(parse_documents, check=check)
    source = LocalFile(main, clock=FakeClock(), parse=parse, pace=QUICK, watch=hints)
    reader = Reader(source)
    first = await reader.next()
    put(main, "onExit: keep\nbackends: [tc, zap]\n")
    hints.on_change()
    found = await reader.next()
    assert found.value == first.value
    assert found.findings == (
        error("configuration-invalid", "netqos.yaml line 2", "backends[1]: no", hint="remove it"),
    )
    assert freshness(source) is Freshness.STALE
    await reader.close()


async def test_a_file_that_is_not_read_is_told_and_does_not_quicken_the_pace(main: Path) -> None:
    (main.parent / "conf.d").mkdir()
    (main.parent / "conf.d/a.yml").write_text("{}")
    source = LocalFile(main, clock=FakeClock(), pace=QUICK, watch=Hints())
    reader = Reader(source)
    assert [one.code for one in (await reader.next()).findings] == ["configuration-ignored"]
    put(main, "onExit: keep\n")
    with pytest.raises(TimeoutError):  # it looks when it is told, as before
        await asyncio.wait_for(anext(reader.stream), 0.1)


async def test_a_file_that_is_being_written_is_not_taken_for_broken(main: Path) -> None:
    hints = Hints()
    pace = Pace(settle_s=1.0, settle_most_s=60.0, recheck_s=60.0, deadline_s=60.0)
    reader = Reader(LocalFile(main, clock=FakeClock(), pace=pace, watch=hints))
    await reader.next()
    waiting = asyncio.ensure_future(reader.next())
    for text in ("", "onExit", "onExit: keep\n"):
        put(main, text)
        hints.on_change()
        await asyncio.sleep(0.02)
    found = await waiting
    assert (found.value.settings.on_exit.value, found.findings) == ("keep", ())
    await reader.close()


async def test_files_that_never_hold_still_are_looked_at_all_the_same(main: Path) -> None:
    hints, clock = Hints(), FakeClock()
    pace = Pace(settle_s=60.0, settle_most_s=5.0, recheck_s=60.0, deadline_s=60.0)
    reader = Reader(LocalFile(main, clock=clock, pace=pace, watch=hints))
    await reader.next()
    waiting = asyncio.ensure_future(reader.next())
    put(main, "onExit: keep\n")
    while not waiting.done():
        clock.advance(1.0)
        hints.on_change()
        await asyncio.sleep(0.001)
    assert (await waiting).value.settings.on_exit.value == "keep"
    await reader.close()


async def test_a_start_with_a_broken_file(main: Path) -> None:
    put(main, "onExit: maybe\n")
    hints = Hints()
    with pytest.raises(Rejected, match="maybe"):
        await Reader(LocalFile(main, clock=FakeClock(), pace=QUICK, watch=hints)).next()
    assert hints.is_closed
    remembered = (("netqos.yaml", "onExit: restore\n"),)
    reader = Reader(LocalFile(main, clock=FakeClock(), remembered=remembered, pace=QUICK, watch=hints))
    first = await reader.next()
    assert first.value.documents == remembered
    assert [one.code for one in first.findings] == ["configuration-invalid", "configuration-remembered"]
    await reader.close()


async def test_a_file_system_that_hangs_is_told_and_waited_for(main: Path) -> None:
    free = threading.Event()
    free.set()

    class Hanging(Hints):
        def follow(self, folders: Iterable[Path]) -> str:
            free.wait(10)
            return super().follow(folders)

    hints = Hanging()
    pace = Pace(settle_s=0.0, settle_most_s=0.0, recheck_s=0.01, poll_s=0.01, deadline_s=0.02)
    source = LocalFile(main, clock=FakeClock(), pace=pace, watch=hints)
    reader = Reader(source)
    first = await reader.next()
    free.clear()
    hanging = await reader.next()
    assert hanging.value == first.value
    assert [one.code for one in hanging.findings] == ["configuration-hangs"]
    threads = threading.active_count()
    await asyncio.sleep(0.1)
    assert threading.active_count() == threads  # it waits for the one that hangs
    free.set()
    assert (await reader.next()).findings == ()
    await reader.close()


async def test_a_fault_of_the_reader_ends_the_source(main: Path) -> None:
    def parse(documents: object) -> object:
        raise RuntimeError("we are broken")

    with pytest.raises(RuntimeError, match="we are broken"):
        await Reader(LocalFile(main, clock=FakeClock(), parse=parse, pace=QUICK, watch=Hints())).next()  # type: ignore[arg-type]
