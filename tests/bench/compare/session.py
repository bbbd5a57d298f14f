"""One run of one enforcer: a fresh rig, the same traffic in both directions, and everything that was read of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from netqos.model.levels import PerDirection
from netqos.testing.analysis import Series
from netqos.testing.events import Watch
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.probes import Delays, start_echo
from netqos.testing.processes import CommandFailed
from netqos.testing.traffic import Traffic
from tests.bench.compare.script import METER_S, Mark, Script, Times, short_flows, sources
from tests.bench.compare.surface import ASKER, Enforcer, Policy, Reading
from tests.bench.cost import cpu_s, resident_mib

_PROBE_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the agent took while the greedy flows ran; None where there is no agent, or it does not tell."""

    cpu_percent: float | None = None
    resident_mib: float | None = None
    late_p99_ms: float | None = None
    writes_a_second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run. The series has one source a direction and level, and `NODE`, in Ethernet bytes.

    `node_s`: from when to when the node itself received, beside all levels.
    """

    series: Series
    marks: tuple[Mark, ...]
    node_s: tuple[float, float]
    delays: Delays
    shorts_s: PerDirection[tuple[float, ...]]
    cost: Cost


def record(enforcer: Enforcer, policy: Policy, times: Times, *, congestion: str = "cubic") -> Recording:
    """Build a rig, start the enforcer, and run the traffic; nothing stays afterwards."""
    with Rig(pods=tuple(policy.pods)) as rig:
        enforcer.start(rig)
        try:
            enforcer.apply(policy)
            traffic = Traffic(rig)
            script = Script(rig, traffic, policy, congestion=congestion)
            with _cost(enforcer, rig) as costs, Meter(rig.wire, sources(rig), interval_s=METER_S) as meter:
                count = int(times.greedy_s / _PROBE_S)
                probe = start_echo(rig.pod(ASKER), rig.wire.address, count=count, interval_s=_PROBE_S)
                marks, node_s = script.run(times)
                series = meter.stop()
                delays = probe.result(timeout_s=30)
            script.stop()
            shorts = short_flows(rig, traffic, policy, times)
            return Recording(
                series=series,
                marks=tuple(marks),
                node_s=node_s,
                delays=delays,
                shorts_s=shorts,
                cost=costs[0],
            )
        finally:
            enforcer.stop()


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
        _check_alive(enforcer)
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


def _check_alive(enforcer: Enforcer) -> None:
    """What an agent left in the kernel when it ended is no figure of it."""
    if enforcer.pid is None:
        return
    try:
        state = Path(f"/proc/{enforcer.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        state = "X"
    if state in {"X", "Z"}:
        raise CommandFailed(
            "ended while it was measured", subject=f"{enforcer.name} (process {enforcer.pid})"
        )


def _writes(before: Reading, after: Reading, watch: Watch | None) -> int:
    if watch is not None:
        return sum(watch.counts.values())
    return (after.writes or 0) - (before.writes or 0)


def _cpu_s(enforcer: Enforcer) -> float:
    return 0.0 if enforcer.pid is None else cpu_s(enforcer.pid)
