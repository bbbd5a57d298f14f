"""together: netqosd and the same tree by hand on two nodes at the same moment, so that the machine is the same to both.

What a busy machine, or a congestion control by itself, does to a level shows in both; what is left is the agent's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from netqos.model.levels import Direction
from netqos.testing.analysis import Series, summarize
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic
from tests.bench.contention import PODS, greedy, sources
from tests.bench.figures import Figure, number
from tests.bench.moments import BIN_S
from tests.bench.options import Options, congestions, say
from tests.bench.shapers import SHAPERS, Case, M

TOTAL_BPS = 600 * M
_NETQOS, _BY_HAND = "netqosd", "static HTB"
_SETTLE_S, _WATCH_S, _METER_S = 1.5, 12.0, 0.02
_BAND = 0.9


def together(options: Options) -> list[Figure]:
    """Three greedy levels on both nodes; 12 s hold bbr's probing for the round trip, once in ten."""
    rows = []
    for direction in Direction:
        case = Case(total_bps=TOTAL_BPS, pods=PODS, direction=direction)
        for congestion in congestions():
            say(f"together: {options.runs} times {direction.pod_word}, {congestion}")
            runs = [_run(case, congestion) for _ in range(options.runs)]
            rows += figures(f"{direction.pod_word}, {congestion}", runs)
    return rows


def figures(what: str, runs: Sequence[Mapping[str, tuple[float, float]]]) -> list[Figure]:
    """Of each run and node: the share of bins under the band, and the worst second. Pure."""
    titles = ("100 ms of a level under 90 % of its guarantee", "worst second of a level, of its guarantee")
    return [
        Figure(
            bench="together",
            what=f"{what}: {title}",
            unit="%",
            runs=tuple(run[_NETQOS][place] for run in runs),
            baseline=tuple(run[_BY_HAND][place] for run in runs),
            baseline_name=_BY_HAND,
            note=", ".join(f"{number(run[_NETQOS][place])} / {number(run[_BY_HAND][place])}" for run in runs),
        )
        for place, title in enumerate(titles)
    ]


def _run(case: Case, congestion: str) -> dict[str, tuple[float, float]]:
    with ExitStack() as stack:
        rigs = {name: stack.enter_context(Rig(pods=tuple(PODS))) for name in (_NETQOS, _BY_HAND)}
        for name, rig in rigs.items():
            stack.enter_context(SHAPERS[name](rig, case))
        traffics = [Traffic(rig) for rig in rigs.values()]
        flows = [greedy(one, pod, congestion, case.direction) for pod in PODS for one in traffics]
        meters = {
            name: stack.enter_context(Meter(rig.wire, sources(rig, case.direction), interval_s=_METER_S))
            for name, rig in rigs.items()
        }
        for flow in flows:
            flow.start()
        time.sleep(_SETTLE_S)
        start_s = time.monotonic()
        time.sleep(_WATCH_S)
        found = {name: judged(meter.stop(), case, start_s) for name, meter in meters.items()}
        for one in traffics:
            one.stop()
    return found


def judged(series: Series, case: Case, start_s: float) -> tuple[float, float]:
    """Percent of all levels' bins that are under the band, and percent of its guarantee in a level's worst second."""
    seen = series.between(start_s, series.at_s[-1])
    shares = {name: case.bands[level].guarantee_bps for name, level in PODS.items()}
    bins = [
        rate / share
        for name, share in shares.items()
        for rate in seen.bins(name, seen.at_s[0], seen.at_s[-1], width_s=BIN_S)
    ]
    worst = min(summarize(seen, name).worst_bps / share for name, share in shares.items())
    return 100 * sum(one < _BAND for one in bins) / len(bins), 100 * worst
