from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.cli.demo.scenario import Promise, Scenario, Side, build_scenario, limited_bps, short_bps
from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from tests.unit.cli.demo.demodata import BANDS, RX, SCENARIO, TX, M


def told(scenario: Scenario, way: Direction) -> list[dict[str, tuple[int, int, int]]]:
    return [
        {
            level.name: (promise.guarantee_bps // M, promise.share_bps // M, promise.ceiling_bps // M)
            for level, promise in scenario.promises(phase, way).items()
        }
        for phase in scenario.phases
    ]


def test_promises_follow_from_the_policy_of_each_direction() -> None:
    assert told(SCENARIO, TX) == [
        {"L2": (200, 1000, 1000)},
        {"L1": (300, 800, 800), "L2": (200, 200, 1000)},
        {"L0": (500, 500, 1000), "L1": (300, 300, 800), "L2": (200, 200, 1000)},
        {"L1": (300, 800, 800), "L2": (200, 200, 1000)},
        {"L1": (300, 800, 800), "L2": (100, 100, 100)},
    ]
    assert told(SCENARIO, RX) == [
        {"L2": (120, 330, 330)},
        {"L1": (60, 480, 600), "L2": (120, 120, 330)},
        {"L0": (420, 420, 600), "L1": (60, 60, 600), "L2": (120, 120, 330)},
        {"L1": (60, 480, 600), "L2": (120, 120, 330)},
        {"L1": (60, 540, 600), "L2": (60, 60, 60)},
    ]
    assert SCENARIO.phases[-1].title == "batch limited to 100M / 60M"


def test_a_limit_frees_bandwidth_for_the_others() -> None:
    bands = PerLevel(BANDS.l0, Band(guarantee_bps=300 * M, ceiling_bps=1000 * M), BANDS.l2)
    scenario = build_scenario(seconds=20, sides={TX: Side(total_bps=1000 * M, bands=bands)})
    assert scenario.promises(scenario.phases[-1], TX) == {
        Level.L1: Promise(guarantee_bps=300 * M, share_bps=900 * M, ceiling_bps=1000 * M),
        Level.L2: Promise(guarantee_bps=100 * M, share_bps=100 * M, ceiling_bps=100 * M),
    }
    assert [phase.seconds for phase in scenario.phases] == [4.0] * 5
    assert scenario.seconds == 20


@given(
    st.integers(10, 40_000).map(lambda megabits: megabits * M),
    st.integers(0, 49),
    st.integers(0, 49),
)
def test_shares_fill_the_link_or_stop_at_a_ceiling(total: int, l1: int, l2: int) -> None:
    m1, m2 = total * l1 // 100, total * l2 // 100
    bands = PerLevel(
        Band(guarantee_bps=total - m1 - m2, ceiling_bps=total),
        Band(guarantee_bps=m1, ceiling_bps=total),
        Band(guarantee_bps=m2, ceiling_bps=total),
    )
    scenario = build_scenario(seconds=20, sides={RX: Side(total_bps=total, bands=bands)})
    for phase in scenario.phases:
        promises = scenario.promises(phase, RX)
        assert set(promises) == phase.greedy
        assert sum(promise.share_bps for promise in promises.values()) == total
        assert all(
            promise.guarantee_bps <= promise.share_bps <= promise.ceiling_bps for promise in promises.values()
        )


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (60 * M, "60M"),
        (1_500 * M, "1.5G"),
        (999 * M, "999M"),
        (800_000, "800k"),
        (12, "12"),
        (10**13, "10000G"),
    ],
)
def test_bandwidths_read_as_the_command_line_takes_them(bps: int, text: str) -> None:
    assert short_bps(bps) == text


def test_the_limit_is_half_of_the_guarantee_and_never_next_to_nothing() -> None:
    assert limited_bps(200 * M, Band(guarantee_bps=60 * M, ceiling_bps=200 * M)) == 30 * M
    assert limited_bps(200 * M, Band(guarantee_bps=0, ceiling_bps=200 * M)) == 10 * M
