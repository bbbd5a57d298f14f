"""What shapes the packets towards workloads: the IFB, its tree, and the redirects that lead to it. Pure.

Every device behind which a workload is sends through the IFB; the nft table has told the packets their classes by then.
Never redirected are uplinks, tunnels and loopback, and a device at whose hook somebody would lose something by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.health import Finding, error, info, warning
from netqos.model.levels import Direction
from netqos.model.links import TUNNELS
from netqos_tc import numbers
from netqos_tc.moves import Steered
from netqos_tc.observed import TcObserved
from netqos_tc.places import Hook, exits
from netqos_tc.ruletree import Ruled, chains_of
from netqos_tc.spec import (
    ElementKey,
    ElementSpec,
    Key,
    LinkKey,
    LinkSpec,
    RedirectKey,
    RedirectSpec,
    Spec,
)
from netqos_tc.tree import Ground, member, tree

CODE: Final = "not-enforced-ingress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The workloads by their leaves' minors, the elements that lead to leaves, and the workloads that have rules."""

    pods: Mapping[int, DesiredPod]
    elements: Mapping[Key, Spec]
    ruled: tuple[Ruled, ...] = ()

    @property
    def names(self) -> Mapping[int, str]:
        """What rules need, for people, by minor."""
        return {minor: name for one in self.ruled for minor, name in one.names.items()}

    @property
    def destinations(self) -> Mapping[int, tuple[str, ...]]:
        """The addresses at which workloads receive, by their leaves' minors."""
        found: dict[int, tuple[str, ...]] = {}
        for key, spec in self.elements.items():
            is_rx = isinstance(key, ElementKey) and key.map.direction is Direction.RX
            if is_rx and isinstance(key, ElementKey) and isinstance(spec, ElementSpec):
                found[spec.minor] = (*found.get(spec.minor, ()), str(key.value))
        return found


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingress:
    """The objects of the ingress direction, what cannot be, and what of it the loop moves (None: nothing is there).

    `chains` are the rules of workloads, `behind` has the names of the workloads behind each device.
    """

    specs: Mapping[Key, Spec] = field(default_factory=dict)
    chains: Mapping[Key, Spec] = field(default_factory=dict)
    behind: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    steered: Steered | None = None


def is_needed(desired: DesiredState) -> bool:
    """Whether anything is to be shaped on the way in: by level, or of a workload by itself."""
    rx = desired.directions.rx
    is_leveled = rx.levels is not None and rx.total_bps is not None
    return is_leveled or any(pod.is_held(Direction.RX) for pod in desired.pods)


def is_possible(observed: TcObserved) -> bool:
    """Whether name and index of the IFB are free, or ours."""
    return observed.foreign_ifb is None


def lay_out(
    desired: DesiredState,
    observed: TcObserved,
    placed: Placed,
    *,
    queue_ms: int,
    codel_ms: int | None = None,
    is_choosy: bool,
) -> Ingress:
    """All of the ingress direction. A workload that no address leads to has no leaf here."""
    total_bps = desired.directions.rx.total_bps
    ground = Ground(
        ifindex=numbers.IFB_INDEX,
        mtu=max(uplink.mtu for uplink in desired.uplinks),
        total_bps=total_bps,
        bands=desired.directions.rx.levels if total_bps is not None else None,
        queue_ms=queue_ms,
        codel_ms=codel_ms,
    )
    destinations = placed.destinations
    members = {
        minor: member(pod.level, pod.limits_bps.rx)
        for minor, pod in placed.pods.items()
        if minor in destinations
    }
    ruled = [one for one in placed.ruled if one.leaf in members]
    branches = [one.branch(Direction.RX) for one in ruled]
    made = tree(ground, members, observed.classes_on(numbers.IFB_INDEX), branches)
    found = places(placed.pods, destinations, desired, observed)
    redirects, findings = _redirects(found.devices, observed, is_choosy=is_choosy)
    specs: dict[Key, Spec] = {LinkKey(numbers.IFB_INDEX): LinkSpec(), **made.specs, **redirects}
    return Ingress(
        specs=specs,
        chains=chains_of(ruled, Direction.RX),
        findings=(*findings, *(_apart_finding(one, desired) for one in found.apart)),
        behind=found.devices,
        steered=made.steered,
    )


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


def foreign_ifb(observed: TcObserved) -> Finding:
    """The finding for a device of somebody else in the place of the IFB."""
    return error(
        CODE,
        "rx",
        f"not enforced: ingress; {observed.foreign_ifb}, which is not ours and left alone",
        hint=f"remove or rename it; the backend needs the device {numbers.IFB_NAME} for itself",
    )


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
    if not ways or not all(_obstacle(observed.hooks.get(one, Hook())) for one in ways):
        return ""
    return f"is behind {', '.join(map(observed.device_name, sorted(ways)))}, where a redirect cannot go"


def _redirects(
    devices: Iterable[int], observed: TcObserved, *, is_choosy: bool
) -> tuple[dict[Key, RedirectSpec], list[Finding]]:
    redirects: dict[Key, RedirectSpec] = {}
    findings = []
    for device in sorted(devices):
        key, hook = RedirectKey(device), observed.hooks.get(device, Hook())
        obstacle = _obstacle(hook)
        if obstacle:
            findings.append(_hook_finding(observed, device, obstacle))
            continue
        met = observed.specs.get(key)
        owns = device in observed.own_hooks or (isinstance(met, RedirectSpec) and met.owns_hook)
        redirects[key] = RedirectSpec(
            target=numbers.IFB_INDEX, owns_hook=owns or not hook.has_clsact, is_choosy=is_choosy
        )
        if hook.preferences:
            findings.append(_shared(observed, device, hook))
    return redirects, findings


def _obstacle(hook: Hook) -> str:
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


def _hook_finding(observed: TcObserved, device: int, obstacle: str) -> Finding:
    return warning(
        CODE,
        observed.device_name(device),
        f"not enforced: what workloads behind it receive; {obstacle}",
        hint="see `tc qdisc show` and `tc filter show egress` of the device for whose it is",
    )


def _shared(observed: TcObserved, device: int, hook: Hook) -> Finding:
    preferences = ", ".join(map(str, hook.preferences))
    return warning(
        "shared-hook",
        observed.device_name(device),
        f"not enforced for what others' filters at its egress take (preference {preferences}): they come before ours, "
        "and a packet that one of them accepts or redirects never meets it",
        hint="compare the counters of the workload's ingress class with what it receives (netqosctl explain)",
    )


def _apart_finding(one: Apart, desired: DesiredState) -> Finding:
    says = info if one.pod.limits_bps.rx is None and desired.directions.rx.levels is None else warning
    return says(CODE, f"pod {one.pod.name}", f"not enforced: its ingress; {one.reason}")
