"""Messages as bytes: what is written reads back, another library reads the same, and garbage is no crash."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from netqos_tc import answers, netmsg, nfwire, numbers, queues, wire
from netqos_tc.controls import CONTROL_FILTERS
from netqos_tc.keys import ElementKey, ElementMap, FilterKey
from netqos_tc.netmsg import Message, Request
from netqos_tc.spec import ClassSpec, ElementSpec, FilterSpec, LeafQueueSpec, U32Match
from netqos_tc.tree import root_spec

IFINDEX = 7
u32 = st.integers(0, 2**32 - 1)
rates = st.integers(1, 2**40)
leaves = st.builds(
    ClassSpec,
    parent=st.just(numbers.class_id(0x10)),
    rate=rates,
    ceil=rates,
    buffer=u32,
    cbuffer=u32,
    prio=st.integers(0, 7),
    quantum=u32,
)


def answer(request: Request) -> Message:
    """A request as if the kernel had sent it."""
    (message,) = netmsg.messages(request.frame(1))
    return message


def by_pyroute2(request: Request) -> tcmsg:
    decoded = tcmsg(request.frame(1))
    decoded.decode()
    return decoded


@given(leaves)
def test_a_class_reads_back(spec: ClassSpec) -> None:
    found = answers.read_class(answer(wire.make_class(IFINDEX, 0x1234, spec)))
    assert (found.ifindex, found.minor, found.spec) == (IFINDEX, 0x1234, spec)


@pytest.mark.parametrize("rate", [1, 1_250_000, 2**32 - 1, 2**32, 5_000_000_000, 50_000_000_000])
def test_another_library_reads_the_same_class(rate: int) -> None:
    spec = ClassSpec(parent=0x4E510010, rate=rate, ceil=2 * rate, buffer=3, cbuffer=4, prio=2, quantum=15_000)
    found = by_pyroute2(wire.make_class(IFINDEX, 0x1234, spec))
    options = found.get_nested("TCA_OPTIONS")
    parms = options.get_attr("TCA_HTB_PARMS")
    assert (found["index"], found["handle"], found["parent"]) == (IFINDEX, 0x4E511234, 0x4E510010)
    assert found.get_attr("TCA_KIND") == "htb"
    assert parms["rate"] == min(rate, 2**32 - 1)
    assert options.get_attr("TCA_HTB_RATE64") == rate
    assert options.get_attr("TCA_HTB_CEIL64") == 2 * rate
    assert (parms["buffer"], parms["cbuffer"], parms["prio"], parms["quantum"]) == (3, 4, 2, 15_000)


def test_without_the_wide_fields_the_narrow_ones_count() -> None:
    spec = ClassSpec(parent=numbers.ROOT, rate=5, ceil=6, buffer=7, cbuffer=8, prio=None, quantum=None)
    narrow = wire.htb_options(spec)[:48]
    assert answers.read_htb_options(narrow, parent=numbers.ROOT, minor=numbers.TOTAL) == spec


def test_a_class_directly_under_the_root_has_the_root_as_its_parent() -> None:
    spec = ClassSpec(parent=numbers.PARENT_ROOT, rate=5, ceil=6, buffer=7, cbuffer=8, prio=None, quantum=None)
    assert answers.read_class(answer(wire.make_class(IFINDEX, 1, spec))).spec.parent == numbers.ROOT


@pytest.mark.parametrize(("rate", "ceil"), [(0, 5), (5, 0), (-5, 5), (5, 2**64)])
def test_rates_that_the_kernel_cannot_have_never_reach_it(rate: int, ceil: int) -> None:
    spec = ClassSpec(parent=numbers.ROOT, rate=rate, ceil=ceil, buffer=1, cbuffer=1, prio=0, quantum=1500)
    with pytest.raises((ValueError, struct.error)):
        wire.make_class(IFINDEX, 1, spec)


def test_a_class_is_deleted_by_number_alone() -> None:
    found = by_pyroute2(wire.delete_class(IFINDEX, 0x1234))
    assert (found["index"], found["handle"], found["attrs"]) == (IFINDEX, 0x4E511234, [])


def test_the_root_and_its_default_read_back() -> None:
    found = answers.read_qdisc(answer(wire.make_root(IFINDEX, root_spec(IFINDEX))))
    assert (found.kind, found.handle, found.parent) == ("htb", numbers.ROOT, numbers.PARENT_ROOT)
    assert answers.read_our_root(found) == root_spec(IFINDEX)
    assert answers.read_direct_packets(found.options) == 0


@given(st.integers(0, 2**32 - 1))
def test_a_queue_reads_back(limit: int) -> None:
    spec = LeafQueueSpec(limit=limit)
    found = answers.read_qdisc(answer(queues.make(IFINDEX, 0x1234, spec)))
    assert found.parent == numbers.class_id(0x1234)
    assert queues.read(found.kind, found.options) == spec


@pytest.mark.parametrize("preference", CONTROL_FILTERS)
def test_a_filter_reads_back_and_names_a_protocol_not_a_family(preference: int) -> None:
    spec = CONTROL_FILTERS[preference]
    message = answer(wire.make_filter(IFINDEX, preference, spec))
    assert answers.filter_preference(message) == preference
    assert answers.read_filter(message) == spec
    info = by_pyroute2(wire.make_filter(IFINDEX, preference, spec))["info"]
    assert socket.ntohs(info & 0xFFFF) in {0x0806, 0x88CC, 0x8809, 0x0800, 0x86DD}
    assert info >> 16 == preference


@given(
    st.integers(0, 0xFFFF),
    st.lists(st.builds(U32Match, value=u32, mask=u32, offset=st.integers(-64, 64)), max_size=5),
)
def test_any_filter_reads_back(protocol: int, matches: list[U32Match]) -> None:
    spec = FilterSpec(protocol=protocol, matches=tuple(matches), minor=0xC)
    message = answer(wire.make_filter(IFINDEX, 4, spec))
    assert answers.read_filter(message) == spec
    assert answers.filter_chain(message) == 0


def test_a_filter_of_another_kind_is_known_by_its_kind_alone() -> None:
    spec = FilterSpec(protocol=0x0800, matches=(), minor=0x10F)
    as_u32 = wire.make_filter(IFINDEX, 4, spec)
    as_bpf = Request(as_u32.type, as_u32.flags, as_u32.body.replace(b"u32\0", b"bpf\0"))
    assert answers.read_filter(answer(as_bpf)) == FilterSpec(protocol=0x0800, matches=(), minor=0, kind="bpf")


def test_a_filter_that_leads_to_another_tree_leads_to_no_class_of_ours() -> None:
    request = wire.make_filter(IFINDEX, 4, CONTROL_FILTERS[4])
    ours, theirs = (struct.pack("=I", target) for target in (numbers.class_id(0xC), 0x7000C))
    body = request.body.replace(ours, theirs)
    assert body != request.body
    found = answers.read_filter(answer(Request(request.type, request.flags, body)))
    assert found is not None
    assert (found.minor, found.matches) == (0, CONTROL_FILTERS[4].matches)


def test_filters_are_deleted_by_their_place_preference_and_chain() -> None:
    request = wire.delete_filter(FilterKey(IFINDEX, 50, minor=0x10, chain=7), 0x0800)
    found = by_pyroute2(request)
    assert (found["index"], found["parent"]) == (IFINDEX, numbers.class_id(0x10))
    assert found["info"] == 50 << 16 | socket.htons(0x0800)
    assert answers.filter_chain(answer(request)) == 7


@pytest.mark.parametrize(
    "key",
    [
        ElementKey(ElementMap.TX4, "10.88.0.10"),
        ElementKey(ElementMap.TX6, "fd00::1"),
        ElementKey(ElementMap.CG3, 2**40 + 7),
    ],
)
@pytest.mark.parametrize("owner", ["u", "workload:web", "x" * 120])
def test_an_element_reads_back(key: ElementKey, owner: str) -> None:
    spec = ElementSpec(minor=0x1001, owner=owner)
    assert nfwire.read_elements(answer(nfwire.add_element(key, spec))) == [(key, spec)]


@given(st.binary(max_size=200))
def test_garbage_is_a_value_error_at_most(data: bytes) -> None:
    try:
        for message in netmsg.messages(data):
            netmsg.attributes(message.body)
    except ValueError:
        return


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.binary(max_size=30)), max_size=5, unique_by=lambda pair: pair[0]
    )
)
def test_attributes_read_back(pairs: list[tuple[int, bytes]]) -> None:
    packed = b"".join(netmsg.attribute(kind, value) for kind, value in pairs)
    assert netmsg.attributes(packed) == dict(pairs)


def test_the_kernels_own_words_are_read_from_an_error() -> None:
    request = wire.delete_class(IFINDEX, 1).frame(9)
    body = struct.pack("=i", -16) + request[:16] + netmsg.string(1, "HTB class in use")
    assert netmsg.error_of(Message(netmsg.ERROR, 0x300, 9, body)) == (16, "HTB class in use")
    assert netmsg.error_of(Message(netmsg.ERROR, 0, 9, struct.pack("=i", 0) + request)) == (0, "")
