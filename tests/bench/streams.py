"""streams: how late the fast loop ticks, and what the daemon takes, while others read every tick of it.

`python -m tests.bench.streams SOCKET TARGET COUNT [stops]` are the readers, in a process of their own.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic
from tests.bench.cost import cpu_s
from tests.bench.figures import Figure
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon

_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_CASE = Case(total_bps=100 * M, pods=_PODS)
_WATCH_S = 6.0
_NOBODY = "nobody reads"
_READERS: dict[str, Sequence[tuple[str, int, str]]] = {
    _NOBODY: (),
    "10 read the stream": (("/v1/stream", 10, ""),),
    "10 read the stream, 1 records": (("/v1/stream", 10, ""), ("/v1/record", 1, "")),
    "10 opened the stream and stopped reading": (("/v1/stream", 10, "stops"),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    late_p99_ms: float
    late_max_ms: float
    percent: float
    ticks_a_second: float


def streams(options: Options) -> list[Figure]:
    """In contention in both directions, in turns; each turn has a daemon of its own, so its lateness is all of it."""
    seen: dict[str, list[_Seen]] = {what: [] for what in _READERS}
    with Rig(pods=tuple(_PODS)) as rig:
        traffic = Traffic(rig)
        for name in _PODS:
            traffic.tcp(name).start()
            traffic.tcp(name, towards_pod=True).start()
        for turn in range(options.runs):
            for what in _READERS:
                say(f"streams: turn {turn + 1}, {what}")
                seen[what].append(_turn(rig, what))
        traffic.stop()
    return [figure for what, turns in seen.items() for figure in _figures(what, turns, seen[_NOBODY])]


def _turn(rig: Rig, what: str) -> _Seen:
    with running_daemon(rig, _CASE) as daemon, ExitStack() as stack:
        time.sleep(1)
        for target, count, more in _READERS[what]:
            stack.enter_context(_reading(daemon, target, count, more))
        before_s, start_s = cpu_s(daemon.pid), time.monotonic()
        ticks = daemon.client.get("/v1/status")["loop"]["ticks"]
        time.sleep(_WATCH_S)
        loop, elapsed_s = daemon.client.get("/v1/status")["loop"], time.monotonic() - start_s
        return _Seen(
            late_p99_ms=1000 * loop["late_p99_s"],
            late_max_ms=1000 * loop["late_max_s"],
            percent=100 * (cpu_s(daemon.pid) - before_s) / elapsed_s,
            ticks_a_second=(loop["ticks"] - ticks) / elapsed_s,
        )


@contextmanager
def _reading(daemon: Daemon, target: str, count: int, more: str) -> Iterator[None]:
    words = [str(daemon.paths.socket), target, str(count), more]
    command = [sys.executable, "-m", "tests.bench.streams", *filter(None, words)]
    with subprocess.Popen(command) as process:
        yield
        process.kill()


def _figures(what: str, turns: Sequence[_Seen], nobody: Sequence[_Seen]) -> Iterator[Figure]:
    for name, unit, attribute in (
        ("tick lateness p99", "ms", "late_p99_ms"),
        ("tick lateness, the largest", "ms", "late_max_ms"),
        ("CPU of the daemon", "% of a core", "percent"),
        ("ticks", "a second", "ticks_a_second"),
    ):
        yield Figure(
            bench="streams",
            what=f"{what}: {name}",
            unit=unit,
            runs=tuple(getattr(one, attribute) for one in turns),
            baseline=() if what == _NOBODY else tuple(getattr(one, attribute) for one in nobody),
            baseline_name="" if what == _NOBODY else _NOBODY,
        )


def _read(path: Path, target: str, count: int, *, stops: bool) -> None:
    """Read for good, or open and read nothing, until killed."""
    found = selectors.DefaultSelector()
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX)
        one.connect(str(path))
        one.sendall(f"GET {target} HTTP/1.0\r\nHost: netqos\r\n\r\n".encode())
        found.register(one, selectors.EVENT_READ)
    while stops:
        time.sleep(60)
    while ready := found.select():
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            if not key.fileobj.recv(1 << 16):
                found.unregister(key.fileobj)


if __name__ == "__main__":
    _read(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), stops=sys.argv[4:] == ["stops"])
