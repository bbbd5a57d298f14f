"""What one annotation or label asks for: a value to try, or a refusal with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netqos.errors import Rejected
from netqos.model.health import Finding, warning
from netqos.model.inputs import Amount
from netqos.model.levels import Level
from netqos.model.texts import shown
from netqos.settings.issues import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCandidate:
    """A limit for one direction. `amount` 0: no limit; None: rejected, and `finding` says why.

    `source` names the input as `explain` shows it, `value` is the text that was met, cut to a safe length.
    """

    source: str
    value: str
    amount: Amount | None
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCandidate:
    """A level. `level` None: rejected, and `finding` says why. `source` and `value` as for a limit."""

    source: str
    value: str
    level: Level | None
    finding: Finding | None = None


def limit_candidate(
    value: object, *, source: str, subject: str, parse: Callable[[object], Amount]
) -> LimitCandidate:
    """The candidate that `parse` makes of a value, or a rejected one when it raises `Rejected`."""
    try:
        return LimitCandidate(source=source, value=plain(value), amount=parse(value))
    except Rejected as problem:
        finding = warning(Code.LIMIT.value, subject, f"{source}: {problem.message}", hint=problem.hint)
        return LimitCandidate(source=source, value=plain(value), amount=None, finding=finding)


def level_candidate(
    value: object, *, source: str, subject: str, parse: Callable[[object], Level]
) -> LevelCandidate:
    """As `limit_candidate`, for a level."""
    try:
        return LevelCandidate(source=source, value=plain(value), level=parse(value))
    except Rejected as problem:
        finding = warning(Code.LEVEL.value, subject, f"{source}: {problem.message}", hint=problem.hint)
        return LevelCandidate(source=source, value=plain(value), level=None, finding=finding)


def plain(value: object) -> str:
    """A text as it stands when that is short and harmless, anything else as messages show it."""
    is_harmless = isinstance(value, str) and len(value) <= 48 and value.isascii() and value.isprintable()
    return str(value) if is_harmless else shown(value)
