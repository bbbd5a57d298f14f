"""Lines and tables for people: plain text that fits the terminal, and colours where rich is there to paint them.

Data goes to stdout, talk to stderr. Every text is made safe before it is shown: names, annotations and reasons come
from others, and a terminal obeys what it is sent.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TextIO

from netqos.cli.units import cut, safe, width
from netqos.cli.wrap import wrap

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST = 40
MOST_USEFUL = 120
PROSE = 80
GAP = 2

STYLES = {
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "head": "bold",
    "dim": "dim",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line; `style` is a key of `STYLES`, or empty."""

    text: str
    style: str = ""


Line = Sequence[Span | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table's column. Numbers are right-aligned; a flexible column gives way when the table is too wide.

    Then its texts are cut, or go on in further lines where it `wraps`.
    """

    head: str
    right: bool = False
    flexible: bool = False
    wraps: bool = False


@dataclass(slots=True)
class Screen:
    """Where a command writes: `columns` None means as wide as it gets (a pipe).

    `shows_via` is the stream whose encoding counts, where `out` is only on the way to it.
    """

    out: TextIO
    talk: TextIO
    columns: int | None = None
    paints: bool = False
    shows_via: TextIO | None = None
    _console: Console | None = field(default=None)

    @classmethod
    def of_terminal(cls, color: str = "auto") -> Screen:
        """The process' own stdout and stderr."""
        return cls(
            out=sys.stdout, talk=sys.stderr, columns=_columns(sys.stdout), paints=_paints(sys.stdout, color)
        )

    @property
    def shows(self) -> TextIO:
        """The stream that people see."""
        return self.shows_via if self.shows_via is not None else self.out

    @property
    def mark(self) -> str:
        """What stands for text that was left off."""
        return "…" if can_show(self.shows, "…") else "..."

    def through(self, text: TextIO) -> Screen:
        """The same screen, collecting in `text` first."""
        return Screen(
            out=text, talk=self.talk, columns=self.columns, paints=self.paints, shows_via=self.shows
        )

    def refit(self) -> None:
        """Take the terminal's width as it is now."""
        if self.out.isatty():
            self.columns = _columns(self.out)

    def line(self, *spans: Span | str) -> None:
        """One line of data."""
        self._write([spans])

    def lines(self, lines: Iterable[Line]) -> None:
        """Several lines of data."""
        self._write(lines)

    def prose(self, *spans: Span | str, hang: int = 0) -> None:
        """One line of data for reading: broken at spaces where it is too long, the rest indented by `hang`."""
        pieces = ((_text(one), one.style if isinstance(one, Span) else "") for one in spans)
        broken = wrap(pieces, room=self.columns or PROSE, hang=hang)
        self._write([Span(text, style) for text, style in line] for line in broken)

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Span | str]], *, indent: int = 0
    ) -> None:
        """A table with its head; nothing at all without rows."""
        if rows:
            self._write(table_lines(columns, rows, room=self.columns, indent=indent, mark=self.mark))

    def json(self, schema: str, answer: dict[str, Any]) -> None:
        """The answer for programs: one JSON object whose first key names the schema and its version."""
        self.out.write(json.dumps({"schema": f"netqosctl.{schema}/v1", **answer}, indent=2) + "\n")

    def json_line(self, schema: str, answer: dict[str, Any]) -> None:
        """As `json`, in one line, for answers that follow one another."""
        self.out.write(json.dumps({"schema": f"netqosctl.{schema}/v1", **answer}) + "\n")

    def say(self, text: str, *, hint: str = "", problems: Sequence[str] = ()) -> None:
        """Talk: a message for the person, with details and the next step."""
        self.talk.write(f"netqosctl: {safe(text)}\n")
        for problem in problems:
            self.talk.write(f"  - {safe(problem)}\n")
        if hint:
            self.talk.write(f"  {safe(hint)}\n")
        self.talk.flush()

    def _write(self, lines: Iterable[Line]) -> None:
        if self.paints:
            self._paint(lines)
            return
        for line in lines:
            self.out.write("".join(_text(span) for span in line).rstrip() + "\n")

    def _paint(self, lines: Iterable[Line]) -> None:
        from rich.text import Text  # noqa: PLC0415 - an extra, and only for those who see colours

        if self._console is None:
            from rich.console import Console  # noqa: PLC0415 - as above

            self._console = Console(file=self.out, highlight=False, soft_wrap=True, force_terminal=True)
        for line in lines:
            parts = [
                (_text(one), STYLES[one.style]) if isinstance(one, Span) and one.style else _text(one)
                for one in line
            ]
            self._console.print(Text.assemble(*parts))


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Span | str]],
    *,
    room: int | None,
    indent: int = 0,
    mark: str = "...",
) -> list[Line]:
    """The lines of a table, at most `room` columns wide as far as its flexible columns allow."""
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [
        max(width(column.head), *(width(row[place]) for row in texts)) for place, column in enumerate(columns)
    ]
    if room is not None:
        widths = _narrowed(columns, widths, room - indent)
    head = [Span(column.head.upper(), "dim") for column in columns]
    places = list(zip(columns, widths, strict=True))
    return [[" " * indent, *line] for row in (head, *rows) for line in _row(places, row, mark)]


def _narrowed(columns: Sequence[Column], widths: list[int], room: int) -> list[int]:
    """Take what is too much from the flexible columns, always from the widest of them."""
    narrowed = list(widths)
    places = [place for place, column in enumerate(columns) if column.flexible]
    excess = sum(widths) + GAP * (len(widths) - 1) - room
    while excess > 0 and places:
        widest = max(places, key=lambda place: narrowed[place])
        if narrowed[widest] <= max(8, width(columns[widest].head)):
            break
        narrowed[widest] -= 1
        excess -= 1
    return narrowed


def _row(places: Sequence[tuple[Column, int]], cells: Sequence[Span | str], mark: str) -> list[Line]:
    fitted = [_fitted(place, _text(cell), mark) for place, cell in zip(places, cells, strict=True)]
    styles = [cell.style if isinstance(cell, Span) else "" for cell in cells]
    lines: list[Line] = []
    for texts in zip_longest(*fitted, fillvalue=""):
        spans: list[Span | str] = []
        for (column, columns), text, style in zip(places, texts, styles, strict=True):
            padding = " " * (columns - width(text))
            spans += [padding, Span(text, style)] if column.right else [Span(text, style), padding]
            spans.append(" " * GAP)
        lines.append(spans)
    return lines


def _fitted(place: tuple[Column, int], text: str, mark: str) -> list[str]:
    """The lines of one cell."""
    column, columns = place
    broken = wrap([(text, "")], room=columns, hang=0) if column.wraps else [[(text, "")]]
    return [cut("".join(piece for piece, _ in line), columns, mark) for line in broken]


def _text(span: Span | str) -> str:
    return safe(span.text if isinstance(span, Span) else span)


def reader_gone() -> int:
    """The reader of a pipe has had enough: no error (exit code 0), and nothing may be flushed to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def can_show(out: TextIO, text: str) -> bool:
    """Whether the stream's encoding has these characters."""
    try:
        text.encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns(out: TextIO) -> int | None:
    if not out.isatty() and "COLUMNS" not in os.environ:
        return None
    return max(NARROWEST, min(shutil.get_terminal_size((100, 24)).columns, MOST_USEFUL))


def _paints(out: TextIO, color: str) -> bool:
    if color == "never" or (color == "auto" and (not out.isatty() or "NO_COLOR" in os.environ)):
        return False
    if os.environ.get("TERM") == "dumb" and color == "auto":
        return False
    from importlib.util import find_spec  # noqa: PLC0415 - only asked on a terminal

    return find_spec("rich") is not None
