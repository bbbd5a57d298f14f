"""Flows, floods, meter and probes of the test kit, against the kernel's own counters."""

from __future__ import annotations

import re
import time

import pytest

from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.meter import TCP, Meter, Source, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.probes import listen, start_connects, start_echo
from netqos.testing.traffic import UDP_PAYLOAD, Datagrams, Traffic, arriving
from tests.bench.baseline import install_static, static_class

pytestmark = [pytest.mark.kernel("veth", "htb", "nft", "tool:iperf3"), pytest.mark.serial]

TOTAL_BPS = 100_000_000
BANDS = PerLevel(
    Band(guarantee_bps=50_000_000, ceiling_bps=TOTAL_BPS),
    Band(guarantee_bps=30_000_000, ceiling_bps=TOTAL_BPS),
    Band(guarantee_bps=20_000_000, ceiling_bps=40_000_000),
)
LEVELS = {"high": Level.L0, "low": Level.L2}


def class_bytes(rig: Rig, number: int) -> int:
    shown = rig.node.run(["tc", "-s", "class", "show", "dev", rig.uplink]).stdout
    found = re.search(rf"class htb {static_class(number)} .*?Sent (\d+) bytes", shown, re.DOTALL)
    assert found is not None
    return int(found[1])


def test_the_meter_counts_what_htb_counts() -> None:
    with Rig(pods=tuple(LEVELS)) as rig:
        install_static(rig, LEVELS, total_bps=TOTAL_BPS, bands=BANDS)
        traffic = Traffic(rig)
        flow = traffic.tcp("high")
        flood = traffic.udp("low", Datagrams(rate_bps=10_000_000))
        sources = {
            "tcp": Source(address=rig.pod("high").address, framing=TCP),
            "udp": Source(address=rig.pod("low").address, framing=udp_framing(UDP_PAYLOAD)),
        }
        with Meter(rig.wire, sources) as meter:
            flow.start()
            flood.start()
            time.sleep(1)
            flow.check()
            traffic.stop()
            time.sleep(0.5)
            series = meter.stop()
        assert series.counts["tcp"][-1] == pytest.approx(class_bytes(rig, 0), rel=0.01)
        assert series.counts["udp"][-1] == pytest.approx(class_bytes(rig, 1), rel=0.01)
        assert series.counts["udp"][-1] * 8 == pytest.approx(10_000_000, rel=0.2)


def test_a_flow_uses_ipv6_and_either_direction() -> None:
    with Rig(pods=("high",)) as rig:
        traffic = Traffic(rig)
        pod = rig.pod("high")
        up, down = traffic.tcp("high", family=6), traffic.tcp("high", towards_pod=True, congestion="reno")
        with Meter(
            rig.wire, {"up": Source(address=pod.address6), "down": arriving(rig, "high", Direction.RX)}
        ) as meter:
            up.start()
            down.start()
            time.sleep(0.5)
            up.check()
            down.check()
        traffic.stop()
        assert meter.series().counts["up"][-1] > 1_000_000
        assert meter.series().counts["down"][-1] > 1_000_000


def test_a_flood_goes_in_either_direction_and_is_counted_where_it_arrives() -> None:
    rates_bps = {Direction.TX: 30_000_000, Direction.RX: 12_000_000}
    with Rig(pods=("high",)) as rig:
        traffic = Traffic(rig)
        framing = udp_framing(UDP_PAYLOAD)
        sources = {way.value: arriving(rig, "high", way, framing=framing) for way in Direction}
        with Meter(rig.wire, sources) as meter:
            for way, rate_bps in rates_bps.items():
                towards_pod = way is Direction.RX
                traffic.udp("high", Datagrams(rate_bps=rate_bps), towards_pod=towards_pod).start()
            time.sleep(1)
            traffic.stop()
            time.sleep(0.1)
            series = meter.stop()
        for way, rate_bps in rates_bps.items():
            assert series.counts[way.value][-1] * 8 == pytest.approx(rate_bps, rel=0.2)


def test_an_echo_probe_waits_in_the_queue_of_its_own_workload_only() -> None:
    with Rig(pods=tuple(LEVELS)) as rig:
        install_static(rig, LEVELS, total_bps=TOTAL_BPS, bands=BANDS)
        traffic = Traffic(rig)
        flow = traffic.tcp("low")
        flow.start()
        time.sleep(0.3)
        high = start_echo(rig.pod("high"), rig.wire.address, count=30)
        low = start_echo(rig.pod("low"), rig.wire.address, count=30)
        delays = {"high": high.result(), "low": low.result()}
        traffic.stop()
        assert (delays["high"].lost, len(delays["high"].seconds)) == (0, 30)
        # Behind its neighbour's queue of 20 ms and more, the other probe is slower by far more than any noise.
        assert delays["high"].percentile_s(50) < 0.002
        assert delays["low"].percentile_s(50) > 0.005


def test_a_probe_counts_what_is_not_answered() -> None:
    with Rig(pods=("high",)) as rig:
        rig.wire.run(["sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1"])
        delays = start_echo(rig.pod("high"), rig.wire.address, count=3).result()
        assert (delays.seconds, delays.lost, delays.percentile_s(50)) == ((), 3, float("inf"))


def test_a_connect_probe_tells_open_from_closed() -> None:
    with Rig() as rig:
        listen(rig.node, 2222)
        reached = start_connects(rig.wire, rig.node.address, 2222, count=5).result()
        refused = start_connects(rig.wire, rig.node.address, 2223, count=5).result()
        assert (len(reached.seconds), reached.lost) == (5, 0)
        assert (len(refused.seconds), refused.lost) == (0, 5)
