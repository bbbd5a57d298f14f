"""A valid configuration -> `Settings`: the values in force, defaults filled in, in the words of the model."""

from __future__ import annotations

from dataclasses import replace

from netqos.model.ids import CgroupPath, IfName
from netqos.model.inputs import LevelPolicy, NamespaceRule, NodePolicy
from netqos.model.levels import Level, PerDirection
from netqos.settings.issues import Issues
from netqos.settings.policy import node_policy, parse_spec
from netqos.settings.policykeys import LevelSection, NamespaceSection, PolicySection
from netqos.settings.rules import WholePodLimit, parse_rules
from netqos.settings.schema import BandwidthSection, Config, NodeSection
from netqos.settings.trees import Shape, Tree, ceiling
from netqos.settings.upstream import parse_backend
from netqos.settings.values import (
    DEFAULT_CLASSES,
    ConfiguredUplink,
    KubernetesSettings,
    LogSettings,
    LoopSettings,
    Settings,
    WorkloadMatch,
    WorkloadSettings,
    path_settings,
)
from netqos.settings.workloadkeys import WorkloadSection

SOURCE = "file"


def assemble(config: Config) -> Settings:
    """The settings; the parts with parsers of their own were found to be right before."""
    node, policy, loop, kubernetes = config.node, config.policy, config.loop, config.kubernetes
    normal = file_policy(policy)
    return Settings(
        node_name=node.name,
        uplinks=_uplinks(node),
        bandwidth=_total(node.bandwidth, normal),
        follows=_follows(node.bandwidth),
        allow_small_total=node.allow_small_total,
        policy=normal,
        system_namespaces=policy.system_namespaces,
        system_pods=policy.system_pods,
        namespaces=None if policy.namespaces is None else tuple(map(_namespace, policy.namespaces)),
        classes={**DEFAULT_CLASSES, **config.classes},
        workloads=tuple(map(_workload, config.workloads)),
        backends=normal.backends or config.backends,
        backend_options=config.backend_options,
        loop=LoopSettings(
            interval_s=loop.interval,
            contended_interval_s=loop.contended_interval,
            enter=loop.enter,
            enter_backlogged=loop.enter_backlogged,
            leave=loop.leave,
            hold_s=loop.hold,
        ),
        kubernetes=KubernetesSettings(
            enable=kubernetes.enable,
            kubeconfig=kubernetes.kubeconfig,
            annotations=kubernetes.annotations,
            double_limits=kubernetes.double_limits,
            kubelet=kubernetes.kubelet,
            publish_status=kubernetes.publish_status,
        ),
        paths=path_settings(
            net=config.paths.net,
            socket=config.paths.socket,
            state=config.paths.state,
            cgroup=config.paths.cgroup,
        ),
        metrics_listen=config.metrics.listen,
        log=LogSettings(level=config.log.level, format=config.log.format),
        on_exit=config.on_exit,
    )


def file_policy(policy: PolicySection) -> NodePolicy:
    """The file's policy in normal form, whichever shape it has.

    `enable` of the file wins over the switches of a foreign shape; `true` enables every level that does not say no.
    """
    spec = {
        "networkQOSStrategy": policy.network_qos_strategy,
        "resourceQOSStrategy": policy.resource_qos_strategy,
        "systemStrategy": policy.system_strategy,
    }
    foreign, backends = foreign_shape(spec, Issues())
    said = foreign.levels if policy.levels is None else level_policies(policy)
    shape = Shape(
        enabled=foreign.enabled if policy.enable is None else policy.enable,
        total=foreign.total,
        levels={level: _switched(said.get(level, LevelPolicy()), policy.enable) for level in Level},
        invalid=foreign.invalid,
    )
    return node_policy(shape, source=SOURCE, backends=backends)


def foreign_shape(spec: Tree, issues: Issues) -> tuple[Shape, tuple[str, ...] | None]:
    """A NodeSLO's shape under `policy`, and the backend that it selects."""
    return parse_spec(spec, ("policy",), issues, strict=True), parse_backend(spec, ("policy",), issues)


def level_policies(policy: PolicySection) -> dict[Level, LevelPolicy]:
    """The levels of the file's own shape."""
    if policy.levels is None:
        return {}
    sections = zip(Level, (policy.levels.l0, policy.levels.l1, policy.levels.l2), strict=True)
    return {level: _level_policy(section) for level, section in sections}


def _level_policy(section: LevelSection) -> LevelPolicy:
    return LevelPolicy(
        guarantee=PerDirection(tx=section.tx_min, rx=section.rx_min),
        ceiling=PerDirection(tx=ceiling(section.tx_max), rx=ceiling(section.rx_max)),
    )


def _switched(policy: LevelPolicy, enable: bool | None) -> LevelPolicy:  # noqa: FBT001 # the value of a key
    return replace(policy, enabled=True) if enable and policy.enabled is None else policy


def _uplinks(node: NodeSection) -> tuple[ConfiguredUplink, ...] | None:
    if node.uplinks is None:
        return None
    return tuple(
        ConfiguredUplink(
            name=IfName(one.name), bandwidth=_bandwidth(one.bandwidth), follows=_follows(one.bandwidth)
        )
        for one in node.uplinks
    )


def _bandwidth(section: BandwidthSection) -> PerDirection[int | None]:
    return PerDirection(tx=_bps(section.tx), rx=_bps(section.rx))


def _follows(section: BandwidthSection) -> PerDirection[bool]:
    return PerDirection(
        tx=section.tx is not None and section.tx[1], rx=section.rx is not None and section.rx[1]
    )


def _bps(total: tuple[int | None, bool] | None) -> int | None:
    return None if total is None else total[0]


def _total(section: BandwidthSection, policy: NodePolicy) -> PerDirection[int | None]:
    """The file's total: `node.bandwidth`, else that of a foreign shape."""
    own = _bandwidth(section)
    return PerDirection(
        tx=policy.total.tx if own.tx is None else own.tx, rx=policy.total.rx if own.rx is None else own.rx
    )


def _namespace(section: NamespaceSection) -> NamespaceRule:
    return NamespaceRule(
        match=section.match, levels=frozenset(section.levels), minimum=section.minimum, dscp=section.dscp
    )


def _workload(section: WorkloadSection) -> WorkloadSettings:
    match, rules = section.match, section.rules
    parsed = parse_rules({"egress": rules.egress, "ingress": rules.ingress})
    return WorkloadSettings(
        name=section.name,
        match=WorkloadMatch(
            addresses=match.addresses or (),
            cgroup=None if match.cgroup is None else CgroupPath(match.cgroup),
            unit=match.unit,
        ),
        level=section.level,
        limits=PerDirection(
            tx=_limit(section.limits.egress, parsed.limits.tx),
            rx=_limit(section.limits.ingress, parsed.limits.rx),
        ),
        rules=PerDirection(tx=parsed.rules.tx or (), rx=parsed.rules.rx or ()),
    )


def _limit(own: int | None, item: WholePodLimit | None) -> int | None:
    """The limit of one direction: the key, else the whole-pod item; 0 is no limit."""
    bps = own if own is not None or item is None else item.bps
    return bps or None
