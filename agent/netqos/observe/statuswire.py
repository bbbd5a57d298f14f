"""The status socket's wire: every resource of version 1 as a typed model.

Within a version fields are only added. Bandwidths are bits per second and end in `_bps`, times are seconds and end in
`_s`; `tx` and `egress` are away from the node or pod.

Dataclasses, not pydantic models: thirty of those cost 7 MiB of resident memory, these 0.3. pydantic reads them where it
is needed: the OpenAPI document is generated from them, and what a client sends is validated by them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

API = "v1"
SCOPE = "traffic that crosses an uplink; not traffic between pods of this node, or between a pod and the node"
T = TypeVar("T")

Way = Literal["tx", "rx"]
Word = Literal["egress", "ingress"]
LevelName = Literal["L0", "L1", "L2"]
Asked = Literal["level", "limit", "rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingWire:
    """What is wrong or noteworthy (`severity`: info, warning or error), about what, and the next step."""

    code: str
    severity: str
    subject: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelWire:
    """One level in one direction. `current_ceiling_bps` is null while nothing steers the level."""

    enabled: bool
    guarantee_bps: int
    ceiling_bps: int | None
    current_ceiling_bps: int | None
    rate_bps: int
    backlogged: bool
    pods: int
    enforced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionWire:
    """One direction of the node; `not_enforced` says why, and is empty where the levels are enforced.

    `room_bps` is what the pods may use of the total at this moment: less than it while the node itself receives much.
    """

    total_bps: int | None
    total_source: str
    room_bps: int | None
    contention: bool
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
class RejectedWire:
    """How many inputs of pods are rejected or contested now, and of how many pods: each pod's findings name them."""

    inputs: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWire:
    """The whole node at a glance; `scope` says which traffic is meant by everything that is enforced.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitWire:
    """A pod's limit in one direction (null: none), the input that gave it, and who enforces it."""

    bps: int | None
    source: str
    enforced_by: list[str]
    not_enforced: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterWire:
    """The kernel's counters of a pod in one direction; `where` names the object that counts.

    `rule` is the number of the rule whose packets are counted apart, null for all others.
    """

    direction: Way
    sent_bytes: int
    sent_packets: int
    drops: int
    backlog_bytes: int
    where: str
    rule: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedWire:
    """How much a counter moved since the pod was last explained, `seconds` ago."""

    seconds: float
    sent_bytes: int
    sent_packets: int
    drops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PathWire:
    """The way of a pod's packets by one object that counts them, as read from the kernel.

    `steps` go from where they come to where they go; `claims` are the elements that tell that they are the pod's.
    `used` is false while the object has counted no packet. `moved` is null at the first look.
    """

    direction: Word
    where: str
    steps: list[str]
    claims: list[str]
    used: bool
    moved: MovedWire | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWire:
    """One pod or workload. `counters` is null where they were not asked for."""

    uid: str
    namespace: str
    name: str
    level: LevelName
    level_source: str
    limits: dict[Word, LimitWire]
    addresses: list[str]
    cgroup: str | None
    host_network: bool
    overridden: bool
    counters: list[CounterWire] | None = None
    findings: list[FindingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsWire:
    """All pods of the node, by full name."""

    pods: list[PodWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceWire:
    """An input that was considered, in the order of precedence; `verdict`: used, shadowed, rejected or absent."""

    source: str
    value: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWire:
    """A rule inside the pod, by its place among those of its direction; null actions are not asked for.

    `not_enforced` says which of its actions nobody enforces now, and why: empty where all are.
    """

    number: int
    direction: Word
    matches: list[str]
    level: LevelName | None
    dscp: int | None
    minimum_bps: int | None
    maximum_bps: int | None
    not_enforced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnforcementWire:
    """One thing that is asked for, and whether a backend enforces it now; `reason` says why not."""

    what: Asked
    direction: Word
    enforced: bool
    by: list[str]
    reason: str


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
class OverrideWire:
    """A temporary override; a limit of 0 means no limit. `pod` is null when no such pod is on the node now."""

    uid: str
    pod: str | None
    egress_bps: int | None
    ingress_bps: int | None
    level: LevelName | None
    expires_in_s: float
    expires_unix_s: float
    reason: str
    author_uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainWire:
    """Why a pod has what it has, from every input considered to what the kernel counts."""

    pod: PodWire
    choices: dict[Literal["level", "egress", "ingress"], list[ChoiceWire]]
    rules: list[RuleWire]
    override: OverrideWire | None
    enforcement: list[EnforcementWire]
    scope: str
    now: list[LevelNowWire]
    paths: list[PathWire]
    findings: list[FindingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWire:
    """One change that would be made; `verb` is create, change or delete."""

    verb: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPlanWire:
    """What one backend would change, in order."""

    backend: str
    operations: list[OperationWire]
    findings: list[FindingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWire:
    """What the next reconcile would change; nothing was changed."""

    plans: list[BackendPlanWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWire:
    """Decisions of the last minutes, oldest first."""

    now_s: float
    decisions: list[DecisionWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverridesWire:
    """All overrides in force."""

    overrides: list[OverrideWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedWire:
    """The override that is gone."""

    uid: str
    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileWire:
    """What each backend did."""

    ok: bool
    results: dict[str, ResultWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideBody:
    """What a client asks for.

    Limits are written as an annotation would hold them (`10M`; `0` is no limit), `ttl` as seconds or as `90s`, `10m`,
    `1h30m`. At least one of `egress`, `ingress` and `level` must be given.
    """

    egress: str | None = None
    ingress: str | None = None
    level: str | None = None
    ttl: float | str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemWire:
    """What went wrong; programs compare `code`, people read the rest."""

    code: str
    message: str
    hint: str
    problems: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorWire:
    """The body of every answer with a status of 400 or more."""

    error: ProblemWire


def encode(answer: object) -> bytes:
    """One JSON text in ASCII, without a line break, from a model of this module or a list or dict of them."""
    return _ENCODER.encode(answer).encode("ascii")


def _as_dict(model: Any) -> dict[str, object]:
    return {name: getattr(model, name) for name in model.__slots__}


_ENCODER = json.JSONEncoder(default=_as_dict, separators=(",", ":"), allow_nan=False)
