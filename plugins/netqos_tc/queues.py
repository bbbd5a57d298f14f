"""The queues of leaves as the kernel's options: `bfifo` by bytes, or `fq_codel` where it is asked for. Pure.

What fq_codel does not allow: the number of flows is fixed when it is made (fq_codel_change in
net/sched/sch_fq_codel.c), so a change names it no more, and another number takes another queue. It keeps times in
units of 1.024 us and gives them back rounded down, so specs hold those units.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from netqos_tc import wire
from netqos_tc.netmsg import Request, attribute, attributes
from netqos_tc.numbers import class_id
from netqos_tc.spec import FQ_CODEL, FairSpec, LeafQueueSpec, one_queue

PACKETS: Final = 10_240
"""The kernel's own limit of packets; the limit by memory bites first."""

# TCA_FQ_CODEL_* of include/uapi/linux/pkt_sched.h
_TARGET: Final = 1
_LIMIT: Final = 2
_ECN: Final = 4
_FLOWS: Final = 5
_QUANTUM: Final = 6
_MEMORY: Final = 9


def codel_ticks(microseconds: int) -> int:
    """A time in units of 1024 ns, as the kernel rounds it (codel_time_t in include/net/codel.h)."""
    return microseconds * 1000 >> 10


def codel_us(ticks: int) -> int:
    """The fewest microseconds that the kernel takes for so many units."""
    return -(-ticks * 1024 // 1000)


def options(spec: LeafQueueSpec, *, is_new: bool = True) -> bytes:
    """The options of a queue, in the order in which tc gives them; of one that is there without what cannot change."""
    if spec.fair is None:
        return struct.pack("=I", spec.limit)
    fair = spec.fair
    numbers = [(_LIMIT, PACKETS)]
    numbers += [(_FLOWS, fair.flows)] if is_new else []
    numbers += [
        (_QUANTUM, fair.quantum),
        (_TARGET, codel_us(fair.target_ticks)),
        (_ECN, int(fair.ecn)),
        (_MEMORY, spec.limit),
    ]
    return b"".join(attribute(kind, struct.pack("=I", number)) for kind, number in numbers)


@lru_cache(maxsize=4096)
def read(kind: str, found: bytes) -> LeafQueueSpec:
    """A queue; a kind that is not ours has the limit that its first number says. Equal queues are one object."""
    if kind != FQ_CODEL:
        limit = struct.unpack_from("=I", found)[0] if len(found) >= 4 else 0
        return one_queue(LeafQueueSpec(kind=kind, limit=limit))
    parts = {
        one: int(struct.unpack("=I", value)[0]) for one, value in attributes(found).items() if len(value) == 4
    }
    fair = FairSpec(
        flows=parts.get(_FLOWS, 0),
        quantum=parts.get(_QUANTUM, 0),
        target_ticks=-(-parts.get(_TARGET, 0) * 1000 // 1024),
        ecn=bool(parts.get(_ECN, 0)),
    )
    return one_queue(LeafQueueSpec(kind=kind, limit=parts.get(_MEMORY, 0), fair=fair))


def requests(ifindex: int, minor: int, before: object, after: LeafQueueSpec) -> list[Request]:
    """What makes a leaf's queue as it should be. A kind that is there is changed in place, any other replaced."""
    met = before.fair if isinstance(before, LeafQueueSpec) and before.kind == after.kind else None
    if met is None or after.fair is None:
        return [make(ifindex, minor, after)]
    if met.flows == after.fair.flows:
        return [make(ifindex, minor, after, is_new=False)]
    return [make(ifindex, minor, LeafQueueSpec(limit=after.limit)), make(ifindex, minor, after)]


def make(ifindex: int, minor: int, spec: LeafQueueSpec, *, is_new: bool = True) -> Request:
    """Set the queue of a leaf; without a handle, so that one of the same kind is changed and any other replaced."""
    return wire.make_qdisc(
        ifindex,
        parent=class_id(minor, ifindex),
        handle=0,
        kind=spec.kind,
        options=options(spec, is_new=is_new),
    )


def impossible() -> bytes:
    """Options that fq_codel refuses with EINVAL before it does anything: no flows."""
    return attribute(_FLOWS, struct.pack("=I", 0))
