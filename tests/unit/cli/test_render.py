from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.cli.render import Column, Screen, Span, table_lines
from netqos.cli.units import width

COLUMNS = (
    Column(head="name", flexible=True),
    Column(head="rate", right=True),
    Column(head="notes", flexible=True),
)


def screen(columns: int | None = None, *, paints: bool = False) -> Screen:
    return Screen(out=io.StringIO(), talk=io.StringIO(), columns=columns, paints=paints)


def text(of: Screen) -> str:
    out = of.out
    assert isinstance(out, io.StringIO)
    return out.getvalue()


def test_a_table_aligns_words_left_and_numbers_right() -> None:
    shown = screen()
    shown.table(COLUMNS, [["web", "1 Mbit/s", ""], ["a-long-name", "10 Mbit/s", Span("x", "warn")]], indent=2)
    assert text(shown) == (
        "  NAME              RATE  NOTES\n  web           1 Mbit/s\n  a-long-name  10 Mbit/s  x\n"
    )


def test_flexible_columns_give_way_when_it_is_narrow() -> None:
    shown = screen(40)
    shown.table(COLUMNS, [["n" * 30, "1 Mbit/s", "m" * 30]])
    lines = text(shown).splitlines()
    assert lines == [
        "NAME                RATE  NOTES",
        "nnnnnnnnnnn...  1 Mbit/s  mmmmmmmmmmm...",
    ]


def test_a_column_that_wraps_goes_on_below_instead_of_being_cut() -> None:
    shown = screen(40)
    columns = (
        Column(head="name"),
        Column(head="because", flexible=True, wraps=True),
        Column(head="n", right=True),
    )
    shown.table(columns, [["web", Span("nobody enforces rules inside a pod", "warn"), "1"], ["db", "", "22"]])
    assert text(shown).splitlines() == [
        "NAME  BECAUSE                          N",
        "web   nobody enforces rules inside a   1",
        "      pod",
        "db                                    22",
    ]


def test_a_long_sentence_is_broken_at_80_in_a_pipe_and_at_the_width_of_a_terminal() -> None:
    sentence = " ".join(["word"] * 40)
    for columns, most in ((None, 80), (60, 60), (120, 120)):
        shown = screen(columns)
        shown.prose("  ", Span("error", "bad"), "  ", sentence, hang=9)
        lines = text(shown).splitlines()
        assert most - 5 < max(map(len, lines)) <= most
        assert " ".join(lines).split() == ["error", *["word"] * 40]
        assert {line[:9] for line in lines[1:]} == {" " * 9}


@given(
    st.lists(st.tuples(st.text(), st.text(max_size=10), st.text()), min_size=1, max_size=5),
    st.integers(45, 120),
)
def test_no_line_is_wider_than_asked(rows: list[tuple[str, str, str]], columns: int) -> None:
    lines = table_lines(COLUMNS, [list(row) for row in rows], room=columns)
    for line in lines:
        joined = "".join(one.text if isinstance(one, Span) else one for one in line).rstrip()
        rate = max(width(line[5].text if isinstance(line[5], Span) else line[5]) for line in lines)
        assert width(joined) <= max(columns, 8 + 2 + rate + 2 + 8 + 60)


def test_a_hostile_cell_stays_in_its_line() -> None:
    shown = screen()
    shown.table(COLUMNS, [["a\nb\x1b[31m", "1", "\r"]])
    assert text(shown).count("\n") == 2
    assert "\x1b" not in text(shown)


def test_json_names_its_schema_and_version_first() -> None:
    shown = screen()
    shown.json("pods", {"pods": ["ü\x1b"]})
    assert text(shown).isascii()
    assert next(iter(json.loads(text(shown)).items())) == ("schema", "netqosctl.pods/v1")


def test_colours_are_painted_where_rich_is_there() -> None:
    pytest.importorskip("rich")
    shown = screen(paints=True)
    shown.line(Span("good", "good"), " and ", Span("bad", "bad"))
    assert text(shown) == "\x1b[32mgood\x1b[0m and \x1b[1;31mbad\x1b[0m\n"


def test_markup_in_foreign_text_is_not_obeyed() -> None:
    pytest.importorskip("rich")
    shown = screen(paints=True)
    shown.line("[red]x[/red] :smile:")
    assert text(shown) == "[red]x[/red] :smile:\n"


def test_talk_goes_to_stderr_with_details_and_next_step() -> None:
    shown = screen()
    shown.say("no\x07", hint="do that", problems=("one", "two"))
    talk = shown.talk
    assert isinstance(talk, io.StringIO)
    assert (talk.getvalue(), text(shown)) == ("netqosctl: no\\x07\n  - one\n  - two\n  do that\n", "")
