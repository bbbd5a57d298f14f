"""At which device the traffic of the default routes is shaped: links in, places out. Pure.

A default route may lead to a device that only hands its packets on. They are shaped once, where they can be measured
against what is short:

| default route by | shaped at | why |
|---|---|---|
| NIC, veth, bond, team, ppp | itself | members of a bond each see a part |
| VLAN, macvlan, ipvlan | itself | it sees just what the route carries |
| several of these on one device, or beside it | that device | the link is one, and would be counted for each |
| bridge with one port to the outside | that port | what only crosses the bridge leaves there too; its speed is real |
| any other bridge | itself | which port leads out is not known |
| tunnel that says by which device it leaves | that device | a tunnel has no speed; the inner packet's priority stays |
| any other tunnel, where another default route leads past it | that route's device | its own packets leave there |
| any other tunnel | itself | |

A device that somebody names in the configuration is shaped where it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netqos.host.rtwire import Link
from netqos.model import links

BUNDLES = frozenset({"bond", "team"})
PARTS_OF_A_NIC = frozenset({"vlan", "macvlan", "ipvlan", "macvtap", "ipvtap", "macsec"})
TUNNELS = links.TUNNELS | {"tun"}
STANDS_ON_ANOTHER = PARTS_OF_A_NIC | TUNNELS
"""Kinds whose `lower` carries them; of others (veth) it is a neighbour."""

_INWARD_PORTS = frozenset({"veth", "tun", "vxlan", "geneve", "ifb", "dummy"})
"""Kinds of a bridge's ports behind which workloads are, or other nodes' workloads."""

_DEEPEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A device to shape. `serves` are the devices of default routes whose packets leave by it, in their order."""

    link: Link
    serves: tuple[Link, ...]


def places(routed: Sequence[Link], beyond: Sequence[Link], known: Mapping[int, Link]) -> tuple[Place, ...]:
    """Where to shape. `routed` are the devices of the default routes that count, `beyond` those of the others.

    `known` holds, by index, all that these stand on, with the ports of bridges and the members of bonds.
    """
    found: dict[int, tuple[Link, ...]] = {}
    for link in routed:
        place = _settled(link, (*routed, *beyond), known)
        found[place.index] = (*found.get(place.index, ()), link)
    table = {**known, **{link.index: link for link in (*routed, *beyond)}}
    while pair := _meeting(found, table):
        one, other, common = pair
        serves = dict.fromkeys((*found.pop(one), *found.pop(other)))
        found[common] = (*found.get(common, ()), *serves)
    return tuple(
        Place(link=table[index], serves=tuple(sorted(serves, key=routed.index)))
        for index, serves in found.items()
    )


def carriers(link: Link, known: Mapping[int, Link]) -> tuple[int, ...]:
    """The indexes of the links that carry its traffic: below a VLAN its device, below a bond or bridge its members.

    The nearest come first.
    """
    found: list[int] = []
    front = [link.index]
    for _ in range(_DEEPEST):
        below = [known[index].lower for index in front if index in known and stands_on(known[index])]
        below += [other.index for other in known.values() if other.master in front]
        front = [index for index in dict.fromkeys(below) if index not in found and index != link.index]
        if not front:
            break
        found += front
    return tuple(found)


def stands_on(link: Link) -> int:
    """The index of the device that carries it, 0 for one that stands by itself."""
    return link.lower if link.kind in STANDS_ON_ANOTHER else 0


def _settled(link: Link, defaults: Iterable[Link], known: Mapping[int, Link]) -> Link:
    """Where one device's packets are shaped, as long as it is the only one."""
    for _ in range(_DEEPEST):
        below = _below(link, defaults, known)
        if below is None:
            break
        link = below
    return link


def _below(link: Link, defaults: Iterable[Link], known: Mapping[int, Link]) -> Link | None:
    """The device where these packets are shaped in place of this one, None: here."""
    if link.slave_kind in BUNDLES:
        return known.get(link.master)
    if link.kind in TUNNELS:
        past = next((one for one in defaults if one.kind not in TUNNELS), None)
        return known.get(link.lower) or past
    if link.kind == "bridge":
        outward = [one for one in known.values() if one.master == link.index and _leads_out(one)]
        return outward[0] if len(outward) == 1 else None
    return None


def _leads_out(port: Link) -> bool:
    return port.kind not in _INWARD_PORTS


def _meeting(places: Iterable[int], known: Mapping[int, Link]) -> tuple[int, int, int] | None:
    """Two places whose packets leave by one device, and that device: the nearest to the first; None when all part."""
    listed = list(places)
    for rank, one in enumerate(listed):
        mine = _way_out(one, known)
        for other in listed[rank + 1 :]:
            theirs = _way_out(other, known)
            common = next((index for index in mine if index in theirs), None)
            if common is not None:
                return one, other, common
    return None


def _way_out(place: int, known: Mapping[int, Link]) -> tuple[int, ...]:
    """The place and what carries it, the members of a bond left out: none of them sees all."""
    found = (place, *carriers(known[place], known))
    return tuple(index for index in found if index in known and known[index].slave_kind not in BUNDLES)
