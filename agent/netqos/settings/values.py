"""The settings in force: the frozen result of reading the configuration (contract 1.6).

Text becomes `Settings` in `netqos.settings.file`; nothing here knows about text. Bandwidths are bits per second, times
are seconds, thresholds are fractions of the total.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from netqos.model.ids import CgroupPath, IfName
from netqos.model.inputs import NO_LIMITS, NamespaceRule, NodePolicy
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.rules import Rule

DEFAULT_CLASSES: Mapping[str, Level] = {
    "SYSTEM": Level.L0,
    "LSE": Level.L1,
    "LSR": Level.L1,
    "LS": Level.L1,
    "BE": Level.L2,
}


FOLLOWS_NOTHING: PerDirection[bool] = PerDirection(tx=False, rx=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredUplink:
    """An uplink named in the configuration, with its own total where one is given; `follows` as of `Settings`."""

    name: IfName
    bandwidth: PerDirection[int | None] = NO_LIMITS
    follows: PerDirection[bool] = FOLLOWS_NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMatch:
    """How the packets of a workload are known: exactly one of the three is given."""

    addresses: tuple[str, ...] = ()
    cgroup: CgroupPath | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSettings:
    """One entry of `workloads`."""

    name: str
    match: WorkloadMatch
    level: Level | None = None
    limits: PerDirection[int | None] = NO_LIMITS
    rules: PerDirection[tuple[Rule, ...]] = field(default=PerDirection(tx=(), rx=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """The fast loop: tick intervals outside and inside contention, thresholds (fraction of the total), hold."""

    interval_s: float = 0.05
    contended_interval_s: float = 0.02
    enter: float = 0.95
    enter_backlogged: float = 0.90
    leave: float = 0.85
    hold_s: float = 1.0


class Toggle(enum.Enum):
    """A setting that may find out for itself."""

    ON = "true"
    OFF = "false"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """Whether to follow an API server, and whether `kubernetes.io/*-bandwidth` is taken (contract 1.2 line 5).

    `double_limits`: also where a CNI's own limiter holds them. `kubelet` AUTO: asked for pods while the API server is
    away. `publish_status`: onto the Node, as an annotation.
    """

    enable: Toggle = Toggle.AUTO
    kubeconfig: str | None = None
    annotations: bool = True
    double_limits: bool = False
    kubelet: Toggle = Toggle.OFF
    publish_status: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSettings:
    """Where files, the socket, the state and the cgroup tree are."""

    net: PurePosixPath = PurePosixPath("/var/run/koordinator/net")
    socket: PurePosixPath = PurePosixPath("/run/netqos/netqosd.sock")
    state: PurePosixPath = PurePosixPath("/var/lib/netqos")
    cgroup: PurePosixPath = PurePosixPath("/sys/fs/cgroup")


def path_settings(*, net: str, socket: str, state: str, cgroup: str) -> PathSettings:
    """The paths of absolute texts."""
    return PathSettings(
        net=PurePosixPath(net),
        socket=PurePosixPath(socket),
        state=PurePosixPath(state),
        cgroup=PurePosixPath(cgroup),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """`level` is debug, info, warning or error; `format` is auto, text or json."""

    level: str = "info"
    format: str = "auto"


class Bound(enum.Enum):
    """Which of the two amounts of a level."""

    GUARANTEE = "guarantee"
    CEILING = "ceiling"


AmountKey = tuple[Level, Direction, Bound]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the files say something; `path` is that of its key, as `netqos.settings.issues.Path`."""

    path: tuple[str | int, ...]
    file: str
    line: int

    def __str__(self) -> str:
        """`netqos.yaml line 12`."""
        return f"{self.file} line {self.line}"


class OnExit(enum.Enum):
    """What SIGTERM does to the enforcement."""

    KEEP = "keep"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the configuration says, defaults filled in.

    `node_name` None: $NODE_NAME, else the host name. `uplinks` None: the devices of the default route. `backends` is
    the file's order of use, which a NodeSLO's netQOSPolicy overrides. `namespaces` None: the default of contract 1.7.
    `metrics_listen` is `host:port`, None where metrics are off. `follows`: the total is lowered to what the path behind
    the uplink is shown to carry (`node.bandwidth: auto`). `places` are those of the amounts that the file's
    policy gives, for what is found wrong with them later.
    """

    node_name: str | None = None
    uplinks: tuple[ConfiguredUplink, ...] | None = None
    bandwidth: PerDirection[int | None] = NO_LIMITS
    follows: PerDirection[bool] = FOLLOWS_NOTHING
    allow_small_total: bool = False
    policy: NodePolicy = NodePolicy(source="file")
    system_namespaces: tuple[str, ...] = ("kube-system",)
    system_pods: bool = True
    namespaces: tuple[NamespaceRule, ...] | None = None
    classes: Mapping[str, Level] = field(default_factory=lambda: dict(DEFAULT_CLASSES))
    workloads: tuple[WorkloadSettings, ...] = ()
    backends: tuple[str, ...] = ("tc",)
    backend_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    loop: LoopSettings = LoopSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    paths: PathSettings = PathSettings()
    metrics_listen: str | None = "127.0.0.1:9469"
    log: LogSettings = LogSettings()
    on_exit: OnExit = OnExit.KEEP
    places: Mapping[AmountKey, Place] = field(default_factory=dict)
