"""A rig whose node is shaped by the tc backend, and the counters of its classes."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from netqos.model.desired import DesiredPod, DesiredState, DesiredUplink
from netqos.model.levels import Direction, Level
from netqos.model.plan import ApplyResult, Plan
from netqos.testing import states
from netqos.testing.filehosts import MemoryState
from netqos.testing.harness import converge
from netqos.testing.netns import Rig
from netqos.testing.networks import Network
from netqos.testing.states import M
from netqos_tc import answers, numbers, wire
from netqos_tc.answers import Counters, HtbClass
from netqos_tc.backend import TcBackend
from netqos_tc.classify import owner_of
from netqos_tc.netlink import Channel
from netqos_tc.reader import Reader
from tests.kernel.tchost import make_backend

TOTAL_BPS = 100 * M
WIRE_PORT = 9


@dataclass(slots=True, kw_only=True)
class ShapedNode:
    """The rig, the backend on its node, and where to look."""

    rig: Rig
    backend: TcBackend
    state: MemoryState
    reader: Reader
    ifindex: int
    desired: DesiredState = field(default_factory=states.node)

    def uplink(self, total_bps: int | None = TOTAL_BPS) -> DesiredUplink:
        return states.uplink(index=self.ifindex, tx_bps=total_bps, rx_bps=None)

    def node(self, *pods: DesiredPod, total_bps: int | None = TOTAL_BPS) -> DesiredState:
        """A node with 50/30/20 percent of the total and only its tx shaped."""
        return states.node(
            pods,
            uplinks=(self.uplink(total_bps),),
            tx=states.direction(total_bps),
            rx=states.direction(None),
        )

    def both(self, *pods: DesiredPod) -> DesiredState:
        """A node with 50/30/20 percent of unequal totals in both directions."""
        rx_bps = TOTAL_BPS * 6 // 10
        up = states.uplink(index=self.ifindex, tx_bps=TOTAL_BPS, rx_bps=rx_bps)
        return states.node(pods, uplinks=(up,), tx=states.direction(TOTAL_BPS), rx=states.direction(rx_bps))

    def pod(
        self,
        name: str,
        level: Level = Level.L1,
        *,
        tx_bps: int | None = None,
        families: Sequence[int] = (4, 6),
    ) -> DesiredPod:
        """A rig's pod as a workload, by its addresses."""
        place = self.rig.pod(name)
        known = {4: place.address, 6: place.address6}
        return states.pod(
            f"ns/{name}", level, addresses=[known[family] for family in families], tx_bps=tx_bps, cgroup=None
        )

    async def bring(self, desired: DesiredState) -> Plan:
        """Reconcile once; everything must succeed."""
        self.desired = desired
        return await converge(self.backend, desired)

    async def repair(self) -> ApplyResult:
        """Reconcile to what was last asked for."""
        return await self.backend.apply(self.backend.plan(self.desired, await self.backend.observe()))

    def classes(self, way: Direction = Direction.TX) -> dict[int, HtbClass]:
        ifindex = self.ifindex if way is Direction.TX else numbers.IFB_INDEX
        return {one.minor: one for one in self.reader.classes(ifindex)}

    def packets(self, way: Direction = Direction.TX) -> dict[int, int]:
        """Packets sent, by class, without classes that have sent none."""
        counts = {minor: one.counters.sent_packets for minor, one in self.classes(way).items()}
        return {minor: count for minor, count in counts.items() if count}

    async def minor(self, name: str) -> int:
        """The leaf of a pod."""
        owner = owner_of(states.pod_uid(f"ns/{name}"))
        found = {one.minor for one in (await self.backend.observe()).elements.values() if one.owner == owner}
        (minor,) = found
        return minor

    def root(self) -> Counters:
        """The root's counters."""
        with self.rig.node.entered():
            channel = Channel.route()
        try:
            return answers.read_qdisc(channel.get(wire.get_root(self.ifindex))).counters
        finally:
            channel.close()

    def tc(self, *words: str) -> str:
        return self.rig.node.run(["tc", *words]).stdout

    def nft(self, commands: str) -> None:
        self.rig.node.run(["nft", "-f", "-"], text=commands)


@contextlib.contextmanager
def shaped_node(
    *pods: str,
    masquerade: bool = False,
    network: Network | None = None,
    options: Mapping[str, object] | None = None,
) -> Iterator[ShapedNode]:
    """A rig with a backend on its node that has not done anything yet."""
    with Rig(pods=pods, network=network or Network(masquerade=masquerade)) as rig:
        state = MemoryState()
        backend = make_backend(rig.node, state, options)
        with rig.node.entered():
            ifindex = socket.if_nametoindex(rig.uplink)
            route, netfilter = Channel.route(), Channel.netfilter()
        try:
            yield ShapedNode(
                rig=rig, backend=backend, state=state, reader=Reader(route, netfilter), ifindex=ifindex
            )
        finally:
            route.close()
            netfilter.close()
            backend.shut()


def send(address: str, count: int = 10, *, size: int = 500, priority: int | None = None) -> None:
    """Datagrams from wherever this is called; runs in a child of the rig."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        if priority is not None:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        for _ in range(count):
            sender.sendto(bytes(size), (address, WIRE_PORT))
            time.sleep(0.0005)


def connect(address: str, port: int) -> socket.socket:
    """A TCP connection to a server that is about to listen."""
    for _ in range(200):
        try:
            return socket.create_connection((address, port), timeout=5)
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise TimeoutError("nobody listens")


def take_all(address: str, port: int, count: int) -> None:
    """Accept connections one after the other, and answer when all of each has come."""
    with socket.create_server((address, port)) as server:
        server.settimeout(60)
        for _ in range(count):
            connection, _peer = server.accept()
            with connection:
                while connection.recv(1 << 16):
                    pass
                connection.sendall(b"done")


def transfers(address: str, port: int, count: int, size: int) -> list[float]:
    """How long transfers take, each over a new connection with BBR."""
    took = []
    for _ in range(count):
        with connect(address, port) as connection:
            began_s = time.monotonic()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
            connection.sendall(bytes(size))
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(60)
            assert connection.recv(10) == b"done"
            took.append(time.monotonic() - began_s)
    return took


def id_of(minor: int) -> str:
    return numbers.text(numbers.class_id(minor))
