"""Reads the kernel's state into an `Inventory`: qdiscs, classes, queues, filters, table, elements. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from netqos_tc import (
    answers,
    hooks,
    numbers,
    queues,
    uapi,
    wire,
)
from netqos_tc.answers import HtbClass, Qdisc
from netqos_tc.hookreader import HookReader
from netqos_tc.inventory import Inventory
from netqos_tc.keys import ClassKey, FilterKey, Key, LinkKey, QueueKey, RedirectKey, RootKey
from netqos_tc.links import Link, read_link
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.netmsg import Message
from netqos_tc.root import Child, Root
from netqos_tc.spec import FilterSpec, LinkSpec, Spec
from netqos_tc.tablereader import TableReader

FILTERED = (0, *sorted(numbers.INNER))
"""The places in our tree, by minor, whose filters packets meet: the root, and classes that are not leaves."""


class Reader:
    """Reads through two channels of one namespace."""

    def __init__(self, route: Channel, netfilter: Channel) -> None:
        """Both channels stay the caller's."""
        self._route = route
        self.table: Final = TableReader(netfilter)
        self.hooks: Final = HookReader(route)

    def inventory(self) -> Inventory:
        """Everything of ours, and the roots that are not ours."""
        found = Inventory()
        qdiscs = [answers.read_qdisc(message) for message in self._route.dump(wire.dump_qdiscs())]
        self.add_places(found, qdiscs)
        for root in qdiscs:
            if is_our_root(root) and (root.ifindex != numbers.IFB_INDEX or found.foreign_ifb is None):
                self._add_tree(found, root, qdiscs)
        found.specs.update(self.table.specs())
        return found

    def add_places(self, found: Inventory, qdiscs: Sequence[Qdisc]) -> None:
        """What trees stand on and what leads to them: the roots that are not ours, our IFB, and hooks."""
        found.roots.update(_foreign_roots(qdiscs))
        self._add_link(found, qdiscs)
        if LinkKey(numbers.IFB_INDEX) not in found.specs:
            self.hooks.forget(None)  # it may have gone a moment ago: then each redirect leads nowhere
        hooked = (one for one in qdiscs if one.ifindex != numbers.IFB_INDEX or found.foreign_ifb is not None)
        for ifindex, (hook, redirect) in self.hooks.read(hooked).items():
            found.hooks[ifindex] = hook
            if redirect is not None:
                found.specs[RedirectKey(ifindex)] = redirect

    def rooted(self) -> frozenset[int]:
        """The devices that have a tree of ours."""
        messages = self._route.dump(wire.dump_qdiscs())
        tops = (one for one in messages if uapi.TCMSG.unpack_from(one.body)[3] == numbers.PARENT_ROOT)
        return frozenset(root.ifindex for root in map(answers.read_qdisc, tops) if is_our_root(root))

    def root_of(self, ifindex: int) -> Root | None:
        """The root of one device that is not ours, as `inventory` gives it."""
        qdiscs = [answers.read_qdisc(message) for message in self._route.dump(wire.dump_qdiscs())]
        return _foreign_roots(one for one in qdiscs if one.ifindex == ifindex).get(ifindex)

    def our_root(self, ifindex: int) -> Qdisc | None:
        """The root of our tree on a device, None where it has none."""
        try:
            found = self._route.find(wire.get_root_of(ifindex))
        except RequestRefused:
            return None
        root = answers.read_qdisc(found) if found is not None else None
        return root if root is not None and is_our_root(root) else None

    def has_our_root(self, ifindex: int) -> bool:
        """Whether a device has a tree of ours."""
        return self.our_root(ifindex) is not None

    def classes(self, ifindex: int) -> list[HtbClass]:
        """The classes of our tree on a device."""
        messages = self._route.dump(wire.dump_classes(ifindex))
        return [answers.read_class(one) for one in messages if answers.is_our_class(one)]

    def our_class(self, ifindex: int, minor: int) -> HtbClass | None:
        """One class of our tree on a device, None where it is not there."""
        try:
            return answers.read_class(self._route.get(wire.get_class(ifindex, minor)))
        except RequestRefused:
            return None

    def own_link(self, *, has_tree: bool) -> LinkSpec | None:
        """Our IFB, None where it is not there or not ours; `has_tree`: our tree is on it."""
        link = self.link(numbers.IFB_INDEX)
        return hooks.read_own_link(link, has_tree=has_tree) if link is not None else None

    def link(self, ifindex: int) -> Link | None:
        """A device, None when it has gone."""
        try:
            return read_link(self._route.get(wire.get_link(ifindex)))
        except RequestRefused:
            return None

    def _add_link(self, found: Inventory, qdiscs: Iterable[Qdisc]) -> None:
        """Our IFB, or what stands in its place by index or by name."""
        link = self.link(numbers.IFB_INDEX)
        if link is not None:
            on_it = [one for one in qdiscs if one.ifindex == link.ifindex]
            has_tree, is_hooked = (
                any(map(is_our_root, on_it)),
                any(one.parent == uapi.CLSACT for one in on_it),
            )
            own = hooks.read_own_link(link, has_tree=has_tree, is_hooked=is_hooked)
            if own is not None:
                found.specs[LinkKey(numbers.IFB_INDEX)] = own
                return
        try:
            link = link or read_link(self._route.get(wire.get_link(0, numbers.IFB_NAME)))
        except RequestRefused:
            return
        found.foreign_ifb = f"there is a device {link.name} (index {link.ifindex})"

    def _add_tree(self, found: Inventory, root: Qdisc, qdiscs: Iterable[Qdisc]) -> None:
        ifindex = root.ifindex
        link = self.link(ifindex)
        if link is None:
            return
        found.links[ifindex] = link
        found.direct_packets[ifindex] = answers.read_direct_packets(root.options)
        found.specs[RootKey(ifindex)] = answers.read_our_root(root)
        for one in self.classes(ifindex):
            found.specs[ClassKey(ifindex, one.minor)] = one.spec
        major = numbers.kind_on(ifindex).major
        for qdisc in qdiscs:
            minor = numbers.minor_of(qdisc.parent)
            is_leafs = qdisc.ifindex == ifindex and numbers.major_of(qdisc.parent) == major
            if is_leafs and ClassKey(ifindex, minor) in found.specs and minor not in numbers.INNER:
                found.specs[QueueKey(ifindex, minor)] = queues.read(qdisc.kind, qdisc.options)
        minors = [key.minor for key in found.specs if isinstance(key, ClassKey) and key.ifindex == ifindex]
        found.specs.update(self._filters(ifindex, minors))

    def _filters(self, ifindex: int, minors: Iterable[int]) -> dict[Key, Spec]:
        """Whatever may send packets elsewhere in our tree: the first of each preference, with how many follow.

        A filter on a leaf does nothing, but with a preference of ours it shows among ours: u32 lists what all places
        in a tree have with one preference in each of them. Then the leaves are looked at too.
        """
        found = self._filters_on(ifindex, FILTERED)
        if any(isinstance(spec, FilterSpec) and spec.more for spec in found.values()):
            found |= self._filters_on(ifindex, [minor for minor in minors if minor not in FILTERED])
        return dict(found)

    def _filters_on(self, ifindex: int, minors: Iterable[int]) -> dict[Key, Spec]:
        found: dict[Key, Spec] = {}
        for minor in minors:
            for message in self._route.dump(wire.dump_filters(ifindex, numbers.class_id(minor, ifindex))):
                chain, preference = answers.filter_chain(message), answers.filter_preference(message)
                key = FilterKey(ifindex, preference, minor=minor, chain=chain)
                spec, met = answers.read_filter(message), found.get(key)
                if isinstance(met, FilterSpec) and spec is not None:
                    found[key] = replace(met, more=met.more + 1)
                elif spec is not None:
                    found[key] = spec
        return found

    def filter_messages(self, ifindex: int) -> list[Message]:
        """The raw messages of the filters on our root and our inner classes."""
        places = [numbers.class_id(minor, ifindex) for minor in FILTERED]
        return [one for place in places for one in self._route.dump(wire.dump_filters(ifindex, place))]


def is_our_root(qdisc: Qdisc) -> bool:
    """Whether it is the root of a tree of ours."""
    ours = numbers.kind_on(qdisc.ifindex).root
    return (qdisc.kind, qdisc.handle, qdisc.parent) == ("htb", ours, numbers.PARENT_ROOT)


def _foreign_roots(qdiscs: Iterable[Qdisc]) -> dict[int, Root]:
    """The roots that are not ours, with what somebody put below them."""
    found: dict[int, Qdisc] = {}
    below: dict[int, list[Child]] = {}
    hooked = set[int]()
    for one in qdiscs:
        if one.parent == numbers.PARENT_ROOT:
            found[one.ifindex] = one
        elif one.parent == uapi.CLSACT and one.kind == "clsact":
            hooked.add(one.ifindex)
        elif one.handle != 0:
            child = Child(parent=one.parent, kind=one.kind, handle=one.handle, options=one.options)
            below.setdefault(one.ifindex, []).append(child)
    return {
        ifindex: Root(
            kind=one.kind,
            handle=one.handle,
            options=one.options,
            children=tuple(below.get(ifindex, ())),
            has_filters=ifindex in hooked,
        )
        for ifindex, one in found.items()
        if not is_our_root(one)
    }
