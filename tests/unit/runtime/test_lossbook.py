"""Losses beyond the node: reported by receivers, less what the node dropped itself."""

from __future__ import annotations

from collections.abc import Mapping

from netqos.backend import LeafCounters
from netqos.engine.pathwindow import Losses
from netqos.errors import Unsupported
from netqos.host.losses import LossCounter
from netqos.model.ids import IfName, PodUid
from netqos.model.levels import Direction, Level, PerLevel
from netqos.runtime.lossbook import LossBook
from netqos.testing import states

TX, RX = Direction.TX, Direction.RX
UPLINKS = [IfName("up0")]
WEB = states.pod("web", Level.L0, addresses=("10.0.0.1", "fd00::1"))
DB = states.pod("db", Level.L1, addresses=("10.0.0.2",))
BULK = states.pod("bulk", Level.L2, addresses=("10.0.0.3",))
NODE = states.node((WEB, DB, BULK))
NOTHING = Losses()


class Nft:
    """A table that can be armed, with the counts of its sets."""

    def __init__(self) -> None:
        self.sets: dict[str, dict[str, int]] = {}
        self.commands: list[str] = []
        self.refusal: Unsupported | None = None

    def run(self, commands: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.commands.append(commands.split(maxsplit=1)[0])

    def check(self, commands: str) -> None:
        raise NotImplementedError(commands)

    def query(self, command: str) -> dict[str, object]:
        counts = self.sets.get(command.rsplit(maxsplit=1)[-1], {})
        elements = [
            {"elem": {"val": address, "counter": {"packets": count}}} for address, count in counts.items()
        ]
        return {"nftables": [{"metainfo": {}}, {"set": {"elem": elements}}]}


class Node:
    """The kernel's counters of each workload, as (direction, packets, drops)."""

    def __init__(self) -> None:
        self.leaves: dict[PodUid, list[tuple[Direction, int, int]]] = {}

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        return {uid: tuple(_leaf(*one) for one in leaves) for uid, leaves in self.leaves.items()}


def _leaf(way: Direction, packets: int, drops: int) -> LeafCounters:
    return LeafCounters(
        direction=way, sent_bytes=packets * 1500, sent_packets=packets, drops=drops, backlog_bytes=0
    )


class Desk:
    """A book with its sources."""

    def __init__(self) -> None:
        self.nft, self.node = Nft(), Node()
        self.book = LossBook(lambda: LossCounter(self.nft))

    async def read(
        self, leaves: Mapping[PodUid, list[tuple[Direction, int, int]]], **sets: dict[str, int]
    ) -> Mapping[Direction, Losses]:
        self.node.leaves, self.nft.sets = dict(leaves), sets
        return await self.book.read(NODE, self.node.counters)


async def test_the_second_reading_tells_what_came_since_the_first() -> None:
    desk = Desk()
    desk.book.arm(UPLINKS)
    assert await desk.read({WEB.uid: [(TX, 100, 0)]}, tx4={"10.0.0.1": 5}) == {}
    found = await desk.read(
        {WEB.uid: [(TX, 150, 0), (RX, 70, 0)], DB.uid: [(TX, 30, 0)]},
        tx4={"10.0.0.1": 7},
        tx6={"fd00::1": 0},
        rx4={"10.0.0.1": 1, "192.0.2.9": 99},
    )
    assert found == {
        TX: Losses(answers=PerLevel(2, 0, 0), packets=PerLevel(50, 30, 0), workloads=1),
        RX: Losses(answers=PerLevel(1, 0, 0), packets=PerLevel(70, 0, 0), workloads=1),
    }


async def test_who_dropped_packets_in_the_node_is_left_out_for_two_readings() -> None:
    desk = Desk()
    desk.book.arm(UPLINKS)
    seen = []
    for packets, drops in ((0, 3), (10, 3), (20, 4), (30, 4), (40, 4)):
        counts = {"10.0.0.3": packets}
        found = await desk.read({BULK.uid: [(TX, packets, drops)]}, tx4=counts)
        seen.append(found.get(TX))
    whole = Losses(answers=PerLevel(0, 0, 10), packets=PerLevel(0, 0, 10), workloads=1)
    assert seen == [None, whole, NOTHING, NOTHING, whole]


async def test_nothing_is_asked_of_the_kernel_before_something_could_be_decided() -> None:
    desk = Desk()
    assert await desk.read({WEB.uid: [(TX, 100, 0)]}) == {}
    desk.book.arm([])
    assert desk.nft.commands == []
    desk.book.arm(UPLINKS)
    desk.book.arm(UPLINKS)
    desk.book.arm([])
    assert desk.nft.commands == ["table", "delete"]


async def test_where_nothing_can_be_counted_it_says_so_once_that_matters() -> None:
    desk = Desk()
    desk.nft.refusal = Unsupported("no owned tables")
    desk.book.arm(UPLINKS)
    assert await desk.read({WEB.uid: [(TX, 100, 0)]}) == {}
    (found,) = desk.book.findings(needed=True)
    assert (found.code, "no owned tables" in found.message) == ("losses-not-counted", True)
    assert desk.book.findings(needed=False) == ()
    assert LossBook(lambda: None).findings(needed=True) == ()
