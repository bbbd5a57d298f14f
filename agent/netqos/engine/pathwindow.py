"""What a unit did in half a second: rates, whether packets waited, and what was lost beyond it. Pure.

Windows are what `netqos.engine.bottleneck` judges the path behind a unit by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netqos.model.levels import Level, PerLevel

WINDOW_S = 0.5
NONE = PerLevel(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick of the fast loop: mean rates of the last `elapsed_s`, and whether packets waited at its end.

    `beside_bps` is what is kept free of the unit's total for what uses the same path beside it (`netqos.engine.room`).
    """

    elapsed_s: float
    rates_bps: PerLevel[int]
    waits: bool
    beside_bps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Of the workloads whose own queues dropped nothing: packets by level, and the answers to them that report a gap.

    One lost packet may be reported by many answers; `workloads` is of how many there was any.
    """

    answers: PerLevel[int] = NONE
    packets: PerLevel[int] = NONE
    workloads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`waiting` is the share of the time in which packets waited in the unit, `beside_bps` as of `Tick`.

    `sum_variance` is that of the ticks' sums, `level_variance` what the variances of the levels add up to.
    `losses` None: nobody looked.
    """

    at_s: float
    span_s: float
    rates_bps: PerLevel[int]
    waiting: float
    beside_bps: int = 0
    sum_variance: float = 0.0
    level_variance: float = 0.0
    losses: Losses | None = None

    @property
    def sum_bps(self) -> int:
        """What used the path: all levels, and what is beside them."""
        return sum(self.rates_bps) + self.beside_bps


def window_of(ticks: Sequence[Tick], at_s: float, losses: Losses | None = None) -> Window | None:
    """The window of some ticks in a row that ends at `at_s`, None where they tell of no time."""
    span_s = sum(tick.elapsed_s for tick in ticks)
    if span_s <= 0:
        return None

    def mean(level: Level) -> int:
        return round(sum(tick.rates_bps[level] * tick.elapsed_s for tick in ticks) / span_s)

    return Window(
        at_s=at_s,
        span_s=span_s,
        rates_bps=PerLevel(*map(mean, Level)),
        waiting=sum(tick.elapsed_s for tick in ticks if tick.waits) / span_s,
        beside_bps=round(sum(tick.beside_bps * tick.elapsed_s for tick in ticks) / span_s),
        sum_variance=_variance([sum(tick.rates_bps) for tick in ticks]),
        level_variance=sum(_variance([tick.rates_bps[level] for tick in ticks]) for level in Level),
        losses=losses,
    )


def _variance(values: Sequence[int]) -> float:
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / len(values)
