"""Builders of desired states for tests: whole, valid values from a few words.

The defaults are asymmetric (tx 1000M, rx 600M, levels 500/300/200 and 300/180/120), so that a test that swaps the
directions or the levels fails. Bandwidths are bits per second.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from netqos.model.desired import Band, DesiredDirection, DesiredPod, DesiredState, DesiredUplink
from netqos.model.ids import WORKLOAD_PREFIX, CgroupPath, IfName, PodUid, workload_uid
from netqos.model.levels import Level, PerDirection, PerLevel
from netqos.model.rules import Rule

M = 1_000_000
G = 1_000 * M

NO_RULES: PerDirection[tuple[Rule, ...]] = PerDirection(tx=(), rx=())
_UIDS = uuid.UUID("6e657471-6f73-4000-8000-000000000000")


def bands(
    guarantees_bps: tuple[int, int, int], ceilings_bps: tuple[int, int, int], *, off: Sequence[Level] = ()
) -> PerLevel[Band]:
    """The bands of L0, L1, L2. Levels in `off` are not switched on: give them guarantee 0, the total as ceiling."""
    l0, l1, l2 = (
        Band(guarantee_bps=guarantee, ceiling_bps=ceiling, enabled=level not in off)
        for level, guarantee, ceiling in zip(Level, guarantees_bps, ceilings_bps, strict=True)
    )
    return PerLevel(l0, l1, l2)


def direction(
    total_bps: int | None,
    guarantees_bps: tuple[int, int, int] | None = None,
    ceilings_bps: tuple[int, int, int] | None = None,
) -> DesiredDirection:
    """One direction; guarantees default to 50/30/20 percent and ceilings to the total. Total None: not shaped."""
    if total_bps is None:
        return DesiredDirection(total_bps=None, levels=None)
    l1, l2 = total_bps * 30 // 100, total_bps * 20 // 100
    shares = guarantees_bps or (total_bps - l1 - l2, l1, l2)
    return DesiredDirection(
        total_bps=total_bps, levels=bands(shares, ceilings_bps or (total_bps, total_bps, total_bps))
    )


TX = direction(1000 * M, ceilings_bps=(1000 * M, 800 * M, 1000 * M))
RX = direction(600 * M, ceilings_bps=(600 * M, 600 * M, 480 * M))


def uplink(
    name: str = "up0",
    *,
    index: int = 2,
    mtu: int = 1500,
    tx_bps: int | None = 1000 * M,
    rx_bps: int | None = 600 * M,
    pool_bps: int | None = None,
) -> DesiredUplink:
    """A device to shape, with its own totals; with a pool, one that shares its egress total."""
    return DesiredUplink(
        name=IfName(name),
        index=index,
        mtu=mtu,
        total_bps=PerDirection(tx=tx_bps, rx=rx_bps),
        pool_bps=PerDirection(tx=pool_bps, rx=None),
    )


def pod_uid(name: str) -> PodUid:
    """A UID that belongs to the name alone: `workload:NAME` for a bare name, else one in Kubernetes' form."""
    return PodUid(str(uuid.uuid5(_UIDS, name))) if "/" in name else workload_uid(name)


def pod(  # noqa: PLR0913 - a builder takes one keyword a field
    name: str,
    level: Level = Level.L1,
    *,
    addresses: Sequence[str] = (),
    tx_bps: int | None = None,
    rx_bps: int | None = None,
    rules: PerDirection[tuple[Rule, ...]] = NO_RULES,
    cgroup: str | None = "",
    host_network: bool = False,
) -> DesiredPod:
    """A pod (`namespace/name`) or workload (bare name). Its cgroup defaults to one made of its UID; None is none."""
    uid = pod_uid(name)
    path = pod_cgroup(uid) if cgroup == "" else cgroup
    return DesiredPod(
        uid=uid,
        name=name,
        level=level,
        limits_bps=PerDirection(tx=tx_bps, rx=rx_bps),
        rules=rules,
        addresses=tuple(addresses),
        cgroup=CgroupPath(path) if path else None,
        host_network=host_network,
    )


def pod_cgroup(uid: PodUid) -> CgroupPath:
    """Where the systemd driver puts a burstable pod; a workload is a unit."""
    if uid.startswith(WORKLOAD_PREFIX):
        return CgroupPath(f"/system.slice/{uid.removeprefix(WORKLOAD_PREFIX)}.service")
    parent = "/kubepods.slice/kubepods-burstable.slice"
    return CgroupPath(f"{parent}/kubepods-burstable-pod{uid.replace('-', '_')}.slice")


PODS = (
    pod("prod/web", Level.L0, addresses=("10.88.0.10", "fd00:88::10"), tx_bps=80 * M),
    pod("prod/db", Level.L1, addresses=("10.88.0.11", "fd00:88::11")),
    pod("batch/crunch", Level.L2, addresses=("10.88.0.12",), tx_bps=50 * M, rx_bps=20 * M),
)


def node(
    pods: Sequence[DesiredPod] = PODS,
    *,
    uplinks: Sequence[DesiredUplink] = (uplink(),),
    tx: DesiredDirection = TX,
    rx: DesiredDirection = RX,
    complete: bool = True,
) -> DesiredState:
    """A node with network QoS on. Pods are put in the order of their UIDs, as compose does."""
    return DesiredState(
        enabled=True,
        complete=complete,
        uplinks=tuple(uplinks),
        directions=PerDirection(tx=tx, rx=rx),
        pods=_by_uid(pods),
    )


def switched_off(state: DesiredState) -> DesiredState:
    """The same node with network QoS off: pods keep their limits, levels are not shaped."""
    directions = state.directions.map(lambda one: replace(one, levels=None))
    return replace(state, enabled=False, directions=directions)


def incomplete(state: DesiredState) -> DesiredState:
    """The same state while a source has not delivered yet: a plan may only add."""
    return replace(state, complete=False)


def without(state: DesiredState, *names: str) -> DesiredState:
    """The same state without the pods of these names."""
    return replace(state, pods=tuple(pod for pod in state.pods if pod.name not in names))


def with_pods(state: DesiredState, *pods: DesiredPod) -> DesiredState:
    """The same state with these pods added, or put in the place of those with the same UID."""
    both = {one.uid: one for one in (*state.pods, *pods)}
    return replace(state, pods=_by_uid(tuple(both.values())))


def _by_uid(pods: Sequence[DesiredPod]) -> tuple[DesiredPod, ...]:
    return tuple(sorted(pods, key=lambda one: one.uid))
