"""One moment on all clocks, taken once for an answer, so that its times agree with each other."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.host.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Seconds: monotonic, Unix time, and since boot."""

    monotonic_s: float
    wall_s: float
    boot_s: float

    @classmethod
    def now(cls, clock: Clock) -> Moment:
        """The present moment."""
        return cls(monotonic_s=clock.monotonic(), wall_s=clock.wall(), boot_s=clock.boot())

    def age_s(self, at_s: float | None) -> float | None:
        """Seconds since a monotonic time, never negative; None of None."""
        return None if at_s is None else round(max(0.0, self.monotonic_s - at_s), 3)

    def unix_s(self, at_s: float) -> float:
        """A monotonic time as Unix time."""
        return self.wall_s - (self.monotonic_s - at_s)
