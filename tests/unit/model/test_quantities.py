"""Bandwidths as text: what is taken, what is refused and in which words, and the arithmetic around them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from netqos.errors import Rejected
from netqos.model.inputs import Amount, Percent
from netqos.model.quantities import (
    bits_per_s,
    bytes_per_s,
    format_amount,
    format_bandwidth,
    parse_amount,
    parse_bandwidth,
    parse_limit,
    parse_percent,
    resolve,
)


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("10M", 10_000_000),
        ("+10M", 10_000_000),
        ("1.5G", 1_500_000_000),
        (".5G", 500_000_000),
        ("7.k", 7_000),
        ("1k", 1_000),
        ("1P", 10**15),
        ("1024Ki", 1 << 20),
        ("1Ti", 1 << 40),
        ("1e6", 1_000_000),
        ("1E3", 1_000),
        ("1000.5", 1_001),
        ("2000000m", 2_000),
        ("1000", 1_000),
        ("0010M", 10_000_000),
        (10_000_000, 10_000_000),
    ],
)
def test_a_quantity_is_bits_per_second(text: object, bps: int) -> None:
    assert parse_bandwidth(text) == parse_limit(text) == bps


@pytest.mark.parametrize("text", ["0", "-0", "+0", "0.0", "0M", "0e999999999", "-0k", 0], ids=repr)
def test_zero_is_no_limit_and_no_bandwidth(text: object) -> None:
    assert parse_limit(text) == 0
    with pytest.raises(Rejected, match="is no bandwidth"):
        parse_bandwidth(text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        # a sign or a size that is out of range
        ("-5", "is negative"),
        ("-1M", "is negative"),
        ("0.5", "under the smallest bandwidth"),
        ("999", "under the smallest bandwidth"),
        (50, "under the smallest bandwidth"),
        ("1000000000000001", "over the largest bandwidth"),
        ("1E", "over the largest bandwidth"),
        ("1e30", "over the largest bandwidth"),
        # sub-units: almost always a slip of the shift key
        ("10m", "did you mean 10M?"),
        ("1500m", "did you mean 1500M?"),
        ("1n", "under the smallest bandwidth"),
        ("100u", "under the smallest bandwidth"),
        # what looser parsers take
        ("10K", "did you mean 10k?"),
        ("1_000M", "did you mean 1000M?"),
        (" 10M", "did you mean 10M?"),
        ("10M ", "did you mean 10M?"),
        ("10M\n", "did you mean 10M?"),
        ("\uff11\uff10M", r'"\uff11\uff10M" is no quantity'),
        ("NaN", "is no quantity"),
        ("inf", "did you mean 0?"),
        (True, "true is no quantity"),
        (None, "null is no quantity"),
        (1.5e6, "1500000.0 is no quantity"),
        (["10M"], "a list is no quantity"),
        # words that people type
        ("10Mbps", "did you mean 10M?"),
        ("10Mbit", "did you mean 10M?"),
        ("10 mbit/s", "did you mean 10M?"),
        ("800Kbit", "did you mean 800k?"),
        ("600Kbps", "did you mean 600k?"),
        ("10MB", "did you mean 10M in bits, 80M in bytes?"),
        ("1.5MBps", "did you mean 1.5M in bits, 12M in bytes?"),
        ("1Gbps", "did you mean 1G?"),
        ("50%", "no percentage is taken here"),
        ("unlimited", "did you mean 0?"),
        ("", '"" is no quantity'),
        ("  ", "is no quantity"),
        ("1e", "is no quantity"),
        ("125e-2M", "is no quantity"),
        ("1..5M", "is no quantity"),
        ("M", "is no quantity"),
        ("fast", "is no quantity"),
    ],
)
def test_anything_else_is_refused_with_the_accepted_forms(value: object, words: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse_limit(value)
    message = refused.value.message
    assert words in message
    assert "allowed: 1k to 1P, or 0 for no limit, written as 500k, 10M or 1.5G (bits per second)" in message
    assert refused.value.hint


@pytest.mark.parametrize("word", ["inf", "unlimited", " none "])
def test_where_zero_is_refused_it_is_not_proposed(word: str) -> None:
    with pytest.raises(Rejected, match="is no quantity; allowed: 1k to 1P, written as"):
        parse_bandwidth(word)


@pytest.mark.parametrize(
    "value",
    [
        "1e999999999",
        "1e-999999999",
        "9" * 60 + "e" + "9" * 3,
        "1" * 1_000_000,
        "\U0001f600" * 100_000,
        10**5000,
    ],
    ids=list("abcdef"),
)
def test_a_hostile_value_costs_nothing_and_is_shown_short(value: object) -> None:
    with pytest.raises(Rejected) as refused:
        parse_limit(value)
    assert len(refused.value.message) < 800


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (1_500, "1.5k"),
        (1_234, "1234"),
        (10_000_000, "10M"),
        (1_234_000, "1.234M"),
        (1_234_567, "1234567"),
        (1_500_000_000, "1.5G"),
        (10_000_000_000, "10G"),
        (10**15, "1P"),
    ],
)
def test_a_bandwidth_is_written_short_and_exact(bps: int, text: str) -> None:
    assert format_bandwidth(bps) == text


@pytest.mark.parametrize(
    ("bps", "expected"), [(0, 0), (1, 1), (7, 1), (8, 1), (15, 1), (16, 2), (10_000_000, 1_250_000)]
)
def test_bytes_are_rounded_down_but_never_to_nothing(bps: int, expected: int) -> None:
    assert bytes_per_s(bps) == expected


def test_a_negative_bandwidth_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        bytes_per_s(-8)


def test_bytes_back_to_bits() -> None:
    assert bits_per_s(1_250_000) == 10_000_000


@pytest.mark.parametrize(
    ("amount", "bps"),
    [
        (7_000_000, 7_000_000),
        (Percent(30), 300_000_000),
        (Percent(0), 0),
        (Percent(100), 1_000_000_000),
        (Percent(Fraction(25, 2)), 125_000_000),
    ],
)
def test_a_percentage_is_a_share_of_the_total_in_the_same_unit(amount: Amount, bps: int) -> None:
    assert resolve(amount, 1_000_000_000) == bps


def test_a_positive_share_never_becomes_nothing() -> None:
    assert resolve(Percent(1), 50) == 1
    assert resolve(Percent(1), 0) == 0


def test_every_percentage_stays_within_the_total_through_the_edge() -> None:
    shares = [bytes_per_s(resolve(Percent(value), 1_000_000_000)) for value in range(101)]
    assert shares == sorted(shares)
    assert shares[30] == 37_500_000
    assert shares[100] == bytes_per_s(1_000_000_000)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("30%", Percent(30)),
        ("12.5%", Percent(Fraction(25, 2))),
        ("0%", Percent(0)),
        ("10G", 10_000_000_000),
        ("0", 0),
    ],
)
def test_an_amount_is_a_quantity_or_a_percentage_and_back(text: str, amount: Amount) -> None:
    assert parse_amount(text) == amount
    assert format_amount(amount) == text


@pytest.mark.parametrize(
    "text", ["101%", "-1%", "%", "1e1%", "30 %", "\uff13%", "100.0000001%", 30, None, "1" * 70 + "%"]
)
def test_a_percentage_is_between_0_and_100(text: object) -> None:
    with pytest.raises(Rejected, match="allowed: 0% to 100%"):
        parse_percent(text)


def test_a_wrong_amount_names_both_forms() -> None:
    with pytest.raises(Rejected, match="or a percentage such as 30%"):
        parse_amount(30)
