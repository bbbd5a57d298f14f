"""The clocks of this host, behind a protocol so that tests can move time by hand.

Monotonic time measures intervals, boot time also counts the time asleep (a suspended virtual machine), wall time may
jump. What must end by itself keeps wall and boot time both, with the boot's id (contract 1.8).
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """What the agent asks of time; all values are seconds."""

    def monotonic(self) -> float:
        """Time from an arbitrary start, never set, not counting sleep (CLOCK_MONOTONIC)."""
        ...

    def wall(self) -> float:
        """Unix time; it may jump both ways."""
        ...

    def boot(self) -> float:
        """Time since boot, never set, counting sleep (CLOCK_BOOTTIME)."""
        ...

    def boot_id(self) -> str:
        """Names this boot: boot times of two boots cannot be compared."""
        ...


class SystemClock:
    """The real clocks."""

    def __init__(self, proc_root: Path = Path("/proc")) -> None:
        """Read the boot's id once. Where it cannot be read, this process is taken for a boot of its own."""
        try:
            boot_id = (proc_root / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            boot_id = ""
        self._boot_id = boot_id or f"unknown-{uuid.uuid4()}"

    def monotonic(self) -> float:
        """As `Clock.monotonic`."""
        return time.monotonic()

    def wall(self) -> float:
        """As `Clock.wall`."""
        return time.time()

    def boot(self) -> float:
        """As `Clock.boot`."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot_id(self) -> str:
        """As `Clock.boot_id`."""
        return self._boot_id
