"""What speaks against us in the kernel's counters: packets that HTB sent unshaped, and whatever `evidence` finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from netqos.model.health import Finding
from netqos_tc import answers, claims
from netqos_tc.asked import Asked
from netqos_tc.directpackets import DirectPackets
from netqos_tc.evidence import Evidence
from netqos_tc.inventory import Inventory
from netqos_tc.links import Link
from netqos_tc.observed import TcObserved
from netqos_tc.reader import Reader


class Suspicions:
    """Looks again from time to time, and remembers what was told."""

    def __init__(self, reader: Reader, evidence: Evidence, monotonic: Callable[[], float]) -> None:
        """Both stay the caller's, but for the evidence's end."""
        self._reader = reader
        self._evidence = evidence
        self._monotonic = monotonic
        self._direct = DirectPackets()
        self._told: tuple[Finding, ...] = ()

    def tell(self, found: Inventory) -> tuple[Finding, ...]:
        """What is to be told beside what was read just now."""
        self._told = self._direct.findings(found.direct_packets, found.links, self._monotonic())
        return (*self._told, *self._evidence.findings())

    def has_news(self, links: Mapping[int, Link], asked: Asked, seen: TcObserved) -> bool:
        """Whether there is something else to tell than before; `links` are the devices with a tree of ours."""
        if not self._evidence.is_due:
            return False
        trees = {ifindex: link.name for ifindex, link in links.items()}
        is_news = self._evidence.look(
            trees, asked.uplinks, lambda way: claims.claimed_by(seen.elements, asked.names, way)
        )
        return self._has_direct_news(links) or is_news

    def end(self) -> None:
        """Take away what was put into the kernel for it."""
        self._evidence.end()

    def _has_direct_news(self, links: Mapping[int, Link]) -> bool:
        roots = {ifindex: self._reader.our_root(ifindex) for ifindex in links}
        counts = {
            ifindex: answers.read_direct_packets(root.options)
            for ifindex, root in roots.items()
            if root is not None
        }
        return self._direct.findings(counts, links, self._monotonic()) != self._told
