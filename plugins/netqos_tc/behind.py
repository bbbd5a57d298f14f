"""Behind which devices of the node workloads receive, and what keeps a device from leading to the IFB. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.links import TUNNELS
from netqos_tc import numbers
from netqos_tc.observed import TcObserved
from netqos_tc.places import Hook, exits


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A workload whose ingress passes no device of its own here: what is in the way, in words.

    `device` is the device by which its packets leave the node, 0 where no route leads to it.
    """

    pod: DesiredPod
    reason: str
    device: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The devices behind which workloads are, with the names of these, and the workloads that are behind none."""

    devices: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    apart: tuple[Apart, ...] = ()


def places(
    pods: Mapping[int, DesiredPod],
    destinations: Mapping[int, tuple[str, ...]],
    desired: DesiredState,
    observed: TcObserved,
) -> Places:
    """Where workloads are. One that is led to the IFB by some of its addresses only is apart too."""
    uplinks = frozenset(uplink.index for uplink in desired.uplinks)
    behind: dict[int, dict[str, None]] = {}
    apart: list[Apart] = []
    for minor, pod in pods.items():
        addresses = destinations.get(minor, ())
        if not addresses:
            apart.append(
                Apart(pod=pod, reason="it receives in the node's own network, where nothing holds it")
            )
        for address in addresses:
            device = observed.routes.device(address) or 0
            reason = _why_not_behind(device, uplinks, observed)
            if not reason:
                ways = exits(device, observed.devices, uplinks=uplinks)
                reason = _why_not_led(ways, observed)
                for one in ways:
                    behind.setdefault(one, {})[pod.name] = None
            if reason:
                apart.append(Apart(pod=pod, reason=f"{address} {reason}", device=device))
                break
    return Places(devices={one: tuple(names) for one, names in behind.items()}, apart=tuple(apart))


def obstacle(hook: Hook) -> str:
    """What of others does not go together with a redirect, "" for nothing."""
    if hook.has_ingress:
        return "it has an `ingress` qdisc of somebody, beside which the kernel allows no clsact"
    if hook.has_block:
        return "its clsact takes the filters at egress from a block that it may share with others"
    if numbers.HOOK_PREFERENCE in hook.preferences:
        return f"somebody's filter at its egress has the preference of ours, {numbers.HOOK_PREFERENCE}"
    behind = [one for one in hook.preferences if one > numbers.HOOK_PREFERENCE]
    if behind:
        return f"the filter {behind[0]} at its egress would no longer meet what is redirected"
    return ""


def _why_not_behind(device: int, uplinks: frozenset[int], observed: TcObserved) -> str:
    """Why no workload is behind a device, "" when one may be."""
    if not device:
        return "is reached by no route of the main table"
    known = observed.devices.get(device)
    name = known.name if known is not None else f"device {device}"
    if device in uplinks:
        return f"is reached by {name}, an uplink, and not through this node's network"
    if known is not None and known.is_loopback:
        return f"is reached by {name}"
    if known is not None and known.kind in TUNNELS:
        return f"is reached by {name}, a tunnel"
    return ""


def _why_not_led(ways: frozenset[int], observed: TcObserved) -> str:
    """What keeps all devices by which a workload may be reached from sending to the IFB, "" where one does."""
    if not ways or not all(obstacle(observed.hooks.get(one, Hook())) for one in ways):
        return ""
    return f"is behind {', '.join(map(observed.device_name, sorted(ways)))}, where a redirect cannot go"
