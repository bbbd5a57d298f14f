"""The fast loop over fluid HTB: what holds at every tick, whatever the traffic does and whatever goes wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from netqos.engine import room
from netqos.engine.damping import step_bps
from netqos.engine.fluidflows import Demand, Kind
from netqos.engine.fluidloop import FluidLoop
from netqos.engine.fluidtree import Member
from netqos.engine.fluidunit import FluidUnit, Traffic
from netqos.engine.rounds import decide
from netqos.engine.unitstate import LoopPolicy, UnitState
from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import Decision
from tests.property import fluids as some
from tests.property.fluids import RX, TX

HOLD_S = 1.0
TICKS_TO_RAISE = 6
"""The base, the change itself, and the four ticks whose lowest need counts."""


def promised(decision: Decision, policy: LoopPolicy) -> LoopPolicy:
    """The policy that a decision was made with: within the room, where there is one."""
    if decision.room_bps is None or decision.room_bps == policy.total_bps:
        return policy
    return replace(policy, total_bps=decision.room_bps, bands=room.within(policy.bands, decision.room_bps))


def check(decision: Decision, policy: LoopPolicy) -> None:
    bands = promised(decision, policy).bands
    for level in Level:
        assert bands[level].guarantee_bps <= decision.ceilings_bps[level] <= bands[level].ceiling_bps


def in_force(decision: Decision) -> tuple[object, ...]:
    return decision.ceilings_bps, decision.room_bps, decision.guarantees_bps


@some.examples(50)
@given(some.lending() | some.policing(), st.booleans(), st.data())
def test_at_every_tick(policy: LoopPolicy, beside: bool, data: st.DataObject) -> None:
    """Ceilings within the promises, a pure step, no change that is none; with mishaps and changing policies."""
    unit = RX if beside else TX
    traffic = data.draw(some.traffic_of(policy, beside=beside))
    others = data.draw(st.lists(st.sampled_from([some.lending(), some.policing()]), max_size=2))
    later = [replace(data.draw(one), lends=policy.lends, headroom=policy.headroom) for one in others]
    fluid = FluidUnit(unit, policy, traffic, step_s=some.STEP_S)
    loop = FluidLoop(
        [fluid],
        {unit: policy},
        mishaps=data.draw(some.mishaps()),
        tells_levels=not policy.lends,
    )

    def change(now_s: float) -> None:
        if later and now_s > 0.4 * (3 - len(later)):
            loop.policies = {unit: later.pop()}
            fluid.plan(loop.policies[unit])

    before, last = loop.steering, None
    for tick in loop.ticks(1.2, between=change):
        assert decide(before, tick.samples, loop.policies) == (loop.steering, tick.decisions)
        (sample,) = tick.samples
        base = before.states[unit].base
        if base is not None and any(
            now < then for now, then in zip(sample.level_bytes, base.level_bytes, strict=True)
        ):
            assert tick.decisions == ()
            assert loop.steering.states[unit].base == sample
        for decision in tick.decisions:
            check(decision, loop.policies[unit])
            assert decision.changed == (last is None or in_force(decision) != in_force(last))
            last = decision
        before = loop.steering


@st.composite
def steady(draw: st.DrawFn, policy: LoopPolicy) -> Traffic:
    """One workload in each level: silent, greedy, or with a steady rate."""
    demands = {}
    for level in Level:
        share = draw(st.sampled_from([0, None]) | some.permille(20, 1500))
        if share is None:
            demands[level.name] = (Demand(),)
        elif share:
            demands[level.name] = (Demand(kind=Kind.UDP, rate_bps=policy.total_bps * share // 1000),)
    members = tuple(Member(name=level.name, level=level) for level in Level)
    return Traffic(members=members, demands=demands)


def between(low: int, high: int) -> st.SearchStrategy[int]:
    return some.permille(0, 1000).map(lambda one: low + (high - low) * one // 1000)


@st.composite
def states(draw: st.DrawFn, policy: LoopPolicy) -> UnitState:
    """Any state, as an earlier policy, other traffic or another version may have left it."""

    def some_bps() -> PerLevel[int]:
        return PerLevel(*(draw(between(band.guarantee_bps, band.ceiling_bps)) for band in policy.bands))

    def needs() -> PerLevel[int]:
        return PerLevel(*(draw(between(0, band.ceiling_bps)) for band in policy.bands))

    past_s = st.floats(-5, 0)
    return UnitState(
        policy=draw(st.sampled_from([None, policy])),
        contention=draw(st.booleans()),
        calm_since_s=draw(st.none() | past_s),
        needs=tuple(needs() for _ in range(draw(st.integers(0, 4)))),
        ceilings_bps=some_bps(),
        wanted_bps=draw(st.none() | st.just(some_bps())),
        wanted_since_s=draw(past_s),
        raised_s=draw(st.none() | past_s),
    )


def ceilings(
    policy: LoopPolicy, traffic: Traffic, state: UnitState | None, *, end_s: float
) -> list[Decision]:
    unit = FluidUnit(TX, policy, traffic, step_s=some.STEP_S)
    begin = {} if state is None else {TX: state}
    if state is not None and state.ceilings_bps is not None:
        unit.tree.lend(state.ceilings_bps.l0) if policy.lends else unit.tree.police(state.ceilings_bps)
    loop = FluidLoop([unit], {TX: policy}, states=begin, tells_levels=not policy.lends)
    return [one for tick in loop.ticks(end_s) for one in tick.decisions]


def is_between_thresholds(decision: Decision, policy: LoopPolicy) -> bool:
    """Whether the load neither begins contention nor ends it, so that what was before goes on."""
    load = sum(decision.rates_bps) / policy.total_bps
    return 0.99 * policy.leave <= load <= 1.01 * policy.enter


@some.examples(50)
@given(some.lending() | some.policing(), st.data())
def test_it_converges_from_any_state(policy: LoopPolicy, data: st.DataObject) -> None:
    """Under steady traffic everybody has what is promised after six ticks, and ceilings are right after two holds."""
    traffic = data.draw(steady(policy))
    settled = ceilings(policy, traffic, None, end_s=3.0)[-1]
    from_any = ceilings(policy, traffic, data.draw(states(policy)), end_s=3.0)
    near_bps = step_bps(policy.total_bps, policy.headroom) + 1000
    for decision in from_any[TICKS_TO_RAISE:]:
        for level in Level:
            promised_bps = min(policy.bands[level].guarantee_bps, settled.rates_bps[level])
            assert decision.rates_bps[level] >= promised_bps - near_bps
    for decision in from_any:
        if decision.contention is not settled.contention:
            assert is_between_thresholds(decision, policy) or decision.at_s <= 2 * HOLD_S + 0.2
        elif decision.at_s > 2 * HOLD_S + 0.2:
            for level in Level:
                assert abs(decision.ceilings_bps[level] - settled.ceilings_bps[level]) <= near_bps


@some.examples(40)
@given(some.lending(), st.data())
def test_another_policy_is_kept_at_once(policy: LoopPolicy, data: st.DataObject) -> None:
    """Total and promises change under traffic: after 0.2 s each level has what is promised now, and none more."""
    later = data.draw(some.lending())
    traffic = data.draw(steady(later))
    unit = FluidUnit(TX, policy, traffic, step_s=some.STEP_S)
    loop = FluidLoop([unit], {TX: policy})
    course = some.Course([], [])

    def change(now_s: float) -> None:
        if loop.policies[TX] is policy and now_s >= 1.0:
            loop.policies = {TX: later}
            unit.plan(later)

    for tick in loop.ticks(2.0, between=change):
        if tick.at_s >= 1.2:
            course.at_s.append(tick.at_s)
            course.sent.append(unit.sent)
    settled = ceilings(later, traffic, None, end_s=2.0)[-1].rates_bps
    slack_bps = 0.02 * later.total_bps
    for level in Level:
        rates = course.windows(level, 0.1)
        assert min(rates) >= min(later.bands[level].guarantee_bps, settled[level]) - slack_bps
        assert max(rates) <= later.bands[level].ceiling_bps + slack_bps
    assert sum(course.sent[-1]) - sum(course.sent[0]) <= 1.02 * later.total_bps / 8 * (2.0 - course.at_s[0])


@some.examples(30)
@given(some.lending(), st.data())
def test_what_others_left_in_any_of_four_ticks_is_open_to_l0(policy: LoopPolicy, data: st.DataObject) -> None:
    """Counted from the decisions alone."""
    traffic = data.draw(some.traffic_of(policy))
    made = ceilings(policy, traffic, None, end_s=2.0)
    bands = policy.bands

    def kept(decision: Decision, level: Level) -> int:
        promised = bands[level].guarantee_bps
        return promised if decision.backlogged[level] else min(decision.rates_bps[level], promised)

    for place, decision in enumerate(made):
        last = made[max(0, place - 3) : place + 1]
        needed = sum(min(kept(one, level) for one in last) for level in (Level.L1, Level.L2))
        assert decision.ceilings_bps.l0 >= min(bands.l0.ceiling_bps, policy.total_bps - needed)


@st.composite
def around_a_threshold(draw: st.DrawFn, policy: LoopPolicy) -> Traffic:
    """Demand that goes one percent of the total to both sides of something that a decision turns on."""
    total = policy.total_bps
    mover = draw(st.sampled_from(Level))
    bands = policy.bands
    others: dict[Level, int | None] = {
        level: draw(
            st.sampled_from([0, None]) | between(total // 100, max(total // 50, bands[level].guarantee_bps))
        )
        for level in Level
        if level is not mover
    }
    beside = sum(rate or 0 for rate in others.values())
    middles = [round(total * one) - beside for one in (0.85, 0.90, 0.95, 1.0)]
    middles += [bands[mover].guarantee_bps, bands[mover].guarantee_bps * 98 // 100, bands[mover].ceiling_bps]
    middle = draw(st.sampled_from([one for one in middles if one > total // 20] or [total // 2]))
    every = draw(st.sampled_from([0.04, 0.1, 0.22, 0.5, 1.0]))
    swing = Demand(kind=Kind.UDP, rate_bps=total // 50, every_s=every, on_s=every / 2)
    demands: dict[str, tuple[Demand, ...]] = {}
    demands[mover.name] = (Demand(kind=Kind.UDP, rate_bps=middle - total // 100), swing)
    for level, rate in others.items():
        if rate != 0:
            kind = Kind.GREEDY if rate is None else Kind.UDP
            demands[level.name] = (Demand(kind=kind, rate_bps=rate),)
    return Traffic(members=tuple(Member(name=level.name, level=level) for level in Level), demands=demands)


@some.examples(50)
@given(some.lending() | some.policing(), st.data())
def test_no_oscillation(policy: LoopPolicy, data: st.DataObject) -> None:
    """Demand that moves one percent around a threshold gives at most two changes in any second, once it has begun."""
    made = ceilings(policy, data.draw(around_a_threshold(policy)), None, end_s=5.0)
    moments = [decision.at_s for decision in made if decision.changed and decision.at_s > 1.0]
    assert all(later - first > 1.0 for first, later in zip(moments, moments[2:], strict=False))
    turns = [later.at_s for earlier, later in pairwise(made) if earlier.contention is not later.contention]
    assert all(later - first >= HOLD_S for first, later in zip(turns, turns[2:], strict=False))


@some.examples(20)
@given(some.lending(), st.sampled_from([0.06, 0.1, 0.3, 0.7, 1.4]))
def test_traffic_that_crosses_both_thresholds_again_and_again_begins_contention_once(
    policy: LoopPolicy, every_s: float
) -> None:
    """From 80 to 97 percent and back: the hold is longer than each calm."""
    open_policy = replace(
        policy, bands=policy.bands.map(lambda band: replace(band, ceiling_bps=policy.total_bps))
    )
    low = Demand(kind=Kind.UDP, rate_bps=policy.total_bps * 80 // 100)
    more = Demand(kind=Kind.UDP, rate_bps=policy.total_bps * 17 // 100, every_s=every_s, on_s=every_s / 2)
    traffic = Traffic(members=(Member(name="L1", level=Level.L1),), demands={"L1": (low, more)})
    made = ceilings(open_policy, traffic, None, end_s=5.0)
    assert sum(before.contention is not after.contention for before, after in pairwise(made)) <= 1
