"""A cheap answer to "did anybody touch what is ours?": the configuration of our objects as bytes, without counters.

Cheaper still is `Auditor.is_standing`, which costs the same for any number of objects: it looks at roots and numbers
alone, and is enough for a while where the kernel has said of no change in a tree.

Compared are: the root of each device watched, every class with its parameters, its queue with its own, the filters,
and the generation number of nftables. Of what the fast loop moves (`moves`) only that it is in its range. When only
the number has moved (kube-proxy writes its own tables all day), our own table is read and compared.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from netqos_tc import answers, netmsg, nfwire, numbers, wire
from netqos_tc.answers import Qdisc
from netqos_tc.moves import Steered
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.netmsg import Message
from netqos_tc.reader import Reader, is_our_root
from netqos_tc.spec import ClassSpec, LinkSpec

_ID: Final = slice(4, 20)  # device, handle, parent and queue's handle in struct tcmsg
_KIND: Final = slice(20, 28)
_HTB: Final = netmsg.string(1, "htb")
_OPTIONS_AT: Final = 28
_PLACE_AT: Final = 4
_DEVICE: Final = slice(4, 8)
_HANDLE: Final = slice(8, 12)
_DEVICE_HANDLE: Final = slice(4, 12)
_PARENT: Final = slice(12, 16)
_MOVED: Final = frozenset(
    struct.pack("=I", kind.class_id(minor))
    for kind in (numbers.KINDS.tx, numbers.KINDS.rx)
    for minor in numbers.INNER
)
_LENGTH: Final = struct.Struct("=H")
_PLACE: Final = struct.Struct("=iII")  # device, handle, parent in struct tcmsg
_GENERATION_AT: Final = 4  # struct nfgenmsg in front carries the generation number too


@dataclass(frozen=True, slots=True, kw_only=True)
class _Top:
    """What a device has at its root (None: nothing that the kernel shows), and how our own device stands itself.

    `refused` is the errno where the device is gone.
    """

    root: tuple[object, ...] | None = None
    link: LinkSpec | None = None
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What is compared. `table` is the content of our nft table, `generation` the number of the ruleset.

    `moved` are the classes that the fast loop may move, by device and minor; `classes` and `queues` all others, and
    what is in them, as bytes by their places. `others`, which are not compared, are all other qdiscs of the node.
    """

    ifindexes: frozenset[int]
    tops: Mapping[int, _Top]
    filters: tuple[object, ...]
    generation: int
    table: tuple[object, ...]
    moved: Mapping[int, Mapping[int, ClassSpec]]
    classes: Mapping[bytes, bytes]
    queues: Mapping[bytes, bytes]
    others: Sequence[Message]

    def is_alike(self, last: Fingerprint) -> bool:
        """Whether what is not in the trees is as it was."""
        return (self.ifindexes, self.tops, self.filters, self.moved.keys()) == (
            last.ifindexes,
            last.tops,
            last.filters,
            last.moved.keys(),
        )

    def is_same_as(self, last: Fingerprint, steered: Mapping[int, Steered]) -> bool:
        """Whether nothing of ours differs but what is in the loop's range; the generation number alone says nothing."""
        if not self.is_alike(last) or self.table != last.table:
            return False
        if self.classes != last.classes or self.queues != last.queues:
            return False
        return all(
            met == last.moved[ifindex] or (ifindex in steered and steered[ifindex].may_leave(met))
            for ifindex, met in self.moved.items()
        )


class Auditor:
    """Takes fingerprints through the channels of one namespace."""

    def __init__(self, route: Channel, netfilter: Channel, reader: Reader) -> None:
        """All stay the caller's."""
        self._route = route
        self._netfilter = netfilter
        self._reader = reader

    def take(self, devices: frozenset[int]) -> Fingerprint:
        """The fingerprint of the trees on some devices and of our table."""
        generation = self._generation()
        table = (
            self._reader.table.chains(),
            self._reader.table.is_dormant(),
            self._reader.table.sets(),
            *(message.body[_GENERATION_AT:] for message in self._reader.table.messages()),
        )
        return self._all(devices, generation, table)

    def is_standing(self, last: Fingerprint) -> bool:
        """Whether each root, our own device and the ruleset are as in `last`; what is in the trees is not looked at."""
        return self._generation() == last.generation and all(
            self._top(ifindex) == top for ifindex, top in last.tops.items()
        )

    def refresh(self, last: Fingerprint, devices: frozenset[int]) -> Fingerprint:
        """A new fingerprint; the table is read only if the ruleset has changed since `last`."""
        generation = self._generation()
        if generation != last.generation:
            return self.take(devices)
        return self._all(devices, generation, last.table)

    def _all(self, devices: frozenset[int], generation: int, table: tuple[object, ...]) -> Fingerprint:
        """Each device by itself, then the queues of the leaves; a dump of qdiscs is always one of all devices."""
        moved: dict[int, Mapping[int, ClassSpec]] = {}
        classes: dict[bytes, bytes] = {}
        tops = {ifindex: self._top(ifindex) for ifindex in sorted(devices)}
        rooted = [ifindex for ifindex, top in tops.items() if top.root is not None]
        filters = tuple(self._tree(ifindex, moved, classes) for ifindex in rooted)
        queues: dict[bytes, bytes] = {}
        others = []
        majors = {ifindex: numbers.kind_on(ifindex).major for ifindex in devices}
        for message in self._route.dump(wire.dump_qdiscs()):
            body = message.body
            ifindex, _handle, parent = _PLACE.unpack_from(body, _PLACE_AT)
            if majors.get(ifindex) == parent >> 16:
                queues[body[_DEVICE] + body[_PARENT]] = _queue(body)
            else:
                others.append(message)
        return Fingerprint(
            ifindexes=devices,
            generation=generation,
            tops=tops,
            filters=filters,
            moved=moved,
            classes=classes,
            queues=queues,
            others=others,
            table=table,
        )

    def _generation(self) -> int:
        return nfwire.read_generation(self._netfilter.get(nfwire.get_generation()))

    def _top(self, ifindex: int) -> _Top:
        try:
            found = self._route.find(wire.get_root_of(ifindex))
        except RequestRefused as problem:
            return _Top(refused=problem.refused.code)
        if found is None:
            return _Top()
        root = answers.read_qdisc(found)
        is_ifb = ifindex == numbers.IFB_INDEX
        link = self._reader.own_link(has_tree=is_our_root(root)) if is_ifb else None
        return _Top(root=_identity(root), link=link)

    def _tree(
        self, ifindex: int, moved: dict[int, Mapping[int, ClassSpec]], fixed: dict[bytes, bytes]
    ) -> object:
        """The filters of a device; its classes go to `moved` and `fixed`."""
        try:
            filters = [
                (
                    answers.filter_chain(message),
                    answers.filter_preference(message),
                    answers.read_filter(message),
                )
                for message in self._reader.filter_messages(ifindex)
            ]
            classes = self._route.dump(wire.dump_classes(ifindex))
        except RequestRefused as problem:
            return problem.refused.code
        found = [answers.read_class(one) for one in classes if one.body[_HANDLE] in _MOVED]
        moved[ifindex] = {one.minor: one.spec for one in found}
        for one in classes:
            if one.body[_HANDLE] not in _MOVED:
                fixed[one.body[_DEVICE_HANDLE]] = _config(one.body)
        return tuple(filters)


def _identity(root: Qdisc) -> tuple[object, ...]:
    """A root without its counters."""
    return root.kind, root.handle, answers.read_our_root(root) if root.kind == "htb" else None


def _queue(body: bytes) -> bytes:
    """A qdisc without its counters: where it is, its kind and its options."""
    end = _KIND.start
    for _ in range(2):
        end += (_LENGTH.unpack_from(body, end)[0] + 3) & ~3
    return body[_PLACE_AT:end]


def _config(body: bytes) -> bytes:
    """A class without its counters."""
    if body[_KIND] != _HTB:
        return body[_ID]
    (length,) = _LENGTH.unpack_from(body, _OPTIONS_AT)
    return body[_ID] + body[_OPTIONS_AT : _OPTIONS_AT + length]
