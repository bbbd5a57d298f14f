"""First match wins, and the record of it: which inputs were considered, what they said, and which one counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from netqos.model.composed import Choice

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Generic[T]):
    """One input. `result` None: it was rejected, and `reason` says why; `value` is what it said, for people."""

    source: str
    value: str
    result: T | None
    reason: str = ""
    is_last_good: bool = False


def choose(lines: Iterable[Line[T] | Choice]) -> tuple[Line[T] | None, tuple[Choice, ...]]:
    """The first line with a result, and the record of all of them in their order. A ready choice is only recorded."""
    winner: Line[T] | None = None
    record: list[Choice] = []
    for line in lines:
        if isinstance(line, Choice):
            record.append(line)
            continue
        record.append(_choice(line, is_shadowed=winner is not None))
        if winner is None and line.result is not None:
            winner = line
    return winner, tuple(record)


@lru_cache(maxsize=256)
def absent(source: str, reason: str = "") -> Choice:
    """The record of an input that says nothing."""
    return Choice(source=source, value="", verdict="absent", reason=reason)


def _choice(line: Line[T], *, is_shadowed: bool) -> Choice:
    if line.result is None or line.is_last_good:
        return Choice(source=line.source, value=line.value, verdict="rejected", reason=line.reason)
    verdict = "shadowed" if is_shadowed else "used"
    return Choice(source=line.source, value=line.value, verdict=verdict, reason=line.reason)
