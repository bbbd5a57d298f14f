"""What receivers report as lost, by the workload's address: counted by nftables, and only while somebody asks.

A receiver that sees a gap says so in each answer until it is filled (TCP's SACK option, RFC 2018). For what workloads
send, those answers arrive by the uplink; for what they receive, they leave by it. They pass the node's forward hook
behind the rewriting of addresses in, and before that in out, so they carry the workload's own address.

The counting is in a table of this process's own socket (`flags owner`, Linux 5.12): it ends with the process, whatever
ends it. It costs nothing while it is not there, which is nearly always. What passes no forward hook (bridges without
br_netfilter, flowtables, eBPF routing, the node's own traffic) and what comes in a tunnel is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from netqos.backend import NftRunner
from netqos.errors import NetqosError
from netqos.model.ids import IfName
from netqos.model.levels import Direction

TABLE: Final = "netqos_losses"
MOST: Final = 8192
_SETS: Final = {Direction.TX: ("tx4", "tx6"), Direction.RX: ("rx4", "rx6")}

Reported = Mapping[Direction, Mapping[str, int]]
"""Answers that report a gap since the counting began, by the workload's address."""

NOTHING_REPORTED: Final[Reported] = {direction: {} for direction in Direction}


class LossCounter:
    """Counts while it is armed. For one thread at a time."""

    def __init__(self, nft: NftRunner) -> None:
        """Nothing is counted yet; the runner keeps one socket, to which the table will belong."""
        self._nft = nft
        self._uplinks: tuple[IfName, ...] = ()
        self.problem: NetqosError | None = None

    @property
    def is_armed(self) -> bool:
        """Whether it counts."""
        return bool(self._uplinks)

    def arm(self, uplinks: Iterable[IfName]) -> bool:
        """Count at these uplinks from now on; False where this node cannot, and `problem` says why."""
        wanted = tuple(sorted(uplinks))
        if wanted == self._uplinks:
            return self.is_armed
        self.disarm()
        try:
            self._nft.run(_ruleset(wanted))
        except NetqosError as problem:
            self.problem = problem
            return False
        self._uplinks, self.problem = wanted, None
        return True

    def disarm(self) -> None:
        """Count no more; no error when the table is gone already."""
        if self._uplinks:
            self._uplinks = ()
            try:
                self._nft.run(f"delete table inet {TABLE}")
            except NetqosError as problem:
                self.problem = problem

    def read(self) -> Reported:
        """What was reported so far; nothing while it does not count, or once the table is gone."""
        if not self._uplinks:
            return NOTHING_REPORTED
        try:
            return {
                direction: {address: count for name in names for address, count in self._elements(name)}
                for direction, names in _SETS.items()
            }
        except NetqosError as problem:
            self._uplinks, self.problem = (), problem
            return NOTHING_REPORTED

    def _elements(self, name: str) -> Iterable[tuple[str, int]]:
        answer = self._nft.query(f"list set inet {TABLE} {name}")
        objects = answer.get("nftables")
        for one in objects if isinstance(objects, list) else []:
            for element in one.get("set", {}).get("elem", []):
                inner = element["elem"]
                yield str(inner["val"]), int(inner["counter"]["packets"])


def _ruleset(uplinks: tuple[IfName, ...]) -> str:
    devices = ", ".join(f'"{name}"' for name in uplinks)
    families = (("4", "ipv4_addr", "ipv4", "ip"), ("6", "ipv6_addr", "ipv6", "ip6"))
    sets = [
        f"  set {way}{suffix} {{ type {kind}; flags dynamic; counter; size {MOST}; }}"
        for suffix, kind, _, _ in families
        for way in ("tx", "rx")
    ]
    rules = [
        f"    {side} {{ {devices} }} meta nfproto {protocol} tcp option sack exists "
        f"add @{way}{suffix} {{ {header} {end} }}"
        for suffix, _, protocol, header in families
        for side, way, end in (("iifname", "tx", "daddr"), ("oifname", "rx", "saddr"))
    ]
    lines = [f"table inet {TABLE} {{", "  flags owner", *sets]
    lines += ["  chain forward {", "    type filter hook forward priority -310", *rules, "  }", "}"]
    return "\n".join(lines) + "\n"
