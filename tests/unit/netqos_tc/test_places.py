"""Where packets for an address leave the node: routes as the kernel tells them, and devices behind which pods are."""

from __future__ import annotations

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos_tc import netmsg, routing, uapi
from netqos_tc.netmsg import Message, attribute, string
from netqos_tc.places import Device, Route, Routes, exits

networks4 = st.builds(
    lambda address, length: ipaddress.ip_network((address, length), strict=False),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 8, 16, 24, 26, 31, 32]),
)


def route(network: str, device: int, metric: int = 0) -> Route:
    one = ipaddress.ip_network(network)
    return Route(one.version, one.prefixlen, int(one.network_address), metric, device)


@given(st.lists(networks4, max_size=12), st.integers(0, 2**32 - 1))
def test_the_longest_prefix_decides(networks: list[ipaddress.IPv4Network], number: int) -> None:
    """Against the slow way: every network looked at; of equal ones the first, whose metric is the lowest."""
    address = ipaddress.IPv4Address(number)
    routes = [
        Route(4, one.prefixlen, int(one.network_address), place, 100 + place)
        for place, one in enumerate(networks)
    ]
    fitting = [
        (-one.length, one.metric, one.device)
        for one, network in zip(routes, networks, strict=True)
        if address in network
    ]
    wanted = min(fitting)[2] if fitting else None
    assert Routes.of(routes).device(str(address)) == wanted


def test_families_do_not_meet() -> None:
    routes = Routes.of([route("0.0.0.0/0", 2), route("fd00:88::/64", 5), route("fd00:88::7/128", 6)])
    found = [routes.device(one) for one in ("10.88.0.7", "fd00:88::7", "fd00:88::8", "fd00:99::1")]
    assert found == [2, 6, 5, None]


def message(
    to: str,
    *,
    device: int | None = 7,
    table: int = uapi.MAIN_TABLE,
    kind: int = uapi.UNICAST,
    tos: int = 0,
    hops: tuple[tuple[int, int], ...] = (),
    metric: int | None = None,
) -> Message:
    network = ipaddress.ip_network(to)
    family = uapi.INET if network.version == 4 else uapi.INET6
    body = uapi.ROUTE.pack(family, network.prefixlen, 0, tos, table, 0, 0, kind, 0)
    if network.prefixlen:
        body += attribute(uapi.ROUTE_TO, network.network_address.packed)
    if device is not None:
        body += attribute(uapi.ROUTE_DEVICE, struct.pack("=I", device))
    if metric is not None:
        body += attribute(uapi.ROUTE_METRIC, struct.pack("=I", metric))
    if hops:
        packed = b"".join(uapi.HOP.pack(uapi.HOP.size, flags, 0, index) for index, flags in hops)
        body += attribute(uapi.ROUTE_HOPS, packed)
    return Message(uapi.NEWROUTE, 0, 1, body)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (message("10.88.0.7/32"), route("10.88.0.7/32", 7)),
        (message("0.0.0.0/0", metric=100), route("0.0.0.0/0", 7, 100)),
        (message("::/0"), route("::/0", 7)),
        (message("fd00:88::7/128", metric=1024), route("fd00:88::7/128", 7, 1024)),
        (message("10.0.0.0/8", device=None, hops=((8, uapi.DEAD), (9, 0))), route("10.0.0.0/8", 9)),
        (message("10.0.0.0/8", device=None, hops=((8, uapi.DEAD),)), None),
        (message("10.0.0.0/8", device=None), None),
        (message("10.88.0.0/26", kind=6), None),  # a blackhole
        (message("10.88.0.7/32", table=255), None),
        (message("10.88.0.7/32", table=100), None),
        (message("10.88.0.7/32", tos=8), None),
        (message("fe80::/64"), None),
    ],
)
def test_which_routes_count(given: Message, wanted: Route | None) -> None:
    assert routing.read_route(given) == wanted


def test_a_device_is_read_with_its_kind_and_its_bridge() -> None:
    body = uapi.IFINFO.pack(0, 0, 12, uapi.UP, 0) + string(uapi.IFNAME, "veth1")
    body += attribute(uapi.MASTER, struct.pack("=I", 5))
    body += attribute(uapi.LINK_INFO | netmsg.NESTED, string(uapi.INFO_KIND, "veth"))
    lo = uapi.IFINFO.pack(0, 0, 1, uapi.UP | uapi.LOOPBACK, 0) + string(uapi.IFNAME, "lo")
    found = routing.read_devices(Message(uapi.NEWLINK, 0, 1, one) for one in (body, lo))
    assert found == {
        12: Device(name="veth1", kind="veth", master=5),
        1: Device(name="lo", is_loopback=True),
    }


def test_behind_a_bridge_are_its_ports_but_not_those_that_lead_out() -> None:
    devices = {
        5: Device(name="cni0", kind="bridge"),
        6: Device(name="veth1", kind="veth", master=5),
        7: Device(name="tap0", kind="tun", master=5),
        8: Device(name="eth0", master=5),
        9: Device(name="flannel.1", kind="vxlan", master=5),
        10: Device(name="veth2", kind="veth", master=11),
        12: Device(name="veth3", kind="veth", master=5),
    }
    assert exits(5, devices, uplinks=frozenset({12})) == {6, 7}
    assert exits(10, devices, uplinks=frozenset({12})) == {10}
    assert exits(99, devices, uplinks=frozenset()) == {99}
