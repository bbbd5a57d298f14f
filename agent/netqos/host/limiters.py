"""Limits that a CNI enforces by itself, told from its objects in the kernel (contract 1.2 line 5). Pure.

The bandwidth plugin of the CNI project, and whoever does as it does, puts a tbf (since its version 1.6 an HTB with a
class 1:30) on the host's end of the pod's veth pair for what goes to the pod, and sends what comes from it by a
redirect through an IFB with another. Cilium's bandwidth manager lets fq on the uplink keep departure times that a
program sets from its map `cilium_throttle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from netqos.host.neighbours import POD_KINDS, Device, Neighbourhood
from netqos.host.tcwire import Qdisc
from netqos.model.health import Finding, info
from netqos.model.inputs import Held, HeldLimits
from netqos.model.levels import PerDirection
from netqos.model.quantities import format_bandwidth

THROTTLE_MAP = "cilium_throttle"
_SHOWN = 3


def held_limits(seen: Neighbourhood, uplinks: Collection[int]) -> HeldLimits:
    """Which addresses are limited by a CNI, in which direction and by what; `uplinks` by index."""
    found: dict[str, PerDirection[Held]] = {}
    for device in _pods_devices(seen, uplinks):
        held = PerDirection(tx=_from_pod(device, seen), rx=_to_pod(device))
        if held.tx or held.rx:
            found |= dict.fromkeys(seen.behind.get(device.index, ()), held)
    manager = next(_managers(seen, frozenset(uplinks)), "")
    return HeldLimits(by_address=found, of_all=PerDirection(tx=manager, rx=""))


def findings(seen: Neighbourhood, held: HeldLimits, uplinks: Collection[int]) -> tuple[Finding, ...]:
    """One finding for each mechanism that was met."""
    return (*_of_plugin(seen, uplinks), *_of_manager(held))


def _pods_devices(seen: Neighbourhood, uplinks: Collection[int]) -> Iterator[Device]:
    """The host's ends of pods. In a node that is a container itself the uplink is of the same kind."""
    return (one for one in seen.devices.values() if one.kind in POD_KINDS and one.index not in uplinks)


def _to_pod(device: Device) -> Held:
    return _told(device.limiter, device.name) if device.limiter is not None else ""


def _from_pod(device: Device, seen: Neighbourhood) -> Held:
    """What comes from a pod arrives at its device's ingress hook."""
    for one in device.hooked:
        target = seen.devices.get(one.filter.target)
        limiter = target.limiter if target is not None and target.kind == "ifb" else None
        if one.hook == "ingress" and target is not None and limiter is not None:
            return f"{_told(limiter, target.name)}, fed by {device.name}"
    return ""


def _told(limiter: Qdisc, name: str) -> Held:
    return f"{limiter.kind} {format_bandwidth(limiter.rate_bps)} on {name}"


def _managers(seen: Neighbourhood, uplinks: frozenset[int]) -> Iterator[Held]:
    for index in sorted(uplinks & set(seen.devices)):
        device = seen.devices[index]
        if all(one.kind != "fq" for one in device.qdiscs):
            continue
        for one in device.hooked:
            program = seen.programs.get(one.filter.program_id)
            if one.hook == "egress" and program is not None and THROTTLE_MAP in program.maps:
                yield f"{program.name or 'a program'} with {THROTTLE_MAP} and fq on {device.name}"


def _of_plugin(seen: Neighbourhood, uplinks: Collection[int]) -> Iterator[Finding]:
    names = [
        device.name for device in _pods_devices(seen, uplinks) if _to_pod(device) or _from_pod(device, seen)
    ]
    if names:
        shown = ", ".join(names[:_SHOWN]) + (
            f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        )
        yield info(
            "limited-by-cni",
            "pods",
            f"a limiter of others holds {shown}: kubernetes.io limits of these pods are left to it",
            hint="take the bandwidth plugin out of the CNI's chain to let netqos do it, or set kubernetes.doubleLimits",
        )


def _of_manager(held: HeldLimits) -> Iterator[Finding]:
    if held.of_all.tx:
        yield info(
            "limited-by-cni",
            "egress",
            f"Cilium's bandwidth manager ({held.of_all.tx}) holds kubernetes.io/egress-bandwidth: it is left to it",
            hint="switch Cilium's bandwidthManager off to let netqos do it, or set kubernetes.doubleLimits",
        )
