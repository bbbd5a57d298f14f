"""limit-accuracy: what a limited workload gets of its limit, after the first second and in it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise, product

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series, median
from netqos.testing.meter import TCP, Meter, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.traffic import UDP_PAYLOAD, Datagrams, Flow, Traffic, arriving
from tests.bench.figures import Figure, Target, at_least, at_most, number
from tests.bench.moments import arrived_s
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon

LIMITS = {"1M": M, "10M": 10 * M, "100M": 100 * M, "1G": 1000 * M}
_POD = "slow"
_FIRST_S, _LATER_S = 1.0, 4.0
_LARGEST_SHARE = 4
"""The link carries so many times the limit, at least 100M: nothing but the limit holds the workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    first: float
    later: float


def limit_accuracy(options: Options) -> list[Figure]:
    """The mean of four seconds after the first, and the first second from the first data, in percent of the limit."""
    figures = []
    for direction, kind, (name, limit_bps) in product(Direction, ("tcp", "udp"), LIMITS.items()):
        say(f"limit-accuracy: {direction.pod_word}, {kind}, {name}")
        found = [_measure(direction, kind, limit_bps) for _ in range(options.runs)]
        what = f"{direction.pod_word} {kind} {name}"
        later = tuple(one.later for one in found)
        figures += [
            _figure(f"{what}: after the first second", later, at_least(97), note=_over(later)),
            _figure(f"{what}: first second", tuple(one.first for one in found), at_most(110)),
        ]
    return figures


def _over(found: tuple[float, ...]) -> str:
    """The other half of the claim: not over 101 percent either."""
    return "" if median(found) <= 101 else f"NO: over 101 % ({number(median(found))})"


def _figure(what: str, runs: tuple[float, ...], target: Target, *, note: str = "") -> Figure:
    return Figure(bench="limit-accuracy", what=what, unit="%", runs=runs, target=target, note=note)


def _measure(direction: Direction, kind: str, limit_bps: int) -> _Found:
    total_bps = max(100 * M, _LARGEST_SHARE * limit_bps)
    case = Case(total_bps=total_bps, pods={_POD: Level.L1}, direction=direction, limits_bps={_POD: limit_bps})
    framing = TCP if kind == "tcp" else udp_framing(UDP_PAYLOAD)
    with Rig(pods=(_POD,)) as rig, running_daemon(rig, case):
        traffic = Traffic(rig)
        towards_pod = direction is Direction.RX
        if kind == "tcp":
            flow: Flow = traffic.tcp(_POD, towards_pod=towards_pod)
        else:
            segments = 8 if limit_bps >= 100 * M else 1
            datagrams = Datagrams(rate_bps=limit_bps * 3 // 2, segments=segments)
            flow = traffic.udp(_POD, datagrams, towards_pod=towards_pod)
        metered = {_POD: arriving(rig, _POD, direction, framing=framing)}
        with Meter(rig.wire, metered, interval_s=0.02) as meter:
            time.sleep(0.1)
            flow.start()
            time.sleep(_FIRST_S + _LATER_S + 0.5)
            series = meter.stop()
        traffic.stop()
    return _shares(series, limit_bps)


def _shares(series: Series, limit_bps: int) -> _Found:
    start_s = arrived_s(series, _POD, series.at_s[0], series.at_s[-1])
    first = series.rate_bps(_POD, start_s, start_s + _FIRST_S)
    later = _between_arrivals_bps(series.between(start_s + _FIRST_S, start_s + _FIRST_S + _LATER_S))
    return _Found(first=100 * first / limit_bps, later=100 * later / limit_bps)


def _between_arrivals_bps(series: Series) -> float:
    """From just after one arrival to just after another: at 1M a single large packet is 1.5 percent of 4 s."""
    counts = series.counts[_POD]
    arrivals = [place for place, (then, now) in enumerate(pairwise(counts), 1) if now > then]
    low, high = arrivals[0], arrivals[-1]
    return (counts[high] - counts[low]) * 8 / (series.at_s[high] - series.at_s[low])
