"""The way of a workload's packets on this node, as what was read from the kernel says. Pure.

Each step is an object that is there: the device behind which the workload is, the element of nft that knows it, the
redirect that leads to the IFB, the class that counts. Source NAT is no step: packets are told before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from netqos.backend import PacketWay
from netqos.model.levels import Direction
from netqos_tc import describe, numbers
from netqos_tc.answers import HtbClass
from netqos_tc.keys import ADDRESS_MAPS, ElementKey, ElementMap, RedirectKey
from netqos_tc.observed import TcObserved
from netqos_tc.places import exits
from netqos_tc.spec import RedirectSpec

WORKLOAD = "workload"


class Ways:
    """What is needed for the way of any workload, from what was observed last; nothing is made before it is asked."""

    def __init__(self, observed: TcObserved, uplinks: tuple[int, ...]) -> None:
        """`uplinks` by index."""
        self.observed = observed
        self.uplinks = uplinks

    @cached_property
    def elements(self) -> Mapping[tuple[Direction, str], tuple[ElementKey, ...]]:
        """The elements by direction and owner."""
        found: dict[tuple[Direction, str], tuple[ElementKey, ...]] = {}
        for key, spec in self.observed.elements.items():
            place = key.map.direction, spec.owner
            found[place] = (*found.get(place, ()), key)
        return found

    def way(self, one: HtbClass, device: str, owner: str, item: int | None = None) -> PacketWay:
        """The way of what a leaf of an owner counts; `item` is the place of the rule whose leaf it is."""
        direction = numbers.kind_on(one.ifindex).direction
        keys = self.elements.get((direction, owner), ())
        told = (
            f"nft {' | '.join(dict.fromkeys(key.map.value for key in keys))}" if keys else "no element of nft"
        )
        if item is not None:
            told = f"{told}, rule {item}"
        leaf = f"class {numbers.text(numbers.class_id(one.minor, one.ifindex))} in {_parent(one)} of {device}"
        behind = self._devices(keys)
        claims = tuple(map(_element, keys))
        if direction is Direction.TX:
            names = " | ".join(map(self.observed.device_name, behind)) or "the node's own stack"
            return PacketWay((WORKLOAD, names, told, leaf), claims)
        uplinks = " | ".join(map(self.observed.device_name, self.uplinks)) or "no uplink"
        return PacketWay((uplinks, told, *self._led(behind), leaf, WORKLOAD), claims)

    def _devices(self, keys: Iterable[ElementKey]) -> tuple[int, ...]:
        """The devices behind which a workload is, in the order of its addresses."""
        addresses = [str(key.value) for key in keys if key.map in ADDRESS_MAPS.values()]
        found = (self.observed.routes.device(address) for address in addresses)
        return tuple(dict.fromkeys(device for device in found if device))

    def _led(self, behind: tuple[int, ...]) -> Iterator[str]:
        """The redirects by which the devices lead to the IFB; at a bridge those of its ports."""
        for device in behind:
            ways = exits(device, self.observed.devices, uplinks=frozenset(self.uplinks))
            led = sum(self._is_led(one) for one in ways)
            name = self.observed.device_name(device)
            if ways == {device}:
                yield f"redirect at {name}" if led else f"no redirect at {name}"
            else:
                yield f"redirects at {led} of {len(ways)} ports of {name}"

    def _is_led(self, device: int) -> bool:
        spec = self.observed.specs.get(RedirectKey(device))
        return isinstance(spec, RedirectSpec) and spec.target == numbers.IFB_INDEX


def _element(key: ElementKey) -> str:
    if key.map is ElementMap.NC:
        return f"net_cls.classid of {key.value}"
    what = "cgroup " if key.map.depth is not None else ""
    return f"{key.map.value} {what}{key.value}"


def _parent(one: HtbClass) -> str:
    """The level whose class is the parent, by what the kernel says."""
    minor = numbers.minor_of(one.spec.parent)
    return describe.Names().leaf(minor) or numbers.text(one.spec.parent)
