"""A tick's work in virtual time: who is looked at, how often, and that resting makes nobody late."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise

import hypothesis
from hypothesis import strategies as st

from netqos.engine.unitstate import LoopPolicy
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Decision, Glance, Unit, UnitSample
from netqos.runtime.steerer import Grip, Steerer
from netqos.runtime.ticks import TickStatistics
from netqos.settings.values import LoopSettings
from netqos.testing import states
from netqos.testing.states import M

TX, RX = Unit(Direction.TX, IfName("up0")), Unit(Direction.RX, IfName("netqos-ifb"))
UP1 = Unit(Direction.TX, IfName("up1"))
TOTAL_BPS = 1000 * M
LOOP = LoopSettings()
Rates = Callable[[float], PerLevel[int]]
IDLE = PerLevel(0, 0, 0)


def still(l0: int = 0, l1: int = 0, l2: int = 0) -> Rates:
    return lambda _now_s: PerLevel(l0 * M, l1 * M, l2 * M)


class VirtualPath:
    """Counts by rates that hold from one moment to the next; remembers every look by unit."""

    lends = True

    def __init__(
        self, rates: dict[Unit, Rates], *, glances: bool = True, paces: dict[Unit, float] | None = None
    ) -> None:
        self.rates = rates
        self.now_s = 0.0
        self.looks: Counter[tuple[str, Unit]] = Counter()
        self.together: list[set[Unit]] = []
        self._glances = glances
        self._paces = paces or {}
        self._bits = {unit: [0.0, 0.0, 0.0] for unit in rates}

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(self.rates)

    def pass_to(self, now_s: float) -> None:
        for unit, rates in self.rates.items():
            for place, bps in enumerate(rates(self.now_s)):
                self._bits[unit][place] += bps * (now_s - self.now_s)
        self.now_s = now_s

    def pace_s(self, unit: Unit) -> float:
        return self._paces.get(unit, 0.0)

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        if not self._glances:
            return ()
        self.looks.update(("glance", unit) for unit in units)
        return tuple(
            Glance(unit=unit, taken_at_s=self.now_s, carried_bytes=int(sum(self._bits[unit]) / 8))
            for unit in units
        )

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        asked = tuple(self.rates if units is None else units)
        self.looks.update(("sample", unit) for unit in asked)
        self.together.append(set(asked))
        return tuple(map(self._sample, asked))

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        return PerLevel(TOTAL_BPS, 800 * M, TOTAL_BPS)

    def current_room(self, unit: Unit) -> int | None:
        return None

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        return 1

    def close(self) -> None:
        pass

    def _sample(self, unit: Unit) -> UnitSample:
        l0, l1, l2 = (int(bits / 8) for bits in self._bits[unit])
        return UnitSample(unit=unit, taken_at_s=self.now_s, level_bytes=PerLevel(l0, l1, l2))


def policy(*, is_shared: bool = False) -> LoopPolicy:
    levels = states.TX.levels
    assert levels is not None
    return LoopPolicy(total_bps=TOTAL_BPS, bands=levels, lends=True, headroom=0.0, is_shared=is_shared)


def run(path: VirtualPath, until_s: float, given: LoopPolicy | None = None) -> list[Decision]:
    """All decisions of a steerer on the path, with every tick on time."""
    steerer, found = Steerer(), list[Decision]()
    steerer.hold(Grip(path=path, policies=dict.fromkeys(path.units, given or policy())), path.now_s)
    while steerer.next_s <= until_s:
        path.pass_to(max(steerer.next_s, path.now_s))
        found += (one.decision for one in steerer.tick(path.now_s, LOOP) or ())
    return found


def test_an_idle_unit_is_glanced_at_as_often_as_ever_and_sampled_twice_a_second() -> None:
    path = VirtualPath({TX: still(), RX: still(l2=100)})
    decisions = run(path, 10.0)
    for unit in (TX, RX):
        assert 199 <= path.looks["glance", unit] <= 202
        assert 20 <= path.looks["sample", unit] <= 23
    assert decisions[-1].rates_bps == PerLevel(0, 0, 100 * M)


def test_each_unit_has_a_pace_of_its_own() -> None:
    """One in contention, one with half its load, one that allows a look a second."""
    rates = {TX: still(0, 300, 690), RX: still(l1=500), UP1: still(l1=500)}
    path = VirtualPath(rates, paces={UP1: 1.0})
    run(path, 4.0)
    assert 195 <= path.looks["sample", TX] <= 203
    assert 79 <= path.looks["sample", RX] <= 83
    assert 4 <= path.looks["sample", UP1] <= 6


def test_units_that_share_a_total_are_sampled_together() -> None:
    path = VirtualPath({TX: still(l0=5), UP1: still(l1=950), RX: still()})
    steerer = Steerer()
    shared = policy(is_shared=True)
    steerer.hold(Grip(path=path, policies={TX: shared, UP1: shared, RX: policy()}), 0.0)
    while steerer.next_s <= 3.0:
        path.pass_to(steerer.next_s)
        steerer.tick(path.now_s, LOOP)
    assert all((TX in units) == (UP1 in units) for units in path.together)
    assert path.looks["sample", UP1] > 2 * path.looks["sample", RX]


def test_a_new_policy_is_followed_at_once_even_by_a_unit_at_rest() -> None:
    path, steerer = VirtualPath({TX: still(l0=200)}), Steerer()
    steerer.hold(Grip(path=path, policies={TX: policy()}), 0.0)
    while steerer.next_s <= 1.01:
        path.pass_to(steerer.next_s)
        steerer.tick(path.now_s, LOOP)
    path.pass_to(1.02)
    levels = states.direction(400 * M).levels
    assert levels is not None
    smaller = replace(policy(), total_bps=400 * M, bands=levels)
    steerer.hold(Grip(path=path, policies={TX: smaller}), 1.02)
    (ground,) = steerer.tick(1.02, LOOP) or ()
    decision = ground.decision
    assert (decision.changed, decision.ceilings_bps.l0) == (True, 400 * M)


def contended_from_s(decisions: list[Decision], begins_s: float) -> float | None:
    return next((one.at_s for one in decisions if one.contention and one.at_s > begins_s), None)


@hypothesis.given(
    before=st.integers(0, 950),
    begins_ms=st.integers(1000, 2000),
    after=st.tuples(st.integers(0, 500), st.integers(0, 300), st.integers(180, 1000)),
)
def test_contention_is_noticed_no_more_than_a_short_interval_later_than_by_samples_alone(
    before: int, begins_ms: int, after: tuple[int, int, int]
) -> None:
    """`before` Mbit/s on L2, then `after` on all three for good: with glances and without."""

    def rates(now_s: float) -> PerLevel[int]:
        return PerLevel(*(bps * M for bps in (after if now_s * 1000 >= begins_ms else (0, 0, before))))

    class Exact(VirtualPath):
        def pass_to(self, now_s: float) -> None:
            if self.now_s < begins_ms / 1000 < now_s:
                super().pass_to(begins_ms / 1000)
            super().pass_to(now_s)

    resting, always = (Exact({TX: rates}, glances=glances) for glances in (True, False))
    noticed, reference = (
        contended_from_s(run(path, 3.5), begins_ms / 1000 if before < 950 else 0.0)
        for path in (resting, always)
    )
    assert (noticed is None) == (reference is None)
    if noticed is not None and reference is not None:
        assert noticed <= reference + LOOP.contended_interval_s + 1e-9
    if before <= 400:
        assert resting.looks["sample", TX] < always.looks["sample", TX]


def test_samples_are_never_further_apart_than_a_rest() -> None:
    decisions = run(VirtualPath({TX: still(l0=30)}), 10.0)
    assert max(later.at_s - earlier.at_s for earlier, later in pairwise(decisions)) <= 0.501


def test_ten_thousand_ticks_leave_no_more_memory_than_a_thousand() -> None:
    """Contention that comes and goes in both directions."""

    def rates(now_s: float) -> PerLevel[int]:
        return PerLevel(100 * M, 200 * M, (700 if int(now_s) % 3 else 50) * M)

    path, steerer = VirtualPath({TX: rates, RX: rates}), Steerer()
    statistics = TickStatistics()
    steerer.hold(Grip(path=path, policies={TX: policy(), RX: policy()}), 0.0)

    def tick(times: int) -> None:
        for _ in range(times):
            path.pass_to(steerer.next_s)
            steerer.tick(path.now_s, LOOP)
            statistics.add(late_s=0.0, took_s=0.0)
            path.together.clear()

    tick(1000)
    tracemalloc.start()
    try:
        tick(1000)
        before, _ = tracemalloc.get_traced_memory()
        tick(10_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
