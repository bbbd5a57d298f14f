"""ceiling: no second in which a level or a limited workload carries more than it may, from its first packet on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import product

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series
from netqos.testing.meter import TCP, Meter, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.traffic import UDP_PAYLOAD, Datagrams, Traffic, arriving
from tests.bench.figures import Figure, at_most
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon

_WATCH_S = 2.5
_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2, "slow": Level.L1, "slower": Level.L2}
_CASES = {
    direction: Case(
        total_bps=600 * M,
        pods=_PODS,
        direction=direction,
        ceilings_bps={Level.L1: 300 * M, Level.L2: 180 * M},
        limits_bps={"slow": 100 * M, "slower": 10 * M},
    )
    for direction in Direction
}
# What runs together, and what each may carry at most.
_TOGETHER: Mapping[str, Mapping[str, int]] = {
    "L2 alone": {"batch": 180 * M},
    "L1 alone": {"api": 300 * M},
    "all levels": {"web": 600 * M, "api": 300 * M, "batch": 180 * M},
    "two limits": {"slow": 100 * M, "slower": 10 * M},
}


def ceiling(options: Options) -> list[Figure]:
    """The best second of each, in percent of its ceiling; the sum of all in percent of the total."""
    figures = []
    for direction, kind, (name, ceilings) in product(Direction, ("tcp", "udp"), _TOGETHER.items()):
        say(f"ceiling: {direction.pod_word}, {kind}, {name}")
        found = [_best(_CASES[direction], kind, ceilings) for _ in range(options.runs)]
        figures += [
            Figure(
                bench="ceiling",
                what=f"{direction.pod_word}, {kind}, {name}: best second of {pod}",
                unit="%",
                runs=tuple(one[pod] for one in found),
                target=at_most(102),
            )
            for pod in (*ceilings, *(["total"] if len(ceilings) == 3 else []))
        ]
    return figures


def _best(case: Case, kind: str, ceilings: Mapping[str, int]) -> dict[str, float]:
    framing = TCP if kind == "tcp" else udp_framing(UDP_PAYLOAD)
    with Rig(pods=tuple(_PODS)) as rig, running_daemon(rig, case):
        traffic = Traffic(rig)
        towards_pod = case.direction is Direction.RX
        for pod, limit in ceilings.items():
            datagrams = Datagrams(rate_bps=limit * 3 // 2, segments=4)
            flow = (
                traffic.tcp(pod, towards_pod=towards_pod)
                if kind == "tcp"
                else traffic.udp(pod, datagrams, towards_pod=towards_pod)
            )
            flow.start()
        metered = {pod: arriving(rig, pod, case.direction, framing=framing) for pod in ceilings}
        with Meter(rig.wire, metered) as meter:
            time.sleep(_WATCH_S)
            series = meter.stop()
        traffic.stop()
    found = {pod: 100 * _highest(series, pod) / limit for pod, limit in ceilings.items()}
    found["total"] = 100 * _highest(series.summed("total", tuple(ceilings)), "total") / case.total_bps
    return found


def _highest(series: Series, name: str) -> float:
    return max(series.windows(name))
