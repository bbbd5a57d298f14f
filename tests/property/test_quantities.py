"""Bandwidths: the parser never fails in another way than it says, and agrees with what is written."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from netqos.errors import Rejected
from netqos.model.inputs import Percent
from netqos.model.quantities import (
    LARGEST_BPS,
    SMALLEST_BPS,
    bits_per_s,
    bytes_per_s,
    format_amount,
    format_bandwidth,
    parse_amount,
    parse_limit,
    resolve,
)

bandwidths = st.integers(SMALLEST_BPS, LARGEST_BPS)
near_quantities = st.text(alphabet="0123456789.+-eEkKMGTPimnu %_\n", max_size=80)


@given(bandwidths)
def test_what_is_written_reads_back_as_the_same_number(bps: int) -> None:
    assert parse_limit(format_bandwidth(bps)) == bps


@given(
    st.one_of(near_quantities, st.text(), st.integers(), st.floats(), st.none(), st.booleans(), st.binary())
)
@example("1e-1")
@example(".")
@example("\x00")
def test_any_value_is_a_limit_in_range_or_rejected(value: object) -> None:
    try:
        bps = parse_limit(value)
    except Rejected:
        return
    assert bps == 0 or SMALLEST_BPS <= bps <= LARGEST_BPS


@given(near_quantities)
def test_any_text_is_an_amount_or_rejected(text: str) -> None:
    try:
        amount = parse_amount(text)
    except Rejected:
        return
    assert parse_amount(format_amount(amount)) == amount


@given(bandwidths)
def test_bytes_lose_less_than_one_byte(bps: int) -> None:
    assert 0 <= bps - bits_per_s(bytes_per_s(bps)) < 8


@given(st.fractions(0, 100, max_denominator=1000), bandwidths)
def test_a_share_lies_between_nothing_and_the_total(percent: Fraction, total_bps: int) -> None:
    share = resolve(Percent(percent), total_bps)
    assert 0 <= share <= total_bps
    assert (share == 0) == (percent == 0)
