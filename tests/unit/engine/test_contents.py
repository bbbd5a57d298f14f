"""File contents in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.contents import describe_content, describe_difference


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"a": 1}', "1 entry, 8 bytes"),
        (b"a 1\nb 2\n", "2 entries, 8 bytes"),
        (b"", "0 entries, 0 bytes"),
        (b"\xff\xfe", "2 bytes"),
        (b"[1, 2, 3]", "9 bytes"),
        (b"one two three", "13 bytes"),
    ],
)
def test_content(content: bytes, text: str) -> None:
    assert describe_content(content) == text


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"a 1\nb 2\n", b"a 1\nb 3\nc 4\n", "add c; change b 2 -> 3"),
        (b'{"a": 1, "b": {"c": 1}}', b'{"b": {"c": 2}}', "remove a; change b {'c': 1} -> {'c': 2}"),
        (b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', "another order"),
        (b'{"a": 1', b'{"a": 1}', "7 bytes -> 8 bytes"),
        (
            b"{}",
            b'{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}',
            "add a, b, c and 2 more",
        ),
        (b'{"a": "%s"}' % (b"x" * 100), b'{"a": 1}', "change a"),
    ],
)
def test_difference(old: bytes, new: bytes, text: str) -> None:
    assert describe_difference(old, new) == text


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_anything_can_be_described(old: bytes, new: bytes) -> None:
    assert describe_difference(old, new)
    assert len(describe_difference(old, new)) < 1000
