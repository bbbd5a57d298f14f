"""Ticks as one window."""

from __future__ import annotations

from netqos.engine.pathsigns import signs_of
from netqos.engine.pathwindow import Losses, Tick, Window, window_of
from netqos.model.levels import PerLevel


def tick(l0: int, l1: int, l2: int, *, elapsed_s: float = 0.05, waits: bool = False, beside: int = 0) -> Tick:
    return Tick(elapsed_s=elapsed_s, rates_bps=PerLevel(l0, l1, l2), waits=waits, beside_bps=beside)


def test_ticks_count_by_the_time_that_they_tell_of() -> None:
    found = window_of([tick(100, 10, 1, elapsed_s=0.3, waits=True), tick(500, 50, 5, elapsed_s=0.1)], 7.0)
    assert found is not None
    assert (found.at_s, found.rates_bps, found.losses) == (7.0, PerLevel(200, 20, 2), None)
    assert (round(found.span_s, 9), round(found.waiting, 9)) == (0.4, 0.75)


def test_no_tick_is_no_window() -> None:
    assert window_of([], 7.0) is None


def test_what_is_beside_the_unit_uses_the_path_too() -> None:
    found = window_of([tick(100, 10, 1, beside=50), tick(100, 10, 1, beside=150)], 7.0)
    assert found is not None
    assert found.sum_bps == 211


def test_levels_that_take_from_each_other_vary_less_in_sum() -> None:
    trading = window_of([tick(100, 0, 300), tick(300, 0, 100), tick(200, 0, 200)], 1.0)
    apart = window_of([tick(100, 0, 100), tick(300, 0, 300), tick(200, 0, 200)], 1.0)
    assert trading is not None
    assert apart is not None
    assert (signs_of([trading]).trading, signs_of([apart]).trading) == (0.0, 2.0)


def window(total: int, losses: Losses | None = None) -> Window:
    rates = PerLevel(total // 2, total // 4, total // 4)
    return Window(at_s=1.0, span_s=0.5, rates_bps=rates, waiting=0.0, losses=losses)


def test_losses_are_added_up_and_windows_without_a_look_say_nothing() -> None:
    looked = Losses(answers=PerLevel(1, 0, 3), packets=PerLevel(100, 0, 300), workloads=2)
    more = Losses(answers=PerLevel(0, 0, 4), packets=PerLevel(100, 100, 200), workloads=1)
    found = signs_of([window(400), window(400, looked), window(400, more)])
    assert (found.loss_share, found.losing_workloads) == (0.01, 2)
    assert found.level_losses == PerLevel(0.005, 0.0, 0.014)
    assert signs_of([window(400)]).loss_share == 0.0
