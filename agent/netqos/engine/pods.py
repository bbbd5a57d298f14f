"""One pod by itself: everything of it that no other pod has a say in. `podmemo` keeps it for the next step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.engine.access import Access, access_of, allowed_rules
from netqos.engine.levels import ChosenLevel, choose_level
from netqos.engine.limits import TO_NOBODY, ChosenLimit, Left, choose_limit
from netqos.model.composed import LastGood
from netqos.model.health import Finding, warning
from netqos.model.ids import PodUid
from netqos.model.inputs import NO_HELD_LIMITS, NOT_HELD, Held, HeldLimits, Override, PodFacts
from netqos.model.levels import Direction, PerDirection
from netqos.model.rules import Rule
from netqos.settings.annotations import (
    BANDWIDTHS,
    NET_QOS_CLASS,
    QOS_CLASS,
    QOS_CONFIG,
    AnnotationInputs,
    parse_annotations,
)
from netqos.settings.issues import Code
from netqos.settings.networkqos import NETWORK_QOS
from netqos.settings.values import Settings

Rules = PerDirection[tuple[Rule, ...]]

SWITCHED_OFF = Left("left to others: kubernetes.annotations is false")
NO_RULES: Rules = PerDirection(tx=(), rx=())
_RELEVANT = (
    NET_QOS_CLASS,
    NETWORK_QOS,
    QOS_CONFIG,
    *(
        BANDWIDTHS.format(domain=domain, word=direction.pod_word)
        for domain in ("koordinator.sh", "kubernetes.io")
        for direction in Direction
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContext:
    """What is the same for all pods of one compose step. `total_bps`: what percentages are of, None where unknown."""

    settings: Settings
    total_bps: PerDirection[int | None]
    last_good: LastGood
    overrides: Mapping[PodUid, Override]
    held: HeldLimits = NO_HELD_LIMITS

    def held_of(self, facts: PodFacts) -> PerDirection[Held]:
        """What of a CNI holds a pod's limits, as far as the configuration leaves them to it."""
        return NOT_HELD if self.settings.kubernetes.double_limits else self.held.of(facts.addresses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPod:
    """One pod by itself. `rules` are those that its namespace may use, `accepted_rules` those to remember."""

    facts: PodFacts
    level: ChosenLevel
    limits: PerDirection[ChosenLimit]
    rules: Rules
    accepted_rules: Rules
    findings: tuple[Finding, ...]


def resolve_pod(facts: PodFacts, context: PodContext) -> ResolvedPod:
    """Level, limits and rules of one pod, each by the first input that gives it."""
    settings, override = context.settings, context.overrides.get(facts.uid)
    asked = _read(facts, settings)
    access = access_of(facts.namespace or facts.name, settings.namespaces, settings.system_namespaces)
    level = choose_level(
        facts, asked.levels, access, override=override, is_system=_is_system(facts, settings)
    )
    limits = _limits(facts, asked, context, override)
    accepted = _accepted_rules(facts, asked, context.last_good.rules.get(facts.uid, NO_RULES))
    rules, refused = _allowed(facts, accepted, access) if accepted != NO_RULES else (NO_RULES, ())
    return ResolvedPod(
        facts=facts,
        level=level,
        limits=limits,
        rules=rules,
        accepted_rules=accepted,
        findings=(
            *facts.findings,
            *asked.findings,
            *level.findings,
            *limits.tx.findings,
            *limits.rx.findings,
            *refused,
            *_levels_beside_a_limit(facts, rules, limits),
        ),
    )


def _read(facts: PodFacts, settings: Settings) -> AnnotationInputs:
    label, annotations = facts.labels.get(QOS_CLASS), facts.annotations
    return parse_annotations(
        {key: annotations[key] for key in _RELEVANT if key in annotations},
        {} if label is None else {QOS_CLASS: label},
        subject=facts.subject,
        classes=settings.classes,
        kubernetes_limits=settings.kubernetes.annotations,
    )


def _is_system(facts: PodFacts, settings: Settings) -> bool:
    return settings.system_pods and facts.system_critical and facts.namespace in settings.system_namespaces


def _limits(
    facts: PodFacts, asked: AnnotationInputs, context: PodContext, override: Override | None
) -> PerDirection[ChosenLimit]:
    last, held = context.last_good.limits.get(facts.uid), context.held_of(facts)

    def limit(direction: Direction) -> ChosenLimit:
        return choose_limit(
            facts,
            asked.limits[direction],
            direction,
            override=override,
            total_bps=context.total_bps[direction],
            last_good=None if last is None else last[direction],
            left=_left(held[direction], context.settings),
        )

    return PerDirection(tx=limit(Direction.TX), rx=limit(Direction.RX))


def _left(held: Held, settings: Settings) -> Left:
    """To whom the annotations of kubernetes.io are left."""
    if not settings.kubernetes.annotations:
        return SWITCHED_OFF
    return Left(f"left to the CNI, which enforces it by {held}", "limited-by-cni") if held else TO_NOBODY


def _accepted_rules(facts: PodFacts, asked: AnnotationInputs, last: Rules) -> Rules:
    """What is asked for now; a direction whose text was rejected keeps its last good rules."""
    if not facts.namespace:
        return facts.direct_rules
    tx, rx = asked.rules.tx, asked.rules.rx
    return PerDirection(tx=last.tx if tx is None else tx, rx=last.rx if rx is None else rx)


def _allowed(facts: PodFacts, rules: Rules, access: Access) -> tuple[Rules, tuple[Finding, ...]]:
    tx, of_tx = allowed_rules(rules.tx, access, subject=facts.subject, where=_where(facts, Direction.TX))
    rx, of_rx = allowed_rules(rules.rx, access, subject=facts.subject, where=_where(facts, Direction.RX))
    return PerDirection(tx=tx, rx=rx), (*of_tx, *of_rx)


def _where(facts: PodFacts, direction: Direction) -> str:
    """What of a pod or workload has its rules of a direction."""
    source = f"annotation {QOS_CONFIG}: " if facts.namespace else "rules."
    return f"{source}{direction.pod_word}"


def _levels_beside_a_limit(
    facts: PodFacts, rules: Rules, limits: PerDirection[ChosenLimit]
) -> Iterator[Finding]:
    """HTB cannot cap one pod under two parents, so a pod with a limit stays whole in its level (contract 1.3)."""
    for direction in Direction:
        if limits[direction].applied.bps is None or all(rule.level is None for rule in rules[direction]):
            continue
        word = direction.pod_word
        yield warning(
            Code.NOT_ENFORCED.value,
            facts.subject,
            f"{_where(facts, direction)}: qos-class of a rule is not enforced, since the pod has an {word} limit",
            hint="remove the limit or the qos-class",
        )
