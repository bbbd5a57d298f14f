from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.cli.units import cut, rate, safe, size, span, width


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (None, "-"),
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (1000, "1 kbit/s"),
        (1_250_000_000, "1.25 Gbit/s"),
        (999_960_000, "1 Gbit/s"),
        (201_500_000, "201.5 Mbit/s"),
        (10**15, "1000 Tbit/s"),
        (12.5, "12.5 bit/s"),
    ],
)
def test_rates_have_four_digits_and_a_unit(bps: float | None, text: str) -> None:
    assert rate(bps) == text


def test_sizes_are_decimal() -> None:
    assert [size(n) for n in (0, 3000, 123_456_789)] == ["0 B", "3 kB", "123.5 MB"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.2, "0.2s"),
        (3, "3s"),
        (59.7, "1m"),
        (90, "1m30s"),
        (600, "10m"),
        (3599, "59m"),
        (3900, "1h05m"),
        (273_600, "3d04h"),
    ],
)
def test_spans_are_short(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


@given(st.floats(min_value=0, max_value=1e9))
def test_no_span_shows_sixty_of_anything(seconds: float) -> None:
    text = span(seconds)
    assert "60" not in text.replace("h", " ").replace("m", " ").replace("s", " ").split()


@given(st.text())
def test_safe_text_is_one_printable_line_and_stays_so(text: str) -> None:
    shown = safe(text)
    assert shown.isprintable()
    assert safe(shown) == shown


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert safe("a\x1b[2J\x07\u202eb\ud800\x9b") == "a\\x1b[2J\\x07\\u202eb\\ud800\\x9b"


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "M"))), st.integers(0, 20))
def test_cut_text_fits(text: str, columns: int) -> None:
    found = cut(text, columns, "...")
    assert width(found) <= columns or found == text
    assert width(found) <= max(columns, 0) or width(text) <= columns


def test_wide_characters_count_twice() -> None:
    assert (width("网络"), cut("网络网络", 5, "."), width("e\u0301")) == (4, "网络.", 1)
