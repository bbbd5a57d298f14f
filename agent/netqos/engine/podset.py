"""What pods have a say in together: unique uids, how many rules a node takes, minima. Always in the order of uids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from netqos.engine.admission import Ask, admit
from netqos.engine.pods import NO_RULES, ResolvedPod, Rules
from netqos.model.desired import Band
from netqos.model.health import Finding, warning
from netqos.model.ids import PodUid
from netqos.model.inputs import PodFacts
from netqos.model.levels import Direction, PerDirection, PerLevel

MOST_RULES = 4_000
"""Rule classes a node (contract 1.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRules:
    """The rules of each pod that has any, as they go into the desired state."""

    by_pod: Mapping[PodUid, Rules]
    findings: tuple[Finding, ...]


def in_order(pods: Sequence[PodFacts]) -> tuple[tuple[PodFacts, ...], tuple[Finding, ...]]:
    """The pods by uid. Of several with one uid the first by name stays."""
    unique: dict[PodUid, PodFacts] = {}
    findings = []
    for facts in sorted(pods, key=_place):
        first = unique.setdefault(facts.uid, facts)
        if first is not facts:
            findings.append(
                warning(
                    "duplicate-uid",
                    facts.subject,
                    f"has the uid {facts.uid} of {first.full_name} and is left out",
                    hint="each pod needs a uid of its own",
                )
            )
    return tuple(unique.values()), tuple(findings)


def final_rules(pods: Sequence[ResolvedPod], bands: PerDirection[PerLevel[Band] | None]) -> FinalRules:
    """The rules within the node's bound, their minima admitted. `pods` are in order."""
    kept, findings = _within_bound([pod for pod in pods if pod.rules != NO_RULES])
    if not kept:
        return FinalRules(by_pod={}, findings=tuple(findings))
    rules = {pod.facts.uid: pod.rules for pod in kept}
    admitted = {}
    for direction in Direction:
        admitted[direction] = admit(list(_asks(pods, rules, direction)), bands[direction], direction)
        findings += admitted[direction].findings
    changed = {
        uid: PerDirection(
            tx=admitted[Direction.TX].rules.get(uid, own.tx), rx=admitted[Direction.RX].rules.get(uid, own.rx)
        )
        for uid, own in rules.items()
    }
    return FinalRules(by_pod=changed, findings=tuple(findings))


def _place(facts: PodFacts) -> tuple[str, ...]:
    return (facts.uid, facts.namespace, facts.name, facts.cgroup or "", *facts.addresses)


def _within_bound(pods: Sequence[ResolvedPod]) -> tuple[list[ResolvedPod], list[Finding]]:
    """Pods are served in order; one whose rules do not fit any more has none."""
    kept: list[ResolvedPod] = []
    findings: list[Finding] = []
    count = 0
    for pod in pods:
        own = len(pod.rules.tx) + len(pod.rules.rx)
        if count + own <= MOST_RULES:
            count += own
            kept.append(pod)
        else:
            findings.append(_too_many(pod, own, count))
    return kept, findings


def _asks(pods: Sequence[ResolvedPod], rules: Mapping[PodUid, Rules], direction: Direction) -> Iterator[Ask]:
    for pod in pods:
        own = rules.get(pod.facts.uid, NO_RULES)
        yield Ask(
            uid=pod.facts.uid,
            subject=pod.facts.subject,
            level=pod.level.level,
            limit_bps=pod.limits[direction].applied.bps,
            rules=own[direction],
        )


def _too_many(pod: ResolvedPod, own: int, count: int) -> Finding:
    return warning(
        "too-many-rules",
        pod.facts.subject,
        f"its {own} rules are left out: the node has {count}; allowed: {MOST_RULES} a node",
        hint="join rules, or remove some",
    )
