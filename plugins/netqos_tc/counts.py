"""The few counters that the fast loop reads of an answer, found in place: nothing else of it is taken apart. Pure.

An answer is a whole netlink message with its header. A look takes these from ten answers, fifty times a second.
"""

from __future__ import annotations

import struct
from typing import Final

from netqos_tc import netmsg, uapi

_ATTRIBUTE: Final = struct.Struct("=HH")
_TYPE_MASK: Final = 0x3FFF
_TC: Final = netmsg.HEADER.size + uapi.TCMSG.size
_DEVICE: Final = netmsg.HEADER.size + 12  # struct if_stats_msg


def kind(answer: bytes) -> int:
    """The message's type."""
    return int(netmsg.HEADER.unpack_from(answer)[1])


def sent_bytes(answer: bytes) -> int:
    """What a class or qdisc has sent."""
    place = _find(answer, _stats(answer), uapi.STATS_BASIC)
    return 0 if place is None else int(uapi.BASIC.unpack_from(answer, place[0])[0])


def waiting(answer: bytes) -> tuple[int, int, int]:
    """Of a class or qdisc: packets and bytes that wait, packets dropped."""
    place = _find(answer, _stats(answer), uapi.STATS_QUEUE)
    if place is None:
        return 0, 0, 0
    packets, waiting_bytes, drops, _requeues, _over = uapi.QUEUE.unpack_from(answer, place[0])
    return packets, waiting_bytes, drops


def leaf(body: bytes) -> tuple[int, int, int, int]:
    """Of a class, from a message without its header: bytes and packets sent, packets dropped, bytes that wait."""
    stats = _find(body, (uapi.TCMSG.size, len(body)), uapi.STATS2) or (0, 0)
    basic, queue = _find(body, stats, uapi.STATS_BASIC), _find(body, stats, uapi.STATS_QUEUE)
    sent_bytes, sent_packets = uapi.BASIC.unpack_from(body, basic[0]) if basic else (0, 0)
    _packets, backlog, drops, _requeues, _over = uapi.QUEUE.unpack_from(body, queue[0]) if queue else (0,) * 5
    return sent_bytes, sent_packets, drops, backlog


def device_bytes(answer: bytes) -> tuple[int, int]:
    """What a device has received and sent."""
    place = _find(answer, (_DEVICE, len(answer)), uapi.LINK64)
    if place is None:
        raise ValueError("the kernel gave no counters of a device")
    _packets, _sent_packets, received, sent = uapi.STATS64.unpack_from(answer, place[0])
    return received, sent


def _stats(answer: bytes) -> tuple[int, int]:
    return _find(answer, (_TC, len(answer)), uapi.STATS2) or (0, 0)


def _find(answer: bytes, place: tuple[int, int], kind: int) -> tuple[int, int] | None:
    """Where the value of the first attribute of a kind begins and ends, None where there is none."""
    offset, end = place
    unpack = _ATTRIBUTE.unpack_from
    while offset + 4 <= end:
        length, met = unpack(answer, offset)
        if length < 4 or offset + length > end:
            raise ValueError(f"netlink attribute of {length} bytes where {end - offset} are left")
        if met & _TYPE_MASK == kind:
            return offset + 4, offset + length
        offset += (length + 3) & ~3
    return None
