"""The finding for packets that HTB sent past every class. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netqos.model.health import Finding, error
from netqos_tc import numbers
from netqos_tc.answers import Link

CODE: Final = "direct-packets"
SHOWN_S: Final = 60.0
"""How long the finding is shown after the last of them."""


class DirectPackets:
    """Watches for packets that HTB sent unshaped: its default class was missing, or a process asked for it."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._grown: dict[int, tuple[float, int]] = {}

    def findings(
        self, counts: Mapping[int, int], links: Mapping[int, Link], now_s: float
    ) -> tuple[Finding, ...]:
        """A finding for each device where the count has grown within the last minute, while it was watched."""
        for ifindex, count in counts.items():
            before = self._counts.get(ifindex, count)
            if count > before:
                self._grown[ifindex] = (now_s, count - before)
        self._counts = dict(counts)
        return tuple(
            error(
                CODE,
                links[ifindex].name,
                f"{grown} packets were sent past every class (direct_packets_stat is {counts[ifindex]})",
                hint=f"a program may send raw frames with the priority {numbers.text(numbers.kind_on(ifindex).root)}0; "
                "see which has CAP_NET_RAW",
            )
            for ifindex, (at_s, grown) in self._grown.items()
            if ifindex in counts and now_s - at_s < SHOWN_S
        )
