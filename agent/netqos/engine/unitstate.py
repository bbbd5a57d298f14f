"""What a unit of the loop is promised, and what its next step must know of the ones before. Pure.

Bits per second, seconds of the monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from netqos.engine.room import RoomState
from netqos.model.desired import Band
from netqos.model.levels import PerLevel
from netqos.model.traffic import UnitSample

NOTHING_MEASURED = PerLevel(0, 0, 0)
NOTHING_BESIDE = RoomState()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPolicy:
    """What one unit is promised and how it is steered.

    `lends`: the mechanism lends unused bandwidth by itself, so only L0's ceiling moves. `headroom` is a fraction of the
    rate; the thresholds `enter`, `enter_backlogged` and `leave` are fractions of the total; `hold_s` is seconds.
    `is_shared`: total and bands are of several units together, each of which gets a part (`netqos.engine.sharing`);
    `most_bps` is then what this one can pass at most, None where that is the total.
    """

    total_bps: int
    bands: PerLevel[Band]
    lends: bool
    headroom: float
    enter: float = 0.95
    enter_backlogged: float = 0.90
    leave: float = 0.85
    hold_s: float = 1.0
    is_shared: bool = False
    most_bps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """What began contention: the sum of the rates, of which total, and whether it counted that packets waited."""

    at_s: float
    used_bps: int
    total_bps: int
    waited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitState:
    """What a unit's next step must know of the ones before; make the first with `initial_state`.

    `base` is the sample that the next one is counted from. `calm_since_s` is the time since when the load is
    under the leave threshold, None while it is not. `needs` are those of the last ticks, oldest first.
    `ceilings_bps`, `room_bps` and `guarantees_bps` are the last decided ones, None before any; `wanted_bps` what the
    law gave last, and since when it gives the same; `raised_s` is when it last gave L0 as much as its ceiling was
    raised to. `room` is what is measured beside the unit. `onset` is that of the contention that the unit is in.
    """

    base: UnitSample | None = None
    policy: LoopPolicy | None = None
    rates_bps: PerLevel[int] = NOTHING_MEASURED
    contention: bool = False
    onset: Onset | None = None
    calm_since_s: float | None = None
    needs: tuple[PerLevel[int], ...] = ()
    ceilings_bps: PerLevel[int] | None = None
    wanted_bps: PerLevel[int] | None = None
    wanted_since_s: float = 0.0
    raised_s: float | None = None
    room: RoomState = NOTHING_BESIDE
    room_bps: int | None = None
    guarantees_bps: PerLevel[int] | None = None


def initial_state(*, total_bps: int = 0, room_bps: int | None = None) -> UnitState:
    """The state before any sample. A room in force is kept until more is known: whoever set it had measured."""
    kept_bps = 0 if room_bps is None else max(0, total_bps - room_bps)
    return UnitState(room=RoomState(kept_bps=kept_bps))


def in_force(state: UnitState, ceilings_bps: PerLevel[int] | None, room_bps: int | None = None) -> UnitState:
    """The same state with what was read of another grip: equal is no change, None makes the next decision a change."""
    return replace(state, ceilings_bps=ceilings_bps, room_bps=room_bps, room=replace(state.room, base=None))
