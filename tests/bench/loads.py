"""Traffic of one level for onsets, each kind started and stopped like any flow: see `netqos.testing.traffic.Flow`."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from netqos.model.levels import Direction
from netqos.testing.namespaces import Namespace
from netqos.testing.netns import Rig
from netqos.testing.processes import Call
from netqos.testing.traffic import Datagrams, Flow, Traffic

BURST_S, BURST_EVERY_S = 0.2, 1.0
SHORT_FLOWS, SHORT_AT_ONCE = 200, 16
MANY = 64
_FLOOD = 1.5
_SEND_BUFFER = 1 << 17
"""Small, so that little is still on its way when a burst ends."""

_PORT = 7300


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who sends, where to, and how much it may: `share_bps` is the level's, `total_bps` the link's."""

    rig: Rig
    traffic: Traffic
    pod: str
    direction: Direction
    share_bps: int
    total_bps: int

    @property
    def ends(self) -> tuple[Namespace, Namespace]:
        """The sender and the receiver."""
        pod, wire = self.rig.pod(self.pod), self.rig.wire
        return (pod, wire) if self.direction is Direction.TX else (wire, pod)


Load = Callable[[Asked], Flow]


def one_flow(asked: Asked) -> Flow:
    """One greedy TCP connection."""
    return asked.traffic.tcp(asked.pod, towards_pod=asked.direction is Direction.RX)


def many_flows(asked: Asked) -> Flow:
    """Sixty-four greedy TCP connections."""
    return asked.traffic.tcp(asked.pod, towards_pod=asked.direction is Direction.RX, streams=MANY)


def udp_flood(asked: Asked) -> Flow:
    """One and a half times the link as UDP."""
    datagrams = Datagrams(rate_bps=int(asked.total_bps * _FLOOD))
    return asked.traffic.udp(asked.pod, datagrams, towards_pod=asked.direction is Direction.RX)


def short_flows(asked: Asked) -> Flow:
    """Two hundred TCP connections, sixteen at a time, which together last two seconds at the level's share."""
    size = asked.share_bps // 8 * 2 // SHORT_FLOWS
    return _Child(asked, lambda place: _send_short(place, size))


def bursts(asked: Asked) -> Flow:
    """One TCP connection that sends all it can for 200 ms of each second."""
    return _Child(asked, _send_bursts)


class _Child:
    """A sending child process, and one that takes what it sends."""

    def __init__(self, asked: Asked, work: Callable[[tuple[str, int]], None]) -> None:
        self._source, sink = asked.ends
        place = (sink.address, _PORT)
        with sink.entered():
            listener = socket.create_server(place, backlog=64)
        self._taker: Call[None] = sink.fork(_take_all, listener)
        listener.close()
        self._work = lambda: work(place)
        self._call: Call[None] | None = None

    def start(self) -> None:
        """Send from now on."""
        self._call = self._source.fork(self._work)

    def stop(self) -> None:
        """End both."""
        for call in (self._call, self._taker):
            if call is not None:
                call.kill()


def _send_bursts(place: tuple[str, int]) -> None:
    data = bytes(1 << 15)
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        one.connect(place)
        begin_s = time.monotonic()
        while True:
            while time.monotonic() < begin_s + BURST_S:
                one.send(data)
            begin_s += BURST_EVERY_S
            time.sleep(max(0.0, begin_s - time.monotonic()))


def _send_short(place: tuple[str, int], size: int) -> None:
    data = bytes(size)
    with ThreadPoolExecutor(SHORT_AT_ONCE) as pool:
        for _ in range(SHORT_FLOWS):
            pool.submit(_send_one, place, data)


def _send_one(place: tuple[str, int], data: bytes) -> None:
    with contextlib.suppress(OSError), socket.create_connection(place) as one:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        one.recv(1)


def _take_all(listener: socket.socket) -> None:
    """Take whatever comes on every connection, and end each when its sender has."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    selector.register(listener.accept()[0], selectors.EVENT_READ)
                else:
                    _take(selector, key)


def _take(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    one = key.fileobj
    assert isinstance(one, socket.socket)
    with contextlib.suppress(OSError):
        if one.recv(1 << 18):
            return
    selector.unregister(one)
    one.close()
