"""Keeps routes and devices as they are now, and notices what others change at the hooks and in the trees of devices.

The kernel says by itself when a route, a device or a filter changes, so nothing is read again and again. Our own
writes are told from others' by the port that they came from. When messages are lost (ENOBUFS) everything counts as
changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from netqos_tc import netmsg, numbers, routing, uapi
from netqos_tc.links import read_link
from netqos_tc.netlink import Channel
from netqos_tc.netmsg import Message
from netqos_tc.places import Device, Routes

_GROUPS: Final = uapi.LINK_GROUP | uapi.TC_GROUP | uapi.ROUTE4_GROUP | uapi.ROUTE6_GROUP
_DATAGRAM: Final = 64 * 1024
_BUFFER: Final = 4 * 1024 * 1024
_SO_RCVBUFFORCE: Final = 33  # beyond net.core.rmem_max, with CAP_NET_ADMIN
_SO_ATTACH_FILTER: Final = 26
_STEP: Final = struct.Struct(
    "=HBBI"
)  # struct sock_filter; words are loaded as of the network's order (bpf(4))
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_PORT_AT: Final = 12  # nlmsg_pid
_BRIDGE_FILTERS: Final = {
    version: Path(f"/proc/sys/net/bridge/bridge-nf-call-{word}tables")
    for version, word in {4: "ip", 6: "ip6"}.items()
}
_HOOK_PLACES: Final = frozenset({uapi.CLSACT, uapi.HOOK_EGRESS})
_AT_HOOKS: Final = frozenset({uapi.NEWQDISC, uapi.DELQDISC, uapi.NEWTFILTER, uapi.DELTFILTER})
_IN_TREES: Final = _AT_HOOKS | {uapi.NEWTCLASS, uapi.DELTCLASS}


class Surroundings:
    """What the namespace of the calling thread looks like around our objects."""

    def __init__(self, route: Channel) -> None:
        """`route` stays the caller's; what it writes is no change."""
        self._route = route
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self._socket.bind((0, _GROUPS))
        self._socket.settimeout(0)
        self._filter = BridgeFilter()
        self._is_stale = True
        self._changed_hooks: set[int] = set()
        self._are_all_hooks_changed = True
        self._touched: set[int] = set()
        self._are_all_touched = True
        self.routes = Routes()
        self.devices: Mapping[int, Device] = {}

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        self._filter.close()

    def ignore(self, port: int) -> None:
        """Hear nothing that comes from one port: the fast loop's, whose every question the kernel answers to all."""
        steps = (
            _STEP.pack(_LOAD_WORD, 0, 0, _PORT_AT),
            _STEP.pack(_JUMP_EQUAL, 0, 1, socket.htonl(port)),
            _STEP.pack(_RETURN, 0, 0, 0),
            _STEP.pack(_RETURN, 0, 0, 0xFFFFFFFF),
        )
        code = ctypes.create_string_buffer(b"".join(steps))
        program = struct.pack("HP", len(steps), ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)

    def look(self, watched: Collection[int] = ()) -> frozenset[int] | None:
        """Bring `routes` and `devices` up to date; what changes from now on is a change.

        The devices at whose hooks others have changed something since the last time; None for all.
        """
        self._drain(watched)
        changed = None if self._are_all_hooks_changed else frozenset(self._changed_hooks)
        self._changed_hooks.clear()
        self._are_all_hooks_changed = False
        if self._is_stale:
            self._is_stale = False
            dumps = [self._route.dump(routing.dump_routes(one)) for one in (socket.AF_INET, socket.AF_INET6)]
            self.routes = routing.read_routes(message for dump in dumps for message in dump)
            links = self._route.dump(routing.dump_links())
            self.devices = routing.read_devices(links, filtered=self._filter.read())
        return changed

    def is_changed(self, watched: Collection[int]) -> bool:
        """Whether routes or hooks have changed since `look`, or one of the watched devices went or is down."""
        self._drain(watched)
        self._is_stale = self._is_stale or self._filter.is_changed()
        return self._is_stale or self._are_all_hooks_changed or bool(self._changed_hooks)

    def take_touched(self) -> frozenset[int] | None:
        """The devices in whose trees others have changed something, up to the last look, since this was asked last.

        None for all.
        """
        touched = None if self._are_all_touched else frozenset(self._touched)
        self._touched.clear()
        self._are_all_touched = False
        return touched

    def _drain(self, watched: Collection[int]) -> None:
        for port, message in self._events():
            if message.type in {uapi.NEWROUTE, uapi.DELROUTE}:
                self._is_stale = self._is_stale or routing.read_route(message) is not None
            elif message.type in {uapi.NEWLINK, uapi.DELLINK}:
                self._note_ifb(message)
                self._is_stale = self._is_stale or self._is_link_changed(message, watched)
            elif port != self._route.port:
                self._note_control(message)

    def _is_link_changed(self, message: Message, watched: Collection[int]) -> bool:
        """Whether a device becomes a port, or no longer is one; a watched one that goes down takes its routes along.

        So is one of others that takes the IFB's name, or gives it up.

        Of routes of IPv4 that go with their device the kernel says nothing. A bridge's own messages about its ports
        (of the family AF_BRIDGE) name no kind and are not read.
        """
        family, _type, ifindex, flags, _change = uapi.IFINFO.unpack_from(message.body)
        known = self.devices.get(ifindex)
        if message.type == uapi.DELLINK or (ifindex in watched and not flags & uapi.UP):
            is_ours = ifindex == numbers.IFB_INDEX  # the audit misses it by itself
            return ifindex in watched or (
                not is_ours and known is not None and known.name == numbers.IFB_NAME
            )
        if family:
            return False
        link = read_link(message)
        names = {link.name, known.name if known is not None else ""}
        is_renamed = len(names) == 2 and numbers.IFB_NAME in names and ifindex != numbers.IFB_INDEX
        return is_renamed or link.master != (known.master if known is not None else 0)

    def _note_ifb(self, message: Message) -> None:
        """Without the IFB each redirect leads nowhere, and nothing is said of it."""
        if message.type == uapi.DELLINK and uapi.IFINFO.unpack_from(message.body)[2] == numbers.IFB_INDEX:
            self._are_all_hooks_changed = True

    def _note_control(self, message: Message) -> None:
        """Note that a hook, a filter at its egress, an action, or something in a tree is made, changed or removed."""
        if message.type in {uapi.NEWACTION, uapi.DELACTION}:
            self._are_all_hooks_changed = True
        elif message.type in _IN_TREES:
            _family, ifindex, _handle, parent, _info = uapi.TCMSG.unpack_from(message.body)
            if parent not in _HOOK_PLACES:
                self._touched.add(ifindex)
            elif message.type in _AT_HOOKS:
                self._changed_hooks.add(ifindex)

    def _events(self) -> Iterator[tuple[int, Message]]:
        """What has happened since the last time: the port of who did it, and the message."""
        while True:
            try:
                data = self._socket.recv(_DATAGRAM)
            except BlockingIOError:
                return
            except OSError as problem:
                if problem.errno != errno.ENOBUFS:
                    raise
                self._is_stale = self._are_all_hooks_changed = self._are_all_touched = True
                continue
            port = netmsg.HEADER.unpack_from(data)[4]
            for message in netmsg.messages(data):
                yield port, message


class BridgeFilter:
    """What the namespace of the calling thread says of br_netfilter: whether bridged frames pass the IP hooks.

    The kernel says nothing when that changes. The files stay those of the namespace in which they were opened.
    """

    def __init__(self) -> None:
        """Open what is there: without the module nothing is, and no frame passes."""
        self._files: dict[int, BinaryIO] = {}
        self._last = frozenset[int]()
        self.read()

    def read(self) -> frozenset[int]:
        """The versions of IP whose frames pass."""
        self._last = frozenset(version for version in _BRIDGE_FILTERS if self._is_on(version))
        return self._last

    def is_changed(self) -> bool:
        """Whether it is otherwise than at the last `read`."""
        return any(self._is_on(version) != (version in self._last) for version in _BRIDGE_FILTERS)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _is_on(self, version: int) -> bool:
        try:
            if version not in self._files:
                self._files[version] = _BRIDGE_FILTERS[version].open("rb", buffering=0)
            file = self._files[version]
            file.seek(0)
            return file.read(8).strip() not in {b"", b"0"}
        except OSError:
            return False
