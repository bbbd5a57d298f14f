"""Limiters and short cuts of others in a real kernel: found, said, not doubled; their packets never run as L0."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from netqos.host import bpf, bypass, limiters
from netqos.host.limiters import THROTTLE_MAP
from netqos.host.neighbours import RECHECK_S, Neighbourhood, Neighbours
from netqos.model.inputs import NOT_HELD
from netqos.model.levels import Level, PerDirection
from netqos.testing.bpf import ForeignProgram
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS
from netqos_tc import numbers
from tests.kernel import foreign
from tests.kernel.tcnode import ShapedNode, send, shaped_node

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")


@pytest.fixture
def node() -> Iterator[ShapedNode]:
    with shaped_node("web", "batch") as node:
        yield node


def look(rig: Rig) -> Neighbourhood:
    with rig.node.entered(), closing(Neighbours()) as looking:
        return looking.read(now_s=1.0)


def index(rig: Rig, device: str) -> int:
    with rig.node.entered():
        return socket.if_nametoindex(device)


def codes(node: ShapedNode) -> list[str]:
    return sorted(one.code for one in bypass.findings(look(node.rig), [node.ifindex]))


async def shape(node: ShapedNode) -> None:
    await node.bring(node.node(node.pod("web", Level.L0), node.pod("batch", Level.L2)))


def sends(node: ShapedNode, pod: str) -> set[int]:
    """The leaves that a pod's packets take."""
    first = node.packets()
    node.rig.pod(pod).call(send, node.rig.wire.address, 20)
    now = node.packets()
    return {minor for minor, count in now.items() if count >= first.get(minor, 0) + 20} - numbers.INNER


async def test_an_ordinary_node_has_none(node: ShapedNode) -> None:
    await shape(node)
    seen = look(node.rig)
    held = limiters.held_limits(seen, [node.ifindex])
    assert (codes(node), limiters.findings(seen, held, [node.ifindex]), seen.behind) == ([], (), {})


@pytest.mark.kernel("tbf", "ifb")
def test_the_limiters_of_the_bandwidth_plugin_on_routed_pods(node: ShapedNode) -> None:
    foreign.limit_as_cni(node.rig, "web", tx="7mbit", rx="9mbit")
    web, batch = node.rig.pod("web"), node.rig.pod("batch")
    held = limiters.held_limits(look(node.rig), [node.ifindex])
    both = PerDirection(tx=f"tbf 7M on bwp0123456789a, fed by {web.link}", rx=f"tbf 9M on {web.link}")
    assert held.of((web.address6,)) == held.of((web.address,)) == both
    assert held.of((batch.address,)) == NOT_HELD
    assert codes(node) == [], "an IFB gives packets back: no way past us"


@pytest.mark.kernel("tbf", "ifb", "bridge")
def test_a_pod_on_a_bridge_that_has_said_nothing_is_asked_for() -> None:
    with Rig(pods=("web", "batch"), network=NETWORKS["bridge"]) as rig, rig.node.entered():
        foreign.limit_as_cni(rig, "web", tx="7mbit", rx="9mbit")
        web, batch = rig.pod("web"), rig.pod("batch")
        with closing(Neighbours()) as looking:
            first = limiters.held_limits(looking.read(now_s=1.0), [])
            assert first.of((web.address,)) == NOT_HELD
            wanted = (web.address, web.address6, batch.address, "192.0.2.1", "no address")
            looking.read(now_s=2.0 + RECHECK_S, wanted=lambda: wanted)
            time.sleep(0.2)
            held = limiters.held_limits(looking.read(now_s=4.0 + RECHECK_S, wanted=lambda: wanted), [])
    both = PerDirection(tx=f"tbf 7M on bwp0123456789a, fed by {web.link}", rx=f"tbf 9M on {web.link}")
    assert held.of((web.address,)) == held.of((web.address6,)) == both
    assert held.of((batch.address,)) == NOT_HELD


def test_the_limiters_that_the_bandwidth_plugin_makes_of_htb(node: ShapedNode) -> None:
    link = node.rig.pod("web").link
    for line in (
        f"qdisc add dev {link} root handle 1: htb default 30",
        f"class add dev {link} parent 1: classid 1:1 htb rate 40gbit",
        f"class add dev {link} parent 1: classid 1:30 htb rate 9mbit",
    ):
        node.tc(*line.split())
    held = limiters.held_limits(look(node.rig), [node.ifindex])
    assert held.of((node.rig.pod("web").address,)) == PerDirection(tx="", rx=f"htb 9M on {link}")
    node.tc(*f"class del dev {link} classid 1:30".split())
    assert limiters.held_limits(look(node.rig), [node.ifindex]).by_address == {}, "somebody's own HTB"


@pytest.mark.kernel("tbf", "bridge")
def test_the_limiter_of_a_pod_on_a_bridge() -> None:
    with Rig() as rig:
        for line in (
            "link add br0 type bridge",
            "link set br0 up",
            "addr add 10.5.0.1/24 dev br0",
            "link add port1 type veth peer name pod1",
            "link set port1 master br0 up",
            "link set pod1 address 02:00:00:00:05:05 up",
            "neigh replace 10.5.0.5 lladdr 02:00:00:00:05:05 dev br0 nud permanent",
        ):
            rig.node.run(["ip", *line.split()])
        for line in (
            "bridge fdb replace 02:00:00:00:05:05 dev port1 master static",
            "tc qdisc add dev port1 root handle 1: tbf rate 9mbit burst 32kb latency 25ms",
        ):
            rig.node.run(line.split())
        held = limiters.held_limits(look(rig), [])
        assert held.of(("10.5.0.5",)) == PerDirection(tx="", rx="tbf 9M on port1")


async def test_a_program_that_forwards_by_itself_is_told_and_its_packets_are_unknown(
    node: ShapedNode,
) -> None:
    await shape(node)
    assert sends(node, "web") == {await node.minor("web")}
    link = index(node.rig, node.rig.pod("web").link)
    with ExitStack() as stack:
        with node.rig.node.entered():
            program = ForeignProgram("tcx", "ingress", link, name="cil_from_cont", redirect_to=node.ifindex)
        stack.callback(program.close)
        assert codes(node) == ["program-may-bypass"]
        assert sends(node, "web") == {numbers.UNKNOWN}
    assert codes(node) == []
    assert sends(node, "web") == {await node.minor("web")}


async def test_a_redirecting_filter_is_told_and_its_packets_are_unknown(node: ShapedNode) -> None:
    await shape(node)
    link = node.rig.pod("web").link
    node.tc(*f"qdisc add dev {link} clsact".split())
    node.tc(
        *f"filter add dev {link} ingress protocol ip u32 match u32 0 0".split(),
        *f"action mirred egress redirect dev {node.rig.uplink}".split(),
    )
    assert codes(node) == ["redirect-bypass"]
    assert sends(node, "web") == {numbers.UNKNOWN}


@pytest.mark.kernel("flowtable")
async def test_a_flowtable_is_told_and_its_packets_are_unknown(node: ShapedNode) -> None:
    await shape(node)
    devices = f"{node.rig.uplink}, {node.rig.pod('web').link}"
    node.nft(
        "table inet theirs { flowtable fast { hook ingress priority 0; devices = { " + devices + " }; }\n"
        "chain f { type filter hook forward priority 0; meta l4proto udp flow add @fast; } }"
    )
    assert codes(node) == ["flowtable-bypass"]
    node.rig.wire.fork(answer, node.rig.wire.address)
    node.rig.pod("web").call(send, node.rig.wire.address, 5)
    assert sends(node, "web") == {numbers.UNKNOWN}


@pytest.mark.kernel("ip-vs", "tool:ipvsadm")
async def test_what_ipvs_answers_for_a_pod_runs_in_its_leaf(node: ShapedNode) -> None:
    await shape(node)
    service, web = f"{node.rig.node.address}:9", node.rig.pod("web")
    node.rig.node.run(["ipvsadm", "--add-service", "--udp-service", service])
    node.rig.node.run(
        [*f"ipvsadm --add-server --udp-service {service} --masquerading".split(), "-r", f"{web.address}:9"]
    )
    web.fork(answer, web.address)
    before = node.packets()
    node.rig.wire.call(send, node.rig.node.address, 20)
    assert node.packets()[await node.minor("web")] >= before.get(await node.minor("web"), 0) + 15


def answer(address: str) -> None:
    """Echo datagrams: a flow is taken over once both ways were seen."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 9))
        server.settimeout(5)
        end_s = time.monotonic() + 5
        while time.monotonic() < end_s:
            data, peer = server.recvfrom(2048)
            server.sendto(data, peer)


def test_an_xdp_program_is_told(node: ShapedNode) -> None:
    with node.rig.node.entered():
        program = ForeignProgram("xdp", "ingress", node.ifindex)
    assert codes(node) == ["xdp-may-bypass"]
    program.close()
    assert codes(node) == []


def test_the_maps_of_a_program_tell_ciliums_manager(node: ShapedNode) -> None:
    with node.rig.node.entered():
        program = ForeignProgram("tcx", "egress", node.ifindex, name="cil_to_netdev", uses_map=THROTTLE_MAP)
        (identity,) = bpf.attached(node.ifindex, "egress")
    met = bpf.program(identity)
    program.close()
    assert (met.name, met.maps) == ("cil_to_netdev", (THROTTLE_MAP,))


@pytest.mark.kernel("fq")
def test_fq_under_a_program_of_the_manager_holds_what_pods_send(node: ShapedNode) -> None:
    node.tc(*f"qdisc add dev {node.rig.uplink} root fq".split())
    with node.rig.node.entered():
        program = ForeignProgram("tcx", "egress", node.ifindex, name="cil_to_netdev", uses_map=THROTTLE_MAP)
    held = limiters.held_limits(look(node.rig), [node.ifindex])
    assert held.of_all.tx.startswith("cil_to_netdev")
    program.close()
