"""One greedy TCP flow in each level: the traffic behind the figures for guarantees, use of the link and onsets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from netqos.model.levels import Level
from netqos.testing.analysis import Series, settled_after_s, summarize
from netqos.testing.meter import Meter, Source
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic
from tests.bench.shapers import SHAPERS, Case

PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_BEFORE_S, _SETTLE_S, _MEASURE_S = 1.0, 1.0, 4.0
_ONSET_S, _PAUSE_S = 2.0, 0.7
_FINE_S, _STEP_S = 0.02, 0.05
_DATA_BYTES = 10_000
"""More than a connection's first handshake: data has begun to arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contended:
    """What each level got of its guarantee (1 is all) in its worst second and on average, and the link's use."""

    worst: Mapping[Level, float]
    mean: Mapping[Level, float]
    used: float
    best_total: float


@cache
def contended(shaper: str, total_bps: int, congestion: str, run: int) -> Contended:
    """Let L1 and L2 run, let L0 join, and look at what follows its first second. Cached: benches share runs."""
    del run  # it only tells one run from another in the cache
    case = Case(total_bps=total_bps, pods=PODS)
    with Rig(pods=tuple(PODS)) as rig, SHAPERS[shaper](rig, case):
        series, joined_s = _join(rig, congestion)
    shares = {name: case.bands[level].guarantee_bps for name, level in PODS.items()}
    judged = series.between(joined_s + _SETTLE_S, joined_s + _SETTLE_S + _MEASURE_S)
    found = {name: summarize(judged, name) for name in PODS}
    total = summarize(judged.summed("total", tuple(PODS)), "total")
    return Contended(
        worst={level: found[name].worst_bps / shares[name] for name, level in PODS.items()},
        mean={level: found[name].mean_bps / shares[name] for name, level in PODS.items()},
        used=total.mean_bps / total_bps,
        best_total=total.best_bps / total_bps,
    )


def _join(rig: Rig, congestion: str) -> tuple[Series, float]:
    traffic = Traffic(rig)
    flows = {name: traffic.tcp(name, congestion=congestion) for name in PODS}
    with Meter(rig.wire, sources(rig)) as meter:
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


def sources(rig: Rig) -> dict[str, Source]:
    """What the meter counts: the pods of the rig by name."""
    return {name: Source(address=pod.address) for name, pod in rig.pods.items()}


def onsets(shaper: str, total_bps: int, congestion: str, count: int) -> list[float]:
    """Seconds from L0's first data until all levels stay within 10 percent, for `count` joins; inf where never."""
    case = Case(total_bps=total_bps, pods=PODS)
    shares = {name: float(case.bands[level].guarantee_bps) for name, level in PODS.items()}
    found = []
    with Rig(pods=tuple(PODS)) as rig, SHAPERS[shaper](rig, case):
        traffic = Traffic(rig)
        traffic.tcp("api", congestion=congestion).start()
        traffic.tcp("batch", congestion=congestion).start()
        time.sleep(_BEFORE_S)
        for _ in range(count):
            found.append(_onset(rig, traffic, congestion, shares))
            time.sleep(_PAUSE_S)
        traffic.stop()
    return found


def _onset(rig: Rig, traffic: Traffic, congestion: str, shares: Mapping[str, float]) -> float:
    flow = traffic.tcp("web", congestion=congestion)
    with Meter(rig.wire, sources(rig), interval_s=_FINE_S) as meter:
        flow.start()
        time.sleep(_ONSET_S + 0.2)
        series = meter.stop()
    flow.stop()
    start_s = arrival_s(series, "web")
    settled = settled_after_s(series, shares, start_s=start_s, end_s=start_s + _ONSET_S, step_s=_STEP_S)
    return float("inf") if settled is None else settled


def arrival_s(series: Series, name: str) -> float:
    """The last reading before a source's data began to arrive; the first reading when there was none."""
    counts = series.counts[name]
    later = next((place for place, count in enumerate(counts) if count - counts[0] > _DATA_BYTES), 1)
    return series.at_s[max(0, later - 1)]
