"""Losses behind the node: what receivers report, less what the node's own queues dropped.

A workload whose own queue dropped something meanwhile is left out: its receivers report that too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from netqos.backend import LeafCounters
from netqos.engine.pathwindow import Losses
from netqos.errors import NetqosError
from netqos.host.losses import LossCounter
from netqos.model.desired import DesiredState
from netqos.model.health import Finding, info
from netqos.model.ids import IfName, PodUid
from netqos.model.levels import Direction, Level, PerLevel

Counters = Callable[[], Awaitable[Mapping[PodUid, tuple[LeafCounters, ...]]]]
Key = tuple[PodUid, Direction]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """One reading, by workload: answers that report a gap, own drops and packets so far; who dropped just before."""

    answers: Mapping[Key, int]
    drops: Mapping[Key, int]
    packets: Mapping[Key, int]
    dropping: frozenset[Key] = frozenset()


class LossBook:
    """Keeps the last reading. For one task."""

    def __init__(self, make: Callable[[], LossCounter | None]) -> None:
        """`make` is asked once, when something is to be counted for the first time."""
        self._make = make
        self._counter: LossCounter | None = None
        self._is_made = False
        self._page: _Page | None = None

    def arm(self, uplinks: Sequence[IfName]) -> None:
        """Count at these uplinks from now on; none: not at all."""
        if uplinks and not self._is_made:
            self._counter, self._is_made = self._make(), True
        if self._counter is None:
            return
        if uplinks:
            self._counter.arm(uplinks)
        else:
            self._counter.disarm()
            self._page = None

    async def read(self, whole: DesiredState, counters: Counters) -> Mapping[Direction, Losses]:
        """The losses of each direction since the last reading; nothing while it does not count."""
        if self._counter is None or not self._counter.is_armed:
            return {}
        reported = await asyncio.to_thread(self._counter.read)
        owner = {address: pod.uid for pod in whole.pods for address in pod.addresses}
        answers: Counter[Key] = Counter()
        for way, found in reported.items():
            for address, count in found.items():
                if address in owner:
                    answers[owner[address], way] += count
        before, self._page = self._page, _turned(self._page, answers, await counters())
        if before is None:
            return {}
        levels = {pod.uid: pod.level for pod in whole.pods}
        return {way: _losses(way, before, self._page, levels) for way in Direction}

    def findings(self, *, needed: bool) -> tuple[Finding, ...]:
        """Why nothing can be counted, where that is of interest."""
        problem: NetqosError | None = self._counter.problem if self._counter is not None else None
        lacks = self._is_made and (self._counter is None or problem is not None)
        if not (needed and lacks):
            return ()
        why = str(problem) if problem is not None else "nftables cannot be used here"
        return (
            info(
                "losses-not-counted", "path", f"whether packets are lost behind the node is not known: {why}"
            ),
        )


def _turned(
    before: _Page | None,
    answers: Mapping[Key, int],
    counters: Mapping[PodUid, Sequence[LeafCounters]],
) -> _Page:
    drops: Counter[Key] = Counter()
    packets: Counter[Key] = Counter()
    for uid, leaves in counters.items():
        for one in leaves:
            drops[uid, one.direction] += one.drops
            packets[uid, one.direction] += one.sent_packets
    known = drops if before is None else before.drops
    dropping = frozenset(key for key, count in drops.items() if count != known.get(key, 0))
    return _Page(answers=answers, drops=drops, packets=packets, dropping=dropping)


def _losses(way: Direction, before: _Page, now: _Page, levels: Mapping[PodUid, Level]) -> Losses:
    """Of workloads that dropped nothing of their own in this reading or the one before."""
    own = before.dropping | now.dropping
    answers, packets, workloads = [0, 0, 0], [0, 0, 0], 0
    for key in now.packets:
        level = levels.get(key[0])
        if key[1] is not way or key in own or level is None:
            continue
        new = now.answers.get(key, 0) - before.answers.get(key, 0)
        answers[level.value] += new
        packets[level.value] += max(0, now.packets[key] - before.packets.get(key, 0))
        workloads += new > 0
    return Losses(answers=PerLevel(*answers), packets=PerLevel(*packets), workloads=workloads)
