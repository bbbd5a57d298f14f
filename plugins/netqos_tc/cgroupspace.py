"""Whether nft counts a cgroup's level from where this process sees the tree begin.

A container has a cgroup namespace that begins at its own cgroup; with the host's /sys/fs/cgroup mounted it still sees
the whole tree. Since "netfilter: nft_socket: make cgroupsv2 matching work with namespaces" (Linux 6.11 and stable
branches) a rule's level counts from how deep that is, and none may be less. But a level says only how deep the cgroup
is, not where: level 0 is every cgroup as deep as the container's own, and the elements name them by their numbers. So
whatever is that deep or deeper is told apart, wherever it is in the tree. Pure.
"""

from __future__ import annotations

from typing import Final

from netqos_tc import classify, tabletext

DEEPEST: Final = 255
"""The deepest level that the kernel takes, counted from the root (nft_socket_init in net/netfilter/nft_socket.c)."""

_TREES: Final = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
"""Where libnftables and everybody else expects it."""


def begins_at(mountinfo: str) -> int:
    """How deep in the mounted tree this process' cgroup namespace begins: its root reads `/..` for each level."""
    roots: dict[str, str] = {}
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        words = fields.split(" ")
        if len(words) > 4 and kind.startswith("cgroup2 ") and words[4] in _TREES:
            roots[words[4]] = words[3]
    return max((root.split("/").count("..") for root in roots.values()), default=0)


def probe_text() -> str:
    """What is refused where levels are shifted: by at least one, the deepest one is too deep then."""
    table = tabletext.PROBE_TABLE
    rule = f"add rule inet {table} {classify.OUTPUT} socket cgroupv2 level {DEEPEST} 1 accept\n"
    return f"{tabletext.setup_text(cgroups=False, table=table)}{rule}"
