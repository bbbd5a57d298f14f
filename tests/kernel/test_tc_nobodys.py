"""What nobody claims, or somebody claims falsely, is L1's unknown leaf, never L0 and never another's."""

from __future__ import annotations

import socket
import time
from collections import Counter

import pytest

from netqos.model.levels import Direction, Level
from netqos.testing.namespaces import Namespace
from netqos.testing.networks import NETWORKS
from netqos_tc import numbers
from tests.kernel.tcnode import WIRE_PORT, ShapedNode, send, shaped_node

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "ifb", "clsact")

COUNT = 200
UNKNOWN, HOST, LOCAL = numbers.UNKNOWN, numbers.HOST, numbers.LOCAL
RX = Direction.RX


def forge(source: str, address: str) -> None:
    """Datagrams from an address that is another's."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.bind((source, 0))
        for _ in range(COUNT):
            sender.sendto(bytes(400), (address, WIRE_PORT))
            time.sleep(0.0003)


def take_over(place: Namespace, device: str, *addresses: str) -> None:
    """Give a namespace addresses that are another's."""
    for address in addresses:
        place.run(["ip", "addr", "add", address, "dev", device])


def trusting(node: ShapedNode) -> None:
    """No filter of the kernel's own drops what comes in by another device than it should."""
    names = node.rig.node.run(["ls", "/proc/sys/net/ipv4/conf"]).stdout.split()
    node.rig.node.set_sysctls({f"net/ipv4/conf/{name}/rp_filter": 0 for name in names})


def grown(node: ShapedNode, before: Counter[int], way: Direction = Direction.TX) -> Counter[int]:
    found = Counter(node.packets(way)) - before
    return Counter({minor: count for minor, count in found.items() if minor not in numbers.INNER})


@pytest.mark.parametrize("network", ["routed", "routed-masquerade"])
async def test_who_forges_anothers_source_is_unknown(network: str) -> None:
    with shaped_node("web", "bulk", network=NETWORKS[network]) as node:
        trusting(node)
        await node.bring(node.node(node.pod("web", Level.L0), node.pod("bulk", Level.L2)))
        victim, forger = node.rig.pod("web"), node.rig.pod("bulk")
        take_over(forger, "eth0", victim.address, victim.address6)
        web, before = await node.minor("web"), Counter(node.packets())
        forger.call(forge, victim.address, node.rig.wire.address)
        forger.call(forge, victim.address6, node.rig.wire.address6)
        found = grown(node, before)
        assert found[web] < 10  # answers to what it never asked
        assert found[UNKNOWN] >= 2 * COUNT
        node.rig.pod("web").call(send, node.rig.wire.address, COUNT)
        assert grown(node, before)[web] >= COUNT


async def test_behind_one_bridge_it_is_believed_and_that_is_said() -> None:
    with shaped_node("web", "bulk", network=NETWORKS["bridge"]) as node:
        trusting(node)
        plan = await node.bring(node.node(node.pod("web", Level.L0), node.pod("bulk", Level.L2)))
        assert [(one.code, one.subject) for one in plan.findings] == [("source-not-verified", "cni0")]
        web, before = await node.minor("web"), Counter(node.packets())
        take_over(node.rig.pod("bulk"), "eth0", node.rig.pod("web").address)
        node.rig.pod("bulk").call(forge, node.rig.pod("web").address, node.rig.wire.address)
        assert grown(node, before)[web] >= COUNT


async def test_a_pods_source_from_outside_makes_nobody_that_pod_nor_lets_it_out_of_the_ingress_levels() -> (
    None
):
    with shaped_node("web", "bulk") as node:
        trusting(node)
        await node.bring(node.both(node.pod("web", Level.L0), node.pod("bulk", Level.L2)))
        take_over(node.rig.wire, "lo", node.rig.pod("web").address)
        before = Counter(node.packets(RX))
        node.rig.wire.call(forge, node.rig.pod("web").address, node.rig.pod("bulk").address)
        found = grown(node, before, RX)
        assert found[await node.minor("bulk")] >= COUNT
        assert found[LOCAL] < COUNT // 2


@pytest.mark.kernel("vxlan", "bridge")
async def test_an_unknown_pod_in_a_tunnel_is_not_the_host() -> None:
    """The outer packet has the node's own source."""
    with shaped_node("web", "stray", network=NETWORKS["vxlan"]) as node:
        await node.bring(node.node(node.pod("web", Level.L0)))
        remote = node.rig.remote
        assert remote is not None
        before = Counter(node.packets())
        node.rig.pod("stray").call(send, remote.address, COUNT)
        node.rig.pod("web").call(send, remote.address, COUNT)
        found = grown(node, before)
        assert found[await node.minor("web")] >= COUNT
        assert found[UNKNOWN] >= COUNT
        assert found[HOST] < COUNT


@pytest.mark.parametrize("stolen", [0, numbers.L0, numbers.UNKNOWN, None])
async def test_a_priority_of_the_ingress_tree_that_a_process_takes_reaches_nothing(
    stolen: int | None,
) -> None:
    """On the host and in a pod; None: the leaf of another pod."""
    with shaped_node("web", "bulk") as node:
        wanted = node.both(node.pod("web", Level.L0), node.pod("bulk", Level.L2))
        await node.bring(wanted)
        minor = await node.minor("web") if stolen is None else stolen
        priority = numbers.KINDS.rx.class_id(minor)
        out, into = Counter(node.packets()), Counter(node.packets(RX))
        node.rig.node.call(send, node.rig.wire.address, COUNT, priority=priority)
        node.rig.node.call(send, node.rig.pod("bulk").address, COUNT, priority=priority)
        node.rig.pod("web").call(send, node.rig.pod("bulk").address6, COUNT, priority=priority)
        assert grown(node, out)[HOST] >= COUNT
        found = grown(node, into, RX)
        assert found.pop(LOCAL) >= 2 * COUNT
        assert sum(found.values()) < 10
        shown = node.tc("qdisc", "show", "dev", numbers.IFB_NAME, "root")
        assert "direct_packets_stat 0" in shown


async def test_an_element_that_outlives_its_class_leads_to_the_unknown_leaf() -> None:
    with shaped_node("web") as node:
        await node.bring(node.both(node.pod("web", Level.L0)))
        minor, web = await node.minor("web"), node.rig.pod("web")
        for device, major in (("up0", numbers.MAJOR), (numbers.IFB_NAME, numbers.INGRESS_MAJOR)):
            node.tc("class", "del", "dev", device, "classid", f"{major:x}:{minor:x}")
        out, into = Counter(node.packets()), Counter(node.packets(RX))
        web.call(send, node.rig.wire.address, COUNT)
        assert grown(node, out)[UNKNOWN] >= COUNT
        node.rig.wire.call(send, web.address, COUNT)
        assert not grown(node, into, RX)[numbers.L0]
