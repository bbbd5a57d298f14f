"""What the demo shows: who sends and receives in which phase, and what the policy promises them then. Pure.

The promises are not written down here: they follow from the policy by the allocation law that the daemon's loop uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netqos.engine.allocate import shares_bps
from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel

PHASES = 5
SHORTEST_PHASE_S = 2.5
SHORTEST_S = PHASES * SHORTEST_PHASE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One pod of the demo's node. One that is not greedy asks a small question every 10 ms, all the time."""

    name: str
    level: Level
    is_greedy: bool = True


WEB = Workload(name="web", level=Level.L0)
API = Workload(name="api", level=Level.L1)
BATCH = Workload(name="batch", level=Level.L2)
LOOKUP = Workload(name="lookup", level=Level.L0, is_greedy=False)
WORKLOADS = (WEB, API, BATCH, LOOKUP)
GREEDY = PerLevel(WEB, API, BATCH)
"""The one greedy workload of each level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One direction of the node: its total, and what its levels are promised of it."""

    total_bps: int
    bands: PerLevel[Band]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A time in which the same levels want all they can get, in every direction.

    `limits_bps` holds overrides by workload name and direction.
    """

    title: str
    seconds: float
    greedy: frozenset[Level]
    limits_bps: Mapping[str, Mapping[Direction, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one greedy level is sure of in one phase, what it gets with all that is lent to it, and what it may never
    pass (bits per second).
    """

    guarantee_bps: int
    share_bps: int
    ceiling_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The directions of the node that have traffic, and the phases in order."""

    sides: Mapping[Direction, Side]
    phases: tuple[Phase, ...]

    @property
    def seconds(self) -> float:
        """The length of the whole."""
        return sum(phase.seconds for phase in self.phases)

    def promises(self, phase: Phase, direction: Direction) -> Mapping[Level, Promise]:
        """The promise to each level that wants bandwidth in a phase."""
        side = self.sides[direction]

        def ceiling(level: Level) -> int:
            band = side.bands[level].ceiling_bps
            return min(band, phase.limits_bps.get(GREEDY[level].name, {}).get(direction, band))

        def need(level: Level) -> int:
            return ceiling(level) if level in phase.greedy else 0

        needs = PerLevel(need(Level.L0), need(Level.L1), need(Level.L2))
        shares = shares_bps(total_bps=side.total_bps, bands=side.bands, needs=needs)
        return {
            level: Promise(
                guarantee_bps=min(side.bands[level].guarantee_bps, ceiling(level)),
                share_bps=shares[level],
                ceiling_bps=ceiling(level),
            )
            for level in Level
            if level in phase.greedy
        }


def series_name(direction: Direction, level: Level) -> str:
    """What a recording calls the traffic of a level's greedy workload in one direction."""
    return f"{GREEDY[level].name} {direction.value}"


def build_scenario(*, seconds: float, sides: Mapping[Direction, Side]) -> Scenario:
    """The demo's story, its five phases equally long. `seconds` is at least `SHORTEST_S`."""
    each_s = seconds / PHASES
    low, high = frozenset({Level.L2}), frozenset({Level.L1, Level.L2})
    limits = {direction: limited_bps(side.total_bps, side.bands.l2) for direction, side in sides.items()}
    phases = (
        Phase(title="L2 alone fills the link", seconds=each_s, greedy=low),
        Phase(title="L1 joins", seconds=each_s, greedy=high),
        Phase(title="L0 joins", seconds=each_s, greedy=frozenset(Level)),
        Phase(title="L0 stops", seconds=each_s, greedy=high),
        Phase(
            title=f"{BATCH.name} limited to {' / '.join(map(short_bps, limits.values()))}",
            seconds=each_s,
            greedy=high,
            limits_bps={BATCH.name: limits},
        ),
    )
    return Scenario(sides=sides, phases=phases)


def limited_bps(total_bps: int, band: Band) -> int:
    """The limit that batch gets at the end: half of what its level is sure of, in whole 100 kbit/s."""
    return max(band.guarantee_bps // 2, total_bps // 20) // 100_000 * 100_000


def short_bps(bps: float) -> str:
    """A bandwidth as the command line takes it: `60M`, `1.5G`, `800k`."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if bps >= factor:
            return f"{bps / factor:.3g}{unit}" if bps < 1000 * factor else f"{bps / factor:.0f}{unit}"
    return f"{bps:.0f}"
