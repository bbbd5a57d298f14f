"""What the daemon shows of itself: one frozen view a moment, and the requests that the socket may make.

The runtime builds an `AgentView` whenever something changed; the status socket, the metrics and the log only read it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from netqos.backend import Capabilities, LeafCounters
from netqos.engine.rounds import Taken
from netqos.engine.why import Ground, Reasoned, why
from netqos.model.composed import Composition, PodView
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.inputs import Freshness, Override, SourceState
from netqos.model.levels import Direction
from netqos.model.plan import ApplyResult, Plan
from netqos.model.traffic import Decision, Unit
from netqos.observe.moment import Moment
from netqos.observe.pathview import PathView

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendView:
    """One backend as it stands: `state` is ok, degraded, failing, unavailable, backing-off or off.

    Degraded: some of it fails or waits, and findings tell for whom; the rest is in force.

    Since the start: `operations` counts by (verb, `ok` or `error`), `repairs` the passes that put back what somebody
    else had changed.
    """

    name: str
    state: str
    capabilities: Capabilities | None = None
    last_result: ApplyResult | None = None
    last_applied_s: float | None = None
    findings: tuple[Finding, ...] = ()
    operations: Mapping[tuple[str, str], int] = field(default_factory=dict)
    repairs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopView:
    """The fast loop: the newest decision of each unit, and its tick statistics since the start (seconds).

    `last_tick_s` is the monotonic time of the newest tick, None while there is nothing to steer.
    """

    newest: Mapping[Unit, Ground] = field(default_factory=dict)
    ticks: int = 0
    late_p99_s: float = 0.0
    late_max_s: float = 0.0
    duration_p99_s: float = 0.0
    contention_s: Mapping[Unit, float] = field(default_factory=dict)
    writes: int = 0
    last_tick_s: float | None = None

    @property
    def decisions(self) -> Mapping[Unit, Decision]:
        """The newest decision of each unit."""
        return {unit: ground.decision for unit, ground in self.newest.items()}

    def reasoned(self) -> tuple[Reasoned, ...]:
        """The newest decision of each unit with its reasons, which are worked out now."""
        return tuple(Reasoned(one.decision, why(one)) for one in self.newest.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """Everything that status shows.

    `now_s` is the monotonic time of the view; `composition` None: nothing composed yet. `waited_for`: the sources
    without which it is not ready, and what is the matter with each; `passes` is how often it reconciled. `paths`: what
    lies behind each unit.
    """

    version: str
    node: str
    started_s: float
    now_s: float
    ready: bool
    composition: Composition | None
    sources: Mapping[str, SourceState]
    backends: Mapping[str, BackendView]
    loop: LoopView
    overrides: tuple[Override, ...]
    findings: tuple[Finding, ...]
    waited_for: Mapping[str, str] = field(default_factory=dict)
    passes: int = 0
    paths: Mapping[Unit, PathView] = field(default_factory=dict)


def room_bps(view: AgentView, direction: Direction) -> int | None:
    """What the pods may use of a direction's total at this moment; the total where it is never moved."""
    made = [one for unit, one in view.loop.decisions.items() if unit.direction is direction]
    if made and all(one.room_bps is not None for one in made):
        return sum(one.room_bps or 0 for one in made)
    return view.composition.desired.directions[direction].total_bps if view.composition is not None else None


def source_age_s(state: SourceState, moment: Moment) -> float | None:
    """Seconds since a source was last known to be good: none while it is, None where it never was."""
    return 0.0 if state.freshness is Freshness.FRESH else moment.age_s(state.since_s)


@dataclass(frozen=True, slots=True)
class Numbered(Generic[T_co]):
    """An item of a stream; numbers go up by one, and where one is left out the reader was too slow for it."""

    number: int
    item: T_co


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the loop of a backend, as it was taken."""

    backend: str
    taken: Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideRequest:
    """What a client asks for; limits are texts as an annotation would hold them, `ttl_s` seconds (0 < ttl <= 24 h)."""

    egress: str | None = None
    ingress: str | None = None
    level: str | None = None
    ttl_s: float
    reason: str = ""
    author_uid: int = 0


class Agent(Protocol):
    """What the status socket may ask of the running daemon."""

    def view(self) -> AgentView:
        """The newest view."""
        ...

    def history(self) -> tuple[Reasoned, ...]:
        """The decisions of the last minutes that changed something, and one a second otherwise; oldest first."""
        ...

    def stream(self) -> AsyncGenerator[tuple[Numbered[Ground], ...], None]:
        """Each tick's decisions from now on; a reader that is too slow misses some."""
        ...

    def rounds(self) -> AsyncGenerator[tuple[Numbered[Round], ...], None]:
        """Each round of every loop from now on, with all that it takes to run it again; as above."""
        ...

    async def plan(self) -> tuple[Plan, ...]:
        """What the next reconcile would change, backend by backend; nothing is changed."""
        ...

    async def counters(self, pod: PodView) -> tuple[LeafCounters, ...]:
        """The kernel's counters of one pod, read now."""
        ...

    async def all_counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """The kernel's counters of every pod that a backend knows, read now, all backends together."""
        ...

    async def set_override(self, uid: PodUid, request: OverrideRequest) -> Override:
        """Accept, keep and apply an override; raises Rejected (with every problem) and changes nothing when wrong."""
        ...

    async def delete_override(self, uid: PodUid) -> bool:
        """Remove an override and apply; False when there was none."""
        ...

    async def reconcile(self) -> Mapping[str, ApplyResult]:
        """Reconcile now and wait for the result by backend."""
        ...
