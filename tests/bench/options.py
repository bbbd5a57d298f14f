"""What a person may choose for a benchmark, and what this machine offers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`runs`: how often each measurement is made (the median counts); the next three are how many of each.

    `minutes`: how long the outage and the quiet time are; None: as long as each claims.
    """

    runs: int = 3
    onsets: int = 10
    kills: int = 200
    reconnects: int = 1000
    minutes: int | None = None


@cache
def congestions() -> tuple[str, ...]:
    """The congestion controls to measure with, of those that this kernel has."""
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    available = path.read_text(encoding="ascii").split()
    return tuple(name for name in ("cubic", "bbr") if name in available)


def say(text: str) -> None:
    """Progress, for a person who waits."""
    print(f"  {text}", file=sys.stderr, flush=True)
