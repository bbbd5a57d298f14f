"""Counters -> rates, by the true time between two samples; and when nothing can be told of two of them. Pure."""

from __future__ import annotations

from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import UnitSample

MAX_GAP_S = 5.0
"""A longer time between samples (suspend, a stopped process) tells an average of the past, not what is happening."""

MIN_GAP_S = 0.001
"""In a shorter time a single 64 KB packet reads as hundreds of megabits; the next sample covers the time as well."""


def elapsed_between(base: UnitSample | None, sample: UnitSample) -> float | None:
    """Seconds between two samples, None when nothing can be counted from the one to the other."""
    if base is None or base.unit != sample.unit:
        return None
    elapsed_s = sample.taken_at_s - base.taken_at_s
    went_back = any(now < then for now, then in zip(sample.level_bytes, base.level_bytes, strict=True))
    return None if went_back or not 0 <= elapsed_s <= MAX_GAP_S else elapsed_s


def rates_over(base: UnitSample, sample: UnitSample, elapsed_s: float) -> PerLevel[int]:
    """The levels' rates in bits per second; `elapsed_s` is that between the two samples."""

    def rate(level: Level) -> int:
        return round((sample.level_bytes[level] - base.level_bytes[level]) * 8 / elapsed_s)

    return PerLevel(rate(Level.L0), rate(Level.L1), rate(Level.L2))


def rates_between(base: UnitSample | None, sample: UnitSample) -> PerLevel[int] | None:
    """The levels' rates between two samples; None where none can be told."""
    elapsed_s = elapsed_between(base, sample)
    if base is None or elapsed_s is None or elapsed_s < MIN_GAP_S:
        return None
    return rates_over(base, sample, elapsed_s)
