"""The wire of the fast loop: its decisions and why they are what they are."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.observe.wire.base import LevelName, Way, Word
from netqos.observe.wire.paths import PathStepWire


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionWire:
    """Whether there is contention, and what says so.

    `cause`: `below` (there is none), `sum` (the sum is over the threshold), `waiting` (packets wait and the sum is over
    the lower threshold), `between` (over the threshold at which it ends), `calm` (under that, for `calm_s` of
    `hold_s`). `threshold` is the one that counts for it, a fraction of `total_bps`. `since_s`, `onset_bps` and
    `onset_waiting` tell how long ago contention began, and with what.
    """

    cause: str
    used_bps: int
    total_bps: int
    threshold: float
    waiting: list[LevelName]
    hold_s: float
    calm_s: float | None
    since_s: float | None
    onset_bps: int | None
    onset_waiting: bool | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomWire:
    """What the device may pass of `total_bps`, as others use it too: `of` says who, `node` itself or other `uplinks`.

    `beside_bps` is what is kept free for what the node receives.
    """

    of: str
    bps: int
    total_bps: int
    beside_bps: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingWire:
    """Which term of the allocation law set a level's ceiling.

    `term`: `own-ceiling`, `room` (which is less than that), `left` (what the others leave of the total), `guarantee` or
    `floor` (they leave less than its guarantee, or than L0's least). `kept_bps` is what is kept free for each of the
    others. `wanted_bps` is what the law gives; where the ceiling is another, less is not taken away at once.
    """

    term: str
    ceiling_bps: int
    wanted_bps: int
    kept_bps: dict[LevelName, int]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyWire:
    """Why a decision is what it is; `room` is null where the device's total is never moved."""

    contention: ContentionWire
    room: RoomWire | None
    levels: dict[LevelName, CeilingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionWire:
    """One tick of one device and direction, at `at_s` of the node's monotonic clock, which was `unix_s` as Unix time.

    `room_bps` is what the device may pass in all, null where that is never moved. `reason` names the term of the
    allocation law that set L0's ceiling, `reason_text` says all that counts in words, `why` has its figures. `missed`
    is how many lines a reader of the stream missed just before this one, as it was too slow; 0 everywhere else.
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
    why: WhyWire
    changed: bool
    missed: int = 0


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
    """Decisions of the last minutes, and the steps by which totals followed what their paths carry, oldest first."""

    now_s: float
    steps: list[PathStepWire]
    decisions: list[DecisionWire]
