"""A pod's limit in one direction: the first input that gives one, and what stays when an input is wrong (contract 1.2).

A rejected annotation keeps the last good value of the same annotation; where it never had one, the next line counts. An
override hides what the annotations say but does not make anybody forget it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.engine.choices import Line, absent, choose
from netqos.model.composed import AppliedLimit, Choice
from netqos.model.health import Finding, info, warning
from netqos.model.inputs import Override, Percent, PodFacts
from netqos.model.levels import Direction
from netqos.model.quantities import format_bandwidth, resolve
from netqos.settings.candidates import LimitCandidate, plain

OVERRIDE, WORKLOAD, NOBODY = "override", "workload", "none"
LAST_GOOD_SUFFIX = " (last good)"

_ANNOTATIONS: Mapping[Direction, tuple[str, ...]] = {
    direction: (
        "annotation koordinator.sh/networkQOS",
        "annotation koordinator.sh/qos-config",
        f"annotation koordinator.sh/{direction.pod_word}-bandwidth",
        f"annotation kubernetes.io/{direction.pod_word}-bandwidth",
    )
    for direction in Direction
}

LastLimit = tuple[int, str] | None
LimitLine = Line[int] | Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLimit:
    """The limit in force, and what to remember of the annotations: the last good value, 0 for "no limit"."""

    applied: AppliedLimit
    last_good: LastLimit = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """Why the annotation of kubernetes.io is left to others, and the code of the finding that tells of it, if any."""

    why: str = ""
    code: str = ""


TO_NOBODY = Left()


def choose_limit(
    facts: PodFacts,
    candidates: tuple[LimitCandidate, ...],
    direction: Direction,
    *,
    override: Override | None,
    total_bps: int | None,
    last_good: LastLimit,
    left: Left = TO_NOBODY,
) -> ChosenLimit:
    """The limit of a pod in one direction. `total_bps` is what a percentage is of, None: unknown.

    `left`: whether the annotation of kubernetes.io is ours at all.
    """
    own = _workload(facts, direction) if not facts.namespace else ()
    left_text = _text_left(facts, direction) if left.why else ""
    if not candidates and not own and override is None and not left_text:
        return _UNLIMITED[direction]
    lines = _annotations(candidates, direction, total_bps, last_good) if facts.namespace else ()
    if lines and left_text:
        lines = (*lines[:-1], _left(direction, left_text, left.why))
    annotated, _ = choose(lines)
    winner, record = choose((_override(override, direction), *own, *lines))
    return ChosenLimit(
        applied=_applied(winner, record),
        last_good=None
        if annotated is None or annotated.result is None
        else (annotated.result, annotated.source),
        findings=(
            *_of_unknown_total(facts, candidates, total_bps),
            *(_told(facts, line, left.code) for line in lines[-1:] if left_text and left.code),
        ),
    )


def _override(override: Override | None, direction: Direction) -> LimitLine:
    bps = None if override is None else override.limits[direction]
    if override is None or bps is None:
        return absent(OVERRIDE)
    return Line(source=OVERRIDE, value=format_bandwidth(bps), result=bps, reason=override.reason)


def _workload(facts: PodFacts, direction: Direction) -> tuple[LimitLine, ...]:
    bps = facts.direct_limits[direction]
    if bps is None:
        return (absent(WORKLOAD),)
    return (Line(source=WORKLOAD, value=format_bandwidth(bps), result=bps),)


def _annotations(
    candidates: tuple[LimitCandidate, ...],
    direction: Direction,
    total_bps: int | None,
    last_good: LastLimit,
) -> tuple[LimitLine, ...]:
    def line(source: str) -> LimitLine:
        found = next((one for one in candidates if one.source.startswith(source)), None)
        return absent(source) if found is None else _asked(found, total_bps, last_good)

    return tuple(line(source) for source in _ANNOTATIONS[direction])


def _text_left(facts: PodFacts, direction: Direction) -> str:
    return facts.annotations.get(_ANNOTATIONS[direction][-1].removeprefix("annotation "), "")


def _left(direction: Direction, text: str, why: str) -> Choice:
    return Choice(source=_ANNOTATIONS[direction][-1], value=plain(text), verdict="shadowed", reason=why)


def _told(facts: PodFacts, line: LimitLine, code: str) -> Finding:
    return info(code, facts.subject, f"{line.source} ({line.value}) is {line.reason}")


def _asked(candidate: LimitCandidate, total_bps: int | None, last_good: LastLimit) -> Line[int]:
    why = _refusal(candidate, total_bps)
    if not why:
        bps = resolve(candidate.amount or 0, total_bps or 0)
        return Line(source=candidate.source, value=candidate.value, result=bps)
    if last_good is None or not last_good[1].startswith(candidate.source):
        return Line(source=candidate.source, value=candidate.value, result=None, reason=why)
    bps, source = last_good
    why = f"{why}; the last good value {format_bandwidth(bps)} stays"
    return Line(source=source, value=candidate.value, result=bps, reason=why, is_last_good=True)


def _refusal(candidate: LimitCandidate, total_bps: int | None) -> str:
    if candidate.amount is None:
        return "it is not valid" if candidate.finding is None else candidate.finding.message
    if _is_of_unknown(candidate, total_bps):
        return "it is a percentage of the total, which is unknown"
    return ""


def _is_of_unknown(candidate: LimitCandidate, total_bps: int | None) -> bool:
    return isinstance(candidate.amount, Percent) and total_bps is None


def _of_unknown_total(
    facts: PodFacts, candidates: tuple[LimitCandidate, ...], total_bps: int | None
) -> Iterator[Finding]:
    for candidate in candidates:
        if _is_of_unknown(candidate, total_bps):
            yield warning(
                "limit-of-unknown-total",
                facts.subject,
                f"{candidate.source}: {candidate.value} is a percentage of the total, which is unknown",
                hint="set the node's total (node.bandwidth), or write a quantity such as 10M",
            )


def _applied(winner: Line[int] | None, record: tuple[Choice, ...]) -> AppliedLimit:
    if winner is None:
        return AppliedLimit(bps=None, source=NOBODY, choices=record)
    source = winner.source + (LAST_GOOD_SUFFIX if winner.is_last_good else "")
    return AppliedLimit(bps=winner.result or None, source=source, choices=record)


_UNLIMITED = {
    direction: ChosenLimit(
        applied=AppliedLimit(
            bps=None,
            source=NOBODY,
            choices=(absent(OVERRIDE), *(absent(source) for source in _ANNOTATIONS[direction])),
        )
    )
    for direction in Direction
}
