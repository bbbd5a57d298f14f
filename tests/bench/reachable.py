"""node-reachable: TCP connections to a port of the node while 20 workloads flood its uplink."""

from __future__ import annotations

import time

from netqos.model.levels import Level
from netqos.testing.netns import Rig
from netqos.testing.probes import Delays, listen, start_connects
from netqos.testing.traffic import Datagrams, Traffic
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon

_NAMES = [f"flood{number}" for number in range(20)]
_PODS = {name: Level(place % 3) for place, name in enumerate(_NAMES)}
_PORT = 2222
_CONNECTS = 100
_FLUSH = ["nft", "flush", "ruleset"]


def node_reachable(options: Options) -> list[Figure]:
    """100 connections each: as it is, with nft flushed, with the daemon killed, with both, and under a tiny total."""
    del options  # each case is 100 connections already
    say("node-reachable: total 200M")
    figures = []
    with Rig(pods=_NAMES) as rig, running_daemon(rig, Case(total_bps=200 * M, pods=_PODS)) as daemon:
        traffic = _flood(rig, 200 * M)
        figures.append(_figure("total 200M", _connect(rig), claimed_ms=20))
        rig.node.run(_FLUSH)
        figures.append(_figure("just after nft flush ruleset", _connect(rig)))
        time.sleep(2)
        daemon.kill()
        figures.append(_figure("after kill -9", _connect(rig)))
        rig.node.run(_FLUSH)
        figures.append(_figure("after kill -9 and nft flush ruleset", _connect(rig)))
        traffic.stop()
    say("node-reachable: total 10M")
    with Rig(pods=_NAMES) as rig, running_daemon(rig, Case(total_bps=10 * M, pods=_PODS)):
        traffic = _flood(rig, 10 * M)
        figures.append(_figure("total 10M", _connect(rig)))
        traffic.stop()
    return [part for pair in figures for part in pair]


def _flood(rig: Rig, total_bps: int) -> Traffic:
    """Every second workload sends greedy TCP, the others together UDP of twice the total."""
    traffic = Traffic(rig)
    for name in _NAMES[::2]:
        traffic.tcp(name).start()
    for name in _NAMES[1::2]:
        traffic.udp(name, Datagrams(rate_bps=2 * total_bps // 10, segments=2)).start()
    listen(rig.node, _PORT)
    time.sleep(1.5)
    return traffic


def _connect(rig: Rig) -> Delays:
    call = start_connects(rig.wire, rig.node.address, _PORT, count=_CONNECTS, interval_s=0.005)
    return call.result(timeout_s=600)


def _figure(what: str, delays: Delays, *, claimed_ms: float | None = None) -> tuple[Figure, Figure]:
    return (
        Figure(
            bench="node-reachable",
            what=f"{what}: p99",
            unit="ms",
            runs=(1000 * delays.percentile_s(99),),
            target=None if claimed_ms is None else at_most(claimed_ms),
            note=f"p50 {number(1000 * delays.percentile_s(50))} ms",
        ),
        Figure(
            bench="node-reachable",
            what=f"{what}: not reached",
            unit=f"of {_CONNECTS}",
            runs=(float(delays.lost),),
            target=at_most(0),
        ),
    )
