"""Builders of inputs for compose: whole, valid values from a few words. The totals are tx 1000M, rx 600M."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from netqos.engine.compose import compose
from netqos.model.composed import EMPTY_LAST_GOOD, Composition, LastGood, PodView
from netqos.model.desired import DesiredPod
from netqos.model.ids import IfName, PodUid
from netqos.model.inputs import (
    Amount,
    KubernetesQos,
    LevelPolicy,
    NodeFacts,
    NodePolicy,
    Override,
    PodFacts,
    UplinkFacts,
)
from netqos.model.levels import Level, PerDirection, PerLevel
from netqos.settings.values import Settings

M = 1_000_000
G = 1_000 * M

SILENT, ON = LevelPolicy(), LevelPolicy(enabled=True)
FILE_ON = NodePolicy(source="file", enabled=True, levels=PerLevel(ON, ON, ON))
FILE_OFF = NodePolicy(source="file")
UPLINK = UplinkFacts(name=IfName("up0"), index=2, mtu=1500, speed_bps=10 * G)
NODE = NodeFacts(name="worker-1", uplinks=(UPLINK,))
TOTAL: PerDirection[int | None] = PerDirection(tx=1000 * M, rx=600 * M)
SETTINGS = Settings(policy=FILE_ON, bandwidth=TOTAL)


def level(
    *,
    guarantee: Amount | tuple[Amount | None, Amount | None] | None = None,
    ceiling: Amount | tuple[Amount | None, Amount | None] | None = None,
    enabled: bool | None = True,
) -> LevelPolicy:
    """A level's policy; a pair is (tx, rx)."""
    return LevelPolicy(enabled=enabled, guarantee=_both(guarantee), ceiling=_both(ceiling))


def _both(amount: Amount | tuple[Amount | None, Amount | None] | None) -> PerDirection[Amount | None]:
    tx, rx = amount if isinstance(amount, tuple) else (amount, amount)
    return PerDirection(tx=tx, rx=rx)


def policy(
    l0: LevelPolicy = ON,
    l1: LevelPolicy = ON,
    l2: LevelPolicy = ON,
    *,
    source: str = "file",
    enabled: bool | None = True,
    **more: Any,
) -> NodePolicy:
    return NodePolicy(source=source, enabled=enabled, levels=PerLevel(l0, l1, l2), **more)


def slo(
    l0: LevelPolicy = SILENT,
    l1: LevelPolicy = SILENT,
    l2: LevelPolicy = SILENT,
    *,
    enabled: bool | None = None,
    **more: Any,
) -> NodePolicy:
    return policy(l0, l1, l2, source="nodeslo", enabled=enabled, **more)


def pod(
    name: str = "prod/web",
    annotations: Mapping[str, object] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    qos: KubernetesQos | None = KubernetesQos.BURSTABLE,
    **more: Any,
) -> PodFacts:
    """A pod by `namespace/name`, its uid made of that. Annotations that are no text are written as JSON."""
    namespace, _, short = name.rpartition("/")
    more.setdefault("uid", PodUid(f"uid-of-{name}"))
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in (annotations or {}).items()
    }
    return PodFacts(
        namespace=namespace,
        name=short,
        annotations=texts,
        labels=labels or {},
        kubernetes_qos=qos,
        **more,
    )


def workload(name: str = "web", **more: Any) -> PodFacts:
    return PodFacts(uid=PodUid(f"workload:{name}"), namespace="", name=name, **more)


def override(
    facts: PodFacts, *, tx: int | None = None, rx: int | None = None, level: Level | None = None
) -> Override:
    return Override(
        uid=facts.uid,
        limits=PerDirection(tx=tx, rx=rx),
        level=level,
        expires_wall_s=2e9,
        expires_boot_s=1e6,
        boot_id="boot",
        reason="a test",
    )


def composed(
    pods: Sequence[PodFacts] = (),
    *,
    settings: Settings = SETTINGS,
    slo: NodePolicy | None = None,
    overrides: Sequence[Override] = (),
    node: NodeFacts = NODE,
    last_good: LastGood = EMPTY_LAST_GOOD,
    complete: bool = True,
) -> Composition:
    return compose(
        settings=settings,
        slo=slo,
        pods=pods,
        overrides={one.uid: one for one in overrides},
        node=node,
        last_good=last_good,
        complete=complete,
    )


def only(composition: Composition) -> tuple[DesiredPod, PodView]:
    """The only pod."""
    [desired], [view] = composition.desired.pods, composition.pods
    return desired, view


def codes(findings: Sequence[Any]) -> list[str]:
    return [finding.code for finding in findings]
