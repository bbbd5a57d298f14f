from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.cli.wrap import wrap


def texts(lines: list[list[tuple[str, str]]]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


@pytest.mark.parametrize(
    ("pieces", "hang", "lines"),
    [
        ([], 2, [""]),
        ([("short", "")], 2, ["short"]),
        (
            [("  error", "bad"), ("  ", ""), ("eth0", ""), (": it is down", "")],
            9,
            ["  error  eth0: it is", "         down"],
        ),
        ([("one two three four five", "")], 2, ["one two three four", "  five"]),
        (
            [("-> a-word-that-is-far-too-long-for-a-line end", "")],
            3,
            ["-> a-word-that-is-far-too-long-for-a-line", "   end"],
        ),
        ([("see a-word-that-is-far-too-long", "")], 2, ["see", "  a-word-that-is-far-too-long"]),
    ],
)
def test_lines_are_broken_at_spaces(pieces: list[tuple[str, str]], hang: int, lines: list[str]) -> None:
    assert texts(wrap(pieces, room=20, hang=hang)) == lines


def test_a_word_of_several_styles_stays_together_and_keeps_them() -> None:
    lines = wrap([("it is ", ""), ("very", "bad"), (", very bad", "dim")], room=9, hang=1)
    assert lines == [
        [("", ""), ("it", ""), (" ", ""), ("is", "")],
        [(" ", ""), ("very", "bad"), (",", "dim")],
        [(" ", ""), ("very", "dim"), (" ", ""), ("bad", "dim")],
    ]


WORDS = st.lists(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=30))


@given(WORDS, st.integers(1, 100), st.integers(0, 8))
def test_every_word_is_kept_and_no_line_with_room_for_the_longest_passes_the_edge(
    words: list[str], room: int, hang: int
) -> None:
    lines = texts(wrap([(" ".join(words), "s")], room=room, hang=hang))
    assert " ".join(lines).split() == words
    assert room < 8 + 30 or all(len(line) <= room for line in lines)
    assert all(line.startswith(" " * hang) for line in lines[1:])
