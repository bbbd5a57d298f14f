"""Workloads of which packets leave without their class: which suspicion becomes a finding, and when it ends.

Pure but for its memory; what was counted is `strays`' to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from netqos.model.health import Finding, warning
from netqos.model.levels import Direction
from netqos_tc.describe import at_least
from netqos_tc.inbound import BESIDE, UNKNOWN
from netqos_tc.keys import ADDRESS_MAPS, ElementKey
from netqos_tc.spec import ElementSpec
from netqos_tc.strays import OUTSIDE, PAST, Stray

SUSPECT_PACKETS: Final = 10
"""Of one workload between two looks: a packet or two are those of a workload that has just come or gone."""

RAISE_AFTER: Final = 2
SHOWN_S: Final = 30.0

EGRESS: Final = frozenset({PAST, OUTSIDE})

_REASONS: Final = {
    BESIDE: "somebody took their class away behind our rules, and nothing of the ingress tree met them",
    UNKNOWN: "its element was missing, and they ran in the unknown leaf of L1",
    PAST: "no rule of ours met them, or somebody took their class away",
    OUTSIDE: "they came in by another device than the one behind which it is, or its element was missing",
}
_HINTS: Final = {
    BESIDE: "look for a rule behind ours that sets the priority (`nft list ruleset`)",
    UNKNOWN: "see who changes the table `inet netqos` (`nft monitor`)",
    PAST: "look for a rule behind ours that sets the priority (`nft list ruleset`), a flowtable (`nft list "
    "flowtables`), or a program on the node that sends frames of its own (`ss -0 -p`)",
    OUTSIDE: "another workload may forge its address (CAP_NET_RAW), or it has a second way out that the node's routes "
    "do not know",
}


@dataclass(slots=True)
class _Suspicion:
    """One workload and one reason: looks in a row in which it grew, all packets of these, and when it was told last."""

    looks: int = 0
    packets: int = 0
    told_s: float | None = None


class Claims:
    """Which workloads have packets without their class, over time. Pure but for its memory."""

    def __init__(self) -> None:
        """Nobody is suspected."""
        self._suspected: dict[tuple[str, str], _Suspicion] = {}

    def saw(self, strays: Iterable[tuple[str, Stray]], now_s: float) -> None:
        """One look: each stray with the workload that claims it."""
        grown: dict[tuple[str, str], int] = {}
        for name, one in strays:
            grown[name, one.kind] = grown.get((name, one.kind), 0) + one.packets
        for key in {*self._suspected, *grown}:
            self._note(key, grown.get(key, 0), now_s)

    def findings(self) -> tuple[Finding, ...]:
        """A finding for each workload and reason."""
        told = sorted(key for key, one in self._suspected.items() if one.told_s is not None)
        return tuple(_claimed(name, kind, self._suspected[name, kind].packets) for name, kind in told)

    def _note(self, key: tuple[str, str], packets: int, now_s: float) -> None:
        one = self._suspected.setdefault(key, _Suspicion())
        if packets >= SUSPECT_PACKETS:
            one.looks += 1
            one.packets += packets
            if one.looks >= RAISE_AFTER:
                one.told_s = now_s
            return
        one.looks = 0
        if one.told_s is None or now_s - one.told_s >= SHOWN_S:
            del self._suspected[key]


def claimed_by(
    elements: Mapping[ElementKey, ElementSpec], names: Mapping[str, str], way: Direction = Direction.TX
) -> dict[str, str]:
    """The name of the workload that sends from each address, or receives at it."""
    maps = (ADDRESS_MAPS[way, 4], ADDRESS_MAPS[way, 6])
    return {
        str(key.value): names[spec.owner]
        for key, spec in elements.items()
        if key.map in maps and spec.owner in names
    }


def _claimed(name: str, kind: str, packets: int) -> Finding:
    is_out = kind in EGRESS
    what = (
        "from its address left by the unknown leaf of L1"
        if is_out
        else "to its address came without its class"
    )
    return warning(
        "claimed-unclassed" if is_out else "claimed-unclassed-ingress",
        f"pod {name}",
        f"{at_least(packets)} packets {what}: {_REASONS[kind]}; they are not held to its level nor to its limit",
        hint=_HINTS[kind],
    )
