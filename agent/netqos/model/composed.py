"""What `compose` gives back: the desired state, and for people why it is so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netqos.model.desired import Band, DesiredState
from netqos.model.health import Finding
from netqos.model.ids import IfName, PodUid
from netqos.model.inputs import NodePolicy
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One step of an explanation: an input that was considered, what it said, and whether it was used.

    `source` is a contract line in words (`override`, `annotation koordinator.sh/egress-bandwidth`, `label ...`,
    `workload`, `kubernetes class`, `default`); `verdict` is `used`, `shadowed`, `rejected` or `absent`, `reason` why.
    """

    source: str
    value: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedLimit:
    """A pod's limit in one direction and the input that gave it. `bps` None: no limit."""

    bps: int | None
    source: str
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One pod as status and `explain` show it."""

    uid: PodUid
    namespace: str
    name: str
    level: Level
    level_source: str
    level_choices: tuple[Choice, ...]
    limits: PerDirection[AppliedLimit]
    addresses: tuple[str, ...]
    cgroup: str | None
    host_network: bool
    findings: tuple[Finding, ...]

    @property
    def full_name(self) -> str:
        """`namespace/name` of a pod; the bare name of a workload."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LastGood:
    """The last accepted values, kept over a restart (contract 1.8); compose takes the old one and gives a new one.

    `limits`: per pod and direction the last accepted limit of a rejected annotation, with its source. `bands`: per
    direction the levels' last accepted amounts. `totals`: the last accepted total with its source. `speeds`: what each
    uplink's link did last while it was up.
    """

    limits: Mapping[PodUid, PerDirection[tuple[int, str] | None]] = field(default_factory=dict)
    rules: Mapping[PodUid, PerDirection[tuple[Rule, ...]]] = field(default_factory=dict)
    policy: NodePolicy | None = None
    bands: Mapping[Direction, PerLevel[Band | None]] = field(default_factory=dict)
    totals: PerDirection[tuple[int, str] | None] = field(default=PerDirection(tx=None, rx=None))
    speeds: Mapping[IfName, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The result of one compose step. `findings` holds the node-wide ones; each pod's are in its view."""

    desired: DesiredState
    total_sources: PerDirection[str]
    pods: tuple[PodView, ...]
    findings: tuple[Finding, ...]
    last_good: LastGood


EMPTY_LAST_GOOD = LastGood()
