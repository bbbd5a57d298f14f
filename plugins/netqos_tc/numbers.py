"""The numbers of our objects in the kernel. They are a contract with every earlier and later version: never reuse one.

A handle is `major << 16 | minor`. The uplinks' trees have the major 4e51, the ingress tree of a later step 4e52.
"""

from __future__ import annotations

from typing import Final

from netqos.model.levels import Level

MAJOR: Final = 0x4E51
INGRESS_MAJOR: Final = 0x4E52
ROOT: Final = MAJOR << 16

TOTAL: Final = 0x1
LEVELS: Final = {Level.L0: 0x10, Level.L1: 0x11, Level.L2: 0x12}
CONTROL: Final = 0xC
"""Leaf under the total: frames that pass no nft (ARP, LLDP, LACP) and packets without a source address."""

CRITICAL: Final = 0x10E
"""Leaf under L0: the units that keep the node reachable (sshd, kubelet, the container runtime, netqosd)."""

HOST: Final = 0x10F
"""Leaf under L0: everything else that the node itself sends."""

UNKNOWN: Final = 0x11F
"""Leaf under L1 and HTB's default. The default of an existing root cannot be changed, so this one is for ever."""

L0: Final = LEVELS[Level.L0]
INNER: Final = frozenset({TOTAL, *LEVELS.values()})
FIXED: Final = frozenset({*INNER, CONTROL, CRITICAL, HOST, UNKNOWN})

FIRST_POD: Final = 0x1000
LAST_POD: Final = 0xFFFE
PARENT_ROOT: Final = 0xFFFFFFFF
"""TC_H_ROOT: a device as the parent of its root, and how the kernel dumps a class directly under the root."""


def class_id(minor: int) -> int:
    """The full id of one of our classes."""
    return ROOT | minor


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
