"""What the kernel's counters say against us, provoked with real packets; nothing on a node where all is well."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from netqos.host.nftables import Nftables
from netqos.model.desired import DesiredPod
from netqos.model.health import Finding
from netqos.model.levels import Level
from netqos.testing.networks import NETWORKS
from netqos_tc import numbers
from netqos_tc.claims import SHOWN_S, claimed_by
from netqos_tc.classify import owner_of
from netqos_tc.evidence import LOOK_S, SAMPLE_LOOKS, SAMPLED_LOOKS, Evidence
from netqos_tc.inbound import INBOUND
from netqos_tc.netlink import Channel
from netqos_tc.observed import TcObserved
from netqos_tc.strays import EGRESS, Watch
from tests.kernel.tcnode import WIRE_PORT, ShapedNode, send, shaped_node
from tests.kernel.test_tc_nobodys import forge, take_over, trusting

pytestmark = pytest.mark.kernel(
    "veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "nft-egress", "ifb", "clsact"
)

_PACKET_QDISC_BYPASS = 20
_SOL_PACKET = 263
_FRAME = 1400


@dataclass(slots=True)
class Hand:
    """A clock that is set by hand."""

    now_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Watched:
    """A shaped node, and evidence on it that looks whenever it is asked to: no test waits for the clock."""

    node: ShapedNode
    evidence: Evidence
    clock: Hand

    async def look(self, seen: TcObserved | None = None) -> tuple[Finding, ...]:
        """One look, some time after the one before, with what was observed last."""
        self.clock.now_s += LOOK_S
        seen = seen or await self.node.backend.observe()
        names = {owner_of(pod.uid): pod.name for pod in self.node.desired.pods}
        self.evidence.look(
            seen.names, (self.node.ifindex,), lambda way: claimed_by(seen.elements, names, way)
        )
        return self.evidence.findings()


@contextlib.contextmanager
def watched(*pods: str, network: str = "routed") -> Iterator[Watched]:
    with shaped_node(*pods, network=NETWORKS[network]) as node, node.rig.node.entered():
        route, netfilter, nft = Channel.route(), Channel.netfilter(), Nftables()
        clock = Hand()
        watch, inbound = (Watch(netfilter, lambda: nft, place) for place in (EGRESS, INBOUND))
        evidence = Evidence(route, watch, inbound, lambda: clock.now_s)
        try:
            yield Watched(node, evidence, clock)
        finally:
            evidence.end()
            nft.close()
            route.close()
            netfilter.close()


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in findings]


def pods(node: ShapedNode) -> tuple[DesiredPod, DesiredPod]:
    return node.pod("web", Level.L0), node.pod("bulk", Level.L2)


def flood_past_the_queue(device: str, count: int) -> None:
    """Frames that no queue of the device meets (dev_direct_xmit)."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        sender.bind((device, 0x0800))
        frame = b"\xff" * 6 + bytes(6) + b"\x08\x00" + bytes(_FRAME)
        for number in range(count):
            with contextlib.suppress(BlockingIOError, OSError):
                sender.send(frame)
            if number % 100 == 0:
                time.sleep(0.001)


def send_unclassed(device: str, count: int) -> None:
    """Frames of IP that no rule tells apart."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((device, 0x0800))
        for _ in range(count):
            sender.send(
                b"\xff" * 6 + bytes(6) + b"\x08\x00\x45" + bytes(11) + bytes([192, 0, 2, 1]) + bytes(_FRAME)
            )


def burst(address: str, count: int, *, segments: int = 1) -> None:
    """Datagrams; with more than one segment the kernel gives the device one packet for all of them (GSO)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        if segments > 1:
            sender.setsockopt(socket.IPPROTO_UDP, 103, _FRAME)
        for number in range(count):
            sender.sendto(bytes(_FRAME * segments), (address, WIRE_PORT))
            if number % (20 // segments or 1) == 0:
                time.sleep(0.003)


async def test_on_a_healthy_node_there_is_nothing_to_tell() -> None:
    """Single and merged packets, both families, from pods, to pods, and of the node itself."""
    with watched("web", "bulk") as one:
        node, wire = one.node, one.node.rig.wire
        await node.bring(node.both(*pods(node)))
        await one.look()
        for _ in range(3):
            node.rig.pod("web").call(burst, wire.address, 1500)
            node.rig.pod("bulk").call(burst, wire.address, 60, segments=20)
            node.rig.pod("web").call(send, wire.address6, 20)
            node.rig.node.call(burst, wire.address, 200)
            wire.call(burst, node.rig.pod("web").address, 1200)
            wire.call(burst, node.rig.pod("bulk").address, 60, segments=20)
            assert await one.look() == ()
        shown = node.tc("-s", "class", "show", "dev", "up0", "classid", "4e51:1")
        assert int(shown.split("Sent ")[1].split()[0]) > 9_000_000


@pytest.mark.parametrize("network", ["routed", "bridge"])
async def test_packets_led_past_the_nodes_stack_are_told_by_the_unknown_leaf(network: str) -> None:
    with watched("web", "bulk", network=network) as one:
        node, wire = one.node, one.node.rig.wire
        await node.bring(node.both(*pods(node)))
        await one.look()
        web = node.rig.pod("web")
        device = web.link
        where = ("dev", device, "ingress", "protocol", "ip", "prio", "1")
        node.tc("qdisc", "replace", "dev", device, "clsact")
        node.tc(
            *f"filter add {' '.join(where)} u32 match u32 0 0 action mirred egress redirect dev up0".split()
        )
        for _ in range(2):
            web.call(send, wire.address, 100)
            assert told(await one.look()) == []
        web.call(send, wire.address, 100)
        assert told(await one.look()) == [("unclassed-past-the-stack", "up0")]


async def test_a_forged_source_is_told() -> None:
    with watched("web", "bulk") as one:
        node, wire = one.node, one.node.rig.wire
        trusting(node)
        await node.bring(node.both(*pods(node)))
        await one.look()
        victim, forger = node.rig.pod("web"), node.rig.pod("bulk")
        take_over(forger, "eth0", victim.address)
        findings: tuple[Finding, ...] = ()
        for _ in range(3):
            forger.call(forge, victim.address, wire.address)
            findings = await one.look()
        assert told(findings) == [("claimed-unclassed", "pod ns/web")]
        assert "another device" in findings[0].message


async def test_a_class_that_a_rule_behind_ours_takes_away_is_told() -> None:
    with watched("web") as one:
        node, wire = one.node, one.node.rig.wire
        await node.bring(node.node(node.pod("web", Level.L0)))
        node.nft(
            "add table inet other; add chain inet other late { type filter hook postrouting priority 50; };"
            "add rule inet other late meta priority set 0:0\n"
        )
        await one.look()
        findings: tuple[Finding, ...] = ()
        for _ in range(3):
            node.rig.pod("web").call(send, wire.address, 100)
            node.rig.pod("web").call(send, wire.address6, 100)
            findings = await one.look()
        assert [one.code for one in findings] == ["claimed-unclassed"]
        assert findings[0].message.startswith("at least 100 packets")


async def test_what_comes_in_without_its_class_is_told() -> None:
    """Somebody's rule takes the class away before the packet would be led to the IFB."""
    with watched("web") as one:
        node, wire = one.node, one.node.rig.wire
        await node.bring(node.both(node.pod("web", Level.L0)))
        node.nft(
            "add table inet other; add chain inet other late { type filter hook postrouting priority 50; };"
            "add rule inet other late meta priority set 0:0\n"
        )
        web, codes = node.rig.pod("web"), set[str]()
        for _ in range(SAMPLE_LOOKS + SAMPLED_LOOKS):
            wire.call(send, web.address, 30)
            wire.call(send, web.address6, 30)
            codes |= {found.code for found in await one.look()}
        assert "claimed-unclassed-ingress" in codes


async def test_an_element_deleted_by_hand_is_told_while_it_is_gone() -> None:
    with watched("web") as one:
        node, wire = one.node, one.node.rig.wire
        await node.bring(node.node(node.pod("web", Level.L0)))
        web, before = node.rig.pod("web"), await node.backend.observe()
        await one.look(before)
        node.nft(f"delete element inet netqos tx4 {{ {web.address} }}\n")
        for _ in range(3):
            web.call(send, wire.address, 100)
            web.call(send, wire.address6, 100)
            await one.look(before)
        (found,) = one.evidence.findings()
        assert found.message.startswith("at least 100 packets")
        await node.repair()
        one.clock.now_s += SHOWN_S
        web.call(send, wire.address, 100)
        assert await one.look() == ()


async def test_what_is_sent_past_the_queue_is_told_by_the_devices_counter() -> None:
    with watched("web") as one:
        node, wire = one.node, one.node.rig.wire
        await node.bring(node.node(node.pod("web", Level.L0)))
        await one.look()
        found = []
        for _ in range(3):
            node.rig.pod("web").call(burst, wire.address, 1500)
            node.rig.node.call(flood_past_the_queue, "up0", 200)
            found.append(told(await one.look()))
        assert found[0] == []
        assert found[-1] == [("counters-disagree", "up0")]
        assert "more than headers explain" in one.evidence.findings()[0].message


async def test_more_from_outside_than_the_uplinks_received_is_told() -> None:
    """The wire's second way to the node is no uplink, and who sends by it is nobody's."""
    with watched("web", "stray") as one:
        node = one.node
        await node.bring(node.both(node.pod("web", Level.L0)))
        await one.look()
        findings: tuple[Finding, ...] = ()
        for _ in range(2):
            node.rig.pod("stray").call(burst, node.rig.pod("web").address, 1700)
            findings = await one.look()
        assert told(findings) == [("counters-disagree", numbers.IFB_NAME)]
        assert "less than headers explain" in findings[0].message


async def test_the_watch_ends_with_its_process_and_nobody_elses_flush_ends_it() -> None:
    with watched("web") as one:
        node = one.node
        await node.bring(node.node(node.pod("web", Level.L0)))
        await one.look()
        assert "watch" not in node.rig.node.run(["nft", "list", "tables"]).stdout
        node.rig.node.call(send_unclassed, "up0", 20)
        await one.look()
        node.nft("flush ruleset")
        tables = node.rig.node.run(["nft", "list", "tables"]).stdout
        assert tables.startswith("table netdev netqos_watch_")
        one.evidence.end()
        assert node.rig.node.run(["nft", "list", "tables"]).stdout == ""
