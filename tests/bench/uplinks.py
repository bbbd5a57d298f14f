"""uplinks: two uplinks under one total, with greedy TCP that moves from one to the other, one direction at a time.

What is sent is divided by the loop, uplink by uplink; what is received is shaped behind both at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series, settled_after_s, summarize
from netqos.testing.daemon import Document, workload
from netqos.testing.meter import Meter, Source
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS, OUTSIDE, SECOND_WIRE, second_addresses
from netqos.testing.traffic import TcpFlow
from tests.bench.figures import Figure, at_least, at_most
from tests.bench.options import Options, say
from tests.bench.shapers import M, running

PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
NETWORK = NETWORKS["second-uplink"]
TOTALS = {Direction.TX: 150 * M, Direction.RX: 100 * M}
_GUARANTEES = {Level.L0: 0.4, Level.L1: 0.3, Level.L2: 0.3}
_ON_WIRE = (OUTSIDE, 4)
_PHASE_S, _SETTLE_S = 3.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Which pod sends by which uplink (0 or 1), and what the levels should have of the total."""

    name: str
    flows: frozenset[tuple[str, int]]
    shares: Mapping[Level, float]


def _phase(name: str, *flows: tuple[str, int], **shares: float) -> Phase:
    return Phase(
        name=name,
        flows=frozenset(flows),
        shares={level: shares.get(level.name.lower(), 0.0) for level in Level},
    )


PHASES = (
    _phase("L0 alone on one uplink", ("web", 0), l0=0.95),
    _phase("L0 moved to the other", ("web", 1), l0=0.95),
    _phase("L0 on both", ("web", 0), ("web", 1), l0=1.0),
    _phase("L0 on one, L2 on the other", ("web", 0), ("batch", 1), l0=0.7, l2=0.3),
    _phase("L1 on one, L2 on both", ("api", 0), ("batch", 0), ("batch", 1), l1=0.7, l2=0.3),
    _phase("all, L2 on both", ("web", 0), ("api", 1), ("batch", 0), ("batch", 1), l0=0.4, l1=0.3, l2=0.3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One phase: seconds until all levels stay within 10 percent, then shares of guarantees and of the total.

    `worst` is the worst second of what a level is guaranteed and wants; `second` and `peak` are the highest second and
    the highest 100 ms of all together, from the moment when the flows change.
    """

    settled_s: float | None
    worst: float
    used: float
    second: float
    peak: float


def document(rig: Rig) -> Document:
    """The daemon's configuration: no total of its own for either uplink."""
    return {
        "node": {"bandwidth": {one.value: str(total) for one, total in TOTALS.items()}},
        "policy": {"enable": True},
        "workloads": [workload(rig, name, level) for name, level in PODS.items()],
    }


def measure(rig: Rig, direction: Direction, phases: Sequence[Phase] = PHASES) -> list[Seen]:
    """Let the phases follow one another without a pause."""
    running_flows: dict[tuple[str, int], TcpFlow] = {}
    marks = []
    with ExitStack() as stack:
        meter = stack.enter_context(Meter(rig.wire, _sources(rig, direction), interval_s=0.02))
        for number, phase in enumerate(phases):
            fresh = {
                one: _flow(rig, direction, one, 5300 + 10 * number + place)
                for place, one in enumerate(sorted(phase.flows - running_flows.keys()))
            }
            for one in running_flows.keys() - phase.flows:
                running_flows.pop(one).stop()
            marks.append(time.monotonic())
            for one, flow in fresh.items():
                stack.callback(flow.stop)
                flow.start()
                running_flows[one] = flow
            time.sleep(_PHASE_S)
        series = meter.stop()
    levels = _by_level(series)
    return [
        _judge(levels, TOTALS[direction], phase, start_s)
        for phase, start_s in zip(phases, marks, strict=True)
    ]


def _judge(series: Series, total_bps: int, phase: Phase, start_s: float) -> Seen:
    end_s = start_s + _PHASE_S
    wanted = {level.name: share * total_bps for level, share in phase.shares.items()}
    settled = series.between(start_s + _SETTLE_S, end_s)
    guaranteed = [level for level, share in phase.shares.items() if share]
    whole = series.summed("all", tuple(wanted))
    return Seen(
        settled_s=settled_after_s(series, wanted, start_s=start_s, end_s=end_s, step_s=0.02),
        worst=min(
            summarize(settled, level.name).worst_bps / total_bps / _GUARANTEES[level] for level in guaranteed
        ),
        used=summarize(whole.between(start_s + _SETTLE_S, end_s), "all").mean_bps / total_bps,
        second=max(whole.between(start_s, end_s).windows("all")) / total_bps,
        peak=max(whole.between(start_s, end_s).windows("all", width_s=0.1)) / total_bps,
    )


def _by_level(series: Series) -> Series:
    counts = {
        level.name: series.summed("one", [f"{pod} {uplink}" for uplink in (0, 1)]).counts["one"]
        for pod, level in PODS.items()
    }
    return Series(at_s=series.at_s, counts=counts)


def _sources(rig: Rig, direction: Direction) -> dict[str, Source]:
    found = {}
    for pod in PODS:
        own = (rig.pod(pod).address, second_addresses(NETWORK, rig.number(pod))[0])
        for uplink, outside in enumerate(_outside(rig)):
            sent = direction is Direction.TX
            found[f"{pod} {uplink}"] = (
                Source(address=own[uplink]) if sent else Source(address=outside, at=rig.pod(pod))
            )
    return found


def _outside(rig: Rig) -> tuple[str, str]:
    return rig.wire.address, SECOND_WIRE.host(*_ON_WIRE)


def _flow(rig: Rig, direction: Direction, place: tuple[str, int], port: int) -> TcpFlow:
    pod, uplink = place
    if direction is Direction.TX:
        address = _outside(rig)[uplink]
        return TcpFlow(rig.pod(pod), rig.wire, port=port, address=address, congestion="cubic")
    own = (rig.pod(pod).address, second_addresses(NETWORK, rig.number(pod))[0])
    return TcpFlow(rig.wire, rig.pod(pod), port=port, address=own[uplink], congestion="cubic")


def uplinks(options: Options) -> list[Figure]:
    """Each phase in each direction; medians of the runs."""
    figures: list[Figure] = []
    for direction in Direction:
        runs = []
        for run in range(options.runs):
            say(f"uplinks: {direction.pod_word}, run {run + 1}")
            with Rig(pods=tuple(PODS), network=NETWORK) as rig, running(rig, document(rig)):
                runs.append(measure(rig, direction))
        for phase, seen in zip(PHASES, zip(*runs, strict=True), strict=True):
            figures += _figures(f"{direction.pod_word}, {phase.name}", seen)
    return figures


def _figures(what: str, seen: tuple[Seen, ...]) -> Iterator[Figure]:
    settled = tuple(float("inf") if one.settled_s is None else 1000 * one.settled_s for one in seen)
    yield Figure(bench="uplinks", what=f"{what}: settled", unit="ms", runs=settled)
    yield Figure(
        bench="uplinks",
        what=f"{what}: worst second of a guarantee",
        unit="%",
        runs=tuple(100 * one.worst for one in seen),
        target=at_least(95),
    )
    yield Figure(bench="uplinks", what=f"{what}: used", unit="%", runs=tuple(100 * one.used for one in seen))
    yield Figure(
        bench="uplinks",
        what=f"{what}: highest second",
        unit="%",
        runs=tuple(100 * one.second for one in seen),
        target=at_most(102),
        baseline=tuple(100 * one.peak for one in seen),
        baseline_name="highest 100 ms",
    )
