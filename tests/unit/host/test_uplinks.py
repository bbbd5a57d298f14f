"""Cases D1, D3, D4, D5, D8, D10 on facts as the kernel gives them."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.host.places import carriers
from netqos.host.rtwire import IFF_LOOPBACK, IFF_LOWER_UP, IFF_UP, DefaultRoute, Link
from netqos.host.uplinks import Candidate, Selection, default_devices, select, unshaped_nics
from netqos.model.ids import IfName
from netqos.model.inputs import NO_LIMITS, UplinkFacts
from netqos.model.levels import PerDirection

V4, V6 = int(socket.AF_INET), int(socket.AF_INET6)
UP = IFF_UP | IFF_LOWER_UP
MAC = "02:00:00:00:00:07"


def route(family: int, metric: int, *devices: int) -> DefaultRoute:
    return DefaultRoute(family=family, metric=metric, devices=devices)


def link(
    name: str,
    index: int,
    *,
    flags: int = UP,
    kind: str = "",
    slave: str = "",
    master: int = 0,
    lower: int = 0,
) -> Link:
    return Link(
        index=index,
        name=name,
        mtu=1400 + index,
        flags=flags,
        kind=kind,
        slave_kind=slave,
        master=master,
        lower=lower,
        mac=MAC,
    )


def candidate(
    one: Link, *known: Link, speed: int | None = 25_000, configured: PerDirection[int | None] = NO_LIMITS
) -> Candidate:
    table = {other.index: other for other in (one, *known)}
    return Candidate(
        link=one,
        configured=configured,
        speed_mbit=speed,
        carriers=carriers(one, table),
        members=tuple(other for other in known if other.master == one.index),
        sysfs=(one.index, MAC),
    )


def names(selection: Selection) -> list[str]:
    return [one.name for one in selection.uplinks]


def codes(selection: Selection) -> list[tuple[str, str]]:
    return [(finding.code, finding.subject) for finding in selection.findings]


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([], ((), ())),
        ([route(V6, 1024, 3)], ((3,), ())),
        ([route(V4, 0, 2)], ((2,), ())),
        ([route(V4, 600, 5), route(V4, 100, 2)], ((2,), (5,))),
        ([route(V4, 100, 2, 3, 2)], ((2, 3), ())),
        ([route(V4, 100, 2), route(V6, 1024, 2)], ((2,), ())),
        ([route(V6, 100, 7), route(V4, 1024, 2)], ((2, 7), ())),
        ([route(V6, 1024, 7), route(V6, 1024, 4), route(V6, 2048, 5)], ((7, 4), (5,))),
        ([route(V4, 100, 7), route(V4, 900, 4), route(V6, 5, 9), route(V6, 300, 5)], ((7, 9), (5, 4))),
    ],
)
def test_the_devices_of_the_default_routes(
    routes: list[DefaultRoute], expected: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    assert default_devices(routes) == expected


@given(
    st.lists(st.builds(route, st.sampled_from([V4, V6]), st.integers(0, 3), st.integers(1, 4)), max_size=6),
    st.randoms(),
)
def test_the_order_of_the_routes_does_not_matter(routes: list[DefaultRoute], random: object) -> None:
    shuffled = sorted(routes, key=lambda _: random.random())  # type: ignore[attr-defined]  # Hypothesis' own Random
    assert list(map(set, default_devices(shuffled))) == list(map(set, default_devices(routes)))
    assert bool(default_devices(routes)[0]) == bool(routes)


def test_a_plain_uplink_is_taken_as_it_is() -> None:
    own = PerDirection(tx=10_000_000, rx=None)
    selection = select([candidate(link("eth0", 2), configured=own)], [])
    assert selection.uplinks == (
        UplinkFacts(
            name=IfName("eth0"), index=2, mtu=1402, is_up=True, speed_bps=25_000_000_000, configured=own
        ),
    )
    assert selection.findings == ()


@pytest.mark.parametrize("speed", [None, -1, 0, 65535, 4294967295, -1000])
def test_a_speed_that_means_unknown_is_never_a_number(speed: int | None) -> None:
    selection = select([candidate(link("eth0", 2), speed=speed)], [])
    assert selection.uplinks[0].speed_bps is None
    assert selection.uplinks[0].why_no_speed.startswith("the driver reports ")
    assert selection.findings == ()


@pytest.mark.parametrize("flags", [0, IFF_UP, IFF_LOWER_UP])
def test_a_link_that_is_down_has_no_speed(flags: int) -> None:
    selection = select([candidate(link("eth0", 2, flags=flags))], [])
    assert (selection.uplinks[0].is_up, selection.uplinks[0].speed_bps) == (False, None)
    assert selection.uplinks[0].why_no_speed == ""
    assert selection.findings == ()


def test_people_are_told_why_a_speed_is_unknown() -> None:
    found = select([candidate(link("eth0", 2), speed=-1), candidate(link("up0", 3, kind="veth"))], [])
    assert [one.why_no_speed for one in found.uplinks] == [
        "the driver reports -1 Mbit/s, so it is unknown",
        "the driver reports 25000 Mbit/s, as any veth device does",
    ]


@pytest.mark.parametrize(
    ("kind", "speed"), [("veth", 10_000), ("bridge", 10_000), ("tun", 10), ("tun", 10_000)]
)
def test_a_constant_of_the_driver_is_no_speed(kind: str, speed: int) -> None:
    selection = select([candidate(link("up0", 2, kind=kind), speed=speed)], [])
    assert selection.uplinks[0].speed_bps is None
    assert selection.uplinks[0].why_no_speed.startswith(f"the driver reports {speed} Mbit/s, as any {kind} ")


def test_a_speed_that_somebody_gave_a_tap_is_one() -> None:
    selection = select([candidate(link("tap0", 2, kind="tun"), speed=2_500)], [])
    assert (selection.uplinks[0].speed_bps, selection.uplinks[0].why_no_speed) == (2_500_000_000, "")


def test_a_configured_name_without_a_device_stays_an_uplink_that_is_not_there() -> None:
    own = PerDirection(tx=5_000_000_000, rx=None)
    selection = select([candidate(link("eth0", 2))], [("eth9", own)])
    assert selection.uplinks[1] == UplinkFacts(
        name=IfName("eth9"), present=False, is_up=False, configured=own
    )


def test_several_nics_stand_beside_each_other() -> None:
    selection = select([candidate(link("eth2", 4)), candidate(link("eth0", 2))], [])
    assert names(selection) == ["eth2", "eth0"]
    assert selection.findings == ()


BOND = link("bond0", 10, kind="bond")
ETH0 = link("eth0", 2, slave="bond", master=10)
ETH1 = link("eth1", 3, slave="bond", master=10)
VLAN = link("bond0.20", 20, kind="vlan", lower=10)
BRIDGE = link("br0", 30, kind="bridge")
PORT = link("eth5", 5, slave="bridge", master=30)


def test_a_bond_is_shaped_as_a_whole() -> None:
    selection = select([candidate(BOND, ETH0, ETH1)], [])
    assert names(selection) == ["bond0"]
    assert codes(selection) == [("uplink-is-bond", "bond0")]
    assert "(eth0, eth1)" in selection.findings[0].message


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BOND, ETH0),
        (VLAN, BOND),
        (VLAN, ETH1),
        (BRIDGE, PORT),
        (link("m0", 40, kind="macvlan", lower=2), ETH0),
    ],
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_traffic_is_shaped_in_one_place_only(one: Link, other: Link, is_turned: bool) -> None:
    pair = [candidate(one, BOND, ETH0, ETH1, PORT), candidate(other, BOND, ETH0, ETH1, PORT)]
    first, second = reversed(pair) if is_turned else pair
    selection = select([first, second], [])
    assert names(selection) == [first.link.name]
    assert ("uplinks-stacked", second.link.name) in codes(selection)


def test_a_bond_and_a_nic_beside_it_have_nothing_in_common() -> None:
    nic = link("eth9", 9)
    both = [candidate(BOND, ETH0, ETH1, nic), candidate(nic, BOND, ETH0, ETH1)]
    assert names(select(both, [])) == ["bond0", "eth9"]
    assert both[0].carriers == (2, 3)
    assert both[1].carriers == ()


def test_one_device_under_two_names_is_one_uplink() -> None:
    selection = select([candidate(link("eth0", 2)), candidate(link("eth0", 2))], [])
    assert names(selection) == ["eth0"]
    assert codes(selection) == [("uplinks-stacked", "eth0")]


def test_vlans_of_one_nic_do_not_carry_each_other() -> None:
    nic = link("eth0", 2)
    vlans = [link(f"eth0.{number}", 20 + number, kind="vlan", lower=2) for number in (1, 2)]
    selection = select([candidate(vlan, nic) for vlan in vlans], [])
    assert names(selection) == ["eth0.1", "eth0.2"]
    assert codes(selection) == [("uplink-shares-nic", "eth0.1"), ("uplink-shares-nic", "eth0.2")]


def test_the_speed_of_one_link_is_not_counted_for_two_vlans() -> None:
    """Case D5: they share the node's total, or each needs its own."""
    nic = link("eth0", 2)
    vlans = [link(f"eth0.{number}", 20 + number, kind="vlan", lower=2) for number in (1, 2)]
    selection = select([candidate(vlan, nic) for vlan in vlans], [])
    assert [(one.speed_bps, one.why_no_speed) for one in selection.uplinks] == [
        (None, "its link is also that of eth0.2, and its speed is for both together"),
        (None, "its link is also that of eth0.1, and its speed is for both together"),
    ]


def test_a_place_that_serves_another_device_says_so() -> None:
    port = replace(candidate(PORT), serves=(BRIDGE,))
    assert codes(select([port], [])) == [("uplink-serves-another", "eth5")]
    assert codes(select([replace(port, serves=(PORT,))], [])) == []


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (ETH0, "uplink-is-bond-member"),
        (BRIDGE, "uplink-is-bridge"),
        (VLAN, "uplink-shares-nic"),
        (link("wg0", 9, kind="wireguard"), "uplink-is-tunnel"),
        (link("eth0", 2), None),
        (PORT, None),
        (link("ppp0", 8, kind="ppp"), None),
    ],
)
def test_people_are_told_what_an_uplink_is(one: Link, code: str | None) -> None:
    found = [met for met, _ in codes(select([candidate(one)], []))]
    assert found == ([code] if code else [])


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (link("lo", 1, flags=UP | IFF_LOOPBACK), "uplink-is-loopback"),
        (link("netqos-ifb", 0x4E520000, kind="ifb"), "uplink-is-ifb"),
    ],
)
def test_what_leads_nowhere_is_refused(one: Link, code: str) -> None:
    selection = select([candidate(one), candidate(link("eth0", 2))], [])
    assert (names(selection), codes(selection)) == (["eth0"], [(code, one.name)])


@pytest.mark.parametrize("sysfs", [None, (3, MAC), (2, "02:00:00:00:00:99")])
def test_a_sys_of_another_namespace_is_noticed(sysfs: tuple[int, str] | None) -> None:
    one = Candidate(link=link("eth0", 2), speed_mbit=1000, sysfs=sysfs)
    selection = select([one], [])
    assert names(selection) == ["eth0"]
    assert codes(selection) == [("sysfs-of-another-namespace", "eth0")]


def _chain(pairs: Iterable[tuple[int, int]]) -> dict[int, Link]:
    return {index: link(f"v{index}", index, kind="vlan", lower=lower) for index, lower in pairs}


def test_a_loop_of_links_ends() -> None:
    known = _chain([(1, 2), (2, 3), (3, 1)])
    assert carriers(known[1], known) == (2, 3)


def test_hardware_that_is_up_and_not_shaped_is_told() -> None:
    """A storage network beside the uplink; not what a bond or bridge holds, nor what carries an uplink, nor a veth."""
    links = [
        link("lo", 1, flags=UP | IFF_LOOPBACK),
        link("eth1", 4),
        link("eth2", 6, flags=IFF_UP),
        ETH0,
        PORT,
        link("veth1", 8, kind="veth"),
        link("eth9", 9),
    ]
    found = unshaped_nics(links, frozenset({9, 10}))
    assert [(one.code, one.subject) for one in found] == [("nic-not-shaped", "eth1")]
