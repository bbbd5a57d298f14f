"""Devices as the kernel answers of them, from bytes to values. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from netqos_tc import uapi
from netqos_tc.netmsg import Message, attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A device of this namespace.

    `kind` is empty for hardware and loopback, `queue_length` in packets, `master` the device of which it is a part.
    `filtered`: of a bridge, the versions of IP whose frames are asked to pass the IP hooks.
    """

    ifindex: int
    name: str
    mtu: int
    kind: str = ""
    alias: str = ""
    is_up: bool = True
    is_loopback: bool = False
    queue_length: int = 0
    master: int = 0
    filtered: frozenset[int] = frozenset()


def read_link(message: Message) -> Link:
    """A device."""
    _family, _type, ifindex, flags, _change = uapi.IFINFO.unpack_from(message.body)
    parts = attributes(message.body, uapi.IFINFO.size)
    info = attributes(parts.get(uapi.LINK_INFO, b""))
    kind = _text(info.get(uapi.INFO_KIND, b""))
    return Link(
        ifindex=ifindex,
        name=_text(parts[uapi.IFNAME]),
        mtu=_number(parts.get(uapi.MTU)),
        kind=kind,
        alias=_text(parts.get(uapi.ALIAS, b"")),
        is_up=bool(flags & uapi.UP),
        is_loopback=bool(flags & uapi.LOOPBACK),
        queue_length=_number(parts.get(uapi.QUEUE_LENGTH)),
        master=_number(parts.get(uapi.MASTER)),
        filtered=_filtered(info) if kind == "bridge" else frozenset(),
    )


def read_device_bytes(message: Message) -> tuple[int, int]:
    """The bytes that a device has received and sent."""
    (received, _packets), (sent, _sent_packets) = read_device_traffic(message)
    return received, sent


def read_device_traffic(message: Message) -> tuple[tuple[int, int], tuple[int, int]]:
    """The bytes and packets that a device has received, and those that it has sent."""
    packets, sent_packets, received, sent = uapi.STATS64.unpack_from(
        attributes(message.body, 12)[uapi.LINK64]
    )
    return (received, packets), (sent, sent_packets)


def _filtered(info: Mapping[int, bytes]) -> frozenset[int]:
    data = attributes(info.get(uapi.INFO_DATA, b""))
    return frozenset(version for version, kind in uapi.BRIDGE_CALLS.items() if any(data.get(kind, b"")))


def _number(value: bytes | None) -> int:
    return 0 if value is None else int(struct.unpack("=I", value)[0])


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
