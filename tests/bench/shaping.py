"""shaping-cost and local: what a node carries with 500 leaves in each direction, against the same node without netqos.

Every class has far more than is needed, so that nothing but the work for each packet makes a difference. The nodes
stand side by side and carry traffic in turns of a second, so that whatever else the machine does meets all; a figure
is the median quotient of neighbours. A third node has HTB and nft by hand with four leaves and nobody behind them: what
HTB itself costs there is not netqos'.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from netqos.model.levels import Direction, Level
from netqos.testing import nexthop
from netqos.testing.analysis import median
from netqos.testing.daemon import Document, workload
from netqos.testing.meter import Meter, Source, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.networks import ROUTED, Network
from netqos.testing.traffic import Datagrams, TcpFlow, Traffic, arriving
from tests.bench import baseline, crowd
from tests.bench.figures import Figure, Target, at_least, number
from tests.bench.options import Options, say
from tests.bench.shapers import Case, running

LEAVES = 500
_PODS = ("web", "api", "batch", "lookup")
_SMALL = 64
_WARM_S, _MEASURE_S = 0.3, 0.7
_MUCH_BPS = 4_000_000_000
_TOTALS_G = {Direction.TX: 100, Direction.RX: 80}
_LINK_BPS = 10_000_000_000
_LOCAL_PORT = 7300
_TURNS = 3
_GIGABITS, _PACKETS = ("Gbit/s", 1e9), ("thousand packets a second", 1e3)

Carry = Callable[[Rig], float]
"""Runs traffic on a rig and tells what it carried: bits or packets a second."""


def shaping_cost(options: Options) -> list[Figure]:
    """Greedy TCP, as fast as the cores carry it and over a link, and packets of 64 bytes from one and four senders."""
    with nodes() as (shaped, bare), by_hand() as static:
        figures = [
            _figure("shaping-cost", kind, (shaped, bare, static[way]), options)
            for way in Direction
            for kind in _kinds(way)
        ]
    with nodes(Network(hop=True)) as rigs:
        hops = [rig.hop for rig in rigs if rig.hop is not None]
        for hop, way in itertools.product(hops, Direction):
            nexthop.narrow(hop, way, _LINK_BPS)
        linked = [_Kind(what=_over_link(way), carry=_bulk(way), target=at_least(0.95)) for way in Direction]
        return [*figures, *(_figure("shaping-cost", kind, rigs, options) for kind in linked)]


def _over_link(way: Direction) -> str:
    return f"{way.pod_word}, bulk TCP over a link of {_LINK_BPS // 1_000_000_000} Gbit/s"


def _kinds(way: Direction) -> list[_Kind]:
    small = [
        _Kind(what=f"{way.pod_word}, 64-byte UDP from {senders}", carry=_small(way, senders), unit=_PACKETS)
        for senders in (1, 4)
    ]
    return [_Kind(what=f"{way.pod_word}, bulk TCP", carry=_bulk(way), target=at_least(0.95)), *small]


def local(options: Options) -> list[Figure]:
    """Greedy TCP from one pod of the node to another, which neither level nor limit holds."""
    with nodes() as rigs:
        kind = _Kind(what="pod to pod TCP", carry=_between, target=at_least(0.9))
        return [_figure("local", kind, rigs, options)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of traffic, and the unit in which it is told: its name and how much of what was counted it is."""

    what: str
    carry: Carry
    target: Target | None = None
    unit: tuple[str, float] = _GIGABITS


@contextmanager
def nodes(network: Network = ROUTED) -> Iterator[tuple[Rig, Rig]]:
    """Two nodes alike: one with the daemon and 500 leaves in each direction, and a bare one."""
    pods = (*_PODS, crowd.NAME)
    with Rig(pods=pods, network=network) as shaped, Rig(pods=pods, network=network) as bare:
        for rig in (shaped, bare):
            crowd.settle(rig, LEAVES)
        with running(shaped, _document(shaped)):
            time.sleep(1)
            yield shaped, bare


@contextmanager
def by_hand() -> Iterator[dict[Direction, Rig]]:
    """For each direction a node with HTB, a leaf for each of four pods, and the nft rules that tell them apart."""
    levels = {name: Level(place % 3) for place, name in enumerate(_PODS)}
    with Rig(pods=_PODS) as tx, Rig(pods=_PODS) as rx:
        rigs = {Direction.TX: tx, Direction.RX: rx}
        for way, rig in rigs.items():
            total_bps = _TOTALS_G[way] * 1_000_000_000
            case = Case(total_bps=total_bps, pods=levels, direction=way)
            baseline.install_static(rig, levels, total_bps=total_bps, bands=case.bands, direction=way)
        yield rigs


def _figure(bench: str, kind: _Kind, rigs: Sequence[Rig], options: Options) -> Figure:
    say(f"{bench}: {kind.what}")
    turns = [[kind.carry(rig) for rig in rigs] for _ in range(_TURNS * options.runs)]
    unit, one = kind.unit
    medians = [number(median([turn[place] / one for turn in turns])) for place in range(len(rigs))]
    with_it, without, *static = medians
    return Figure(
        bench=bench,
        what=f"{kind.what}: with {LEAVES} leaves against without netqos",
        unit="",
        runs=tuple(turn[0] / turn[1] for turn in turns),
        target=kind.target,
        baseline=tuple(turn[2] / turn[1] for turn in turns if static),
        baseline_name="HTB by hand" if static else "",
        note=f"{with_it} against {without} {unit}{f', by hand {static[0]}' if static else ''}",
    )


def _document(rig: Rig) -> Document:
    workloads = [
        *crowd.workloads(LEAVES - len(_PODS), limit=lambda number: "20M" if number % 2 else None),
        *(workload(rig, name, Level(place % 3)) for place, name in enumerate(_PODS)),
    ]
    return crowd.config(workloads, total=f"{_TOTALS_G[Direction.TX]}G", rx=f"{_TOTALS_G[Direction.RX]}G")


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
