"""lateness: how late the loop ticks beside programs that only compute, readers of status, reconciles and a log flood.

Each is measured twice in turn, as the daemon runs and as a program like any other (without CAP_SYS_NICE); the baseline
is a process that only sleeps, at the same time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from netqos.runtime.precedence import REST_S
from netqos.testing.analysis import percentile
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from netqos.testing.statusclient import StatusClient
from tests.bench import crowd, lateticks
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say

_PODS = 200
_WATCH_S = 15.0
_PAUSE_S = 0.1
_LOOP = {"interval": "10ms", "contendedInterval": "10ms"}
_ORDINARY = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n for _ in range(100000): pass"


class _Ordinary(Daemon):
    """One that may not go before others."""

    @property
    def command(self) -> list[str]:
        return [*_ORDINARY, *super().command]


_KINDS: Mapping[str, type[Daemon]] = {"as it runs": Daemon, "as a program like any other": _Ordinary}


def lateness(options: Options) -> list[Figure]:
    """p50, p99 and p99.9 of the ticks' lateness; ticks every 10 ms, so that there are enough of them."""
    seen: dict[str, list[lateticks.Buckets]] = {name: [] for name in _KINDS}
    slept: dict[str, list[float]] = {name: [] for name in _KINDS}
    for run in range(options.runs):
        for name, kind in _KINDS.items():
            say(f"lateness: {name}, run {run + 1}")
            counts, late_s = _measure(kind)
            seen[name].append(counts)
            slept[name] += late_s
    return [figure for name in _KINDS for figure in _figures(name, seen[name], slept[name])]


def _measure(kind: type[Daemon]) -> tuple[lateticks.Buckets, list[float]]:
    with ExitStack() as stack:
        rig = stack.enter_context(Rig(pods=(crowd.NAME,)))
        crowd.settle(rig, _PODS)
        document = crowd.config(crowd.workloads(_PODS, limit=lambda place: f"{20 + place % 7}M"))
        more = {"metrics": lateticks.METRICS, "loop": _LOOP, "log": {"level": "debug"}}
        daemon = kind(rig, {**document, **more})
        daemon.start()
        stack.callback(daemon.kill)
        time.sleep(REST_S + 1)  # a start computes much
        stack.enter_context(_disturbed(rig, daemon.paths.socket))
        sleeps = stack.enter_context(lateticks.sleeper())
        time.sleep(0.5)
        return lateticks.watched(rig, _WATCH_S, sleeps)


@contextmanager
def _disturbed(rig: Rig, socket: Path) -> Iterator[None]:
    """A program that computes on every processor, a reader of status and pods, and changes, which are logged."""
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    asking = [rig.node.fork(_read, socket), rig.node.fork(_change, socket)]
    try:
        yield
    finally:
        for call in asking:
            call.kill()
        for process in busy:
            process.kill()
            process.wait()


def _read(socket: Path) -> None:
    client = StatusClient(socket)
    while True:
        client.get("/v1/status")
        client.get("/v1/pods")
        time.sleep(_PAUSE_S)


def _change(socket: Path) -> None:
    client, turn = StatusClient(socket), 0
    while True:
        turn += 1
        client.put(f"/v1/overrides/workload:w{turn % _PODS}", {"egress": f"{30 + turn % 50}M", "ttl": "10m"})
        time.sleep(_PAUSE_S)


def _figures(name: str, seen: Sequence[lateticks.Buckets], slept: Sequence[float]) -> Iterator[Figure]:
    together = {bound: sum(counts[bound] for counts in seen) for bound in seen[0]}
    over = f"{number(lateticks.over_percent(together))} % of {lateticks.ticks(together)} over 5 ms"
    is_own = name == next(iter(_KINDS))
    for percent in (50, 99, 99.9):
        yield Figure(
            bench="lateness",
            what=f"{name}: p{percent:g}",
            unit="ms",
            runs=tuple(1000 * lateticks.percentile_s(counts, percent) for counts in seen),
            target=at_most(5) if is_own and percent == 99.9 else None,
            baseline=(1000 * percentile(slept, percent),),
            baseline_name="a process that only sleeps",
            note=over,
        )
