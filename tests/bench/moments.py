"""When something began and ended in a series: data arrives, data stops, a rate is held. Pure; moments in seconds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from netqos.testing.analysis import Series

BIN_S, STEP_S = 0.1, 0.05
_BAND, _STEADY = 0.1, 0.9
_DATA_BYTES = 10_000
"""More than a connection's first handshake: data has begun to arrive."""


def longest_gap_s(series: Series) -> float:
    """The longest time without a reading: the machine, not the traffic, stood still."""
    return max((later - earlier for earlier, later in pairwise(series.at_s)), default=0.0)


def arrived_s(series: Series, name: str, start_s: float, end_s: float) -> float:
    """The last reading before a source's data began to arrive within a time; its begin when there was none."""
    base = _counted(series, name, start_s)
    for place, at_s in enumerate(series.at_s):
        if start_s < at_s <= end_s and series.counts[name][place] - base > _DATA_BYTES:
            return max(start_s, series.at_s[place - 1])
    return start_s


def departed_s(series: Series, name: str, start_s: float, end_s: float) -> float:
    """The last reading before the last of a source's data arrived within a time; its begin when none came."""
    last = _counted(series, name, end_s)
    for place, at_s in enumerate(series.at_s):
        if at_s > start_s and last - series.counts[name][place] <= _DATA_BYTES:
            return max(start_s, series.at_s[place - 1])
    return end_s


def _counted(series: Series, name: str, at_s: float) -> float:
    """What was read last at a moment: what comes right after it does not count, as it would in between."""
    return series.counts[name][max(0, bisect_right(series.at_s, at_s) - 1)]


def held_after_s(
    series: Series, names: Sequence[str], *, least_bps: float, start_s: float, end_s: float
) -> float | None:
    """Seconds until the sum of some sources stays at a rate or above it to the end; None: never."""
    total = series.summed("sum", names)
    rates = total.bins("sum", start_s, end_s, width_s=BIN_S, step_s=STEP_S)
    bad = [place for place, rate in enumerate(rates) if rate < least_bps]
    first_good = bad[-1] + 1 if bad else 0
    return None if first_good >= len(rates) else first_good * STEP_S


def steady_after_s(
    series: Series, rates_bps: Mapping[str, float], *, start_s: float, end_s: float, for_s: float
) -> float | None:
    """Seconds until every source first is within 10 percent of a rate, and is so in nine bins of ten for a while.

    None: never. One bin of ten is the machine's: it is looked at for longer than an onset, and a program that is not
    scheduled for a moment sends nothing, whoever shapes it.
    """
    bins = [series.bins(name, start_s, end_s, width_s=BIN_S, step_s=STEP_S) for name in rates_bps]
    good = [
        all(abs(one - rate) <= _BAND * rate for one, rate in zip(rates, rates_bps.values(), strict=True))
        for rates in zip(*bins, strict=True)
    ]
    while_bins = max(1, round((for_s - BIN_S) / STEP_S) + 1)
    for place in range(len(good) - while_bins + 1):
        if good[place] and sum(good[place : place + while_bins]) >= _STEADY * while_bins:
            return place * STEP_S
    return None
