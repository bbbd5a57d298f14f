"""Who owns which packets: the elements of the nft maps by owner. Pure.

An owner is a pod under its name in the kernel (`classify.owner_of`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.health import Finding, error, info, warning
from netqos.model.ids import CgroupPath
from netqos.model.levels import Direction
from netqos_tc.classify import CRITICAL_OWNER, cgroup_map, owner_of
from netqos_tc.keys import ADDRESS_MAPS, CGROUP_MAPS, ElementKey, ElementMap
from netqos_tc.numbers import MAJOR, major_of

_DESTINATIONS: Final = {
    ADDRESS_MAPS[Direction.TX, version]: ADDRESS_MAPS[Direction.RX, version] for version in (4, 6)
}


@dataclass(slots=True)
class Claims:
    """The elements of the maps by owner, while they are collected; each element belongs to one owner."""

    owners: dict[ElementKey, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(self, key: ElementKey, owner: str, subject: str, what: str) -> None:
        """Claim an element; the first claim stays."""
        holder = self.owners.setdefault(key, owner)
        if holder != owner:
            self.findings.append(
                error(
                    "claimed-twice",
                    subject,
                    f"{what} belongs to {holder} already",
                    hint="two workloads cannot share an address or a cgroup; its traffic counts for the first",
                )
            )

    def of(self, owner: str) -> tuple[ElementKey, ...]:
        """The elements of one owner."""
        return tuple(key for key, holder in self.owners.items() if holder == owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Which cgroups of packets can be told apart: none, or those at least `begins_at` deep.

    `net_classes` is for cgroups of version 1: the numbers that their folders have (`TcObserved.net_classes`).
    """

    cgroups: bool = True
    begins_at: int = 0
    net_classes: Mapping[str, int] | None = None


def collect(desired: DesiredState, told: Told, *, ingress: bool) -> Claims:
    """Every element that should be there. The cgroups that keep the node reachable come first.

    With `ingress` an address stands for both directions: as a source, and as a destination.
    """
    claims = Claims()
    for path, number in desired.critical_cgroups if told.cgroups else ():
        if _depth(path) >= told.begins_at:
            _claim_cgroup(claims, path, number, owner=CRITICAL_OWNER, subject=f"cgroup {path}")
    for pod in desired.pods:
        _claim_pod(claims, pod, told)
    if ingress:
        claims.owners |= {
            ElementKey(_DESTINATIONS[key.map], key.value): owner
            for key, owner in claims.owners.items()
            if key.map in _DESTINATIONS
        }
    return claims


def _claim_pod(claims: Claims, pod: DesiredPod, told: Told) -> None:
    owner, subject = owner_of(pod.uid), f"pod {pod.name}"
    if pod.addresses and not pod.host_network:
        for text in pod.addresses:
            _claim_address(claims, text, owner=owner, subject=subject)
    elif pod.cgroup is not None and told.net_classes is not None:
        _claim_net_class(claims, pod.cgroup, told.net_classes, owner=owner, subject=subject)
    elif pod.cgroup is None or pod.cgroup_id is None:
        claims.findings.append(
            info(
                "pending",
                subject,
                "it has neither an address nor a cgroup (of version 2) yet, so its packets are not known",
            )
        )
    elif told.cgroups and _depth(pod.cgroup) >= told.begins_at:
        _claim_cgroup(claims, pod.cgroup, pod.cgroup_id, owner=owner, subject=subject)
    elif told.cgroups:
        _claim_inner(claims, pod, told, owner=owner, subject=subject)
    else:
        claims.findings.append(
            warning(
                "not-enforced-cgroup",
                subject,
                "not enforced: this kernel cannot tell the cgroup of a packet",
                hint="the kernel needs CONFIG_NFT_SOCKET and cgroup v2",
            )
        )


def _claim_net_class(
    claims: Claims, path: CgroupPath, net_classes: Mapping[str, int], *, owner: str, subject: str
) -> None:
    """A cgroup of version 1, where its folder may have a number of ours."""
    number = net_classes.get(path)
    if number is not None and (number == 0 or major_of(number) == MAJOR):
        claims.add(ElementKey(ElementMap.NC, path), owner, subject, f"cgroup {path}")
        return
    met = "has no folder there" if number is None else f"has the number {number} of somebody else there"
    claims.findings.append(
        warning(
            "not-enforced-cgroup",
            subject,
            f"not enforced: packets are told apart by net_cls.classid on this node (cgroup v1), and {path} {met}",
            hint="boot with systemd.unified_cgroup_hierarchy=1, or leave net_cls.classid of it to netqos",
        )
    )


def _claim_inner(claims: Claims, pod: DesiredPod, told: Told, *, owner: str, subject: str) -> None:
    """A cgroup that is too near to the root: those below it, a pod's containers, stand for it."""
    deep = [(path, number) for path, number in pod.inner_cgroups if _depth(path) >= told.begins_at]
    for path, number in deep:
        _claim_cgroup(claims, path, number, owner=owner, subject=subject)
    if not deep:
        claims.findings.append(
            warning(
                "not-enforced-cgroup",
                subject,
                f"not enforced: cgroup {pod.cgroup} has none below it that is {told.begins_at} deep, and only such can "
                "be told apart from the cgroup namespace of netqosd's container",
                hint="run netqosd in the host's cgroup namespace (as a service of systemd, or privileged)",
            )
        )


def _claim_address(claims: Claims, text: str, *, owner: str, subject: str) -> None:
    address = _parse(text)
    if address is None:
        claims.findings.append(
            error(
                "bad-address",
                subject,
                f"{text[:48]!r} is no address of a workload",
                hint="correct its source",
            )
        )
        return
    claims.add(address, owner, subject, f"address {address.value}")


@lru_cache(maxsize=8192)
def _parse(text: str) -> ElementKey | None:
    """The element for an address as a source."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return None
        address = address.ipv4_mapped or address
    is_nobodys = address.is_unspecified or address.is_multicast or address.is_loopback
    return None if is_nobodys else ElementKey(ADDRESS_MAPS[Direction.TX, address.version], str(address))


def _claim_cgroup(claims: Claims, path: CgroupPath, number: int, *, owner: str, subject: str) -> None:
    depth = _depth(path)
    which = cgroup_map(depth)
    if which is None:
        claims.findings.append(
            warning(
                "not-enforced-cgroup",
                subject,
                f"not enforced: cgroup {path} is {depth} deep; allowed: 1 to {max(CGROUP_MAPS)}",
            )
        )
        return
    claims.add(ElementKey(which, number), owner, subject, f"cgroup {path}")


def _depth(path: CgroupPath) -> int:
    return sum(bool(part) for part in path.split("/"))
