"""The counters of a pod as they were when it was last explained, so that the next answer says what moved since.

Whoever asked last is not told apart: two people that look at one pod shorten each other's span, which is given.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from netqos.backend import LeafCounters
from netqos.model.ids import PodUid

MOST: Final = 256
"""Pods that are remembered; of more, those that nobody asked for the longest are forgotten."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was read, and when (monotonic)."""

    at_s: float
    counters: tuple[LeafCounters, ...]

    @classmethod
    def of(cls, at_s: float, counters: Iterable[LeafCounters]) -> Look:
        """Without the ways, which would keep alive all that was observed then."""
        return cls(at_s, tuple(replace(one, way=None) for one in counters))

    def before(self, now: LeafCounters) -> LeafCounters | None:
        """The same counter then; None where there was none, or it has begun anew since."""
        found = next((one for one in self.counters if one.where == now.where), None)
        is_older = found is not None and (found.sent_packets, found.drops) <= (now.sent_packets, now.drops)
        return found if is_older else None


class LastLooks:
    """The last look at each pod."""

    def __init__(self) -> None:
        """Nobody has looked yet."""
        self._looks: OrderedDict[PodUid, Look] = OrderedDict()

    def turn(self, uid: PodUid, look: Look) -> Look | None:
        """Keep a look; the one before it, None for the first."""
        before = self._looks.pop(uid, None)
        self._looks[uid] = look
        if len(self._looks) > MOST:
            self._looks.popitem(last=False)
        return before
