"""What the kernel reports of a network namespace's traffic control and nft, counted by kind.

The kernel reports a single qdisc or class that was only asked for (RTM_GETQDISC, RTM_GETTCLASS; net/sched/sch_api.c) in
the same words as one that was changed: `qdisc told`, `class told` and `filter told` may be either.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from netqos.testing.namespaces import Namespace
from netqos.testing.processes import Call

_ROUTE, _NETFILTER = 0, 12
_TC_GROUP, _NFT_GROUP = 1 << 3, 1 << 6  # RTNLGRP_TC is 4, NFNLGRP_NFTABLES is 7
_NFT_NEWGEN = (10 << 8) | 15
_NAMES = {
    36: "qdisc told",
    37: "qdisc deleted",
    40: "class told",
    41: "class deleted",
    44: "filter told",
    45: "filter deleted",
    _NFT_NEWGEN: "nft transaction",
}
_SO_RCVBUFFORCE = 33  # include/uapi/asm-generic/socket.h
_ROOM_BYTES = 1 << 23
_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BxxxiII")  # include/uapi/linux/rtnetlink.h: family, device, handle, parent
_DELQDISC, _ROOT = 37, 0xFFFFFFFF
_READY = b"!"


class Watch:
    """Counts reports while it is open; use it in a `with` statement, then ask `counts`."""

    def __init__(self, namespace: Namespace) -> None:
        """Nothing is watched yet."""
        self._namespace = namespace
        self._call: Call[dict[str, int]] | None = None
        self._stop = -1
        self.counts: dict[str, int] = {}
        """Reports by kind, known after the end: `qdisc deleted` (a root is `root deleted` too), `nft transaction`."""

    def __enter__(self) -> Self:
        """Watch from now on."""
        stop, self._stop = os.pipe()
        ready, started = os.pipe()
        self._call = self._namespace.fork(_count, stop, started)
        os.close(stop)
        os.close(started)
        try:
            os.read(ready, 1)
        finally:
            os.close(ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Count until now."""
        assert self._call is not None
        os.write(self._stop, _READY)
        os.close(self._stop)
        self.counts = self._call.result(timeout_s=10)


def _count(stop: int, started: int) -> dict[str, int]:
    with (
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _ROUTE) as route,
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER) as netfilter,
    ):
        for one, group in ((route, _TC_GROUP), (netfilter, _NFT_GROUP)):
            _enlarge(one)
            one.bind((0, group))
        os.write(started, _READY)
        return dict(_collect(stop, (route, netfilter)))


def _enlarge(one: socket.socket) -> None:
    """Room for a storm of reports; within a user namespace the machine's limit holds."""
    try:
        one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
    except PermissionError:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM_BYTES)


def _collect(stop: int, sockets: tuple[socket.socket, ...]) -> Counter[str]:
    found: Counter[str] = Counter()
    while True:
        ready, _, _ = select.select([stop, *(one.fileno() for one in sockets)], [], [])
        for one in sockets:
            if one.fileno() in ready:
                found.update(_names(one.recv(1 << 20)))
        if ready == [stop]:
            return found


def _names(data: bytes) -> Iterator[str]:
    place = 0
    while place < len(data):
        size, kind, *_ = _HEADER.unpack_from(data, place)
        name = _NAMES.get(kind)
        if name is not None:
            yield name
        if kind == _DELQDISC and _TCMSG.unpack_from(data, place + _HEADER.size)[-1] == _ROOT:
            yield "root deleted"
        place += (size + 3) & ~3
