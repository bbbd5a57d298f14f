from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.testing.analysis import Series, Windows, median, percentile, settled_after_s, summarize

MBIT = 125_000.0  # bytes


def series(step_s: float = 0.1, **rates_mbit: Sequence[float]) -> Series:
    """One rate a step, for each source."""
    number = len(next(iter(rates_mbit.values())))
    counts = {}
    for name, rates in rates_mbit.items():
        total, column = 0.0, [0.0]
        for rate in rates:
            total += rate * MBIT * step_s
            column.append(total)
        counts[name] = tuple(column)
    return Series(at_s=tuple(100 + index * step_s for index in range(number + 1)), counts=counts)


def rounded(found: Windows) -> Windows:
    return Windows(
        mean_bps=round(found.mean_bps), worst_bps=round(found.worst_bps), best_bps=round(found.best_bps)
    )


def test_a_series_refuses_counts_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="must grow"):
        Series(at_s=(1.0, 1.0), counts={})
    with pytest.raises(ValueError, match="one count a moment"):
        Series(at_s=(1.0, 2.0), counts={"l0": (1.0,)})


def test_rates_lie_on_straight_lines_between_readings() -> None:
    recorded = series(l0=[10, 30])
    assert recorded.rate_bps("l0", 100.0, 100.2) == pytest.approx(20e6)
    assert recorded.rate_bps("l0", 100.05, 100.15) == pytest.approx(20e6)
    assert recorded.rate_bps("l0", 99.8, 100.2) == pytest.approx(10e6)  # nothing before the first reading
    assert recorded.count("l0", 200.0) == pytest.approx(0.1 * 40 * MBIT)


def test_windows_are_as_long_as_asked_though_readings_are_uneven() -> None:
    uneven = Series(at_s=(0.0, 0.4, 1.0, 1.3, 2.1), counts={"l0": (0.0, 4.0, 10.0, 13.0, 29.0)})
    assert uneven.windows("l0") == pytest.approx((80.0, 25 / 1.7 * 8, 19 / 1.1 * 8))


def test_the_worst_second_is_found_anywhere() -> None:
    recorded = series(l2=[100] * 10 + [50] * 10 + [100] * 10)
    found = summarize(recorded, "l2")
    assert rounded(found) == Windows(mean_bps=83_333_333, worst_bps=50_000_000, best_bps=100_000_000)


def test_a_short_series_has_its_mean_as_only_window() -> None:
    recorded = series(l2=[100, 200])
    found = summarize(recorded, "l2")
    assert rounded(found) == Windows(mean_bps=150_000_000, worst_bps=150_000_000, best_bps=150_000_000)


def test_a_part_of_a_series_and_a_sum_of_sources() -> None:
    recorded = series(a=[8, 16, 24], b=[1, 2, 3])
    assert recorded.between(100.05, 100.25).at_s == pytest.approx((100.1, 100.2))
    assert recorded.summed("both", ["a", "b"]).bins("both", 100.0, 100.3, width_s=0.1) == pytest.approx(
        (9e6, 18e6, 27e6)
    )


@pytest.mark.parametrize(
    ("l0", "l2", "settled"),
    [
        ([60, 60, 60, 60], [40, 40, 40, 40], 0.0),
        ([0, 30, 58, 62], [100, 70, 42, 38], 0.2),
        ([60, 60, 60, 60], [40, 40, 50, 40], 0.3),  # one bad bin late counts
        ([60, 60, 60, 60], [40, 40, 40, 50], None),
        ([60, 60, 60, 67], [40, 40, 40, 40], None),  # too much is as bad as too little
    ],
)
def test_settled_means_all_within_ten_percent_for_good(
    l0: list[float], l2: list[float], settled: float | None
) -> None:
    recorded = series(l0=l0, l2=l2)
    found = settled_after_s(recorded, {"l0": 60e6, "l2": 40e6}, start_s=100.0, end_s=100.4)
    assert found == (None if settled is None else pytest.approx(settled))


def test_overlapping_bins_find_the_moment_more_closely() -> None:
    recorded = series(step_s=0.03, l2=[0, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50])
    moments = [
        settled_after_s(recorded, {"l2": 50e6}, start_s=100.0, end_s=100.35, step_s=step)
        for step in (None, 0.01)
    ]
    assert moments == pytest.approx([0.1, 0.03])


def test_a_promise_of_nothing_is_kept_by_next_to_nothing() -> None:
    recorded = series(l0=[100, 100], l2=[50, 5])
    assert settled_after_s(recorded, {"l0": 100e6, "l2": 0}, start_s=100.0, end_s=100.2) == pytest.approx(0.1)


def test_percentiles_are_nearest_ranks() -> None:
    values = [float(value) for value in range(1, 201)]
    assert [percentile(values, percent) for percent in (0, 50, 99, 99.9, 100)] == [1, 100, 198, 200, 200]
    assert percentile([7.0], 99) == 7.0
    assert math.isnan(percentile([], 50))
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert math.isnan(median([]))


@given(
    st.lists(st.integers(1, 3000).map(lambda ms: ms / 1000), min_size=2, max_size=40),
    st.lists(st.integers(0, 10**9), min_size=41, max_size=41),
)
def test_no_window_is_beyond_what_some_step_carried(steps: list[float], sizes: list[int]) -> None:
    at, total = [0.0], [0.0]
    for step, size in zip(steps, sizes, strict=False):
        at.append(at[-1] + step)
        total.append(total[-1] + size)
    recorded = Series(at_s=tuple(at), counts={"x": tuple(total)})
    rates = [8 * size / step for step, size in zip(steps, sizes, strict=False)]
    for rate in recorded.windows("x"):
        assert min(rates) * (1 - 1e-6) <= rate <= max(rates) * (1 + 1e-6)
