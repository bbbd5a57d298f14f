"""Findings: what is wrong or noteworthy, in the words that status, metrics, logs and `explain` share."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.Enum):
    """How loud a finding is. An ERROR finding means that a promise is not kept at this moment."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation about one object.

    `code` is stable and kebab-case (metrics label, tests compare it); `subject` is what it is about (`pod ns/name`,
    `netqos.yaml line 7`, `eth0`, `backend tc`); `message` says what was met and what is allowed; `hint` is the next
    step. A finding lives exactly as long as its cause.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    hint: str = ""


def warning(code: str, subject: str, message: str, *, hint: str = "") -> Finding:
    """A WARNING finding."""
    return Finding(code=code, severity=Severity.WARNING, subject=subject, message=message, hint=hint)


def error(code: str, subject: str, message: str, *, hint: str = "") -> Finding:
    """An ERROR finding."""
    return Finding(code=code, severity=Severity.ERROR, subject=subject, message=message, hint=hint)


def info(code: str, subject: str, message: str, *, hint: str = "") -> Finding:
    """An INFO finding."""
    return Finding(code=code, severity=Severity.INFO, subject=subject, message=message, hint=hint)
