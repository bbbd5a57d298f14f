"""A pod's annotations and labels -> what they ask for, in the order in which the engine tries it (contract 1.1 to 1.3).

Annotations are hostile input. Each direction is looked at on its own: what is wrong is a candidate that was rejected,
with its finding, and nothing else of the pod is touched. Overrides, the namespace policy and last good values are the
engine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.errors import Rejected
from netqos.model.health import Finding, warning
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.quantities import parse_limit
from netqos.model.rules import Rule
from netqos.model.texts import listed, shown
from netqos.settings.candidates import (
    LevelCandidate,
    LimitCandidate,
    level_candidate,
    limit_candidate,
    plain,
)
from netqos.settings.issues import Code
from netqos.settings.jsontext import load_json
from netqos.settings.matching import parse_level
from netqos.settings.networkqos import parse_network_qos
from netqos.settings.rules import ParsedRules, WholePodLimit, parse_rules
from netqos.settings.values import DEFAULT_CLASSES

NET_QOS_CLASS = "koordinator.sh/net-qos-class"
QOS_CLASS = "koordinator.sh/qosClass"
QOS_CONFIG = "koordinator.sh/qos-config"
BANDWIDTHS = "{domain}/{word}-bandwidth"
FOR_CNI = frozenset(BANDWIDTHS.format(domain="kubernetes.io", word=one.pod_word) for one in Direction)
"""What a CNI's limiter may hold already (contract 1.2 line 5)."""

NO_RULES = ParsedRules(rules=PerDirection(tx=(), rx=()), limits=PerDirection(tx=None, rx=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationInputs:
    """Everything that annotations and labels say of one pod.

    `limits` and `levels` hold candidates in the order in which they are tried; an input that is not there is no
    candidate. `rules` None: that direction's rules were rejected. `findings` are all, those of candidates included.
    """

    limits: PerDirection[tuple[LimitCandidate, ...]]
    rules: PerDirection[tuple[Rule, ...] | None]
    levels: tuple[LevelCandidate, ...]
    findings: tuple[Finding, ...]


def parse_annotations(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    subject: str,
    classes: Mapping[str, Level] = DEFAULT_CLASSES,
    kubernetes_limits: bool = True,
) -> AnnotationInputs:
    """Read one pod's maps; never raises. `subject` is what findings are about (`pod namespace/name`).

    `classes` is the table of contract 1.1 line 2; `kubernetes_limits` False leaves out contract 1.2 line 5.
    """
    network_qos = parse_network_qos(annotations.get("koordinator.sh/networkQOS"), subject=subject)
    config, findings = _parse_config(annotations.get(QOS_CONFIG), subject)

    def limits(direction: Direction) -> tuple[LimitCandidate, ...]:
        whole_pod = config.limits[direction]
        found = (
            network_qos.limits[direction],
            None if whole_pod is None else _whole_pod(whole_pod, subject),
            _bandwidth(annotations, "koordinator.sh", direction, subject),
            _bandwidth(annotations, "kubernetes.io", direction, subject) if kubernetes_limits else None,
        )
        return tuple(candidate for candidate in found if candidate is not None)

    both = PerDirection(tx=limits(Direction.TX), rx=limits(Direction.RX))
    levels = _levels(annotations, labels, classes, subject)
    own = [level.finding for level in levels] + [limit.finding for limit in (*both.rx, *both.tx)]
    return AnnotationInputs(
        limits=both,
        rules=config.rules,
        levels=levels,
        findings=tuple(
            dict.fromkeys(one for one in (*own, *network_qos.findings, *findings) if one is not None)
        ),
    )


def _bandwidth(
    annotations: Mapping[str, str], domain: str, direction: Direction, subject: str
) -> LimitCandidate | None:
    """`DOMAIN/egress-bandwidth` or its twin; an empty text is as good as absent."""
    key = BANDWIDTHS.format(domain=domain, word=direction.pod_word)
    value = annotations.get(key)
    if value is None or value == "":
        return None
    return limit_candidate(value, source=f"annotation {key}", subject=subject, parse=parse_limit)


def _parse_config(text: str | None, subject: str) -> tuple[ParsedRules, tuple[Finding, ...]]:
    """The rules, and the findings except those of whole-pod limits, which are their candidates' own."""
    source = f"annotation {QOS_CONFIG}"
    if text is None or text == "":
        return NO_RULES, ()
    try:
        tree = load_json(text) if isinstance(text, str) else text
    except Rejected as problem:
        rejected = ParsedRules(rules=PerDirection(tx=None, rx=None), limits=PerDirection(tx=None, rx=None))
        return rejected, (
            warning(Code.RULES.value, subject, f"{source}: {problem.message}", hint=problem.hint),
        )
    if tree is None:
        return NO_RULES, ()
    parsed = parse_rules(tree)
    limits = [limit.issue for limit in (parsed.limits.tx, parsed.limits.rx) if limit is not None]
    return parsed, tuple(
        _within(source, issue.finding(subject)) for issue in parsed.issues if issue not in limits
    )


def _within(source: str, finding: Finding) -> Finding:
    return warning(finding.code, finding.subject, f"{source}: {finding.message}", hint=finding.hint)


def _whole_pod(limit: WholePodLimit, subject: str) -> LimitCandidate:
    source = f"annotation {QOS_CONFIG}"
    finding = None if limit.issue is None else _within(source, limit.issue.finding(subject))
    return LimitCandidate(source=source, value=plain(limit.text), amount=limit.bps, finding=finding)


def _levels(
    annotations: Mapping[str, str], labels: Mapping[str, str], classes: Mapping[str, Level], subject: str
) -> tuple[LevelCandidate, ...]:
    def parse_class(value: object) -> Level:
        level = classes.get(value) if isinstance(value, str) else None
        if level is None:
            raise Rejected(
                f"{shown(value)} is no class; allowed: {listed(sorted(classes))}", hint=_same(value, classes)
            )
        return level

    found = []
    if NET_QOS_CLASS in annotations:
        source = f"annotation {NET_QOS_CLASS}"
        value = annotations[NET_QOS_CLASS]
        found.append(level_candidate(value, source=source, subject=subject, parse=parse_level))
    if QOS_CLASS in labels:
        source = f"label {QOS_CLASS}"
        found.append(level_candidate(labels[QOS_CLASS], source=source, subject=subject, parse=parse_class))
    return tuple(found)


def _same(value: object, classes: Mapping[str, Level]) -> str:
    """The hint for a class that is right but for its case."""
    upper = value.upper() if isinstance(value, str) and len(value) < 64 else ""
    return f"write {upper}" if upper in classes else "write one of these classes"
