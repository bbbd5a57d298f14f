"""The log's lines about inputs: each finding when it appears, each source when its state changes. Never a tick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from netqos.model.health import Finding, Severity
from netqos.model.inputs import Freshness, SourceState
from netqos.observe.kubeturns import Bucket
from netqos.observe.recorder import REJECTIONS

BURST, EVERY_S = 100, 0.2
"""So many lines about findings at once, and one more each so many seconds: annotations are hostile input."""

AGAIN_S = 10.0
"""The shortest time between two lines about a source that stays away for changing reasons."""

TOLD_ELSEWHERE = frozenset(
    {"source-away", "source-missing", "state-not-kept", "state-set-aside", "metrics-not-served"}
)
"""Codes of what is logged where it happens, or as a source's state."""


class Log(Protocol):
    """Where lines go: structlog's logger."""

    def info(self, event: str, **values: object) -> object:
        """A line."""
        ...

    def warning(self, event: str, **values: object) -> object:
        """A line."""
        ...

    def error(self, event: str, **values: object) -> object:
        """A line."""
        ...


@dataclass(frozen=True, slots=True)
class _Said:
    state: SourceState
    at_s: float


class Transitions:
    """Remembers what was logged. For one task."""

    def __init__(self, log: Log) -> None:
        """Nothing was seen yet."""
        self._log = log
        self._findings: frozenset[tuple[str, ...]] = frozenset()
        self._said: dict[str, _Said] = {}
        self._bucket = Bucket(burst=BURST, every_s=EVERY_S)
        self._unlogged = 0

    def saw(self, findings: Iterable[Finding], now_s: float) -> None:
        """All findings of this moment: a line for each that is new, and a rejected input again when it changes."""
        standing = {_key(one): one for one in findings if _is_of_note(one)}
        for key in standing.keys() - self._findings:
            self._tell(standing[key], now_s)
        self._findings = frozenset(standing)

    def sources(self, states: Mapping[str, SourceState], now_s: float) -> None:
        """All sources of this moment: a line for each that came, went, is back, or is away for another reason."""
        for name, state in states.items():
            said = self._said.get(name)
            if said is None or self._is_news(state, said, now_s):
                # What comes after the first words of a start is told at once.
                self._said[name] = _Said(state, now_s if said is not None else float("-inf"))
                self._tell_source(name, state, said)

    def _is_news(self, state: SourceState, said: _Said, now_s: float) -> bool:
        if state.freshness is not said.state.freshness:
            return True
        return state.detail != said.state.detail and now_s - said.at_s >= AGAIN_S

    def _tell_source(self, name: str, state: SourceState, said: _Said | None) -> None:
        if state.freshness is not Freshness.FRESH:
            tell = self._log.info if said is None else self._log.warning
            tell("source-away", source=name, state=state.freshness.value, detail=state.detail)
        else:
            self._log.info("source-fresh", source=name, detail=state.detail)

    def _tell(self, finding: Finding, now_s: float) -> None:
        if self._bucket.wait_s(now_s):
            self._unlogged += 1
            return
        if self._unlogged:
            self._log.warning("findings-not-logged", count=self._unlogged, hint="`netqosctl pods` has them")
            self._unlogged = 0
        tell = self._log.error if finding.severity is Severity.ERROR else self._log.warning
        tell(finding.code, subject=finding.subject, message=finding.message, hint=finding.hint)


def _is_of_note(finding: Finding) -> bool:
    return finding.severity is not Severity.INFO and finding.code not in TOLD_ELSEWHERE


def _key(finding: Finding) -> tuple[str, ...]:
    """Other findings' messages may hold figures that never rest."""
    is_input = finding.code in REJECTIONS
    return (finding.code, finding.subject, *((finding.message,) if is_input else ()))
