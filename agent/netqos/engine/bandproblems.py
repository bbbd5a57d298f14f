"""The rules that a policy breaks, as values and as findings with the place of what breaks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.model.health import Finding, error
from netqos.model.levels import Direction, Level
from netqos.settings.issues import Code
from netqos.settings.values import AmountKey, Bound, Place

Places = Mapping[AmountKey, Place]
NOWHERE: Places = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class BandProblem:
    """A rule that a class breaks. `bound` is the amount that breaks it, None where that is not the policy's.

    `is_shared`: L1 and L2 break it together, and each has a problem of its own with the same message.
    """

    level: Level
    bound: Bound | None
    message: str
    hint: str
    is_shared: bool = False


def finding_of(problem: BandProblem, instead: str, direction: Direction, places: Places) -> Finding:
    """An error in any case: what was asked for is not in force, but `instead`."""
    place = places.get((problem.level, direction, problem.bound)) if problem.bound is not None else None
    where = f" ({place})" if place is not None else ""
    subject = f"policy {problem.level.name} {direction.value}{where}"
    return error(Code.POLICY.value, subject, f"{problem.message}; {instead}", hint=problem.hint)
