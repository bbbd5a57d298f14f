"""A clock that only moves when a test moves it."""

from __future__ import annotations

import itertools


class FakeClock:
    """Obeys the rules of the real clocks: monotonic and boot time never go back, a boot changes the boot's id."""

    def __init__(
        self, *, monotonic_s: float = 1_000.0, wall_s: float = 1_700_000_000.0, boot_s: float = 5_000.0
    ) -> None:
        """Start at these times; all three differ, so that mixing them up shows."""
        self._monotonic_s = monotonic_s
        self._wall_s = wall_s
        self._boot_s = boot_s
        self._boots = itertools.count(1)
        self._boot_id = f"boot-{next(self._boots)}"

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return self._monotonic_s

    def wall(self) -> float:
        """Unix time."""
        return self._wall_s

    def boot(self) -> float:
        """Seconds since boot."""
        return self._boot_s

    def boot_id(self) -> str:
        """The id of the present boot."""
        return self._boot_id

    def advance(self, seconds: float) -> None:
        """Let time pass on every clock."""
        _refuse_negative(seconds)
        self._monotonic_s += seconds
        self._wall_s += seconds
        self._boot_s += seconds

    def suspend(self, seconds: float) -> None:
        """Sleep as a suspended machine does: the monotonic clock stands still."""
        _refuse_negative(seconds)
        self._wall_s += seconds
        self._boot_s += seconds

    def set_wall(self, wall_s: float) -> None:
        """Jump, as `date -s` or an NTP step does; the other clocks go on."""
        self._wall_s = wall_s

    def reboot(self, *, off_s: float = 60.0) -> None:
        """Start anew after `off_s` seconds without power."""
        _refuse_negative(off_s)
        self._wall_s += off_s
        self._monotonic_s = self._boot_s = 0.0
        self._boot_id = f"boot-{next(self._boots)}"


def _refuse_negative(seconds: float) -> None:
    if seconds < 0:
        raise ValueError(f"time does not go back: {seconds} s")
