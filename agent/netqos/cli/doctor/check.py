"""The outcome of a check, and where checks look."""

from __future__ import annotations

import enum
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from netqos.model.health import Finding, Severity

COMMAND_S = 5.0


class Verdict(enum.Enum):
    """How a check ended; UNKNOWN: it could not be told."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the doctor; `hint` is the next step, empty where there is none to take."""

    name: str
    verdict: Verdict
    text: str
    hint: str = ""


def ok(name: str, text: str) -> Check:
    """Nothing is in the way."""
    return Check(name=name, verdict=Verdict.OK, text=text)


def warn(name: str, text: str, hint: str = "") -> Check:
    """It works, but not all of it, or not for ever."""
    return Check(name=name, verdict=Verdict.WARN, text=text, hint=hint)


def fail(name: str, text: str, hint: str = "") -> Check:
    """A promise cannot be kept like this."""
    return Check(name=name, verdict=Verdict.FAIL, text=text, hint=hint)


def unknown(name: str, text: str, hint: str = "") -> Check:
    """It could not be told."""
    return Check(name=name, verdict=Verdict.UNKNOWN, text=text, hint=hint)


_VERDICTS = {Severity.INFO: Verdict.OK, Severity.WARNING: Verdict.WARN, Severity.ERROR: Verdict.FAIL}


def of_findings(name: str, findings: Iterable[Finding]) -> list[Check]:
    """The same words that status would show; the subject is left out where it is the check's own name."""
    return [
        Check(
            name=name,
            verdict=_VERDICTS[one.severity],
            text=one.message if one.subject == name else f"{one.subject}: {one.message}",
            hint=one.hint,
        )
        for one in findings
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where checks look; tests point it at trees of their own."""

    root: Path = field(default=Path("/"))

    def read(self, path: str) -> str | None:
        """A small text file, None where it cannot be read."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether something is at the path."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except OSError:
            return False

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted; none where it cannot be read."""
        try:
            return sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir())
        except OSError:
            return []

    def run(self, *command: str) -> str | None:
        """What a program says, None where it is missing, fails or takes too long."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=COMMAND_S,
                check=True,
                env=environment,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout
