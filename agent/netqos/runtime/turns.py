"""Whose turn it is: when each unit of the fast loop is looked at next, and what the last glance at it showed.

Units have absolute due times; a late look is not made up for. Units that are due at almost the same time are looked at
together; those that share a total always are, for the part of one depends on the needs of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set

from netqos.engine.unitstate import LoopPolicy
from netqos.model.traffic import Glance, Unit

TOGETHER_S = 0.01
"""Units that are due so soon after another are looked at with it: one wake-up of the thread costs more than a look."""


class Turns:
    """The due times of all units that are steered."""

    def __init__(self) -> None:
        """Nobody is due."""
        self._glances: dict[Unit, Glance] = {}
        self._resting: set[Unit] = set()
        self._due_s: dict[Unit, float] = {}
        self._sample_s: dict[Unit, float] = {}
        self._with: dict[Unit, tuple[Unit, ...]] = {}

    def begin(self, policies: Mapping[Unit, LoopPolicy], now_s: float) -> None:
        """Everybody is due now, for a sample; what was known of earlier units is forgotten."""
        self._glances, self._resting = {}, set()
        self._due_s = dict.fromkeys(policies, now_s)
        self._sample_s = dict.fromkeys(policies, now_s)
        self._with = {unit: tuple(_sharers(unit, policies)) for unit in policies}

    @property
    def next_s(self) -> float:
        """When the next unit is due; infinity where there is none."""
        return min(self._due_s.values(), default=math.inf)

    def due(self, now_s: float) -> Sequence[Unit]:
        """The units whose turn has come, with those that share a total with them."""
        soon_s = now_s + TOGETHER_S
        if self.next_s > now_s:
            return ()
        found = [
            other for unit, due_s in self._due_s.items() if due_s <= soon_s for other in self._with[unit]
        ]
        return tuple(dict.fromkeys(found))

    def is_sample_due(self, unit: Unit, now_s: float) -> bool:
        """Whether a unit has rested long enough."""
        return self._sample_s[unit] <= now_s + TOGETHER_S

    def sampled(self, units: Iterable[Unit], rested_s: float) -> None:
        """These were sampled, and may rest until then."""
        self._sample_s |= dict.fromkeys(units, rested_s)

    def glanced(self, glance: Glance) -> Glance | None:
        """Keep a glance; the one before, None where there is none to compare it with."""
        before = self._glances.get(glance.unit)
        self._glances[glance.unit] = glance
        return before

    def altogether(self, units: set[Unit]) -> set[Unit]:
        """Those of the units with which all are among them that share a total with them."""
        return {unit for unit in units if units.issuperset(self._with[unit])}

    def rest(self, units: Iterable[Unit], quiet: Set[Unit]) -> set[Unit]:
        """Let those of the units rest that are quiet; those that have rested and do not any more."""
        woken = {unit for unit in units if unit in self._resting and unit not in quiet}
        self._resting = (self._resting | quiet) - woken
        return woken

    def put_off(self, unit: Unit, due_s: float, now_s: float, interval_s: float) -> None:
        """The unit's next turn: an interval after its last one, or after now where that has passed.

        One that was looked at before its turn, with those due at `due_s`, keeps its own times.
        """
        next_s = min(self._due_s[unit], due_s + TOGETHER_S) + interval_s
        self._due_s[unit] = next_s if next_s >= now_s else now_s + interval_s


def _sharers(unit: Unit, policies: Mapping[Unit, LoopPolicy]) -> list[Unit]:
    if not policies[unit].is_shared:
        return [unit]
    return [
        other for other, policy in policies.items() if policy.is_shared and other.direction is unit.direction
    ]
