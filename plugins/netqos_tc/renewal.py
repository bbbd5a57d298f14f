"""What is in the kernel now, from what was there before and two fingerprints: only what differs is read.

A whole inventory of 500 workloads takes several times as long as a fingerprint, which has looked at every object too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from netqos.model.plan import Operation
from netqos_tc import answers, numbers, queues, uapi
from netqos_tc.audit import Auditor, Fingerprint
from netqos_tc.expected import specs_after
from netqos_tc.inventory import Inventory
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    Key,
    LinkKey,
    QueueKey,
    RedirectKey,
    RulesKey,
    SetKey,
    TableKey,
)
from netqos_tc.moves import Steered
from netqos_tc.netmsg import attributes
from netqos_tc.reader import Reader, is_our_root
from netqos_tc.spec import FilterSpec, Spec

_PLACE: Final = struct.Struct("=iIII")  # device, handle, parent and queue's handle in struct tcmsg


class Looker:
    """Looks at all that is ours, and remembers what it has seen."""

    def __init__(self, reader: Reader, auditor: Auditor) -> None:
        """Both stay the caller's."""
        self._reader = reader
        self._auditor = auditor
        self._last: tuple[Fingerprint, Inventory] | None = None
        self._applied: Sequence[Operation] | None = None

    def look(self, devices: frozenset[int]) -> tuple[Fingerprint, Inventory]:
        """An inventory, and a fingerprint that was taken before it."""
        if self._last is None:
            return self._auditor.take(devices), self._reader.inventory()
        before, last = self._last
        now = self._auditor.refresh(before, devices)
        found = renewed(self._reader, last, before, now)
        return now, self._reader.inventory() if found is None else found

    def keep(self, fingerprint: Fingerprint, found: Inventory) -> None:
        """Look only for what differs from this the next time."""
        self._last = fingerprint, found

    def awaits(self, operations: Sequence[Operation] | None) -> None:
        """Plain operations (`expected`) that have succeeded since; None: others, or such as failed."""
        self._applied = operations

    def as_awaited(
        self, devices: frozenset[int], own_hooks: frozenset[int], steered: Mapping[int, Steered]
    ) -> Fingerprint | None:
        """The fingerprint of now, where they have left just what they should and nobody else anything."""
        if self._applied is None or self._last is None:
            return None
        before, last = self._last
        now = self._auditor.refresh(before, devices)
        found = renewed(self._reader, last, before, now)
        if found is None:
            return None
        found.leave_to_others(own_hooks)
        wanted = specs_after(last.specs, self._applied)
        for ifindex, met in now.moved.items():
            if ifindex in steered and steered[ifindex].may_leave(met):
                wanted |= {ClassKey(ifindex, minor): spec for minor, spec in met.items()}
        return now if found.specs == wanted else None


def renewed(reader: Reader, last: Inventory, before: Fingerprint, now: Fingerprint) -> Inventory | None:
    """The inventory at `now`; `last` is that at `before`. None where all has to be read: more than classes, queues and
    the table differs, or filters are as we never make them.
    """
    if not now.is_alike(before) or any(
        isinstance(one, FilterSpec) and one.more for one in last.specs.values()
    ):
        return None
    found = Inventory(specs=dict(last.specs), names=last.names)
    if not (
        _renew_places(reader, found, last, now)
        and _renew_classes(found.specs, before, now)
        and _renew_moved(found.specs, before, now)
    ):
        return None
    _renew_queues(found.specs, before, now)
    if now.table != before.table:
        for key in [key for key in found.specs if isinstance(key, TableKey | ElementKey | SetKey | RulesKey)]:
            del found.specs[key]
        found.names = None
        found.specs.update(reader.table.specs())
    return found


def _renew_places(reader: Reader, found: Inventory, last: Inventory, now: Fingerprint) -> bool:
    """Devices, hooks and roots; False where our trees are on other devices than before."""
    found.specs.pop(LinkKey(numbers.IFB_INDEX), None)
    for ifindex in last.hooks:
        found.specs.pop(RedirectKey(ifindex), None)
    qdiscs = [answers.read_qdisc(message) for message in now.others]
    reader.add_places(found, qdiscs)
    for root in filter(is_our_root, qdiscs):
        link = reader.link(root.ifindex)
        if link is not None:
            found.links[root.ifindex] = link
            found.direct_packets[root.ifindex] = answers.read_direct_packets(root.options)
    return found.links.keys() == last.links.keys() and found.foreign_ifb == last.foreign_ifb


def _renew_classes(specs: dict[Key, Spec], before: Fingerprint, now: Fingerprint) -> bool:
    """False where a class with a number of ours is none of HTB."""
    known = before.classes
    for place in known.keys() - now.classes.keys():
        specs.pop(_class_key(known[place]), None)
    for place, config in now.classes.items():
        if known.get(place) == config:
            continue
        ifindex, handle, parent, _queue = _PLACE.unpack_from(config)
        kind = numbers.kind_on(ifindex)
        if numbers.major_of(handle) != kind.major:
            continue
        if len(config) == _PLACE.size:
            return False
        options = config[_PLACE.size + 4 :]
        parent = kind.root if parent == numbers.PARENT_ROOT else parent
        minor = numbers.minor_of(handle)
        specs[ClassKey(ifindex, minor)] = answers.read_htb_options(options, parent=parent, minor=minor)
    return True


def _renew_moved(specs: dict[Key, Spec], before: Fingerprint, now: Fingerprint) -> bool:
    """What the fast loop moves; False where one of them went or came."""
    for ifindex, met in now.moved.items():
        if met.keys() != before.moved[ifindex].keys():
            return False
        for minor, spec in met.items():
            specs[ClassKey(ifindex, minor)] = spec
    return True


def _renew_queues(specs: dict[Key, Spec], before: Fingerprint, now: Fingerprint) -> None:
    known = before.queues
    for place in known.keys() - now.queues.keys():
        specs.pop(_queue_key(known[place]), None)
    for place, config in now.queues.items():
        if known.get(place) == config:
            continue
        key = _queue_key(config)
        if ClassKey(*key[:2]) in specs and key.minor not in numbers.INNER:
            parts = attributes(config, _PLACE.size)
            kind = parts.get(uapi.KIND, b"").rstrip(b"\0").decode(errors="replace")
            specs[key] = queues.read(kind, bytes(parts.get(uapi.OPTIONS, b"")))


def _class_key(config: bytes) -> ClassKey:
    ifindex, handle, _parent, _queue = _PLACE.unpack_from(config)
    return ClassKey(ifindex, numbers.minor_of(handle))


def _queue_key(config: bytes) -> QueueKey:
    ifindex, _handle, parent, _info = _PLACE.unpack_from(config)
    return QueueKey(ifindex, numbers.minor_of(parent))
