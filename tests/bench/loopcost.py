"""loop-cost: what the fast loop takes of a core, and the whole daemon, with no workload, with 100 and with 500."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic
from tests.bench import crowd
from tests.bench.cost import cpu_s
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running

_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_CASE = Case(total_bps=200 * M, pods=_PODS)
_COUNTS = (0, 100, 500)
_WATCH_S = 15.0
_LOOP = "netqos-loop-tc"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    percent: float
    loop_percent: float
    ticks_a_second: float
    late_p99_ms: float


def loop_cost(options: Options) -> list[Figure]:
    """The loop's own thread and the whole process over 15 s, idle and in contention in both directions."""
    del options
    figures: list[Figure] = []
    for count in _COUNTS:
        idle, busy = _measure(count)
        figures += _figures(f"{count} pods, idle", idle, claimed=1)
        figures += _figures(f"{count} pods, in contention", busy, claimed=2.5)
    return figures


def _measure(count: int) -> tuple[_Cost, _Cost]:
    with Rig(pods=(*_PODS, crowd.NAME)) as rig:
        crowd.settle(rig, count)
        document = _CASE.config(rig)
        document["workloads"] += crowd.workloads(count)
        with running(rig, document) as daemon:
            time.sleep(2)
            say(f"loop-cost: {count} pods, {_WATCH_S:.0f} s idle")
            idle = _watch(daemon)
            traffic = Traffic(rig)
            for name in _PODS:
                traffic.tcp(name).start()
                traffic.tcp(name, towards_pod=True).start()
            time.sleep(1)
            say(f"loop-cost: {count} pods, {_WATCH_S:.0f} s in contention in both directions")
            busy = _watch(daemon)
            traffic.stop()
    return idle, busy


def _figures(what: str, cost: _Cost, *, claimed: float) -> Iterator[Figure]:
    yield Figure(
        bench="loop-cost",
        what=f"{what}: CPU of the loop",
        unit="% of a core",
        runs=(cost.loop_percent,),
        target=at_most(claimed),
        note=f"{number(cost.ticks_a_second)} ticks a second, lateness p99 {number(cost.late_p99_ms)} ms",
    )
    yield Figure(
        bench="loop-cost", what=f"{what}: CPU of the whole daemon", unit="% of a core", runs=(cost.percent,)
    )


def _watch(daemon: Daemon) -> _Cost:
    before_s, ticks, own_s = cpu_s(daemon.pid), _loop(daemon)["ticks"], _thread_s(daemon.pid)
    start_s = time.monotonic()
    time.sleep(_WATCH_S)
    after_s, own_after_s = cpu_s(daemon.pid), _thread_s(daemon.pid)
    loop, elapsed_s = _loop(daemon), time.monotonic() - start_s
    made = loop["ticks"] - ticks
    return _Cost(
        percent=100 * (after_s - before_s) / elapsed_s,
        loop_percent=100 * (own_after_s - own_s) / elapsed_s,
        ticks_a_second=made / elapsed_s,
        late_p99_ms=1000 * loop["late_p99_s"],
    )


def _loop(daemon: Daemon) -> Mapping[str, float]:
    loop: Mapping[str, float] = daemon.client.get("/v1/status")["loop"]
    return loop


def _thread_s(pid: int) -> float:
    """The processor time of the loop's thread."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if _LOOP.startswith((task / "comm").read_text(encoding="ascii").strip()):
            return int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    raise LookupError(f"netqosd has no thread {_LOOP}")
