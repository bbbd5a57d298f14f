"""A pod's level: the first input that gives one (contract 1.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.engine.access import NOT_ALLOWED, Access
from netqos.engine.choices import Line, absent, choose
from netqos.model.composed import Choice
from netqos.model.health import Finding, warning
from netqos.model.inputs import KubernetesQos, Override, PodFacts
from netqos.model.levels import Level
from netqos.settings.annotations import NET_QOS_CLASS, QOS_CLASS
from netqos.settings.candidates import LevelCandidate

OVERRIDE, WORKLOAD = "override", "workload"
ANNOTATION, LABEL = f"annotation {NET_QOS_CLASS}", f"label {QOS_CLASS}"
SYSTEM_POD, KUBERNETES_CLASS, DEFAULT = "system pod", "kubernetes class", "default"

UNCLAIMED = Level.L1
"""Whatever nobody claims is L1, never L0 (contract 1.1)."""

OF_CLASS = {
    KubernetesQos.GUARANTEED: Level.L1,
    KubernetesQos.BURSTABLE: Level.L1,
    KubernetesQos.BEST_EFFORT: Level.L2,
}
_OF_CLASS = {
    qos: Line(source=KUBERNETES_CLASS, value=qos.value, result=level) for qos, level in OF_CLASS.items()
}
_NOBODY = Line(source=DEFAULT, value="nobody claims it", result=UNCLAIMED)
_SYSTEM = Line(source=SYSTEM_POD, value="system-critical", result=Level.L0)

LevelLine = Line[Level] | Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLevel:
    """The level, the input that gave it, and the record of all inputs."""

    level: Level
    source: str
    choices: tuple[Choice, ...]
    findings: tuple[Finding, ...] = ()


def choose_level(
    facts: PodFacts,
    candidates: tuple[LevelCandidate, ...],
    access: Access,
    *,
    override: Override | None,
    is_system: bool,
) -> ChosenLevel:
    """The level of a pod. `is_system`: contract 1.1 line 3 holds for it."""
    asked = {candidate.source: _asked(candidate, access) for candidate in candidates}
    own = _of_pod(facts, asked, is_system=is_system) if facts.namespace else _of_workload(facts, access)
    given = [_override(override), *own]
    winner, record = choose(given)
    chosen = winner or _NOBODY
    refused = [line for line in given if isinstance(line, Line) and line.result is None]
    parsed = {candidate.source for candidate in candidates if candidate.level is None}
    return ChosenLevel(
        level=chosen.result or UNCLAIMED,
        source=chosen.source,
        choices=record,
        findings=tuple(_not_allowed(facts, line) for line in refused if line.source not in parsed),
    )


def _override(override: Override | None) -> LevelLine:
    if override is None or override.level is None:
        return absent(OVERRIDE)
    return Line(source=OVERRIDE, value=override.level.name, result=override.level, reason=override.reason)


def _of_pod(facts: PodFacts, asked: Mapping[str, LevelLine], *, is_system: bool) -> Iterator[LevelLine]:
    yield asked.get(ANNOTATION, absent(ANNOTATION))
    yield asked.get(LABEL, absent(LABEL))
    yield _SYSTEM if is_system else absent(SYSTEM_POD)
    yield _NOBODY if facts.kubernetes_qos is None else _OF_CLASS[facts.kubernetes_qos]


def _of_workload(facts: PodFacts, access: Access) -> Iterator[LevelLine]:
    level = facts.direct_level
    if level is None:
        yield absent(WORKLOAD)
    else:
        why = access.refuse_level(level)
        yield Line(source=WORKLOAD, value=level.name, result=None if why else level, reason=why)
    yield _NOBODY


def _asked(candidate: LevelCandidate, access: Access) -> LevelLine:
    if candidate.level is None:
        why = "" if candidate.finding is None else candidate.finding.message
    else:
        why = access.refuse_level(candidate.level)
    result = None if why else candidate.level
    return Line(source=candidate.source, value=candidate.value, result=result, reason=why)


def _not_allowed(facts: PodFacts, line: Line[Level]) -> Finding:
    return warning(
        NOT_ALLOWED,
        facts.subject,
        f"{line.source}: {line.reason}; the next input counts",
        hint="use a level that is allowed, or allow it in policy.namespaces",
    )
