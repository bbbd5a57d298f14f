from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netqos.model.levels import PerLevel
from tests.bench.compare.stepper import step
from tests.bench.compare.surface import usual_bands

H = 900
BANDS = usual_bands(H)  # guarantees 450, 300, 150; most 900, 720, 630
MOST = PerLevel(900, 720, 630)


def stepped(ceilings: PerLevel[int], average: float) -> PerLevel[int]:
    return step(ceilings, average, total_bps=H, bands=BANDS)


def test_contention_begins_at_an_eighth_above_the_total() -> None:
    assert stepped(MOST, 1012) == MOST
    assert stepped(MOST, 1013.7) == PerLevel(900, 720, 629)


def test_the_excess_is_taken_from_l2_then_l1_then_l0_down_to_their_guarantees() -> None:
    assert stepped(MOST, 9 / 8 * (H + 300)) == PerLevel(900, 720, 330)
    assert stepped(MOST, 9 / 8 * (H + 600)) == PerLevel(900, 600, 150)
    assert stepped(MOST, 9 / 8 * (H + 1000)) == PerLevel(800, 300, 150)
    assert stepped(MOST, 90 * H) == PerLevel(450, 300, 150)


def test_room_is_given_back_to_l0_then_l1_then_l2_up_to_their_most() -> None:
    least = PerLevel(450, 300, 150)
    assert stepped(least, 9 / 8 * (H - 400)) == PerLevel(850, 300, 150)
    assert stepped(least, 9 / 8 * (H - 600)) == PerLevel(900, 450, 150)
    assert stepped(PerLevel(900, 720, 150), 0) == MOST


def test_three_greedy_levels_end_an_eighth_above_the_total() -> None:
    ceilings, steps = MOST, 0
    while (fresh := stepped(ceilings, sum(ceilings))) != ceilings and steps < 20:
        ceilings, steps = fresh, steps + 1
    assert ceilings == PerLevel(563, 300, 150)
    assert steps == 4


@given(
    ceilings=st.builds(PerLevel, st.integers(450, 900), st.integers(300, 720), st.integers(150, 630)),
    average=st.floats(0, 10 * H),
)
def test_ceilings_stay_between_guarantee_and_most(ceilings: PerLevel[int], average: float) -> None:
    fresh = stepped(ceilings, average)
    assert all(low <= one <= high for low, one, high in zip((450, 300, 150), fresh, MOST, strict=True))
