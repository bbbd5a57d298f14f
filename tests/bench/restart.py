"""second-start and kill9: a start on a node that is right already, and ends at moments nobody chose."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from netqos.model.levels import Level
from netqos.testing.analysis import Series, summarize
from netqos.testing.daemon import Daemon, Document, workload
from netqos.testing.events import Watch
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic
from tests.bench.contention import sources
from tests.bench.figures import Figure, Target, at_most
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M

_BUSY = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_CASE = Case(total_bps=200 * M, pods=_BUSY)
_SPARE = "spare"
_LONGEST_LIFE_S = 1.2
_WAIT_EACH = 5
_SEED = 4
IFB = "netqos-ifb"


def second_start(options: Options) -> list[Figure]:
    """Start, end with SIGTERM, start again: what the kernel and the files saw of the second start."""
    del options
    say("second-start")
    with Rig(pods=tuple(_BUSY)) as rig:
        terway = rig.folder / "terway"
        document = {
            **_CASE.config(rig, backends=("tc", "terway")),
            "backendOptions": {"terway": {"folder": str(terway)}},
        }
        daemon = Daemon(rig, document)
        folders = (daemon.paths.net, daemon.paths.state, terway)
        daemon.start()
        time.sleep(1.5)
        daemon.stop()
        files, kernel = _stamps(folders), _kernel(rig)
        with Watch(rig.node) as watch:
            daemon.start()
            time.sleep(1.5)
            status = daemon.client.get("/v1/status")
        writes = {
            **{f"{name}: operations": _applied(backend) for name, backend in status["backends"].items()},
            "loop: writes": status["loop"]["writes"],
            "kernel: objects that differ": len(set(kernel) ^ set(_kernel(rig))),
            **{kind: number for kind, number in watch.counts.items() if "told" not in kind},
        }
        written = sorted(path for path, stamp in _stamps(folders).items() if files.get(path) != stamp)
        daemon.kill()
    return [
        Figure(
            bench="second-start",
            what="kernel writes",
            unit="",
            runs=(float(sum(writes.values())),),
            target=at_most(0),
            note=", ".join(f"{number} x {name}" for name, number in writes.items() if number),
        ),
        Figure(
            bench="second-start",
            what="file writes",
            unit="",
            runs=(float(len(written)),),
            target=at_most(0),
            note=", ".join(path.name for path in written),
        ),
    ]


def _applied(backend: Document) -> int:
    result = backend["last_result"]
    return int(result["applied"]) if result else 0


def _kernel(rig: Rig) -> list[str]:
    """Everything of traffic control and nft as text, without counters."""
    trees, hooks = (rig.uplink, IFB), [pod.link for pod in rig.pods.values()]
    commands = [
        ["tc", "-d", "qdisc", "show"],
        ["ip", "-d", "link", "show", "type", "ifb"],
        *(["tc", "-d", kind, "show", "dev", device] for device in trees for kind in ("class", "filter")),
        *(["tc", "filter", "show", "dev", device, "egress"] for device in hooks),
        ["nft", "-a", "list", "ruleset"],
    ]
    return [line for command in commands for line in rig.node.run(command).stdout.splitlines()]


def _stamps(folders: tuple[Path, ...]) -> dict[Path, tuple[int, int]]:
    """Inode and time of change of every file."""
    files = [path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


@dataclass(slots=True, kw_only=True)
class _Kills:
    """What the kills left, counted."""

    broken_files: list[str] = field(default_factory=list)
    gone: int = 0
    starts_s: list[float] = field(default_factory=list)


def kill9(options: Options) -> list[Figure]:
    """Kill the daemon at random moments, during starts and changes, while three levels fill the link."""
    say(f"kill9: {options.kills} kills")
    found = _Kills()
    with Rig(pods=(*_BUSY, _SPARE)) as rig:
        daemon = Daemon(rig, _document(rig, 0))
        daemon.start()
        time.sleep(0.5)
        with _greedy(rig) as meter, Watch(rig.node) as watch:
            start_s = time.monotonic() + 1
            time.sleep(2)
            _kill_often(rig, daemon, options.kills, found)
            series = meter.stop()
    return _kill_figures(found, series.between(start_s, series.at_s[-1]), watch, options.kills)


def _kill_often(rig: Rig, daemon: Daemon, kills: int, found: _Kills) -> None:
    chance = random.Random(_SEED)
    for number in range(kills):
        wait = number % _WAIT_EACH == 0
        if number % 50 == 49:
            say(f"kill9: {number + 1} of {kills}")
        time.sleep(chance.uniform(0, 0.2 if wait else _LONGEST_LIFE_S))
        daemon.configure(_document(rig, number))
        time.sleep(chance.uniform(0, 0.1))
        daemon.kill()
        found.broken_files += _broken(daemon)
        found.gone += not _is_shaped(rig)
        start_s = time.monotonic()
        daemon.spawn()
        if wait:
            daemon.wait_ready()
            daemon.client.wait_until("/v1/plan", _is_empty)
            found.starts_s.append(time.monotonic() - start_s)
    daemon.kill()


def _document(rig: Rig, number: int) -> Document:
    """Configurations that differ from one to the next in the spare pod: its level, its limit, its being there."""
    document = _CASE.config(rig)
    if number % 4:
        limits = {"limits": {"egress": f"{number % 7 + 1}M"}} if number % 2 else {}
        document["workloads"].append(workload(rig, _SPARE, Level(number % 3), **limits))
    return document


@contextmanager
def _greedy(rig: Rig) -> Iterator[Meter]:
    traffic = Traffic(rig)
    counted = {name: source for name, source in sources(rig).items() if name in _BUSY}
    with Meter(rig.wire, counted) as meter:
        for name in _BUSY:
            traffic.tcp(name).start()
        yield meter
    traffic.stop()


def _broken(daemon: Daemon) -> list[str]:
    """Files that are not whole JSON documents; leftovers under other names are nobody's input."""
    broken = []
    files = [daemon.paths.net / "node", daemon.paths.net / "pods", *daemon.paths.state.rglob("*.json")]
    for path in files:
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            broken.append(f"{path.name}: {problem}")
    return broken


def _is_shaped(rig: Rig) -> bool:
    """Whether both trees are whole, and every pod has its elements for both directions and its redirect."""
    trees = {"4e51": rig.uplink, "4e52": IFB}
    shown = {major: _said(rig, "tc", "class", "show", "dev", device) for major, device in trees.items()}
    table = _said(rig, "nft", "list", "ruleset")
    redirects = [_said(rig, "tc", "filter", "show", "dev", rig.pod(name).link, "egress") for name in _BUSY]
    return (
        all(f"{major}:{minor}" in shown[major] for major in trees for minor in ("1 ", "10 ", "11 ", "12 "))
        and all(table.count(f"{rig.pod(name).address} ") >= len(trees) for name in _BUSY)
        and all(IFB in redirect for redirect in redirects)
    )


def _said(rig: Rig, *command: str) -> str:
    return rig.node.run(list(command), check=False).stdout


def _is_empty(plan: Document) -> bool:
    return not any(one["operations"] for one in plan["plans"])


def _kill_figures(found: _Kills, series: Series, watch: Watch, kills: int) -> list[Figure]:
    total = summarize(series.summed("total", tuple(_BUSY)), "total")
    shares = {name: _CASE.bands[level].guarantee_bps for name, level in _BUSY.items()}
    worst = min(summarize(series, name).worst_bps / share for name, share in shares.items())

    broken = "; ".join(found.broken_files[:3])
    wanted: dict[str, tuple[str, float, Target | None, str]] = {
        "shaping not there": ("times", found.gone, at_most(0), ""),
        "root qdisc deleted": ("times", watch.counts.get("root deleted", 0), at_most(0), ""),
        "files not whole": ("times", len(found.broken_files), at_most(0), broken),
        "best second of the total": ("%", 100 * total.best_bps / _CASE.total_bps, at_most(102), ""),
        "worst second of a level": ("% of its guarantee", 100 * worst, None, "starts take a core each"),
    }
    figures = [
        Figure(
            bench="kill9", what=f"{kills} kills: {what}", unit=unit, runs=(value,), target=target, note=note
        )
        for what, (unit, value, target, note) in wanted.items()
    ]
    again = Figure(
        bench="kill9",
        what="next start: ready and nothing left to do",
        unit="s",
        runs=tuple(found.starts_s),
        target=at_most(1),
    )
    return [*figures, again]
