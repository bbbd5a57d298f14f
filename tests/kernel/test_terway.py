"""The terway backend's counting table in the real kernel: what it counts, and that it is planned like the rest."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from netqos.backend import Backend, BackendContext, NftRunner
from netqos.host.nftables import Nftables
from netqos.model.desired import NOTHING
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.traffic import Unit
from netqos.testing import states
from netqos.testing.contract import BackendContract
from netqos.testing.harness import Harness, converge, expect_settled
from netqos.testing.namespaces import Namespace
from netqos.testing.netns import Rig
from netqos.testing.networks import MASQUERADED
from netqos_terway import meter
from netqos_terway.meter import MeterSpec
from tests.contract.terwayhost import TerwayHost

pytestmark = pytest.mark.kernel("veth", "nft")

QUIET = "table inet quiet { chain c { type filter hook output priority 0; meta l4proto { icmp, ipv6-icmp } drop; }; }"
"""Nobody listens where packets are sent; the complaints about that would be counted too."""

FOREIGN = "table inet theirs { chain c { type filter hook forward priority 0; }; }"


class CountingHost(TerwayHost):
    """A terway host in a namespace of its own, with somebody else's table beside ours."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        super().__init__(nft=self.open_nft)
        namespace.run(["nft", FOREIGN])

    def open_nft(self) -> NftRunner:
        with self.namespace.entered():
            return Nftables()

    def context(self) -> BackendContext:
        """In real time, as the writer's thread runs."""
        return replace(super().context(), monotonic=time.monotonic)

    def drift(self) -> None:
        """The table alone goes; the files stay."""
        self.namespace.run(["nft", "delete", "table", "inet", "netqos_meter"])

    def foreign(self) -> object:
        return self.namespace.run(["nft", "list", "table", "inet", "theirs"]).stdout, super().foreign()


class OwnNamespace(CountingHost):
    def __init__(self) -> None:
        super().__init__(Namespace("node"))

    def close(self) -> None:
        super().close()
        self.namespace.remove()


class TestTerwayBackendWithNft(BackendContract):
    max_examples = 8

    def make(self) -> Harness:
        return OwnNamespace()

    def test_drift_is_noticed_and_repaired(self) -> None:
        """A lost table is seen by the writer when it counts, so there must be one."""

        async def scenario(host: CountingHost, backend: Backend) -> None:
            await backend.probe()
            await converge(backend, self.first)
            path = backend.fast_path()
            assert path is not None
            host.drift()
            deadline_s = time.monotonic() + 10
            while await backend.is_untouched():
                assert time.monotonic() < deadline_s
                await asyncio.sleep(0.01)
            plan = await converge(backend, self.first)
            assert [one.subject for one in plan.operations] == ["nft table netqos_meter"]
            assert await backend.is_untouched()
            await expect_settled(backend, self.first)
            await backend.close()

        host = OwnNamespace()
        try:
            asyncio.run(scenario(host, host.backend()))
        finally:
            host.close()


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "crunch"), network=MASQUERADED) as built:
        for namespace in (built.wire, *built.pods.values()):
            namespace.run(["nft", QUIET])
        yield built


def listed(namespace: Namespace) -> dict[str, object]:
    document = json.loads(namespace.run(["nft", "-j", "list", "table", "inet", "netqos_meter"]).stdout)
    assert isinstance(document, dict)
    return document


def send(address: str, size: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        for _ in range(10):
            sender.sendto(b"x" * size, (address, 9))


@pytest.fixture
def host(rig: Rig) -> Iterator[CountingHost]:
    harness = CountingHost(rig.node)
    yield harness
    harness.close()


async def test_it_counts_by_level_and_direction_what_leaves_and_enters_the_node(
    rig: Rig, host: CountingHost
) -> None:
    web, crunch = rig.pod("web"), rig.pod("crunch")
    pods = (
        states.pod("prod/web", Level.L0, addresses=(web.address, web.address6)),
        states.pod("batch/crunch", Level.L2, addresses=(crunch.address, crunch.address6)),
    )
    backend = host.terway()
    await backend.probe()
    await converge(backend, states.node(pods))
    await expect_settled(backend, states.node(pods))
    assert meter.parse_table(listed(rig.node)) == meter.wanted_meter(states.node(pods))

    web.call(send, rig.wire.address, 100)
    web.call(send, rig.wire.address6, 300)
    crunch.call(send, rig.wire.address, 50)
    crunch.call(send, web.address, 777)  # stays on the node
    rig.wire.call(send, crunch.address, 200)

    nft = host.open_nft()
    counts = meter.parse_counters(nft.query(meter.LIST_COUNTERS))
    assert counts == PerDirection(
        tx=PerLevel(10 * (128 + 348), 0, 10 * 78),
        rx=PerLevel(0, 0, 10 * 228),
    )

    await converge(
        backend, states.with_pods(states.node(pods), states.pod("dev/new", addresses=("10.88.0.77",)))
    )
    assert meter.parse_counters(nft.query(meter.LIST_COUNTERS)) == counts, (
        "a new pod must not reset what was counted"
    )

    path = backend.fast_path()
    assert path is not None
    deadline_s = time.monotonic() + 10
    while not path.sample():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.01)
    (sample,) = [one for one in path.sample() if one.unit == Unit(Direction.TX, IfName("up0"))]
    assert sample.level_bytes == counts.tx

    await converge(backend, NOTHING)
    await backend.close()
    assert "netqos_meter" not in rig.node.run(["nft", "list", "ruleset"]).stdout


def test_many_pods_are_one_transaction() -> None:
    namespace = Namespace("node")
    try:
        with ExitStack() as stack:
            stack.enter_context(namespace.entered())
            nft = Nftables()
        many = MeterSpec(
            levels=frozenset(
                (f"10.{number // 250}.{number % 250}.1", list(Level)[number % 3]) for number in range(1000)
            )
        )
        nft.run(meter.script(many))
        assert meter.parse_table(nft.query(meter.LIST_TABLE)) == many
        nft.run(meter.script(MeterSpec(levels=frozenset())))
        assert meter.parse_table(nft.query(meter.LIST_TABLE)) == MeterSpec(levels=frozenset())
    finally:
        namespace.remove()
