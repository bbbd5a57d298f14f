from __future__ import annotations

import pytest

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series
from tests.bench.moments import arrived_s, departed_s, held_after_s, longest_gap_s, steady_after_s
from tests.unit.bench.runs import MARKS, series, steady

BACK, GONE = ((one.start_s, one.end_s) for one in MARKS[2:4])


def test_arrivals_and_departures_are_between_readings() -> None:
    def late(way: Direction, level: Level, at_s: float) -> float:
        return 0 if level is Level.L0 and at_s < 108.2 else steady(way, level, at_s)

    def lingering(way: Direction, level: Level, at_s: float) -> float:
        return 10_000_000 if level is Level.L1 and 109.0 <= at_s < 109.3 else steady(way, level, at_s)

    assert arrived_s(series(late), "tx L0", *BACK) == pytest.approx(108.2)
    assert arrived_s(series(lambda *_: 0), "tx L0", *BACK) == BACK[0]
    assert departed_s(series(lingering), "rx L1", *GONE) == pytest.approx(109.25)
    assert departed_s(series(lambda *_: 1e7), "rx L1", *GONE) == pytest.approx(109.95)


def test_a_rate_that_drops_again_was_not_held() -> None:
    def dip(way: Direction, level: Level, at_s: float) -> float:
        return 100.0 * (0 if 104.0 <= at_s < 104.05 else 1)

    one = series(dip)
    names = ["tx L0", "tx L1"]
    assert held_after_s(one, names, least_bps=190.0, start_s=103.0, end_s=106.0) == pytest.approx(1.05)
    assert held_after_s(one, names, least_bps=190.0, start_s=104.5, end_s=106.0) == 0
    assert held_after_s(one, names, least_bps=210.0, start_s=103.0, end_s=106.0) is None


def test_what_begins_right_after_a_stop_is_not_what_stopped() -> None:
    def back_at_once(way: Direction, level: Level, at_s: float) -> float:
        return 0 if level is Level.L1 and GONE[0] <= at_s < GONE[1] else 1e8

    late = (GONE[0], GONE[1] + 0.04)
    assert departed_s(series(back_at_once), "rx L1", *late) == GONE[0]


def test_steady_is_the_first_while_nine_tenths_of_which_are_in_the_band() -> None:
    def wavering(way: Direction, level: Level, at_s: float) -> float:
        is_out = at_s < 102.0 or 102.5 <= at_s < 102.7 or 104.0 <= at_s < 104.05 or at_s >= 106
        return 150.0 if is_out else 105.0

    asked = {"tx L0": 100.0, "rx L2": 100.0}
    found = [
        steady_after_s(series(wavering), asked, start_s=101.0, end_s=107.0, for_s=for_s)
        for for_s in (0.3, 1.0, 2.0, 4.5)
    ]
    # One bad step of 50 ms is in two bins of the nineteen of a second; 200 ms are in five.
    assert found == [pytest.approx(1.0), pytest.approx(1.7), pytest.approx(1.7), None]


def test_the_longest_gap_between_readings() -> None:
    assert longest_gap_s(Series(at_s=(1.0, 1.5, 3.0, 3.1), counts={})) == 1.5
    assert longest_gap_s(Series(at_s=(1.0,), counts={})) == 0
