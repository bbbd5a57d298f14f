"""How soon a unit of the fast loop is looked at again, and whether a glance at it is enough. Pure.

A glance is one counter, read at the loop's usual interval for a tenth of what a sample and a step cost. While what it
shows is so little that no step could begin contention, samples are taken only at a resting unit's interval. The first
glance that shows more is followed by a sample at once, and by the next one after the short interval, since the first
tells the mean of all of the rest. So contention is noticed at most one short interval later than if every look had been
a sample.
"""

from __future__ import annotations

from netqos.engine.unitstate import LoopPolicy, UnitState
from netqos.model.traffic import Glance
from netqos.settings.values import LoopSettings

QUIET = 0.5
"""A unit is quiet below this share of the load from which on contention could begin.

The exact bound is 1, as both are measured over the same time; the rest is for devices that count less than HTB does.
"""

RESTING = 10
"""A resting unit is sampled once in this many intervals, and once in `LONGEST_REST_S`."""

LONGEST_REST_S = 1.0


def is_quiet(before: Glance | None, now: Glance, state: UnitState, policy: LoopPolicy) -> bool:
    """Whether no step could have begun contention by what was carried between two glances, and nothing is pending."""
    if before is None or state.contention or state.base is None or state.wanted_bps != state.ceilings_bps:
        return False
    elapsed_s, carried = now.taken_at_s - before.taken_at_s, now.carried_bytes - before.carried_bytes
    total_bps = policy.total_bps if not policy.is_shared or state.room_bps is None else state.room_bps
    most_bps = QUIET * min(policy.enter, policy.enter_backlogged) * total_bps
    return elapsed_s > 0 and 0 <= carried * 8 <= most_bps * elapsed_s


def rest_s(loop: LoopSettings) -> float:
    """The longest time between two samples of a unit that is quiet."""
    return max(loop.interval_s, min(RESTING * loop.interval_s, LONGEST_REST_S))


def interval_s(state: UnitState, loop: LoopSettings, *, woke: bool) -> float:
    """Seconds until the next look at a unit: short in contention, and after the first sample that ends a rest."""
    return loop.contended_interval_s if state.contention or woke else loop.interval_s
