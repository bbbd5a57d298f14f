"""One run of one enforcer: a fresh rig, the same traffic in both directions, and everything that was read of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

from netqos.model.levels import Direction, Level, PerDirection
from netqos.testing.analysis import Series
from netqos.testing.events import Watch
from netqos.testing.meter import Meter, Source
from netqos.testing.netns import Rig
from netqos.testing.probes import Delays, start_echo
from netqos.testing.traffic import Datagrams, TcpFlow, Traffic, arriving
from tests.bench.compare.shortflows import Server, start_flows
from tests.bench.compare.surface import ASKER, RECEIVERS, SENDERS, Enforcer, Policy, Reading
from tests.bench.cost import cpu_s, resident_mib

METER_S = 0.05
_PROBE_S = 0.005
_SHORT_PORT = 7200
_FLOOD = 1.5
"""L2's flood, in totals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long each part is: L1 and L2 alone, then L0 with them; then each level gone and back; then short flows."""

    before_s: float = 1.0
    join_s: float = 5.0
    gone_s: float = 1.0
    back_s: float = 1.2
    short_s: float = 1.6

    def scaled(self, factor: float) -> Times:
        """All of it longer or shorter."""
        return replace(self, **{one.name: getattr(self, one.name) * factor for one in fields(self)})

    @property
    def greedy_s(self) -> float:
        """From the first flow to the end of the last."""
        parts = [self.join_s, *[self.gone_s, self.back_s] * len(Level)]
        return self.before_s + sum(parts) + len(parts) * METER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A time in which nothing was started or stopped. `kind`: join, gone or back, of `level`."""

    kind: str
    level: Level
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the agent took while the greedy flows ran; None where there is no agent, or it does not tell."""

    cpu_percent: float | None = None
    resident_mib: float | None = None
    late_p99_ms: float | None = None
    writes_a_second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run. The series has one source a direction and level (`source_name`), in Ethernet bytes."""

    series: Series
    marks: tuple[Mark, ...]
    delays: Delays
    shorts_s: PerDirection[tuple[float, ...]]
    cost: Cost


def source_name(way: Direction, level: Level) -> str:
    """A level's source in the series."""
    return f"{way.value} {level.name}"


def record(enforcer: Enforcer, policy: Policy, times: Times, *, congestion: str = "cubic") -> Recording:
    """Build a rig, start the enforcer, and run the traffic; nothing stays afterwards."""
    with Rig(pods=tuple(policy.pods)) as rig:
        enforcer.start(rig)
        try:
            enforcer.apply(policy)
            traffic = Traffic(rig)
            flows = _Flows(traffic, congestion)
            with _cost(enforcer, rig) as costs, Meter(rig.wire, _sources(rig), interval_s=METER_S) as meter:
                count = int(times.greedy_s / _PROBE_S)
                probe = start_echo(rig.pod(ASKER), rig.wire.address, count=count, interval_s=_PROBE_S)
                marks = flows.run(times)
                series = meter.stop()
                delays = probe.result(timeout_s=30)
            traffic.stop()
            shorts = _short_flows(rig, traffic, policy, times)
            return Recording(series=series, marks=tuple(marks), delays=delays, shorts_s=shorts, cost=costs[0])
        finally:
            enforcer.stop()


class _Flows:
    """Two greedy flows a level, one in each direction, of pods of their own; each is started twice."""

    def __init__(self, traffic: Traffic, congestion: str) -> None:
        def made(level: Level) -> list[TcpFlow]:
            out, into = (_pod(pods, level) for pods in (SENDERS, RECEIVERS))
            return [
                traffic.tcp(out, congestion=congestion),
                traffic.tcp(into, congestion=congestion, towards_pod=True),
            ]

        self._first = {level: made(level) for level in Level}
        self._again = {level: made(level) for level in Level}

    def run(self, times: Times) -> list[Mark]:
        """All of it; the marks in their order."""
        marks = []
        for level in (Level.L1, Level.L2):
            _start(self._first[level])
        time.sleep(times.before_s)
        marks.append(_mark("join", Level.L0, times.join_s, partial(_start, self._first[Level.L0])))
        for level in Level:
            marks.append(_mark("gone", level, times.gone_s, partial(_stop, self._first[level])))
            marks.append(_mark("back", level, times.back_s, partial(_start, self._again[level])))
        for flow in (flow for flows in self._again.values() for flow in flows):
            flow.check()
        return marks


def _mark(kind: str, level: Level, for_s: float, begin: Callable[[], None]) -> Mark:
    start_s = time.monotonic()
    begin()
    time.sleep(for_s)
    mark = Mark(kind=kind, level=level, start_s=start_s, end_s=time.monotonic())
    time.sleep(METER_S)  # so that a reading lies between its end and what comes next
    return mark


def _start(flows: Sequence[TcpFlow]) -> None:
    for flow in flows:
        flow.start()


def _stop(flows: Sequence[TcpFlow]) -> None:
    for flow in flows:
        flow.check()
        flow.stop()


def _pod(pods: Mapping[str, Level], level: Level) -> str:
    return next(name for name, other in pods.items() if other is level)


def _sources(rig: Rig) -> dict[str, Source]:
    return {
        source_name(way, level): arriving(rig, _pod(pods, level), way)
        for way, pods in ((Direction.TX, SENDERS), (Direction.RX, RECEIVERS))
        for level in Level
    }


def _short_flows(rig: Rig, traffic: Traffic, policy: Policy, times: Times) -> PerDirection[tuple[float, ...]]:
    """Flows of L0 in both directions at once, while L2 floods both and nobody else sends."""
    for way, pods in ((Direction.TX, SENDERS), (Direction.RX, RECEIVERS)):
        datagrams = Datagrams(rate_bps=int(policy.totals_bps[way] * _FLOOD))
        traffic.udp(_pod(pods, Level.L2), datagrams, towards_pod=way is Direction.RX).start()
    time.sleep(times.short_s / 8)
    servers = PerDirection(tx=Server(rig.wire, _SHORT_PORT), rx=Server(rig.wire, _SHORT_PORT + 1))
    asker = rig.pod(ASKER)
    calls = {
        way: start_flows(asker, servers[way], towards_source=way is Direction.RX, for_s=times.short_s)
        for way in Direction
    }
    found = {way: tuple(call.result(timeout_s=times.short_s + 30)) for way, call in calls.items()}
    traffic.stop()
    return PerDirection(tx=found[Direction.TX], rx=found[Direction.RX])


@contextlib.contextmanager
def _cost(enforcer: Enforcer, rig: Rig) -> Iterator[list[Cost]]:
    """What it took in the block, as one value that is there after it.

    Writes are those that it tells of; of one that does not, what the kernel reports as changed. The report is not
    listened to where it is not needed: the kernel reports also what was only asked for.
    """
    found: list[Cost] = []
    before = enforcer.reading()
    watch = Watch(rig.node) if before.writes is None else None
    with watch or contextlib.nullcontext():
        start_s, start_cpu_s = time.monotonic(), _cpu_s(enforcer)
        yield found
        elapsed_s, end_cpu_s = time.monotonic() - start_s, _cpu_s(enforcer)
        after, pid = enforcer.reading(), enforcer.pid
        memory = None if pid is None else resident_mib(pid)
    found.append(
        Cost(
            cpu_percent=None if pid is None else 100 * (end_cpu_s - start_cpu_s) / elapsed_s,
            resident_mib=memory,
            late_p99_ms=after.late_p99_ms,
            writes_a_second=_writes(before, after, watch) / elapsed_s,
        )
    )


def _writes(before: Reading, after: Reading, watch: Watch | None) -> int:
    if watch is not None:
        return sum(watch.counts.values())
    return (after.writes or 0) - (before.writes or 0)


def _cpu_s(enforcer: Enforcer) -> float:
    return 0.0 if enforcer.pid is None else cpu_s(enforcer.pid)
