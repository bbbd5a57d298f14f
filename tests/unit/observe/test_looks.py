"""What moved since a pod was last explained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.backend import LeafCounters, PacketWay
from netqos.model.ids import PodUid
from netqos.model.levels import Direction
from netqos.observe import looks, wire
from netqos.observe import wireparts as parts
from netqos.observe.looks import LastLooks, Look

THEN = LeafCounters(
    direction=Direction.RX,
    sent_bytes=1000,
    sent_packets=10,
    drops=1,
    backlog_bytes=70,
    where="class 4e52:1001 on netqos-ifb",
)
WAY = PacketWay(("up0", "nft rx4", "workload"), ("rx4 10.1.0.7",))
NOW = replace(THEN, sent_bytes=4500, sent_packets=16, drops=4)


def test_a_path_tells_what_moved_since_the_look_before() -> None:
    assert parts.path(NOW, WAY, Look(3.0, (THEN,)), 5.5) == wire.PathWire(
        direction="ingress",
        where="class 4e52:1001 on netqos-ifb",
        steps=["up0", "nft rx4", "workload"],
        claims=["rx4 10.1.0.7"],
        used=True,
        moved=wire.MovedWire(seconds=2.5, sent_bytes=3500, sent_packets=6, drops=3),
    )


@pytest.mark.parametrize(
    "before",
    [
        None,
        Look(3.0, ()),
        Look(3.0, (replace(THEN, where="class 4e51:1001 on up0"),)),
        Look(3.0, (replace(THEN, sent_packets=17),)),
    ],
    ids=["first look", "no counter then", "another object", "a counter that began anew"],
)
def test_without_an_earlier_count_nothing_moved(before: Look | None) -> None:
    assert parts.path(NOW, WAY, before, 5.5).moved is None


def test_an_object_that_counted_nothing_is_not_used() -> None:
    assert not parts.path(replace(NOW, sent_packets=0), WAY, None, 5.5).used


def test_each_look_is_compared_with_the_one_before_and_few_are_kept() -> None:
    kept = LastLooks()
    first, second = Look(1.0, (THEN,)), Look(2.0, (NOW,))
    assert kept.turn(PodUid("web"), first) is None
    assert kept.turn(PodUid("web"), second) == first
    for number in range(looks.MOST):
        kept.turn(PodUid(f"pod {number}"), first)
    assert kept.turn(PodUid("web"), first) is None


def test_a_look_keeps_no_way() -> None:
    (kept,) = Look.of(1.0, (replace(NOW, way=lambda: WAY),)).counters
    assert kept.way is None
