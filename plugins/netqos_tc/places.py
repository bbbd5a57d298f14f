"""Where packets for an address leave the node: its routes and devices as values. Pure.

A workload's ingress is held at the device behind which it is: its own veth where the node routes to it, each port of
the bridge where the node hands it to one. The main routing table says which; tables that only rules lead to are not
followed.

Why not the bridge itself: what br_netfilter rewrites to another pod of the same bridge (a service) is sent by the
bridge device before its connection is confirmed, and a redirect forgets the connection (nf_reset_ct in
net/sched/act_mirred.c), so that the answer would keep the pod's own address and be refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from netqos.model.links import TUNNELS

NO_PORTS: Final = TUNNELS | {"", "vlan", "bond", "team"}
"""Kinds of ports by which a bridge leads out of the node; hardware has none."""

_BITS: Final = {4: 32, 6: 128}


@dataclass(frozen=True, slots=True)
class Route:
    """A unicast route of the main table: the numbers of its network, and the device of its first hop."""

    version: int
    length: int
    network: int
    metric: int
    device: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of the node. `kind` is empty for hardware and loopback; `master` is the bridge of which it is a port.

    `filtered`: the versions of IP whose frames pass the IP hooks when this bridge hands them from port to port.
    """

    name: str
    kind: str = ""
    is_loopback: bool = False
    master: int = 0
    filtered: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The egress hook of a device, as others have it.

    `has_block`: its filters are those of a block that other devices share. `has_ingress`: there is the older `ingress`
    qdisc, beside which there can be no clsact. `preferences` are those of the filters of others at egress, each once.
    """

    has_clsact: bool = False
    has_ingress: bool = False
    has_block: bool = False
    preferences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes, by version and prefix length, longest first."""

    tables: Mapping[int, tuple[tuple[int, Mapping[int, tuple[int, int]]], ...]] = field(default_factory=dict)
    _found: dict[str, int | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, routes: Iterable[Route]) -> Routes:
        """Of several routes to one network the one with the lowest metric counts."""
        found: dict[int, dict[int, dict[int, tuple[int, int]]]] = {4: {}, 6: {}}
        for one in routes:
            networks = found[one.version].setdefault(one.length, {})
            rival = networks.get(one.network)
            if rival is None or one.metric < rival[0]:
                networks[one.network] = (one.metric, one.device)
        return cls(
            {version: tuple(sorted(tables.items(), reverse=True)) for version, tables in found.items()}
        )

    def device(self, address: str) -> int | None:
        """The device by which packets for an address leave, None for one that is reached by no route."""
        if address not in self._found:
            self._found[address] = self._look_up(address)
        return self._found[address]

    def _look_up(self, address: str) -> int | None:
        version, number = _numbers(address)
        bits = _BITS[version]
        for length, networks in self.tables.get(version, ()):
            found = networks.get(number >> (bits - length) << (bits - length))
            if found is not None:
                return found[1]
        return None


@lru_cache(maxsize=8192)
def _numbers(address: str) -> tuple[int, int]:
    """Version and number of an address; reading one takes 10 us, and there are some hundred in each plan."""
    parsed = ipaddress.ip_address(address)
    return parsed.version, int(parsed)


def exits(device: int, devices: Mapping[int, Device], *, uplinks: frozenset[int]) -> frozenset[int]:
    """The devices by which packets leave the node's stack towards workloads: a bridge's ports, else the device."""
    known = devices.get(device)
    if known is None or known.kind != "bridge":
        return frozenset({device})
    ports = {ifindex for ifindex, one in devices.items() if one.master == device and one.kind not in NO_PORTS}
    return frozenset(ports - uplinks)
