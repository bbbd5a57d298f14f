"""The answers of the status socket, each made from one view. Pure: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from netqos.backend import LeafCounters
from netqos.engine import whywords
from netqos.engine.why import Reasoned
from netqos.model.composed import Composition, PodView
from netqos.model.desired import DesiredPod
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.inputs import SourceState
from netqos.model.levels import Direction, Level
from netqos.observe import decisionparts, pathparts, wire
from netqos.observe import wireparts as parts
from netqos.observe.enforced import Enforcement, Verdict
from netqos.observe.looks import Look
from netqos.observe.moment import Moment
from netqos.observe.recorder import REJECTIONS
from netqos.observe.view import AgentView, BackendView, room_bps, source_age_s

Counters = Mapping[PodUid, tuple[LeafCounters, ...]]


def status(view: AgentView, moment: Moment) -> wire.StatusWire:
    """`GET /v1/status`."""
    composition = view.composition
    return wire.StatusWire(
        version=view.version,
        node=view.node,
        ready=view.ready,
        waited_for=dict(view.waited_for),
        passes=view.passes,
        enabled=composition is not None and composition.desired.enabled,
        uptime_s=moment.age_s(view.started_s) or 0.0,
        pods=len(composition.pods) if composition is not None else 0,
        rejected=_rejected(composition),
        overrides=len(view.overrides),
        scope=wire.SCOPE,
        directions=directions(view),
        sources={name: _source(one, moment) for name, one in view.sources.items()},
        backends={name: _backend(one, moment) for name, one in view.backends.items()},
        loop=_loop(view, moment),
        paths=pathparts.paths(view, moment),
        findings=parts.findings(view.findings),
    )


def node(view: AgentView) -> wire.NodeWire:
    """`GET /v1/node`."""
    desired = view.composition.desired if view.composition is not None else None
    uplinks = [
        wire.UplinkWire(
            name=one.name,
            index=one.index,
            mtu=one.mtu,
            total_bps={parts.way(direction): one.total_bps[direction] for direction in Direction},
        )
        for one in (desired.uplinks if desired is not None else ())
    ]
    return wire.NodeWire(
        node=view.node,
        enabled=desired is not None and desired.enabled,
        complete=desired is not None and desired.complete,
        uplinks=uplinks,
        directions=directions(view),
        critical_cgroups=[path for path, _ in desired.critical_cgroups] if desired is not None else [],
        findings=parts.findings(view.findings),
    )


def directions(view: AgentView) -> dict[wire.Way, wire.DirectionWire]:
    """Both directions, whatever is known of them."""
    enforcement = Enforcement(view)
    return {parts.way(one): _direction(view, one, enforcement.levels(one)) for one in Direction}


def _direction(view: AgentView, direction: Direction, verdict: Verdict) -> wire.DirectionWire:
    composition = view.composition
    made = [one for one in view.loop.reasoned() if one.decision.unit.direction is direction]
    desired = composition.desired.directions[direction] if composition is not None else None
    return wire.DirectionWire(
        total_bps=desired.total_bps if desired is not None else None,
        total_source=composition.total_sources[direction] if composition is not None else "unknown",
        room_bps=room_bps(view, direction),
        contention=any(one.decision.contention for one in made),
        why=_each(made, _contention_text),
        devices=[one.name for one in composition.desired.uplinks] if composition is not None else [],
        levels={
            parts.level_name(level): _level(composition, direction, level, made, enforced=bool(verdict.by))
            for level in Level
        },
        enforced_by=list(verdict.by),
        not_enforced=verdict.obstacle,
    )


def _level(
    composition: Composition | None,
    direction: Direction,
    level: Level,
    made: list[Reasoned],
    *,
    enforced: bool,
) -> wire.LevelWire:
    """One level; rates and ceilings are summed over the devices of the direction."""
    desired = composition.desired.directions[direction] if composition is not None else None
    band = desired.levels[level] if desired is not None and desired.levels is not None else None
    return wire.LevelWire(
        enabled=band is not None and band.enabled,
        guarantee_bps=band.guarantee_bps if band is not None else 0,
        ceiling_bps=band.ceiling_bps if band is not None else None,
        current_ceiling_bps=sum(one.decision.ceilings_bps[level] for one in made) if made else None,
        rate_bps=sum(one.decision.rates_bps[level] for one in made),
        backlogged=any(one.decision.backlogged[level] for one in made),
        pods=sum(pod.level is level for pod in composition.pods) if composition is not None else 0,
        enforced=enforced,
        why=_each(made, lambda one: whywords.of_level(level, one.why.levels[level])),
    )


def _each(made: list[Reasoned], say: Callable[[Reasoned], str]) -> str:
    """What is to say of each device, with its name where there are several."""
    if len(made) == 1:
        return say(made[0])
    return "; ".join(f"{one.decision.unit.device}: {say(one)}" for one in made)


def _contention_text(one: Reasoned) -> str:
    room = one.why.room
    told = [whywords.of_contention(one.why.contention), whywords.of_onset(one.why.contention)]
    if room is not None and room.bps < room.total_bps:
        told.append(whywords.of_room(room))
    return "; ".join(filter(None, told))


def _rejected(composition: Composition | None) -> wire.RejectedWire:
    pods = composition.pods if composition is not None else ()
    counts = [sum(one.code in REJECTIONS for one in pod.findings) for pod in pods if pod.findings]
    return wire.RejectedWire(inputs=sum(counts), pods=sum(1 for count in counts if count))


def _source(state: SourceState, moment: Moment) -> wire.SourceWire:
    return wire.SourceWire(
        state=state.freshness.value, age_s=source_age_s(state, moment), detail=state.detail
    )


def _backend(one: BackendView, moment: Moment) -> wire.BackendWire:
    able = one.capabilities
    return wire.BackendWire(
        state=one.state,
        enforces=[parts.way(way) for way in Direction if able is not None and way in able.enforces],
        lends=able is not None and able.lends,
        limits=able is not None and able.limits,
        rules=able is not None and able.rules,
        applied_age_s=moment.age_s(one.last_applied_s),
        last_result=parts.result(one.last_result) if one.last_result is not None else None,
        repairs=one.repairs,
        findings=parts.findings(one.findings),
    )


def _loop(view: AgentView, moment: Moment) -> wire.LoopWire:
    loop = view.loop
    return wire.LoopWire(
        ticks=loop.ticks,
        writes=loop.writes,
        late_p99_s=round(loop.late_p99_s, 6),
        late_max_s=round(loop.late_max_s, 6),
        duration_p99_s=round(loop.duration_p99_s, 6),
        last_tick_age_s=moment.age_s(loop.last_tick_s),
        units=[decisionparts.decision(one, moment) for one in loop.reasoned()],
    )


def explain(
    view: AgentView, pod: PodView, counters: Counters, moment: Moment, *, before: Look | None = None
) -> wire.ExplainWire:
    """`GET /v1/explain/...`: a pod of the view's composition, from its inputs to what enforces it.

    `before` is the last look at the pod's counters.
    """
    enforcement = Enforcement(view)
    desired = _desired_pod(view, pod)
    override = next((one for one in view.overrides if one.uid == pod.uid), None)
    return wire.ExplainWire(
        pod=parts.pod(pod, enforcement, counters),
        choices={
            "level": parts.choices(pod.level_choices),
            "egress": parts.choices(pod.limits.tx.choices),
            "ingress": parts.choices(pod.limits.rx.choices),
        },
        rules=parts.rules(pod, desired, enforcement) if desired is not None else [],
        override=parts.override(override, view, moment) if override is not None else None,
        enforcement=_enforcement(pod, desired, enforcement),
        scope=wire.SCOPE,
        now=[_now(view, pod, one) for one in view.loop.reasoned()],
        paths=[
            parts.path(one, one.way(), before, moment.monotonic_s)
            for one in counters.get(pod.uid, ())
            if one.way is not None
        ],
        findings=parts.findings(_all_findings(pod, enforcement)),
    )


def _desired_pod(view: AgentView, pod: PodView) -> DesiredPod | None:
    pods = view.composition.desired.pods if view.composition is not None else ()
    return next((one for one in pods if one.uid == pod.uid), None)


def _all_findings(pod: PodView, enforcement: Enforcement) -> Iterable[Finding]:
    return dict.fromkeys((*pod.findings, *enforcement.findings(pod)))


def _enforcement(
    pod: PodView, desired: DesiredPod | None, enforcement: Enforcement
) -> list[wire.EnforcementWire]:
    """What is asked for, one by one: the level, a limit where there is one, rules where there are some."""
    asked: list[wire.EnforcementWire] = []
    for way in Direction:
        asked.append(_asked("level", way, enforcement.level(pod, way)))
        if pod.limits[way].bps:
            asked.append(_asked("limit", way, enforcement.limit(pod, way)))
        if desired is not None and desired.rules[way]:
            asked.append(_asked("rules", way, enforcement.rules(pod, way)))
    return asked


def _asked(what: wire.Asked, way: Direction, verdict: Verdict) -> wire.EnforcementWire:
    return wire.EnforcementWire(
        what=what,
        direction=parts.word(way),
        enforced=bool(verdict.by),
        by=list(verdict.by),
        reason=verdict.obstacle,
    )


def _now(view: AgentView, pod: PodView, reasoned: Reasoned) -> wire.LevelNowWire:
    made, why = reasoned.decision, reasoned.why
    guarantees = made.guarantees_bps
    if guarantees is None and view.composition is not None:
        levels = view.composition.desired.directions[made.unit.direction].levels
        guarantees = levels.map(lambda band: band.guarantee_bps) if levels is not None else None
    return wire.LevelNowWire(
        device=made.unit.device,
        direction=parts.word(made.unit.direction),
        rate_bps=made.rates_bps[pod.level],
        guarantee_bps=guarantees[pod.level] if guarantees is not None else 0,
        ceiling_bps=made.ceilings_bps[pod.level],
        contention=made.contention,
        backlogged=made.backlogged[pod.level],
        reason=decisionparts.reason_code(why),
        reason_text="; ".join(
            (whywords.of_contention(why.contention), whywords.of_level(pod.level, why.levels[pod.level]))
        ),
    )
