"""The wire of the node as a whole: directions and levels, inputs and backends."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.observe.wire.base import FindingWire, LevelName, Way
from netqos.observe.wire.loop import LoopWire
from netqos.observe.wire.paths import UplinkPathWire


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelWire:
    """One level in one direction. `current_ceiling_bps` is null while nothing steers the level.

    `why` says in words which term of the allocation law set it.
    """

    enabled: bool
    guarantee_bps: int
    ceiling_bps: int | None
    current_ceiling_bps: int | None
    rate_bps: int
    backlogged: bool
    pods: int
    enforced: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionWire:
    """One direction of the node; `not_enforced` says why, and is empty where the levels are enforced.

    `room_bps` is what the pods may use of the total at this moment: less than it while the node itself receives much.
    `why` says in words whether there is contention and what began it, and why the room is less.
    """

    total_bps: int | None
    total_source: str
    room_bps: int | None
    contention: bool
    why: str
    devices: list[str]
    levels: dict[LevelName, LevelWire]
    enforced_by: list[str]
    not_enforced: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWire:
    """An input and its `state` (waiting, fresh or stale).

    `age_s` is how long ago it was last known to be good: 0 while it is fresh, null before it ever was.
    """

    state: str
    age_s: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureWire:
    """An operation that did not succeed."""

    verb: str
    subject: str
    detail: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWire:
    """What one backend's last change did."""

    ok: bool
    applied: int
    failures: list[FailureWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendWire:
    """One backend: its state (ok, degraded, failing, unavailable, backing-off or off) and what it can do on this host.

    Degraded: some of it fails or waits, and findings tell for whom; the rest is in force.
    """

    state: str
    enforces: list[Way]
    lends: bool
    limits: bool
    rules: bool
    applied_age_s: float | None
    last_result: ResultWire | None
    repairs: int
    findings: list[FindingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedWire:
    """How many inputs of pods are rejected or contested now, and of how many pods: each pod's findings name them."""

    inputs: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWire:
    """The whole node at a glance; `scope` says which traffic is meant by everything that is enforced.

    `paths` has each device that the loop steers by itself, and what its path was shown to carry.

    `waited_for` has the sources without which the node is not ready, and what is the matter with each. `passes` is how
    often it was reconciled since the start.
    """

    version: str
    node: str
    ready: bool
    waited_for: dict[str, str]
    passes: int
    enabled: bool
    uptime_s: float
    pods: int
    rejected: RejectedWire
    overrides: int
    scope: str
    directions: dict[Way, DirectionWire]
    sources: dict[str, SourceWire]
    backends: dict[str, BackendWire]
    loop: LoopWire
    paths: list[UplinkPathWire]
    findings: list[FindingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkWire:
    """A device under control, with its own total."""

    name: str
    index: int
    mtu: int
    total_bps: dict[Way, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWire:
    """What the node is asked to be. `complete` false: a source has not delivered yet, so nothing is taken away."""

    node: str
    enabled: bool
    complete: bool
    uplinks: list[UplinkWire]
    directions: dict[Way, DirectionWire]
    critical_cgroups: list[str]
    findings: list[FindingWire]
