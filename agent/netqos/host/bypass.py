"""What leads packets past our classification, or past the queues themselves, with its evidence. Pure.

Packets that pass no rule of ours keep priority 0: on the way out they run in the leaf `unknown` under L1, never as L0;
on the way to a pod they run as local ones, which nothing holds. What an XDP program or a NIC forwards by itself passes
no qdisc at all and is not shaped. A program is not read: that it may redirect is all that is said of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netqos.host.neighbours import POD_KINDS, Device, Hooked, Neighbourhood
from netqos.host.tcwire import Flowtable
from netqos.model.health import Finding, Severity, info, warning

_SHOWN = 3
_UNKNOWN = (
    "its packets run in the leaf `unknown` of L1 on the way out and are not held on the way in, whatever their pod's "
    "level and limit"
)
_REDIRECTORS = ("cil_", "cilium", "cali_", "calico_")
"""How the programs of CNIs that forward by themselves begin their names."""

_OURS = "netqos"
_CHECK = "compare the counters of `netqosctl explain POD` with the pod's traffic"


def findings(seen: Neighbourhood, uplinks: Iterable[int]) -> tuple[Finding, ...]:
    """Everything that may lead packets past us on the uplinks and on the devices of pods; `uplinks` by index."""
    own = frozenset(uplinks)
    devices = [one for one in seen.devices.values() if one.index in own or one.kind in POD_KINDS]
    return (
        *(_flowtable(one) for one in seen.flowtables if one.devices),
        *_redirects(devices, seen),
        *_programs(devices, seen),
        *_xdp(devices),
    )


def egress_program(seen: Neighbourhood, uplink: int) -> str:
    """The name of the first program that others run on what leaves by an uplink, empty where there is none."""
    device = seen.devices.get(uplink)
    hooked = device.hooked if device is not None else ()
    names = (_name(one, seen) for one in hooked if one.hook == "egress" and one.filter.program)
    return next((name for name in names if not name.startswith(_OURS)), "")


def _flowtable(one: Flowtable) -> Finding:
    way = "passes no qdisc and is not shaped" if one.is_offloaded else f"passes no rule of ours: {_UNKNOWN}"
    return warning(
        "flowtable-bypass",
        f"flowtable {one.name}",
        f"a connection that it has taken over ({_some(one.devices)}) {way}",
        hint="leave uplinks and pods' devices out of the flowtable, or take out the rule `flow add`",
    )


def _redirects(devices: Iterable[Device], seen: Neighbourhood) -> Iterator[Finding]:
    """Filters that send packets to another device; an IFB gives them back, so it is no way past us."""
    for device in devices:
        for one in device.hooked:
            target = seen.devices.get(one.filter.target)
            if not one.filter.target or (target is not None and target.kind == "ifb"):
                continue
            where = target.name if target is not None else f"device {one.filter.target}"
            yield warning(
                "redirect-bypass",
                device.name,
                f"a {one.filter.kind} filter on its {one.hook} redirects packets to {where}; what leaves by an uplink "
                f"so passes no rule of ours: {_UNKNOWN}",
                hint=f"`tc filter show dev {device.name} {one.hook}` shows it",
            )


def _programs(devices: Iterable[Device], seen: Neighbourhood) -> Iterator[Finding]:
    """One finding for each program, with the devices that it is on."""
    found: dict[tuple[str, str], list[str]] = {}
    for device in devices:
        for one in device.hooked:
            if one.filter.program and not _name(one, seen).startswith(_OURS):
                identity = f" ({one.filter.program_id})" if one.filter.program_id else ""
                subject = _name(one, seen) + identity
                found.setdefault((subject, f"{one.by} {one.hook}"), []).append(device.name)
    for (name, place), names in found.items():
        severe = Severity.WARNING if name.startswith(_REDIRECTORS) else Severity.INFO
        yield Finding(
            code="program-may-bypass",
            severity=severe,
            subject=name,
            message=f"an eBPF program on {place} of {_some(names)} may redirect packets past nft; of what it does "
            f"redirect to an uplink, {_UNKNOWN}",
            hint=_CHECK,
        )


def _xdp(devices: Iterable[Device]) -> Iterator[Finding]:
    names = [one.name for one in devices if one.xdp]
    if names:
        yield info(
            "xdp-may-bypass",
            _some(names),
            "an XDP program may redirect frames; those that leave by an uplink so pass no qdisc and are not shaped",
            hint=_CHECK,
        )


def _name(one: Hooked, seen: Neighbourhood) -> str:
    program = seen.programs.get(one.filter.program_id)
    return program.name if program is not None and program.name else one.filter.program


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
