"""Probes: how long a small request takes. Each runs in a child process of its own inside a namespace.

The echo probe is ping's: an ICMP echo request of 64 bytes that the other side's kernel answers, the arrival stamped
by the kernel. So neither an answering program nor this one's wake-up counts, which on a loaded machine weigh more.
"""

from __future__ import annotations

import math
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from netqos.testing.analysis import percentile
from netqos.testing.namespaces import Foothold
from netqos.testing.processes import Call

_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_SO_TIMESTAMPNS = 35  # include/uapi/asm-generic/socket.h
_PAYLOAD = 56
_LINGER_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Times of the requests that were answered, in seconds, and when each was sent; moments are time.monotonic's.

    `lost_at_s` holds the moments of those that were not answered.
    """

    seconds: tuple[float, ...]
    sent_at_s: tuple[float, ...]
    lost_at_s: tuple[float, ...] = ()

    @property
    def lost(self) -> int:
        """The number of requests without an answer."""
        return len(self.lost_at_s)

    def between(self, start_s: float, end_s: float) -> Delays:
        """Those sent within a time."""
        answered = zip(self.seconds, self.sent_at_s, strict=True)
        kept = [(delay, at) for delay, at in answered if start_s <= at < end_s]
        return Delays(
            seconds=tuple(delay for delay, _ in kept),
            sent_at_s=tuple(at for _, at in kept),
            lost_at_s=tuple(at for at in self.lost_at_s if start_s <= at < end_s),
        )

    def percentile_s(self, percent: float) -> float:
        """Nearest rank; a lost request counts as infinitely long."""
        return percentile([*self.seconds, *[math.inf] * self.lost], percent)


def start_echo(namespace: Foothold, address: str, *, count: int, interval_s: float = 0.01) -> Call[Delays]:
    """Send `count` echo requests (IPv4), one each interval, from now on; the result waits a second for the last."""
    return namespace.fork(_echo, address, count, interval_s)


def start_connects(
    namespace: Foothold,
    address: str,
    port: int,
    *,
    count: int,
    interval_s: float = 0.02,
    timeout_s: float = 5,
) -> Call[Delays]:
    """Open `count` TCP connections one after the other and close them at once; failures count as lost."""
    return namespace.fork(_connects, (address, port), count, interval_s, timeout_s)


def listen(namespace: Foothold, port: int) -> Call[None]:
    """Accept and close connections on a port until killed with the namespace; it listens when this returns."""
    with namespace.entered():
        server = socket.create_server((namespace.address, port), backlog=128)
    call = namespace.fork(_serve, server)
    server.close()
    return call


def _echo(address: str, count: int, interval_s: float) -> Delays:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        raw.connect((address, 0))
        sent, got = _exchange(raw, count, interval_s)
    offset_s = time.time() - time.monotonic()
    return Delays(
        seconds=tuple(got[number] - sent[number] for number in sent if number in got),
        sent_at_s=tuple(sent[number] - offset_s for number in sent if number in got),
        lost_at_s=tuple(sent[number] - offset_s for number in sent if number not in got),
    )


def _exchange(raw: socket.socket, count: int, interval_s: float) -> tuple[dict[int, float], dict[int, float]]:
    identity = os.getpid() & 0xFFFF
    sent: dict[int, float] = {}
    got: dict[int, float] = {}
    deadline_s = time.monotonic()
    while len(sent) < count:
        _receive(raw, identity, got, until_s=deadline_s)
        number = len(sent)
        sent[number] = time.time()
        raw.send(_request(identity, number))
        deadline_s += interval_s
    end_s = time.monotonic() + _LINGER_S
    while len(got) < count and time.monotonic() < end_s:
        _receive(raw, identity, got, until_s=min(end_s, time.monotonic() + 0.05))
    return sent, got


def _receive(raw: socket.socket, identity: int, got: dict[int, float], *, until_s: float) -> None:
    """Take answers until a moment; the kernel's stamp of an arrival is on the clock of time.time."""
    while select.select([raw], [], [], max(0.0, until_s - time.monotonic()))[0]:
        data, ancillary, _, _ = raw.recvmsg(256, 64)
        kind, _, _, own, _, number = struct.unpack_from("!BBHHHI", data, (data[0] & 15) * 4)
        if kind == _ECHO_REPLY and own == identity and ancillary:
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            got.setdefault(number, seconds + nanoseconds * 1e-9)


def _request(identity: int, number: int) -> bytes:
    head = struct.pack("!BBHHH", _ECHO_REQUEST, 0, 0, identity, number & 0xFFFF)
    body = struct.pack("!I", number) + bytes(_PAYLOAD - 4)
    total = sum(struct.unpack(f"!{(len(head) + len(body)) // 2}H", head + body))
    total = (total >> 16) + (total & 0xFFFF)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    return struct.pack("!BBHHH", _ECHO_REQUEST, 0, checksum, identity, number & 0xFFFF) + body


def _connects(place: tuple[str, int], count: int, interval_s: float, timeout_s: float) -> Delays:
    seconds: list[float] = []
    reached: list[float] = []
    lost: list[float] = []
    for _ in range(count):
        start_s = time.monotonic()
        try:
            socket.create_connection(place, timeout=timeout_s).close()
        except OSError:
            lost.append(start_s)
        else:
            seconds.append(time.monotonic() - start_s)
            reached.append(start_s)
        time.sleep(interval_s)
    return Delays(seconds=tuple(seconds), sent_at_s=tuple(reached), lost_at_s=tuple(lost))


def _serve(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        connection.close()


def merged(parts: Sequence[Delays]) -> Delays:
    """Several probes' results as one, in the order given."""
    return Delays(
        seconds=tuple(delay for part in parts for delay in part.seconds),
        sent_at_s=tuple(at for part in parts for at in part.sent_at_s),
        lost_at_s=tuple(at for part in parts for at in part.lost_at_s),
    )
