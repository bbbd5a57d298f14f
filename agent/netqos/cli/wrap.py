"""Long lines broken at spaces, so that nothing of them is cut off. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from netqos.cli.units import width

Piece = tuple[str, str]
"""A text and its style."""


def wrap(pieces: Iterable[Piece], *, room: int, hang: int) -> list[list[Piece]]:
    """Lines of at most `room` columns, those after the first indented by `hang`.

    A word that is longer than that (a path, a command's argument) stays in one piece, so that it can be copied.
    """
    lines: list[list[Piece]] = [[]]
    used = 0
    for blank, word in _words(pieces):
        size = sum(width(text) for text, _ in word)
        if used + len(blank) + size > room and used + len(blank) > hang:
            lines.append([(" " * hang, ""), *word])
            used = hang + size
        else:
            lines[-1] += [(blank, ""), *word]
            used += len(blank) + size
    return lines


def _words(pieces: Iterable[Piece]) -> Iterator[tuple[str, list[Piece]]]:
    """Each word, which may be made of several pieces, with the blanks before it."""
    blank, word = "", list[Piece]()
    for text, style in pieces:
        for part in re.findall(r" +|[^ ]+", text):
            if part[0] != " ":
                word.append((part, style))
                continue
            if word:
                yield blank, word
                blank, word = "", []
            blank += part
    if word:
        yield blank, word
