"""Messages of the kernel's traffic control as bytes, from and to specs. Pure.

Layouts are those of include/uapi/linux/{rtnetlink,pkt_sched,pkt_cls,if_link}.h. Why no library encodes them: a class
is written in 11 us instead of 670, a tree of 500 leaves is rebuilt in one batch, an earlier root is put back with
exactly the option bytes that the kernel gave, and the traps of a general encoder (rate 0, rate strings, 32-bit rates)
do not exist. The tests read everything back through pyroute2, as a second opinion.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from netqos_tc import netmsg
from netqos_tc.netmsg import Message, Request, attribute, attributes, string
from netqos_tc.numbers import INNER, PARENT_ROOT, ROOT, class_id, minor_of
from netqos_tc.spec import ClassSpec, FilterSpec, LeafQueueSpec, RootSpec, U32Match

NEWLINK: Final = 16
GETLINK: Final = 18
NEWQDISC: Final = 36
DELQDISC: Final = 37
GETQDISC: Final = 38
NEWTCLASS: Final = 40
DELTCLASS: Final = 41
GETTCLASS: Final = 42
NEWTFILTER: Final = 44
DELTFILTER: Final = 45
GETTFILTER: Final = 46
NEWSTATS: Final = 92
GETSTATS: Final = 94

_TCMSG: Final = struct.Struct("=B3xiIII")
_KIND: Final = 1
_OPTIONS: Final = 2
_STATS2: Final = 7

_HTB_PARMS: Final = 1
_HTB_INIT: Final = 2
_HTB_RATE64: Final = 6
_HTB_CEIL64: Final = 7
_HTB_VERSION: Final = 3
_R2Q: Final = 10  # only for classes without a quantum, which we never make
_HTB_OPT: Final = struct.Struct("=BBHhHIBBHhHIIIIII")
_HTB_GLOB: Final = struct.Struct("=IIIII")
_INNER_QUANTUM: Final = (
    15_000  # means nothing for an inner class, but without one the kernel warns of its own choice
)
_ETHERNET: Final = 1  # TC_LINKLAYER_ETHERNET: the kernel then needs no table of transmission times
_MOST_32: Final = 2**32 - 1

_STATS_BASIC: Final = 1
_STATS_QUEUE: Final = 3
_BASIC: Final = struct.Struct("=QI")
_QUEUE: Final = struct.Struct("=IIIII")

_U32_CLASSID: Final = 1
_U32_SEL: Final = 5
_SEL: Final = struct.Struct("=BBBxHHhhI")
_TERMINAL: Final = 1

_LINK64: Final = 1
_STATS64: Final = struct.Struct("=4Q")
_IFINFO: Final = struct.Struct("=BxHiII")
_IFNAME: Final = 3
_MTU: Final = 4
_EXT_MASK: Final = 29
_SKIP_STATS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a qdisc or class has sent, dropped and holds."""

    sent_bytes: int = 0
    sent_packets: int = 0
    drops: int = 0
    backlog_bytes: int = 0
    backlog_packets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Qdisc:
    """A qdisc of any kind. `handle` 0: the kernel's own default; `parent` PARENT_ROOT: the root of its device."""

    ifindex: int
    kind: str
    handle: int
    parent: int
    options: bytes
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbClass:
    """A class of our tree; `queue_handle` is that of its leaf's queue, 0 for one that the kernel made."""

    ifindex: int
    minor: int
    spec: ClassSpec
    queue_handle: int
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A device of this namespace."""

    ifindex: int
    name: str
    mtu: int


# ---------------------------------------------------------------- requests


def tcmsg(ifindex: int, *, handle: int = 0, parent: int = 0, info: int = 0) -> bytes:
    """The fixed part of every message here."""
    return _TCMSG.pack(0, ifindex, handle, parent, info)


def make_root(ifindex: int, spec: RootSpec) -> Request:
    """Put our HTB in the place of whatever the root is; one step, without a moment with no root."""
    options = attribute(_HTB_INIT, _HTB_GLOB.pack(_HTB_VERSION, _R2Q, spec.default_minor, 0, 0))
    body = (
        tcmsg(ifindex, handle=ROOT, parent=PARENT_ROOT) + string(_KIND, "htb") + attribute(_OPTIONS, options)
    )
    return Request(NEWQDISC, netmsg.CREATE | netmsg.REPLACE, body)


def make_qdisc(ifindex: int, *, parent: int, handle: int, kind: str, options: bytes) -> Request:
    """Create a qdisc with options as a dump gave them."""
    body = tcmsg(ifindex, handle=handle, parent=parent) + string(_KIND, kind)
    if options:
        body += attribute(_OPTIONS, options)
    return Request(NEWQDISC, netmsg.CREATE | netmsg.REPLACE, body)


def delete_root(ifindex: int) -> Request:
    """Remove the root; the kernel puts its default there."""
    return Request(DELQDISC, 0, tcmsg(ifindex, parent=PARENT_ROOT))


def make_class(ifindex: int, minor: int, spec: ClassSpec, *, create: bool = True) -> Request:
    """Create or change a class, always with every parameter: what is left out falls back to a default."""
    body = tcmsg(ifindex, handle=class_id(minor), parent=spec.parent) + string(_KIND, "htb")
    return Request(
        NEWTCLASS,
        netmsg.CREATE | netmsg.REPLACE if create else 0,
        body + attribute(_OPTIONS, htb_options(spec)),
    )


def htb_options(spec: ClassSpec) -> bytes:
    """The parameters of a class. Rates over 32 bits are saturated in the old field and whole in a second one."""
    if spec.rate < 1 or spec.ceil < 1:
        raise ValueError(f"an HTB class with rate {spec.rate} and ceil {spec.ceil} bytes per second")
    quantum = _INNER_QUANTUM if spec.quantum is None else spec.quantum
    packed = _HTB_OPT.pack(
        *(0, _ETHERNET, 0, 0, 0, min(spec.rate, _MOST_32)),
        *(0, _ETHERNET, 0, 0, 0, min(spec.ceil, _MOST_32)),
        *(spec.buffer, spec.cbuffer, quantum, 0, spec.prio or 0),
    )
    return (
        attribute(_HTB_PARMS, packed)
        + attribute(_HTB_RATE64, struct.pack("=Q", spec.rate))
        + attribute(_HTB_CEIL64, struct.pack("=Q", spec.ceil))
    )


def delete_class(ifindex: int, minor: int) -> Request:
    """Delete a class and its queue."""
    return Request(DELTCLASS, 0, tcmsg(ifindex, handle=class_id(minor)))


def make_queue(ifindex: int, minor: int, spec: LeafQueueSpec) -> Request:
    """Set the queue of a leaf; without a handle, so that one of the same kind is changed and any other replaced."""
    body = tcmsg(ifindex, parent=class_id(minor)) + string(_KIND, spec.kind)
    body += attribute(_OPTIONS, struct.pack("=I", spec.limit))
    return Request(NEWQDISC, netmsg.CREATE | netmsg.REPLACE, body)


def make_filter(ifindex: int, preference: int, spec: FilterSpec) -> Request:
    """Create a u32 filter on our root."""
    selector = _SEL.pack(_TERMINAL, 0, len(spec.matches), 0, 0, 0, 0, 0)
    for one in spec.matches:  # mask and value in network order, the offsets in the host's
        selector += struct.pack(">II", one.mask, one.value) + struct.pack("=ii", one.offset, 0)
    options = attribute(_U32_CLASSID, struct.pack("=I", class_id(spec.minor))) + attribute(_U32_SEL, selector)
    body = tcmsg(ifindex, parent=ROOT, info=_filter_info(preference, spec.protocol))
    body += string(_KIND, "u32") + attribute(_OPTIONS, options)
    return Request(NEWTFILTER, netmsg.CREATE | netmsg.EXCLUSIVE, body)


def delete_filter(ifindex: int, preference: int, protocol: int) -> Request:
    """Delete all filters of one preference on our root."""
    return Request(DELTFILTER, 0, tcmsg(ifindex, parent=ROOT, info=_filter_info(preference, protocol)))


def dump_qdiscs() -> Request:
    """All qdiscs of the namespace."""
    return Request(GETQDISC, netmsg.DUMP, tcmsg(0))


def get_root(ifindex: int, handle: int = ROOT) -> Request:
    """One qdisc of a device by its handle."""
    return Request(GETQDISC, netmsg.ECHO, tcmsg(ifindex, handle=handle))


def get_root_of(ifindex: int) -> Request:
    """The root qdisc of a device, whatever it is."""
    return Request(GETQDISC, netmsg.ECHO, tcmsg(ifindex, parent=PARENT_ROOT))


def dump_classes(ifindex: int) -> Request:
    """All classes of a device."""
    return Request(GETTCLASS, netmsg.DUMP, tcmsg(ifindex))


def get_class(ifindex: int, minor: int) -> Request:
    """One class; without NLM_F_ECHO the kernel answers nothing."""
    return Request(GETTCLASS, netmsg.ECHO, tcmsg(ifindex, handle=class_id(minor)))


def dump_filters(ifindex: int, parent: int = ROOT) -> Request:
    """All filters under one parent of a device."""
    return Request(GETTFILTER, netmsg.DUMP, tcmsg(ifindex, parent=parent))


def get_link(ifindex: int) -> Request:
    """One device, without its counters."""
    body = _IFINFO.pack(0, 0, ifindex, 0, 0) + attribute(_EXT_MASK, struct.pack("=I", _SKIP_STATS))
    return Request(GETLINK, 0, body)


def get_device_stats(ifindex: int) -> Request:
    """The 64-bit counters of one device."""
    return Request(GETSTATS, 0, struct.pack("=B3xII", 0, ifindex, 1 << (_LINK64 - 1)))


# ---------------------------------------------------------------- answers


def read_qdisc(message: Message) -> Qdisc:
    """A qdisc of any kind."""
    _family, ifindex, handle, parent, _info = _TCMSG.unpack_from(message.body)
    parts = attributes(message.body, _TCMSG.size)
    return Qdisc(
        ifindex=ifindex,
        kind=_text(parts.get(_KIND, b"")),
        handle=handle,
        parent=parent,
        options=bytes(parts.get(_OPTIONS, b"")),
        counters=_counters(parts),
    )


def read_class(message: Message) -> HtbClass:
    """A class of our tree. The kernel gives PARENT_ROOT as the parent of a class directly under the root."""
    _family, ifindex, handle, parent, queue = _TCMSG.unpack_from(message.body)
    parts = attributes(message.body, _TCMSG.size)
    minor = minor_of(handle)
    spec = read_htb_options(parts[_OPTIONS], parent=ROOT if parent == PARENT_ROOT else parent, minor=minor)
    return HtbClass(ifindex=ifindex, minor=minor, spec=spec, queue_handle=queue, counters=_counters(parts))


def is_class_of(message: Message, major: int) -> bool:
    """Whether a class belongs to the tree with this major (a device may have classful qdiscs below ours)."""
    return bool(_TCMSG.unpack_from(message.body)[2] >> 16 == major)


def read_htb_options(options: bytes, *, parent: int, minor: int) -> ClassSpec:
    """The parameters of a class; `prio` and `quantum` only of leaves."""
    parts = attributes(options)
    numbers = _HTB_OPT.unpack_from(parts[_HTB_PARMS])
    is_inner = minor in INNER
    return ClassSpec(
        parent=parent,
        rate=_wide(parts, _HTB_RATE64, numbers[5]),
        ceil=_wide(parts, _HTB_CEIL64, numbers[11]),
        buffer=numbers[12],
        cbuffer=numbers[13],
        quantum=None if is_inner else numbers[14],
        prio=None if is_inner else numbers[16],
    )


def read_default_minor(options: bytes) -> int:
    """The default class of an HTB qdisc."""
    return int(_HTB_GLOB.unpack_from(attributes(options)[_HTB_INIT])[2])


def read_direct_packets(options: bytes) -> int:
    """The packets that an HTB qdisc sent unshaped."""
    return int(_HTB_GLOB.unpack_from(attributes(options)[_HTB_INIT])[4])


def read_queue(qdisc: Qdisc) -> LeafQueueSpec:
    """A leaf's queue; a kind that is not ours has the limit that its first number says."""
    limit = struct.unpack_from("=I", qdisc.options)[0] if len(qdisc.options) >= 4 else 0
    return LeafQueueSpec(kind=qdisc.kind, limit=limit)


def read_filter(message: Message) -> FilterSpec | None:
    """A u32 filter; None for the entries that only hold others together, and other kinds."""
    *_rest, info = _TCMSG.unpack_from(message.body)
    parts = attributes(message.body, _TCMSG.size)
    options = attributes(parts.get(_OPTIONS, b""))
    if _text(parts.get(_KIND, b"")) != "u32" or _U32_SEL not in options:
        return None
    (target,) = struct.unpack_from("=I", options.get(_U32_CLASSID, bytes(4)))
    protocol = ((info & 0xFF) << 8) | ((info >> 8) & 0xFF)
    return FilterSpec(protocol=protocol, matches=_read_matches(options[_U32_SEL]), minor=minor_of(target))


def filter_preference(message: Message) -> int:
    """The preference of a filter of any kind."""
    return int(_TCMSG.unpack_from(message.body)[4] >> 16)


def filter_kind(message: Message) -> str:
    """The kind of a filter."""
    return _text(attributes(message.body, _TCMSG.size).get(_KIND, b""))


def read_link(message: Message) -> Link:
    """A device."""
    _family, _type, ifindex, _flags, _change = _IFINFO.unpack_from(message.body)
    parts = attributes(message.body, _IFINFO.size)
    (mtu,) = struct.unpack("=I", parts[_MTU])
    return Link(ifindex=ifindex, name=_text(parts[_IFNAME]), mtu=mtu)


def read_device_sent(message: Message) -> int:
    """The bytes that a device has sent."""
    return int(_STATS64.unpack_from(attributes(message.body, 12)[_LINK64])[3])


def _wide(parts: Mapping[int, bytes], kind: int, narrow: int) -> int:
    """A rate: the 64-bit one where the kernel gives it, since the 32-bit one is saturated then."""
    return int(struct.unpack("=Q", parts[kind])[0]) if kind in parts else narrow


def _counters(parts: Mapping[int, bytes]) -> Counters:
    if _STATS2 not in parts:
        return Counters()
    stats = attributes(parts[_STATS2])
    sent_bytes, sent_packets = _BASIC.unpack_from(stats[_STATS_BASIC]) if _STATS_BASIC in stats else (0, 0)
    waiting, backlog, drops, _requeues, _over = (
        _QUEUE.unpack_from(stats[_STATS_QUEUE]) if _STATS_QUEUE in stats else (0, 0, 0, 0, 0)
    )
    return Counters(
        sent_bytes=sent_bytes,
        sent_packets=sent_packets,
        drops=drops,
        backlog_bytes=backlog,
        backlog_packets=waiting,
    )


def _read_matches(selector: bytes) -> tuple[U32Match, ...]:
    count = _SEL.unpack_from(selector)[2]
    found = []
    for number in range(count):
        mask, value = struct.unpack_from(">II", selector, _SEL.size + 16 * number)
        (offset,) = struct.unpack_from("=i", selector, _SEL.size + 16 * number + 8)
        found.append(U32Match(value=value, mask=mask, offset=offset))
    return tuple(found)


def _filter_info(preference: int, protocol: int) -> int:
    """Preference above, the Ethernet protocol in network order below."""
    return preference << 16 | ((protocol & 0xFF) << 8) | (protocol >> 8)


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
