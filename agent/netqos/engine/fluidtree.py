"""A unit's HTB tree as a fluid: total, levels and leaves with the numbers that the tc backend gives them.

The numbers are those of `netqos_tc.params`, which the engine must not import; `tests/unit/netqos_tc/test_fluid.py`
compares the two. Bits per second in, bytes per second inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netqos.engine.fluid import Htb, Shape
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel

FRAME = 1518.0
GSO = 69_676.0
"""The largest GSO packet at an MTU of 1500, as HTB counts it; the shortest queue holds one."""

QUANTUM = 15_000.0
QUEUE_S = 0.020
INNER_BURST_S = 0.005
LEAST_INNER_BURST = L0_LEAF_BURST = 16.0 * 1024
LEAST_BPS = 8_000
MEGA = 1_000_000
_SOME = Shape(rate=1.0, ceil=1.0, burst=1.0, cburst=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A workload: its level, and its limit in bits per second."""

    name: str
    level: Level
    limit_bps: int | None = None


class Tree:
    """The classes of one unit. `leaves` in the order of the members, `limits` are the bytes that their queues take."""

    def __init__(self, *, total_bps: int, bands: PerLevel[Band], members: Sequence[Member]) -> None:
        """As the backend makes it: every level with its guarantee and ceiling, every leaf small."""
        self._members = members
        self.total = Htb(_SOME)
        self.levels: PerLevel[Htb] = PerLevel(*(Htb(_SOME, self.total) for _ in Level))
        self.leaves = [
            Htb(_SOME, self.levels[one.level], prio=one.level.value, quantum=QUANTUM) for one in members
        ]
        self.classes = [self.total, *self.levels, *self.leaves]
        self.limits: list[float] = []
        self.plan(total_bps=total_bps, bands=bands)
        for htb in self.classes:
            htb.fill()

    def plan(self, *, total_bps: int, bands: PerLevel[Band]) -> None:
        """Put other promises in force; every level has its own ceiling again, and what is in the buckets stays."""
        self._total = total_bps / 8
        self._planned = bands.map(lambda band: max(band.guarantee_bps, LEAST_BPS) / 8)
        ceils = bands.map(lambda band: max(band.ceiling_bps, LEAST_BPS) / 8)
        self._most = PerLevel(*(max(pair) for pair in zip(ceils, self._planned, strict=True)))
        self.total.shape = inner_shape(self._total, self._total)
        for one, rate, ceil in zip(self.levels, self._planned, self._most, strict=True):
            one.shape = inner_shape(rate, ceil)
        for leaf, member in zip(self.leaves, self._members, strict=True):
            leaf.shape = self._leaf_shape(member, bands)
        self.limits = [queue_bytes(_countable_bps(bands[one.level], one.limit_bps)) for one in self._members]

    def _leaf_shape(self, member: Member, bands: PerLevel[Band]) -> Shape:
        level = member.level
        count = sum(one.level is level for one in self._members) + (level is Level.L1)
        guarantee_bps = max(bands[level].guarantee_bps, LEAST_BPS)
        ceiling_bps = max(bands[level].ceiling_bps, LEAST_BPS)
        most_bps = ceiling_bps if member.limit_bps is None else min(ceiling_bps, member.limit_bps)
        return leaf_shape(level, leaf_bps(level, guarantee_bps, count), most_bps)

    def lend(self, l0_ceiling_bps: int, room_bps: int | None = None) -> None:
        """Put in force what a lending backend moves: L0's ceiling, and the total with L0's rate where that is moved."""
        l1, l2 = self._planned.l1, self._planned.l2
        total, l0 = self._total, self._planned.l0
        if room_bps is not None and room_bps / 8 < total:
            total = max(room_bps / 8, l1 + l2)
            l0 = min(l0, max(total - l1 - l2, LEAST_BPS / 8))
        ceiling = min(max(l0_ceiling_bps / 8, l0), max(self._most.l0, l0))
        self.total.shape = inner_shape(total, total)
        self.levels.l0.shape = inner_shape(l0, ceiling)

    def share(self, total_bps: int, guarantees_bps: PerLevel[int], ceilings_bps: PerLevel[int]) -> None:
        """Put in force one uplink's part of a total that several share."""
        self.total.shape = inner_shape(total_bps / 8, total_bps / 8)
        for one, rate_bps, ceil_bps in zip(self.levels, guarantees_bps, ceilings_bps, strict=True):
            rate = max(rate_bps, LEAST_BPS) / 8
            one.shape = inner_shape(rate, max(ceil_bps / 8, rate))

    def police(self, ceilings_bps: PerLevel[int]) -> None:
        """Put in force what a backend that cannot lend does: a level has its ceiling and asks nobody."""
        for one, ceil_bps in zip(self.levels, ceilings_bps, strict=True):
            ceil = max(ceil_bps, LEAST_BPS) / 8
            one.shape = inner_shape(ceil, ceil)
            one.forgive()


def inner_shape(rate: float, ceil: float) -> Shape:
    """Total or level: bursts of 5 ms."""

    def burst(one: float) -> float:
        return max(one * INNER_BURST_S, LEAST_INNER_BURST)

    return Shape(rate=rate, ceil=ceil, burst=burst(rate), cburst=burst(ceil))


def leaf_shape(level: Level, rate_bps: int, ceil_bps: int) -> Shape:
    """A leaf: a burst of two frames (16 KiB in L0), and one by its ceiling."""
    ceil = ceil_bps / 8
    burst = L0_LEAF_BURST if level is Level.L0 else 2 * FRAME
    return Shape(
        rate=min(max(rate_bps / 8, 32.0), ceil), ceil=ceil, burst=burst, cburst=leaf_cburst(ceil_bps)
    )


def leaf_cburst(ceil_bps: int) -> float:
    """5 ms of the ceiling up to 100 Mbit/s, 1 ms above, within two frames, 64 KiB and 8 MiB."""
    ceil = ceil_bps / 8
    small = ceil_bps <= 100 * MEGA
    size = min(ceil * 0.005, 65536.0) if small else min(max(ceil * 0.001, 65536.0), 8.0 * 1024 * 1024)
    return max(size, 2 * FRAME)


def leaf_bps(level: Level, guarantee_bps: int, leaves: int) -> int:
    """The rate of each leaf, small enough that all of a level together are half of its guarantee."""
    if level is Level.L0:
        host_bps = min(max(guarantee_bps * 2 // 100, 2 * MEGA), guarantee_bps // 8)
        wanted_bps = min(max(guarantee_bps // 1024, 64_000), 5 * MEGA)
    else:
        host_bps, wanted_bps = 0, max(8_000, guarantee_bps // 8192)
    budget_bps = guarantee_bps // 2 - 2 * host_bps
    if wanted_bps * leaves > budget_bps:
        wanted_bps = budget_bps // (1 << max(leaves - 1, 0).bit_length())
    return wanted_bps


def queue_bytes(rate_bps: int) -> float:
    """20 ms of what a leaf can count on, at least a GSO packet and two from 50 Mbit/s on."""
    packets = 2 if rate_bps >= 50 * MEGA else 1
    return min(max(rate_bps / 8 * QUEUE_S, packets * GSO), 32.0 * 1024 * 1024)


def _countable_bps(band: Band, limit_bps: int | None) -> int:
    own_bps = band.guarantee_bps if band.enabled and band.guarantee_bps > 0 else band.ceiling_bps
    return own_bps if limit_bps is None else min(own_bps, limit_bps)
