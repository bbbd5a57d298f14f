"""Random traffic over random promises, on fluid units under the real step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import Phase, settings
from hypothesis import strategies as st

from netqos.engine.fluidflows import Demand, Kind
from netqos.engine.fluidloop import Mishap
from netqos.engine.fluidtree import Member
from netqos.engine.fluidunit import Traffic
from netqos.engine.unitstate import LoopPolicy
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit

M = 1_000_000
TX = Unit(Direction.TX, IfName("up0"))
TX1 = Unit(Direction.TX, IfName("up1"))
RX = Unit(Direction.RX, IfName("netqos-ifb"))


STEP_S = 0.004
LONGER = float(os.environ.get("NETQOS_EXAMPLES", "1"))
"""A longer run: so many times the examples, and what fails is made smaller, which takes minutes."""

PHASES = (Phase.explicit, Phase.reuse, Phase.generate, *((Phase.shrink,) if LONGER > 1 else ()))


def examples(count: int) -> settings:
    """How many runs of some simulated seconds a test makes."""
    return settings(max_examples=round(count * LONGER), phases=PHASES)


def permille(low: int, high: int) -> st.SearchStrategy[int]:
    """Thousandths, all alike often: of large numbers hypothesis likes the small ones."""
    return st.integers(low, high)


@st.composite
def bands_of(draw: st.DrawFn, total: int, *, most_kept: int = 900) -> PerLevel[Band]:
    """Guarantees of none or from 2 percent on, `most_kept` thousandths for L1 and L2; most ceilings are the total."""
    m1 = draw(st.just(0) | permille(20, most_kept // 2))
    m2 = draw(st.just(0) | permille(20, most_kept - m1))
    lows = (1000 - m1 - m2, m1, m2)
    tops = [draw(st.just(1000) | permille(max(low, 250), 1000)) for low in (0, m1, m2)]
    bounds = [(min(low, top), top) for low, top in zip(lows, tops, strict=True)]
    return PerLevel(
        *(Band(guarantee_bps=total * low // 1000, ceiling_bps=total * top // 1000) for low, top in bounds)
    )


def totals() -> st.SearchStrategy[int]:
    return st.sampled_from([41 * M, 60 * M, 310 * M, 999_999_937, 1700 * M, 24_000 * M, 91_000 * M])


@st.composite
def lending(draw: st.DrawFn) -> LoopPolicy:
    total = draw(totals())
    return LoopPolicy(total_bps=total, bands=draw(bands_of(total)), lends=True, headroom=0.0)


@st.composite
def policing(draw: st.DrawFn) -> LoopPolicy:
    total = draw(totals())
    return LoopPolicy(total_bps=total, bands=draw(bands_of(total)), lends=False, headroom=0.1)


@st.composite
def demand_of(draw: st.DrawFn, total: int, kinds: Sequence[Kind] = tuple(Kind)) -> Demand:
    kind = draw(st.sampled_from(kinds))
    rate = None
    if kind is Kind.UDP or (kind is Kind.TCP and draw(st.booleans())):
        rate = total * draw(permille(10, 1200)) // 1000
    every = draw(st.none() | st.sampled_from([0.03, 0.1, 0.25, 0.6, 1.0]))
    return Demand(
        kind=kind,
        rate_bps=rate,
        flows=draw(st.sampled_from([1, 8, 64])),
        rtt_s=draw(st.sampled_from([0.0002, 0.003, 0.02])),
        start_s=draw(st.sampled_from([0.0, 0.17, 0.5])),
        end_s=draw(st.none() | st.sampled_from([0.9, 1.4])),
        every_s=every,
        on_s=0.0 if every is None else every * draw(st.sampled_from([0.2, 0.5, 0.8])),
    )


@st.composite
def traffic_of(
    draw: st.DrawFn, policy: LoopPolicy, kinds: Sequence[Kind] = tuple(Kind), *, beside: bool = False
) -> Traffic:
    """One or two workloads in each level, some of them limited, some silent."""
    members, demands = [], {}
    for level in Level:
        for place in range(draw(st.integers(1, 2))):
            name = f"{level.name}-{place}"
            limit = draw(
                st.none() | st.none() | permille(20, 1000).map(lambda one: policy.total_bps * one // 1000)
            )
            members.append(Member(name=name, level=level, limit_bps=limit))
            demands[name] = tuple(
                draw(st.lists(demand_of(policy.total_bps, kinds), min_size=0, max_size=2 if place else 1))
            )
    more = policy.total_bps * draw(permille(0, 1000)) // 1000 if beside else None
    return Traffic(members=tuple(members), demands=demands, beside_bps=more)


def mishaps() -> st.SearchStrategy[list[Mishap]]:
    """What a loaded machine, a suspended process and a reset device do to some of the first ticks."""
    late = st.sampled_from([0.0, 0.0, 0.004, 0.03, 0.25, 6.0])
    jump = st.sampled_from([0.0, 0.0, 0.0, -3.0, -0.01, 0.5, 3600.0])
    one = st.builds(Mishap, late_s=late, is_lost=st.booleans(), jump_s=jump, resets=st.booleans())
    return st.lists(st.just(Mishap()) | one, max_size=25)


@dataclass(frozen=True, slots=True)
class Course:
    """Bytes by level over time."""

    at_s: list[float]
    sent: list[PerLevel[float]]

    def windows(self, level: Level, width_s: float) -> list[float]:
        """Mean rates in bits per second of the windows of at least `width_s` that begin at each moment."""
        found, high = [], 0
        for low, start_s in enumerate(self.at_s):
            while high < len(self.at_s) and self.at_s[high] - start_s < width_s - 1e-6:
                high += 1
            if high == len(self.at_s):
                break
            moved = self.sent[high][level] - self.sent[low][level]
            found.append(moved * 8 / (self.at_s[high] - start_s))
        return found


def lacking(mine: Course, other: Course, level: Level, *, within_s: float) -> float:
    """The most bytes by which a level fell behind the other course in any time of at most `within_s`."""
    ahead = [one[level] - two[level] for one, two in zip(mine.sent, other.sent, strict=True)]
    worst, low = 0.0, 0
    for high in range(len(ahead)):
        while mine.at_s[high] - mine.at_s[low] > within_s + 1e-6:
            low += 1
        worst = max(worst, max(ahead[low : high + 1]) - ahead[high])
    return worst
