"""latency-l0 and latency-flood: 64-byte requests of an L0 workload, one each 10 ms, while others fill the link."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import median
from netqos.testing.netns import Rig
from netqos.testing.probes import Delays, start_echo
from netqos.testing.traffic import Datagrams, Traffic
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, congestions, say
from tests.bench.shapers import SHAPERS, Case, M

_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2, "lookup": Level.L0}
_TOTALS = {"200M": 200 * M, "600M": 600 * M, "2G": 2000 * M}
_REQUESTS = 400
_PLAIN = "plain queue"

Load = Callable[[Traffic, Case], None]


def latency_l0(options: Options) -> list[Figure]:
    """While another L0 workload, L1 and L2 send, or are sent, all they can."""
    figures = []
    for direction, (name, total_bps), congestion in product(Direction, _TOTALS.items(), congestions()):
        say(f"latency-l0: {direction.pod_word}, {congestion} at {name}")
        asked = _Question(
            bench="latency-l0",
            what=f"{direction.pod_word} {name}, {congestion}",
            case=Case(total_bps=total_bps, pods=_PODS, direction=direction),
            load=partial(_greedy, congestion),
            claimed_ms=1,
        )
        figures.append(_figure(asked, options))
    return figures


def latency_flood(options: Options) -> list[Figure]:
    """While L2 sends, or is sent, twice the total as UDP."""
    figures = []
    for direction, name in product(Direction, ("200M", "600M")):
        say(f"latency-flood: {direction.pod_word}, {name}")
        asked = _Question(
            bench="latency-flood",
            what=f"{direction.pod_word} {name}, UDP",
            case=Case(total_bps=_TOTALS[name], pods=_PODS, direction=direction),
            load=_flood,
            claimed_ms=0.5,
        )
        figures.append(_figure(asked, options))
    return figures


def _greedy(congestion: str, traffic: Traffic, case: Case) -> None:
    for pod in ("web", "api", "batch"):
        traffic.tcp(pod, congestion=congestion, towards_pod=case.direction is Direction.RX).start()


def _flood(traffic: Traffic, case: Case) -> None:
    datagrams = Datagrams(rate_bps=2 * case.total_bps, segments=4)
    traffic.udp("batch", datagrams, towards_pod=case.direction is Direction.RX).start()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    bench: str
    what: str
    case: Case
    load: Load
    claimed_ms: float


def _figure(asked: _Question, options: Options) -> Figure:
    found = [_measure("netqosd", asked) for _ in range(options.runs)]
    plain = _measure(_PLAIN, asked)
    lost = sum(one.lost for one in found)
    middle = number(median([1000 * one.percentile_s(50) for one in found]))
    return Figure(
        bench=asked.bench,
        what=f"{asked.what}: p99",
        unit="ms",
        runs=tuple(1000 * one.percentile_s(99) for one in found),
        target=at_most(asked.claimed_ms),
        baseline=(1000 * plain.percentile_s(99),),
        baseline_name=_PLAIN,
        note=f"p50 {middle} ms" + (f", {lost} lost" if lost else ""),
    )


def _measure(shaper: str, asked: _Question) -> Delays:
    """A request and its answer cross the measured direction once, the other, which is idle, once."""
    with Rig(pods=tuple(_PODS)) as rig, SHAPERS[shaper](rig, asked.case):
        traffic = Traffic(rig)
        asked.load(traffic, asked.case)
        time.sleep(1)
        delays = start_echo(rig.pod("lookup"), rig.wire.address, count=_REQUESTS).result()
        traffic.stop()
    return delays
