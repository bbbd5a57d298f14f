"""What recorded traffic shows: rates over windows, time to converge, percentiles. Pure.

A `Series` holds cumulative byte counts with the moment of each reading, so that a rate between any two moments is
exact whatever the spacing of the readings was. Rates are bits per second, moments seconds on one clock.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SLACK_S = 1e-3
"""A window may be this much shorter than asked: readings every 100 ms are not exactly 100 ms apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Byte counts of several sources, all read at the same moments, which grow strictly."""

    at_s: tuple[float, ...]
    counts: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        """Refuse counts that do not fit the moments."""
        if any(later <= earlier for earlier, later in pairwise(self.at_s)):
            raise ValueError("the moments of a series must grow")
        if any(len(counts) != len(self.at_s) for counts in self.counts.values()):
            raise ValueError("every source of a series has one count a moment")

    @property
    def names(self) -> tuple[str, ...]:
        """The sources, in the order in which they were given."""
        return tuple(self.counts)

    def between(self, start_s: float, end_s: float) -> Series:
        """The readings from `start_s` to `end_s`, both included."""
        low, high = bisect_left(self.at_s, start_s), bisect_right(self.at_s, end_s)
        return Series(
            at_s=self.at_s[low:high], counts={name: counts[low:high] for name, counts in self.counts.items()}
        )

    def summed(self, name: str, parts: Sequence[str]) -> Series:
        """One source that is the sum of several."""
        columns = [self.counts[part] for part in parts]
        return Series(at_s=self.at_s, counts={name: tuple(map(sum, zip(*columns, strict=True)))})

    def count(self, name: str, at_s: float) -> float:
        """Bytes up to one moment, in a straight line between the readings beside it; flat outside of the series."""
        counts = self.counts[name]
        place = bisect_right(self.at_s, at_s)
        if place == 0:
            return counts[0]
        if place == len(self.at_s):
            return counts[-1]
        earlier, later = self.at_s[place - 1], self.at_s[place]
        share = (at_s - earlier) / (later - earlier)
        return counts[place - 1] + share * (counts[place] - counts[place - 1])

    def rate_bps(self, name: str, start_s: float, end_s: float) -> float:
        """The mean rate between two moments."""
        return (self.count(name, end_s) - self.count(name, start_s)) * 8 / (end_s - start_s)

    def bins(
        self, name: str, start_s: float, end_s: float, *, width_s: float, step_s: float | None = None
    ) -> tuple[float, ...]:
        """Mean rates of the bins of `width_s` that fit between two moments.

        The first begins at `start_s`, each next one `step_s` later (None: where the one before ends).
        """
        step_s = step_s or width_s
        number = int((end_s - start_s - width_s + SLACK_S) / step_s) + 1
        starts = (start_s + index * step_s for index in range(number))
        return tuple(self.rate_bps(name, low, low + width_s) for low in starts)

    def windows(self, name: str, *, width_s: float = 1.0) -> tuple[float, ...]:
        """Mean rates of the windows that start at each reading and end at the first one `width_s` later."""
        counts = self.counts[name]
        rates = []
        for low, start_s in enumerate(self.at_s):
            high = bisect_left(self.at_s, start_s + width_s - SLACK_S)
            if high == len(self.at_s):
                break
            rates.append((counts[high] - counts[low]) * 8 / (self.at_s[high] - start_s))
        return tuple(rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """A source's rate: the mean over the whole time, the lowest and the highest window (bits per second)."""

    mean_bps: float
    worst_bps: float
    best_bps: float


def summarize(series: Series, name: str, *, width_s: float = 1.0) -> Windows:
    """Mean and extreme windows of one source; the mean alone where the series is shorter than a window."""
    mean = series.rate_bps(name, series.at_s[0], series.at_s[-1])
    rates = series.windows(name, width_s=width_s) or (mean,)
    return Windows(mean_bps=mean, worst_bps=min(rates), best_bps=max(rates))


def settled_after_s(
    series: Series,
    promises_bps: Mapping[str, float],
    *,
    start_s: float,
    end_s: float,
    tolerance: float = 0.1,
    width_s: float = 0.1,
    step_s: float | None = None,
) -> float | None:
    """Seconds from `start_s` until every source stays within the tolerance of its promise for good; None: never.

    Looked at in bins of `width_s`, one each `step_s`; a single later bin out of the band counts. A promise of 0 is
    kept by any rate below `tolerance` of the largest promise.
    """
    floor = tolerance * max(promises_bps.values(), default=0.0)
    last_bad = -1
    number = 0
    for name, promise in promises_bps.items():
        margin = tolerance * promise or floor
        rates = series.bins(name, start_s, end_s, width_s=width_s, step_s=step_s)
        number = len(rates)
        bad = [index for index, rate in enumerate(rates) if abs(rate - promise) > margin]
        last_bad = max([last_bad, *bad[-1:]])
    return None if last_bad + 1 >= number else (last_bad + 1) * (step_s or width_s)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of the values do not exceed (nearest rank); nan without any value."""
    if not values:
        return math.nan
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def median(values: Sequence[float]) -> float:
    """The median; nan without any value."""
    return statistics.median(values) if values else math.nan
