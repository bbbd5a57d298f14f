"""The counters of workloads' leaves: one dump of classes for each tree, of which nothing but four numbers is taken.

They are asked for twice a second while the path behind an uplink is watched for losses, with hundreds of leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from netqos.backend import LeafCounters, PacketWay
from netqos.model.ids import IfName, PodUid
from netqos_tc import answers, counts, numbers, uapi, wire
from netqos_tc.netlink import Channel
from netqos_tc.netmsg import Message
from netqos_tc.observed import TcObserved
from netqos_tc.paths import Ways
from netqos_tc.register import item_in, names_of, owner_in


class _Leaf(NamedTuple):
    """Whose a leaf is; `item` is the rule inside the workload that it belongs to, None for the rest."""

    uid: PodUid
    owner: str
    item: int | None


class LeafCounts:
    """Of the leaves that were observed, on the devices that have a tree."""

    def __init__(self, observed: TcObserved, uplinks: tuple[int, ...], uids: Mapping[str, PodUid]) -> None:
        """`uplinks` by index; `uids` by the names of owners."""
        self._ways = Ways(observed, uplinks)
        self._leaves = {
            minor: _Leaf(uids.get(owner_in(name), PodUid(owner_in(name))), owner_in(name), item_in(name))
            for name, minor in names_of(observed.specs).items()
            if numbers.is_pod_minor(minor)
        }

    def read(self, route: Channel, trees: Mapping[int, IfName]) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """By workload, in the order of the kernel's answers; `trees` are the devices that have one, by index."""
        found: dict[PodUid, list[LeafCounters]] = {}
        for ifindex, device in trees.items():
            major = numbers.kind_on(ifindex).major
            for message in route.dump(wire.dump_classes(ifindex)):
                _family, _index, handle, _parent, _info = uapi.TCMSG.unpack_from(message.body)
                leaf = self._leaves.get(numbers.minor_of(handle))
                if leaf is not None and numbers.major_of(handle) == major:
                    found.setdefault(leaf.uid, []).append(self._counters(message, device, leaf))
        return {uid: tuple(counters) for uid, counters in found.items()}

    def _counters(self, message: Message, device: IfName, leaf: _Leaf) -> LeafCounters:
        _family, ifindex, handle, _parent, _info = uapi.TCMSG.unpack_from(message.body)
        sent_bytes, sent_packets, drops, backlog_bytes = counts.leaf(message.body)

        def way() -> PacketWay:
            return self._ways.way(answers.read_class(message), device, leaf.owner, leaf.item)

        return LeafCounters(
            direction=numbers.kind_on(ifindex).direction,
            sent_bytes=sent_bytes,
            sent_packets=sent_packets,
            drops=drops,
            backlog_bytes=backlog_bytes,
            where=f"class {numbers.text(handle)} on {device}",
            rule=leaf.item,
            way=way,
        )
