"""The desired state: what the node's network should look like, for every backend alike.

It is composed by `netqos.engine.compose`, has no source, reason or time in it, and compares by value: two equal
desired states need no work between them. Bandwidths are bits per second.
"""

from __future__ import annotations

from dataclasses import dataclass

from netqos.model.ids import CgroupPath, IfName, PodUid
from netqos.model.inputs import NO_LIMITS
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """What one level is promised in one direction: guarantee <= ceiling <= total.

    `enabled` False: the class is not switched on; its guarantee is 0 and its ceiling the total.
    """

    guarantee_bps: int
    ceiling_bps: int
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredDirection:
    """One direction of the node. `levels` None: not shaped by level (network QoS off, or the total is unknown)."""

    total_bps: int | None
    levels: PerLevel[Band] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredUplink:
    """A device to shape. `total_bps` per direction is this uplink's own total, None where it is unknown.

    `pool_bps` is set where it shares a total with others: that total, of which the fast loop gives each a part. Its
    `total_bps` is then the most that its part may become, and the levels' promises are those of the pool.
    `egress_program` as of `UplinkFacts`: under it, fq may keep departure times that the program sets.
    """

    name: IfName
    index: int
    mtu: int
    total_bps: PerDirection[int | None]
    pool_bps: PerDirection[int | None] = NO_LIMITS
    egress_program: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredPod:
    """One pod (or workload): its level, its limits (None: no limit) and how its packets are told from others.

    `name` is the full name. Addresses are never the node's own (a host-network pod has none here, only its cgroup).
    `inner_cgroups` as of `PodFacts`.
    """

    uid: PodUid
    name: str
    level: Level
    limits_bps: PerDirection[int | None]
    rules: PerDirection[tuple[Rule, ...]]
    addresses: tuple[str, ...] = ()
    cgroup: CgroupPath | None = None
    cgroup_id: int | None = None
    inner_cgroups: tuple[tuple[CgroupPath, int], ...] = ()
    host_network: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit in any direction, or a rule of it has."""
        return any(self.limits_bps[way] is not None or self._has_maximum(way) for way in Direction)

    def is_held(self, direction: Direction) -> bool:
        """Whether a limit is asked for it in a direction, or a rule's maximum or code point; neither needs levels."""
        rules = self.rules[direction]
        is_marked = any(rule.dscp is not None for rule in rules)
        return self.limits_bps[direction] is not None or is_marked or self._has_maximum(direction)

    def _has_maximum(self, direction: Direction) -> bool:
        return any(rule.maximum_bps is not None for rule in self.rules[direction])


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """Everything a backend needs.

    `complete` False: a source has not delivered yet, so a plan may only add (contract 1.8). `missing_uplinks` are the
    names of devices that the configuration asks for and that are not there: with them, `uplinks` may be empty though
    it is known where to shape.
    """

    enabled: bool
    complete: bool
    uplinks: tuple[DesiredUplink, ...]
    directions: PerDirection[DesiredDirection]
    pods: tuple[DesiredPod, ...]
    critical_cgroups: tuple[tuple[CgroupPath, int], ...] = ()
    missing_uplinks: tuple[IfName, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Nothing to enforce: network QoS off, and nothing asked for any pod by itself."""
        return not self.enabled and not any(pod.is_held(way) for pod in self.pods for way in Direction)


UNSHAPED = DesiredDirection(total_bps=None, levels=None)

NOTHING = DesiredState(
    enabled=False, complete=True, uplinks=(), directions=PerDirection(tx=UNSHAPED, rx=UNSHAPED), pods=()
)
"""The desired state that removes everything of ours."""
