"""Rules inside workloads under the real kernel, in both directions: what matches, what is held, what is lost."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_interface

import pytest

from netqos.errors import Unsupported
from netqos.model.desired import NOTHING, DesiredPod, DesiredState
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule
from netqos.testing import states
from netqos.testing.hostpod import HostPod
from netqos.testing.netns import Namespace
from netqos.testing.networks import NETWORKS
from netqos.testing.processes import CommandFailed
from netqos.testing.states import M
from netqos_tc import numbers, podrules
from netqos_tc.keys import RulesKey
from netqos_tc.register import names_of
from netqos_tc.spec import RulesSpec
from tests.kernel.tchost import make_backend
from tests.kernel.tcnode import ShapedNode, shaped_node

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "ifb", "clsact")

TX, RX = Direction.TX, Direction.RX
UDP = Protocol.UDP
ANYTHING = (IpMatch(),)


def ports(*listed: int | tuple[int, int], protocol: Protocol | None = None) -> PortMatch:
    pairs = [one if isinstance(one, tuple) else (one, one) for one in listed]
    return PortMatch(ranges=tuple(PortRange(low=low, high=high) for low, high in pairs), protocol=protocol)


def on(way: Direction, *rules: Rule) -> PerDirection[tuple[Rule, ...]]:
    return PerDirection(tx=rules if way is TX else (), rx=rules if way is RX else ())


def limit(way: Direction, bps: int | None) -> PerDirection[int | None]:
    return PerDirection(tx=bps if way is TX else None, rx=bps if way is RX else None)


def ruled(node: ShapedNode, name: str, level: Level, rules: PerDirection[tuple[Rule, ...]]) -> DesiredPod:
    return replace(node.pod(name, level), rules=rules)


def shaped(node: ShapedNode, way: Direction, *pods: DesiredPod) -> DesiredState:
    """Only one direction is shaped; 100M tx, 60M rx, 50/30/20 percent."""
    total_bps = 100 * M if way is TX else 60 * M
    up = states.uplink(index=node.ifindex, tx_bps=100 * M, rx_bps=60 * M)
    nothing, own = states.direction(None), states.direction(total_bps)
    return states.node(
        pods, uplinks=(up,), tx=own if way is TX else nothing, rx=own if way is RX else nothing
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Datagrams at a pace, from and to a port, for a while."""

    address: str
    port: int
    own_port: int
    rate_bps: int
    seconds: float

    def run(self) -> None:
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.bind(("::" if family is socket.AF_INET6 else "0.0.0.0", self.own_port))
            began_s, sent = time.monotonic(), 0
            while (now_s := time.monotonic() - began_s) < self.seconds:
                while sent < now_s * self.rate_bps / 8 / 1242:
                    with contextlib.suppress(OSError):
                        sender.sendto(bytes(1200), (self.address, self.port))
                    sent += 1
                time.sleep(0.001)


def ends(node: ShapedNode, name: str, way: Direction) -> tuple[Namespace, str]:
    """Who sends, and to which address."""
    pod, wire = node.rig.pod(name), node.rig.wire
    return (pod, wire.address) if way is TX else (wire, pod.address)


def start(
    node: ShapedNode, name: str, way: Direction, remote: int, *, rate_bps: int, seconds: float = 2
) -> None:
    """A stream that has a port of the remote side; it ends by itself."""
    source, address = ends(node, name, way)
    own = 4000 + remote % 1000
    port, own_port = (remote, own) if way is TX else (own, remote)
    one = Stream(address=address, port=port, own_port=own_port, rate_bps=rate_bps, seconds=seconds)
    source.fork(one.run)


def burst(node: ShapedNode, name: str, way: Direction, *, remote: int, count: int) -> None:
    """Some datagrams that have a port of the remote side, one each millisecond."""
    source, address = ends(node, name, way)
    source.call(few, address, remote, way, count)


def few(address: str, remote: int, way: Direction, count: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    own, port = (0, remote) if way is TX else (remote, 9)
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.bind(("::" if family is socket.AF_INET6 else "0.0.0.0", own))
        for _ in range(count):
            with contextlib.suppress(ConnectionRefusedError):
                sender.sendto(bytes(200), (address, port))
            time.sleep(0.001)


async def leaves(node: ShapedNode) -> dict[str, int]:
    """The minors of leaves: `web` for a pod's own, `web tx 0` for its first rule's."""
    named = names_of((await node.backend.observe()).specs)
    names = {str(one.uid): one.name.partition("/")[2] for one in node.desired.pods}
    found = {}
    for name, minor in named.items():
        owner, _, part = name.partition(" ")
        if owner in names:
            found[" ".join([names[owner], *part.split()])] = minor
    return found


async def sent(node: ShapedNode, way: Direction) -> dict[str, int]:
    """Packets by leaf, without those that have sent none."""
    packets = node.packets(way)
    return {name: packets[minor] for name, minor in (await leaves(node)).items() if packets.get(minor)}


async def rates(node: ShapedNode, way: Direction, *, after_s: float, seconds: float) -> dict[str, float]:
    """What leaves send on average after a while, in Mbit/s."""
    pause(after_s)
    began_s, before = time.monotonic(), node.classes(way)
    pause(seconds)
    took_s, now = time.monotonic() - began_s, node.classes(way)
    return {
        name: (now[minor].counters.sent_bytes - before[minor].counters.sent_bytes) * 8 / took_s / M
        for name, minor in (await leaves(node)).items()
        if minor in now
    }


def pause(seconds: float) -> None:
    """Let traffic flow; the event loop has nothing else to do."""
    time.sleep(seconds)


# ---------------------------------------------------------------- what is held


@pytest.mark.serial
@pytest.mark.parametrize(("way", "most_bps"), [(TX, 8 * M), (RX, 5 * M)])
async def test_a_port_has_its_maximum_and_the_rest_has_what_the_pod_has(
    way: Direction, most_bps: int
) -> None:
    with shaped_node("web") as node:
        rule = Rule(matches=(ports(5001, protocol=UDP),), maximum_bps=most_bps)
        await node.bring(shaped(node, way, ruled(node, "web", Level.L1, on(way, rule))))
        start(node, "web", way, 5001, rate_bps=30 * M)
        start(node, "web", way, 5002, rate_bps=20 * M)
        found = await rates(node, way, after_s=0.4, seconds=1.2)
    assert found[f"web {way.value} 0"] == pytest.approx(most_bps / M, rel=0.05)
    assert found["web"] == pytest.approx(20, rel=0.1)


@pytest.mark.serial
@pytest.mark.parametrize(("way", "least_bps"), [(TX, 12 * M), (RX, 8 * M)])
async def test_a_minimum_is_kept_when_the_pods_of_a_level_want_all(way: Direction, least_bps: int) -> None:
    """Without it the four leaves of the level would have a quarter each."""
    with shaped_node("web", "db", "one", "two") as node:
        rule = Rule(matches=(ports(5001),), minimum_bps=least_bps)
        others = (node.pod("db", Level.L0), node.pod("one", Level.L1), node.pod("two", Level.L1))
        await node.bring(shaped(node, way, ruled(node, "web", Level.L1, on(way, rule)), *others))
        total_bps = 100 * M if way is TX else 60 * M
        start(node, "db", way, 5003, rate_bps=total_bps * 7 // 10, seconds=2.5)
        for name in ("one", "two"):
            start(node, name, way, 5004, rate_bps=total_bps // 5, seconds=2.5)
        start(node, "web", way, 5001, rate_bps=least_bps * 12 // 10, seconds=2.5)
        start(node, "web", way, 5002, rate_bps=total_bps // 5, seconds=2.5)
        found = await rates(node, way, after_s=0.6, seconds=1.4)
    assert found[f"web {way.value} 0"] >= least_bps / M * 0.93
    assert found["web"] + found["one"] + found["two"] <= (total_bps * 3 // 10 - least_bps) / M * 1.15


@pytest.mark.serial
@pytest.mark.parametrize(("way", "limit_bps"), [(TX, 10 * M), (RX, 6 * M)])
async def test_no_rule_lets_a_pod_out_of_its_limit(way: Direction, limit_bps: int) -> None:
    """Measured with a leaf for the rule under the other level: 80 + 520 Mbit/s for a limit of 80."""
    with shaped_node("web") as node:
        rules = (
            Rule(matches=(ports(5001),), level=Level.L0),
            Rule(matches=(ports(5002),), maximum_bps=40 * M),
            Rule(matches=(ports(5003),), minimum_bps=M),
        )
        pod = replace(ruled(node, "web", Level.L2, on(way, *rules)), limits_bps=limit(way, limit_bps))
        await node.bring(shaped(node, way, pod))
        for port in (5001, 5002, 5003, 5004):
            start(node, "web", way, port, rate_bps=15 * M)
        found = await rates(node, way, after_s=0.5, seconds=1.2)
    own = [rate for name, rate in found.items() if name.startswith("web")]
    assert sum(own) == pytest.approx(limit_bps / M, rel=0.05)


@pytest.mark.parametrize("way", [TX, RX])
async def test_a_rule_may_have_another_level_where_the_pod_has_no_limit(way: Direction) -> None:
    with shaped_node("web") as node:
        rule = Rule(matches=(ports(5001),), level=Level.L0, maximum_bps=30 * M)
        await node.bring(shaped(node, way, ruled(node, "web", Level.L2, on(way, rule))))
        minors = await leaves(node)
        burst(node, "web", way, remote=5001, count=30)
        burst(node, "web", way, remote=5002, count=20)
        assert await sent(node, way) == {f"web {way.value} 0": 30, "web": 20}
        parents = {
            name: numbers.minor_of(node.classes(way)[minor].spec.parent) for name, minor in minors.items()
        }
    assert parents == {f"web {way.value} 0": numbers.L0, "web": numbers.LEVELS[Level.L2]}


# ---------------------------------------------------------------- what matches


@pytest.mark.parametrize("way", [TX, RX])
async def test_the_first_match_wins_and_pods_with_the_same_port_are_apart(way: Direction) -> None:
    with shaped_node("web", "db") as node:
        remote = node.rig.wire.address
        rules = on(
            way,
            Rule(
                matches=(ports(5001), IpMatch(networks=(f"{remote}/32", "203.0.113.0/24"))), maximum_bps=9 * M
            ),
            Rule(matches=(ports((5000, 5100)),), maximum_bps=8 * M),
            Rule(matches=(ports(5001, 6000),), maximum_bps=7 * M),
        )
        await node.bring(
            shaped(node, way, ruled(node, "web", Level.L1, rules), ruled(node, "db", Level.L1, rules))
        )
        for name, port, count in (
            *(("web", 5001, 10), ("web", 5050, 20), ("web", 6000, 30), ("web", 7000, 40)),
            *(("db", 5001, 5), ("db", 7000, 15)),
        ):
            burst(node, name, way, remote=port, count=count)
        found = await sent(node, way)
    word = way.value
    assert found == {
        f"web {word} 0": 10,
        f"web {word} 1": 20,
        f"web {word} 2": 30,
        "web": 40,
        f"db {word} 0": 5,
        "db": 15,
    }


@pytest.mark.parametrize(("family", "code_point"), [(4, 46), (6, 10)])
async def test_a_code_point_is_on_the_wire(family: int, code_point: int) -> None:
    with shaped_node("web") as node:
        rule = Rule(matches=(ports(5001),), dscp=code_point)
        await node.bring(shaped(node, TX, ruled(node, "web", Level.L1, on(TX, rule))))
        wire = node.rig.wire
        address = wire.address if family == 4 else wire.address6
        with taker(wire, address, 5001) as marked, taker(wire, address, 5002) as plain:
            for port in (5001, 5002):
                node.rig.pod("web").call(few, address, port, TX, 3)
            assert [traffic_class(marked) >> 2, traffic_class(plain) >> 2] == [code_point, 0]
        assert set(await leaves(node)) == {"web"}  # no class of its own


@contextlib.contextmanager
def taker(place: Namespace, address: str, port: int) -> Iterator[socket.socket]:
    """A socket that is told each packet's traffic class."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with place.entered():
        sink = socket.socket(family, socket.SOCK_DGRAM)
    with sink:
        if family is socket.AF_INET6:
            sink.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        else:
            sink.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        sink.settimeout(2)
        sink.bind((address, port))
        yield sink


def traffic_class(sink: socket.socket) -> int:
    _data, ((_level, _kind, value),), *_rest = sink.recvmsg(2048, 64)
    return int(struct.unpack("i", value)[0]) if len(value) >= 4 else value[0]


@pytest.mark.kernel("vxlan")
async def test_what_leaves_in_a_tunnel_is_matched_once_by_what_is_inside() -> None:
    """The outer packet has the class of the inner one, and a port of its own."""
    network = NETWORKS["vxlan"]
    with shaped_node("web", network=network) as node:
        rules = on(
            TX,
            Rule(matches=(ports(4789, 8472),), maximum_bps=9 * M),
            Rule(matches=(ports(5001),), maximum_bps=8 * M),
        )
        await node.bring(shaped(node, TX, ruled(node, "web", Level.L1, rules)))
        remote = node.rig.remote
        assert remote is not None
        for port, count in ((5001, 20), (5002, 30)):
            node.rig.pod("web").call(few, remote.address, port, TX, count)
        found = await sent(node, TX)
    assert found == {"web tx 1": 20, "web": 30}


@contextlib.contextmanager
def host_pod(node: ShapedNode) -> Iterator[HostPod]:
    try:
        place = HostPod("agent", node.rig.node)
    except Unsupported as problem:
        pytest.skip(str(problem))
    try:
        yield place
    finally:
        place.remove()


async def test_a_pod_on_the_hosts_network_has_its_egress_rules() -> None:
    """Its packets have the node's address; the cgroup told their class, and the rules go by that."""
    with shaped_node("web") as node, host_pod(node) as place:
        rules = on(TX, Rule(matches=(ports(5001),), maximum_bps=9 * M), Rule(matches=(ports(5002),), dscp=10))
        agent = replace(
            states.pod("ns/agent", Level.L1, rules=rules, cgroup=place.path, host_network=True),
            cgroup_id=place.cgroup.stat().st_ino,
        )
        await node.bring(shaped(node, TX, agent))
        wire = node.rig.wire
        with taker(wire, wire.address, 5002) as marked:
            for port, count in ((5001, 20), (5002, 30), (5003, 10)):
                place.fork(few, wire.address, port, TX, count).result()
            assert traffic_class(marked) >> 2 == 10
        assert await sent(node, TX) == {"agent tx 0": 20, "agent": 40}


# ---------------------------------------------------------------- what changes, and what comes back


@pytest.mark.serial
@pytest.mark.parametrize("way", [TX, RX])
async def test_the_first_rule_comes_and_the_last_goes_under_load_without_a_loss(way: Direction) -> None:
    with shaped_node("web") as node:
        rule = Rule(matches=(ports(5001),), maximum_bps=9 * M)
        plain, with_rule = (ruled(node, "web", Level.L1, on(way, *some)) for some in ((), (rule,)))
        await node.bring(shaped(node, way, plain))
        source, address = ends(node, "web", way)
        place = node.rig.wire if way is TX else node.rig.pod("web")
        with taker(place, address, 7011) as sink:
            sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            flood = source.fork(numbered, address, 1200)
            for pod in (with_rule, plain, with_rule, plain):
                pause(0.1)
                await node.bring(shaped(node, way, pod))
            flood.result()
            got = take(sink)
        left = [minor for minor in node.classes(way) if numbers.is_pod_minor(minor)]
        assert left == [await node.minor("web")]
    assert sorted(got) == list(range(1200))


def numbered(address: str, count: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(count):
            sender.sendto(number.to_bytes(4, "big") + bytes(400), (address, 7011))
            time.sleep(0.0005)


def take(sink: socket.socket) -> list[int]:
    got = []
    sink.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        while True:
            got.append(int.from_bytes(sink.recv(2048)[:4], "big"))
    return got


BOTH = PerDirection(
    tx=(Rule(matches=(ports(5001),), maximum_bps=9 * M), Rule(matches=ANYTHING, dscp=10)),
    rx=(Rule(matches=(ports(5002),), level=Level.L0),),
)


async def test_a_restart_writes_nothing_and_knows_every_number() -> None:
    with shaped_node("web", "db") as node:
        desired = node.both(ruled(node, "web", Level.L1, BOTH), ruled(node, "db", Level.L2, BOTH))
        await node.bring(desired)
        before = await leaves(node)
        restarted = make_backend(node.rig.node, node.state)
        assert not restarted.plan(desired, await restarted.observe())
        assert restarted.writes == 0
        restarted.shut()
        assert await leaves(node) == before
        assert set(before) == {f"{name}{part}" for name in ("web", "db") for part in ("", " tx 0", " rx 0")}


HARMS = {
    "flushed": "flush chain inet netqos {chain}",
    "one more rule": "insert rule inet netqos {chain} udp dport 53 drop",
    "not led to": "delete element inet netqos rules {{ {leaf} }}",
    "led elsewhere": "add chain inet netqos r1fffrx\ndelete element inet netqos rules {{ {leaf} }}\n"
    "add element inet netqos rules {{ {leaf} : jump r1fffrx }}",
    "a chain of others": "add chain inet netqos r1fffrx\nadd rule inet netqos r1fffrx drop",
    "all of the table": "flush table inet netqos",
    "the table": "delete table inet netqos",
}


@pytest.mark.parametrize("harm", HARMS)
async def test_what_somebody_changes_in_the_rules_comes_back(harm: str) -> None:
    with shaped_node("web") as node:
        await node.bring(node.both(ruled(node, "web", Level.L1, BOTH)))
        before = (await node.backend.observe()).specs
        leaf = await node.minor("web")
        chain = podrules.chain_name(RulesKey(TX, leaf))
        node.nft(HARMS[harm].format(chain=chain, leaf=numbers.text(numbers.class_id(leaf))))
        assert not await node.backend.is_untouched()
        for _ in range(2):
            assert (await node.repair()).ok
        assert (await node.backend.observe()).specs == before
        assert not node.backend.plan(node.desired, await node.backend.observe())


async def test_a_change_of_one_pod_writes_only_its_chain() -> None:
    with shaped_node("web", "db") as node:
        web, db = (ruled(node, name, Level.L1, BOTH) for name in ("web", "db"))
        await node.bring(node.both(web, db))
        more = replace(web, rules=replace(BOTH, tx=(*BOTH.tx, Rule(matches=(ports(5009),), dscp=20))))
        plan = await node.bring(node.both(more, db))
        chain = podrules.chain_name(RulesKey(TX, await node.minor("web")))
        assert [one.subject for one in plan.operations] == [f"chain {chain}"]


async def test_everything_goes_with_the_pod() -> None:
    with shaped_node("web", "db") as node:
        db = node.pod("db", Level.L2)
        await node.bring(node.both(db))
        before = (await node.backend.observe()).specs
        await node.bring(node.both(db, ruled(node, "web", Level.L1, BOTH)))
        assert any(isinstance(one, RulesSpec) for one in (await node.backend.observe()).specs.values())
        await node.bring(node.both(db))
        assert (await node.backend.observe()).specs == before


LONG = ports(5101, 5103, 5105, (5110, 5119), 5121, 5123)


def sets(node: ShapedNode) -> int:
    return node.rig.node.run(["nft", "list", "sets"]).stdout.count("set s")


@pytest.mark.parametrize("way", [TX, RX])
async def test_long_lists_are_sets_that_workloads_share(way: Direction) -> None:
    with shaped_node("web", "db") as node:
        near = str(ip_interface(f"{node.rig.wire.address}/24").network)
        here = IpMatch(networks=(near, "172.16.0.0/12", "192.168.0.0/16", "fd00::/8"))
        rules = on(way, Rule(matches=(here, LONG), maximum_bps=7 * M), Rule(matches=(LONG,), maximum_bps=M))
        before = (await node.backend.observe()).specs
        pods = [ruled(node, name, Level.L1, rules) for name in ("web", "db")]
        await node.bring(node.both(*pods))
        assert sets(node) == 3  # three networks, two protocols, the ports
        matching, others = (5101, 5115, 5123), (5102, 5120, 80)
        for remote in (*matching, *others):
            burst(node, "web", way, remote=remote, count=10)
        counted = await sent(node, way)
        assert (counted["web"], counted[f"web {way.value} 0"]) == (30, 30)
        one_set = node.rig.node.run(["nft", "list", "sets"]).stdout.split("set ")[1].split()[0]
        with pytest.raises(CommandFailed):
            node.nft(f"flush set inet netqos {one_set}")
        restarted = make_backend(node.rig.node)
        assert not restarted.plan(node.desired, await restarted.observe())
        restarted.shut()
        await node.bring(node.both(pods[0], replace(pods[1], rules=on(way))))
        assert sets(node) == 3
        await node.bring(node.both(*(replace(one, rules=on(way)) for one in pods)))
        assert sets(node) == 0
        await node.bring(NOTHING)
        assert (await node.backend.observe()).specs == before


async def test_packets_look_for_rules_only_where_there_are_any() -> None:
    def leads() -> int:
        return node.rig.node.run(["nft", "list", "table", "inet", "netqos"]).stdout.count("goto lead")

    with shaped_node("web") as node:
        for _ in range(2):
            await node.bring(node.both(node.pod("web", Level.L1)))
            assert leads() == 0
            await node.bring(node.both(ruled(node, "web", Level.L1, BOTH)))
            assert leads() == 3
            for way in Direction:
                burst(node, "web", way, remote=5001, count=20)
        assert not node.backend.plan(node.desired, await node.backend.observe())
