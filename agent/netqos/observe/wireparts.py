"""From the model's values to the wire's: the parts that several resources share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netqos.backend import LeafCounters, PacketWay
from netqos.model.composed import Choice, PodView
from netqos.model.desired import DesiredPod
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.inputs import Override
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.plan import ApplyResult, Plan
from netqos.model.rules import IpMatch, Match, Rule, level_of
from netqos.observe import wire
from netqos.observe.enforced import Enforcement, Verdict
from netqos.observe.looks import Look
from netqos.observe.moment import Moment
from netqos.observe.view import AgentView

_LEVELS: tuple[wire.LevelName, ...] = ("L0", "L1", "L2")


def way(direction: Direction) -> wire.Way:
    """`tx` or `rx`."""
    return "tx" if direction is Direction.TX else "rx"


def word(direction: Direction) -> wire.Word:
    """`egress` or `ingress`."""
    return "egress" if direction is Direction.TX else "ingress"


def level_name(level: Level) -> wire.LevelName:
    """`L0`, `L1` or `L2`."""
    return _LEVELS[level.value]


def by_level(values: PerLevel[wire.T]) -> dict[wire.LevelName, wire.T]:
    """The three values by name."""
    return dict(zip(_LEVELS, values, strict=True))


def findings(found: Iterable[Finding]) -> list[wire.FindingWire]:
    """Findings in their order."""
    return [
        wire.FindingWire(
            code=one.code,
            severity=one.severity.value,
            subject=one.subject,
            message=one.message,
            hint=one.hint,
        )
        for one in found
    ]


def result(done: ApplyResult) -> wire.ResultWire:
    """What an apply did."""
    failures = [
        wire.FailureWire(
            verb=one.operation.verb.value,
            subject=one.operation.subject,
            detail=one.operation.detail,
            code=one.code,
            message=one.message,
        )
        for one in done.failures
    ]
    return wire.ResultWire(ok=done.ok, applied=done.applied, failures=failures)


def plan(made: Plan) -> wire.BackendPlanWire:
    """What one backend would change."""
    operations = [
        wire.OperationWire(verb=one.verb.value, subject=one.subject, detail=one.detail)
        for one in made.operations
    ]
    return wire.BackendPlanWire(backend=made.backend, operations=operations, findings=findings(made.findings))


def override(given: Override, view: AgentView, moment: Moment) -> wire.OverrideWire:
    """An override with the time it has left: whichever of its two clocks ends it first."""
    pods = view.composition.pods if view.composition is not None else ()
    left_s = max(0.0, min(given.expires_wall_s - moment.wall_s, given.expires_boot_s - moment.boot_s))
    return wire.OverrideWire(
        uid=given.uid,
        pod=next((pod.full_name for pod in pods if pod.uid == given.uid), None),
        egress_bps=given.limits.tx,
        ingress_bps=given.limits.rx,
        level=level_name(given.level) if given.level is not None else None,
        expires_in_s=round(left_s, 3),
        expires_unix_s=round(moment.wall_s + left_s, 3),
        reason=given.reason,
        author_uid=given.author_uid,
    )


def pod(
    shown: PodView,
    enforcement: Enforcement,
    counters: Mapping[PodUid, tuple[LeafCounters, ...]] | None = None,
) -> wire.PodWire:
    """One pod; counters None means that they were not asked for."""
    return wire.PodWire(
        uid=shown.uid,
        namespace=shown.namespace,
        name=shown.name,
        level=level_name(shown.level),
        level_source=shown.level_source,
        limits={word(one): _limit(shown, enforcement, one) for one in Direction},
        addresses=list(shown.addresses),
        cgroup=shown.cgroup,
        host_network=shown.host_network,
        overridden=any(one.uid == shown.uid for one in enforcement.view.overrides),
        counters=[_counters(one) for one in counters.get(shown.uid, ())] if counters is not None else None,
        findings=findings(shown.findings),
    )


def choices(considered: Iterable[Choice]) -> list[wire.ChoiceWire]:
    """Inputs in the order of precedence."""
    return [
        wire.ChoiceWire(source=one.source, value=one.value, verdict=one.verdict, reason=one.reason)
        for one in considered
    ]


def rules(shown: PodView, desired: DesiredPod, enforcement: Enforcement) -> list[wire.RuleWire]:
    """The rules inside a pod, egress first."""
    return [
        _rule(
            number,
            asked,
            direction,
            _not_enforced(asked, desired, direction, enforcement.rules(shown, direction)),
        )
        for direction in Direction
        for number, asked in enumerate(desired.rules[direction])
    ]


def _not_enforced(asked: Rule, desired: DesiredPod, direction: Direction, verdict: Verdict) -> str:
    """What stands against a rule: nobody enforces any, or its level would let the pod out of its limit."""
    if not verdict.by:
        return verdict.obstacle
    own = level_of(asked, desired.level, desired.limits_bps[direction])
    is_left_out = asked.level is not None and asked.level is not own
    return "its level: the pod has a limit, which no rule may leave" if is_left_out else ""


def _rule(number: int, asked: Rule, direction: Direction, not_enforced: str) -> wire.RuleWire:
    return wire.RuleWire(
        number=number,
        direction=word(direction),
        matches=[_match(one) for one in asked.matches],
        level=level_name(asked.level) if asked.level is not None else None,
        dscp=asked.dscp,
        minimum_bps=asked.minimum_bps,
        maximum_bps=asked.maximum_bps,
        not_enforced=not_enforced,
    )


def _limit(shown: PodView, enforcement: Enforcement, direction: Direction) -> wire.LimitWire:
    given, verdict = shown.limits[direction], enforcement.limit(shown, direction)
    return wire.LimitWire(
        bps=given.bps, source=given.source, enforced_by=list(verdict.by), not_enforced=verdict.obstacle
    )


def _counters(read: LeafCounters) -> wire.CounterWire:
    return wire.CounterWire(
        direction=way(read.direction),
        sent_bytes=read.sent_bytes,
        sent_packets=read.sent_packets,
        drops=read.drops,
        backlog_bytes=read.backlog_bytes,
        where=read.where,
        rule=read.rule,
    )


def path(read: LeafCounters, told: PacketWay, before: Look | None, now_s: float) -> wire.PathWire:
    """The way of a pod's packets by what counts them, and how much that moved since `before`."""
    then = before.before(read) if before is not None else None
    return wire.PathWire(
        direction=word(read.direction),
        where=read.where,
        steps=list(told.steps),
        claims=list(told.claims),
        used=read.sent_packets > 0,
        moved=_moved(read, then, now_s - before.at_s) if before is not None and then is not None else None,
    )


def _moved(now: LeafCounters, then: LeafCounters, seconds: float) -> wire.MovedWire:
    return wire.MovedWire(
        seconds=round(seconds, 3),
        sent_bytes=now.sent_bytes - then.sent_bytes,
        sent_packets=now.sent_packets - then.sent_packets,
        drops=now.drops - then.drops,
    )


def _match(asked: Match) -> str:
    if isinstance(asked, IpMatch):
        return "ip " + (", ".join(asked.networks) or "any")
    ranges = ",".join(
        str(one.low) if one.low == one.high else f"{one.low}-{one.high}" for one in asked.ranges
    )
    protocol = f"{asked.protocol.value} " if asked.protocol is not None else ""
    return f"{protocol}port {asked.expression or ranges}"
