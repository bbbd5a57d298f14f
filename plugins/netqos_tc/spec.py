"""What the backend keeps in the kernel, as values: a key says which object, a spec what it is like.

Desired and observed objects have the same types, so that a plan is a difference of two mappings. Specs hold exactly
the kernel's own units (bytes per second, scheduler ticks), so that a read-back can be compared by value.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class RootKey:
    """The root qdisc of one device."""

    ifindex: int


@dataclass(frozen=True, slots=True, order=True)
class ClassKey:
    """A class of our tree on one device, by its minor."""

    ifindex: int
    minor: int


@dataclass(frozen=True, slots=True, order=True)
class QueueKey:
    """The queue in a leaf class, by the class's minor."""

    ifindex: int
    minor: int


@dataclass(frozen=True, slots=True, order=True)
class FilterKey:
    """The filters of one preference in our tree; `minor` of the class on which they are, 0: on the root."""

    ifindex: int
    preference: int
    minor: int = 0
    chain: int = 0


@dataclass(frozen=True, slots=True, order=True)
class TableKey:
    """The nft table of this network namespace."""


class ElementMap(enum.Enum):
    """The maps of our table whose elements name workloads."""

    TX4 = "tx4"
    TX6 = "tx6"
    CG1 = "cg1"
    CG2 = "cg2"
    CG3 = "cg3"
    CG4 = "cg4"
    CG5 = "cg5"
    CG6 = "cg6"

    @property
    def depth(self) -> int | None:
        """The depth of the cgroups that it holds, None for a map of addresses."""
        return int(self.value[2:]) if self.value.startswith("cg") else None


CGROUP_MAPS = {one.depth: one for one in ElementMap if one.depth is not None}


@dataclass(frozen=True, slots=True)
class ElementKey:
    """An element of a map: the text of an address, or the id of a cgroup."""

    map: ElementMap
    value: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSpec:
    """Our root qdisc: HTB with our handle, whose default is the given minor."""

    default_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpec:
    """An HTB class. Rates are bytes per second, buffers are scheduler ticks of 64 ns (`params.burst_ticks`).

    `prio` and `quantum` are None for inner classes, where the kernel ignores them and keeps whatever it was given
    while the class was a leaf.
    """

    parent: int
    rate: int
    ceil: int
    buffer: int
    cbuffer: int
    prio: int | None
    quantum: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafQueueSpec:
    """A leaf's queue: `bfifo` with a limit in bytes. Any other kind is observed with what its limit says, or 0."""

    kind: str = "bfifo"
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class U32Match:
    """One 32-bit comparison of cls_u32: `value` under `mask` at `offset` bytes from the network header."""

    value: int
    mask: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec:
    """A u32 filter: frames of `protocol` (an Ethernet protocol number) that match go to `minor`.

    Anything else with that preference is observed too: another `kind`, or `more` filters than one; nothing is known
    of those but that they are there.
    """

    protocol: int
    matches: tuple[U32Match, ...]
    minor: int
    kind: str = "u32"
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpec:
    """A rule as it is recognised: by its chain and comment. The text that made it is `classify`'s."""

    chain: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSpec:
    """A chain: its hook, by number, priority and policy, each -1 where it has none. NF_ACCEPT is 1."""

    name: str
    hook: int
    priority: int
    policy: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """The nft table without its elements: maps by name, chains, and all rules in their order, chain by chain.

    A `dormant` table does nothing.
    """

    maps: frozenset[str]
    chains: frozenset[ChainSpec]
    rules: tuple[RuleSpec, ...]
    dormant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementSpec:
    """An element's class and its owner: a pod's UID, as `classify.owner_of` writes it."""

    minor: int
    owner: str


Key = RootKey | ClassKey | QueueKey | FilterKey | TableKey | ElementKey
Spec = RootSpec | ClassSpec | LeafQueueSpec | FilterSpec | TableSpec | ElementSpec
