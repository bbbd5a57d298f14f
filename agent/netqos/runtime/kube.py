"""The Kubernetes sources at work: their way into the cells, what is shown of them, told to the cluster and remembered.

Each source has a thread; one more joins what they have into whole inputs, so that the event loop and the fast loop's
thread never wait for a list to be decoded. The event loop takes the newest inputs only. Loaded on nodes that follow
Kubernetes, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping

from netqos.host.clock import Clock
from netqos.model.composed import Composition
from netqos.model.health import Finding
from netqos.model.inputs import Freshness, SourceState
from netqos.observe.kubereporter import Reporter
from netqos.observe.kubestatus import STATUS_EVERY_S, status_text
from netqos.observe.logs import get_logger
from netqos.runtime.kubefeeds import KubeFeeds, KubeInputs, Thread
from netqos.runtime.kubefindings import (
    NO_KIND,
    NODE,
    away,
    good_until,
    no_such_node,
    node_unknown,
    undelivered,
    with_memory,
)
from netqos.runtime.kubememory import KubeMemory
from netqos.runtime.reconciler import World
from netqos.settings.values import Settings
from netqos.sources.kube.answers import read_object
from netqos.sources.kube.asking import Pace
from netqos.sources.kube.nearnames import ask_near

LOOK_S = 0.8
"""How often cgroups are looked for, and the node's addresses compared, without an event."""

NEAR_AGAIN_S = 300.0
"""How often Nodes of a like name are looked for while there is none of ours."""

FIRST_S = 10.0
"""How long a single pass (`--once`, `--dry-run`) waits for the first snapshots."""


class KubeSources:
    """All of them for one node; `start` and `stop` in the event loop."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        clock: Clock,
        *,
        own_addresses: Callable[[], frozenset[str]] = frozenset,
        pace: Pace | None = None,
        memory: KubeMemory | None = None,
    ) -> None:
        """What is remembered is read; nothing else is loaded or started yet."""
        self._clock = clock
        self._node = node
        self._log = get_logger("netqos.kubernetes")
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._inputs = KubeInputs()
        self._memory = memory
        self._heard = memory.heard() if memory is not None else {}
        self._feeds = KubeFeeds(
            settings,
            node,
            clock,
            own_addresses=own_addresses,
            pace=pace,
            remembered=memory.pods() if memory is not None else (),
            changed=self._news.set,
        )
        self._reporter = Reporter(node, self._post, clock, log=self._log.warning)
        self._publishes = settings.kubernetes.publish_status
        self._publish_at_s = self._near_at_s = 0.0
        self._near: tuple[str, ...] = ()
        self._world: World | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_answers = False
        self._arrived = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kube-inputs", daemon=True)

    # -------------------------------------------------------------- life

    def start(self, world: World) -> None:
        """Begin to fill the cells, from the running event loop."""
        self._world, self._loop = world, asyncio.get_running_loop()
        for part in self._parts():
            part.start()
        self._thread.start()

    def stop(self) -> None:
        """End every thread soon; nobody waits for them."""
        self._stopped.set()
        self._news.set()
        for part in self._parts():
            part.stop()

    def join(self, timeout_s: float) -> None:
        """Wait after `stop` until the threads have ended; a daemon that ends need not."""
        end_s = self._clock.monotonic() + timeout_s
        for part in self._parts():
            part.join(max(0.0, end_s - self._clock.monotonic()))
        self._thread.join(max(0.0, end_s - self._clock.monotonic()))

    async def first(self, timeout_s: float = FIRST_S) -> bool:
        """Wait until every source has answered; False when it takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._has_answers:
                    await self._arrived.wait()
                    self._arrived.clear()
        except TimeoutError:
            return False
        return True

    def _parts(self) -> Iterator[Thread]:
        yield from self._feeds.threads()
        yield self._reporter

    # -------------------------------------------------------------- what is shown, told and remembered

    def states(self) -> Mapping[str, SourceState]:
        """Each source's state by its name."""
        return with_memory(self._feeds.states(), self._heard)

    def undelivered(self) -> Mapping[str, str]:
        """The sources that have not answered since the start, and what is the matter with each."""
        return undelivered(self._feeds.states())

    def waited_for(self) -> Mapping[str, str]:
        """The sources without which the daemon is not ready, and what is the matter with each."""
        unknown = {NODE: no_such_node(self._node)} if self._inputs.is_unknown else {}
        return {**self.undelivered(), **unknown}

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong in the NodeSLO, with the sources themselves, and what may not be told."""
        inputs, states = self._inputs, self._feeds.states()
        of_slo = states["nodeslo"]
        has_kind = not of_slo.detail or of_slo.freshness is not Freshness.FRESH
        return (
            *(inputs.slo.findings if inputs.slo is not None else ()),
            *((node_unknown(self._node, self._near),) if inputs.is_unknown else ()),
            *away(states, self._heard),
            *(() if has_kind else (NO_KIND,)),
            *self._reporter.findings(),
        )

    def report(self, composition: Composition) -> None:
        """Tell the cluster of rejected annotations, and where it is wanted of the node; returns at once."""
        self._reporter.see(composition.pods)
        now_s = self._clock.monotonic()
        if self._publishes and composition.desired.complete and now_s >= self._publish_at_s:
            self._publish_at_s = now_s + STATUS_EVERY_S
            self._reporter.annotate(status_text(composition))

    def remember(self, *, at_end: bool = False) -> None:
        """Write what is due of what must survive a restart; waits for the disk."""
        if self._memory is not None:
            heard = good_until(self._feeds.states(), self._clock.monotonic())
            self._memory.save(self._feeds.known_pods, heard, at_end=at_end)

    # -------------------------------------------------------------- joining

    def _run(self) -> None:
        log = self._log
        while not self._stopped.is_set():
            try:
                self._join()
            except Exception:  # a source's border: the next look may succeed, and what was taken stays
                log.exception("kubernetes_inputs_failed")
            self._news.wait(LOOK_S)
            self._news.clear()

    def _join(self) -> None:
        inputs = self._feeds.newest()
        if inputs.is_unknown:
            self._look_for_near_names()
        if inputs != self._inputs:
            self._inputs = inputs
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    self._loop.call_soon_threadsafe(self._take)

    def _look_for_near_names(self) -> None:
        now_s = self._clock.monotonic()
        if now_s >= self._near_at_s:
            self._near_at_s = now_s + NEAR_AGAIN_S
            self._near = ask_near(self._feeds.connection, self._node)

    def _take(self) -> None:
        """Put the newest inputs into the cells; a source that has not delivered leaves what was remembered.

        So do answers about a node that the server does not know: they may add, and remove nothing.
        """
        world, inputs = self._world, self._inputs
        if world is None or self._stopped.is_set():
            return
        policy = inputs.slo.policy if inputs.slo is not None else None
        world.pods.set(inputs.pods)
        if inputs.has_slo and not (inputs.is_unknown and policy is None):
            world.slo.set(policy)
        if inputs.has_node:
            world.bandwidth_annotation.set(inputs.bandwidth)
        world.complete.set(inputs.complete)
        self._has_answers = inputs.answered
        self._arrived.set()

    def _post(self, method: str, path: str, body: object, content_type: str) -> None:
        response = self._feeds.connection.request(method, path, body=body, content_type=content_type)
        with contextlib.closing(response):
            read_object(response.read_all(), "Event" if method == "POST" else "Node")
