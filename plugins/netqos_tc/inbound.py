"""Packets that come from outside for a workload and have no class of the ingress tree, or that of nobody.

They are asked for where all rules are behind them, at the end of `postrouting`: what has no class of the ingress tree
is not led to the IFB, and nothing of the tree's tells of it. Each packet that the node forwards meets the chain, so it
is there for some seconds of each half minute only, and while the tree's unknown leaf counts packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netqos_tc import numbers
from netqos_tc.strays import Place

BESIDE: Final = "beside"
"""Destinations of packets that have no class of the ingress tree: they are not led to the IFB."""

UNKNOWN: Final = "unknown"
"""Destinations of packets that are in the ingress tree's unknown leaf."""

_INET: Final = 1
_BEHIND_ALL: Final = 350
_SETS: Final = {(kind, version): f"{kind}{version}" for kind in (BESIDE, UNKNOWN) for version in (4, 6)}
_DESTINATIONS: Final = {4: "ip daddr", 6: "ip6 daddr"}
_CONDITIONS: Final = {
    BESIDE: f"meta priority & 0xffff0000 != 0x{numbers.KINDS.rx.root:08x}",
    UNKNOWN: f"meta priority {numbers.text(numbers.KINDS.rx.class_id(numbers.UNKNOWN))}",
}


def _lines(table: str, devices: Mapping[int, str]) -> list[str]:
    """What comes in by these devices and leaves by another."""
    uplinks = ", ".join(map(str, sorted(devices)))
    base = f"type filter hook postrouting priority {_BEHIND_ALL}; policy accept;"
    comes = f"add rule inet {table} late iif {{ {uplinks} }} oif != {{ {uplinks} }}"
    return [
        f"add chain inet {table} late {{ {base} }}",
        *(
            f"{comes} {_CONDITIONS[kind]} update @{name} {{ {_DESTINATIONS[version]} }}"
            for (kind, version), name in _SETS.items()
        ),
    ]


INBOUND: Final = Place(word="inet", family=_INET, sets=_SETS, lines=_lines)
