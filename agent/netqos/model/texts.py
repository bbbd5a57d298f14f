"""Untrusted values as short, safe text for messages: bounded, in one line, control characters escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

LONGEST_SHOWN = 48

LONGEST_TEXT = 64 << 10
"""Characters of an annotation that are looked at. A source keeps one more of a longer one, which tells that it is."""

TOO_LONG = f"longer than {LONGEST_TEXT >> 10} KiB"


def shown(value: object) -> str:
    """The value met, for a message; texts are in double quotes, anything not plain ASCII is escaped.

    Never longer than about 60 characters and never expensive, whatever the value is.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
        case str():
            return _quoted(value)
        case Mapping():
            return "a map"
        case Sequence():
            return "a list"
        case _:
            return _cut(ascii(value))


def listed(words: Sequence[str]) -> str:
    """`a, b or c`; empty for no words."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _quoted(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return json.dumps(text)
    length = TOO_LONG if len(text) > LONGEST_TEXT else f"{len(text)} characters"
    return f"{json.dumps(text[:LONGEST_SHOWN])}... ({length})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
