"""Times as people write them."""

from __future__ import annotations

import pytest

from netqos.errors import Rejected
from netqos.settings.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("50ms", 0.05),
        ("1s", 1.0),
        ("1.5s", 1.5),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("1m0.5s", 60.5),
        ("0s", 0.0),
        ("0.5ms", 0.0005),
    ],
)
def test_a_duration_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "50",
        50,
        True,
        None,
        1.5,
        "-1s",
        "1 s",
        "1d",
        "s",
        "1s1m",
        "1e3s",
        "\uff11s",
        "1S",
        "1s\n",
        "9" * 40 + "s",
    ],
    ids=ascii,
)
def test_anything_else_is_refused_with_the_forms(value: object) -> None:
    with pytest.raises(Rejected, match="allowed: a number with ms, s, m or h") as refused:
        parse_duration(value)
    assert refused.value.hint == "write 50ms, 1s, 10m or 1h30m"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.05, "50ms"),
        (1.0, "1s"),
        (1.5, "1.5s"),
        (600.0, "10m"),
        (7200.0, "2h"),
        (5400.0, "90m"),
        (0.0, "0s"),
        (0.0005, "0.5ms"),
        (61.0, "61s"),
    ],
)
def test_seconds_are_written_short_and_read_back(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("value", "words"),
    [("50", "has no unit"), (50, "has no unit"), ("fast", "is no duration"), (True, "is no duration")],
    ids=repr,
)
def test_a_number_without_a_unit_is_told_as_such(value: object, words: str) -> None:
    with pytest.raises(Rejected, match=words):
        parse_duration(value)
