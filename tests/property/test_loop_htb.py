"""What the loop costs and brings against HTB alone, on the same fluid tree under the same traffic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.allocate import shares_bps
from netqos.engine.fluidflows import Demand, Kind
from netqos.engine.fluidloop import FluidLoop
from netqos.engine.fluidtree import Member
from netqos.engine.fluidunit import FluidUnit, Traffic
from netqos.engine.shares import FLOOR_PERCENT
from netqos.engine.sharing import STEPS
from netqos.engine.unitstate import LoopPolicy
from netqos.model.levels import Level, PerLevel
from netqos.testing.states import M, bands
from tests.property import fluids as some
from tests.property.fluids import TX, TX1, Course

WORST_SHARE = 0.015
"""Of one second (contract 3); for guarantees of L1 and L2 that add up to three quarters of the total at most."""

TICK_S = 0.02
MEMBERS = tuple(Member(name=level.name, level=level) for level in Level)


@st.composite
def usual(draw: st.DrawFn) -> LoopPolicy:
    """L1 and L2 are guaranteed at most three quarters of the total."""
    total = draw(some.totals())
    bands = draw(some.bands_of(total, most_kept=750))
    return LoopPolicy(total_bps=total, bands=bands, lends=True, headroom=0.0)


@st.composite
def pausing(draw: st.DrawFn, promised_bps: int, every_s: float | None) -> Demand:
    """Greedy or at a steady rate, now and then silent. Not within 2 percent under the guarantee: see docs/loop.md."""
    share = draw(st.none() | st.sampled_from([0.3, 0.7, 0.95, 1.05, 1.6, 4.0]))
    return Demand(
        kind=Kind.GREEDY if share is None else Kind.UDP,
        rate_bps=None if share is None else round(promised_bps * share),
        start_s=draw(st.sampled_from([0.0, 0.033, 0.2])),
        every_s=every_s,
        on_s=0.0 if every_s is None else every_s * draw(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9])),
    )


def intervals() -> st.SearchStrategy[float | None]:
    return st.none() | st.sampled_from([0.02, 0.05, 0.1, 0.14, 0.2, 0.25, 0.4, 0.7, 1.0, 1.3, 2.1])


@st.composite
def pauses(draw: st.DrawFn, policy: LoopPolicy) -> Traffic:
    """L0 wants more than it can get; L1 and L2 pause together or each as it likes."""
    every_s = draw(intervals())
    together = draw(st.booleans())
    demands = {"L0": (Demand(),)}
    for level in (Level.L1, Level.L2):
        own_s = every_s if together else draw(intervals())
        demands[level.name] = (draw(pausing(policy.bands[level].guarantee_bps, own_s)),)
    return Traffic(members=MEMBERS, demands=demands)


def courses(policy: LoopPolicy, traffic: Traffic, *, end_s: float) -> tuple[Course, Course]:
    """What each level sends under the loop, and under HTB alone."""
    steered, static = (FluidUnit(TX, policy, traffic, step_s=some.STEP_S) for _ in range(2))
    found = Course([], []), Course([], [])
    for tick in FluidLoop([steered], {TX: policy}).ticks(end_s):
        static.run_until(tick.at_s)
        for course, unit in zip(found, (steered, static), strict=True):
            course.at_s.append(tick.at_s)
            course.sent.append(unit.sent)
    return found


def lost_share(policy: LoopPolicy, traffic: Traffic, level: Level, *, end_s: float) -> float:
    """The most that a level is behind HTB alone in any second, as a share of what the total carries in it."""
    steered, static = courses(policy, traffic, end_s=end_s)
    return some.lacking(steered, static, level, within_s=1.0) * 8 / policy.total_bps


@some.examples(60)
@given(usual(), st.data())
def test_no_level_is_worse_off_than_under_static_htb(policy: LoopPolicy, data: st.DataObject) -> None:
    """By more than 1.5 percent of any second: one tick for what L1 and L2 leave when they pause, once a second."""
    steered, static = courses(policy, data.draw(pauses(policy)), end_s=3.0)
    for level in Level:
        lacking = some.lacking(steered, static, level, within_s=1.0) * 8 / policy.total_bps
        assert lacking <= WORST_SHARE


@pytest.mark.parametrize(
    ("every_s", "on_s"), [(0.1, 0.05), (0.2, 0.1), (0.25, 0.2), (0.25, 0.05), (0.9, 0.4), (1.0, 0.5)]
)
def test_pauses_of_both_levels_cost_one_tick_and_few_writes(every_s: float, on_s: float) -> None:
    """Guarantees of 500, 300 and 200: one tick of what is kept free is a hundredth of a second (decision 0019)."""
    pause = Demand(every_s=every_s, on_s=on_s)
    traffic = Traffic(members=MEMBERS, demands={"L0": (Demand(),), "L1": (pause,), "L2": (pause,)})
    policy = LoopPolicy(
        total_bps=1000 * M,
        bands=bands((500 * M, 300 * M, 200 * M), (1000 * M, 800 * M, 1000 * M)),
        lends=True,
        headroom=0.0,
    )
    steered, static = courses(policy, traffic, end_s=3.0)
    assert some.lacking(steered, static, Level.L0, within_s=1.0) * 8 / policy.total_bps <= 0.011
    unit = FluidUnit(TX, policy, traffic, step_s=some.STEP_S)
    ticks = list(FluidLoop([unit], {TX: policy}).ticks(3.0))
    assert sum(decision.changed for tick in ticks for decision in tick.decisions) <= 3


@some.examples(30)
@given(some.lending(), st.data())
def test_the_cost_is_one_tick_of_what_is_kept_free(policy: LoopPolicy, data: st.DataObject) -> None:
    """Whatever the guarantees are."""
    kept_bps = policy.bands.l1.guarantee_bps + policy.bands.l2.guarantee_bps
    bound = 1.1 * TICK_S * kept_bps / policy.total_bps + 0.001
    steered, static = courses(policy, data.draw(pauses(policy)), end_s=3.0)
    for level in Level:
        assert some.lacking(steered, static, level, within_s=1.0) * 8 / policy.total_bps <= bound


@some.examples(25)
@given(some.lending(), st.data())
def test_tcp_fares_as_under_static_htb(policy: LoopPolicy, data: st.DataObject) -> None:
    """A window that was cut at another moment makes another course; on average of two seconds none is worse off."""
    traffic = data.draw(some.traffic_of(policy, (Kind.TCP,)))
    steered, static = courses(policy, traffic, end_s=2.0)
    for level in Level:
        got, would = (course.sent[-1][level] * 8 / 2.0 for course in (steered, static))
        assert got >= would - 0.03 * policy.total_bps


@some.examples(30)
@given(some.lending(), st.sampled_from(Level), st.data())
def test_a_level_that_comes_back_has_its_guarantee_at_once(
    policy: LoopPolicy, level: Level, data: st.DataObject
) -> None:
    """In each tenth of a second after its first ticks, whatever the others do."""
    every_s = data.draw(st.sampled_from([0.5, 0.8, 1.7]))
    others = {
        one: (data.draw(pausing(policy.bands[one].guarantee_bps, data.draw(intervals()))),) for one in Level
    }
    back = Demand(every_s=every_s, on_s=every_s * 0.6)
    demands = {one.name: (back,) if one is level else others[one] for one in Level}
    steered, _ = courses(policy, Traffic(members=MEMBERS, demands=demands), end_s=3.0)
    promised_bps = policy.bands[level].guarantee_bps
    for start_s, rate_bps in zip(steered.at_s, steered.windows(level, 0.1), strict=False):
        since_s = start_s % every_s
        if since_s >= TICK_S and since_s + 0.15 <= back.on_s:
            assert rate_bps >= 0.95 * promised_bps - 200_000


@st.composite
def spread(draw: st.DrawFn, policy: LoopPolicy, count: int) -> list[Traffic]:
    """Steady demand of each level on each of some uplinks: none, greedy, or a rate."""

    def demand() -> tuple[Demand, ...]:
        share = draw(st.sampled_from([0, None]) | some.permille(50, 1000))
        if share is None:
            return (Demand(),)
        rate = policy.total_bps * share // 1000
        return (Demand(kind=Kind.UDP, rate_bps=rate),) if rate else ()

    return [Traffic(members=MEMBERS, demands={level.name: demand() for level in Level}) for _ in range(count)]


def wanted(traffic: Traffic, level: Level, policy: LoopPolicy) -> int:
    demands = traffic.demands[level.name]
    top = policy.bands[level].ceiling_bps
    return sum(top if one.rate_bps is None else min(one.rate_bps, top) for one in demands)


@some.examples(20)
@given(some.lending(), st.data())
def test_uplinks_of_one_total_give_each_level_what_one_link_would(
    policy: LoopPolicy, data: st.DataObject
) -> None:
    """Never more than the total together, and the levels' sums as the law of one link gives them, but for floors."""
    shared = LoopPolicy(
        total_bps=policy.total_bps, bands=policy.bands, lends=True, headroom=0.0, is_shared=True
    )
    traffics = data.draw(spread(shared, 2))
    units = [
        FluidUnit(unit, shared, one, step_s=some.STEP_S)
        for unit, one in zip((TX, TX1), traffics, strict=True)
    ]
    loop = FluidLoop(units, dict.fromkeys((TX, TX1), shared), tells_levels=True)
    middle: list[PerLevel[float]] = []
    began_s = 0.0
    for tick in loop.ticks(3.0):
        parts = [loop.steering.sharing.shares[unit].total_bps for unit in (TX, TX1)]
        assert sum(parts) <= shared.total_bps
        if not middle and tick.at_s >= 1.5:
            middle, began_s = [unit.sent for unit in units], tick.at_s
    needs = PerLevel(*(sum(wanted(one, level, shared) for one in traffics) for level in Level))
    law = shares_bps(total_bps=shared.total_bps, bands=shared.bands, needs=needs)
    slack_bps = shared.total_bps * (FLOOR_PERCENT / 100 + 2 / STEPS)
    for level in Level:
        sent = sum(unit.sent[level] - before[level] for unit, before in zip(units, middle, strict=True))
        rate_bps = sent * 8 / (units[0].now_s - began_s)
        promised = min(shared.bands[level].guarantee_bps, needs[level])
        assert rate_bps >= promised - slack_bps
        assert rate_bps == pytest.approx(law[level], abs=slack_bps)
