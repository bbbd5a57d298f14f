from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.host import rtwire
from netqos.host.rtwire import DefaultRoute, Link


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def u32(value: int) -> bytes:
    return struct.pack("=I", value)


def route(
    *attributes: bytes,
    family: int = socket.AF_INET,
    dst_len: int = 0,
    tos: int = 0,
    table: int = 254,
    kind: int = 1,
    flags: int = 0,
) -> memoryview:
    return memoryview(
        struct.pack("=BBBBBBBBI", family, dst_len, 0, tos, table, 2, 0, kind, flags) + b"".join(attributes)
    )


def hop(index: int, *, flags: int = 0, gateway: bytes = b"") -> bytes:
    return struct.pack("=HBBi", 8 + len(gateway), flags, 0, index) + gateway


def test_a_link_with_all_that_is_read_of_it() -> None:
    info = attribute(1, b"vlan\0") + attribute(4, b"bridge\0")
    payload = struct.pack("=BxHiII", 0, 1, 7, 0x11043, 0) + b"".join(
        [
            attribute(3, b"eth0.20\0"),
            attribute(4, u32(1400)),
            attribute(5, u32(2)),
            attribute(10, u32(9)),
            attribute(1, bytes.fromhex("0200000000aa")),
            attribute(18 | 0x8000, info),
        ]
    )
    assert rtwire.decode_link(memoryview(payload)) == Link(
        index=7,
        name="eth0.20",
        mtu=1400,
        flags=0x11043,
        kind="vlan",
        slave_kind="bridge",
        master=9,
        lower=2,
        mac="02:00:00:00:00:aa",
    )


@pytest.mark.parametrize(("lower", "elsewhere", "expected"), [(2, False, 2), (2, True, 0), (7, False, 0)])
def test_a_lower_link_is_one_of_this_namespace(lower: int, elsewhere: bool, expected: int) -> None:
    more = attribute(37, u32(0)) if elsewhere else b""
    payload = struct.pack("=BxHiII", 0, 1, 7, 0, 0) + attribute(5, u32(lower)) + more
    assert rtwire.decode_link(memoryview(payload)).lower == expected


@pytest.mark.parametrize(
    ("kind", "options", "lower"),
    [
        ("vxlan", attribute(1, u32(7)) + attribute(3, u32(4)), 4),
        ("vxlan", attribute(1, u32(7)), 0),
        ("vlan", attribute(1, b"\x64\0") + attribute(3, u32(4)), 2),
        ("bond", attribute(1, b"\x01") + attribute(3, u32(4)), 2),
        ("team", b"", 2),
    ],
)
def test_a_vxlan_says_among_its_options_by_what_it_leaves(kind: str, options: bytes, lower: int) -> None:
    info = attribute(1, kind.encode() + b"\0") + attribute(2 | 0x8000, options)
    payload = struct.pack("=BxHiII", 0, 1, 7, 0, 0) + attribute(5, u32(2)) + attribute(18 | 0x8000, info)
    link = rtwire.decode_link(memoryview(payload))
    assert (link.kind, link.lower) == (kind, lower)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (route(attribute(4, u32(3)), attribute(5, b"\x0a\0\0\1")), (0, (3,))),
        (route(attribute(4, u32(3)), attribute(6, u32(100))), (100, (3,))),
        (route(attribute(15, u32(254)), attribute(4, u32(3)), table=0), (0, (3,))),
        (route(attribute(9, hop(3, gateway=attribute(5, b"\x0a\0\0\1")) + hop(4))), (0, (3, 4))),
        (route(attribute(9, hop(3, flags=1) + hop(4))), (0, (4,))),
        (route(attribute(4, u32(3)), flags=16), (0, (3,))),
        (route(attribute(4, u32(3)), dst_len=24), None),
        (route(attribute(4, u32(3)), tos=0x10), None),
        (route(attribute(4, u32(3)), table=255), None),
        (route(attribute(15, u32(51820)), attribute(4, u32(3)), table=252), None),
        (route(attribute(4, u32(1)), kind=7), None),
        (route(attribute(4, u32(3)), flags=1), None),
        (route(attribute(9, hop(3, flags=1))), None),
        (route(), None),
    ],
)
def test_what_is_a_default_route(payload: memoryview, expected: tuple[int, tuple[int, ...]] | None) -> None:
    found = rtwire.decode_default_route(payload)
    assert found == (
        None if expected is None else DefaultRoute(family=2, metric=expected[0], devices=expected[1])
    )


def test_a_route_that_names_only_a_nexthop_object() -> None:
    found = rtwire.decode_default_route(route(attribute(30, u32(77)), family=socket.AF_INET6))
    assert found == DefaultRoute(family=10, metric=0, devices=(), nexthop=77)


def test_nexthop_objects() -> None:
    header = struct.pack("=BBBBI", 2, 0, 0, 0, 0)
    single = header + attribute(1, u32(5)) + attribute(5, u32(3))
    group = header + attribute(1, u32(9)) + attribute(2, struct.pack("=IBBHIBBH", 5, 0, 0, 0, 6, 0, 0, 0))
    assert rtwire.decode_nexthop(memoryview(single)) == (3, ())
    assert rtwire.decode_nexthop(memoryview(group)) == (0, (5, 6))
    assert rtwire.decode_nexthop(memoryview(header + attribute(4, b"") + attribute(5, u32(1)))) == (0, ())


def test_addresses_are_the_nodes_end() -> None:
    v4 = (
        struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, 2)
        + attribute(1, b"\x0a\0\0\2")
        + attribute(2, b"\x0a\0\0\1")
    )
    v6 = struct.pack("=BBBBI", socket.AF_INET6, 64, 0, 0, 2) + attribute(
        1, bytes.fromhex("fd00" + "0" * 26 + "01")
    )
    other = struct.pack("=BBBBI", socket.AF_MPLS if hasattr(socket, "AF_MPLS") else 28, 0, 0, 0, 2)
    assert [rtwire.decode_address(memoryview(one)) for one in (v4, v6, other)] == [
        "10.0.0.1",
        "fd00::1",
        None,
    ]


def test_messages_one_after_the_other() -> None:
    data = rtwire.request(16, 0, b"abcde", sequence=1) + b"\0\0\0" + rtwire.request(3, 2, b"", sequence=9)
    assert [
        (kind, flags, number, bytes(payload)) for kind, flags, number, payload in rtwire.messages(data)
    ] == [
        (16, 1, 1, b"abcde"),
        (3, 3, 9, b""),
    ]


@given(st.binary(max_size=200))
def test_garbage_ends_and_does_not_run_over(data: bytes) -> None:
    for _kind, _flags, _sequence, payload in rtwire.messages(data):
        assert len(payload) <= len(data) - 16


@given(st.binary(max_size=100))
def test_garbage_attributes_are_passed_over(data: bytes) -> None:
    rtwire.decode_link(memoryview(struct.pack("=BxHiII", 0, 1, 7, 0, 0) + data))
    rtwire.decode_default_route(route(data))
    rtwire.decode_nexthop(memoryview(struct.pack("=BBBBI", 2, 0, 0, 0, 0)))


def test_an_error_is_a_positive_code() -> None:
    assert rtwire.error_code(memoryview(struct.pack("=i", -19) + b"rest")) == 19
    assert rtwire.error_code(memoryview(b"")) == 0
