"""How late the daemon's loop ticks, from its own metrics, beside a process that only sleeps."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from netqos.testing.netns import Rig

PORT = 9469
LATE_S = 0.005
METRICS = {"listen": f"127.0.0.1:{PORT}"}

_BUCKET = re.compile(r'^netqos_tick_lateness_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
_SLEEPER = """
import sys, time
due = time.monotonic()
with open(sys.argv[1], "w", buffering=1) as file:
    while True:
        due = max(due + 0.02, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic()
        print(now, now - due, file=file)
"""

Buckets = Mapping[float, float]
"""Ticks since the start that were late by no more than so many seconds."""


def buckets(rig: Rig) -> Buckets:
    """As the daemon's metrics have them now."""
    return {float(bound): float(count) for bound, count in _BUCKET.findall(rig.node.call(_scrape))}


def since(before: Buckets, now: Buckets) -> Buckets:
    """What came in between."""
    return {bound: now[bound] - before[bound] for bound in now}


def ticks(counts: Buckets) -> int:
    """All of them."""
    return int(counts[float("inf")])


def over_percent(counts: Buckets) -> float:
    """The share that was more than 5 ms late."""
    return 100 * (ticks(counts) - counts[LATE_S]) / max(ticks(counts), 1)


def percentile_s(counts: Buckets, percent: float) -> float:
    """As Prometheus takes it from a histogram: even within a bucket; the last bound for what lies above it."""
    bounds = sorted(counts)
    wanted = percent / 100 * counts[bounds[-1]]
    place = bisect_left([counts[bound] for bound in bounds], wanted)
    lower, below = (bounds[place - 1], counts[bounds[place - 1]]) if place else (0.0, 0.0)
    upper = bounds[place]
    if upper == float("inf"):
        return lower
    return lower + (upper - lower) * (wanted - below) / max(counts[upper] - below, 1)


class Sleeper:
    """A process that wakes every 20 ms and notes how late."""

    def __init__(self, path: Path) -> None:
        """It writes there."""
        self._path = path
        self._process = subprocess.Popen([sys.executable, "-c", _SLEEPER, str(path)])

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def late_s(self, start_s: float, end_s: float) -> list[float]:
        """By how much it was late between two moments."""
        lines = [line.split() for line in self._path.read_text(encoding="ascii").splitlines()[:-1]]
        return [float(late_s) for at_s, late_s in lines if start_s <= float(at_s) <= end_s]

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()


@contextmanager
def sleeper() -> Iterator[Sleeper]:
    """One that lives as long as this."""
    with tempfile.TemporaryDirectory() as folder:
        one = Sleeper(Path(folder) / "late")
        try:
            yield one
        finally:
            one.end()


def watched(rig: Rig, seconds: float, sleeps: Sleeper) -> tuple[Buckets, list[float]]:
    """The ticks of so long, and by how much the sleeper was late meanwhile."""
    before, began_s = buckets(rig), time.monotonic()
    time.sleep(seconds)
    ended_s, after = time.monotonic(), buckets(rig)
    return since(before, after), sleeps.late_s(began_s, ended_s)


def _scrape() -> str:
    import urllib.request  # noqa: PLC0415 - in the child only

    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10) as answer:
        return str(answer.read().decode())
