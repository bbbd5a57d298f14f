"""The kernel's answers about links, routes and addresses of the network namespace in which the sockets were made.

The kernel answers a request within the call, so nothing here waits on anybody else. Raw netlink and not a library,
by cost: these facts are asked for once a second for ever (docs/decisions tells the figures).
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import socket
from collections.abc import Iterator

from netqos.host import rtwire
from netqos.host.rtwire import DefaultRoute, Link

_SOL_NETLINK = 270
_NETLINK_GET_STRICT_CHK = 12
_READ_BYTES = 65536
_EVENT_BUFFER_BYTES = 2**20
_ATTEMPTS = 3
_DEADLINE_S = 2.0
_MOST_EVENTS = 4096

# RTNLGRP_*: link 1, IPv4 address 5, IPv4 route 7, IPv6 address 9, IPv6 route 11, nexthop 32.
_GROUPS = sum(1 << (group - 1) for group in (1, 5, 7, 9, 11, 32))


class Interrupted(OSError):
    """What was listed changed meanwhile, several times in a row."""


class Requests:
    """Asks one question at a time."""

    def __init__(self, protocol: int = socket.NETLINK_ROUTE) -> None:
        """Open the socket; OSError where this process may open none."""
        self._socket = _open(protocol=protocol)
        self._socket.settimeout(_DEADLINE_S)
        # Since 4.20 the kernel lists only what was asked for; an older one lists all, and we pass over the rest.
        with contextlib.suppress(OSError):
            self._socket.setsockopt(_SOL_NETLINK, _NETLINK_GET_STRICT_CHK, 1)
        self._sequence = itertools.count(1)

    def fileno(self) -> int:
        """A socket of the namespace, for questions of another kind."""
        return self._socket.fileno()

    def link(self, *, index: int = 0, name: str = "") -> Link | None:
        """One link by its index or one of its names, None when there is none."""
        try:
            (payload,) = self._ask(rtwire.RTM_GETLINK, 0, rtwire.link_request(index=index, name=name))
        except OSError as problem:
            if problem.errno in {errno.ENODEV, errno.EINVAL, errno.ERANGE}:
                return None
            raise
        return rtwire.decode_link(payload)

    def members(self, master: int) -> tuple[Link, ...]:
        """The links that belong to a bond, team or bridge."""
        found = self._dump(rtwire.RTM_GETLINK, rtwire.link_request(master=master))
        links = [rtwire.decode_link(payload) for payload in found]
        return tuple(link for link in links if link.master == master)

    def default_routes(self) -> tuple[DefaultRoute, ...]:
        """The default routes of both families, in the order in which the kernel has them."""
        found = itertools.chain.from_iterable(
            self._dump(rtwire.RTM_GETROUTE, rtwire.route_request(family))
            for family in (socket.AF_INET, socket.AF_INET6)
        )
        routes = (rtwire.decode_default_route(one) for one in found if rtwire.is_default_route(one))
        return tuple(route for route in routes if route is not None)

    def nexthop_devices(self, identity: int, *, depth: int = 2) -> tuple[int, ...]:
        """The devices of a nexthop object, through groups."""
        (payload,) = self._ask(rtwire.RTM_GETNEXTHOP, 0, rtwire.nexthop_request(identity))
        device, members = rtwire.decode_nexthop(payload)
        deeper = (self.nexthop_devices(one, depth=depth - 1) for one in members) if depth else ()
        return ((device,) if device else ()) + tuple(itertools.chain.from_iterable(deeper))

    def nics(self) -> tuple[Link, ...]:
        """The links that have no kind: hardware, and the loopback device."""
        return tuple(link for link in map(rtwire.decode_link, self.links()) if not link.kind)

    def links(self) -> list[memoryview]:
        """The raw messages of all links."""
        return self._dump(rtwire.RTM_GETLINK, rtwire.link_request())

    def host_routes(self) -> dict[str, int]:
        """The device by address, of every route of the main table that leads to one address alone."""
        found: dict[str, int] = {}
        for family in (socket.AF_INET, socket.AF_INET6):
            for payload in self._dump(rtwire.RTM_GETROUTE, rtwire.route_request(family)):
                found.update(rtwire.decode_host_route(payload))
        return found

    def resolve(self, address: str) -> None:
        """Have the kernel ask on the link who has an address, unless a gateway comes before it; waits for no answer."""
        (payload,) = self._ask(rtwire.RTM_GETROUTE, 0, rtwire.route_to_request(address))
        device = rtwire.decode_link_of_route(payload)
        if device:
            flags = rtwire.NLM_F_CREATE | rtwire.NLM_F_ACK
            tuple(self._ask(rtwire.RTM_NEWNEIGH, flags, rtwire.resolve_request(address, device)))

    def dump(self, kind: int, payload: bytes) -> list[memoryview]:
        """The payloads of the answers to a dump request of any kind; OSError where it is refused."""
        return self._dump(kind, payload)

    def addresses(self) -> frozenset[str]:
        """Every address of this namespace, in its usual spelling."""
        found = map(rtwire.decode_address, self._dump(rtwire.RTM_GETADDR, rtwire.address_request()))
        return frozenset(address for address in found if address is not None)

    def close(self) -> None:
        """Release the socket."""
        self._socket.close()

    def _dump(self, kind: int, payload: bytes) -> list[memoryview]:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(Interrupted):
                return list(self._ask(kind, rtwire.NLM_F_DUMP, payload))
        raise Interrupted(errno.EINTR, "the list changed while it was read")

    def _ask(self, kind: int, flags: int, payload: bytes) -> Iterator[memoryview]:
        """The answer's payloads. An answer that is left unread is known by its sequence and passed over later."""
        sequence = next(self._sequence)
        self._socket.send(rtwire.request(kind, flags, payload, sequence=sequence))
        was_interrupted = False
        while True:
            for met, met_flags, met_sequence, answer in rtwire.messages(self._socket.recv(_READ_BYTES)):
                if met_sequence != sequence:
                    continue
                was_interrupted |= bool(met_flags & rtwire.NLM_F_DUMP_INTR)
                if met in {rtwire.NLMSG_DONE, rtwire.NLMSG_ERROR}:
                    if code := rtwire.error_code(answer):
                        raise OSError(code, os.strerror(code))
                    if was_interrupted:
                        raise Interrupted(errno.EINTR, "the list changed while it was read")
                    return
                yield answer
                if not flags:
                    return


class Events:
    """What changed, as hints; when hints were lost it says so, and the reader looks at everything."""

    def __init__(self) -> None:
        """Subscribe; OSError where this process may open no socket."""
        self._socket = _open(_GROUPS)
        self._socket.setblocking(False)  # noqa: FBT003 - the standard library's signature
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER_BYTES)

    def fileno(self) -> int:
        """Readable when something has happened."""
        return self._socket.fileno()

    def take(self) -> Iterator[tuple[int, memoryview]]:
        """(type, payload) of each event since the last call; NLMSG_OVERRUN where some were lost. Never waits."""
        for _ in range(_MOST_EVENTS):
            try:
                data = self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError as problem:
                if problem.errno != errno.ENOBUFS:
                    raise
                yield rtwire.NLMSG_OVERRUN, memoryview(b"")
                continue
            for kind, _flags, _sequence, payload in rtwire.messages(data):
                yield kind, payload
        yield rtwire.NLMSG_OVERRUN, memoryview(b"")

    def close(self) -> None:
        """Release the socket."""
        self._socket.close()


def _open(groups: int = 0, *, protocol: int = socket.NETLINK_ROUTE) -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        made.bind((0, groups))
    except OSError:
        made.close()
        raise
    return made
