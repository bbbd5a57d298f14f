"""A thread that does what a `ListWatch` asks, and shows the newest snapshot. It never queues anything.

Whatever it meets, it goes on; only `stop` ends it. It is a daemon thread: an end of the process does not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from netqos.host.clock import Clock
from netqos.model.inputs import SourceState
from netqos.sources.kube.answers import Broken, garbled, read_event, read_page
from netqos.sources.kube.asking import AskVersion, ListPage, OpenWatch, Rest
from netqos.sources.kube.connection import Connection, Response
from netqos.sources.kube.listwatch import ListWatch

T = TypeVar("T")

_LONGEST_LINE = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is followed: objects of one kind, their collection's path and the selectors that name our part of it."""

    name: str
    kind: str
    path: str
    selectors: Mapping[str, str]


class Watcher(Generic[T]):
    """One list and watch in a thread of its own."""

    def __init__(
        self,
        target: Target,
        core: ListWatch[T],
        connection: Connection,
        clock: Clock,
        *,
        changed: Callable[[], None],
        crashed: Callable[[str], None] = lambda _name: None,
    ) -> None:
        """`changed` is called from the thread after each change of items or state; `crashed` for a bug of ours."""
        self.name = target.name
        self._target = target
        self._core = core
        self._connection = connection
        self._clock = clock
        self._changed = changed
        self._crashed = crashed
        self._stop = threading.Event()
        self._response: Response | None = None
        self._login = 0
        self._items: tuple[T, ...] | None = None
        self._thread = threading.Thread(target=self._run, name=f"kube-{target.name}", daemon=True)

    @property
    def items(self) -> tuple[T, ...] | None:
        """The newest snapshot, None before the first one."""
        return self._items

    @property
    def state(self) -> SourceState:
        """Whether the snapshot may be trusted."""
        return self._core.state

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()
        response = self._response
        if response is not None:
            response.interrupt()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._step()
            except Broken as problem:
                self._failed(problem)
            except Exception as problem:  # noqa: BLE001 - a source's border: whatever it meets, the others go on
                self._crashed(self.name)
                self._failed(garbled(f"{type(problem).__name__}: {problem}"))

    def _step(self) -> None:
        action = self._core.next(self._clock.monotonic())
        match action:
            case Rest():
                if action.reload:
                    self._connection.reload(self._login)
                self._stop.wait(action.seconds)
            case ListPage():
                self._list(action)
            case AskVersion():
                self._ask_version()
            case OpenWatch():
                self._watch(action)

    def _failed(self, problem: Broken) -> None:
        self._login = self._connection.generation
        before = self._core.state
        if self._core.failed(problem.failure, self._clock.monotonic()):
            self._show()
        elif self._core.state != before:
            self._changed()

    def _list(self, page: ListPage) -> None:
        query: dict[str, object] = {**self._target.selectors}
        if page.limit:
            query["limit"] = page.limit
        if page.token:
            query["continue"] = page.token
        count = size_bytes = 0

        def each(item: object) -> None:
            nonlocal count
            count += 1
            self._core.take(item)

        def sized(pieces: Iterator[bytes]) -> Iterator[bytes]:
            nonlocal size_bytes
            for piece in pieces:
                size_bytes += len(piece)
                yield piece

        response = self._connection.request("GET", self._target.path, query=query)
        try:
            meta = read_page(sized(response.pieces()), self._target.kind, each)
        finally:
            response.close()
        if self._core.page_read(meta, items=count, size_bytes=size_bytes, now_s=self._clock.monotonic()):
            self._show()

    def _ask_version(self) -> None:
        query = {**self._target.selectors, "limit": 1}
        response = self._connection.request("GET", self._target.path, query=query)
        try:
            meta = read_page(response.pieces(), self._target.kind, lambda _item: None)
        finally:
            response.close()
        self._core.answered(meta.version)

    def _watch(self, watch: OpenWatch) -> None:
        query = {
            **self._target.selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": watch.version,
            "timeoutSeconds": watch.timeout_s,
        }
        patience_s = self._core.patience_s(watch)
        response = self._connection.request("GET", self._target.path, query=query)
        self._response = response
        try:
            self._core.opened(self._clock.monotonic())
            self._changed()
            self._follow(response, watch, patience_s)
        finally:
            self._response = None
            response.close()

    def _follow(self, response: Response, watch: OpenWatch, patience_s: float) -> None:
        rest = b""
        response.wait_at_most(patience_s)
        while not self._stop.is_set():
            data = response.read_some()
            if not data:
                self._core.ended(self._clock.monotonic())
                return
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise garbled("the watch sent a line without an end")
            if not self._take(lines):
                return
            response.wait_at_most(self._core.patience_s(watch))

    def _take(self, lines: list[bytes]) -> bool:
        """Everything that came together is shown together; False when the watch is over."""
        is_changed, is_over = False, False
        for line in filter(None, lines):
            event = read_event(line, self._target.kind)
            is_changed = self._core.event(event, self._clock.monotonic()) or is_changed
            if self._core.is_broken:
                is_over = True
                break
        if is_changed:
            self._show()
        elif is_over:
            self._changed()
        return not is_over

    def _show(self) -> None:
        self._items = tuple(self._core.items.values())
        self._changed()
