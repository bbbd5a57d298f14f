"""Workloads whose packets never pass the node's stack: macvlan, ipvlan, a NIC of their own, a bridge with an uplink.

No rule can tell such packets to a class. The host sees neither the device nor its namespace, but its routes tell: what
it reaches by an uplink itself, or by a device of the same kind beside the workload's, is not behind a device of the
node. Such packets meet the uplink's tree, if they do at all, in the unknown leaf. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.health import Finding, warning
from netqos_tc.observed import TcObserved
from netqos_tc.places import Device, Routes

CODE: Final = "not-enforced-bypass"
"""It denies all that is asked for a workload, in both directions."""

SOME: Final = "address-bypasses"
"""It denies nothing of the workload but for the addresses it names."""

_SIBLINGS: Final = frozenset({"macvlan", "macvtap", "ipvlan", "ipvtap"})
"""A device of the host of this kind reaches others of its kind on the same parent, and nobody behind the host."""


def findings(desired: DesiredState, observed: TcObserved) -> tuple[Finding, ...]:
    """A finding for each workload of which any address is past the node's stack."""
    uplinks = frozenset(uplink.index for uplink in desired.uplinks)
    found = (
        _finding(pod, dict(_past(pod, uplinks, observed))) for pod in desired.pods if not pod.host_network
    )
    return tuple(one for one in found if one is not None)


def unsaid(others: Iterable[Finding], found: Iterable[Finding]) -> Iterator[Finding]:
    """Other findings without those about workloads of which everything is denied already."""
    denied = {one.subject for one in found if one.code == CODE}
    return (one for one in others if one.subject not in denied)


def _past(pod: DesiredPod, uplinks: frozenset[int], observed: TcObserved) -> Iterator[tuple[str, str]]:
    """The addresses of a workload that are past the node's stack, with the device by which the node reaches them."""
    for address in pod.addresses:
        device = _device(observed.routes, address)
        if device is not None and _leads_past(device, uplinks, observed.devices):
            yield address, observed.device_name(device)


def _device(routes: Routes, address: str) -> int | None:
    try:
        return routes.device(address)
    except ValueError:  # no address: `owners` tells it
        return None


def _leads_past(device: int, uplinks: frozenset[int], devices: Mapping[int, Device]) -> bool:
    known = devices.get(device)
    return device in uplinks or (known is not None and known.kind in _SIBLINGS)


def _finding(pod: DesiredPod, past: Mapping[str, str]) -> Finding | None:
    if not past:
        return None
    is_whole = len(past) == len(set(pod.addresses))
    where = ", ".join(f"{address} by {device}" for address, device in past.items())
    told = (
        "not enforced: its packets do not pass the node's stack"
        if is_whole
        else "not enforced for some of its addresses: their packets do not pass the node's stack"
    )
    return warning(
        CODE if is_whole else SOME,
        f"pod {pod.name}",
        f"{told} (macvlan, ipvlan, a NIC of its own, or a bridge with the uplink); this node reaches {where}",
        hint="what it sends by an uplink shares the unknown leaf of L1; a network whose packets the node routes can be "
        "enforced (docs/operating.md)",
    )
