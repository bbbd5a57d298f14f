"""The kubelet's own list of pods, asked for now and then: a second source for when the API server is away.

It stands on this node's loopback with a certificate that nobody vouches for; what it gets from us is the daemon's
token, as every caller's. Whose that is it asks the API server, and remembers the answer for a time (its setting
`authentication.webhook.cacheTTL`, two minutes by default). So it is asked once a minute also while nobody wants its
pods: else it could not tell who we are just when the API server is away. Each answer is a whole snapshot; a failed one
changes nothing but the state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from netqos.host.clock import Clock
from netqos.model.inputs import Freshness, SourceState
from netqos.sources.kube.answers import Broken, read_page
from netqos.sources.kube.connection import Connection, Response, loopback_get
from netqos.sources.kube.pods import KubePod, parse_pod

URL = "https://127.0.0.1:10250/pods"
POLL_S = 5.0
GREET_S = 60.0
NOT_ASKED = "not asked"
"""What its state says while nobody wants it."""


class Kubelet:
    """Polls in a thread of its own while `is_wanted()`."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        *,
        is_wanted: Callable[[], bool],
        changed: Callable[[], None],
        url: str = URL,
        poll_s: float = POLL_S,
    ) -> None:
        """`changed` is called from the thread after each answer."""
        self._connection = connection
        self._clock = clock
        self._is_wanted = is_wanted
        self._changed = changed
        self._url = url
        self._poll_s = poll_s
        self._stop = threading.Event()
        self._items: tuple[KubePod, ...] | None = None
        self._state = SourceState(freshness=Freshness.WAITING, detail=NOT_ASKED)
        self._greeted_s = -GREET_S
        self._thread = threading.Thread(target=self._run, name="kube-kubelet", daemon=True)

    @property
    def items(self) -> tuple[KubePod, ...] | None:
        """The newest answer; None without one, and while nobody wants any: old ones mislead."""
        return self._items

    @property
    def state(self) -> SourceState:
        """Whether the last poll was answered."""
        return self._state

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with the next poll at the latest."""
        self._stop.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._is_wanted():
                self._poll()
                self._changed()
            else:
                self._rest()
            self._stop.wait(self._poll_s)

    def _rest(self) -> None:
        """While nobody wants its pods."""
        if self._items is not None:
            self._items = None
            self._state = SourceState(freshness=Freshness.WAITING, detail=NOT_ASKED)
            self._changed()
        if self._clock.monotonic() - self._greeted_s >= GREET_S:
            self._greeted_s = self._clock.monotonic()
            self._greet()

    def _greet(self) -> None:
        """Be asked who we are; the answer itself is not read."""
        login = self._connection.generation
        try:
            loopback_get(self._url, self._connection.bearer()).close()
        except Broken as problem:
            if problem.failure.is_stale_login:
                self._connection.reload(login)

    def _poll(self) -> None:
        login = self._connection.generation
        try:
            items = self._read(loopback_get(self._url, self._connection.bearer()))
        except Broken as problem:
            if problem.failure.is_stale_login:
                self._connection.reload(login)
            was_waiting = self._items is None
            self._state = SourceState(
                freshness=Freshness.WAITING if was_waiting else Freshness.STALE,
                since_s=self._state.since_s,
                detail=problem.failure.detail,
            )
            return
        if items != self._items:
            self._items = items
        self._state = SourceState(freshness=Freshness.FRESH, since_s=self._clock.monotonic())

    def _read(self, response: Response) -> tuple[KubePod, ...]:
        held = {pod.facts.uid: pod for pod in self._items or ()}
        found: dict[str, KubePod] = {}

        def each(document: object) -> None:
            parsed = parse_pod(document)
            if parsed is not None and parsed[1] is not None:
                before = held.get(parsed[1].facts.uid)
                found[parsed[0]] = before if before == parsed[1] and before is not None else parsed[1]

        try:
            read_page(response.pieces(), "Pod", each, has_version=False)
        finally:
            response.close()
        return tuple(found.values())
