"""The traffic of a run, the same for every enforcer, and when each part of it was."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

from netqos.model.levels import Direction, Level, PerDirection
from netqos.testing.meter import Source, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.traffic import UDP_PAYLOAD, Datagrams, TcpFlow, Traffic, UdpFlood, arriving
from tests.bench.compare.shortflows import Server, start_flows
from tests.bench.compare.surface import ASKER, RECEIVERS, SENDERS, Policy

METER_S = 0.05
NODE = "node"
NODE_SHARE = 0.25
"""What the node itself receives, in totals of that direction."""

_SHORT_PORT, _NODE_PORT = 7200, 7250
_FLOOD = 1.5
"""L2's flood, in totals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long each part is.

    L1 and L2 alone, then L0 with them; then each level gone and back; then the node itself receives; then short flows.
    """

    before_s: float = 1.0
    join_s: float = 4.5
    gone_s: float = 1.0
    back_s: float = 1.2
    node_s: float = 1.2
    short_s: float = 1.6

    def scaled(self, factor: float) -> Times:
        """All of it longer or shorter."""
        return replace(self, **{one.name: getattr(self, one.name) * factor for one in fields(self)})

    @property
    def greedy_s(self) -> float:
        """From the first flow to the end of the last."""
        parts = [self.join_s, *[self.gone_s, self.back_s] * len(Level), self.node_s]
        return self.before_s + sum(parts) + len(parts) * METER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A time in which nothing was started or stopped. `kind`: join, gone or back, of `level`."""

    kind: str
    level: Level
    start_s: float
    end_s: float


def source_name(way: Direction, level: Level) -> str:
    """A level's source in the series."""
    return f"{way.value} {level.name}"


class Script:
    """Two greedy flows a level, one in each direction, of pods of their own; and a stream to the node itself."""

    def __init__(self, rig: Rig, traffic: Traffic, policy: Policy, *, congestion: str) -> None:
        """Their receivers listen; nothing is sent. Each flow is there twice, as each level comes back once."""

        def made(level: Level) -> list[TcpFlow]:
            out, into = (_pod(pods, level) for pods in (SENDERS, RECEIVERS))
            return [
                traffic.tcp(out, congestion=congestion),
                traffic.tcp(into, congestion=congestion, towards_pod=True),
            ]

        self._first = {level: made(level) for level in Level}
        self._again = {level: made(level) for level in Level}
        place = (rig.node.address, _NODE_PORT)
        with rig.node.entered():
            self._taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._taker.bind(place)
        rate_bps = int(policy.totals_bps.rx * NODE_SHARE)
        self._to_node = UdpFlood(rig.wire, place, Datagrams(rate_bps=rate_bps, segments=4))
        self._traffic = traffic

    def run(self, times: Times) -> tuple[list[Mark], tuple[float, float]]:
        """All of it; the marks in their order, and from when to when the node itself received."""
        marks = []
        for level in (Level.L1, Level.L2):
            _start(self._first[level])
        time.sleep(times.before_s)
        marks.append(_mark("join", Level.L0, times.join_s, partial(_start, self._first[Level.L0])))
        for level in Level:
            marks.append(_mark("gone", level, times.gone_s, partial(_stop, self._first[level])))
            marks.append(_mark("back", level, times.back_s, partial(_start, self._again[level])))
        start_s = time.monotonic()
        self._to_node.start()
        time.sleep(times.node_s)
        end_s = time.monotonic()
        for flow in (flow for flows in self._again.values() for flow in flows):
            flow.check()
        return marks, (start_s, end_s)

    def stop(self) -> None:
        """End all of it."""
        self._to_node.stop()
        self._taker.close()
        self._traffic.stop()


def _mark(kind: str, level: Level, for_s: float, begin: Callable[[], None]) -> Mark:
    start_s = time.monotonic()
    begin()
    time.sleep(for_s)
    mark = Mark(kind=kind, level=level, start_s=start_s, end_s=time.monotonic())
    time.sleep(METER_S)  # so that a reading lies between its end and what comes next
    return mark


def _start(flows: Sequence[TcpFlow]) -> None:
    for flow in flows:
        flow.start()


def _stop(flows: Sequence[TcpFlow]) -> None:
    for flow in flows:
        flow.check()
        flow.stop()


def _pod(pods: Mapping[str, Level], level: Level) -> str:
    return next(name for name, other in pods.items() if other is level)


def sources(rig: Rig) -> dict[str, Source]:
    """What the meter counts: each level's greedy flows, and what is sent to the node."""
    found = {
        source_name(way, level): arriving(rig, _pod(pods, level), way)
        for way, pods in ((Direction.TX, SENDERS), (Direction.RX, RECEIVERS))
        for level in Level
    }
    framing = udp_framing(UDP_PAYLOAD)
    return {**found, NODE: Source(address=rig.node.address, framing=framing, at=rig.node, is_target=True)}


def short_flows(rig: Rig, traffic: Traffic, policy: Policy, times: Times) -> PerDirection[tuple[float, ...]]:
    """Flows of L0 in both directions at once, while L2 floods both and nobody else sends."""
    for way, pods in ((Direction.TX, SENDERS), (Direction.RX, RECEIVERS)):
        datagrams = Datagrams(rate_bps=int(policy.totals_bps[way] * _FLOOD))
        traffic.udp(_pod(pods, Level.L2), datagrams, towards_pod=way is Direction.RX).start()
    time.sleep(times.short_s / 8)
    servers = PerDirection(tx=Server(rig.wire, _SHORT_PORT), rx=Server(rig.wire, _SHORT_PORT + 1))
    asker = rig.pod(ASKER)
    calls = {
        way: start_flows(asker, servers[way], towards_source=way is Direction.RX, for_s=times.short_s)
        for way in Direction
    }
    found = {way: tuple(call.result(timeout_s=times.short_s + 30)) for way, call in calls.items()}
    traffic.stop()
    return PerDirection(tx=found[Direction.TX], rx=found[Direction.RX])
