from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netqos.testing.numbered import Numbers, missing_of, runs_of


@given(sent=st.integers(0, 40), seen=st.sets(st.integers(0, 39)))
def test_what_is_missing_is_what_was_not_taken(sent: int, seen: set[int]) -> None:
    taken = {number for number in seen if number < sent}
    assert numbers(missing_of(runs_of(sorted(taken)), sent)) == sorted(set(range(sent)) - taken)


def test_numbers_in_a_row_are_one_run() -> None:
    assert runs_of([3, 4, 5, 9]) == ((3, 5), (9, 9))
    assert missing_of(((3, 5), (9, 9)), 12) == ((0, 2), (6, 8), (10, 11))


def numbers(runs: Numbers) -> list[int]:
    return [number for first, last in runs for number in range(first, last + 1)]
