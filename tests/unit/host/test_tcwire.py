"""Whatever a kernel may say: a value, or one of the errors that the reader takes for "cannot be read"."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.host import tcwire
from netqos.host.tcwire import Filter, Qdisc


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def tc(*parts: bytes, device: int = 7, handle: int = 0x10000, parent: int = tcwire.ROOT) -> memoryview:
    return memoryview(struct.pack("=B3xiIII", 0, device, handle, parent, 0) + b"".join(parts))


ATTRIBUTES = st.recursive(
    st.binary(max_size=24),
    lambda inner: st.lists(st.tuples(st.integers(0, 64), inner), max_size=4).map(
        lambda pairs: b"".join(attribute(kind, value) for kind, value in pairs)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "decode",
    [
        tcwire.decode_qdisc,
        tcwire.decode_class,
        tcwire.decode_filter,
        tcwire.decode_link,
        tcwire.decode_neighbour,
        tcwire.decode_flowtable,
    ],
)
@given(
    head=st.binary(min_size=0, max_size=20),
    rest=ATTRIBUTES,
    kind=st.sampled_from([b"tbf", b"htb", b"u32", b"bpf"]),
)
def test_nothing_else_is_raised(
    decode: Callable[[memoryview], object], head: bytes, rest: bytes, kind: bytes
) -> None:
    body = head.ljust(20, b"\0") + attribute(1, kind + b"\0") + attribute(2, rest) + rest
    with contextlib.suppress(ValueError, struct.error):
        decode(memoryview(body))
    with contextlib.suppress(ValueError, struct.error):
        decode(memoryview(head))


def test_a_rate_beyond_32_bits() -> None:
    narrow = attribute(1, struct.pack("=BBHhHI", 0, 1, 0, 0, 0, 2**32 - 1) + bytes(24))
    wide = attribute(4, struct.pack("=Q", 5_000_000_000))
    options = attribute(2, narrow + wide)
    assert tcwire.decode_qdisc(tc(attribute(1, b"tbf\0"), options)) == Qdisc(
        device=7, kind="tbf", handle=0x10000, parent=tcwire.ROOT, rate_bps=40_000_000_000
    )
    saturated = attribute(2, narrow)
    assert tcwire.decode_qdisc(tc(attribute(1, b"tbf\0"), saturated)).rate_bps == (2**32 - 1) * 8


def test_a_redirect_that_is_not_the_first_action() -> None:
    mirred = attribute(1, b"mirred\0") + attribute(2, attribute(2, bytes(24) + struct.pack("=I", 9)))
    actions = attribute(1, attribute(1, b"gact\0")) + attribute(2, mirred)
    options = attribute(2, attribute(2, actions))
    assert tcwire.decode_filter(tc(attribute(1, b"matchall\0"), options)) == Filter(kind="matchall", target=9)


def test_the_queues_of_our_own_classes_are_told_cheaply() -> None:
    ours = frozenset({0x4E51})
    assert tcwire.is_queue_of(tc(parent=0x4E511001), ours)
    assert not tcwire.is_queue_of(tc(parent=tcwire.ROOT), ours)
    assert not tcwire.is_queue_of(tc(parent=0x10030), ours)
