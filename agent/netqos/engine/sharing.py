"""The uplinks that share one total, tick by tick: what each of them needs, and so its part. Pure.

A need that grows counts at once, one that falls when all of the last `KEPT_TICKS` were lower: a pause of some
milliseconds takes nothing away, and two uplinks that both want more never pass a part to and fro. Needs are whole
steps of the total, so that steady traffic with noise on it moves nothing.

HTB says only that packets wait somewhere in an uplink. A pod at its own limit has packets waiting too, and must not be
taken for an uplink that is too small: so the uplink must be full, or the level at its ceiling. And HTB lends to L0
before L1 before L2, so while a level gets more than its guarantee, those above it lack nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from netqos.engine.allocate import needs_bps
from netqos.engine.counting import rates_between
from netqos.engine.shares import Share, divide
from netqos.engine.steer import SERVED
from netqos.engine.unitstate import LoopPolicy
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit, UnitSample

HEADROOM = 0.1
"""What is kept above a measured rate (contract 3): nobody lends between uplinks."""

FULL = 0.95
"""The share of a total or ceiling from which on it is what holds the traffic."""

BORROWING = 1.05
"""A level that gets this much of its guarantee is lent bandwidth."""

HOLD_S = 1.0
"""A need that came back as soon as it had fallen, its traffic being the same, falls no sooner than this again.

What it is given for its waiting may be just what it lacks: it waits no more, its need falls, and it waits again.
"""

KEPT_TICKS = 5
STEPS = 64
NOTHING_NEEDED = PerLevel(0, 0, 0)
NEVER: PerLevel[float | None] = PerLevel(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one uplink's traffic wants: the needs of the last ticks, oldest first, and those that count.

    `fell_s` is when what counts was last lowered, `held_s` since when it is held because it came back.
    """

    base: UnitSample | None = None
    recent: tuple[PerLevel[int], ...] = ()
    kept: PerLevel[int] = NOTHING_NEEDED
    fell_s: PerLevel[float | None] = NEVER
    held_s: PerLevel[float | None] = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What the next tick must know: the need and the part of each unit that shares."""

    needs: Mapping[Unit, Need] = field(default_factory=dict)
    shares: Mapping[Unit, Share] = field(default_factory=dict)


NOTHING_SHARED = Sharing()


def narrow(
    sharing: Sharing, samples: Iterable[UnitSample], policies: Mapping[Unit, LoopPolicy]
) -> tuple[Sharing, Mapping[Unit, LoopPolicy]]:
    """The policies with the part of each unit that shares in place of the whole; other units keep theirs."""
    shared = {unit: policy for unit, policy in policies.items() if policy.is_shared}
    if not shared:
        return NOTHING_SHARED, policies
    by_unit = {sample.unit: sample for sample in samples}
    needs = {
        unit: _need(sharing.needs.get(unit, Need()), by_unit.get(unit), policy, sharing.shares.get(unit))
        for unit, policy in shared.items()
    }
    shares: dict[Unit, Share] = {}
    for direction in Direction:
        shares |= _divided({unit: one for unit, one in shared.items() if unit.direction is direction}, needs)
    narrowed = {unit: _within(policy, shares[unit]) for unit, policy in shared.items()}
    return Sharing(needs=needs, shares=shares), {**policies, **narrowed}


def _divided(shared: Mapping[Unit, LoopPolicy], needs: Mapping[Unit, Need]) -> dict[Unit, Share]:
    """The parts of one direction's units, which all have the policy of the whole."""
    if not shared:
        return {}
    whole = next(iter(shared.values()))
    found = divide(
        total_bps=whole.total_bps,
        bands=whole.bands,
        needs=[needs[unit].kept for unit in shared],
        most_bps=[policy.most_bps for policy in shared.values()],
    )
    return dict(zip(shared, found, strict=True))


def _within(policy: LoopPolicy, share: Share) -> LoopPolicy:
    return replace(policy, total_bps=share.total_bps, bands=share.bands)


def _need(need: Need, sample: UnitSample | None, policy: LoopPolicy, share: Share | None) -> Need:
    """With one more tick. A sample that tells no rate is only the new base."""
    if sample is None:
        return need
    rates = rates_between(need.base, sample)
    if rates is None:
        return replace(need, base=sample)
    backlogged = _waiting(sample, rates, policy if share is None else _within(policy, share))
    now = needs_bps(bands=policy.bands, rates_bps=rates, backlogged=backlogged, headroom=HEADROOM)
    recent = (*need.recent, now)[-KEPT_TICKS:]
    highest = PerLevel(*(max(one[level] for one in recent) for level in Level))
    step_bps = max(1, policy.total_bps // STEPS)
    wanted = PerLevel(*(_kept(need.kept[level], highest[level], step_bps) for level in Level))
    return _moved(replace(need, base=sample, recent=recent), wanted, rates)


def _moved(need: Need, wanted: PerLevel[int], rates: PerLevel[int]) -> Need:
    """With the needs that count now: as wanted, but what bounces stays up for a hold."""
    assert need.base is not None
    now_s = need.base.taken_at_s
    kept, fell_s, held_s = list(need.kept), list(need.fell_s), list(need.held_s)
    for place, (old, new, rate) in enumerate(zip(need.kept, wanted, rates, strict=True)):
        if new > old:
            is_same = rate + round(rate * HEADROOM) <= old
            held_s[place] = now_s if is_same and _is_within_hold(fell_s[place], now_s) else None
            kept[place] = new
        elif new < old and not _is_within_hold(held_s[place], now_s):
            kept[place], fell_s[place], held_s[place] = new, now_s, None
    return replace(need, kept=PerLevel(*kept), fell_s=PerLevel(*fell_s), held_s=PerLevel(*held_s))


def _is_within_hold(since_s: float | None, now_s: float) -> bool:
    return since_s is not None and 0 <= now_s - since_s < HOLD_S


def _waiting(sample: UnitSample, rates: PerLevel[int], part: LoopPolicy) -> PerLevel[bool]:
    """Which levels want more than they get on one uplink."""
    if sample.level_backlogged is not None:
        return sample.level_backlogged
    is_full = sum(rates) >= FULL * part.total_bps

    def waits(level: Level) -> bool:
        band, rate = part.bands[level], rates[level]
        is_served = rate >= SERVED * band.guarantee_bps and not _lends(level, rates, part)
        return rate > 0 and (rate >= FULL * band.ceiling_bps or (is_full and is_served))

    waiting = [sample.backlogged and waits(level) for level in Level]
    return PerLevel(*waiting)


def _lends(level: Level, rates: PerLevel[int], part: LoopPolicy) -> bool:
    """Whether a level of less priority gets more than its guarantee."""
    below = [one for one in Level if one.value > level.value]
    return any(rates[one] > BORROWING * part.bands[one].guarantee_bps for one in below)


def _kept(kept_bps: int, highest_bps: int, step_bps: int) -> int:
    """A whole number of steps, at least what was met; given back when at least another half is free."""
    is_enough = highest_bps <= kept_bps
    if is_enough and kept_bps - highest_bps < step_bps * 3 // 2:
        return kept_bps
    return -(-highest_bps // step_bps) * step_bps
