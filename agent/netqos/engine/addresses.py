"""Whose address is whose: one pod for each address, and none that cannot tell one pod from others."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from netqos.model.health import Finding, warning
from netqos.model.ids import PodUid
from netqos.model.inputs import PodFacts
from netqos.model.texts import shown

Address = tuple[int, int, str]
"""Version, number and shortest text: sorts v4 before v6, and by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The addresses of one pod, v4 before v6, each in its shortest form; and why others are not among them."""

    addresses: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


NONE_CLAIMED = Claimed()


def claim(pods: Iterable[PodFacts]) -> dict[PodUid, Claimed]:
    """The addresses of each pod. Where two claim one, the first keeps it: hand them over in a stable order.

    A host-network pod has none, for its address is the node's and every other such pod's; a pod's address that is the
    node's own is not known here and left out by the source.
    """
    owners: dict[Address, PodFacts] = {}
    return {facts.uid: _alone(facts, owners) or _claim(facts, owners) for facts in pods}


def _alone(facts: PodFacts, owners: dict[Address, PodFacts]) -> Claimed | None:
    """What nearly every pod has: usable addresses that are nobody else's. None: look more closely."""
    usable = None if facts.host_network else _usable(facts.addresses)
    if usable is None or any(owners.setdefault(one, facts) is not facts for one in usable[0]):
        return None
    return usable[1]


@lru_cache(maxsize=4096)
def _usable(texts: tuple[str, ...]) -> tuple[tuple[Address, ...], Claimed] | None:
    """The addresses and the claim of a pod that has them to itself, None where one of them is no pod's own."""
    found = [_parse(text) for text in texts if text]
    mine = tuple(sorted({one for one in found if one is not None}))
    return None if None in found else (mine, Claimed(addresses=tuple(text for _, _, text in mine)))


def _claim(facts: PodFacts, owners: dict[Address, PodFacts]) -> Claimed:
    if facts.host_network:
        return NONE_CLAIMED
    mine: list[Address] = []
    findings: list[Finding] = []
    for text in filter(None, facts.addresses):
        address = _parse(text)
        owner = facts if address is None else owners.setdefault(address, facts)
        if address is None:
            findings.append(_not_usable(facts, text))
        elif owner is not facts:
            findings.append(_taken(facts, text, owner))
        elif address not in mine:
            mine.append(address)
    return Claimed(addresses=tuple(text for _, _, text in sorted(mine)), findings=tuple(findings))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Address | None:
    """The address, None when it is none or cannot be a pod's own."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    is_shared = address.is_unspecified or address.is_loopback or address.is_multicast
    return None if is_shared or address.is_link_local else (address.version, int(address), str(address))


def _not_usable(facts: PodFacts, text: str) -> Finding:
    return warning(
        "address-unusable",
        facts.subject,
        f"{shown(text)} is no address of a single pod; allowed: such as 10.0.0.7, fd00::7",
        hint="its traffic from there counts as unclaimed (L1)",
    )


def _taken(facts: PodFacts, text: str, owner: PodFacts) -> Finding:
    return warning(
        "address-conflict",
        facts.subject,
        f"{text} belongs to {owner.full_name} already and cannot tell the two apart",
        hint="give each its own address, or match by cgroup",
    )
