"""kube-load: how late the fast loop ticks while the API server gives the daemon much to do, and while it is idle.

Beside it runs a process that only sleeps: what that one is late by, the machine owes to everybody. The server and who
writes to it have a lower priority than the daemon, for on a real node they are elsewhere.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from netqos.testing.analysis import percentile
from netqos.testing.faultreplies import Body, CutBody, HalfBody, HangUp, Reply, gone, status
from tests.bench import lateticks
from tests.bench.figures import Figure, at_most, number
from tests.bench.kubenode import EGRESS, KubeNode, following_node
from tests.bench.options import Options, say

PODS, CHURN_S = 500, 10.0
BIG_PODS, BIG_BYTES, LISTS = 1000, 100_000, 3
IDLE_S = 10.0
INTERVAL = "20ms"

_NICE = 10
_REPLIES: tuple[Reply, ...] = (
    *(status(500), status(429, retry_after_s=1), Body(content=b"<html>")),
    *(HalfBody(), CutBody(), HangUp()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Late:
    """One phase. Milliseconds; `over` is the share of ticks that were more than 5 ms late, in percent."""

    ticks: int
    p99_ms: float
    over: float
    sleeper_p99_ms: float
    most_mib: float


def kube_load(options: Options) -> list[Figure]:
    """Lateness of the ticks, p99: idle, 500 pods in 10 s, lists of 1,000 large pods, faults of the server."""
    del options
    document = {"metrics": lateticks.METRICS, "loop": {"interval": INTERVAL}}
    with ExitStack() as stack:
        stack.enter_context(_low_priority())
        node = stack.enter_context(following_node(1, more=document))
        _raise(node.daemon.pid)
        sleeps = stack.enter_context(lateticks.sleeper())
        _raise(sleeps.pid)
        time.sleep(2)
        idle = _watch(node, sleeps, "idle", _idle)
        phases = {
            f"{PODS} pods created and deleted in {CHURN_S:.0f} s": _watch(node, sleeps, "churn", _churn),
            "faults of the server": _watch(node, sleeps, "faults", _faults),
        }
        _fill(node)
        what = f"{LISTS} lists of {BIG_PODS} pods of {BIG_BYTES // 1000} kB"
        phases[what] = _watch(node, sleeps, "lists", _lists)
    figures = [_figure("idle", idle, idle), *(_figure(name, one, idle) for name, one in phases.items())]
    return [*figures, _memory(max(one.most_mib for one in phases.values()))]


# -------------------------------------------------------------- what happens


def _idle(_node: KubeNode) -> None:
    time.sleep(IDLE_S)


def _churn(node: KubeNode) -> None:
    began_s, step_s = time.monotonic(), CHURN_S / 2 / PODS

    def at(number: int, work: Callable[[], object]) -> None:
        time.sleep(max(0.0, began_s + number * step_s - time.monotonic()))
        work()

    def create(number: int) -> None:
        address = f"10.89.{number >> 8}.{number & 255}"
        node.kube.create_pod(f"load-{number}", ips=[address], annotations={EGRESS: "20M"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: at(number, lambda: create(number)), range(PODS)))
        list(
            pool.map(
                lambda number: at(PODS + number, lambda: node.kube.remove_pod(f"load-{number}")), range(PODS)
            )
        )
    time.sleep(1)


def _faults(node: KubeNode) -> None:
    for reply in _REPLIES:
        node.proxy.answer(reply, path="/api/v1/pods")
        node.proxy.reset()
        time.sleep(1.5)
        node.proxy.clear()
        time.sleep(1)
    node.proxy.refuse()
    node.proxy.reset()
    time.sleep(2)
    node.proxy.restore()
    time.sleep(2)


def _fill(node: KubeNode) -> None:
    say(f"kube-load: {BIG_PODS} large pods")
    padding = {EGRESS: "30M", "example.org/padding": "x" * BIG_BYTES}
    node.kube.create_pods(BIG_PODS, prefix="big", annotations=padding)
    node.wait(lambda: list(node.limits().values()).count("30Mbit") >= BIG_PODS - 1, 60)
    time.sleep(2)


def _lists(node: KubeNode) -> None:
    for _ in range(LISTS):
        node.proxy.answer(gone(), path="/api/v1/pods", watch=True, times=1)
        node.proxy.reset()
        time.sleep(4)


# -------------------------------------------------------------- how late it was


def _watch(node: KubeNode, sleeps: lateticks.Sleeper, name: str, work: Callable[[KubeNode], None]) -> _Late:
    say(f"kube-load: {name}")
    before, began_s = lateticks.buckets(node.rig), time.monotonic()
    work(node)
    ended_s, after = time.monotonic(), lateticks.buckets(node.rig)
    counts = lateticks.since(before, after)
    return _Late(
        ticks=lateticks.ticks(counts),
        p99_ms=1000 * lateticks.percentile_s(counts, 99),
        over=lateticks.over_percent(counts),
        sleeper_p99_ms=1000 * percentile(sleeps.late_s(began_s, ended_s), 99),
        most_mib=_peak_mib(node.daemon.pid),
    )


def _peak_mib(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


@contextmanager
def _low_priority() -> Iterator[None]:
    """For this process and what it starts."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before + _NICE)
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _raise(pid: int) -> None:
    """Give a process and its threads the usual priority again, where that is allowed."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, int(task.name), 0)


# -------------------------------------------------------------- figures


def _figure(what: str, late: _Late, idle: _Late) -> Figure:
    ratio = "" if late is idle else f"{number(late.p99_ms / max(idle.p99_ms, 1e-6))} times idle; "
    return Figure(
        bench="kube-load",
        what=f"{what}: tick lateness p99",
        unit="ms",
        runs=(late.p99_ms,),
        target=at_most(1000 * lateticks.LATE_S),
        baseline=(late.sleeper_p99_ms,),
        baseline_name="a process that only sleeps",
        note=f"{ratio}{number(late.over)} % of {late.ticks} ticks over 5 ms",
    )


def _memory(most_mib: float) -> Figure:
    return Figure(
        bench="kube-load", what="most memory of all this", unit="MiB", runs=(most_mib,), target=at_most(96)
    )
