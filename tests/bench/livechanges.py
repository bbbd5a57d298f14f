"""live-changes: totals, guarantees, ceilings and thresholds change in the file while all levels flood both directions.

Floods want more than there is at every moment, so what each gets after a change follows from the law, and a window
tells of the shaper alone: what TCP gets in 50 ms swings by a quarter without any change. The file is written as an
editor does it, and time counts from that moment, so watching, composing and planning are part of what a change takes.
Counted is what the classes send, which no busy receiver delays.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series, settled_after_s
from netqos.testing.daemon import Daemon, Document, workload
from netqos.testing.netns import Rig
from netqos.testing.traffic import Datagrams, Traffic
from netqos_tc import answers, numbers, wire
from netqos_tc.netlink import Channel
from tests.bench.figures import Figure, at_least, at_most
from tests.bench.options import Options, say
from tests.bench.shapers import M

PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
WINDOW_S = 0.05
_STEP_S, _AFTER_S, _BEFORE_S, _READ_S = 0.01, 0.8, 0.6, 0.005
_READING_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The policy of one direction: total, and guarantees and ceilings of L1 and L2 in percent of it."""

    total_bps: int
    guarantees: tuple[int, int] = (30, 20)
    ceilings: tuple[int, int] = (100, 100)

    def expected_bps(self, levels: frozenset[Level]) -> Mapping[Level, float]:
        """What flooding levels get: with L0 each its guarantee, without it L1 before L2 all that they may."""
        m1, m2 = map(self.percent, self.guarantees)
        most_1, most_2 = map(self.percent, self.ceilings)
        if Level.L0 in levels:
            return {Level.L0: self.total_bps - m1 - m2, Level.L1: m1, Level.L2: m2}
        l1 = min(most_1, self.total_bps - m2)
        return {Level.L1: l1, Level.L2: min(most_2, self.total_bps - l1)}

    def most_bps(self) -> Mapping[Level | None, float]:
        """What L1, L2 and (None) all together may have."""
        return {
            Level.L1: self.percent(self.ceilings[0]),
            Level.L2: self.percent(self.ceilings[1]),
            None: self.total_bps,
        }

    def percent(self, share: int) -> float:
        """Bits per second."""
        return self.total_bps * share / 100

    def levels(self, way: str) -> Mapping[str, Document]:
        """The keys of one direction under `policy.levels`."""
        pairs = zip(("l1", "l2"), self.guarantees, self.ceilings, strict=True)
        return {name: {f"{way}Min": f"{low}%", f"{way}Max": f"{high}%"} for name, low, high in pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Both directions, and the loop's own settings."""

    tx: Promise
    rx: Promise
    loop: Mapping[str, object] = field(default_factory=dict)

    def promise(self, direction: Direction) -> Promise:
        """Of one direction."""
        return self.tx if direction is Direction.TX else self.rx

    def document(self, rig: Rig) -> Document:
        """The configuration."""
        tx, rx = self.tx.levels("tx"), self.rx.levels("rx")
        return {
            "node": {"bandwidth": {"tx": str(self.tx.total_bps), "rx": str(self.rx.total_bps)}},
            "policy": {"enable": True, "levels": {name: {**tx[name], **rx[name]} for name in tx}},
            "workloads": [workload(rig, name, level) for name, level in PODS.items()],
            "loop": dict(self.loop),
        }


START = Setting(tx=Promise(total_bps=120 * M), rx=Promise(total_bps=90 * M))
ALL, BELOW_L0 = frozenset(Level), frozenset({Level.L1, Level.L2})
CHANGES: Mapping[str, tuple[frozenset[Level], Setting]] = {
    "total": (ALL, Setting(tx=Promise(total_bps=80 * M), rx=Promise(total_bps=60 * M))),
    "guarantees": (
        ALL,
        Setting(
            tx=Promise(total_bps=120 * M, guarantees=(20, 45)),
            rx=Promise(total_bps=90 * M, guarantees=(15, 50)),
        ),
    ),
    "thresholds": (
        ALL,
        Setting(
            tx=START.tx,
            rx=START.rx,
            loop={"enter": "80%", "enterBacklogged": "75%", "leave": "60%", "interval": "100ms"},
        ),
    ),
    "ceiling of L1": (
        BELOW_L0,
        Setting(
            tx=Promise(total_bps=120 * M, ceilings=(35, 100)),
            rx=Promise(total_bps=90 * M, ceilings=(40, 100)),
        ),
    ),
}
"""What changes, and the levels that send meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change in one direction, shares of 1.

    `settled_s`: until all stay within 10 percent of what they should get; `reached_s`: until they are for the first
    time; None: never. `gap`: the lowest window of a level against the lower of what it gets before and after. `over`:
    the highest window of a level or of all against the higher of the ceilings before and after. `calm`: gap and over
    before the change, which are the traffic's own.
    """

    name: str
    direction: Direction
    settled_s: float | None
    reached_s: float | None
    gap: float
    over: float
    calm: tuple[float, float]


@contextmanager
def shaped(rig: Rig) -> Iterator[Daemon]:
    """The daemon with the first setting."""
    daemon = Daemon(rig, START.document(rig))
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.kill()


def measure(rig: Rig, daemon: Daemon, name: str, *, width_s: float = WINDOW_S) -> list[Change]:
    """Make a change and take it back, with the classes watched in windows of a width."""
    levels, setting = CHANGES[name]
    pods = [pod for pod, level in PODS.items() if level in levels]
    traffic = Traffic(rig)
    with ExitStack() as stack:
        stack.callback(traffic.stop)
        for direction in Direction:
            for pod in pods:
                flood = Datagrams(rate_bps=START.promise(direction).total_bps, segments=1)
                traffic.udp(pod, flood, towards_pod=direction is Direction.RX).start()
        time.sleep(_BEFORE_S)
        counting = rig.node.fork(count, rig.uplink, _BEFORE_S + 2 * (_AFTER_S + _BEFORE_S))
        time.sleep(_BEFORE_S)
        moments = []
        for after in (setting, START):
            moments.append(time.monotonic())
            daemon.configure(after.document(rig))
            time.sleep(_AFTER_S + _BEFORE_S)
        series = counting.result()
    steps = ((name, START, setting), (f"{name}, back", setting, START))
    return [
        _judge(Watched(series, at_s, direction, levels, width_s), label, before, after)
        for at_s, (label, before, after) in zip(moments, steps, strict=True)
        for direction in Direction
    ]


def count(uplink: str, seconds: float) -> Series:
    """What the levels' classes have sent in both directions; runs in a child inside the node."""
    channel = Channel.route()
    devices = {Direction.TX: socket.if_nametoindex(uplink), Direction.RX: numbers.IFB_INDEX}
    requests = {
        f"{direction.value} {level.name}": wire.get_class(device, numbers.LEVELS[level])
        for direction, device in devices.items()
        for level in Level
    }
    at_s: list[float] = []
    counts: dict[str, list[float]] = {name: [] for name in requests}
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        began_s = time.monotonic()
        found = {name: answers.read_counters(channel.get(one)).sent_bytes for name, one in requests.items()}
        took_s = time.monotonic() - began_s
        if took_s < _READING_S:  # a longer one is of no single moment
            at_s.append(began_s + took_s / 2)
            for name, sent_bytes in found.items():
                counts[name].append(sent_bytes)
        time.sleep(_READ_S)
    return Series(at_s=tuple(at_s), counts={name: tuple(column) for name, column in counts.items()})


@dataclass(frozen=True, slots=True)
class Watched:
    """One direction around one change."""

    series: Series
    changed_s: float
    direction: Direction
    levels: frozenset[Level]
    width_s: float

    def name(self, level: Level) -> str:
        """The level's source."""
        return f"{self.direction.value} {level.name}"

    def extremes(
        self, start_s: float, end_s: float, least: Mapping[Level, float], most: Mapping[Level | None, float]
    ) -> tuple[float, float]:
        """The lowest window against what a level should get at least, the highest against what it may; None: all."""
        near = self.series.between(start_s, end_s)
        summed = near.summed("all", [*map(self.name, self.levels)]).windows("all", width_s=self.width_s)
        rates = {level: near.windows(self.name(level), width_s=self.width_s) for level in self.levels}
        low = min(min(rates[level]) / least[level] for level in self.levels)
        return low, max(max(summed if one is None else rates[one]) / bps for one, bps in most.items())

    def settled_s(self, expected_bps: Mapping[Level, float]) -> float | None:
        """Seconds from the change until all stay within 10 percent."""
        return settled_after_s(
            self.series,
            {self.name(level): bps for level, bps in expected_bps.items()},
            start_s=self.changed_s,
            end_s=self.changed_s + _AFTER_S,
            step_s=_STEP_S,
        )

    def reached_s(self, expected_bps: Mapping[Level, float]) -> float | None:
        """Seconds from the change until the first 100 ms in which all are within 10 percent have begun."""
        end_s = self.changed_s + _AFTER_S
        bins = {
            level: self.series.bins(self.name(level), self.changed_s, end_s, width_s=0.1, step_s=_STEP_S)
            for level in expected_bps
        }
        for place, rates in enumerate(zip(*bins.values(), strict=True)):
            pairs = zip(rates, expected_bps.values(), strict=True)
            if all(abs(rate - bps) <= bps / 10 for rate, bps in pairs):
                return place * _STEP_S
        return None


def _judge(watched: Watched, name: str, before: Setting, after: Setting) -> Change:
    old, new = before.promise(watched.direction), after.promise(watched.direction)
    got, gets = old.expected_bps(watched.levels), new.expected_bps(watched.levels)
    least = {level: min(got[level], gets[level]) for level in watched.levels}
    then, now = old.most_bps(), new.most_bps()
    changed_s = watched.changed_s
    gap, over = watched.extremes(
        changed_s - _BEFORE_S / 2,
        changed_s + _AFTER_S,
        least,
        {one: max(then[one], now[one]) for one in then},
    )
    return Change(
        name=name,
        direction=watched.direction,
        settled_s=watched.settled_s(gets),
        reached_s=watched.reached_s(gets),
        gap=gap,
        over=over,
        calm=watched.extremes(changed_s - _BEFORE_S, changed_s, got, then),
    )


def live_changes(options: Options) -> list[Figure]:
    """Every change and its way back in both directions, windows of 50 ms; medians of the runs."""
    runs: list[list[Change]] = []
    for run in range(options.runs):
        with Rig(pods=tuple(PODS)) as rig, shaped(rig) as daemon:
            time.sleep(1)
            changes = []
            for name in CHANGES:
                say(f"live-changes: {name}, run {run + 1}")
                changes += measure(rig, daemon, name)
        runs.append(changes)
    return [figure for same in zip(*runs, strict=True) for figure in _figures(same)]


def _figures(same: tuple[Change, ...]) -> Iterator[Figure]:
    what = f"{same[0].name}, {same[0].direction.pod_word}"
    yield Figure(
        bench="live-changes",
        what=f"{what}: settled",
        unit="ms",
        runs=tuple(_ms(one.settled_s) for one in same),
        target=at_most(250),
        baseline=tuple(_ms(one.reached_s) for one in same),
        baseline_name="right for the first time",
    )
    yield Figure(
        bench="live-changes",
        what=f"{what}: highest 50 ms against its ceiling",
        unit="%",
        runs=tuple(100 * one.over for one in same),
        target=at_most(102),
        baseline=tuple(100 * one.calm[1] for one in same),
        baseline_name="before the change",
    )
    yield Figure(
        bench="live-changes",
        what=f"{what}: lowest 50 ms against the lower of before and after",
        unit="%",
        runs=tuple(100 * one.gap for one in same),
        target=at_least(80),
        baseline=tuple(100 * one.calm[0] for one in same),
        baseline_name="before the change",
    )


def _ms(seconds: float | None) -> float:
    return float("inf") if seconds is None else 1000 * seconds
