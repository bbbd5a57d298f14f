"""many: 500 limited workloads and no Kubernetes: the first start, the second, a changed limit, and memory."""

from __future__ import annotations

import random
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

from netqos.testing.analysis import percentile
from netqos.testing.daemon import Daemon, Document
from netqos.testing.netns import Rig
from tests.bench import crowd
from tests.bench.cost import cpu_s, resident_mib
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say

COUNT = 500
_CHANGES = 100
_SEED = 11
_TC_GROUP, _NEWTCLASS, _FIRST_WORKLOAD = 1 << 3, 40, 0x1000  # RTNLGRP_TC is 4


def many(options: Options) -> list[Figure]:
    """Each run: start on an untouched node, 100 changes, memory, then a second start."""
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
            target=None if limit is None else at_most(limit),
        )
        for what, (unit, limit) in _CLAIMS.items()
    ]


_CLAIMS = {
    "first start to nothing left to do": ("s", 2),
    "limits asked to in the kernel: p50": ("ms", None),
    "limits asked to in the kernel: p99": ("ms", 50),
    "limits asked to read back and answered: p50": ("ms", None),
    "limits asked to read back and answered: p99": ("ms", None),
    "CPU of the daemon for a change in both directions": ("ms", None),
    "CPU of the first start": ("s", None),
    "RSS, tc alone": ("MiB", 62),
    "second start: writes": ("", 0),
    "second start to nothing left to do": ("s", 2),
}


def _run() -> dict[str, float]:
    with Rig(pods=(crowd.NAME,)) as rig:
        crowd.settle(rig, COUNT)
        workloads = crowd.workloads(COUNT, limit=lambda place: f"{20 + place % 7}M")
        daemon = Daemon(rig, crowd.config(workloads))
        first_s, start_cpu_s = _start(daemon), cpu_s(daemon.pid)
        kernel_ms, answer_ms = _change(rig, daemon)
        changes_cpu_s = cpu_s(daemon.pid) - start_cpu_s
        found = {
            "first start to nothing left to do": first_s,
            "CPU of the first start": start_cpu_s,
            "CPU of the daemon for a change in both directions": 1000 * changes_cpu_s / _CHANGES,
            **{f"limits asked to in the kernel: p{one}": percentile(kernel_ms, one) for one in (50, 99)},
            **{
                f"limits asked to read back and answered: p{one}": percentile(answer_ms, one)
                for one in (50, 99)
            },
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


def _change(rig: Rig, daemon: Daemon) -> tuple[list[float], list[float]]:
    """Milliseconds from a request for limits in both directions until both classes have changed, and to its answer."""
    chance = random.Random(_SEED)
    kernel_ms, answer_ms = [], []
    with rig.node.entered():
        told = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    with told, ThreadPoolExecutor(1) as asking:
        told.bind((0, _TC_GROUP))
        told.settimeout(5)
        for change in range(_CHANGES):
            name = f"w{chance.randrange(COUNT)}"
            body = {"egress": f"{30 + change}M", "ingress": f"{60 + change}M", "ttl": "10m"}
            start_s = time.monotonic()
            asked = asking.submit(_timed, daemon, f"/v1/overrides/workload:{name}", body)
            devices: set[int] = set()
            while len(devices) < 2:
                devices |= _changed(told.recv(1 << 16))
            kernel_ms.append(1000 * (time.monotonic() - start_s))
            answer_ms.append(1000 * (asked.result() - start_s))
            time.sleep(0.02)
    return kernel_ms, answer_ms


def _timed(daemon: Daemon, path: str, body: Document) -> float:
    daemon.client.put(path, body)
    return time.monotonic()


def _changed(data: bytes) -> set[int]:
    """The devices of which the kernel says that a workload's class has changed."""
    found, place = set(), 0
    while place < len(data):
        size, kind = struct.unpack_from("=IH", data, place)
        device, handle = struct.unpack_from("=iI", data, place + 16 + 4)
        if kind == _NEWTCLASS and handle & 0xFFFF >= _FIRST_WORKLOAD:
            found.add(device)
        place += (size + 3) & ~3
    return found
