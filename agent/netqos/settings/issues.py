"""What is wrong with a tree of values, before it is known whether that becomes a finding or a line of a file.

Parsers here never stop at the first problem: they collect issues and go on with what is right. `Code` is the closed set
of reasons for which an input can be refused; metrics count by it.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from netqos.errors import Rejected
from netqos.model.health import Finding, warning
from netqos.model.texts import listed, shown

T = TypeVar("T")

_STEP = re.compile(r"\[([0-9]{1,9})\]|([^.\[\]]+)")

Path = tuple[str | int, ...]
"""Where a value stands in its tree: map keys and list indexes, outermost first."""


class Code(enum.Enum):
    """Why an input was refused, in part or as a whole; the value is the finding's code."""

    LEVEL = "invalid-level"
    LIMIT = "invalid-limit"
    RULES = "invalid-rules"
    UNKNOWN_KEY = "unknown-key"
    NOT_ENFORCED = "not-enforced"
    POLICY = "invalid-policy"
    TWO_SHAPES = "two-policy-shapes"
    MIXED_UNITS = "mixed-units"
    TOTAL = "invalid-total"
    BACKEND = "unknown-backend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One problem at one place. `message` says the value met and what is allowed, `hint` the next step."""

    code: Code
    path: Path
    message: str
    hint: str = ""

    def finding(self, subject: str) -> Finding:
        """The same as a warning about `subject`, the place leading the message."""
        place = path_text(self.path)
        message = f"{place}: {self.message}" if place else self.message
        return warning(self.code.value, subject, message, hint=self.hint)


class Issues:
    """Collects the issues of one tree."""

    def __init__(self) -> None:
        self._found: list[Issue] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, code: Code, path: Path, message: str, *, hint: str = "") -> None:
        """Take note of one problem."""
        self._found.append(Issue(code=code, path=path, message=message, hint=hint))

    def attempt(self, code: Code, path: Path, parse: Callable[[object], T], value: object) -> T | None:
        """`parse(value)`, or None and an issue when it raises `Rejected`."""
        try:
            return parse(value)
        except Rejected as problem:
            self.add(code, path, problem.message, hint=problem.hint)
            return None

    def extend(self, others: Issues) -> None:
        """Take over what another collection found."""
        self._found.extend(others._found)

    def found(self) -> tuple[Issue, ...]:
        """All of them, in the order in which they were met."""
        return tuple(self._found)


def check_keys(tree: Mapping[Any, object], known: Collection[str], path: Path, issues: Issues) -> None:
    """An issue for each key of `tree` that is not among `known`."""
    for key in tree:
        if key not in known:
            issues.add(
                Code.UNKNOWN_KEY, (*path, str(key)), unknown_key(str(key), known), hint="correct or remove it"
            )


def unknown_key(key: str, known: Collection[str]) -> str:
    """The words for an unknown key, with the most similar known one when there is one."""
    close = difflib.get_close_matches(key[:64], known, n=1)
    guess = f" (did you mean {close[0]}?)" if close else ""
    return f"unknown key {shown(key)}{guess}; allowed: {listed(sorted(known))}"


def path_text(path: Path) -> str:
    """`spec.rules[2].expr`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def path_of(text: str) -> Path:
    """The path whose text this is: `backends[1]` -> ("backends", 1); the inverse of `path_text` for plain keys."""
    return tuple(int(index) if index else key for index, key in _STEP.findall(text))
