"""What the fast loop measures and decides, tick by tick. Rates and ceilings are bits per second."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that is shaped on its own: a direction of one device."""

    direction: Direction
    device: IfName


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSample:
    """Counters of one unit, taken together at `taken_at_s` (monotonic seconds).

    `level_bytes` count up from an arbitrary start; `backlogged` says that packets wait somewhere in the unit (for a
    backend that can tell each level apart, `level_backlogged` is given and wins). `device_bytes` is the device's own
    counter, of a unit behind several devices their sum; None where it is not read. `dropped` counts packets dropped in
    the unit.

    `offered_bytes` is given by a unit that meets only a part of what its devices carry: the bytes of that part, counted
    where they come in (those that are dropped or still wait too), in the devices' measure or a larger one. Such a
    unit's total is moved, so that it leaves room for the other part (`netqos.engine.room`).
    """

    unit: Unit
    taken_at_s: float
    level_bytes: PerLevel[int]
    backlogged: bool = False
    level_backlogged: PerLevel[bool] | None = None
    device_bytes: int | None = None
    offered_bytes: int | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One counter of a unit at `taken_at_s`: at least as many bytes as its levels and what passes beside it have."""

    unit: Unit
    taken_at_s: float
    carried_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of one tick of one unit. `changed` False: ceilings and room are those of the tick before.

    `room_bps` is what the unit may pass in all, None where its total is not moved; `guarantees_bps` what its levels are
    promised of a part of a total that several units share, None where a unit has its own.
    """

    unit: Unit
    at_s: float
    elapsed_s: float
    rates_bps: PerLevel[int]
    backlogged: PerLevel[bool]
    contention: bool
    ceilings_bps: PerLevel[int]
    changed: bool
    room_bps: int | None = None
    guarantees_bps: PerLevel[int] | None = None
