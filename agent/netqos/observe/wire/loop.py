"""The wire of the fast loop: its decisions and why they are what they are."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.observe.wire.base import LevelName, Way, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionWire:
    """One tick of one device and direction, at `at_s` of the node's monotonic clock, which was `unix_s` as Unix time.

    `room_bps` is what the device may pass in all, null where that is never moved. `reason` names the term of the
    allocation law that set L0's ceiling, `reason_text` says it in words.
    """

    device: str
    direction: Way
    at_s: float
    unix_s: float
    elapsed_s: float
    contention: bool
    room_bps: int | None
    rates_bps: dict[LevelName, int]
    ceilings_bps: dict[LevelName, int]
    backlogged: dict[LevelName, bool]
    reason: str
    reason_text: str
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopWire:
    """The fast loop since the start; `units` holds the newest decision of each device and direction."""

    ticks: int
    writes: int
    late_p99_s: float
    late_max_s: float
    duration_p99_s: float
    last_tick_age_s: float | None
    units: list[DecisionWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelNowWire:
    """What the pod's level gets at this moment on one device, and what made the loop decide so."""

    device: str
    direction: Word
    rate_bps: int
    guarantee_bps: int
    ceiling_bps: int
    contention: bool
    backlogged: bool
    reason: str
    reason_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWire:
    """Decisions of the last minutes, oldest first."""

    now_s: float
    decisions: list[DecisionWire]
