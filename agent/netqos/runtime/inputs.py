"""What feeds the cells: the host's links and cgroups.

It writes its cells and nothing else; whatever happens outside, a changed cell says "look again" to the reconciler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from netqos.errors import Unsupported
from netqos.host.cgroups import Cgroups
from netqos.host.clock import Clock
from netqos.host.links import Links
from netqos.host.neighbours import Neighbours
from netqos.host.node import WorkloadFacts, node_facts
from netqos.runtime.reconciler import World
from netqos.settings.annotations import FOR_CNI
from netqos.settings.values import Settings

LOOK_S = 0.8
"""How often links and cgroups are looked at without an event: a cgroup that was made anew is known within a second."""

GAP_S = 0.05
"""The least time between two looks, so that a storm of events costs no more than twenty looks a second."""


class HostFacts:
    """Keeps the node's facts and the workloads current."""

    def __init__(self, name: str, world_settings: Settings, clock: Clock) -> None:
        """Made in the network namespace that is shaped; `Unsupported` where its links cannot be read."""
        self.own_addresses: frozenset[str] = frozenset()
        self._name = name
        self._clock = clock
        try:
            self._links, neighbours = Links(), Neighbours()
        except OSError as problem:
            raise Unsupported(
                f"the links of this network namespace cannot be read: {problem.strerror}",
                subject="netlink",
                hint="see whether this process may open netlink sockets",
            ) from problem
        self._neighbours = neighbours
        self._cgroups = Cgroups(Path(world_settings.paths.cgroup))
        self._workloads = WorkloadFacts()

    def look(self, world: World) -> None:
        """Read everything once and put it into the cells."""
        settings = world.settings.value
        links = self._links.read(settings.uplinks, now_s=self._clock.monotonic())
        seen = self._neighbours.read(now_s=self._clock.monotonic(), wanted=lambda: _limited(world))
        world.node.set(node_facts(self._name, links, self._cgroups, seen))
        self.own_addresses = self._links.local_addresses()
        world.workloads.set(
            self._workloads.look(settings.workloads, self._cgroups, own_addresses=self.own_addresses)
        )

    async def follow(self, world: World, look_again: asyncio.Event) -> None:
        """Look again after an event of the kernel's, after new settings, and every `LOOK_S`."""
        loop = asyncio.get_running_loop()
        with closing(self._links), closing(self._neighbours):

            def on_event() -> None:
                if self._links.has_news():
                    look_again.set()

            loop.add_reader(self._links.fileno(), on_event)
            try:
                while True:
                    self.look(world)
                    looked_s = self._clock.monotonic()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await look_again.wait()
                    await asyncio.sleep(looked_s + GAP_S - self._clock.monotonic())
                    look_again.clear()
            finally:
                loop.remove_reader(self._links.fileno())


def _limited(world: World) -> Iterator[str]:
    """The addresses of pods that a CNI's limiter may be meant for."""
    for pod in world.pods.value:
        if not FOR_CNI.isdisjoint(pod.annotations):
            yield from pod.addresses
