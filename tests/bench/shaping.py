"""shaping-cost and local: what a node carries with 500 leaves in each direction, against the same node without netqos.

Every class has far more than is needed, so that nothing but the work for each packet makes a difference. The two nodes
stand side by side and carry traffic in turns of a second, so that whatever else the machine does meets both; a figure
is the median quotient of neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import median
from netqos.testing.daemon import Document, workload
from netqos.testing.meter import Meter, Source, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.traffic import Datagrams, TcpFlow, Traffic, arriving
from tests.bench import crowd
from tests.bench.figures import Figure, Target, at_least, number
from tests.bench.options import Options, say
from tests.bench.shapers import running

LEAVES = 500
_PODS = ("web", "api", "batch", "lookup")
_SMALL = 64
_WARM_S, _MEASURE_S = 0.3, 0.7
_MUCH_BPS = 4_000_000_000
_LOCAL_PORT = 7300
_TURNS = 3
_GIGABITS, _PACKETS = ("Gbit/s", 1e9), ("thousand packets a second", 1e3)

Carry = Callable[[Rig], float]
"""Runs traffic on a rig and tells what it carried: bits or packets a second."""


def shaping_cost(options: Options) -> list[Figure]:
    """Greedy TCP, and packets of 64 bytes from one and from four senders, in each direction."""
    kinds = []
    for way in Direction:
        kinds.append(_Kind(what=f"{way.pod_word}, bulk TCP", carry=_bulk(way), target=at_least(0.95)))
        kinds += [
            _Kind(
                what=f"{way.pod_word}, 64-byte UDP from {senders}", carry=_small(way, senders), unit=_PACKETS
            )
            for senders in (1, 4)
        ]
    return _figures("shaping-cost", kinds, options)


def local(options: Options) -> list[Figure]:
    """Greedy TCP from one pod of the node to another, which neither level nor limit holds."""
    return _figures("local", [_Kind(what="pod to pod TCP", carry=_between, target=at_least(0.9))], options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of traffic, and the unit in which it is told: its name and how much of what was counted it is."""

    what: str
    carry: Carry
    target: Target | None = None
    unit: tuple[str, float] = _GIGABITS


def _figures(bench: str, kinds: Sequence[_Kind], options: Options) -> list[Figure]:
    pods = (*_PODS, crowd.NAME)
    with Rig(pods=pods) as shaped, Rig(pods=pods) as bare:
        for rig in (shaped, bare):
            crowd.settle(rig, LEAVES)
        with running(shaped, _document(shaped)):
            time.sleep(1)
            return [_figure(bench, kind, (shaped, bare), options) for kind in kinds]


def _figure(bench: str, kind: _Kind, rigs: tuple[Rig, Rig], options: Options) -> Figure:
    say(f"{bench}: {kind.what}")
    shaped, bare = rigs
    pairs = [(kind.carry(shaped), kind.carry(bare)) for _ in range(_TURNS * options.runs)]
    unit, one = kind.unit
    with_it, without = (number(median([pair[place] / one for pair in pairs])) for place in (0, 1))
    return Figure(
        bench=bench,
        what=f"{kind.what}: with {LEAVES} leaves against without netqos",
        unit="",
        runs=tuple(with_it / without for with_it, without in pairs),
        target=kind.target,
        note=f"{with_it} against {without} {unit}",
    )


def _document(rig: Rig) -> Document:
    workloads = [
        *crowd.workloads(LEAVES - len(_PODS), limit=lambda number: "20M" if number % 2 else None),
        *(workload(rig, name, Level(place % 3)) for place, name in enumerate(_PODS)),
    ]
    return crowd.config(workloads, total="100G", rx="80G")


def _bulk(way: Direction) -> Carry:
    def carry(rig: Rig) -> float:
        traffic = Traffic(rig)
        traffic.tcp("web", towards_pod=way is Direction.RX).start()
        try:
            return _rate_bps(rig, {"web": arriving(rig, "web", way)})
        finally:
            traffic.stop()

    return carry


def _small(way: Direction, senders: int) -> Carry:
    framing = udp_framing(_SMALL)

    def carry(rig: Rig) -> float:
        traffic = Traffic(rig)
        names = _PODS[:senders]
        datagrams = Datagrams(rate_bps=_MUCH_BPS, payload=_SMALL, segments=1)
        for name in names:
            traffic.udp(name, datagrams, towards_pod=way is Direction.RX).start()
        try:
            metered = {name: arriving(rig, name, way, framing=framing) for name in names}
            return _rate_bps(rig, metered) / 8 / (framing.payload + framing.headers + 14)
        finally:
            traffic.stop()

    return carry


def _between(rig: Rig) -> float:
    source, sink = rig.pod("web"), rig.pod("api")
    flow = TcpFlow(source, sink, port=_LOCAL_PORT, address=sink.address, congestion="cubic")
    flow.start()
    try:
        return _rate_bps(rig, {"web": Source(address=source.address, at=sink)})
    finally:
        flow.stop()


def _rate_bps(rig: Rig, metered: dict[str, Source]) -> float:
    time.sleep(_WARM_S)
    with Meter(rig.wire, metered, interval_s=0.05) as meter:
        time.sleep(_MEASURE_S)
        series = meter.stop()
    return sum(series.rate_bps(name, series.at_s[0], series.at_s[-1]) for name in metered)
