"""What a tree stands on: one device with its total and the levels' promises, and what these come to in a tree. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from netqos_tc import params, queues
from netqos_tc.spec import FQ_CODEL, FairSpec, LeafQueueSpec, one_queue

NO_LEVELS_PRIO: Final = 1
"""The priority of every pod where nothing is shaped by level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A workload's leaf: its level, and its limit in bits per second."""

    level: Level
    limit_bps: int | None


@lru_cache(maxsize=4096)
def member(level: Level, limit_bps: int | None) -> Member:
    """A workload's leaf; equal ones are one object."""
    return Member(level=level, limit_bps=limit_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a tree stands on. `total_bps` None: unknown; `bands` None: nothing is shaped by level, only limits bite.

    `parts` is how many uplinks share total and bands: 1 where they are its own. `codel_ms`: leaves have fq_codel with
    this target, None: bfifo.
    """

    ifindex: int
    mtu: int
    total_bps: int | None
    bands: PerLevel[Band] | None
    queue_ms: int
    filters: bool = True
    parts: int = 1
    codel_ms: int | None = None

    @property
    def most_bps(self) -> int:
        """The total, or what is taken for one that is unknown."""
        return self.total_bps or params.UNKNOWN_TOTAL_BPS

    @property
    def in_force(self) -> PerLevel[Band]:
        """The bands; without levels such as promise and take away nothing."""
        if self.bands is not None:
            return self.bands
        off = Band(guarantee_bps=0, ceiling_bps=self.most_bps, enabled=False)
        return PerLevel(off, off, off)

    def under(self, level: Level, most_bps: int | None) -> int:
        """The ceiling of something in a level that may have `most_bps`."""
        ceil_bps = self.ceiling_bps(level)
        return ceil_bps if most_bps is None else min(ceil_bps, most_bps)

    def guarantee_bps(self, level: Level) -> int:
        """What a level's class has as its rate, never nothing."""
        return max(self.in_force[level].guarantee_bps, params.FLOOR_BPS)

    def ceiling_bps(self, level: Level) -> int:
        """The most that a level may have, never nothing."""
        return max(self.in_force[level].ceiling_bps, params.FLOOR_BPS)

    def countable_bps(self, level: Level, limit_bps: int | None) -> int:
        """The rate for which a leaf's queue is made: what it can count on, min(limit, guarantee of its level)."""
        band = self.in_force[level]
        if band.enabled and band.guarantee_bps > 0:
            own_bps = band.guarantee_bps
        else:
            own_bps = band.ceiling_bps if self.total_bps is not None else params.UNKNOWN_QUEUE_BPS
        return own_bps if limit_bps is None else min(own_bps, limit_bps)

    def prio(self, level: Level) -> int:
        """The priority of the leaves of a level."""
        return level.value if self.bands is not None else NO_LEVELS_PRIO

    def queue(self, rate_bps: int) -> LeafQueueSpec:
        """The queue of a leaf that can count on a rate."""
        if self.codel_ms is not None:
            return _fair_queue(rate_bps, target_ms=self.codel_ms, mtu=self.mtu)
        return _plain_queue(rate_bps, target_ms=self.queue_ms, mtu=self.mtu)


@lru_cache(maxsize=4096)
def _plain_queue(rate_bps: int, *, target_ms: int, mtu: int) -> LeafQueueSpec:
    limit = params.queue_bytes(rate_bps, target_ms=target_ms, mtu=mtu)
    return one_queue(LeafQueueSpec(limit=limit))


@lru_cache(maxsize=4096)
def _fair_queue(rate_bps: int, *, target_ms: int, mtu: int) -> LeafQueueSpec:
    target_us = params.fair_target_us(rate_bps, target_ms=target_ms, mtu=mtu)
    fair = FairSpec(
        flows=params.FAIR_FLOWS,
        quantum=params.frame_bytes(mtu),
        target_ticks=queues.codel_ticks(target_us),
        ecn=True,
    )
    limit = params.fair_bytes(rate_bps, mtu=mtu)
    return one_queue(LeafQueueSpec(kind=FQ_CODEL, limit=limit, fair=fair))
