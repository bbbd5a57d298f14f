"""One greedy TCP flow in each level, in one direction: the traffic behind guarantees, use of the link and onsets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series, settled_after_s, summarize
from netqos.testing.meter import Meter, Source
from netqos.testing.netns import Rig
from netqos.testing.traffic import TcpFlow, Traffic, arriving
from tests.bench.moments import STEP_S, arrived_s
from tests.bench.shapers import SHAPERS, Case, M

PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_BEFORE_S, _SETTLE_S, _MEASURE_S = 1.0, 1.0, 4.0
_ONSET_S, _PAUSE_S = 2.0, 0.7
_FINE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction of the rig's uplink, and its total."""

    direction: Direction
    name: str
    total_bps: int

    @property
    def case(self) -> Case:
        """What is shaped on it."""
        return Case(total_bps=self.total_bps, pods=PODS, direction=self.direction)

    def __str__(self) -> str:
        """As a figure names it."""
        return f"{self.direction.pod_word} {self.name}"


LINKS = tuple(
    Link(direction=direction, name=name, total_bps=total_bps)
    for direction in Direction
    for name, total_bps in (("200M", 200 * M), ("2G", 2000 * M))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contended:
    """What each level got of its guarantee (1 is all) in its worst second and on average, and the link's use."""

    worst: Mapping[Level, float]
    mean: Mapping[Level, float]
    used: float
    best_total: float


@cache
def contended(shaper: str, link: Link, congestion: str, run: int) -> Contended:
    """Let L1 and L2 run, let L0 join, and look at what follows its first second. Cached: benches share runs."""
    del run  # it only tells one run from another in the cache
    case = link.case
    with Rig(pods=tuple(PODS)) as rig, SHAPERS[shaper](rig, case):
        series, joined_s = _join(rig, congestion, link.direction)
    shares = {name: case.bands[level].guarantee_bps for name, level in PODS.items()}
    judged = series.between(joined_s + _SETTLE_S, joined_s + _SETTLE_S + _MEASURE_S)
    found = {name: summarize(judged, name) for name in PODS}
    total = summarize(judged.summed("total", tuple(PODS)), "total")
    return Contended(
        worst={level: found[name].worst_bps / shares[name] for name, level in PODS.items()},
        mean={level: found[name].mean_bps / shares[name] for name, level in PODS.items()},
        used=total.mean_bps / link.total_bps,
        best_total=total.best_bps / link.total_bps,
    )


def _join(rig: Rig, congestion: str, direction: Direction) -> tuple[Series, float]:
    traffic = Traffic(rig)
    flows = {name: greedy(traffic, name, congestion, direction) for name in PODS}
    with Meter(rig.wire, sources(rig, direction)) as meter:
        flows["api"].start()
        flows["batch"].start()
        time.sleep(_BEFORE_S)
        joined_s = time.monotonic()
        flows["web"].start()
        time.sleep(_SETTLE_S + _MEASURE_S + 0.1)
        for flow in flows.values():
            flow.check()
        series = meter.stop()
    traffic.stop()
    return series, joined_s


def sources(rig: Rig, direction: Direction = Direction.TX) -> dict[str, Source]:
    """What the meter counts: the pods of the rig by name."""
    return {name: arriving(rig, name, direction) for name in rig.pods}


def greedy(traffic: Traffic, name: str, congestion: str, direction: Direction) -> TcpFlow:
    """A greedy flow of one pod in one direction."""
    return traffic.tcp(name, congestion=congestion, towards_pod=direction is Direction.RX)


def onsets(shaper: str, link: Link, congestion: str, count: int) -> list[float]:
    """Seconds from L0's first data until all levels stay within 10 percent, for `count` joins; inf where never."""
    case = link.case
    shares = {name: float(case.bands[level].guarantee_bps) for name, level in PODS.items()}
    found = []
    with Rig(pods=tuple(PODS)) as rig, SHAPERS[shaper](rig, case):
        traffic = Traffic(rig)
        for name in ("api", "batch"):
            greedy(traffic, name, congestion, link.direction).start()
        time.sleep(_BEFORE_S)
        for _ in range(count):
            joining = greedy(traffic, "web", congestion, link.direction)
            with Meter(rig.wire, sources(rig, link.direction), interval_s=_FINE_S) as meter:
                found.append(_onset(joining, meter, shares))
            time.sleep(_PAUSE_S)
        traffic.stop()
    return found


def _onset(joining: TcpFlow, meter: Meter, shares: Mapping[str, float]) -> float:
    joining.start()
    time.sleep(_ONSET_S + 0.2)
    series = meter.stop()
    joining.stop()
    start_s = arrived_s(series, "web", series.at_s[0], series.at_s[-1])
    settled = settled_after_s(series, shares, start_s=start_s, end_s=start_s + _ONSET_S, step_s=STEP_S)
    return float("inf") if settled is None else settled
