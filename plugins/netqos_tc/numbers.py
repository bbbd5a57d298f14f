"""The numbers of our objects in the kernel. They are a contract with every earlier and later version: never reuse one.

A handle is `major << 16 | minor`. Each uplink has a tree of the major 4e51; the node's one IFB has the ingress tree,
4e52. The minors mean the same in both: an owner's leaf has one number in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from netqos.model.levels import Direction, Level, PerDirection

MAJOR: Final = 0x4E51
INGRESS_MAJOR: Final = 0x4E52
ROOT: Final = MAJOR << 16
OURS_MASK: Final = 0xFFFC0000
OURS: Final = 0x4E500000
"""A priority under this mask with this value has one of our majors (4e50 to 4e53, of which two are in use)."""

IFB_INDEX: Final = 0x4E520000
"""The IFB has an index of its own choice, far above any that the kernel gives (which it does not disturb, measured on
6.18: the counter moves only when the kernel chooses), so that all that stands on it can be planned before it is there.
"""

IFB_NAME: Final = "netqos-ifb"
MARK: Final = "netqos"
"""The IFB's alias."""

HOOK_PREFERENCE: Final = 0xFE52
"""Our redirect's preference among the filters of a device's egress hook: behind all that chose none (from 0xc000
down) and those of other agents (small numbers), since what is redirected meets no filter behind.
"""

TOTAL: Final = 0x1
LEVELS: Final = {Level.L0: 0x10, Level.L1: 0x11, Level.L2: 0x12}
CONTROL: Final = 0xC
"""Leaf under the total: frames that pass no nft (ARP, LLDP, LACP) and packets without a source address."""

LOCAL: Final = 0xE
"""Leaf beside the total on the IFB, and HTB's default there: what never left the node, without a limit."""

CRITICAL: Final = 0x10E
"""Leaf under L0: the units that keep the node reachable (sshd, kubelet, the container runtime, netqosd)."""

HOST: Final = 0x10F
"""Leaf under L0: everything else that the node itself sends."""

UNKNOWN: Final = 0x11F
"""Leaf under L1, on uplinks HTB's default. A default cannot be changed in an existing root, so it is for ever."""

L0: Final = LEVELS[Level.L0]
INNER: Final = frozenset({TOTAL, *LEVELS.values()})

FIRST_POD: Final = 0x1000
LAST_POD: Final = 0xFFFE
PARENT_ROOT: Final = 0xFFFFFFFF
"""TC_H_ROOT: a device as the parent of its root, and how the kernel dumps a class directly under the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeKind:
    """What the trees of one direction have in common. `fixed` are the classes that each has, whatever it shapes."""

    direction: Direction
    major: int
    default_minor: int
    fixed: frozenset[int]

    @property
    def root(self) -> int:
        """The root's handle."""
        return self.major << 16

    def class_id(self, minor: int) -> int:
        """The full id of a class."""
        return self.root | minor


KINDS: Final = PerDirection(
    tx=TreeKind(
        direction=Direction.TX,
        major=MAJOR,
        default_minor=UNKNOWN,
        fixed=frozenset({*INNER, CONTROL, CRITICAL, HOST, UNKNOWN}),
    ),
    rx=TreeKind(
        direction=Direction.RX,
        major=INGRESS_MAJOR,
        default_minor=LOCAL,
        fixed=frozenset({*INNER, LOCAL, UNKNOWN}),
    ),
)
FIXED: Final = KINDS.tx.fixed | KINDS.rx.fixed


def kind_on(ifindex: int) -> TreeKind:
    """The kind of tree that a device of ours has or may get: ingress on the IFB, egress on all others."""
    return KINDS.rx if ifindex == IFB_INDEX else KINDS.tx


def class_id(minor: int, ifindex: int = 0) -> int:
    """The full id of one of our classes on a device; without one, on an uplink."""
    return kind_on(ifindex).class_id(minor)


def minor_of(handle: int) -> int:
    """The lower half of a handle."""
    return handle & 0xFFFF


def major_of(handle: int) -> int:
    """The upper half of a handle."""
    return handle >> 16


def is_pod_minor(minor: int) -> bool:
    """Whether a minor is one that pods' leaves get."""
    return FIRST_POD <= minor <= LAST_POD


def text(handle: int) -> str:
    """As tc writes it: `4e51:1001`; a root's handle is `4e51:`."""
    major, minor = handle >> 16, handle & 0xFFFF
    return f"{major:x}:{minor:x}" if minor else f"{major:x}:"
