"""Which configuration is in force after each reading of the files. No I/O; time is passed in.

A reading that is right is accepted; one that is not leaves the last good one in force. What a running daemon cannot
change stays as it was at the start, and a finding names it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from netqos.errors import Rejected
from netqos.model.health import Finding, warning
from netqos.model.inputs import Freshness, SourceState
from netqos.settings.values import Settings
from netqos.sources.base import Snapshot
from netqos.sources.configfiles import Documents
from netqos.sources.reading import Parse, Reading, findings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Settings in force, and the texts that they were read from (to be kept for the next start)."""

    settings: Settings
    documents: Documents


class Acceptance:
    """Judges reading after reading."""

    def __init__(self, name: str, *, parse: Parse, remembered: Documents) -> None:
        """`name` is the main file's, for findings; `remembered` are the texts accepted before the restart, if any."""
        self._name = name
        self._parse = parse
        self._remembered = remembered
        self._started: Settings | None = None
        self._good: Configuration | None = None
        self._is_remembered = False
        self._accepted_s: float | None = None
        self.state = SourceState(freshness=Freshness.WAITING)

    def judge(self, reading: Reading, *, now_s: float) -> Snapshot[Configuration]:
        """What is in force now. Raises the reading's problem where nothing has ever been right.

        The snapshot's time is that of the acceptance, so that equal readings give equal snapshots; `state` has that
        of the last reading that was right.
        """
        if reading.settings is None:
            return self._keep(reading, reading.problem or Rejected("the configuration was not read"))
        return self._accept(reading, reading.settings, now_s)

    def _accept(self, reading: Reading, settings: Settings, now_s: float) -> Snapshot[Configuration]:
        self._started = self._started or settings
        kept, changed = keep_started(self._started, settings)
        good = Configuration(settings=kept, documents=reading.documents)
        if good != self._good or self.state.freshness is not Freshness.FRESH:
            self._accepted_s = now_s
        self._good, self._is_remembered = good, False
        self.state = SourceState(freshness=Freshness.FRESH, since_s=now_s)
        findings = (*reading.findings, *((_restart_needed(self._name, changed),) if changed else ()))
        return Snapshot(value=good, state=replace(self.state, since_s=self._accepted_s), findings=findings)

    def _keep(self, reading: Reading, problem: Rejected) -> Snapshot[Configuration]:
        good = self._good or self._remember(problem)
        self.state = SourceState(
            freshness=Freshness.STALE,
            since_s=self.state.since_s,
            detail="the last good configuration is in force",
        )
        findings = (*reading.findings, *findings_of(problem))
        if self._is_remembered:
            findings = (*findings, _remembered_in_force(self._name))
        return Snapshot(value=good, state=replace(self.state, since_s=self._accepted_s), findings=findings)

    def _remember(self, problem: Rejected) -> Configuration:
        """What was in force before the restart, the files being broken."""
        if not self._remembered:
            raise problem
        try:
            settings = self._parse(self._remembered)
        except Rejected:
            raise problem from None
        self._started = settings
        self._good = Configuration(settings=settings, documents=self._remembered)
        self._is_remembered = True
        return self._good


def keep_started(started: Settings, newer: Settings) -> tuple[Settings, tuple[str, ...]]:
    """The newer settings with what needs a restart as it was at the start; the keys that would differ."""
    kept = replace(
        newer,
        node_name=started.node_name,
        paths=started.paths,
        metrics_listen=started.metrics_listen,
        kubernetes=replace(started.kubernetes, annotations=newer.kubernetes.annotations),
    )
    pairs = {
        "node.name": (newer.node_name, kept.node_name),
        "paths": (newer.paths, kept.paths),
        "metrics.listen": (newer.metrics_listen, kept.metrics_listen),
        "kubernetes": (newer.kubernetes, kept.kubernetes),
    }
    return kept, tuple(key for key, (asked, given) in pairs.items() if asked != given)


def _restart_needed(name: str, changed: tuple[str, ...]) -> Finding:
    return warning(
        "restart-needed",
        name,
        f"changed, but a running daemon keeps what it was started with: {', '.join(changed)}",
        hint="restart netqosd (shaping stays meanwhile), or change it back",
    )


def _remembered_in_force(name: str) -> Finding:
    return warning(
        "configuration-remembered",
        name,
        "the files were broken at the start, so the configuration that was accepted before it is in force",
        hint="correct the files; they are taken as soon as they are right",
    )
