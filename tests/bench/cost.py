"""loop-cost and memory: what the daemon itself takes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon

_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_CASE = Case(total_bps=200 * M, pods=_PODS)
_WATCH_S = 20.0
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    percent: float
    ticks_a_second: float
    late_p99_ms: float


def loop_cost(options: Options) -> list[Figure]:
    """CPU of the whole process over 20 s, idle and in contention in both directions, with its ticks and lateness."""
    del options
    with Rig(pods=tuple(_PODS)) as rig, running_daemon(rig, _CASE) as daemon:
        time.sleep(2)
        say("loop-cost: 20 s idle")
        idle = _watch(daemon)
        traffic = Traffic(rig)
        for name in _PODS:
            traffic.tcp(name).start()
            traffic.tcp(name, towards_pod=True).start()
        time.sleep(1)
        say("loop-cost: 20 s in contention in both directions")
        busy = _watch(daemon)
        traffic.stop()
    return [
        _cpu("idle", idle, claimed=1.5),
        _late("idle", idle, claimed=5),
        _cpu("in contention", busy),
        _late("in contention, since the start", busy),
    ]


def _cpu(what: str, cost: _Cost, *, claimed: float | None = None) -> Figure:
    return Figure(
        bench="loop-cost",
        what=f"{what}: CPU",
        unit="% of a core",
        runs=(cost.percent,),
        target=None if claimed is None else at_most(claimed),
        note=f"{number(cost.ticks_a_second)} ticks a second",
    )


def _late(what: str, cost: _Cost, *, claimed: float | None = None) -> Figure:
    return Figure(
        bench="loop-cost",
        what=f"{what}: tick lateness p99",
        unit="ms",
        runs=(cost.late_p99_ms,),
        target=None if claimed is None else at_most(claimed),
    )


def _watch(daemon: Daemon) -> _Cost:
    before_s, ticks = cpu_s(daemon.pid), _loop(daemon)["ticks"]
    start_s = time.monotonic()
    time.sleep(_WATCH_S)
    after_s, elapsed_s = cpu_s(daemon.pid), time.monotonic() - start_s
    loop = _loop(daemon)
    return _Cost(
        percent=100 * (after_s - before_s) / elapsed_s,
        ticks_a_second=(loop["ticks"] - ticks) / elapsed_s,
        late_p99_ms=1000 * loop["late_p99_s"],
    )


def _loop(daemon: Daemon) -> Mapping[str, float]:
    loop: Mapping[str, float] = daemon.client.get("/v1/status")["loop"]
    return loop


def cpu_s(pid: int) -> float:
    """The processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def memory(options: Options) -> list[Figure]:
    """Resident memory with both backends, three workloads, status and metrics, after both were asked."""
    figures = []
    for _ in range(options.runs):
        with Rig(pods=tuple(_PODS)) as rig:
            document = {
                **_CASE.config(rig, backends=("tc", "terway")),
                "backendOptions": {"terway": {"folder": str(rig.folder / "terway")}},
                "metrics": {"listen": "127.0.0.1:9469"},
            }
            daemon = Daemon(rig, document)
            daemon.start()
            for _ in range(5):
                daemon.client.get("/v1/status")
                rig.node.call(_scrape)
                time.sleep(1)
            figures.append(resident_mib(daemon.pid))
            daemon.kill()
    return [
        Figure(
            bench="memory",
            what="RSS, tc and terway, 3 workloads, status and metrics",
            unit="MiB",
            runs=tuple(figures),
            target=at_most(56),
        )
    ]


def _scrape() -> None:
    import urllib.request  # noqa: PLC0415 - in the child only

    with urllib.request.urlopen("http://127.0.0.1:9469/metrics", timeout=5) as answer:
        answer.read()


def resident_mib(pid: int) -> float:
    """What a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024
