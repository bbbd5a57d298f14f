"""Which object of the kernel one is: the keys under which the backend keeps what it wants and what it finds. Pure.

They are named tuples, which the interpreter hashes and compares by itself: a plan for 500 workloads looks some 20,000
of them up. Their `tag` tells two kinds with equal numbers apart.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from netqos.model.levels import Direction


class RootKey(NamedTuple):
    """The root qdisc of one device."""

    ifindex: int
    tag: str = "root"


class ClassKey(NamedTuple):
    """A class of our tree on one device, by its minor."""

    ifindex: int
    minor: int
    tag: str = "class"


class QueueKey(NamedTuple):
    """The queue in a leaf class, by the class's minor."""

    ifindex: int
    minor: int
    tag: str = "queue"


class FilterKey(NamedTuple):
    """The filters of one preference in our tree; `minor` of the class on which they are, 0: on the root."""

    ifindex: int
    preference: int
    minor: int = 0
    chain: int = 0
    tag: str = "filter"


class LinkKey(NamedTuple):
    """A device of our own: the IFB."""

    ifindex: int
    tag: str = "link"


class RedirectKey(NamedTuple):
    """What leads the packets that a device sends to the IFB first: our filter at its egress hook."""

    ifindex: int
    tag: str = "redirect"


class TableKey(NamedTuple):
    """The nft table of this network namespace."""

    tag: str = "table"


class ElementMap(enum.Enum):
    """The maps of our table whose elements name workloads.

    `direction` says in which trees the classes are that its elements lead to; `depth` is that of the cgroups that it
    holds, None for a map of addresses. NC is no map of nft: folders of cgroup v1 whose `net_cls.classid` is ours.
    """

    direction: Direction
    depth: int | None

    TX4 = "tx4"
    TX6 = "tx6"
    RX4 = "rx4"
    RX6 = "rx6"
    CG1 = "cg1"
    CG2 = "cg2"
    CG3 = "cg3"
    CG4 = "cg4"
    CG5 = "cg5"
    CG6 = "cg6"
    NC = "nc"

    def __init__(self, name: str) -> None:
        """`name` is the map's."""
        self.direction = Direction.RX if name.startswith("rx") else Direction.TX
        self.depth = int(name[2:]) if name.startswith("cg") else None

    # Of members there is one each; Enum's own is a call into Python for each look-up.
    __hash__ = object.__hash__


ADDRESS_MAPS = {
    (Direction.TX, 4): ElementMap.TX4,
    (Direction.TX, 6): ElementMap.TX6,
    (Direction.RX, 4): ElementMap.RX4,
    (Direction.RX, 6): ElementMap.RX6,
}
"""The maps of addresses, by direction and version."""

CGROUP_MAPS = {one.depth: one for one in ElementMap if one.depth is not None}


class ElementKey(NamedTuple):
    """An element of a map: the text of an address, or the id of a cgroup."""

    map: ElementMap
    value: str | int
    tag: str = "element"


class SetKey(NamedTuple):
    """A set of values that rules look up; its name says which values (`podrules`)."""

    name: str
    tag: str = "set"


class RulesKey(NamedTuple):
    """The rules of one workload in one direction: their chain, and what leads to it, by the workload's leaf."""

    direction: Direction
    minor: int
    tag: str = "rules"


Key = (
    LinkKey
    | RootKey
    | ClassKey
    | QueueKey
    | FilterKey
    | RedirectKey
    | TableKey
    | ElementKey
    | SetKey
    | RulesKey
)
