"""Ingress under the real kernel: who comes into which class, what is held and what is not, and what is left behind."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from unittest import mock

import pytest

from netqos.model.desired import NOTHING, DesiredPod, DesiredState
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.plan import Plan
from netqos.model.traffic import Unit
from netqos.testing import states
from netqos.testing.exchange import transfer
from netqos.testing.harness import converge
from netqos.testing.networks import NETWORKS
from netqos.testing.paths import between
from netqos.testing.probes import start_echo
from netqos.testing.states import M
from netqos.testing.traffic import Datagrams, Traffic
from netqos_tc import chooser, numbers
from netqos_tc.keys import ElementKey, ElementMap, RedirectKey
from netqos_tc.spec import ElementSpec, RedirectSpec
from tests.kernel.harms import RX_HARMS
from tests.kernel.tchost import make_backend
from tests.kernel.tcnode import WIRE_PORT, ShapedNode, send, shaped_node

pytestmark = pytest.mark.kernel(
    "veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "ifb", "clsact", "tool:iperf3"
)

RX, TX = Direction.RX, Direction.TX
TX_BPS, RX_BPS = 90 * M, 60 * M
MIRROR = "u32 match u32 0 0 action mirred egress mirror dev lo"
LOCAL, UNKNOWN = numbers.LOCAL, numbers.UNKNOWN


def desired(node: ShapedNode, *pods: DesiredPod, rx_bps: int = RX_BPS) -> DesiredState:
    """Both directions by level, 50/30/20 percent of unequal totals."""
    return states.node(
        pods,
        uplinks=(states.uplink(index=node.ifindex, tx_bps=TX_BPS, rx_bps=rx_bps),),
        tx=states.direction(TX_BPS),
        rx=states.direction(rx_bps),
    )


def pod(
    node: ShapedNode,
    name: str,
    level: Level = Level.L1,
    *,
    tx_bps: int | None = None,
    rx_bps: int | None = None,
) -> DesiredPod:
    place = node.rig.pod(name)
    addresses = (place.address, place.address6)
    return states.pod(f"ns/{name}", level, addresses=addresses, tx_bps=tx_bps, rx_bps=rx_bps, cgroup=None)


@contextlib.contextmanager
def flows(node: ShapedNode) -> Iterator[Traffic]:
    traffic = Traffic(node.rig)
    try:
        yield traffic
    finally:
        traffic.stop()


def pause(seconds: float) -> None:
    """Let traffic flow; the event loop has nothing else to do."""
    time.sleep(seconds)


def rates_bps(node: ShapedNode, *minors: int, seconds: float, way: Direction = RX) -> tuple[float, ...]:
    """What classes send on average from now on."""
    began_s, before = time.monotonic(), node.classes(way)
    time.sleep(seconds)
    took_s, after = time.monotonic() - began_s, node.classes(way)
    return tuple(
        (after[minor].counters.sent_bytes - before[minor].counters.sent_bytes) * 8 / took_s
        for minor in minors
    )


def codes(plan: Plan) -> list[str]:
    """The findings, without what is true of every bridge."""
    return [one.code for one in plan.findings if one.code != "source-not-verified"]


def leftovers(node: ShapedNode) -> tuple[str, ...]:
    """Everything in which a node may differ afterwards."""
    run = node.rig.node.run
    shown = [
        run(["ip", "-o", "link"]).stdout,
        run(["tc", "qdisc"]).stdout,
        run(["nft", "list", "ruleset"]).stdout,
    ]
    names = re.findall(r"^\d+: ([^:@]+)", shown[0], re.MULTILINE)
    return *shown, *(run(["tc", "filter", "show", "dev", one, "egress"], check=False).stdout for one in names)


@pytest.mark.parametrize("network", ["routed", "routed-masquerade", "bridge", "bridge-masquerade"])
async def test_each_packet_comes_to_its_class(network: str) -> None:
    """From outside to each pod, from the node, from pod to pod, to a pod that nobody claims; both families.

    What a pod that nobody claims receives is known where it is behind the same device as others, on a bridge.
    """
    with shaped_node("web", "bulk", "stray", network=NETWORKS[network]) as node:
        await node.bring(desired(node, pod(node, "web", Level.L0), pod(node, "bulk", Level.L2)))
        web, bulk = await node.minor("web"), await node.minor("bulk")
        before = Counter(node.packets(RX))
        for place, count in (("web", 100), ("bulk", 200), ("stray", 400)):
            node.rig.wire.call(send, node.rig.pod(place).address, count)
            node.rig.wire.call(send, node.rig.pod(place).address6, count)
        outside = Counter(node.packets(RX)) - before
        assert 200 <= outside[web] < 230
        assert 400 <= outside[bulk] < 430
        assert 0 <= outside[UNKNOWN] - (800 if network.startswith("bridge") else 0) < 30
        assert outside[LOCAL] < 90  # the senders' errors, and neighbours
        node.rig.node.call(send, node.rig.pod("web").address, 300)
        node.rig.pod("bulk").call(send, node.rig.pod("web").address6, 500)
        inside = Counter(node.packets(RX)) - before - outside
        assert (inside[web], inside[bulk]) == (0, 0)
        assert inside[UNKNOWN] < 30
        assert inside[LOCAL] >= 300
        assert "direct_packets_stat 0" in node.tc("qdisc", "show", "dev", numbers.IFB_NAME, "root")


@pytest.mark.kernel("cls-bpf")
@pytest.mark.parametrize("network", ["routed", "bridge"])
async def test_where_a_program_may_choose_what_stays_in_the_node_is_spared_the_detour(network: str) -> None:
    with shaped_node("web", "bulk", network=NETWORKS[network]) as node:
        await choosing(node)
        await node.bring(desired(node, pod(node, "web", Level.L0), pod(node, "bulk", Level.L2)))
        web, before = await node.minor("web"), Counter(node.packets(RX))
        node.rig.wire.call(send, node.rig.pod("web").address, 100)
        node.rig.wire.call(send, node.rig.pod("web").address6, 100)
        node.rig.node.call(send, node.rig.pod("web").address, 300)
        node.rig.pod("bulk").call(send, node.rig.pod("web").address6, 500)
        found = Counter(node.packets(RX)) - before
        assert 200 <= found[web] < 230
        assert found[LOCAL] == 0


@pytest.mark.kernel("cls-bpf")
async def test_without_the_ifb_packets_pass_where_the_program_can_tell() -> None:
    """Nobody repairs anything meanwhile; the size of a packet says nothing of whether the IFB is there."""
    with shaped_node("web") as node:
        await choosing(node)
        await node.bring(desired(node, pod(node, "web", Level.L0)))
        before = node.packets(RX).get(LOCAL, 0)
        web = node.rig.pod("web").address
        for harm in (["ip", "link", "set", numbers.IFB_NAME, "mtu", "1000"], []):
            if harm:
                node.rig.node.run(harm)
            assert not start_echo(node.rig.wire, web, count=20, interval_s=0.002).result().lost_at_s
        assert node.packets(RX)[await node.minor("web")] >= 40
        assert node.packets(RX).get(LOCAL, 0) == before
        node.rig.node.run(["ip", "link", "del", numbers.IFB_NAME])
        assert not start_echo(node.rig.wire, web, count=20, interval_s=0.002).result().lost_at_s
        await node.repair()
        assert not start_echo(node.rig.wire, web, count=20, interval_s=0.002).result().lost_at_s
        assert node.packets(RX)[await node.minor("web")] >= 20


async def test_a_redirect_that_leads_nowhere_goes_where_the_ifb_cannot_be_made() -> None:
    with shaped_node("web") as node:
        wanted = desired(node, pod(node, "web", Level.L0))
        await node.bring(wanted)
        node.rig.node.run(["ip", "link", "del", numbers.IFB_NAME])
        plan = node.backend.plan(wanted, await node.backend.observe())
        node.rig.node.run(["ip", "link", "add", numbers.IFB_NAME, "type", "veth", "peer", "name", "other"])
        result = await node.backend.apply(plan)
        assert {"EEXIST"} < {one.code for one in result.failures}
        assert "mirred" not in node.tc("filter", "show", "dev", node.rig.pod("web").link, "egress")
        node.rig.node.run(["ip", "link", "del", numbers.IFB_NAME])
        await node.repair()
        await node.repair()
        assert "mirred" in node.tc("filter", "show", "dev", node.rig.pod("web").link, "egress")
        assert await node.backend.is_untouched()


@pytest.mark.kernel("cls-bpf")
async def test_who_may_load_no_program_takes_over_from_one_who_might_and_back() -> None:
    with shaped_node("web", "bulk") as node:
        before = leftovers(node)
        wanted = desired(node, pod(node, "web", Level.L0), pod(node, "bulk", rx_bps=9 * M))
        await node.bring(wanted)
        await choosing(node)
        plan = await node.bring(wanted)
        assert {one.subject.split(" at ")[0] for one in plan.operations} == {"redirect"}
        specs = (await node.backend.observe()).specs
        assert {one.is_choosy for one in specs.values() if isinstance(one, RedirectSpec)} == {True}
        other = make_backend(node.rig.node, node.state)
        plan = await converge(other, wanted)
        assert {one.subject.split(" at ")[0] for one in plan.operations} == {"redirect"}
        other.shut()
        await node.bring(wanted)
        assert await node.backend.is_untouched()
        await node.bring(NOTHING)
        assert leftovers(node) == before


async def choosing(node: ShapedNode) -> None:
    """Let the backend find out that it may load programs; not in a user namespace."""
    await node.backend.probe()
    program = chooser.load()
    if program is None:
        pytest.skip("bpf(2) loads no program for this user")
    os.close(program)


@pytest.mark.serial
async def test_services_reach_pods_of_the_same_bridge_at_once() -> None:
    """A redirect before the connection is confirmed would forget it; the first packet would be sent again after 1 s."""
    with shaped_node("web", "bulk", network=NETWORKS["services"]) as node:
        await node.bring(desired(node, pod(node, "web"), pod(node, "bulk")))
        for path in between(node.rig, "web", "bulk"):
            node.rig.node.run(["ip", "neigh", "flush", "all"])
            assert transfer(path, 10_000) < 0.8, path.name


@pytest.mark.serial
async def test_levels_get_their_guarantees_of_what_is_received() -> None:
    with shaped_node("web", "db", "bulk") as node, flows(node) as traffic:
        names = {"web": Level.L0, "db": Level.L1, "bulk": Level.L2}
        await node.bring(desired(node, *(pod(node, name, level) for name, level in names.items())))
        path = node.backend.fast_path()
        assert path is not None
        unit = Unit(RX, IfName(numbers.IFB_NAME))
        assert set(path.units) == {Unit(TX, IfName("up0")), unit}
        assert path.adjust(unit, PerLevel(30 * M, 0, 0)) == 1
        for name in names:
            traffic.udp(name, Datagrams(rate_bps=70 * M, segments=4), towards_pod=True).start()
        pause(0.3)
        levels = rates_bps(node, *numbers.LEVELS.values(), seconds=1.5)
        path.close()
    assert list(levels) == pytest.approx([30 * M, 18 * M, 12 * M], rel=0.05)


@pytest.mark.serial
@pytest.mark.parametrize("limit_bps", [10 * M, 100 * M])
async def test_a_limit_for_what_is_received_holds_against_tcp_and_udp(limit_bps: int) -> None:
    """A machine that is busy may stall a sender, which asks for less meanwhile: so one window of several counts."""
    with shaped_node("web", "bulk", network=NETWORKS["bridge"]) as node, flows(node) as traffic:
        limits = {"web": limit_bps, "bulk": limit_bps // 2}
        pods = [pod(node, name, rx_bps=bps, tx_bps=3 * M) for name, bps in limits.items()]
        await node.bring(desired(node, *pods, rx_bps=400 * M))
        traffic.tcp("web", towards_pod=True).start()
        traffic.udp("bulk", Datagrams(rate_bps=2 * limit_bps), towards_pod=True).start()
        pause(0.7)
        minors, met = (await node.minor("web"), await node.minor("bulk")), []
        for _ in range(4):
            met.append(rates_bps(node, *minors, seconds=1.0))
            if all(0.97 < bps / limit < 1.01 for bps, limit in zip(met[-1], limits.values(), strict=True)):
                return
    pytest.fail(f"limits {limits}, met {met}")


@pytest.mark.serial
async def test_what_stays_in_the_node_is_held_by_nothing() -> None:
    """A pod that may receive 5M from outside takes more than the node's total from its neighbour, and as much again."""
    with shaped_node("web", "bulk") as node, flows(node) as traffic:
        limited = [pod(node, name, Level.L2, tx_bps=5 * M, rx_bps=5 * M) for name in ("web", "bulk")]
        await node.bring(desired(node, *limited))
        traffic.udp("web", Datagrams(rate_bps=20 * M), towards_pod=True).start()
        server = node.rig.pod("web").popen(["iperf3", "--server", "--one-off"])
        pause(0.3)
        command = ["iperf3", "--client", node.rig.pod("web").address, "--time", "2", "--interval", "0"]
        client = node.rig.pod("bulk").popen(command)
        pause(0.5)
        local_bps, limited_bps = rates_bps(node, LOCAL, await node.minor("web"), seconds=1.2)
        client.wait()
        server.kill()
    assert local_bps > 10 * RX_BPS
    assert limited_bps == pytest.approx(5 * M, rel=0.05)


async def test_what_comes_for_workloads_is_counted_whole_and_nothing_else() -> None:
    """As the device counts: what is dropped at the IFB too, but neither the node's own nor what stays in the node."""
    with shaped_node("web", "bulk") as node, flows(node) as traffic:
        await node.bring(
            desired(node, pod(node, "web", Level.L0), pod(node, "bulk", Level.L2), rx_bps=20 * M)
        )
        path = node.backend.fast_path()
        assert path is not None
        (before,) = (one for one in path.sample() if one.unit.direction is RX)
        assert (before.unit, path.current_room(before.unit)) == (Unit(RX, IfName(numbers.IFB_NAME)), 20 * M)
        traffic.udp("bulk", Datagrams(rate_bps=50 * M, segments=1), towards_pod=True).start()
        node.rig.wire.call(send, node.rig.node.address, 2000, size=1000)
        node.rig.pod("bulk").call(send, node.rig.pod("web").address, 3000, size=1000)
        pause(0.6)
        traffic.stop()
        pause(0.1)
        (after,) = (one for one in path.sample() if one.unit.direction is RX)
        path.close()
    assert after.device_bytes is not None
    assert before.device_bytes is not None
    assert after.offered_bytes is not None
    assert before.offered_bytes is not None
    came, offered = after.device_bytes - before.device_bytes, after.offered_bytes - before.offered_bytes
    passed = sum(after.level_bytes) - sum(before.level_bytes)
    assert offered > 2 * passed
    assert came - offered == pytest.approx(2000 * 1042, rel=0.02)


async def test_off_and_cleanup_leave_everything_as_it_was_and_what_others_have_stays() -> None:
    with shaped_node("web", "bulk", network=NETWORKS["bridge"]) as node:
        own = node.rig.node.run
        port = node.rig.pod("web").link
        own(["tc", "qdisc", "add", "dev", port, "clsact"])
        theirs = f"filter add dev {port} egress pref 7 protocol ip u32 match ip dst 10.99.0.0/16"
        own(["tc", *theirs.split(), "action", "mirred", "egress", "redirect", "dev", "lo"])
        before = leftovers(node)
        plan = await node.bring(desired(node, pod(node, "web"), pod(node, "bulk")))
        assert codes(plan) == ["shared-hook"]
        specs = (await node.backend.observe()).specs
        redirects = [specs[key] for key in sorted(key for key in specs if isinstance(key, RedirectKey))]
        assert redirects == [RedirectSpec(target=numbers.IFB_INDEX, owns_hook=owns) for owns in (False, True)]
        await node.bring(NOTHING)
        assert leftovers(node) == before


async def test_a_routed_node_is_as_it_was_after_a_restart_too() -> None:
    with shaped_node("web", "bulk") as node:
        before = leftovers(node)
        wanted = desired(node, pod(node, "web"), pod(node, "bulk"))
        await node.bring(wanted)
        node.tc("filter", "del", "dev", node.rig.pod("web").link, "egress")
        await node.bring(wanted)
        restarted = make_backend(node.rig.node, node.state)
        assert not restarted.plan(wanted, await restarted.observe())
        assert restarted.writes == 0
        assert (await restarted.apply(restarted.plan(NOTHING, await restarted.observe()))).ok
        assert leftovers(node) == before
        restarted.shut()


async def test_whoever_is_killed_at_any_step_leaves_what_the_next_one_takes_over() -> None:
    """Both ways: each prefix of the operations is followed by a new backend, which ends where an unhurt one does."""
    with shaped_node("web", "bulk") as node:
        wanted = desired(node, pod(node, "web", Level.L0), pod(node, "bulk", rx_bps=9 * M))
        before = leftovers(node)
        await node.bring(wanted)
        whole = Counter(map(type, (await node.backend.observe()).ours))
        for goal, other, end in ((NOTHING, wanted, Counter()), (wanted, NOTHING, whole)):
            steps = len(node.backend.plan(goal, await node.backend.observe()).operations)
            for step in range(0, steps, 3):
                await node.bring(other)
                plan = node.backend.plan(goal, await node.backend.observe())
                await node.backend.apply(replace(plan, operations=plan.operations[:step]))
                following = make_backend(node.rig.node, node.state)
                await converge(following, goal)
                found = await following.observe()
                assert Counter(map(type, found.ours)) == end
                assert not following.plan(goal, found)
                following.shut()
            await node.bring(goal)
        await node.bring(NOTHING)
        assert leftovers(node) == before


@pytest.mark.serial
@pytest.mark.parametrize("has_hook", [True, False])
async def test_coming_and_going_under_load_loses_nothing_but_where_a_hook_is_made(has_hook: bool) -> None:
    """The kernel stops a device for about a millisecond while it gets its hook, or loses it."""
    with shaped_node("web", "bulk") as node:
        if has_hook:
            node.tc("qdisc", "add", "dev", node.rig.pod("web").link, "clsact")
        wanted = desired(node, pod(node, "web", Level.L0), pod(node, "bulk", rx_bps=9 * M))
        await node.bring(wanted)
        await node.bring(NOTHING)
        with node.rig.pod("web").entered():
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sink:
            sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            sink.bind((node.rig.pod("web").address, WIRE_PORT))
            probe = node.rig.wire.fork(numbered, node.rig.pod("web").address, 2000, 0.0005)
            for _ in range(4):
                await node.bring(wanted)
                pause(0.05)
                node.tc("filter", "del", "dev", node.rig.pod("web").link, "egress")
                await node.bring(wanted)
                await node.bring(NOTHING)
                pause(0.05)
            probe.result()
            got = taken(sink)
        assert got == sorted(got)
        assert len(got) >= 2000 - (0 if has_hook else 8 * 15 / 0.5)


def numbered(address: str, count: int, gap_s: float) -> None:
    """Numbered datagrams at a steady pace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(count):
            sender.sendto(number.to_bytes(4, "big") + bytes(200), (address, WIRE_PORT))
            time.sleep(gap_s)


def taken(sink: socket.socket) -> list[int]:
    """The numbers that have come."""
    sink.settimeout(0.3)
    found = []
    with contextlib.suppress(TimeoutError):
        while True:
            found.append(int.from_bytes(sink.recv(2048)[:4], "big"))
    return found


@pytest.mark.parametrize("network", ["routed", "bridge"])
async def test_a_pod_that_comes_is_led_at_once_and_one_that_goes_is_no_error(network: str) -> None:
    with shaped_node("web", network=NETWORKS[network]) as node:
        await node.bring(desired(node, pod(node, "web")))
        assert await node.backend.is_untouched()
        node.rig.add_pod("new")
        assert not await node.backend.is_untouched()
        plan = await node.bring(desired(node, pod(node, "web"), pod(node, "new", Level.L2)))
        assert not codes(plan)
        node.rig.wire.call(send, node.rig.pod("new").address, 40)
        assert node.packets(RX)[await node.minor("new")] >= 40
        node.rig.remove_pod("new")
        assert not await node.backend.is_untouched()
        await node.bring(desired(node, pod(node, "web")))
        assert await node.backend.is_untouched()


async def test_redirects_are_led_anew_whatever_else_happens_and_whenever_the_ifb_goes() -> None:
    with shaped_node("web") as node:
        wanted = desired(node, pod(node, "web"))
        await node.bring(wanted)
        await node.backend.observe()
        node.rig.node.run(["ip", "route", "add", "10.99.0.0/24", "dev", node.rig.pod("web").link])
        node.rig.node.run(["ip", "link", "del", numbers.IFB_NAME])
        plan = await node.bring(wanted)
        assert "redirect" in {one.subject.split(" at ")[0] for one in plan.operations}
        assert node.backend._kernel is not None
        await node.backend.observe()
        look = node.backend._kernel.surroundings.look

        def look_too_early(watched: Collection[int] = ()) -> frozenset[int] | None:
            changed = look(watched)
            node.rig.node.run(["ip", "link", "del", numbers.IFB_NAME])
            return changed

        with mock.patch.object(node.backend._kernel.surroundings, "look", look_too_early):
            observed = await node.backend.observe()
        plan = node.backend.plan(wanted, observed)
        assert "redirect" in {one.subject.split(" at ")[0] for one in plan.operations}


async def test_a_device_that_is_made_anew_is_no_drift_and_one_that_goes_meanwhile_no_failure() -> None:
    with shaped_node("web", "new") as node:
        wanted = desired(node, pod(node, "web"), pod(node, "new"))
        await node.bring(wanted)
        veth, address = node.rig.pod("new").link, node.rig.pod("new").address
        node.rig.node.run(["ip", "link", "del", veth])
        node.rig.node.run(["ip", "link", "add", veth, "type", "veth", "peer", "name", "other"])
        node.rig.node.run(["ip", "link", "set", veth, "up"])
        node.rig.node.run(["ip", "route", "add", address, "dev", veth])
        plan = node.backend.plan(wanted, await node.backend.observe())
        assert [(one.is_repair, one.concerns) for one in plan.operations] == [(False, ("pod ns/new",))]
        node.rig.node.run(["ip", "link", "del", veth])
        assert (await node.backend.apply(plan)).ok
        node.tc("qdisc", "del", "dev", node.rig.pod("web").link, "clsact")
        plan = node.backend.plan(wanted, await node.backend.observe())
        assert [(one.is_repair, one.concerns) for one in plan.operations] == [(True, ("pod ns/web",))]


@pytest.mark.parametrize("leaving", [["del", numbers.IFB_NAME], ["set", numbers.IFB_NAME, "name", "foo0"]])
async def test_a_device_of_somebody_else_in_the_ifbs_place_is_left_alone(leaving: list[str]) -> None:
    with shaped_node("web") as node:
        node.rig.node.run(["ip", "link", "add", numbers.IFB_NAME, "type", "veth", "peer", "name", "other"])
        plan = await node.bring(desired(node, pod(node, "web")))
        (finding,) = [one for one in plan.findings if one.code == "not-enforced-ingress"]
        assert finding.subject == "rx"
        assert numbers.IFB_NAME in finding.message
        assert f"htb {numbers.text(numbers.ROOT)}" in node.tc("qdisc", "show", "dev", "up0")
        assert await node.backend.is_untouched()
        node.rig.node.run(["ip", "link", *leaving])
        assert not await node.backend.is_untouched()
        plan = await node.bring(desired(node, pod(node, "web")))
        assert not plan.findings


@pytest.mark.parametrize(
    ("qdisc", "protocol", "says"),
    [
        ("egress_block 5 clsact", "", "a block"),
        ("clsact", "ip", "has the preference of ours"),
        ("clsact", "all", "has the preference of ours"),
    ],
)
async def test_what_others_have_in_the_place_of_a_redirect_stays_and_is_told(
    qdisc: str, protocol: str, says: str
) -> None:
    with shaped_node("web", "bulk") as node:
        veth = node.rig.pod("web").link
        node.tc(*f"qdisc add dev {veth} {qdisc}".split())
        if protocol:
            line = f"filter add dev {veth} egress pref 65106 protocol {protocol} {MIRROR}"
            node.tc(*line.split())
        listed = (
            node.tc("qdisc", "show", "dev", veth, "clsact"),
            node.tc("filter", "show", "dev", veth, "egress"),
        )
        plan = await node.bring(desired(node, pod(node, "web"), pod(node, "bulk")))
        found = {one.subject: one.message for one in plan.findings if one.code == "not-enforced-ingress"}
        assert set(found) == {veth, "pod ns/web"}
        assert says in found[veth]
        assert await node.backend.is_untouched()
        await node.bring(NOTHING)
        assert listed == (
            node.tc("qdisc", "show", "dev", veth, "clsact"),
            node.tc("filter", "show", "dev", veth, "egress"),
        )


async def test_large_packets_and_jumbo_frames_pass_whole() -> None:
    with shaped_node("web") as node, flows(node) as traffic:
        for place, device in (
            (node.rig.wire, "wire0"),
            (node.rig.node, "up0"),
            (node.rig.pod("web"), "eth0"),
        ):
            place.run(["ip", "link", "set", device, "mtu", "9000"])
        node.rig.node.run(["ip", "link", "set", node.rig.pod("web").link, "mtu", "9000"])
        await node.bring(desired(node, pod(node, "web"), rx_bps=2000 * M))
        traffic.tcp("web", towards_pod=True).start()
        pause(0.5)
        before = node.classes(RX)[await node.minor("web")].counters
        pause(0.5)
        after = node.classes(RX)[await node.minor("web")].counters
        assert (after.sent_bytes - before.sent_bytes) / (after.sent_packets - before.sent_packets) > 8000
        assert (after.sent_bytes - before.sent_bytes) * 8 > 500 * M


@pytest.mark.parametrize("name", RX_HARMS)
async def test_each_harm_is_noticed_and_only_what_it_did_is_put_right(harmed: ShapedNode, name: str) -> None:
    node, wanted = harmed, desired(harmed, pod(harmed, "web", Level.L0, rx_bps=8 * M), pod(harmed, "bulk"))
    await node.bring(wanted)
    before = (await node.backend.observe()).ours
    address = node.rig.pod("web").address
    element = before[ElementKey(ElementMap.RX4, address)]
    assert isinstance(element, ElementSpec)
    names = {"ifb": numbers.IFB_NAME, "leaf": f"{element.minor:x}", "pod": address}
    names["veth"] = node.rig.pod("web").link
    assert await node.backend.is_untouched()
    for line in RX_HARMS[name].lines(**names):
        node.rig.node.run(line)
    assert not await node.backend.is_untouched()
    plan = await node.bring(wanted)
    allowed = [pattern.format(**names) for pattern in RX_HARMS[name].repairs]
    strange = [
        one.subject
        for one in plan.operations
        if not any(re.fullmatch(pattern, one.subject) for pattern in allowed)
    ]
    assert plan.operations
    assert not strange
    assert (await node.backend.observe()).ours == before
    node.rig.wire.call(send, address, 5)


@pytest.fixture(scope="module")
def harmed() -> Iterator[ShapedNode]:
    with shaped_node("web", "bulk") as node:
        yield node
