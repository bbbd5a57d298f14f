"""What is told of packets that HTB sent past every class."""

from __future__ import annotations

from netqos_tc.directpackets import SHOWN_S, DirectPackets
from netqos_tc.links import Link

LINKS = {
    2: Link(ifindex=2, name="up0", kind="veth", alias="", is_up=True, queue_length=1000, mtu=1500),
    3: Link(ifindex=3, name="up1", kind="veth", alias="", is_up=True, queue_length=1000, mtu=1500),
}


def told(direct: DirectPackets, counts: dict[int, int], now_s: float) -> list[tuple[str, str]]:
    found = direct.findings(counts, LINKS, now_s)
    return [(one.subject, one.message.partition(" packets")[0]) for one in found]


def test_what_was_there_before_is_told_by_nobody() -> None:
    direct = DirectPackets()
    assert told(direct, {2: 500, 3: 0}, 0.0) == []
    assert told(direct, {2: 500, 3: 0}, 2.0) == []


def test_all_packets_since_it_began_are_told_by_their_power_of_ten() -> None:
    direct = DirectPackets()
    told(direct, {2: 500, 3: 0}, 0.0)
    assert told(direct, {2: 507, 3: 0}, 2.0) == [("up0", "some")]
    assert told(direct, {2: 550, 3: 2}, 4.0) == [("up0", "at least 10"), ("up1", "some")]
    assert told(direct, {2: 12_500, 3: 2}, 6.0) == [("up0", "at least 10,000"), ("up1", "some")]


def test_it_ends_a_minute_after_the_last_and_begins_anew() -> None:
    direct = DirectPackets()
    told(direct, {2: 0}, 0.0)
    assert told(direct, {2: 90}, 2.0) == [("up0", "at least 10")]
    assert told(direct, {2: 90}, 1.9 + SHOWN_S) == [("up0", "at least 10")]
    assert told(direct, {2: 90}, 2.0 + SHOWN_S) == []
    assert told(direct, {2: 91}, 4.0 + SHOWN_S) == [("up0", "some")]
    assert told(direct, {}, 6.0 + SHOWN_S) == []
