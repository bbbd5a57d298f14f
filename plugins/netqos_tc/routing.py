"""Routes and devices as netlink messages, read into `places`. Pure."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from netqos_tc import netmsg, uapi
from netqos_tc.links import read_link
from netqos_tc.netmsg import Message, Request, attribute, attributes
from netqos_tc.places import Device, Route, Routes

_VERSIONS: Final = {uapi.INET: 4, uapi.INET6: 6}
_LINK_LOCAL6: Final = b"\xfe\x80"


def dump_routes(family: int) -> Request:
    """All routes of a family, of all tables: the kernel filters none without a flag that changes every dump."""
    return Request(uapi.GETROUTE, netmsg.DUMP, uapi.ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))


def dump_links() -> Request:
    """All devices, without their counters."""
    body = uapi.IFINFO.pack(0, 0, 0, 0, 0) + attribute(uapi.EXT_MASK, struct.pack("=I", uapi.SKIP_STATS))
    return Request(uapi.GETLINK, netmsg.DUMP, body)


def read_routes(messages: Iterable[Message]) -> Routes:
    """The unicast routes of the main table."""
    return Routes.of(route for route in map(read_route, messages) if route is not None)


def read_route(message: Message) -> Route | None:
    """A unicast route of the main table that leads somewhere; None for any other, and for link-local networks."""
    family, length, _from, tos, table, _by, _scope, kind, _flags = uapi.ROUTE.unpack_from(message.body)
    if table != uapi.MAIN_TABLE or kind != uapi.UNICAST or tos or family not in _VERSIONS:
        return None
    parts = attributes(message.body, uapi.ROUTE.size)
    to = parts.get(uapi.ROUTE_TO, bytes(4 if family == uapi.INET else 16))
    device = _device(parts)
    if not device or to[:2] == _LINK_LOCAL6:
        return None
    metric = int.from_bytes(parts.get(uapi.ROUTE_METRIC, bytes(4)), sys.byteorder)
    return Route(_VERSIONS[family], length, int.from_bytes(to, "big"), metric, device)


def read_devices(messages: Iterable[Message], *, filtered: frozenset[int] = frozenset()) -> dict[int, Device]:
    """The devices by index; `filtered` are the versions of IP that pass the IP hooks on every bridge."""
    links = map(read_link, messages)
    return {
        one.ifindex: Device(
            name=one.name,
            kind=one.kind,
            is_loopback=one.is_loopback,
            master=one.master,
            filtered=one.filtered | filtered if one.kind == "bridge" else frozenset(),
        )
        for one in links
    }


def _device(parts: Mapping[int, bytes]) -> int:
    """The device of a route's first hop that is not dead, 0 for none."""
    if uapi.ROUTE_DEVICE in parts:
        return int(struct.unpack("=I", parts[uapi.ROUTE_DEVICE])[0])
    hops, offset = parts.get(uapi.ROUTE_HOPS, b""), 0
    while offset + uapi.HOP.size <= len(hops):
        length, flags, _weight, device = uapi.HOP.unpack_from(hops, offset)
        if not flags & uapi.DEAD:
            return int(device)
        offset += max((length + 3) & ~3, uapi.HOP.size)
    return 0
