"""One tick of the fast loop as a pure step: (state, sample, policy) -> (state, decision).

It turns counters into rates by the true time between two samples, keeps contention apart from noise by two thresholds
and a hold, and applies the law of `netqos.engine.allocate`, for a unit that meets only a part of the traffic within its
room (`netqos.engine.room`). Who reads counters, writes ceilings and waits is the runtime's fast loop. A sample that
cannot be trusted becomes the new base for counting and decides nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netqos.engine import room
from netqos.engine.allocate import allocate, needs_bps, unrestricted
from netqos.engine.counting import MIN_GAP_S, elapsed_between, rates_over
from netqos.engine.damping import Damping, step_bps
from netqos.engine.unitstate import LoopPolicy, Onset, UnitState
from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import Decision, UnitSample

NEEDS_KEPT = 4
"""A lending backend keeps free for L1 and L2 the lowest need of this many ticks (contract 3)."""

SERVED = 0.98
"""With packets waiting, a level at this share of its guarantee wants more (contract 3).

Below it HTB serves the level anyway.
"""


def step(state: UnitState, sample: UnitSample, policy: LoopPolicy) -> tuple[UnitState, Decision | None]:
    """One tick. None instead of a decision: the sample gave no rate (the first one, a counter that went back, no time
    passed, or far too much); rates, contention and ceilings stay as they are.
    """
    elapsed_s = elapsed_between(state.base, sample)
    if elapsed_s is None:
        return _counting_from(state, sample), None
    if elapsed_s < MIN_GAP_S:
        return state, None
    assert state.base is not None
    rates = rates_over(state.base, sample, elapsed_s)
    measured, policy = _in_room(replace(state, base=sample, rates_bps=rates), policy)
    backlogged = _backlogged(sample, rates, policy)
    measured = _judge(measured, _load(rates, policy), is_backlogged=any(backlogged), policy=policy)
    measured, wanted = _allocate(measured, backlogged, policy)
    settled = _settle(measured, wanted, policy)
    decision = Decision(
        unit=sample.unit,
        at_s=sample.taken_at_s,
        elapsed_s=elapsed_s,
        rates_bps=rates,
        backlogged=backlogged,
        contention=settled.contention,
        ceilings_bps=settled.ceilings_bps or wanted,
        changed=_moved(settled) != _moved(state),
        room_bps=settled.room_bps,
        guarantees_bps=settled.guarantees_bps,
    )
    return settled, decision


def _in_room(state: UnitState, policy: LoopPolicy) -> tuple[UnitState, LoopPolicy]:
    """The policy with the room in place of the total, for a unit whose total is moved. A share is a room."""
    assert state.base is not None
    if policy.is_shared:
        guarantees = policy.bands.map(lambda band: band.guarantee_bps)
        return _with(state, room_bps=policy.total_bps, guarantees_bps=guarantees), policy
    if state.base.offered_bytes is None:
        return _with(state, room_bps=None, guarantees_bps=None), policy
    measured = room.measure(state.room, state.base, total_bps=policy.total_bps)
    room_bps = room.room_bps(measured.kept_bps, policy.bands, total_bps=policy.total_bps)
    state = _with(state, room=measured, room_bps=room_bps, guarantees_bps=None)
    if room_bps == policy.total_bps:
        return state, policy
    return state, replace(policy, total_bps=room_bps, bands=room.within(policy.bands, room_bps))


def _with(state: UnitState, **changes: Any) -> UnitState:
    """`replace`, but the same state where nothing differs: on a quiet node that is every tick."""
    for name, value in changes.items():
        if getattr(state, name) != value:
            return replace(state, **changes)
    return state


def _moved(state: UnitState) -> tuple[object, ...]:
    """What a decision puts in force."""
    return state.ceilings_bps, state.room_bps, state.guarantees_bps


def _backlogged(sample: UnitSample, rates: PerLevel[int], policy: LoopPolicy) -> PerLevel[bool]:
    if sample.level_backlogged is not None:
        return sample.level_backlogged

    def waits(level: Level) -> bool:
        return sample.backlogged and rates[level] >= SERVED * policy.bands[level].guarantee_bps

    return PerLevel(waits(Level.L0), waits(Level.L1), waits(Level.L2))


def _load(rates: PerLevel[int], policy: LoopPolicy) -> float:
    return sum(rates) / policy.total_bps


def _judge(state: UnitState, load: float, *, is_backlogged: bool, policy: LoopPolicy) -> UnitState:
    """Enter contention at once, leave it after a whole hold below the lower threshold."""
    assert state.base is not None
    now_s = state.base.taken_at_s
    if load >= policy.enter or (is_backlogged and load > policy.enter_backlogged):
        onset = state.onset or _onset(state, policy, waited=load < policy.enter)
        return _with(state, contention=True, onset=onset, calm_since_s=None)
    if not state.contention or load >= policy.leave:
        return _with(state, calm_since_s=None)
    since_s = now_s if state.calm_since_s is None else state.calm_since_s
    if now_s - since_s >= policy.hold_s:
        return _with(state, contention=False, onset=None, calm_since_s=None)
    return _with(state, calm_since_s=since_s)


def _onset(state: UnitState, policy: LoopPolicy, *, waited: bool) -> Onset:
    assert state.base is not None
    used_bps = sum(state.rates_bps)
    return Onset(at_s=state.base.taken_at_s, used_bps=used_bps, total_bps=policy.total_bps, waited=waited)


def _allocate(
    state: UnitState, backlogged: PerLevel[bool], policy: LoopPolicy
) -> tuple[UnitState, PerLevel[int]]:
    """Apply the law, and remember this tick's needs. Needs of another policy are not comparable and are dropped."""
    needs = needs_bps(
        bands=policy.bands, rates_bps=state.rates_bps, backlogged=backlogged, headroom=policy.headroom
    )
    earlier = state.needs if state.policy == policy else ()
    kept = (*earlier, needs)[-NEEDS_KEPT:]
    measured = _with(state, needs=kept)
    if not state.contention:
        return measured, unrestricted(policy.bands)
    ceilings = allocate(
        total_bps=policy.total_bps,
        bands=policy.bands,
        rates_bps=state.rates_bps,
        backlogged=backlogged,
        headroom=policy.headroom,
        lowest_needs_bps=_lowest(kept) if policy.lends else None,
    )
    if policy.lends:
        ceilings = PerLevel(ceilings.l0, policy.bands.l1.ceiling_bps, policy.bands.l2.ceiling_bps)
    return measured, ceilings


def _lowest(needs: tuple[PerLevel[int], ...]) -> PerLevel[int]:
    return PerLevel(*map(min, zip(*needs, strict=True)))


def _settle(state: UnitState, wanted: PerLevel[int], policy: LoopPolicy) -> UnitState:
    """Take what the law wants, damped where that takes nothing from anybody."""
    assert state.base is not None
    now_s, held = state.base.taken_at_s, state.ceilings_bps
    if wanted == held == state.wanted_bps and state.policy == policy and state.raised_s is None:
        return state
    since_s = state.wanted_since_s if wanted == state.wanted_bps else now_s
    settled = _with(state, policy=policy, wanted_bps=wanted, wanted_since_s=since_s)
    if held is not None and wanted != held and state.policy == policy:
        ceilings = _damped(settled, held, policy)
    else:
        ceilings = wanted
    return _with(settled, ceilings_bps=ceilings, raised_s=_raised_s(settled, ceilings.l0))


def _raised_s(state: UnitState, l0_bps: int) -> float | None:
    """When the law last gave L0 as much as it was raised to in this contention; None before it was."""
    assert state.base is not None
    assert state.wanted_bps is not None
    if not state.contention or state.ceilings_bps is None:
        return None
    is_raised = l0_bps > state.ceilings_bps.l0
    is_wanted = state.raised_s is not None and state.wanted_bps.l0 >= l0_bps
    return state.base.taken_at_s if is_raised or is_wanted else state.raised_s


def _damped(state: UnitState, held: PerLevel[int], policy: LoopPolicy) -> PerLevel[int]:
    assert state.base is not None
    assert state.wanted_bps is not None
    now_s, wanted, bands = state.base.taken_at_s, state.wanted_bps, policy.bands
    damping = Damping(
        step_bps=step_bps(policy.total_bps, policy.headroom),
        has_stood=now_s - state.wanted_since_s >= policy.hold_s,
        was_raised=policy.lends and state.raised_s is not None and now_s - state.raised_s < policy.hold_s,
        raises_whole=policy.lends and state.contention,
    )
    ceilings = [damping.ceiling_bps(held[one], wanted[one], most=bands[one].ceiling_bps) for one in Level]
    return PerLevel(*ceilings)


def _counting_from(state: UnitState, sample: UnitSample) -> UnitState:
    """Where nothing could be counted: from this sample on, and no moment remembered that is yet to come."""
    now_s = sample.taken_at_s
    return replace(
        state,
        base=sample,
        room=replace(state.room, base=None),
        calm_since_s=None if state.calm_since_s is None else min(state.calm_since_s, now_s),
        wanted_since_s=min(state.wanted_since_s, now_s),
        raised_s=None if state.raised_s is None else min(state.raised_s, now_s),
    )
