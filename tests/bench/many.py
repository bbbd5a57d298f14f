"""many: 500 limited workloads and no Kubernetes: the first start, the second, a changed limit, and memory."""

from __future__ import annotations

import random
import time

from netqos.testing.analysis import percentile
from netqos.testing.daemon import Daemon, Document
from netqos.testing.netns import Rig
from tests.bench import crowd
from tests.bench.cost import resident_mib
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say

COUNT = 500
_CHANGES = 200
_SEED = 11


def many(options: Options) -> list[Figure]:
    """Each run: start on an untouched node, 200 changes, memory, then a second start."""
    runs = []
    for run in range(options.runs):
        say(f"many: {COUNT} workloads, run {run + 1}")
        runs.append(_run())
    return [
        Figure(
            bench="many",
            what=what,
            unit=unit,
            runs=tuple(run[what] for run in runs),
            target=at_most(limit),
        )
        for what, (unit, limit) in _CLAIMS.items()
    ]


_CLAIMS = {
    "first start to nothing left to do": ("s", 2),
    "limit asked to in the kernel: p50": ("ms", 50),
    "limit asked to in the kernel: p99": ("ms", 50),
    "RSS, tc alone": ("MiB", 62),
    "second start: writes": ("", 0),
    "second start to nothing left to do": ("s", 2),
}


def _run() -> dict[str, float]:
    with Rig(pods=(crowd.NAME,)) as rig:
        crowd.settle(rig, COUNT)
        workloads = crowd.workloads(COUNT, limit=lambda place: f"{20 + place % 7}M")
        daemon = Daemon(rig, crowd.config(workloads))
        first_s = _start(daemon)
        took_ms = _change(daemon)
        found = {
            "first start to nothing left to do": first_s,
            "limit asked to in the kernel: p50": percentile(took_ms, 50),
            "limit asked to in the kernel: p99": percentile(took_ms, 99),
            "RSS, tc alone": resident_mib(daemon.pid),
        }
        daemon.stop()
        found["second start to nothing left to do"] = _start(daemon)
        backends = daemon.client.get("/v1/status")["backends"].values()
        done = (one["last_result"] for one in backends)
        found["second start: writes"] = float(sum(one["applied"] for one in done if one))
        daemon.kill()
    return found


def _start(daemon: Daemon) -> float:
    start_s = time.monotonic()
    daemon.spawn()
    daemon.wait_ready()
    daemon.client.wait_until("/v1/plan", _is_empty)
    took_s = time.monotonic() - start_s
    say(f"many: {number(took_s)} s")
    return took_s


def _is_empty(plan: Document) -> bool:
    return not any(one["operations"] for one in plan["plans"])


def _change(daemon: Daemon) -> list[float]:
    """Milliseconds from a request to its answer, which comes when both limits are in the kernel."""
    chance, took_ms = random.Random(_SEED), []
    for change in range(_CHANGES):
        name = f"w{chance.randrange(COUNT)}"
        body = {"egress": f"{5 + change % 9}M", "ingress": f"{11 + change % 9}M", "ttl": "10m"}
        start_s = time.monotonic()
        daemon.client.put(f"/v1/overrides/workload:{name}", body)
        took_ms.append(1000 * (time.monotonic() - start_s))
        time.sleep(0.02)
    return took_ms
