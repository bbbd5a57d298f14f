"""Every key of the configuration file: its type, its default, and its documentation (contract 1.6).

The models check single values; what concerns several of them is in `netqos.settings.crosschecks`, since one file may
say one half and another file the other. A key with nothing behind it (null) is as good as absent.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.functional_validators import BeforeValidator

from netqos.model.levels import Level
from netqos.settings.fields import (
    Bandwidth,
    CgroupName,
    ClassName,
    Directory,
    DnsName,
    DscpRange,
    EntryPoint,
    Exit,
    Flag,
    Glob,
    Hold,
    HostAddress,
    Interface,
    Interval,
    LevelName,
    Limit,
    ListenAddress,
    LogFormat,
    LogLevel,
    PolicyAmount,
    Share,
    SocketPath,
    ToggleWord,
    UnitName,
)
from netqos.settings.values import (
    KubernetesSettings,
    LogSettings,
    LoopSettings,
    PathSettings,
    Settings,
)

_SETTINGS = Settings()
_LOOP = LoopSettings()
_KUBERNETES = KubernetesSettings()
_PATHS = PathSettings()
_LOG = LogSettings()


class Section(BaseModel):
    """A map of the file: unknown keys are errors, null is as good as absent except for `keeps_null`."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)
    keeps_null: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        droppable = {field.alias for field in cls.model_fields.values()} - cls.keeps_null
        return {key: one for key, one in value.items() if one is not None or key not in droppable}


class BandwidthSection(Section):
    """A total for each direction."""

    tx: Bandwidth | None = Field(default=None, description="Away from the node (egress), in bits/s: `10G`.")
    rx: Bandwidth | None = Field(default=None, description="Towards the node (ingress), in bits/s: `10G`.")


class UplinkSection(Section):
    """An uplink with a total of its own."""

    name: Interface = Field(description="The interface, as `ip link` names it.")
    bandwidth: BandwidthSection = Field(
        default=BandwidthSection(), description="The total of this uplink alone, for each direction."
    )


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class NodeSection(Section):
    """The node and its uplinks."""

    name: DnsName | None = Field(
        default=None, description="The node's name. Default: the variable NODE_NAME, else the host name."
    )
    uplinks: tuple[Annotated[UplinkSection, BeforeValidator(_named)], ...] | None = Field(
        default=None,
        min_length=1,
        description=(
            "The interfaces that carry the node's traffic, by name or as "
            "`{name: eth0, bandwidth: {tx: 10G, rx: 10G}}`. Default: the devices of the default route."
        ),
    )
    bandwidth: BandwidthSection = Field(
        default=BandwidthSection(),
        description=(
            "The node's total. The Node's annotation and the NodeSLO come before it, and where Kubernetes is on, the "
            "link's speed too."
        ),
    )
    allow_small_total: Flag = Field(
        default=_SETTINGS.allow_small_total,
        description="Accept a total under 10M. It is usually a slip of the unit, and the node has to live under it.",
    )


class LevelSection(Section):
    """Guarantee and ceiling of one level, as quantities in bits/s or as percentages of the total, all in one unit."""

    tx_min: PolicyAmount | None = Field(default=None, description="Guaranteed egress.")
    tx_max: PolicyAmount | None = Field(default=None, description="Egress ceiling; 0 is no ceiling.")
    rx_min: PolicyAmount | None = Field(default=None, description="Guaranteed ingress.")
    rx_max: PolicyAmount | None = Field(default=None, description="Ingress ceiling; 0 is no ceiling.")


class LevelsSection(Section):
    """The three levels; what is not said is 40:30:30 percent guaranteed, with ceilings of 100 percent."""

    l0: LevelSection = Field(
        default=LevelSection(), description="The highest level; its guarantee is what L1 and L2 leave."
    )
    l1: LevelSection = Field(
        default=LevelSection(), description="The middle level, where everything unknown goes."
    )
    l2: LevelSection = Field(default=LevelSection(), description="The lowest level.")


class NamespaceSection(Section):
    """What some namespaces may use."""

    match: tuple[Glob, ...] = Field(
        min_length=1, description="Namespaces (names, for workloads) by pattern: `prod-*`."
    )
    levels: tuple[LevelName, ...] = Field(
        default=tuple(Level), description="The levels that they may choose."
    )
    minimum: Flag = Field(default=False, description="Whether their rules may ask for `bandwidth_min`.")
    dscp: tuple[DscpRange, ...] = Field(
        default=((0, 39),), description="The DSCP that their rules may set: numbers, names and ranges."
    )


class PolicySection(Section):
    """Who is promised what. The NodeSLO beats it value by value."""

    enable: Flag | None = Field(
        default=None, description="Network QoS by level. Pod limits hold without it. Default: false."
    )
    levels: LevelsSection | None = Field(default=None, description="The levels' guarantees and ceilings.")
    network_qos_strategy: Any = Field(
        default=None,
        alias="networkQOSStrategy",
        description="In the place of `levels`: the shape of the early proposal, as a NodeSLO has it.",
    )
    resource_qos_strategy: Any = Field(
        default=None,
        alias="resourceQOSStrategy",
        description="In the place of `levels`: Koordinator's shape, as a NodeSLO has it.",
    )
    system_strategy: Any = Field(
        default=None, description="With resourceQOSStrategy: `totalNetworkBandwidth`, as a NodeSLO has it."
    )
    system_namespaces: tuple[DnsName, ...] = Field(
        default=_SETTINGS.system_namespaces,
        description="Where critical and static pods are L0 and more is allowed.",
    )
    system_pods: Flag = Field(
        default=_SETTINGS.system_pods,
        description="Whether critical and static pods of these namespaces are L0.",
    )
    namespaces: tuple[NamespaceSection, ...] | None = Field(
        default=None,
        description=(
            "What a namespace may use; the first match wins. Default: every level everywhere; minima and "
            "DSCP of 40 and more in systemNamespaces only."
        ),
    )


class MatchSection(Section):
    """How the packets of a workload are known: one of the three."""

    addresses: tuple[HostAddress, ...] | None = Field(
        default=None, min_length=1, max_length=64, description="Its own addresses, v4 and v6."
    )
    cgroup: CgroupName | None = Field(default=None, description="Its cgroup: `/system.slice/nginx.service`.")
    unit: UnitName | None = Field(default=None, description="Its systemd unit: `nginx.service`.")


class LimitsSection(Section):
    """Limits of one workload."""

    egress: Limit | None = Field(
        default=None, description="What it may send, in bits/s: `10M`; 0 is no limit."
    )
    ingress: Limit | None = Field(default=None, description="What it may receive, in bits/s; 0 is no limit.")


class RulesSection(Section):
    """Rules inside one workload; the items are those of the annotation koordinator.sh/qos-config."""

    egress: Any = Field(
        default=None, description="Items of `matchs` and `actions` for what it sends; the first match wins."
    )
    ingress: Any = Field(default=None, description="The same for what it receives.")


class WorkloadSection(Section):
    """Something on this node that is treated as a pod."""

    name: DnsName = Field(max_length=63, description="Its name, unique among all files.")
    match: MatchSection = Field(description="How its packets are known.")
    level: LevelName | None = Field(default=None, description="Its level. Default: l1.")
    limits: LimitsSection = Field(default=LimitsSection(), description="What it may use at most.")
    rules: RulesSection = Field(default=RulesSection(), description="Rules for a part of its traffic.")


class LoopSection(Section):
    """The fast loop, which moves L0's ceiling with the traffic."""

    interval: Interval = Field(
        default=_LOOP.interval_s, description="Time between two looks at the traffic, 5ms to 10s."
    )
    contended_interval: Interval = Field(
        default=_LOOP.contended_interval_s,
        description="The same while the levels compete; not over `interval`.",
    )
    enter: Share = Field(default=_LOOP.enter, description="Contention begins at this share of the total,")
    enter_backlogged: Share = Field(
        default=_LOOP.enter_backlogged,
        description="or at this one while packets wait; above `leave`, not over `enter`.",
    )
    leave: Share = Field(default=_LOOP.leave, description="Contention ends under this share,")
    hold: Hold = Field(default=_LOOP.hold_s, description="held for this time, up to 1m.")


class KubernetesSection(Section):
    """The API server as a source."""

    enable: ToggleWord = Field(
        default=_KUBERNETES.enable, description="Follow it: `true`, `false`, or `auto`: inside a cluster."
    )
    kubeconfig: Directory | None = Field(
        default=_KUBERNETES.kubeconfig, description="A kubeconfig file. Default: the pod's service account."
    )
    annotations: Flag = Field(
        default=_KUBERNETES.annotations,
        description="Take limits from kubernetes.io/egress-bandwidth and ingress-bandwidth.",
    )


class PathsSection(Section):
    """Where things are."""

    net: Directory = Field(default=str(_PATHS.net), description="The folder of the files `node` and `pods`.")
    socket: SocketPath = Field(
        default=str(_PATHS.socket), description="The status socket, at most 107 bytes."
    )
    state: Directory = Field(default=str(_PATHS.state), description="The folder of what survives a restart.")
    cgroup: Directory = Field(default=str(_PATHS.cgroup), description="Where the cgroup tree is mounted.")


class MetricsSection(Section):
    """Prometheus metrics over HTTP."""

    keeps_null = frozenset({"listen"})

    listen: ListenAddress = Field(
        default=_SETTINGS.metrics_listen,
        description="Address and port of /metrics, /healthz and /readyz; null is off.",
    )


class LogSection(Section):
    """The log, on standard error."""

    level: LogLevel = Field(default=_LOG.level, description="`debug`, `info`, `warning` or `error`.")
    format: LogFormat = Field(
        default=_LOG.format, description="`text`, `json`, or `auto`: text on a terminal, else JSON lines."
    )


def _no_options(value: Any) -> Any:
    return {} if value is None else value


class Config(Section):
    """The whole file."""

    node: NodeSection = Field(default=NodeSection(), description="The node and its uplinks.")
    policy: PolicySection = Field(
        default=PolicySection(), description="Who is promised what; the NodeSLO beats it."
    )
    classes: dict[ClassName, LevelName] = Field(
        default={},
        description="Changes the table from the label koordinator.sh/qosClass to levels: `{LS: l0}`.",
    )
    workloads: tuple[WorkloadSection, ...] = Field(
        default=(),
        description="What is treated as a pod, without Kubernetes or beside it. The lists of all files join.",
    )
    backends: tuple[EntryPoint, ...] = Field(
        default=_SETTINGS.backends,
        description="The backends in their order of use; a NodeSLO's netQOSPolicy overrides them.",
    )
    backend_options: dict[EntryPoint, Annotated[dict[str, Any], BeforeValidator(_no_options)]] = Field(
        default={}, description="Options of each backend by its name; each backend documents its own."
    )
    loop: LoopSection = Field(default=LoopSection(), description="The fast loop.")
    kubernetes: KubernetesSection = Field(
        default=KubernetesSection(), description="The API server as a source."
    )
    paths: PathsSection = Field(default=PathsSection(), description="Where things are.")
    metrics: MetricsSection = Field(default=MetricsSection(), description="Prometheus metrics over HTTP.")
    log: LogSection = Field(default=LogSection(), description="The log.")
    on_exit: Exit = Field(
        default=_SETTINGS.on_exit,
        description="What SIGTERM leaves: `keep` the shaping, or `restore` the node as it was.",
    )
