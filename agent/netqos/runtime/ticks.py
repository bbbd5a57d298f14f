"""What is remembered of the ticks: how late they were, how long they took, and what was decided.

Everything has a fixed size, so that a loop that runs for months does not grow.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass

from netqos.model.traffic import Decision, Unit

REMEMBERED_TICKS = 4096
REMEMBERED_DECISIONS = 6000
QUIET_GAP_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TickFigures:
    """Statistics over the last ticks (`ticks` counts all since the start); seconds."""

    ticks: int
    late_p99_s: float
    late_max_s: float
    took_p99_s: float


class TickStatistics:
    """Lateness and duration of the last `REMEMBERED_TICKS` ticks."""

    def __init__(self) -> None:
        """Start empty."""
        self._late = array("d", bytes(8 * REMEMBERED_TICKS))
        self._took = array("d", bytes(8 * REMEMBERED_TICKS))
        self._ticks = 0

    def add(self, *, late_s: float, took_s: float) -> None:
        """Remember one tick in place of the oldest."""
        place = self._ticks % REMEMBERED_TICKS
        self._late[place] = late_s
        self._took[place] = took_s
        self._ticks += 1

    def figures(self) -> TickFigures:
        """The statistics now."""
        filled = min(self._ticks, REMEMBERED_TICKS)
        late, took = sorted(self._late[:filled]), sorted(self._took[:filled])
        return TickFigures(
            ticks=self._ticks,
            late_p99_s=_percentile(late, 0.99),
            late_max_s=late[-1] if late else 0.0,
            took_p99_s=_percentile(took, 0.99),
        )


def _percentile(ordered: list[float], share: float) -> float:
    """The value that `share` of the ordered values do not exceed (nearest rank); 0 without values."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class DecisionHistory:
    """Decisions that changed a ceiling or began or ended contention, and one a second in between."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: deque[Decision] = deque(maxlen=REMEMBERED_DECISIONS)
        self._last: dict[Unit, Decision] = {}
        self._contention_s: dict[Unit, float] = {}

    def add(self, decisions: tuple[Decision, ...]) -> None:
        """Remember a tick's decisions."""
        for decision in decisions:
            last = self._last.get(decision.unit)
            if decision.contention:
                spent_s = self._contention_s.get(decision.unit, 0.0)
                self._contention_s[decision.unit] = spent_s + decision.elapsed_s
            if last is None or _is_news(decision, last):
                self._kept.append(decision)
                self._last[decision.unit] = decision

    def decisions(self) -> tuple[Decision, ...]:
        """The remembered decisions, oldest first."""
        return tuple(self._kept.copy())

    def contention_s(self) -> dict[Unit, float]:
        """Seconds in contention by unit since the start."""
        return self._contention_s.copy()


def _is_news(decision: Decision, last: Decision) -> bool:
    return (
        decision.changed
        or decision.contention is not last.contention
        or decision.at_s - last.at_s >= QUIET_GAP_S
    )
