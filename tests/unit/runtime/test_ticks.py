from __future__ import annotations

from dataclasses import replace

from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Decision, Reason, Unit
from netqos.runtime.ticks import REMEMBERED_TICKS, DecisionHistory, TickStatistics

UNIT = Unit(Direction.TX, IfName("up0"))
QUIET = Decision(
    unit=UNIT,
    at_s=0.0,
    elapsed_s=0.05,
    rates_bps=PerLevel(1, 2, 3),
    backlogged=PerLevel(False, False, False),
    contention=False,
    ceilings_bps=PerLevel(10, 10, 10),
    reason=Reason.NO_CONTENTION,
    changed=False,
)


def test_statistics_of_no_tick_are_zero() -> None:
    figures = TickStatistics().figures()
    assert (figures.ticks, figures.late_p99_s, figures.late_max_s, figures.took_p99_s) == (0, 0.0, 0.0, 0.0)


def test_statistics_forget_the_oldest_tick_but_count_all() -> None:
    statistics = TickStatistics()
    statistics.add(late_s=9.0, took_s=9.0)
    for number in range(REMEMBERED_TICKS):
        statistics.add(late_s=number / REMEMBERED_TICKS, took_s=0.001)
    figures = statistics.figures()
    assert figures.ticks == REMEMBERED_TICKS + 1
    assert figures.late_max_s < 1.0
    assert 0.98 < figures.late_p99_s < 1.0
    assert figures.took_p99_s == 0.001


def test_history_keeps_changes_and_one_decision_a_second() -> None:
    history = DecisionHistory()
    ticks = [replace(QUIET, at_s=number * 0.05) for number in range(41)]
    ticks[7] = replace(ticks[7], changed=True)
    ticks[30] = replace(ticks[30], contention=True, elapsed_s=0.02)
    for tick in ticks:
        history.add((tick,))
    kept = [round(one.at_s / 0.05) for one in history.decisions()]
    assert kept == [0, 7, 27, 30, 31]
    assert history.contention_s() == {UNIT: 0.02}
