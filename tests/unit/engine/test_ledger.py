"""Classes and device: what headers explain, what they do not, and that noise does not flap."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine import ledger
from netqos.engine.ledger import Account, Gap, Reading

ZERO = Reading(at_s=0.0, class_bytes=0, class_packets=0, device_bytes=0, device_packets=0)
FRAME = 1514
MB = 1_000_000


def reading(at_s: float, *, classes: tuple[int, int], device: tuple[int, int]) -> Reading:
    return Reading(
        at_s=at_s,
        class_bytes=classes[0],
        class_packets=classes[1],
        device_bytes=device[0],
        device_packets=device[1],
    )


def frames(count: int, *, merged_by: int = 1, tail: int = 0, past: int = 0, size: int = FRAME) -> Reading:
    """TCP in frames of `size`, as HTB and as a device counts them that may merge, add a tail, or send others' too."""
    packets = count // merged_by
    saved = (count - packets) * 66
    return reading(
        2.0,
        classes=(count * size, count),
        device=(count * size - saved + packets * tail + past * FRAME, packets + past),
    )


@pytest.mark.parametrize(
    "met",
    [
        frames(5000),
        frames(5000, tail=4),
        frames(5000, tail=8),
        frames(45_000, merged_by=45),
        frames(40_000, size=66),
        frames(40_000, size=54, tail=10),
    ],
    ids=["same", "checksum", "checksum and tag", "merged", "acknowledgements", "short and filled"],
)
def test_ways_of_counting_are_no_disagreement(met: Reading) -> None:
    assert ledger.gap(ZERO, met).unexplained_bytes == 0


def test_what_was_sent_past_the_classes_is_unexplained() -> None:
    met = ledger.gap(ZERO, frames(5000, past=300))
    assert met == Gap(
        span_s=2.0,
        class_bytes=5000 * FRAME,
        device_bytes=5300 * FRAME,
        unexplained_bytes=300 * FRAME - 5300 * 8,
    )
    assert met.share == pytest.approx(0.0513, abs=0.0005)


def test_packets_past_the_classes_show_beside_merged_ones() -> None:
    assert ledger.gap(ZERO, frames(45_000, merged_by=45, past=6000)).share > 0.02


def test_what_a_device_lost_is_unexplained() -> None:
    met = ledger.gap(ZERO, reading(2.0, classes=(5000 * FRAME, 5000), device=(4500 * FRAME, 5000)))
    assert met.share == pytest.approx(-0.1)


def test_a_device_that_carries_more_than_classes_meet_may_have_more_but_not_less() -> None:
    more = reading(2.0, classes=(4 * MB, 3000), device=(9 * MB, 7000))
    less = reading(2.0, classes=(9 * MB, 7000), device=(4 * MB, 7000))
    assert ledger.gap(ZERO, more, is_whole=False).unexplained_bytes == 0
    assert ledger.gap(ZERO, less, is_whole=False).unexplained_bytes == -5 * MB


def walk(windows: Iterable[tuple[int, int]], *, span_s: float = 2.0) -> list[bool]:
    """Whether something is told after each window of frames through the classes, and of frames past them."""
    account, at_s = ledger.step(Account(), ZERO), 0.0
    through = past = 0
    told = []
    for own, others in windows:
        at_s, through, past = at_s + span_s, through + own, past + others
        now = reading(
            at_s, classes=(through * FRAME, through), device=((through + past) * FRAME, through + past)
        )
        account = ledger.step(account, now)
        told.append(account.told is not None)
    return told


def test_it_is_told_after_two_windows_and_ends_after_three() -> None:
    good, bad, doubtful = (5000, 0), (5000, 500), (5000, 105)
    assert walk([good, bad, bad, bad]) == [False, False, True, True]
    assert walk([bad, bad, good, good, good]) == [False, True, True, True, False]
    assert walk([bad, bad, good, good, doubtful, good, good]) == [False, True, True, True, True, True, True]


def test_noise_is_not_told() -> None:
    good, bad = (5000, 0), (5000, 500)
    assert not any(walk([bad, good] * 10))


def test_a_window_waits_for_time_and_traffic() -> None:
    assert not any(walk([(5000, 500)] * 3, span_s=0.5))
    assert not any(walk([(100, 100)] * 5))
    assert walk([(100, 100)] * 30)[-1]


def test_an_idle_device_is_forgotten() -> None:
    assert walk([(5000, 500)] * 2 + [(1, 0)] * 160)[-1] is False


def test_counters_that_went_back_begin_anew() -> None:
    account = Account(began=frames(5000), suspects=1, side=1)
    assert ledger.step(account, ZERO) == Account(began=ZERO)


@given(
    st.lists(st.tuples(st.integers(1500, 9000), st.integers(1, 45), st.sampled_from((0, 4, 8))), max_size=12)
)
def test_no_way_of_counting_is_ever_told(windows: list[tuple[int, int, int]]) -> None:
    account, at_s = ledger.step(Account(), ZERO), 0.0
    total = ZERO
    for count, merged_by, tail in windows:
        at_s += 2.0
        more = frames(count, merged_by=merged_by, tail=tail)
        total = reading(
            at_s,
            classes=(total.class_bytes + more.class_bytes, total.class_packets + more.class_packets),
            device=(total.device_bytes + more.device_bytes, total.device_packets + more.device_packets),
        )
        account = ledger.step(account, total)
        assert account.told is None
