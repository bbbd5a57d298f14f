"""File contents in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.contents import describe_content, describe_difference, json_table, merge_json_tables


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"a": 1}', "1 entry, 8 bytes"),
        (b"a 1\nb 2\n", "2 entries, 8 bytes"),
        (b"", "0 entries, 0 bytes"),
        (b"\xff\xfe\x00", "3 bytes"),
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


def test_table_has_one_entry_a_line() -> None:
    assert json_table({"b": {"x": 1}, "a": {}}) == b'{\n"b": {"x": 1},\n"a": {}\n}\n'
    assert json_table({}) == b"{}\n"


@pytest.mark.parametrize(
    ("found", "merged"),
    [
        (b'{"c": {"x": 1}, "b": {"x": 2}}', {"a": {}, "b": {"x": 9}, "c": {"x": 1}}),
        (b'{"c": null, "d": 1}', {"a": {}, "b": {"x": 9}}),
        (b"[]", {"a": {}, "b": {"x": 9}}),
        (b'{"c": {', {"a": {}, "b": {"x": 9}}),
        (b"\xff", {"a": {}, "b": {"x": 9}}),
    ],
)
def test_merging_keeps_what_is_not_known_better(found: bytes, merged: dict[str, object]) -> None:
    assert merge_json_tables(found, json_table({"b": {"x": 9}, "a": {}})) == json_table(merged)
