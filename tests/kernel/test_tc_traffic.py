"""Under real traffic: nothing is lost by what the backend does, limits hold, and the fast loop's grip works."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from netqos.errors import Retryable
from netqos.model.desired import NOTHING
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit
from netqos.testing.states import M
from netqos.testing.traffic import Datagrams, Traffic
from netqos_tc import numbers, params
from netqos_tc.answers import HtbClass
from netqos_tc.spec import ClassSpec
from tests.kernel.tchost import make_backend
from tests.kernel.tcnode import ShapedNode, id_of, send, shaped_node, take_all, transfers

pytestmark = [
    pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "tool:iperf3"),
    pytest.mark.serial,
]

PORT = 7011


def pause(seconds: float) -> None:
    """Let traffic flow; the event loop has nothing else to do."""
    time.sleep(seconds)


def numbered(address: str, count: int, gap_s: float) -> None:
    """Numbered datagrams at a steady pace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((address, PORT))
        for number in range(count):
            with contextlib.suppress(ConnectionRefusedError):
                sender.send(number.to_bytes(4, "big") + bytes(200))
            time.sleep(gap_s)


@contextlib.contextmanager
def arrivals(node: ShapedNode) -> Iterator[list[int]]:
    """The numbers that arrived at the wire, complete when the block ends."""
    numbers_in: list[int] = []
    with node.rig.wire.entered():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sink:
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sink.bind((node.rig.wire.address, PORT))
        yield numbers_in
        sink.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                numbers_in.append(int.from_bytes(sink.recv(2048)[:4], "big"))


@contextlib.contextmanager
def flows(node: ShapedNode) -> Iterator[Traffic]:
    traffic = Traffic(node.rig)
    try:
        yield traffic
    finally:
        traffic.stop()


def rates_bps(node: ShapedNode, minors: tuple[int, ...], *, seconds: float) -> tuple[float, ...]:
    """What classes send on average from now on."""
    began_s, before = time.monotonic(), node.classes()
    time.sleep(seconds)
    took_s, after = time.monotonic() - began_s, node.classes()
    return tuple(
        (after[minor].counters.sent_bytes - before[minor].counters.sent_bytes) * 8 / took_s
        for minor in minors
    )


async def test_taking_over_and_giving_back_cost_a_few_milliseconds_at_most() -> None:
    """The kernel stops a device for a moment when its root is exchanged; nothing else may add to that."""
    with shaped_node("web", "bulk") as node, arrivals(node) as got:
        probe = node.rig.pod("web").fork(numbered, node.rig.wire.address, 1000, 0.0005)
        for _ in range(4):
            await node.bring(node.node(node.pod("web", Level.L0), node.pod("bulk", Level.L2)))
            pause(0.05)
            await node.bring(NOTHING)
            pause(0.05)
        probe.result()
    assert len(got) >= 1000 - 8 * 15 / 0.5  # eight exchanges, 15 ms each
    assert got == sorted(got)


async def test_taking_over_our_own_tree_under_load_writes_and_loses_nothing() -> None:
    with shaped_node("web", "bulk") as node, flows(node) as traffic, arrivals(node) as got:
        desired = node.node(node.pod("web", Level.L0), node.pod("bulk", Level.L2))
        await node.bring(desired)
        traffic.udp("bulk", Datagrams(rate_bps=150 * M)).start()
        probe = node.rig.pod("web").fork(numbered, node.rig.wire.address, 600, 0.0005)
        restarted = make_backend(node.rig.node, node.state)
        for _ in range(3):
            assert not restarted.plan(desired, await restarted.observe())
            pause(0.05)
        assert restarted.writes == 0
        restarted.shut()
        probe.result()
    assert got == list(range(600))


async def test_moving_between_levels_under_load_loses_nothing() -> None:
    with shaped_node("web", "bulk") as node, flows(node) as traffic, arrivals(node) as got:
        bulk = node.pod("bulk", Level.L2)
        await node.bring(node.node(node.pod("web", Level.L0), bulk))
        traffic.udp("bulk", Datagrams(rate_bps=150 * M)).start()
        probe = node.rig.pod("web").fork(numbered, node.rig.wire.address, 1500, 0.0005)
        minors = []
        for level in (Level.L1, Level.L2, Level.L0, Level.L1, Level.L0):
            await node.bring(node.node(node.pod("web", level), bulk))
            minors.append(await node.minor("web"))
            pause(0.08)
        probe.result()
        left = {minor for minor in node.classes() if numbers.is_pod_minor(minor)}
        assert left == {await node.minor("web"), await node.minor("bulk")}
    assert all(one != other for one, other in itertools.pairwise(minors))
    assert sorted(got) == list(range(1500))  # a better level overtakes what still waits in the old leaf


async def test_a_busy_leaf_is_emptied_before_it_goes() -> None:
    """The pod's packets wait behind its limit when it is moved; all of them arrive."""
    with shaped_node("web") as node, arrivals(node) as got:
        await node.bring(node.node(node.pod("web", Level.L1, tx_bps=2 * M)))
        node.rig.pod("web").call(numbered, node.rig.wire.address, 200, 0.0)
        minor = await node.minor("web")
        assert node.classes()[minor].counters.backlog_packets > 0
        await node.bring(node.node(node.pod("web", Level.L2, tx_bps=2 * M)))
        assert minor not in node.classes()
    assert got == list(range(200))


@pytest.mark.parametrize("limit_bps", [10 * M, 60 * M])
async def test_a_limit_holds_within_five_percent_against_tcp_and_udp(limit_bps: int) -> None:
    with shaped_node("web", "bulk") as node, flows(node) as traffic:
        await node.bring(
            node.node(
                node.pod("web", Level.L1, tx_bps=limit_bps),
                node.pod("bulk", Level.L2, tx_bps=limit_bps // 2),
                total_bps=200 * M,
            )
        )
        traffic.tcp("web").start()
        traffic.udp("bulk", Datagrams(rate_bps=2 * limit_bps)).start()
        pause(0.5)
        minors = (await node.minor("web"), await node.minor("bulk"))
        tcp_bps, udp_bps = rates_bps(node, minors, seconds=1.5)
    assert tcp_bps == pytest.approx(limit_bps, rel=0.05)
    assert udp_bps == pytest.approx(limit_bps // 2, rel=0.05)


@pytest.mark.kernel("bbr")
async def test_a_short_transfer_over_a_small_total_is_not_stuck_in_a_queue_too_short_for_gso() -> None:
    """With queues of 16 or 64 KiB each of these takes 4 to 15 s."""
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web", Level.L1), total_bps=20 * M))
        for sender in (node.rig.node, node.rig.pod("web")):
            taker = node.rig.wire.fork(take_all, node.rig.wire.address, PORT + 1, 4)
            took_s = sender.call(transfers, node.rig.wire.address, PORT + 1, 4, 400_000)
            taker.result()
            assert sorted(took_s)[1] < 1


async def test_the_first_fifth_of_a_second_is_not_unlimited() -> None:
    with shaped_node("bulk") as node, flows(node) as traffic:
        await node.bring(node.node(node.pod("bulk", Level.L2, tx_bps=10 * M), total_bps=200 * M))
        flood = traffic.udp("bulk", Datagrams(rate_bps=100 * M))
        minor = await node.minor("bulk")
        flood.start()
        (sent_bps,) = rates_bps(node, (minor,), seconds=0.2)
    # 50 KB of limit, one frame batch that ends in debt, and the pause itself may be late.
    assert sent_bps * 0.2 / 8 < 4 * 10 * M * 0.2 / 8


async def test_levels_get_their_guarantees_and_the_host_its_way() -> None:
    with shaped_node("web", "db", "bulk") as node, flows(node) as traffic:
        await node.bring(
            node.node(node.pod("web", Level.L0), node.pod("db", Level.L1), node.pod("bulk", Level.L2))
        )
        path = node.backend.fast_path()
        assert path is not None
        (sample,) = path.sample()
        path.adjust(sample.unit, PerLevel(50 * M, 0, 0))
        for pod in ("web", "db", "bulk"):
            traffic.udp(pod, Datagrams(rate_bps=120 * M, segments=4)).start()
        pause(0.3)
        levels = rates_bps(node, tuple(numbers.LEVELS.values()), seconds=1.5)
        assert path.sample()[0].backlogged
        path.close()
        assert "direct_packets_stat 0" in node.tc("qdisc", "show", "dev", "up0", "root")
    assert list(levels) == pytest.approx([50 * M, 30 * M, 20 * M], rel=0.05)


async def test_the_grip_counts_what_passed_and_moves_only_the_ceiling() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web", Level.L2)))
        path = node.backend.fast_path()
        assert path is not None
        assert path.lends
        (first,), (glance,) = path.sample(), path.glance(path.units)
        assert first.unit == glance.unit == Unit(Direction.TX, IfName("up0"))
        node.rig.pod("web").call(send, node.rig.wire.address, 50, size=958)
        (second,), (later,) = path.sample(), path.glance(path.units)
        assert second.level_bytes.l2 - first.level_bytes.l2 == 50_000
        assert later.carried_bytes - glance.carried_bytes >= 50_000
        assert second.taken_at_s > first.taken_at_s
        before = node.classes()
        for ceiling_bps in (50 * M, 73 * M, 100 * M, 1):
            assert path.adjust(first.unit, PerLevel(ceiling_bps, 1, 1)) == 1
            assert path.adjust(first.unit, PerLevel(ceiling_bps, 2, 2)) == 0
            ceil_bps = max(ceiling_bps, 50 * M)  # never under the guarantee
            assert path.current_ceilings(first.unit) == PerLevel(ceil_bps, 100 * M, 100 * M)
            after = node.classes()
            assert without_ceiling(after) == without_ceiling(before)
            burst = params.burst_bytes(after[numbers.L0].spec.cbuffer, ceil_bps // 8)
            assert burst >= params.inner_burst(ceil_bps // 8, mtu=1500)
        path.close()


def without_ceiling(classes: Mapping[int, HtbClass]) -> dict[int, ClassSpec]:
    specs = {minor: one.spec for minor, one in classes.items()}
    specs[numbers.L0] = replace(specs[numbers.L0], ceil=0, cbuffer=0)
    return specs


async def test_a_removed_device_or_tree_is_told_to_the_loop() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web")))
        path = node.backend.fast_path()
        assert path is not None
        (sample,) = path.sample()
        node.tc("qdisc", "del", "dev", "up0", "root")
        with pytest.raises(Retryable):
            path.sample()
        with pytest.raises(Retryable):
            path.adjust(sample.unit, PerLevel(60 * M, 1, 1))
        node.rig.node.run(["ip", "link", "del", "up0"])
        with pytest.raises(Retryable):
            path.sample()
        path.close()


async def test_counters_are_those_of_each_workload() -> None:
    with shaped_node("web", "db") as node:
        web, db = node.pod("web", Level.L0), node.pod("db", Level.L2)
        await node.bring(node.node(web, db))
        await node.backend.observe()
        node.rig.pod("web").call(send, node.rig.wire.address, 30, size=958)
        counters = await node.backend.counters()
        assert set(counters) == {web.uid, db.uid}
        (leaf,) = counters[web.uid]
        assert (leaf.direction, leaf.sent_bytes, leaf.sent_packets, leaf.drops) == (
            Direction.TX,
            30_000,
            30,
            0,
        )
        assert leaf.where == f"class {id_of(await node.minor('web'))} on up0"
        assert counters[db.uid][0].sent_packets == 0


async def test_unshaped_packets_are_an_error_until_a_minute_after_the_last() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web")))
        assert not (await node.backend.observe()).findings
        node.rig.node.call(raw_with_our_handle, 5)
        (finding,) = (await node.backend.observe()).findings
        assert (finding.code, finding.subject) == ("direct-packets", "up0")
        assert finding.message.startswith("some packets")
        assert finding in node.backend.plan(node.desired, await node.backend.observe()).findings


def raw_with_our_handle(count: int) -> None:
    """Frames that no nft sees, with the priority that means: past every class."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, numbers.ROOT)
        raw.bind(("up0", 0x88B5))
        for _ in range(count):
            raw.send(b"\xff" * 6 + b"\2\0\0\0\0\2" + b"\x88\xb5" + bytes(46))
