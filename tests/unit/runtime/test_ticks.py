from __future__ import annotations

from dataclasses import replace

from netqos.engine.why import Ground, why
from netqos.model.ids import IfName
from netqos.model.traffic import Unit
from netqos.runtime.ticks import (
    REMEMBERED_DECISIONS,
    REMEMBERED_TICKS,
    REMEMBERED_UNITS,
    DecisionHistory,
    TickStatistics,
)
from tests.unit.observe.sample import GROUND, QUIET, RX_GROUND, UNIT


def at(ground: Ground, at_s: float, **changes: object) -> Ground:
    decision = replace(ground.decision, at_s=at_s, elapsed_s=0.05, **changes)  # type: ignore[arg-type]
    return Ground(decision, ground.policy, ground.state)


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


def test_history_keeps_changes_and_one_decision_a_second_with_their_reasons() -> None:
    history = DecisionHistory()
    ticks = [at(QUIET, number * 0.05) for number in range(41)]
    ticks[7] = at(ticks[7], 7 * 0.05, changed=True)
    ticks[30] = Ground(replace(GROUND.decision, at_s=30 * 0.05, elapsed_s=0.02), GROUND.policy, GROUND.state)
    for tick in ticks:
        history.add((tick,))
    kept = [round(one.decision.at_s / 0.05) for one in history.decisions()]
    assert kept == [0, 7, 27, 30, 31]
    assert [one.why for one in history.decisions()] == [why(ticks[place]) for place in kept]
    assert history.contention_s() == {UNIT: 0.02}


def test_a_unit_that_changes_all_the_time_pushes_no_other_out_of_the_history() -> None:
    history = DecisionHistory()
    history.add((at(RX_GROUND, 0.0),))
    for number in range(REMEMBERED_DECISIONS + 5):
        history.add((at(GROUND, 1.0 + number),))
    found = [one.decision for one in history.decisions()]
    assert (len(found), found[0].unit, found[1].at_s) == (
        REMEMBERED_DECISIONS + 1,
        RX_GROUND.decision.unit,
        6.0,
    )


def test_of_devices_that_come_and_go_the_newest_are_remembered() -> None:
    history = DecisionHistory()
    for number in range(REMEMBERED_UNITS + 3):
        unit = Unit(UNIT.direction, IfName(f"up{number}"))
        history.add((at(QUIET, float(number), unit=unit),))
    assert [one.decision.unit.device for one in history.decisions()] == [
        f"up{number}" for number in range(3, REMEMBERED_UNITS + 3)
    ]
