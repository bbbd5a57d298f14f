"""Whether two sets of runs differ by more than the runs themselves do. Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from netqos.testing.analysis import median
from tests.bench.compare.results import Result
from tests.bench.compare.rows import MEASURES, Measure

_NEGLIGIBLE = 0.01
"""Medians that are closer than this share of themselves are called the same, however steady the runs were."""


FEWEST = 3
"""With fewer runs on either side nothing is told apart: chance would be told as a change."""


class Change(enum.Enum):
    """What became of a measure; MOVED where neither direction is better."""

    SAME = "same"
    BETTER = "better"
    WORSE = "WORSE"
    MOVED = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One measure of one enforcer in two results (or of two enforcers in one)."""

    who: str
    measure: Measure
    before: float
    after: float
    change: Change

    @property
    def ratio(self) -> float:
        """After against before; nan where that has no meaning."""
        if self.before == self.after:
            return 1.0
        if self.before == 0 or math.inf in {self.before, self.after}:
            return math.nan
        return self.after / self.before


def judge(
    before: Sequence[float], after: Sequence[float], *, less_is_better: bool | None, resolution: float = 0.0
) -> Change:
    """SAME unless all runs of one side lie on one side of all of the other, and the medians can be told apart."""
    middle, other = median(before), median(after)
    negligible = max(resolution, _NEGLIGIBLE * abs(middle))
    if middle == other or (math.isfinite(middle) and abs(other - middle) <= negligible):
        return Change.SAME
    is_less, is_more = max(after) < min(before), min(after) > max(before)
    if not is_less and not is_more:
        return Change.SAME
    if less_is_better is None:
        return Change.MOVED
    return Change.BETTER if is_less == less_is_better else Change.WORSE


def compare(before: Result, after: Result) -> Iterator[Comparison]:
    """Every measure that both results have, enforcer by enforcer."""
    for one in after.contestants:
        earlier = before.contestant(one.name)
        if earlier is not None:
            yield from compare_runs(one.name, earlier.runs, one.runs)


def compare_runs(
    who: str, before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]
) -> Iterator[Comparison]:
    """Every measure that both have."""
    for key, measure in MEASURES.items():
        then = [run[key] for run in before if key in run]
        now = [run[key] for run in after if key in run]
        if then and now:
            yield Comparison(
                who=who,
                measure=measure,
                before=median(then),
                after=median(now),
                change=_change(then, now, measure),
            )


def _change(then: Sequence[float], now: Sequence[float], measure: Measure) -> Change:
    if min(len(then), len(now)) < FEWEST:
        return Change.SAME
    return judge(then, now, less_is_better=measure.less_is_better, resolution=measure.resolution)
