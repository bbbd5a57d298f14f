"""The configuration files as a source (contract 1.6, 1.8).

Events wake, content decides: whatever happened to the files, they are read as a whole and compared. A slow look now
and then finds what no event told; without watches it is a quicker one. `netqos.sources.acceptance` decides what is in
force.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from netqos.host.clock import Clock
from netqos.model.health import Finding, error, info
from netqos.model.inputs import SourceState
from netqos.settings.file import parse_documents
from netqos.sources.acceptance import Acceptance, Configuration
from netqos.sources.base import Snapshot
from netqos.sources.configfiles import Documents, Unreadable, watched_folders
from netqos.sources.reading import Parse, Reader, Reading
from netqos.sources.watching import FolderWatch, Watch

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast the source looks, in seconds.

    After an event it waits for `settle_s` of quiet, `settle_most_s` at most; without events it looks every
    `recheck_s`, without watches every `poll_s`. A reading that takes longer than `deadline_s` is told and waited for.
    """

    settle_s: float = 0.1
    settle_most_s: float = 1.0
    recheck_s: float = 10.0
    poll_s: float = 1.0
    deadline_s: float = 5.0


class LocalFile:
    """Implements `netqos.sources.base.Source[Configuration]`; `snapshots` is for one reader."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        remembered: Documents = (),
        parse: Parse = parse_documents,
        pace: Pace | None = None,
        watch: Callable[[Callable[[], None]], Watch] = FolderWatch,
    ) -> None:
        """`remembered` are the texts accepted before the restart, which stand in for files that are broken at it."""
        self._path = path.absolute()
        self._clock = clock
        self._reader = Reader(self._path, parse)
        self._is_watched = True
        self._pace = pace or Pace()
        self._make_watch = watch
        self._acceptance = Acceptance(self._path.name, parse=parse, remembered=remembered)
        self._event = asyncio.Event()
        self._pending: asyncio.Future[Reading] | None = None

    @property
    def path(self) -> Path:
        """The main file."""
        return self._path

    @property
    def state(self) -> SourceState:
        """FRESH while the files say what is in force, STALE while an earlier reading stands in for them."""
        return self._acceptance.state

    def wake(self) -> None:
        """Look again now (SIGHUP)."""
        self._event.set()

    async def snapshots(self) -> AsyncIterator[Snapshot[Configuration]]:
        """What is in force, at once and after each change.

        Raises `Rejected`, before the first one only, where the files are broken and nothing is remembered: exit 5.
        """
        watch = self._make_watch(self._call_from_thread(self._event.set))
        newest: Snapshot[Configuration] | None = None
        try:
            while True:
                reading = await self._read_in_time(watch)
                snapshot = self._acceptance.judge(reading, now_s=self._clock.monotonic())
                if snapshot != newest:
                    newest = snapshot
                    yield snapshot
                await self._rest(self._pace.recheck_s if self._is_watched else self._pace.poll_s)
        finally:
            watch.close()

    async def _read_in_time(self, watch: Watch) -> Reading:
        """Read in a thread: a file system that hangs must stop neither the daemon nor its end."""
        if self._pending is None:
            self._pending = self._in_thread(lambda: self._read(watch))
        done, _ = await asyncio.wait({self._pending}, timeout=self._pace.deadline_s)
        if not done:
            return Reading(problem=Unreadable([_hangs(self._path.name, self._pace.deadline_s)]))
        finished, self._pending = self._pending, None
        return finished.result()

    def _read(self, watch: Watch) -> Reading:
        refusal = watch.follow(watched_folders(self._path))
        self._is_watched = not refusal
        reading = self._reader.read()
        unwatched = () if self._is_watched else (_unwatched(self._path.name, refusal, self._pace.poll_s),)
        return replace(reading, findings=(*unwatched, *reading.findings))

    async def _rest(self, longest_s: float) -> None:
        """Until something happened and it is quiet again, or for so long."""
        if not await self._happens(longest_s):
            return
        quiet_by_s = self._clock.monotonic() + self._pace.settle_most_s
        while self._clock.monotonic() < quiet_by_s and await self._happens(self._pace.settle_s):
            pass

    async def _happens(self, longest_s: float) -> bool:
        try:
            async with asyncio.timeout(longest_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def _in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """A daemon thread and no executor's: the interpreter waits for those at its end."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def finish(settle: Callable[[], None]) -> None:
            if not future.done():
                settle()

        deliver = self._call_from_thread(finish)

        def run() -> None:
            try:
                result = work()
            except Exception as problem:  # noqa: BLE001 - handed to the task that waits for it
                deliver(partial(future.set_exception, problem))
            else:
                deliver(partial(future.set_result, result))

        threading.Thread(target=run, name="configuration-reader", daemon=True).start()
        return future

    def _call_from_thread(self, function: Callable[..., None]) -> Callable[..., None]:
        loop = asyncio.get_running_loop()

        def call(*arguments: object) -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(function, *arguments)

        return call


def _hangs(name: str, deadline_s: float) -> Finding:
    return error(
        "configuration-hangs",
        name,
        f"reading it takes longer than {deadline_s:g} s",
        hint="see whether its file system answers",
    )


def _unwatched(name: str, refusal: str, poll_s: float) -> Finding:
    return info(
        "configuration-unwatched",
        name,
        f"its folders cannot be watched ({refusal}); it is read every {poll_s:g} s instead",
        hint="raise fs.inotify.max_user_instances and max_user_watches",
    )
