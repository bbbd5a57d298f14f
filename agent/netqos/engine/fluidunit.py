"""One unit under made-up traffic: sources, queues with tail drop, HTB, and the counters that a sampler would read.

It is stepped by a few milliseconds, since a level's burst is 5 ms of its rate. What a step sends leaves by HTB's rules
(`netqos.engine.fluid`); what does not fit into a queue at the end of the step is lost. Counters are whole bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netqos.engine.fluid import Scheduler
from netqos.engine.fluidflows import Demand, Source, source
from netqos.engine.fluidtree import GSO, Member, Tree
from netqos.engine.unitstate import LoopPolicy
from netqos.model.levels import PerLevel
from netqos.model.traffic import Decision, Unit, UnitSample

STEP_S = 0.002
GROWTH = 4.0
"""A greedy source keeps so many steps' worth waiting: it fills a link within some steps, and leaves little behind."""

WAITS = 100.0
"""Less than this many bytes in all queues is rounding, not a packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Who sends what through a unit: its workloads, and the demands of each by its name.

    `beside_bps` is what the devices carry that never comes to the unit; None where the unit meets all of it.
    """

    members: tuple[Member, ...]
    demands: Mapping[str, tuple[Demand, ...]] = field(default_factory=dict)
    beside_bps: int | None = None


class _Queue:
    """A leaf's queue: the bytes of each source that wait, sent in proportion."""

    __slots__ = ("_sent", "limit", "lost", "offered", "sources", "waiting")

    def __init__(self, sources: Sequence[Source], limit: float) -> None:
        self.sources = sources
        self.limit = limit
        self.waiting = [0.0] * len(sources)
        self.offered = self.lost = 0.0
        self._sent = 0.0

    def take(self, now_s: float, step_s: float) -> list[float]:
        """Take what the sources offer, more than fits too: a step sends and takes at once."""
        room = max(0.0, min(self.limit, GSO) + GROWTH * self._sent - sum(self.waiting))
        offers = [
            one.offer(now_s, step_s, queued=queued, room=room)
            for one, queued in zip(self.sources, self.waiting, strict=True)
        ]
        self.waiting = [queued + offer for queued, offer in zip(self.waiting, offers, strict=True)]
        return offers

    def give(self, now_s: float, step_s: float, sent: float, offers: Sequence[float]) -> None:
        """Let go of what was sent, and of what does not fit: elastic sources give way first, the others lose."""
        before = sum(self.waiting)
        share = sent / before if before > 0 else 0.0
        gone = [queued * share for queued in self.waiting]
        self.waiting = [queued - one for queued, one in zip(self.waiting, gone, strict=True)]
        lost = [0.0] * len(offers)
        if before - sent > self.limit:
            self._withhold(before - sent - self.limit)
            lost = self._drop(sum(self.waiting) - self.limit, offers)
        for one, mine, missing in zip(self.sources, gone, lost, strict=True):
            one.told(now_s, step_s, sent=mine, lost=missing)
        self.offered += sum(offers)
        self._sent = sent

    def _withhold(self, over: float) -> None:
        for place, one in enumerate(self.sources):
            if over > 0 and one.is_elastic:
                back = min(over, self.waiting[place])
                self.waiting[place] -= back
                self.offered -= back
                over -= back

    def _drop(self, over: float, offers: Sequence[float]) -> list[float]:
        """What each source loses, in proportion to what it has just sent."""
        lossy = [0.0 if one.is_elastic else offer for one, offer in zip(self.sources, offers, strict=True)]
        all_lossy = sum(lossy)
        lost = [0.0] * len(lossy)
        if over > 0 and all_lossy > 0:
            lost = [min(over * one / all_lossy, held) for one, held in zip(lossy, self.waiting, strict=True)]
            self.waiting = [held - one for held, one in zip(self.waiting, lost, strict=True)]
            self.lost += sum(lost)
        return lost


class FluidUnit:
    """A unit with its traffic. `policy` is that with which the tree is made: the planned total and bands."""

    def __init__(self, unit: Unit, policy: LoopPolicy, traffic: Traffic, *, step_s: float = STEP_S) -> None:
        """Nothing was sent yet, and every level has its own ceiling."""
        self.unit = unit
        self.now_s = 0.0
        self.traffic = traffic
        self._policy = policy
        self._step_s = step_s
        self._steps = 0
        self._beside = 0.0
        self.tree = Tree(total_bps=policy.total_bps, bands=policy.bands, members=traffic.members)
        self._scheduler = Scheduler(self.tree.classes, self.tree.leaves)
        self._queues = [
            _Queue([source(one) for one in traffic.demands.get(member.name, ())], limit)
            for member, limit in zip(traffic.members, self.tree.limits, strict=True)
        ]

    def run_until(self, end_s: float) -> None:
        """Let traffic flow up to a moment."""
        while self.now_s < end_s - self._step_s / 2:
            self._step(self.now_s, self._step_s)
            self._steps += 1
            self.now_s = self._steps * self._step_s

    def _step(self, now_s: float, step_s: float) -> None:
        offers = [queue.take(now_s, step_s) for queue in self._queues]
        waiting = [sum(queue.waiting) for queue in self._queues]
        sent = self._scheduler.serve(waiting, step_s)
        for queue, amount, offered in zip(self._queues, sent, offers, strict=True):
            if offered or amount:
                queue.give(now_s, step_s, amount, offered)
        self._beside += (self.traffic.beside_bps or 0) / 8 * step_s

    @property
    def sent(self) -> PerLevel[float]:
        """The bytes that each level has sent since the start."""
        return self.tree.levels.map(lambda one: one.sent)

    @property
    def sent_by_member(self) -> list[float]:
        """The bytes that each workload has sent since the start."""
        return [leaf.sent for leaf in self.tree.leaves]

    @property
    def lost_by_member(self) -> list[float]:
        """The bytes of each workload that did not fit."""
        return [queue.lost for queue in self._queues]

    @property
    def lost(self) -> float:
        """All bytes that did not fit."""
        return sum(self.lost_by_member)

    @property
    def waiting(self) -> PerLevel[float]:
        """The bytes that wait in each level."""
        found = [0.0, 0.0, 0.0]
        for member, queue in zip(self.traffic.members, self._queues, strict=True):
            found[member.level.value] += sum(queue.waiting)
        return PerLevel(*found)

    def sample(self, *, tells_levels: bool = False) -> UnitSample:
        """The counters now. `tells_levels`: as a backend that knows which level has packets waiting."""
        waiting = self.waiting
        offered = sum(queue.offered for queue in self._queues)
        has_beside = self.traffic.beside_bps is not None
        return UnitSample(
            unit=self.unit,
            taken_at_s=self.now_s,
            level_bytes=self.sent.map(int),
            backlogged=sum(waiting) > WAITS,
            level_backlogged=waiting.map(lambda one: one > WAITS) if tells_levels else None,
            device_bytes=int(offered + self._beside) if has_beside else None,
            offered_bytes=int(offered) if has_beside else None,
        )

    def plan(self, policy: LoopPolicy) -> None:
        """Put other promises in force, as a reconcile does; who waits goes on waiting."""
        self._policy = policy
        self.tree.plan(total_bps=policy.total_bps, bands=policy.bands)
        for queue, limit in zip(self._queues, self.tree.limits, strict=True):
            queue.limit = limit

    def apply(self, decision: Decision) -> None:
        """Put a decision in force, as the unit's mechanism does."""
        if decision.guarantees_bps is not None and decision.room_bps is not None:
            self.tree.share(decision.room_bps, decision.guarantees_bps, decision.ceilings_bps)
        elif self._policy.lends:
            self.tree.lend(decision.ceilings_bps.l0, decision.room_bps)
        else:
            self.tree.police(decision.ceilings_bps)
