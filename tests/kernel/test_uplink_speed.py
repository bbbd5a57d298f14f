"""A NIC that comes to another speed with its other end while pods flood it: the total that rests on it follows.

The NIC is a tap, whose speed and carrier can be set; once the uplink is a device that stands on it. The tree is watched
all the time; counted is what the classes send, which no busy reader delays.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import fmean

import pytest

from netqos.model.levels import Level
from netqos.testing.analysis import Series
from netqos.testing.daemon import Daemon, workload
from netqos.testing.netns import Rig
from netqos.testing.traffic import Datagrams, UdpFlood
from netqos_tc import numbers
from netqos_tc.netlink import Channel
from tests.bench.livechanges import count
from tests.kernel.tap import Tap
from tests.kernel.test_live_changes import Tree, read, watch

pytestmark = [pytest.mark.kernel("tun", "htb", "nft", "nft-fib", "nft-socket"), pytest.mark.serial]

PODS = {"web": Level.L0, "batch": Level.L2}
M = 1_000_000
FAST, SLOW = 100, 40
TOTALS = {mbit: mbit * M * 98 // 100 for mbit in (FAST, SLOW)}
BEYOND, NEXT_HOP, NEAR = "192.0.2.9", "198.51.100.1", "198.51.100.2"
BEFORE_S, AFTER_S, WITHIN_S, SETTLED_S = 0.6, 2.6, 2.2, 0.1
"""The total follows some 20 ms after the kernel tells of the carrier, which it does at once, or a second later where it
has told of many links (net/core/link_watch.c)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the uplink's levels sent, the states of both trees, and when they had followed a speed."""

    series: Series
    trees: Sequence[Sequence[Tree]]
    changed_s: float
    followed_s: Mapping[int, float]
    direct_packets: int


@contextmanager
def linked(rig: Rig, uplink: str) -> Iterator[Tap]:
    """A node whose default route leaves by a tap of the higher speed, or by a macvlan on it."""
    with Tap(rig.node, "nic0") as nic:
        nic.set_speed(FAST)
        above = [f"link add {uplink} link nic0 type macvlan", f"link set {uplink} up"]
        for command in (
            "link set nic0 up",
            *(above if uplink != nic.name else []),
            f"addr add {NEAR}/30 dev {uplink}",
            f"neigh add {NEXT_HOP} lladdr 02:00:00:00:00:99 nud permanent dev {uplink}",
            f"route replace default via {NEXT_HOP} dev {uplink}",
        ):
            rig.node.run(["ip", *command.split()])
        yield nic


@contextmanager
def shaped(rig: Rig, uplink: str) -> Iterator[Daemon]:
    """No total is written anywhere."""
    workloads = [workload(rig, name, level) for name, level in PODS.items()]
    daemon = Daemon(rig, {"node": {"uplinks": [uplink]}, "policy": {"enable": True}, "workloads": workloads})
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()


@contextmanager
def flooded(rig: Rig, nic: Tap) -> Iterator[None]:
    """By all pods, with more than it has ever had."""
    ports = itertools.count(9)
    floods = [UdpFlood(rig.pod(name), (BEYOND, next(ports)), Datagrams(rate_bps=120 * M)) for name in PODS]
    with ExitStack() as stack:
        stack.callback(rig.node.fork(nic.take).kill)
        for flood in floods:
            stack.callback(flood.stop)
            flood.start()
        yield


def observe(rig: Rig, nic: Tap, uplink: str) -> Seen:
    """Let the speed change and come back under a flood."""
    with rig.node.entered():
        devices = (socket.if_nametoindex(uplink), numbers.IFB_INDEX)
    followed_s = {}
    with flooded(rig, nic):
        time.sleep(BEFORE_S)
        span_s = BEFORE_S + 2 * AFTER_S
        counting, watching = rig.node.fork(count, uplink, span_s), rig.node.fork(watch, span_s, devices)
        time.sleep(BEFORE_S)
        changed_s = time.monotonic()
        for place, mbit in enumerate((SLOW, FAST), start=1):
            nic.renegotiate(mbit)
            followed_s[mbit] = rig.node.call(follow, devices, TOTALS[mbit])
            time.sleep(max(0.0, changed_s + place * AFTER_S - time.monotonic()))
        series, trees = counting.result(), watching.result()
    shown = rig.node.run(["tc", "qdisc", "show", "dev", uplink, "root"]).stdout
    direct = int(shown.split("direct_packets_stat ")[1].split()[0])
    return Seen(series=series, trees=trees, changed_s=changed_s, followed_s=followed_s, direct_packets=direct)


def follow(devices: Sequence[int], total_bps: int) -> float:
    """When all trees have the total (monotonic); runs in a child inside the node."""
    channel = Channel.route()
    end_s = time.monotonic() + WITHIN_S
    while any(read(channel, one).total_bps != pytest.approx(total_bps, rel=0.01) for one in devices):
        if time.monotonic() > end_s:
            raise TimeoutError(f"the total is not {total_bps} after {WITHIN_S} s")
        time.sleep(0.005)
    return time.monotonic()


@pytest.mark.parametrize("uplink", ["nic0", pytest.param("mac0", marks=pytest.mark.kernel("macvlan"))])
def test_the_total_follows_the_speed_while_pods_flood(uplink: str) -> None:
    with Rig(pods=tuple(PODS)) as rig, linked(rig, uplink) as nic, shaped(rig, uplink) as daemon:
        seen = observe(rig, nic, uplink)
        direction = daemon.client.get("/v1/status")["directions"]["tx"]
    assert (direction["total_bps"], direction["total_source"]) == (TOTALS[FAST], "nic")
    assert seen.direct_packets == 0
    for trees in seen.trees:
        totals = [round(tree.total_bps / M) for tree in trees]
        assert [total for total, _ in itertools.groupby(totals)] == [98, 39, 98]
        assert [tree for tree in trees if sum(tree.rates_bps.values()) > tree.total_bps] == []
    before = rates(seen, seen.changed_s - BEFORE_S, seen.changed_s)
    slower = rates(seen, seen.followed_s[SLOW] + SETTLED_S, seen.changed_s + AFTER_S)
    faster = rates(seen, seen.followed_s[FAST] + SETTLED_S, seen.changed_s + 2 * AFTER_S)
    for found, mbit in ((before, FAST), (slower, SLOW), (faster, FAST)):
        assert 0.6 * TOTALS[mbit] < fmean(found)
        assert max(found) < 1.1 * TOTALS[mbit]
    assert max(rates(seen, seen.changed_s - BEFORE_S, seen.changed_s + 2 * AFTER_S)) < 1.1 * TOTALS[FAST]


def rates(seen: Seen, start_s: float, end_s: float) -> tuple[float, ...]:
    """What all levels sent in windows of 200 ms."""
    near = seen.series.between(start_s, end_s)
    return near.summed("all", near.names).windows("all", width_s=0.2)
