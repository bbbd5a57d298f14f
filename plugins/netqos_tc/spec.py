"""What the objects that the backend keeps in the kernel are like, as values; which object one is says its key (`keys`).

Desired and observed objects have the same types, so that a plan is a difference of two mappings. Specs hold exactly
the kernel's own units (bytes per second, scheduler ticks), so that a read-back can be compared by value. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from netqos_tc import numbers
from netqos_tc.keys import SetKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSpec:
    """Our root qdisc: HTB with our handle, whose default is the given minor.

    `is_sized`: somebody gave it a size table (stab), so that a packet counts for more or less than it is.
    """

    default_minor: int
    is_sized: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpec:
    """The IFB: its name, whether it is up, the packets that its own queue takes, its MTU, and our mark (its alias).

    `is_hooked`: somebody put a hook for filters on it, where packets may be led astray.
    """

    name: str = numbers.IFB_NAME
    is_up: bool = True
    queue_length: int = 1000
    mtu: int = 65535
    mark: str = numbers.MARK
    is_hooked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectSpec:
    """A filter at the hook that sends packets to `target` (0: to a device that is gone, where they are dropped).

    `is_choosy`: only those that have a class of the ingress tree, else all. `owns_hook`: the hook itself (clsact) was
    made by us, and goes with the filter where nothing else is on it. `more` are other filters that have the same
    preference. A filter with our preference that is not as we make it has target -1. `is_marked`: our mark is on it.
    """

    target: int
    owns_hook: bool
    more: int = 0
    is_choosy: bool = False
    is_marked: bool = True


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


BFIFO = "bfifo"
FQ_CODEL = "fq_codel"


@dataclass(frozen=True, slots=True, kw_only=True)
class FairSpec:
    """What fq_codel has beside its limit: `quantum` in bytes, `target_ticks` in 1024 ns (`queues.codel_ticks`)."""

    flows: int
    quantum: int
    target_ticks: int
    ecn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafQueueSpec:
    """A leaf's queue with a limit in bytes: `bfifo`, or `fq_codel` with `fair`, whose limit is of memory.

    Any other kind is observed with what its limit says, or 0.
    """

    kind: str = BFIFO
    limit: int
    fair: FairSpec | None = None


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
    """A rule as it is recognised: by its chain and comment. The text that made it is `classify`'s.

    `sets` are those of workloads' rules that one in the kernel looks up.
    """

    chain: str
    comment: str
    sets: tuple[str, ...] = field(default=(), compare=False)


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


@lru_cache(maxsize=8192)
def element(minor: int, owner: str) -> ElementSpec:
    """An element; equal ones are one object, so that a difference need not compare them."""
    return ElementSpec(minor=minor, owner=owner)


@lru_cache(maxsize=4096)
def one_class(spec: ClassSpec) -> ClassSpec:
    """The one object that stands for all equal classes."""
    return spec


@lru_cache(maxsize=4096)
def one_queue(spec: LeafQueueSpec) -> LeafQueueSpec:
    """The one object that stands for all equal queues."""
    return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSpec:
    """A set of values; `type` and `values`, as nft writes them, are those that its name stands for: they cannot change.

    The kernel changes nothing of a set that is constant while a rule looks it up.
    """

    type: str = field(default="", compare=False)
    values: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesSpec:
    """A chain of rules of one workload, by their comments (`podrules`), which say what each does.

    `owner` is written at the element that leads to the chain: "" where none does. `texts` are the rules themselves,
    which nobody can read back, and `sets` what they look up, of which the names alone are read back.
    """

    owner: str
    comments: tuple[str, ...]
    texts: tuple[str, ...] = field(default=(), compare=False)
    sets: Mapping[SetKey, SetSpec] = field(default_factory=dict, compare=False)


Spec = (
    LinkSpec
    | RootSpec
    | ClassSpec
    | LeafQueueSpec
    | FilterSpec
    | RedirectSpec
    | TableSpec
    | ElementSpec
    | SetSpec
    | RulesSpec
)
