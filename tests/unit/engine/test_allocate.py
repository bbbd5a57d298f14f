"""The worked table of the law, and its edges. All numbers are megabits, as in the table."""

from __future__ import annotations

import pytest

from netqos.engine.allocate import allocate, shares_bps, unrestricted
from netqos.model.desired import Band
from netqos.model.levels import PerLevel

M = 1_000_000
BANDS = PerLevel(
    Band(guarantee_bps=500 * M, ceiling_bps=1000 * M),
    Band(guarantee_bps=300 * M, ceiling_bps=800 * M),
    Band(guarantee_bps=200 * M, ceiling_bps=1000 * M),
)

CONTENDED = [
    pytest.param((0, 0, 1000), "2", (800, 800, 1000), (800, 800, 1000), id="l2 alone"),
    pytest.param((500, 300, 200), "012", (500, 300, 200), (500, 300, 200), id="all backlogged"),
    pytest.param((300, 300, 400), "12", (500, 500, 200), (500, 470, 200), id="l1 and l2"),
    pytest.param((600, 300, 100), "0", (600, 300, 200), (590, 300, 200), id="l0 over its guarantee"),
    pytest.param((0, 800, 150), "1", (550, 800, 200), (535, 800, 200), id="l1 at its ceiling"),
    pytest.param((850, 100, 50), "0", (850, 300, 200), (835, 300, 200), id="l0 almost alone"),
]


def per_level(values: tuple[int, int, int]) -> PerLevel[int]:
    return PerLevel(*(value * M for value in values))


def contended(
    rates: tuple[int, int, int],
    waiting: str = "",
    headroom: float = 0.0,
    *,
    bands: PerLevel[Band] = BANDS,
    total: int = 1000,
    lowest: tuple[int, int, int] | None = None,
) -> PerLevel[int]:
    return allocate(
        total_bps=total * M,
        bands=bands,
        rates_bps=per_level(rates),
        backlogged=PerLevel(*(place in waiting for place in "012")),
        headroom=headroom,
        lowest_needs_bps=None if lowest is None else per_level(lowest),
    )


@pytest.mark.parametrize(("rates", "waiting", "without_headroom", "with_headroom"), CONTENDED)
def test_worked_table(
    rates: tuple[int, int, int],
    waiting: str,
    without_headroom: tuple[int, int, int],
    with_headroom: tuple[int, int, int],
) -> None:
    assert contended(rates, waiting, 0.0) == per_level(without_headroom)
    assert contended(rates, waiting, 0.1) == per_level(with_headroom)


def test_outside_of_contention_everybody_has_the_own_ceiling() -> None:
    assert unrestricted(BANDS) == per_level((1000, 800, 1000))


def test_lowest_needs_move_the_ceiling_of_l0_only() -> None:
    now = contended((700, 300, 200), "012", lowest=(0, 0, 100))
    assert now == per_level((900, 300, 200))


def test_l0_keeps_five_megabits_where_its_guarantee_is_less() -> None:
    bands = PerLevel(
        Band(guarantee_bps=1 * M, ceiling_bps=100 * M),
        Band(guarantee_bps=60 * M, ceiling_bps=100 * M),
        Band(guarantee_bps=39 * M, ceiling_bps=100 * M),
    )
    greedy = contended((1, 60, 39), "012", bands=bands, total=100)
    assert greedy == per_level((5, 60, 39))


def test_the_floor_of_l0_stays_under_its_own_ceiling() -> None:
    bands = PerLevel(
        Band(guarantee_bps=1 * M, ceiling_bps=3 * M),
        Band(guarantee_bps=60 * M, ceiling_bps=100 * M),
        Band(guarantee_bps=39 * M, ceiling_bps=100 * M),
    )
    assert contended((1, 60, 39), "012", bands=bands, total=100).l0 == 3 * M


def test_headroom_does_not_drift_by_a_bit() -> None:
    # 300 * 0.1 is 30.000000000000004 in binary
    allocation = allocate(
        total_bps=10**15,
        bands=BANDS.map(lambda _: Band(guarantee_bps=3 * 10**14, ceiling_bps=10**15)),
        rates_bps=PerLevel(300, 300, 300),
        backlogged=PerLevel(False, False, False),
        headroom=0.1,
    )
    assert allocation.l0 == 10**15 - 330 - 330


@pytest.mark.parametrize(
    ("needs", "shares"),
    [
        ((0, 0, 2000), (0, 0, 1000)),
        ((0, 2000, 2000), (0, 800, 200)),
        ((2000, 2000, 2000), (500, 300, 200)),
        ((100, 2000, 2000), (100, 700, 200)),
        ((0, 2000, 50), (0, 800, 50)),
    ],
)
def test_shares_of_a_full_link(needs: tuple[int, int, int], shares: tuple[int, int, int]) -> None:
    assert shares_bps(total_bps=1000 * M, bands=BANDS, needs=per_level(needs)) == per_level(shares)
