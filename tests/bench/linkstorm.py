"""link-storm: what the daemon takes while the kernel tells of 1,000 changed links a second."""

from __future__ import annotations

import time

from netqos.model.levels import Level
from netqos.testing.linkstorm import churn, storm
from netqos.testing.netns import Rig
from tests.bench.cost import cpu_s
from tests.bench.figures import Figure, at_most
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon

_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_CASE = Case(total_bps=200 * M, pods=_PODS)
_WATCH_S = 5.0
_RATE = 1000.0


def link_storm(options: Options) -> list[Figure]:
    """CPU of the whole process over 5 s of events of a pod's link, of the uplink, and of pods that come and go."""
    idle: list[float] = []
    of_pod: list[float] = []
    of_uplink: list[float] = []
    churned: list[float] = []
    with Rig(pods=tuple(_PODS)) as rig, running_daemon(rig, _CASE) as daemon:
        time.sleep(2)
        for _ in range(options.runs):
            for device, found in (("", idle), (rig.pod("web").link, of_pod), (rig.uplink, of_uplink)):
                say(f"link-storm: {device or 'idle'}")
                found.append(_percent(rig, daemon.pid, device))
            say("link-storm: pods come and go")
            churned.append(_churned(rig, daemon.pid))
    return [
        _figure("events of a pod's link: CPU", of_pod, idle),
        _figure("events of the uplink: CPU", of_uplink, idle),
        _figure(
            "pods' links come and go: CPU", churned, idle, note="30 veth pairs a second, made and removed"
        ),
    ]


def _percent(rig: Rig, pid: int, device: str) -> float:
    call = rig.node.fork(storm, device, seconds=_WATCH_S, rate=_RATE) if device else None
    began_s, before_s = time.monotonic(), cpu_s(pid)
    time.sleep(_WATCH_S)
    percent = 100 * (cpu_s(pid) - before_s) / (time.monotonic() - began_s)
    if call is not None and call.result() < 0.95 * _WATCH_S * _RATE:
        raise RuntimeError("this machine is too busy for the storm")
    return percent


def _churned(rig: Rig, pid: int) -> float:
    call = rig.node.fork(churn, seconds=_WATCH_S)
    began_s, before_s = time.monotonic(), cpu_s(pid)
    call.result()
    return 100 * (cpu_s(pid) - before_s) / (time.monotonic() - began_s)


def _figure(what: str, runs: list[float], idle: list[float], note: str = "1,000 events a second") -> Figure:
    return Figure(
        bench="link-storm",
        what=what,
        unit="% of a core",
        runs=tuple(runs),
        target=at_most(10),
        baseline=tuple(idle),
        baseline_name="without events",
        note=note,
    )
