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
from netqos_tc import numbers
from netqos_tc.behind import Apart, obstacle, places
from netqos_tc.ground import Ground, member
from netqos_tc.keys import ElementKey, Key, LinkKey, RedirectKey
from netqos_tc.moves import Steered
from netqos_tc.observed import TcObserved
from netqos_tc.places import Hook
from netqos_tc.ruletree import Ruled, chains_of
from netqos_tc.spec import ElementSpec, LinkSpec, RedirectSpec, Spec
from netqos_tc.tree import tree

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


def foreign_ifb(observed: TcObserved) -> Finding:
    """The finding for a device of somebody else in the place of the IFB."""
    return error(
        CODE,
        "rx",
        f"not enforced: ingress; {observed.foreign_ifb}, which is not ours and left alone",
        hint=f"remove or rename it; the backend needs the device {numbers.IFB_NAME} for itself",
    )


def _redirects(
    devices: Iterable[int], observed: TcObserved, *, is_choosy: bool
) -> tuple[dict[Key, RedirectSpec], list[Finding]]:
    redirects: dict[Key, RedirectSpec] = {}
    findings = []
    for device in sorted(devices):
        key, hook = RedirectKey(device), observed.hooks.get(device, Hook())
        in_the_way = obstacle(hook)
        if in_the_way:
            findings.append(_hook_finding(observed, device, in_the_way))
            continue
        met = observed.specs.get(key)
        owns = device in observed.own_hooks or (isinstance(met, RedirectSpec) and met.owns_hook)
        redirects[key] = RedirectSpec(
            target=numbers.IFB_INDEX, owns_hook=owns or not hook.has_clsact, is_choosy=is_choosy
        )
        if hook.preferences:
            findings.append(_shared(observed, device, hook))
    return redirects, findings


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
