"""Every key of the configuration file: its type, its default, and its documentation (contract 1.6).

The models check single values; what concerns several of them is in `netqos.settings.crosschecks`, since one file may
say one half and another file the other. A key with nothing behind it (null) is as good as absent.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from pydantic.functional_validators import BeforeValidator

from netqos.settings.fields import (
    ClassName,
    Directory,
    DnsName,
    EntryPoint,
    Exit,
    Flag,
    Hold,
    Interface,
    Interval,
    LevelName,
    ListenAddress,
    LogFormat,
    LogLevel,
    Share,
    SocketPath,
    ToggleWord,
    Total,
    entries,
)
from netqos.settings.names import AUTO
from netqos.settings.policykeys import PolicySection
from netqos.settings.section import Section
from netqos.settings.values import (
    KubernetesSettings,
    LogSettings,
    LoopSettings,
    PathSettings,
    Settings,
)
from netqos.settings.workloadkeys import WorkloadSection

_SETTINGS = Settings()
_LOOP = LoopSettings()
_KUBERNETES = KubernetesSettings()
_PATHS = PathSettings()
_LOG = LogSettings()


class BandwidthSection(Section):
    """A total for each direction: a quantity, `auto`, or `auto` with the quantity to start from."""

    tx: Total | None = Field(
        default=None, description="Away from the node (egress), in bits/s: `10G`, or `auto`."
    )
    rx: Total | None = Field(
        default=None, description="Towards the node (ingress), in bits/s: `10G`, or `auto`."
    )


def _both(value: Any) -> Any:
    """`auto` alone is for both directions; a quantity alone is refused, since they are seldom the same."""
    is_auto = isinstance(value, str) and value.lower().split()[:1] == [AUTO]
    return {"tx": value, "rx": value} if is_auto else value


Bandwidths = Annotated[BandwidthSection, BeforeValidator(_both)]


class UplinkSection(Section):
    """An uplink with a total of its own."""

    name: Interface = Field(description="The interface, as `ip link` names it.")
    bandwidth: Bandwidths = Field(
        default=BandwidthSection(), description="The total of this uplink alone, for each direction."
    )


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class NodeSection(Section):
    """The node and its uplinks."""

    name: DnsName | None = Field(
        default=None, description="The node's name. Default: the variable NODE_NAME, else the host name."
    )
    uplinks: Annotated[tuple[Annotated[UplinkSection, BeforeValidator(_named)], ...] | None, entries(64)] = (
        Field(
            default=None,
            description=(
                "The interfaces that carry the node's traffic, by name or as "
                "`{name: eth0, bandwidth: {tx: 10G, rx: 10G}}`. Default: the devices of the default route."
            ),
        )
    )
    bandwidth: Bandwidths = Field(
        default=BandwidthSection(),
        description=(
            "The node's total. The Node's annotation and the NodeSLO come before it, and where Kubernetes is on, the "
            "link's speed too. `auto`: it is lowered to what the path is shown to carry, whatever said it, and raised "
            "again; `auto 10G` starts from that where nothing else is known."
        ),
    )
    allow_small_total: Flag = Field(
        default=_SETTINGS.allow_small_total,
        description="Accept a total under 10M. It is usually a slip of the unit, and the node has to live under it.",
    )


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
    double_limits: Flag = Field(
        default=_KUBERNETES.double_limits,
        description="Enforce them also where the CNI's own limiter was found to hold them.",
    )
    kubelet: ToggleWord = Field(
        default=_KUBERNETES.kubelet,
        description=(
            "Ask the kubelet for this node's pods too: `true`, `false`, or `auto`: while the API server is away. It "
            "needs the right to get nodes/pods, or nodes/proxy before Kubernetes 1.33."
        ),
    )
    publish_status: Flag = Field(
        default=_KUBERNETES.publish_status,
        description="Write the annotation netqos.koordinator.sh/status to the Node. It needs the right to patch nodes.",
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
