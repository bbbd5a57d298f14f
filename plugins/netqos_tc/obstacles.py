"""What stands against what is asked for: of an uplink's root, its speed, this kernel's queues, a bridge. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from netqos.model.desired import DesiredUplink
from netqos.model.health import Finding, error, info, warning
from netqos.model.levels import Direction
from netqos.model.quantities import format_bandwidth
from netqos_tc import numbers
from netqos_tc.keys import ADDRESS_MAPS, ElementKey, Key, RootKey
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.root import is_lossy, why_foreign
from netqos_tc.spec import ElementSpec, RootSpec, Spec
from netqos_tc.tree import root_spec

ONE_LOCK_BPS: Final = 25_000_000_000
"""From here on one HTB, whose lock all CPUs share, may be what limits the link."""


def root_findings(uplink: DesiredUplink, observed: TcObserved, options: Options) -> list[Finding]:
    """What stands at the root of an uplink, where it is not ours or not as ours must be."""
    ours = observed.specs.get(RootKey(uplink.index))
    if isinstance(ours, RootSpec):
        return list(_wrong_root(uplink, ours, root_spec(uplink.index)))
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


def queue_findings(options: Options, *, has_fq_codel: bool) -> list[Finding]:
    """What is to be said where another queue is asked for than this kernel has."""
    if options.codel_ms is None or has_fq_codel:
        return []
    return [
        warning(
            "no-fq-codel",
            "backend tc",
            "queues are bfifo, though backendOptions.tc.queue asks for fq_codel: this kernel has none",
            hint="modprobe sch_fq_codel (CONFIG_NET_SCH_FQ_CODEL)",
        )
    ]


def _wrong_root(uplink: DesiredUplink, ours: RootSpec, wanted: RootSpec) -> Iterator[Finding]:
    if ours.default_minor != wanted.default_minor:
        yield error(
            "wrong-default-class",
            uplink.name,
            f"our qdisc has the default class {ours.default_minor:x} instead of {numbers.UNKNOWN:x}; "
            "the kernel cannot change it, so the tree is removed and made again",
        )
    if ours.is_sized:
        yield error(
            "size-table",
            uplink.name,
            "somebody gave our qdisc a size table (stab), so that a packet counts for more or less than it is; "
            "the tree is removed and made again",
        )


def speed_findings(uplink: DesiredUplink) -> list[Finding]:
    """What is to be said of an uplink that is faster than one lock may let it be."""
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


def source_findings(elements: Mapping[Key, Spec], observed: TcObserved) -> list[Finding]:
    """The bridges behind which a workload may send in another's name."""
    behind: dict[int, set[int]] = {}
    if not any(one.kind == "bridge" for one in observed.devices.values()):
        return []
    for key, spec in elements.items():
        if not isinstance(key, ElementKey) or not isinstance(spec, ElementSpec):
            continue
        if key.map.direction is Direction.TX and key.map in ADDRESS_MAPS.values():
            assert isinstance(key.value, str)
            device = observed.routes.device(key.value) or 0
            behind.setdefault(device, set()).add(spec.minor)
    return [
        info(
            "source-not-verified",
            known.name,
            "a workload behind this bridge that forges another's address sends in its name; the node cannot tell",
            hint="containers need CAP_NET_RAW for it; drop that where they are not trusted",
        )
        for device, minors in sorted(behind.items())
        if (known := observed.devices.get(device)) is not None and known.kind == "bridge" and len(minors) > 1
    ]
