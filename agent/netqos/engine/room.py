"""How much of a direction's total a unit may pass while others use the same link: what arrives for the node itself.

Shaping what is received happens behind the device, on the way to the pods. What the node receives for itself (image
pulls, host-network pods) never comes there, yet it takes its part of the link. It is measured as what the devices
carried less what was offered to the unit, and kept free; the law then runs with the rest, the room, in place of the
total. Bits per second; pure.

L0 pays: the node's own traffic is L0, so its guarantee is for both, and L1 and L2 keep theirs whatever the node
receives. What the node takes is kept free at once and given back slowly, in whole steps, so that steady traffic with
noise on it comes to rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from netqos.engine.allocate import L0_FLOOR_BPS
from netqos.model.desired import Band
from netqos.model.levels import PerLevel
from netqos.model.traffic import UnitSample

WINDOW_S = 0.1
"""Over a shorter time, packets between the device and the unit (a device hands over some hundred at a time) count."""

LONGEST_WINDOW_S = 5.0
"""A longer time between samples (suspend, a stopped process) tells an average of the past."""

STEPS = 64
"""What is kept free is a whole number of these parts of the total: within 0.8 percent of what was measured."""

GIVE_BACK = 0.75
"""The share of a step by which all that is measured must be lower before something is given back.

Rounding alone may leave half a step too much; noise of less than the other quarter never moves anything.
"""

HOLD_S = 3.0
"""Something is given back after this time. A download that pauses for a moment is not over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomState:
    """What the next measurement must know: where it counts from, what is kept free, and since when less is used.

    `highest_bps` is the highest that was measured in this time.
    """

    base: UnitSample | None = None
    kept_bps: int = 0
    lower_since_s: float = 0.0
    highest_bps: int = 0


def measure(state: RoomState, sample: UnitSample, *, total_bps: int) -> RoomState:
    """Count one sample. One that tells nothing (a counter that went back, far too long a time) is the new base."""
    elapsed_s = _elapsed_s(state.base, sample)
    if elapsed_s is None:
        return replace(state, base=sample, lower_since_s=sample.taken_at_s, highest_bps=0)
    if elapsed_s < WINDOW_S:
        return state
    assert state.base is not None
    beside = max(0, _beside(sample) - _beside(state.base))
    measured_bps = min(total_bps, round(beside * 8 / elapsed_s))
    return _keep(replace(state, base=sample), measured_bps, total_bps)


def room_bps(kept_bps: int, bands: PerLevel[Band], *, total_bps: int) -> int:
    """What is left for the unit: never less than the guarantees of L1 and L2 and L0's floor (contract 1.5)."""
    least_l0_bps = min(bands.l0.guarantee_bps, L0_FLOOR_BPS)
    return max(total_bps - kept_bps, bands.l1.guarantee_bps + bands.l2.guarantee_bps + least_l0_bps)


def within(bands: PerLevel[Band], room: int) -> PerLevel[Band]:
    """The bands in a room: L0 is guaranteed what L1 and L2 leave of it, and no ceiling is above it."""
    rest_bps = room - bands.l1.guarantee_bps - bands.l2.guarantee_bps
    lower = bands.map(lambda band: replace(band, ceiling_bps=min(band.ceiling_bps, room)))
    return replace(lower, l0=replace(lower.l0, guarantee_bps=min(rest_bps, bands.l0.guarantee_bps)))


def _elapsed_s(base: UnitSample | None, sample: UnitSample) -> float | None:
    """Seconds between two samples, None when nothing can be counted from the one to the other."""
    if base is None or base.unit != sample.unit:
        return None
    elapsed_s = sample.taken_at_s - base.taken_at_s
    counters = ((base.device_bytes, sample.device_bytes), (base.offered_bytes, sample.offered_bytes))
    goes_on = all(then is not None and now is not None and then <= now for then, now in counters)
    return elapsed_s if goes_on and 0 <= elapsed_s <= LONGEST_WINDOW_S else None


def _beside(sample: UnitSample) -> int:
    assert sample.device_bytes is not None
    assert sample.offered_bytes is not None
    return sample.device_bytes - sample.offered_bytes


def _keep(state: RoomState, measured_bps: int, total_bps: int) -> RoomState:
    """Keep more at once; keep less when all of a hold was well below."""
    assert state.base is not None
    now_s, step_bps = state.base.taken_at_s, max(1, total_bps // STEPS)
    if measured_bps >= state.kept_bps - GIVE_BACK * step_bps:
        kept_bps = max(state.kept_bps, _rounded(measured_bps, step_bps))
        return replace(state, kept_bps=kept_bps, lower_since_s=now_s, highest_bps=0)
    highest_bps = max(state.highest_bps, measured_bps)
    if now_s - state.lower_since_s < HOLD_S:
        return replace(state, highest_bps=highest_bps)
    return replace(state, kept_bps=_rounded(highest_bps, step_bps), lower_since_s=now_s, highest_bps=0)


def _rounded(bps: int, step_bps: int) -> int:
    return (bps + step_bps // 2) // step_bps * step_bps
