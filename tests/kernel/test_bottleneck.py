"""A next hop that carries less than the total, with real traffic and the real daemon; and what only looks like one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netqos.host.losses import TABLE, LossCounter
from netqos.host.nftables import Nftables
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level
from netqos.testing import nexthop
from netqos.testing.daemon import Daemon, workload
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.traffic import Datagrams, Traffic, arriving
from tests.bench.bottleneck import (
    GUARANTEES,
    NETWORK,
    PODS,
    TOTAL_BPS,
    Path,
    contended,
    document,
    path_of,
    status_of,
)
from tests.bench.shapers import M, running

pytestmark = [
    pytest.mark.kernel("htb", "nft", "nft-fib", "nft-socket", "bridge", "tool:iperf3"),
    pytest.mark.serial,
]

NARROW = 0.8


@contextlib.contextmanager
def node(*, auto: bool) -> Iterator[tuple[Rig, Daemon]]:
    with Rig(pods=tuple(PODS), network=NETWORK) as rig, running(rig, document(rig, auto=auto)) as daemon:
        yield rig, daemon


def eventually(check: Callable[[], bool], timeout_s: float) -> bool:
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if check():
            return True
        time.sleep(0.1)
    return check()


def total_bps(daemon: Daemon, direction: Direction) -> int:
    return int(status_of(daemon)["directions"][direction.value]["total_bps"])


def findings(daemon: Daemon) -> dict[str, Any]:
    return {one["code"]: one for one in status_of(daemon)["findings"]}


def shares(meter: Meter, carried_bps: float, seconds: float) -> dict[str, float]:
    """What each level got in the last seconds, of what the path carries."""
    series = meter.series()
    end_s = series.at_s[-1]
    return {name: series.rate_bps(name, end_s - seconds, end_s) / carried_bps for name in PODS}


def keep_their_shares(meter: Meter, carried_bps: float) -> Callable[[], bool]:
    def check() -> bool:
        time.sleep(1)
        found = shares(meter, carried_bps, 1.0)
        return all(found[name] >= 0.9 * share for name, share in GUARANTEES.items())

    return check


def follow_down(daemon: Daemon, direction: Direction) -> int:
    """Wait until the path is told and then met; the limit in force."""
    assert eventually(lambda: path_of(daemon, direction).get("proposed_bps") is not None, 15)
    assert eventually(lambda: path_of(daemon, direction)["limit_bps"] is not None, 60)
    limit_bps = total_bps(daemon, direction)
    assert 0.7 * TOTAL_BPS <= limit_bps <= 0.82 * TOTAL_BPS
    assert findings(daemon)["total-lowered"]["severity"] == "info"
    return limit_bps


def test_auto_follows_what_the_path_carries_down_over_a_restart_and_up_again() -> None:
    path, direction = Path(direction=Direction.TX, share=NARROW), Direction.TX
    with node(auto=True) as (rig, daemon), contended(rig, path, "cubic") as meter:
        limit_bps = follow_down(daemon, direction)
        assert eventually(keep_their_shares(meter, limit_bps), 20), shares(meter, limit_bps, 1.0)
        daemon.kill()
        daemon.start()
        assert total_bps(daemon, direction) == limit_bps  # as remembered, from the first pass on
        assert rig.hop is not None
        nexthop.widen(rig.hop, direction)
        assert eventually(lambda: total_bps(daemon, direction) == TOTAL_BPS, 60)
        assert eventually(lambda: path_of(daemon, direction)["limit_bps"] is None, 20)
        assert "total-lowered" not in findings(daemon)


def test_auto_follows_what_comes_to_the_node_too() -> None:
    path = Path(direction=Direction.RX, share=NARROW)
    with node(auto=True) as (rig, daemon), contended(rig, path, "cubic"):
        follow_down(daemon, Direction.RX)


def test_three_percent_less_are_met_without_auto() -> None:
    path = Path(direction=Direction.TX, share=0.97)
    with node(auto=False) as (rig, daemon), contended(rig, path, "cubic") as meter:
        assert eventually(keep_their_shares(meter, path.carries_bps), 60), shares(
            meter, path.carries_bps, 1.0
        )
        assert total_bps(daemon, Direction.TX) >= 0.93 * TOTAL_BPS


def test_without_auto_twenty_percent_less_are_told_with_figures_and_the_total_stays() -> None:
    path = Path(direction=Direction.TX, share=NARROW)
    with node(auto=False) as (rig, daemon), contended(rig, path, "cubic"):
        assert eventually(lambda: "total-not-reached" in findings(daemon), 15)
        told = findings(daemon)["total-not-reached"]
        assert (told["severity"], told["subject"]) == ("warning", "up0")
        assert "of 200M is not reached" in told["message"]
        assert "auto" in told["hint"]
        measured = path_of(daemon, Direction.TX)["measured_bps"]
        assert isinstance(measured, int)
        assert 0.78 * TOTAL_BPS <= measured <= 0.86 * TOTAL_BPS
        assert total_bps(daemon, Direction.TX) == TOTAL_BPS


def test_what_only_looks_like_a_narrow_path_moves_nothing() -> None:
    """A workload at its own limit, a steady stream beside it, and then everybody greedy on a path that is wide."""
    with Rig(pods=tuple(PODS), network=NETWORK) as rig:
        limited = document(rig, auto=True)
        limited["workloads"][2] = workload(rig, "batch", Level.L2, limits={"egress": "110M"})
        with running(rig, limited) as daemon:
            traffic = Traffic(rig)
            try:
                traffic.tcp("batch", streams=4).start()
                traffic.udp("web", Datagrams(rate_bps=30 * M)).start()
                time.sleep(5)
                assert path_of(daemon, Direction.TX)["steps"] == []
                traffic.tcp("api").start()
                time.sleep(4)
            finally:
                traffic.stop()
            path = path_of(daemon, Direction.TX)
            assert (path["steps"], path["limit_bps"], path["measured_bps"]) == ([], None, None)
            assert not {"total-not-reached", "total-lowered"} & findings(daemon).keys()


def test_losses_are_counted_by_workload_and_direction_and_nothing_stays() -> None:
    with Rig(pods=("web", "api"), network=NETWORK) as rig:
        assert rig.hop is not None
        with rig.node.entered():
            nft = Nftables()
        counter = LossCounter(nft)
        assert counter.arm([IfName(rig.uplink)])
        nexthop.narrow(rig.hop, Direction.TX, 50 * M, latency_ms=5)
        traffic = Traffic(rig)
        traffic.tcp("web", streams=4).start()
        with Meter(rig.wire, {"web": arriving(rig, "web", Direction.TX)}):
            time.sleep(1.5)
        traffic.stop()
        found = counter.read()
        assert found[Direction.TX].keys() == {rig.pod("web").address}
        assert found[Direction.TX][rig.pod("web").address] > 0
        assert sum(found[Direction.RX].values()) < 0.1 * sum(found[Direction.TX].values())
        assert nexthop.dropped(rig.hop, Direction.TX) > 0
        nft.close()
        assert TABLE not in rig.node.run(["nft", "list", "tables"]).stdout
