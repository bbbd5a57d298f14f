"""What the sources say, before anything is decided.

Each value is what one source delivered and a parser accepted; `netqos.engine` turns all of them together into the
desired state. Bandwidths are bits per second (int); a `None` bandwidth means "this source does not say".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from netqos.model.health import Finding
from netqos.model.ids import CgroupPath, IfName, PodUid
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.rules import Rule


@dataclass(frozen=True, slots=True)
class Percent:
    """A share of the node's total bandwidth, 0 to 100."""

    value: int | Fraction


Amount = int | Percent
"""A bandwidth: bits per second, or a share of the total."""

NOTHING_SAID: PerDirection[Amount | None] = PerDirection(tx=None, rx=None)
NO_LIMITS: PerDirection[int | None] = PerDirection(tx=None, rx=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPolicy:
    """What one source says of one level.

    `enabled` None: the source does not say (no such class, or one without `enable`); a level of which no source says
    that it is enabled is not enabled. The file's own shape and the proposal's enable all levels with their one switch.
    A ceiling never is 0: where 0 was written it is 100 percent.
    """

    enabled: bool | None = None
    guarantee: PerDirection[Amount | None] = NOTHING_SAID
    ceiling: PerDirection[Amount | None] = NOTHING_SAID


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicy:
    """One source's policy in normal form, whatever shape it was written in (contract 1.4, 1.6).

    `invalid` names the levels whose text was rejected: they keep their own last good values. `invalid_total` names
    the directions whose total was rejected: the last good one of this source counts, else the next source's.
    """

    source: str
    enabled: bool | None = None
    total: PerDirection[int | None] = NO_LIMITS
    levels: PerLevel[LevelPolicy] = field(default=PerLevel(LevelPolicy(), LevelPolicy(), LevelPolicy()))
    invalid: frozenset[Level] = frozenset()
    invalid_total: frozenset[Direction] = frozenset()
    backends: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRule:
    """Contract 1.7: what the namespaces that match one of the globs may use. `dscp` holds inclusive ranges."""

    match: tuple[str, ...]
    levels: frozenset[Level] = frozenset(Level)
    minimum: bool = False
    dscp: tuple[tuple[int, int], ...] = ()


class KubernetesQos(enum.Enum):
    """The Kubernetes QoS class of a pod."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One pod, or one workload of the configuration file, as its source describes it.

    `namespace` is empty for a workload. `addresses` are plain IPs, v4 and v6, in the order given. `cgroup_id` is the
    inode of the cgroup v2 folder, None while it is not there. `inner_cgroups` are (path, id) of those below it, where
    packets can be told apart by these alone (`netqos.host.cgrouptree`). `kubernetes_qos` None: neither the status nor
    the spec told. The `direct_*` fields are what a workload says of itself outside of annotations.
    """

    uid: PodUid
    namespace: str
    name: str
    addresses: tuple[str, ...] = ()
    host_network: bool = False
    cgroup: CgroupPath | None = None
    cgroup_id: int | None = None
    inner_cgroups: tuple[tuple[CgroupPath, int], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    kubernetes_qos: KubernetesQos | None = None
    system_critical: bool = False
    direct_level: Level | None = None
    direct_limits: PerDirection[int | None] = NO_LIMITS
    direct_rules: PerDirection[tuple[Rule, ...]] = field(default=PerDirection(tx=(), rx=()))
    findings: tuple[Finding, ...] = ()

    @property
    def full_name(self) -> str:
        """`namespace/name` of a pod; the bare name of a workload."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def subject(self) -> str:
        """What findings about it are about: `pod namespace/name` or `workload name`."""
        return f"{'pod' if self.namespace else 'workload'} {self.full_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A temporary override of one pod, given through the status socket (contract 1.1 line 0, 1.2 line 1).

    It ends at `expires_wall_s` (Unix time) or `expires_boot_s` (seconds since boot), whichever comes first, so that a
    clock jump never lengthens it. A limit of 0 means "no limit".
    """

    uid: PodUid
    limits: PerDirection[int | None] = NO_LIMITS
    level: Level | None = None
    expires_wall_s: float
    expires_boot_s: float
    boot_id: str
    reason: str = ""
    author_uid: int = 0


Held = str
"""What of others enforces a limit already, for people; empty: nothing does."""

NOT_HELD: PerDirection[Held] = PerDirection(tx="", rx="")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLimits:
    """Where a CNI's own limiter holds the limits of `kubernetes.io/*-bandwidth`: of some addresses, or of every pod."""

    by_address: Mapping[str, PerDirection[Held]] = field(default_factory=dict)
    of_all: PerDirection[Held] = NOT_HELD

    def of(self, addresses: tuple[str, ...]) -> PerDirection[Held]:
        """What holds the limits of a pod with these addresses."""
        if not self.by_address and self.of_all == NOT_HELD:
            return NOT_HELD
        found = [self.of_all, *(self.by_address.get(one, NOT_HELD) for one in addresses)]
        first = {way: next((one[way] for one in found if one[way]), "") for way in Direction}
        return PerDirection(tx=first[Direction.TX], rx=first[Direction.RX])


NO_HELD_LIMITS = HeldLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkFacts:
    """One device that carries the node's traffic.

    `speed_bps` None: unknown (contract 1.5); `why_no_speed` says then what the driver reports. `present` False: no
    such link. `egress_program`: the eBPF program that others run on what leaves by it, empty where there is none.
    """

    name: IfName
    present: bool = True
    index: int = 0
    mtu: int = 1500
    is_up: bool = True
    speed_bps: int | None = None
    why_no_speed: str = ""
    configured: PerDirection[int | None] = NO_LIMITS
    egress_program: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What is known of the node itself. `bandwidth_annotation` is the raw text of the Node's annotation (contract 1.5).

    `critical_cgroups` are those of sshd, the kubelet, the container runtime and netqosd itself, as (path, id) pairs.
    """

    name: str
    uplinks: tuple[UplinkFacts, ...] = ()
    bandwidth_annotation: str | None = None
    critical_cgroups: tuple[tuple[CgroupPath, int], ...] = ()
    held: HeldLimits = NO_HELD_LIMITS
    findings: tuple[Finding, ...] = ()


class Freshness(enum.Enum):
    """The state of a source: nothing delivered yet, delivered and current, or the last known after a failure."""

    WAITING = "waiting"
    FRESH = "fresh"
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """Whether a source may be trusted. `since_s` is the monotonic time at which it was last known to be good.

    None: it never was. While it is FRESH it is good, however long ago it had something to say.
    """

    freshness: Freshness
    since_s: float | None = None
    detail: str = ""
