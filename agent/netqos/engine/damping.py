"""What keeps ceilings from following noise, where that takes nothing from anybody. Pure, one ceiling at a time.

Raising is always immediate. A ceiling is lowered by little only once the new value has stood for the hold, otherwise
measuring noise would be written to the kernel on every tick. Where a mechanism lends by itself, a ceiling of L0 that is
too high takes nothing from the others' guarantees, while one that is too low costs L0 a tick each time (decision 0019):
there it is raised by a whole step at least, and what was raised is lowered only when the law gave less for a hold.
"""

from __future__ import annotations

from dataclasses import dataclass

MIN_STEP = 0.02
"""A share of the total: less than that is little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damping:
    """How the ceilings of one moment are damped.

    `has_stood`: the law has given the same for the hold. `was_raised`: within the hold the law gave as much as L0's
    ceiling was raised to. `raises_whole`: by a step at least.
    """

    step_bps: int
    has_stood: bool
    was_raised: bool
    raises_whole: bool

    def ceiling_bps(self, old: int, new: int, *, most: int) -> int:
        """The next ceiling of a level that has `old` and is given `new`, at most its own."""
        if new < old:
            return old if self.was_raised or (old - new <= self.step_bps and not self.has_stood) else new
        if new > old and self.raises_whole:
            return min(max(new, old + self.step_bps), most)
        return new


def step_bps(total_bps: int, headroom: float) -> int:
    """Where needs have headroom, so has the step: what moves one percent of the total to both sides moves nothing."""
    return round(total_bps * MIN_STEP * (1 + 2 * headroom))
