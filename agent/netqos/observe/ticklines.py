"""The lines of the stream. Each is made once, however many read it; reasons cost more than all the rest of a tick."""

from __future__ import annotations

from netqos.engine.why import Ground, Reasoned, why
from netqos.host.clock import Clock
from netqos.observe import wire
from netqos.observe.decisionparts import decision
from netqos.observe.moment import Moment
from netqos.observe.view import Numbered

KEPT = 512


class TickLines:
    """Makes lines of ticks, and keeps the newest for those who read a little later."""

    def __init__(self, clock: Clock) -> None:
        """Nothing is made yet."""
        self._clock = clock
        self._made: dict[int, bytes] = {}

    def line(self, tick: Numbered[Ground], *, missed: int = 0) -> bytes:
        """One line; `missed` before it is told to the one reader who did."""
        if missed:
            return self._make(tick.item, missed)
        found = self._made.get(tick.number)
        if found is None:
            found = self._made[tick.number] = self._make(tick.item, 0)
            if len(self._made) > KEPT:
                del self._made[next(iter(self._made))]
        return found

    def _make(self, ground: Ground, missed: int) -> bytes:
        reasoned = Reasoned(ground.decision, why(ground))
        return wire.encode(decision(reasoned, Moment.now(self._clock), missed=missed)) + b"\n"
