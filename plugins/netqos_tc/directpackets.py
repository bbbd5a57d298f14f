"""The finding for packets that HTB sent past every class. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netqos.model.health import Finding, error
from netqos_tc import numbers
from netqos_tc.describe import at_least
from netqos_tc.links import Link

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
        """A finding for each device where the count has grown within the last minute, while it was watched.

        It tells all packets since it began.
        """
        self._grown = {
            ifindex: one
            for ifindex, one in self._grown.items()
            if now_s - one[0] < SHOWN_S and ifindex in counts
        }
        for ifindex, count in counts.items():
            before = self._counts.get(ifindex, count)
            if count > before:
                _at_s, told = self._grown.get(ifindex, (now_s, 0))
                self._grown[ifindex] = (now_s, told + count - before)
        self._counts = dict(counts)
        return tuple(
            error(
                CODE,
                links[ifindex].name,
                f"{at_least(grown)} packets were sent past every class (direct_packets_stat of its root qdisc)",
                hint=f"a program may send raw frames with the priority {numbers.text(numbers.kind_on(ifindex).root)}0; "
                "see which has CAP_NET_RAW",
            )
            for ifindex, (_at_s, grown) in self._grown.items()
        )
