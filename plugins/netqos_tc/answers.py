"""What the kernel's traffic control answers, from bytes to specs and counters. Pure."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from netqos_tc import uapi
from netqos_tc.netmsg import Message, attributes
from netqos_tc.numbers import INNER, PARENT_ROOT, kind_on, major_of, minor_of
from netqos_tc.spec import ClassSpec, FilterSpec, RootSpec, U32Match, one_class


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a qdisc or class has sent, dropped and holds."""

    sent_bytes: int = 0
    sent_packets: int = 0
    drops: int = 0
    backlog_bytes: int = 0
    backlog_packets: int = 0

    def without(self, other: Counters) -> Counters:
        """These less those of a part; what was read a moment later may be more, which then is nothing."""
        return Counters(
            sent_bytes=max(0, self.sent_bytes - other.sent_bytes),
            sent_packets=max(0, self.sent_packets - other.sent_packets),
            drops=max(0, self.drops - other.drops),
            backlog_bytes=max(0, self.backlog_bytes - other.backlog_bytes),
            backlog_packets=max(0, self.backlog_packets - other.backlog_packets),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Qdisc:
    """A qdisc of any kind. `handle` 0: the kernel's own default; `parent` PARENT_ROOT: the root of its device.

    `stats` are the counters as they came: of 1,000 nearly none are asked for. `egress_block` is the number of the
    block from which a clsact takes the filters at egress, 0 for its own. `is_sized`: it has a size table (stab).
    """

    ifindex: int
    kind: str
    handle: int
    parent: int
    options: bytes
    stats: bytes = b""
    egress_block: int = 0
    is_sized: bool = False

    @property
    def counters(self) -> Counters:
        """What it has sent, dropped and holds."""
        return _counters(self.stats)


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbClass:
    """A class of our tree; `queue_handle` is that of its leaf's queue, 0 for one that the kernel made."""

    ifindex: int
    minor: int
    spec: ClassSpec
    queue_handle: int
    stats: bytes = b""

    @property
    def counters(self) -> Counters:
        """What it has sent, dropped and holds."""
        return _counters(self.stats)


def read_qdisc(message: Message) -> Qdisc:
    """A qdisc of any kind."""
    _family, ifindex, handle, parent, _info = uapi.TCMSG.unpack_from(message.body)
    parts = attributes(message.body, uapi.TCMSG.size)
    return Qdisc(
        ifindex=ifindex,
        kind=_text(parts.get(uapi.KIND, b"")),
        handle=handle,
        parent=parent,
        options=bytes(parts.get(uapi.OPTIONS, b"")),
        stats=parts.get(uapi.STATS2, b""),
        egress_block=int.from_bytes(parts.get(uapi.EGRESS_BLOCK, b""), sys.byteorder),
        is_sized=uapi.SIZE_TABLE in parts,
    )


def read_our_root(root: Qdisc) -> RootSpec:
    """The root of a tree of ours as a spec."""
    return RootSpec(default_minor=read_default_minor(root.options), is_sized=root.is_sized)


def read_class(message: Message) -> HtbClass:
    """A class of our tree. The kernel gives PARENT_ROOT as the parent of a class directly under the root."""
    _family, ifindex, handle, parent, queue = uapi.TCMSG.unpack_from(message.body)
    parts = attributes(message.body, uapi.TCMSG.size)
    minor = minor_of(handle)
    if parent == PARENT_ROOT:
        parent = kind_on(ifindex).root
    spec = read_htb_options(parts[uapi.OPTIONS], parent=parent, minor=minor)
    stats = parts.get(uapi.STATS2, b"")
    return HtbClass(ifindex=ifindex, minor=minor, spec=spec, queue_handle=queue, stats=stats)


def read_counters(message: Message) -> Counters:
    """The counters alone of a qdisc or class: what the fast loop reads of each, twenty times a second and more."""
    return _counters(attributes(message.body, uapi.TCMSG.size).get(uapi.STATS2, b""))


def is_our_class(message: Message) -> bool:
    """Whether a class belongs to our tree (a device may have classful qdiscs below ours)."""
    _family, ifindex, handle, *_rest = uapi.TCMSG.unpack_from(message.body)
    return bool(major_of(handle) == kind_on(ifindex).major)


def read_htb_options(options: bytes, *, parent: int, minor: int) -> ClassSpec:
    """The parameters of a class; `prio` and `quantum` only of leaves, which are at level 0 of HTB."""
    return _read_htb_options(options, parent, is_inner=minor in INNER)


@lru_cache(maxsize=4096)
def _read_htb_options(options: bytes, parent: int, *, is_inner: bool) -> ClassSpec:
    """Equal classes are one object: most leaves of a level are equal, and all are as they were a pass before."""
    parts = attributes(options)
    numbers = uapi.HTB_OPT.unpack_from(parts[uapi.HTB_PARMS])
    is_inner = is_inner or numbers[15] > 0
    spec = ClassSpec(
        parent=parent,
        rate=_wide(parts, uapi.HTB_RATE64, numbers[5]),
        ceil=_wide(parts, uapi.HTB_CEIL64, numbers[11]),
        buffer=numbers[12],
        cbuffer=numbers[13],
        quantum=None if is_inner else numbers[14],
        prio=None if is_inner else numbers[16],
    )
    return one_class(spec)


def read_default_minor(options: bytes) -> int:
    """The default class of an HTB qdisc."""
    return int(uapi.HTB_GLOB.unpack_from(attributes(options)[uapi.HTB_INIT])[2])


def read_direct_packets(options: bytes) -> int:
    """The packets that an HTB qdisc sent unshaped."""
    return int(uapi.HTB_GLOB.unpack_from(attributes(options)[uapi.HTB_INIT])[4])


def read_filter(message: Message) -> FilterSpec | None:
    """A filter; None for the entries of u32 that only hold others together. Of another kind that is all we know."""
    _family, ifindex, *_rest, info = uapi.TCMSG.unpack_from(message.body)
    parts = attributes(message.body, uapi.TCMSG.size)
    protocol = ((info & 0xFF) << 8) | ((info >> 8) & 0xFF)
    kind = _text(parts.get(uapi.KIND, b""))
    if kind != "u32":
        return FilterSpec(kind=kind, protocol=protocol, matches=(), minor=0)
    options = attributes(parts.get(uapi.OPTIONS, b""))
    if uapi.U32_SEL not in options:
        return None
    (target,) = struct.unpack_from("=I", options.get(uapi.U32_CLASSID, bytes(4)))
    minor = minor_of(target) if major_of(target) in (0, kind_on(ifindex).major) else 0
    return FilterSpec(protocol=protocol, matches=_read_matches(options[uapi.U32_SEL]), minor=minor)


def filter_preference(message: Message) -> int:
    """The preference of a filter of any kind."""
    return int(uapi.TCMSG.unpack_from(message.body)[4] >> 16)


def filter_chain(message: Message) -> int:
    """The chain of a filter of any kind; packets meet the first, 0, and go where its filters send them."""
    chain = attributes(message.body, uapi.TCMSG.size).get(uapi.CHAIN)
    return 0 if chain is None else int(struct.unpack("=I", chain)[0])


def _wide(parts: Mapping[int, bytes], kind: int, narrow: int) -> int:
    """A rate: the 64-bit one where the kernel gives it, since the 32-bit one is saturated then."""
    return int(struct.unpack("=Q", parts[kind])[0]) if kind in parts else narrow


def _counters(raw: bytes) -> Counters:
    stats = attributes(raw)
    sent_bytes, sent_packets = (
        uapi.BASIC.unpack_from(stats[uapi.STATS_BASIC]) if uapi.STATS_BASIC in stats else (0, 0)
    )
    waiting, backlog, drops, _requeues, _over = (
        uapi.QUEUE.unpack_from(stats[uapi.STATS_QUEUE]) if uapi.STATS_QUEUE in stats else (0, 0, 0, 0, 0)
    )
    return Counters(
        sent_bytes=sent_bytes,
        sent_packets=sent_packets,
        drops=drops,
        backlog_bytes=backlog,
        backlog_packets=waiting,
    )


def _read_matches(selector: bytes) -> tuple[U32Match, ...]:
    count = uapi.SEL.unpack_from(selector)[2]
    found = []
    for number in range(count):
        mask, value = struct.unpack_from(">II", selector, uapi.SEL.size + 16 * number)
        (offset,) = struct.unpack_from("=i", selector, uapi.SEL.size + 16 * number + 8)
        found.append(U32Match(value=value, mask=mask, offset=offset))
    return tuple(found)


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
