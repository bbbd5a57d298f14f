"""What is remembered of the ticks: how late they were, how long they took, and what was decided.

Everything has a fixed size, so that a loop that runs for months does not grow.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from netqos.engine.why import Ground, Reasoned, why
from netqos.model.traffic import Decision, Unit

T = TypeVar("T")

REMEMBERED_TICKS = 4096
REMEMBERED_DECISIONS = 2000
"""Of each unit: forty seconds of a change with every tick, half an hour of a quiet one; 1.4 KiB each."""

REMEMBERED_UNITS = 16
"""More are of devices that come and go; the one that was heard of least recently is forgotten."""

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
    """Decisions that changed a ceiling or began or ended contention, and one a second in between, with their reasons.

    Reasons are worked out when a decision is kept: it may need what only the next tick overwrites.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._kept: dict[Unit, deque[Reasoned]] = {}
        self._contention_s: dict[Unit, float] = {}

    def add(self, decided: tuple[Ground, ...]) -> None:
        """Remember a tick's decisions; those of a unit that is not steered any more stay."""
        for ground in decided:
            decision = ground.decision
            if decision.contention:
                spent_s = self._contention_s.get(decision.unit, 0.0)
                self._contention_s[decision.unit] = spent_s + decision.elapsed_s
            kept = self._kept.get(decision.unit)
            if kept is None or _is_news(decision, kept[-1].decision):
                self._keep(ground)

    def decisions(self) -> tuple[Reasoned, ...]:
        """The remembered decisions, oldest first."""
        kept = [one for of_unit in _snapshot(self._kept.values()) for one in _snapshot(of_unit)]
        return tuple(sorted(kept, key=lambda one: one.decision.at_s))

    def contention_s(self) -> dict[Unit, float]:
        """Seconds in contention by unit since the start."""
        return self._contention_s.copy()

    def _keep(self, ground: Ground) -> None:
        unit = ground.decision.unit
        if unit not in self._kept:
            while len(self._kept) >= REMEMBERED_UNITS:
                del self._kept[min(self._kept, key=lambda one: self._kept[one][-1].decision.at_s)]
            self._kept[unit] = deque(maxlen=REMEMBERED_DECISIONS)
        self._kept[unit].append(Reasoned(ground.decision, why(ground)))


def _snapshot(changing: Iterable[T]) -> tuple[T, ...]:
    """What is in it at one moment, while the loop's thread goes on."""
    while True:
        try:
            return tuple(changing)
        except RuntimeError:  # changed meanwhile
            continue


def _is_news(decision: Decision, last: Decision) -> bool:
    return (
        decision.changed
        or decision.contention is not last.contention
        or decision.at_s - last.at_s >= QUIET_GAP_S
    )
