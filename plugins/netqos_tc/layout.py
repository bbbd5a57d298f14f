"""From the desired state to the objects that should be in the kernel. Pure.

It looks at what is there for three things only: which numbers workloads have already, what stands at the root of an
uplink, and where the fast loop left L0's ceiling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from netqos.engine.units import bands_at
from netqos.model.desired import DesiredPod, DesiredState, DesiredUplink
from netqos.model.health import Finding, error, info, warning
from netqos.model.levels import Direction, Level
from netqos.model.quantities import format_bandwidth
from netqos_tc import classify, numbers, owners, strangers
from netqos_tc.classify import owner_of
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.root import is_lossy, why_foreign
from netqos_tc.spec import ClassKey, ElementSpec, Key, RootKey, RootSpec, Spec, TableKey
from netqos_tc.tree import ROOT_SPEC, Ground, Member, tree

ONE_LOCK_BPS: Final = 25_000_000_000
"""From here on one HTB, whose lock all CPUs share, may be what limits the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facilities:
    """What this kernel has beside the parts without which the backend is unavailable."""

    u32: bool = True
    cgroups: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The objects that should be there, and what cannot be.

    `workloads`: their names by the minors of their leaves. `is_whole` False: too little is known for taking anything
    away.
    """

    specs: Mapping[Key, Spec]
    findings: tuple[Finding, ...]
    workloads: Mapping[int, str] = field(default_factory=dict)
    is_whole: bool = True


def lay_out(desired: DesiredState, observed: TcObserved, options: Options, facilities: Facilities) -> Layout:
    """The objects for a desired state, empty when nothing is to be shaped (contract 2: no qdisc of ours then).

    While there is something to shape but no uplink is known (the default route is away), what is there stays.
    """
    findings = [*_not_enforced(desired), *strangers.findings(observed)]
    uplinks = []
    for uplink in desired.uplinks:
        if not _is_needed(desired, uplink):
            continue
        problems = _root_findings(uplink, observed, options)
        findings += problems
        if not any(one.code == "foreign-root-qdisc" for one in problems):
            uplinks.append(uplink)
    if not uplinks:
        is_blind = not desired.uplinks and (desired.directions.tx.levels is not None or _has_limits(desired))
        return Layout(specs={}, findings=tuple(findings), is_whole=desired.complete and not is_blind)
    claims = owners.collect(desired, cgroups=facilities.cgroups)
    placed = _place(desired, claims, observed)
    members = {
        minor: Member(level=pod.level, limit_bps=pod.limits_bps.tx) for minor, pod in placed.pods.items()
    }
    specs: dict[Key, Spec] = {TableKey(): classify.table_spec(cgroups=facilities.cgroups), **placed.elements}
    for uplink in uplinks:
        findings += _speed_findings(uplink)
        l0 = observed.classes.get(ClassKey(uplink.index, numbers.LEVELS[Level.L0]))
        specs |= tree(_ground(desired, uplink, options, facilities), members, l0)
    return Layout(
        specs=specs,
        findings=(*findings, *claims.findings),
        workloads={minor: pod.name for minor, pod in placed.pods.items()},
        is_whole=desired.complete,
    )


def _is_needed(desired: DesiredState, uplink: DesiredUplink) -> bool:
    """Whether anything is to be shaped on an uplink: by level, which takes a total, or by a workload's limit."""
    is_leveled = desired.directions.tx.levels is not None and uplink.total_bps.tx is not None
    return uplink.index > 0 and (is_leveled or _has_limits(desired))


def _has_limits(desired: DesiredState) -> bool:
    return any(pod.limits_bps.tx is not None for pod in desired.pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """The workloads by their leaves' minors, and the elements that lead to leaves."""

    pods: Mapping[int, DesiredPod]
    elements: Mapping[Key, Spec]


def _place(desired: DesiredState, claims: owners.Claims, observed: TcObserved) -> _Placed:
    """A leaf for every workload whose packets can be known; one without any element needs none yet."""
    by_owner = {owner_of(pod.uid): pod for pod in desired.pods}
    claimed = set(claims.owners.values())
    wanted = {owner: numbers.LEVELS[pod.level] for owner, pod in by_owner.items() if owner in claimed}
    minors = owners.assign(wanted, observed, keep=not desired.complete)
    elements: dict[Key, Spec] = {
        key: ElementSpec(minor=minors.get(owner, numbers.CRITICAL), owner=owner)
        for key, owner in claims.owners.items()
    }
    return _Placed(pods={minor: by_owner[owner] for owner, minor in minors.items()}, elements=elements)


def _ground(desired: DesiredState, uplink: DesiredUplink, options: Options, facilities: Facilities) -> Ground:
    total_bps = uplink.total_bps.tx
    return Ground(
        ifindex=uplink.index,
        mtu=uplink.mtu,
        total_bps=total_bps,
        bands=bands_at(desired.directions.tx, total_bps),
        queue_ms=options.queue_ms,
        filters=facilities.u32,
    )


def _root_findings(uplink: DesiredUplink, observed: TcObserved, options: Options) -> list[Finding]:
    """What stands at the root of an uplink, where it is not ours or not as ours must be."""
    ours = observed.specs.get(RootKey(uplink.index))
    if isinstance(ours, RootSpec):
        return [_wrong_default(uplink, ours)] if ours != ROOT_SPEC else []
    root = observed.roots.get(uplink.index)
    if root is None:
        return []
    hooked = replace(root, has_filters=root.has_filters or bool(uplink.egress_program))
    reason = why_foreign(hooked, options.takeover)
    if reason is not None:
        return [
            error(
                "foreign-root-qdisc",
                uplink.name,
                f"not enforced: the root qdisc is {root.text}, and {reason}; it is left alone",
                hint=f"remove it, or allow to take it over: backendOptions.tc.takeover: [{root.kind}]",
            )
        ]
    if is_lossy(root):
        return [
            warning(
                "taken-over-root",
                uplink.name,
                f"the root qdisc {root.text} is taken over as configured; its classes and filters cannot be put back",
            )
        ]
    return []


def _wrong_default(uplink: DesiredUplink, ours: RootSpec) -> Finding:
    return error(
        "wrong-default-class",
        uplink.name,
        f"our qdisc has the default class {ours.default_minor:x} instead of {numbers.UNKNOWN:x}; "
        "the kernel cannot change it, so the tree is removed and made again",
    )


def _speed_findings(uplink: DesiredUplink) -> list[Finding]:
    total_bps = uplink.total_bps.tx
    if total_bps is None or total_bps < ONE_LOCK_BPS:
        return []
    return [
        info(
            "one-lock",
            uplink.name,
            f"HTB serves all CPUs under one lock, which may hold up {format_bandwidth(total_bps)}",
            hint="compare the throughput with network QoS off",
        )
    ]


def _not_enforced(desired: DesiredState) -> list[Finding]:
    """What this backend leaves undone."""
    found = []
    limited = sum(pod.limits_bps.rx is not None for pod in desired.pods)
    text = "not enforced: ingress is not shaped in this version"
    if limited:
        who = "1 workload has a limit" if limited == 1 else f"{limited} workloads have limits"
        found.append(warning("not-enforced-ingress", "rx", f"{text}, and {who} for it"))
    elif desired.directions[Direction.RX].levels is not None:
        found.append(info("not-enforced-ingress", "rx", text))
    found += [
        warning(
            "not-enforced-rules",
            f"pod {pod.name}",
            "not enforced: rules inside a workload; its level and its egress limit are",
        )
        for pod in desired.pods
        if pod.rules.tx or pod.rules.rx
    ]
    return found
