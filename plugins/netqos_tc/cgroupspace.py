"""Whether nft counts a cgroup's level from where this process sees the tree begin.

A container has a cgroup namespace that begins at its own cgroup; with the host's /sys/fs/cgroup mounted it still sees
the whole tree. Since "netfilter: nft_socket: make cgroupsv2 matching work with namespaces" (Linux 6.11 and stable
branches) a rule's level counts from there, so that nothing above or beside the container can be matched.
Pure.
"""

from __future__ import annotations

from typing import Final

from netqos_tc import classify

DEEPEST: Final = 255
"""The deepest level that the kernel takes, counted from the root (nft_socket_init in net/netfilter/nft_socket.c)."""

_TREES: Final = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
"""Where libnftables and everybody else expects it."""


def begins_below(mountinfo: str) -> bool:
    """Whether this process' cgroup namespace begins below the root of the mounted tree, which reads `/..` then."""
    roots: dict[str, str] = {}
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        words = fields.split(" ")
        if len(words) > 4 and kind.startswith("cgroup2 ") and words[4] in _TREES:
            roots[words[4]] = words[3]
    return any(root.startswith("/..") for root in roots.values())


def probe_text() -> str:
    """A transaction that is refused where levels are shifted: by at least one, the deepest one is too deep then."""
    table = classify.PROBE_TABLE
    rule = f"add rule inet {table} {classify.OUTPUT} socket cgroupv2 level {DEEPEST} 1 accept\n"
    return f"{classify.setup_text(cgroups=False, table=table)}{rule}{classify.removal_text(table)}"
