"""Plays a scenario on a rig: starts and stops the flows, asks for the limits, records what arrives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from netqos.cli.demo.scenario import GREEDY, LOOKUP, Phase, Scenario, series_name
from netqos.cli.demo.show import Moment
from netqos.cli.demo.verdict import Recording, Span
from netqos.model.levels import Direction, Level
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.probes import start_echo
from netqos.testing.traffic import TcpFlow, Traffic, arriving

_READ_EVERY_S = 0.05
_SHOW_EVERY_S = 0.2
_SHOWN_S = 0.5
_ASK_EVERY_S = 0.01
_STREAMS = 4
"""Connections of a workload: with a single one a loss shows as a dip of the whole level, which is TCP's doing."""

_CONGESTION = ("cubic", "bbr", "reno")


class Node(Protocol):
    """What the driver asks of the one who shapes the rig's uplink."""

    def limit(self, workload: str, limits_bps: Mapping[Direction, int]) -> None:
        """Hold one workload to so many bits per second from now on."""
        ...

    def check(self) -> None:
        """Raise when it is no longer there."""
        ...


def play(scenario: Scenario, rig: Rig, node: Node, show: Callable[[Moment], None]) -> Recording:
    """Run all phases and return what was recorded; the rig has the scenario's workloads as pods."""
    sources = {
        series_name(way, level): arriving(rig, GREEDY[level].name, way)
        for way in scenario.sides
        for level in Level
    }
    with _flows(rig, scenario) as flows, Meter(rig.wire, sources, interval_s=_READ_EVERY_S) as meter:
        probe = start_echo(
            rig.pod(LOOKUP.name),
            rig.wire.address,
            count=int(scenario.seconds / _ASK_EVERY_S),
            interval_s=_ASK_EVERY_S,
        )
        performance = _Play(scenario=scenario, node=node, flows=flows, meter=meter, show=show)
        spans = tuple(performance.run(number, phase) for number, phase in enumerate(scenario.phases, 1))
        time.sleep(2 * _READ_EVERY_S)  # a reading after the end, so that the last moments are known too
        series = meter.stop()
        return Recording(spans=spans, series=series, delays=probe.result(timeout_s=10))


class _Play:
    """What runs at this moment, and the way from one phase to the next."""

    def __init__(
        self,
        *,
        scenario: Scenario,
        node: Node,
        flows: Mapping[Level, tuple[TcpFlow, ...]],
        meter: Meter,
        show: Callable[[Moment], None],
    ) -> None:
        self._scenario = scenario
        self._node = node
        self._flows = flows
        self._meter = meter
        self._show = show
        self._running: set[Level] = set()
        self._limited: dict[str, Mapping[Direction, int]] = {}
        self._began_s = time.monotonic()

    def run(self, number: int, phase: Phase) -> Span:
        """Change what differs from the phase before, then watch until its end."""
        start_s = time.monotonic()
        self._change(phase)
        end_s = start_s + phase.seconds
        while (now_s := time.monotonic()) < end_s:
            self._watch(number, phase, now_s)
            time.sleep(min(_SHOW_EVERY_S, max(0.0, end_s - time.monotonic())))
        return Span(phase=phase, start_s=start_s, end_s=time.monotonic())

    def _change(self, phase: Phase) -> None:
        for level in sorted(phase.greedy - self._running, key=lambda level: level.value):
            for flow in self._flows[level]:
                flow.start()
        for level in self._running - phase.greedy:
            for flow in self._flows[level]:
                flow.stop()
        self._running = set(phase.greedy)
        for workload, limits_bps in phase.limits_bps.items():
            if self._limited.get(workload) != limits_bps:
                self._node.limit(workload, limits_bps)
                self._limited[workload] = limits_bps

    def _watch(self, number: int, phase: Phase, now_s: float) -> None:
        self._node.check()
        for level in self._running:
            for flow in self._flows[level]:
                flow.check()
        self._show(
            Moment(
                phase=phase,
                number=number,
                elapsed_s=now_s - self._began_s,
                promises={way: self._scenario.promises(phase, way) for way in self._scenario.sides},
                rates_bps=self._rates(now_s),
            )
        )

    def _rates(self, now_s: float) -> dict[Direction, dict[Level, float]]:
        series = self._meter.series()
        latest_s = series.at_s[-1] if series.at_s else now_s

        def rate(way: Direction, level: Level) -> float:
            name = series_name(way, level)
            return series.rate_bps(name, latest_s - _SHOWN_S, latest_s) if series.at_s else 0.0

        return {way: {level: rate(way, level) for level in Level} for way in self._scenario.sides}


@contextmanager
def _flows(rig: Rig, scenario: Scenario) -> Iterator[dict[Level, tuple[TcpFlow, ...]]]:
    traffic = Traffic(rig)

    def flow(level: Level, way: Direction) -> TcpFlow:
        return traffic.tcp(
            GREEDY[level].name,
            congestion=_congestion(),
            streams=_STREAMS,
            towards_pod=way is Direction.RX,
        )

    try:
        yield {level: tuple(flow(level, way) for way in scenario.sides) for level in Level}
    finally:
        traffic.stop()


def _congestion() -> str:
    """The first usual congestion control that this kernel has; reno is always there."""
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    available = path.read_text(encoding="ascii").split()
    return next(name for name in _CONGESTION if name in available)
