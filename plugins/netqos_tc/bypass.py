"""Workloads whose packets never pass the node's stack: macvlan, ipvlan, a NIC of their own, a bridge with an uplink.

No rule can tell such packets to a class. The host sees neither the device nor its namespace, but its routes tell: what
it reaches by an uplink itself, or by a device of the same kind beside the workload's, is not behind a device of the
node. Nor do frames pass the IP hooks that a bridge hands to an uplink among its ports, unless br_netfilter makes them.
Such packets meet the uplink's tree, if they do at all, in the unknown leaf. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.health import Finding, warning
from netqos_tc.observed import TcObserved
from netqos_tc.places import Routes

CODE: Final = "not-enforced-bypass"
"""It denies all that is asked for a workload, in both directions."""

SOME: Final = "address-bypasses"
"""It denies nothing of the workload but for the addresses it names."""

_SIBLINGS: Final = frozenset({"macvlan", "macvtap", "ipvlan", "ipvtap"})
"""A device of the host of this kind reaches others of its kind on the same parent, and nobody behind the host."""


def findings(desired: DesiredState, observed: TcObserved) -> tuple[Finding, ...]:
    """A finding for each workload of which any address is past the node's stack."""
    uplinks = frozenset(uplink.index for uplink in desired.uplinks)
    pods = (pod for pod in desired.pods if not pod.host_network)
    found = (_finding(pod, list(_past(pod, uplinks, observed))) for pod in pods)
    return tuple(one for one in found if one is not None)


def unsaid(others: Iterable[Finding], found: Iterable[Finding]) -> Iterator[Finding]:
    """Other findings without those about workloads of which everything is denied already."""
    denied = {one.subject for one in found if one.code == CODE}
    return (one for one in others if one.subject not in denied)


def _past(pod: DesiredPod, uplinks: frozenset[int], observed: TcObserved) -> Iterator[str]:
    """Why addresses of a workload are past the node's stack; nothing of those that are not."""
    for address in pod.addresses:
        device = _device(observed.routes, address)
        reason = "" if device is None else _why_past(address, device, uplinks, observed)
        if reason:
            yield reason


def _device(routes: Routes, address: str) -> int | None:
    try:
        return routes.device(address)
    except ValueError:  # no address: `owners` tells it
        return None


def _why_past(address: str, device: int, uplinks: frozenset[int], observed: TcObserved) -> str:
    known, name = observed.devices.get(device), observed.device_name(device)
    if device in uplinks or (known is not None and known.kind in _SIBLINGS):
        return f"this node reaches {address} by {name}"
    version = 6 if ":" in address else 4
    if known is None or known.kind != "bridge" or version in known.filtered:
        return ""
    ports = [one for one in uplinks if one in observed.devices and observed.devices[one].master == device]
    if not ports:
        return ""
    return f"{name} bridges {address} with {observed.device_name(ports[0])} and br_netfilter is off for IPv{version}"


def _finding(pod: DesiredPod, reasons: Sequence[str]) -> Finding | None:
    if not reasons:
        return None
    is_whole = len(reasons) == len(set(pod.addresses))
    whose = "" if is_whole else " for some of its addresses"
    return warning(
        CODE if is_whole else SOME,
        f"pod {pod.name}",
        f"not enforced{whose}: its packets do not pass the IP stack of the node (as with macvlan, ipvlan, a NIC of its "
        f"own, a bridge to the uplink): {', '.join(reasons)}",
        hint="what it sends by an uplink shares the unknown leaf of L1; on a bridge, br_netfilter lets its packets be "
        "told (net.bridge.bridge-nf-call-iptables, -ip6tables); else see docs/operating.md",
    )
