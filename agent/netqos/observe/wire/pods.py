"""The wire of pods and workloads, and of what made each of them have what it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from netqos.observe.wire.base import Asked, FindingWire, LevelName, Way, Word
from netqos.observe.wire.changes import OverrideWire
from netqos.observe.wire.loop import LevelNowWire


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
