"""Rtnetlink messages of links, default routes and addresses, as values. Pure: bytes in, values out.

Numbers are from include/uapi/linux/{netlink,rtnetlink,if_link,if_addr,nexthop}.h. Only what the host facts need is
decoded: a dump of thousands of routes is passed over at the prefix length of each.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

NLMSG_ERROR, NLMSG_DONE, NLMSG_OVERRUN = 2, 3, 4
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWNEIGH = 28
RTM_NEWNEXTHOP, RTM_DELNEXTHOP, RTM_GETNEXTHOP = 104, 105, 106
NLM_F_REQUEST, NLM_F_DUMP, NLM_F_DUMP_INTR = 0x1, 0x300, 0x10
NLM_F_ACK, NLM_F_CREATE = 0x4, 0x400

IFF_UP, IFF_LOOPBACK, IFF_LOWER_UP = 0x1, 0x8, 0x10000
TABLE_MAIN = 254

_RTN_UNICAST = 1
_SCOPE_LINK = 253  # RT_SCOPE_LINK
_RTNH_F_DEAD = 1
_IFLA_VXLAN_LINK = 3
_NESTED = 0x8000
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_LINK = struct.Struct("=BxHiII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_HOP = struct.Struct("=HBBi")
_ADDRESS = struct.Struct("=BBBBI")
_U32 = struct.Struct("=I")
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_NTF_USE = 1
_NEXTHOP = struct.Struct("=BBBBI")
_GROUP_ENTRY = struct.Struct("=IBBH")

Attributes = dict[int, memoryview]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One link. `kind` is empty for hardware; `lower` is the link that it stands on, `master` the one it belongs to,
    both by index, 0 without. `mac` is empty where there is none.
    """

    index: int
    name: str
    mtu: int
    flags: int
    kind: str = ""
    slave_kind: str = ""
    master: int = 0
    lower: int = 0
    mac: str = ""

    @property
    def is_up(self) -> bool:
        """Switched on, and with a carrier."""
        return self.flags & IFF_UP != 0 and self.flags & IFF_LOWER_UP != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRoute:
    """A default route of the main table; several devices where it is multipath.

    `nexthop` is the id of a nexthop object where the kernel names only that (net.ipv4.nexthop_compat_mode=0).
    """

    family: int
    metric: int
    devices: tuple[int, ...]
    nexthop: int = 0


def request(kind: int, flags: int, payload: bytes, *, sequence: int) -> bytes:
    """One whole message."""
    return _HEADER.pack(_HEADER.size + len(payload), kind, flags | NLM_F_REQUEST, sequence, 0) + payload


def link_request(*, index: int = 0, name: str = "", master: int = 0) -> bytes:
    """The payload that asks for one link, or (in a dump) for the members of a master; without counters."""
    payload = _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0)
    payload += _attribute(29, _U32.pack(8))  # IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS
    if name:
        payload += _attribute(
            3 if len(name.encode()) < 16 else 53, name.encode() + b"\0"
        )  # IFLA_(ALT_)IFNAME
    if master:
        payload += _attribute(10, _U32.pack(master))
    return payload


def route_request(family: int) -> bytes:
    """The payload that asks for the main table of one family."""
    return _ROUTE.pack(family, 0, 0, 0, TABLE_MAIN, 0, 0, 0, 0)


def route_to_request(address: str) -> bytes:
    """The payload that asks by which route packets to one address leave."""
    family, raw = packed(address)
    return _ROUTE.pack(family, 8 * len(raw), 0, 0, 0, 0, 0, 0, 0) + _attribute(1, raw)  # RTA_DST


def resolve_request(address: str, device: int) -> bytes:
    """The payload that has the kernel find out who has an address on a device's link, as a packet to it would."""
    family, raw = packed(address)
    return _NEIGHBOUR.pack(family, device, 0, _NTF_USE, 0) + _attribute(1, raw)  # NDA_DST


def address_request() -> bytes:
    """The payload that asks for all addresses."""
    return _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)


def nexthop_request(identity: int) -> bytes:
    """The payload that asks for one nexthop object."""
    return _NEXTHOP.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + _attribute(1, _U32.pack(identity))


def messages(data: bytes) -> Iterator[tuple[int, int, int, memoryview]]:
    """(type, flags, sequence, payload) of each message in what one read returned; a cut one ends it."""
    view, offset = memoryview(data), 0
    while offset + _HEADER.size <= len(view):
        length, kind, flags, sequence, _port = _HEADER.unpack_from(view, offset)
        if length < _HEADER.size or offset + length > len(view):
            return
        yield kind, flags, sequence, view[offset + _HEADER.size : offset + length]
        offset += (length + 3) & ~3


def error_code(payload: memoryview) -> int:
    """The errno of an NLMSG_ERROR or NLMSG_DONE, 0 for none."""
    return -int(struct.unpack_from("=i", payload)[0]) if len(payload) >= 4 else 0


def decode_link(payload: memoryview) -> Link:
    """The link of an RTM_NEWLINK or RTM_DELLINK."""
    _family, _type, index, flags, _change = _LINK.unpack_from(payload)
    found = decode_attributes(payload[_LINK.size :])
    info = decode_attributes(found[18]) if 18 in found else {}
    is_elsewhere = 37 in found  # IFLA_LINK_NETNSID: the index in IFLA_LINK is one of another namespace
    return Link(
        index=index,
        name=text(found.get(3)),
        mtu=number(found.get(4)),
        flags=flags,
        kind=text(info.get(1)),
        slave_kind=text(info.get(4)),
        master=number(found.get(10)),
        lower=0 if is_elsewhere else _lower(index, found, info),
        mac=bytes(found.get(1, b"")).hex(":"),
    )


def _lower(index: int, found: Attributes, info: Attributes) -> int:
    """By IFLA_LINK, which names the device itself where there is none; a VXLAN says it among its own options."""
    lower = number(found.get(5))
    if text(info.get(1)) == "vxlan" and 2 in info:
        lower = number(decode_attributes(info[2]).get(_IFLA_VXLAN_LINK))
    return 0 if lower == index else lower


def is_default_route(payload: memoryview) -> bool:
    """Whether a route message can be about the default route; cheap, for dumps and event streams."""
    return len(payload) >= _ROUTE.size and payload[1] == 0


def decode_default_route(payload: memoryview) -> DefaultRoute | None:
    """The default route that this is; None for every other route, and for one that is dead or leads nowhere."""
    family, dst_len, _src, tos, table, _protocol, _scope, kind, flags = _ROUTE.unpack_from(payload)
    if dst_len or tos or kind != _RTN_UNICAST or flags & _RTNH_F_DEAD:
        return None
    found = decode_attributes(payload[_ROUTE.size :])
    if (number(found[15]) if 15 in found else table) != TABLE_MAIN:  # RTA_TABLE
        return None
    devices = tuple(_hops(found[9])) if 9 in found else ()
    if 4 in found:
        devices = (number(found[4]),)
    route = DefaultRoute(
        family=family, metric=number(found.get(6)), devices=devices, nexthop=number(found.get(30))
    )
    return route if devices or route.nexthop else None


def decode_host_route(payload: memoryview) -> dict[str, int]:
    """The address and the device of a route that leads to that address alone; empty for any other."""
    family, dst_len, *_rest = _ROUTE.unpack_from(payload)
    if (family, dst_len) not in {(socket.AF_INET, 32), (socket.AF_INET6, 128)}:
        return {}
    found = decode_attributes(payload[_ROUTE.size :])
    if 1 not in found or 4 not in found:  # RTA_DST, RTA_OIF
        return {}
    return {socket.inet_ntop(family, found[1]): number(found[4])}


def decode_link_of_route(payload: memoryview) -> int:
    """The device on whose link a route's target is, 0 where a gateway comes before it."""
    found = decode_attributes(payload[_ROUTE.size :])
    return 0 if 5 in found or 4 not in found else number(found[4])  # RTA_GATEWAY, RTA_OIF


def packed(address: str) -> tuple[socket.AddressFamily, bytes]:
    """An address as messages have it, with its family; ValueError for what is none."""
    one = ipaddress.ip_address(address)
    return (socket.AF_INET if one.version == 4 else socket.AF_INET6), one.packed


def is_link_local(payload: memoryview) -> bool:
    """Whether an address message is about one that every link makes for itself (fe80::): nobody is known by it."""
    return len(payload) >= _ADDRESS.size and (payload[0], payload[3]) == (socket.AF_INET6, _SCOPE_LINK)


def decode_address(payload: memoryview) -> str | None:
    """The node's own address of an RTM_NEWADDR (not the far end of a point-to-point link)."""
    family = payload[0]
    if family not in {socket.AF_INET, socket.AF_INET6}:
        return None
    found = decode_attributes(payload[_ADDRESS.size :])
    raw = found.get(2, found.get(1))  # IFA_LOCAL, IFA_ADDRESS
    return socket.inet_ntop(family, raw) if raw is not None else None


def decode_nexthop(payload: memoryview) -> tuple[int, tuple[int, ...]]:
    """(device, members of a group by id) of an RTM_NEWNEXTHOP; device 0 where it has none."""
    found = decode_attributes(payload[_NEXTHOP.size :])
    if found.get(4) is not None:  # NHA_BLACKHOLE
        return 0, ()
    group = found.get(2, memoryview(b""))
    members = tuple(entry[0] for entry in _GROUP_ENTRY.iter_unpack(group))
    return number(found.get(5)), members


def _hops(data: memoryview) -> Iterator[int]:
    offset = 0
    while offset + _HOP.size <= len(data):
        length, flags, _weight, index = _HOP.unpack_from(data, offset)
        if not flags & _RTNH_F_DEAD:
            yield index
        offset += max((length + 3) & ~3, _HOP.size)


def decode_attributes(data: memoryview) -> Attributes:
    """The attributes of a message or of a nested attribute; of several with one type the last."""
    found: Attributes = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & ~_NESTED] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return found


def _attribute(kind: int, value: bytes) -> bytes:
    padding = b"\0" * (-len(value) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + padding


def number(value: memoryview | None) -> int:
    """A 32-bit number in the host's order, 0 where there is none."""
    return int(_U32.unpack_from(value)[0]) if value is not None and len(value) >= 4 else 0


def text(value: memoryview | None) -> str:
    """A string up to its NUL, empty where there is none."""
    return bytes(value).split(b"\0", 1)[0].decode("utf-8", "surrogateescape") if value is not None else ""
