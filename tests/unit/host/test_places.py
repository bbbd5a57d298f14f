"""Where traffic is shaped, for each way in which a node's default routes may leave it (cases D3 to D5)."""

from __future__ import annotations

from itertools import permutations

import pytest

from netqos.host.places import carriers, places
from netqos.host.rtwire import IFF_LOWER_UP, IFF_UP, Link


def link(name: str, index: int, kind: str = "", *, slave: str = "", master: int = 0, lower: int = 0) -> Link:
    return Link(
        index=index,
        name=name,
        mtu=1500,
        flags=IFF_UP | IFF_LOWER_UP,
        kind=kind,
        slave_kind=slave,
        master=master,
        lower=lower,
    )


LINKS = {
    one.name: one
    for one in (
        link("eth0", 2),
        link("eth1", 3),
        link("eth0.100", 10, "vlan", lower=2),
        link("eth0.200", 11, "vlan", lower=2),
        link("eth0.100.7", 12, "vlan", lower=10),
        link("host0", 13, "macvlan", lower=2),
        link("sec0", 14, "macsec", lower=3),
        link("bond0", 20, "bond"),
        link("eth2", 21, slave="bond", master=20),
        link("eth3", 22, slave="bond", master=20),
        link("bond0.5", 23, "vlan", lower=20),
        link("bond0.6", 24, "vlan", lower=20),
        link("team0", 25, "team"),
        link("eth4", 26, slave="team", master=25),
        link("br0", 30, "bridge"),
        link("eth5", 31, slave="bridge", master=30),
        link("veth1", 32, "veth", slave="bridge", master=30),
        link("tap1", 33, "tun", slave="bridge", master=30),
        link("br0.9", 34, "vlan", lower=30),
        link("br1", 40, "bridge"),
        link("eth6", 41, slave="bridge", master=40),
        link("eth7", 42, slave="bridge", master=40),
        link("br2", 50, "bridge"),
        link("veth2", 51, "veth", slave="bridge", master=50),
        link("br3", 55, "bridge"),
        link("bond1", 56, "bond", slave="bridge", master=55),
        link("eth8", 57, slave="bond", master=56),
        link("wg0", 60, "wireguard"),
        link("vx0", 61, "vxlan", lower=3),
        link("gre1", 62, "gre", lower=10),
        link("up0", 70, "veth", lower=71),
        link("far0", 71, "veth", lower=70),
        link("ppp0", 80, "ppp"),
    )
}
KNOWN = {one.index: one for one in LINKS.values()}


def shaped(routed: str, beyond: str = "") -> list[str]:
    found = places([LINKS[one] for one in routed.split()], [LINKS[one] for one in beyond.split()], KNOWN)
    return [f"{place.link.name}<{','.join(one.name for one in place.serves)}" for place in found]


@pytest.mark.parametrize(
    ("routed", "beyond", "expected"),
    [
        ("eth0", "", "eth0<eth0"),
        ("up0", "", "up0<up0"),
        ("ppp0", "", "ppp0<ppp0"),
        ("eth0 eth1", "", "eth0<eth0 eth1<eth1"),
        ("bond0", "", "bond0<bond0"),
        ("team0", "", "team0<team0"),
        ("eth2", "", "bond0<eth2"),
        ("bond0 eth2", "", "bond0<bond0,eth2"),
        ("bond0 eth0", "", "bond0<bond0 eth0<eth0"),
        ("eth0.100", "", "eth0.100<eth0.100"),
        ("host0", "", "host0<host0"),
        ("sec0", "", "sec0<sec0"),
        ("eth0.100 eth0", "", "eth0<eth0.100,eth0"),
        ("eth0 eth0.100", "", "eth0<eth0,eth0.100"),
        ("eth0.100 eth0.200", "", "eth0<eth0.100,eth0.200"),
        ("eth0.100 eth0.200 host0", "", "eth0<eth0.100,eth0.200,host0"),
        ("eth0.100.7 eth0.100", "", "eth0.100<eth0.100.7,eth0.100"),
        ("eth0.100.7 eth0.200", "", "eth0<eth0.100.7,eth0.200"),
        ("eth0.100 eth1", "", "eth0.100<eth0.100 eth1<eth1"),
        ("bond0.5", "", "bond0.5<bond0.5"),
        ("bond0.5 bond0.6", "", "bond0<bond0.5,bond0.6"),
        ("bond0.5 bond0", "", "bond0<bond0.5,bond0"),
        ("bond0.5 eth3", "", "bond0<bond0.5,eth3"),
        ("br0", "", "eth5<br0"),
        ("br0.9", "", "br0.9<br0.9"),
        ("br0 br0.9", "", "eth5<br0,br0.9"),
        ("br1", "", "br1<br1"),
        ("br2", "", "br2<br2"),
        ("br3", "", "bond1<br3"),
        ("wg0", "", "wg0<wg0"),
        ("wg0", "eth0", "eth0<wg0"),
        ("wg0", "vx0 eth1", "eth1<wg0"),
        ("wg0", "br0", "eth5<wg0"),
        ("wg0 eth0", "", "eth0<wg0,eth0"),
        ("wg0 eth1", "eth0", "eth1<wg0,eth1"),
        ("wg0", "wg0", "wg0<wg0"),
        ("vx0", "", "eth1<vx0"),
        ("vx0 eth1", "", "eth1<vx0,eth1"),
        ("gre1", "", "eth0.100<gre1"),
        ("gre1 eth0.200", "", "eth0<gre1,eth0.200"),
    ],
)
def test_where_the_packets_of_default_routes_are_shaped(routed: str, beyond: str, expected: str) -> None:
    assert shaped(routed, beyond) == expected.split()


def test_no_two_places_carry_each_other_whatever_the_routes() -> None:
    for names in permutations(["eth0", "eth0.100.7", "bond0.5", "eth2", "br0", "vx0", "wg0"], 4):
        found = [one.link for one in places([LINKS[name] for name in names], [], KNOWN)]
        for one in found:
            assert not {other.index for other in found} & set(carriers(one, KNOWN))


def test_the_other_end_of_a_veth_carries_nothing() -> None:
    assert carriers(LINKS["up0"], KNOWN) == ()
    assert carriers(LINKS["eth0.100.7"], KNOWN) == (10, 2)
    assert carriers(LINKS["bond0.5"], KNOWN) == (20, 21, 22)


def test_links_that_were_not_read_in_time_are_no_places() -> None:
    found = places([LINKS["eth0.100"], LINKS["br0"]], [], {})
    assert [one.link.name for one in found] == ["eth0.100", "br0"]
    assert [one.link.name for one in places([LINKS["vx0"]], [], {})] == ["vx0"]
