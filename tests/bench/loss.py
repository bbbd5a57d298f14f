"""take-over, class-changes and move: packets of a quiet workload that are lost while its node changes under load.

The workload sends and receives a few megabits, less than anybody may take from it, in numbered packets. Whatever is
missing of them was lost by a change.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from netqos.backend import FastPath
from netqos.model.desired import DesiredPod
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing import states
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from netqos.testing.numbered import Lost, numbered_packets
from netqos.testing.traffic import Traffic
from tests.bench.figures import Figure, Target, at_most
from tests.bench.options import Options, say
from tests.bench.shapers import Case, M, running_daemon
from tests.kernel.tcnode import shaped_node

_QUIET, _BULK = "quiet", "bulk"
_CHANGES = 10_000
_MOVES = 12
_DRAINED_S = 0.1
NONE = at_most(0)


def _figures(lost: Lost, bench: str, what: str, *, target: Target | None = NONE) -> list[Figure]:
    """One figure a direction."""
    return [
        Figure(
            bench=bench,
            what=f"{direction.pod_word}, {what}: packets lost",
            unit=f"of {lost.sent[direction]}",
            runs=(float(lost.lost[direction]),),
            target=target,
        )
        for direction in Direction
    ]


def take_over(options: Options) -> list[Figure]:
    """A first start, a kill and a second start, and a stop that puts everything back, while others fill the link."""
    del options
    say("take-over")
    case = Case(total_bps=200 * M, pods={_QUIET: Level.L0, _BULK: Level.L2})
    with Rig(pods=(_QUIET, _BULK)) as rig, _both_full(rig):
        daemon = Daemon(rig, {**case.config(rig), "onExit": "restore"})
        with numbered_packets(rig.pod(_QUIET), rig.wire) as first:
            daemon.start()
            time.sleep(1)
        with numbered_packets(rig.pod(_QUIET), rig.wire) as again:
            daemon.kill()
            daemon.start()
            time.sleep(1)
        with numbered_packets(rig.pod(_QUIET), rig.wire) as restored:
            daemon.stop()
    return [
        *_figures(first, "take-over", "first start"),
        *_figures(again, "take-over", "kill and start"),
        *_figures(restored, "take-over", "restore (the queues go with the tree)", target=None),
    ]


def class_changes(options: Options) -> list[Figure]:
    """What the fast loop writes (totals and L0), ten thousand times, half of it in each direction."""
    del options
    say(f"class-changes: {_CHANGES}")
    with shaped_node(_QUIET, _BULK) as node:
        pods = [_desired(node.rig, _QUIET, Level.L0), _desired(node.rig, _BULK, Level.L2)]
        totals = {way: (200 if way is Direction.TX else 150) * M for way in Direction}
        uplink = states.uplink(index=node.ifindex, tx_bps=totals[Direction.TX], rx_bps=totals[Direction.RX])
        wanted = states.node(
            pods,
            uplinks=(uplink,),
            tx=states.direction(totals[Direction.TX]),
            rx=states.direction(totals[Direction.RX]),
        )
        asyncio.run(node.bring(wanted))
        path = node.backend.fast_path()
        assert path is not None
        with _both_full(node.rig), numbered_packets(node.rig.pod(_QUIET), node.rig.wire) as lost:
            start_s = time.monotonic()
            writes = sum(_change(path, totals, number) for number in range(_CHANGES // 2))
            took_s = time.monotonic() - start_s
        path.close()
    return [
        *_figures(lost, "class-changes", f"{writes} class changes"),
        Figure(bench="class-changes", what="changes a second", unit="", runs=(writes / took_s,)),
    ]


def _change(path: FastPath, totals: Mapping[Direction, int], number: int) -> int:
    """One change in each direction; the number of classes that were written."""
    time.sleep(0.0005)
    writes = 0
    for unit in path.units:
        total_bps = totals[unit.direction]
        ceiling_bps = total_bps * (75 + number % 2 * 20) // 100
        writes += path.adjust(unit, PerLevel(ceiling_bps, total_bps, total_bps))
    return writes


def _desired(rig: Rig, name: str, level: Level) -> DesiredPod:
    return states.pod(f"ns/{name}", level, addresses=rig.addresses(name), cgroup=None)


def move(options: Options) -> list[Figure]:
    """The quiet workload from level to level while L1 and L2 fill the link, and how long its old class still sends."""
    del options
    say(f"move: {_MOVES} times")
    pods = {_QUIET: Level.L1, _BULK: Level.L2, "api": Level.L1}
    case = Case(total_bps=200 * M, pods=pods)
    with (
        Rig(pods=tuple(pods)) as rig,
        running_daemon(rig, case) as daemon,
        _both_full(rig, _BULK, "api"),
        numbered_packets(rig.pod(_QUIET), rig.wire) as lost,
    ):
        time.sleep(0.5)
        late = sum(_move(rig, daemon, Level(number % 3)) for number in range(_MOVES))
    return [
        *_figures(lost, "move", f"{_MOVES} times to another level"),
        Figure(
            bench="move",
            what=f"in the old class more than {1000 * _DRAINED_S:.0f} ms after the answer",
            unit="packets",
            runs=(float(late),),
            target=at_most(0),
        ),
    ]


def _move(rig: Rig, daemon: Daemon, level: Level) -> int:
    """Give the workload another level; packets that its old classes send after their queues have drained."""
    old = _classes(daemon)
    body = {"level": level.name.lower(), "ttl": "10m", "reason": "bench"}
    daemon.client.put(f"/v1/overrides/workload:{_QUIET}", body)
    left = old - _classes(daemon)
    time.sleep(_DRAINED_S)
    before = {place: _sent(rig, *place) for place in left}
    time.sleep(0.3)
    return sum(max(0, _sent(rig, *place) - before[place]) for place in left)


def _classes(daemon: Daemon) -> set[tuple[str, str]]:
    """Class and device of the workload's leaves, as the daemon tells them."""
    counters = daemon.client.get(f"/v1/explain?pod={_QUIET}")["pod"]["counters"]
    return {(words[1], words[-1]) for words in (one["where"].split() for one in counters)}


def _sent(rig: Rig, name: str, device: str) -> int:
    """Packets that a class has sent; 0 when it is gone."""
    shown = rig.node.run(["tc", "-s", "class", "show", "dev", device, "classid", name], check=False).stdout
    found = re.search(r"Sent \d+ bytes (\d+) pkt", shown)
    return int(found[1]) if found else 0


@contextmanager
def _both_full(rig: Rig, *names: str) -> Iterator[None]:
    """Greedy TCP in both directions."""
    traffic = Traffic(rig)
    for name in names or (_BULK,):
        traffic.tcp(name).start()
        traffic.tcp(name, towards_pod=True).start()
    time.sleep(0.5)
    try:
        yield
    finally:
        traffic.stop()
