"""The value of every metric at one moment, made from a view: what is gone has no series, what is new has one at once.

Pure, and without prometheus_client: `netqos.observe.exposition` writes it down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.backend import LeafCounters
from netqos.model.composed import PodView
from netqos.model.health import Finding, Severity
from netqos.model.ids import PodUid
from netqos.model.inputs import Freshness
from netqos.model.levels import Direction, Level
from netqos.model.plan import Verb
from netqos.model.traffic import Decision
from netqos.observe.enforced import Enforcement
from netqos.observe.metrics import MOST_PODS
from netqos.observe.moment import Moment
from netqos.observe.recorder import Distribution, Recorded
from netqos.observe.view import AgentView, BackendView, room_bps, source_age_s

BACKEND_STATES = ("ok", "degraded", "failing", "unavailable", "backing-off", "off")
UNSHAPED = math.inf

Counters = Mapping[PodUid, tuple[LeafCounters, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One series: a metric of the table, its labels' values in the table's order, and the value."""

    name: str
    labels: tuple[str, ...]
    value: float | Distribution


def measure(view: AgentView, counters: Counters, recorded: Recorded, moment: Moment) -> Iterator[Sample]:
    """Every series of this moment."""
    pods = sorted(view.composition.pods if view.composition is not None else (), key=_order)
    yield from _node(view, moment)
    for direction in Direction:
        yield from _direction(view, direction, pods, counters)
    for unit, path in view.paths.items():
        labels = (unit.device, unit.direction.value)
        yield Sample("netqos_path_bits_per_second", labels, path.proposed_bps or 0)
    yield from _pods(view, pods[:MOST_PODS], counters)
    yield Sample("netqos_pods_omitted", (), max(0, len(pods) - MOST_PODS))
    yield from _sources(view, moment)
    for backend in view.backends.values():
        yield from _backend(backend, moment)
    yield from _findings(all_findings(view))
    yield from _recorded(view, recorded)


def all_findings(view: AgentView) -> tuple[Finding, ...]:
    """The findings of the node, its pods and its backends, each once."""
    pods = view.composition.pods if view.composition is not None else ()
    of_pods = (found for pod in pods for found in pod.findings)
    of_backends = (found for backend in view.backends.values() for found in backend.findings)
    return tuple(dict.fromkeys((*view.findings, *of_pods, *of_backends)))


def _order(pod: PodView) -> tuple[str, str]:
    return pod.full_name, pod.uid


def _node(view: AgentView, moment: Moment) -> Iterator[Sample]:
    enabled = view.composition is not None and view.composition.desired.enabled
    yield Sample("netqos_build_info", (view.version,), 1)
    yield Sample("netqos_start_time_seconds", (), moment.unix_s(view.started_s))
    yield Sample("netqos_ready", (), view.ready)
    yield Sample("netqos_enabled", (), enabled)
    yield Sample("netqos_overrides", (), len(view.overrides))
    pods = view.composition.pods if view.composition is not None else ()
    by_level = Counter(pod.level for pod in pods)
    for level in Level:
        yield Sample("netqos_level_pods", (level.name,), by_level[level])


def _direction(
    view: AgentView, direction: Direction, pods: list[PodView], counters: Counters
) -> Iterator[Sample]:
    made = [one for unit, one in view.loop.decisions.items() if unit.direction is direction]
    spent_s = sum(one for unit, one in view.loop.contention_s.items() if unit.direction is direction)
    composition, way = view.composition, direction.value
    total_bps = composition.desired.directions[direction].total_bps if composition is not None else None
    source = composition.total_sources[direction] if composition is not None else "unknown"
    yield Sample("netqos_total_bits_per_second", (way, source), total_bps or 0)
    yield Sample("netqos_room_bits_per_second", (way,), room_bps(view, direction) or 0)
    yield Sample("netqos_contention", (way,), any(one.contention for one in made))
    yield Sample("netqos_contention_seconds", (way,), spent_s)
    enforced = bool(Enforcement(view).levels(direction).by)
    waiting = _backlog(pods, counters, direction)
    for level in Level:
        yield Sample("netqos_level_enforced", (way, level.name), enforced)
        yield Sample("netqos_level_backlog_bytes", (way, level.name), waiting[level])
        yield from _level(view, direction, level, made)


def _level(view: AgentView, direction: Direction, level: Level, made: list[Decision]) -> Iterator[Sample]:
    levels = view.composition.desired.directions[direction].levels if view.composition is not None else None
    labels = (direction.value, level.name)
    ceiling = levels[level].ceiling_bps if levels is not None else UNSHAPED
    current = sum(one.ceilings_bps[level] for one in made) if made else UNSHAPED
    yield Sample(
        "netqos_level_guarantee_bits_per_second", labels, levels[level].guarantee_bps if levels else 0
    )
    yield Sample("netqos_level_ceiling_bits_per_second", labels, ceiling)
    yield Sample("netqos_level_current_ceiling_bits_per_second", labels, current)
    yield Sample("netqos_level_rate_bits_per_second", labels, sum(one.rates_bps[level] for one in made))
    yield Sample("netqos_level_backlogged", labels, any(one.backlogged[level] for one in made))


def _backlog(pods: list[PodView], counters: Counters, direction: Direction) -> Counter[Level]:
    waiting: Counter[Level] = Counter()
    for pod in pods:
        for read in counters.get(pod.uid, ()):
            if read.direction is direction:
                waiting[pod.level] += read.backlog_bytes
    return waiting


def _pods(view: AgentView, pods: list[PodView], counters: Counters) -> Iterator[Sample]:
    enforcement = Enforcement(view)
    for pod in pods:
        labels = (pod.uid, pod.namespace, pod.name)
        yield Sample("netqos_pod_info", (*labels, pod.level.name, pod.level_source), 1)
        for direction in Direction:
            limit, way = pod.limits[direction], direction.value
            if limit.bps:
                by = enforcement.limit(pod, direction).by
                yield Sample("netqos_pod_limit_bits_per_second", (*labels, way, limit.source), limit.bps)
                yield Sample("netqos_pod_limit_enforced", (*labels, way), bool(by))
            read = [one for one in counters.get(pod.uid, ()) if one.direction is direction]
            if read:
                yield from _counters((*labels, way), read)


def _counters(labels: tuple[str, ...], read: list[LeafCounters]) -> Iterator[Sample]:
    """A pod that counts in several places (two uplinks) is their sum."""
    yield Sample("netqos_pod_sent_bytes", labels, sum(one.sent_bytes for one in read))
    yield Sample("netqos_pod_sent_packets", labels, sum(one.sent_packets for one in read))
    yield Sample("netqos_pod_dropped_packets", labels, sum(one.drops for one in read))
    yield Sample("netqos_pod_backlog_bytes", labels, sum(one.backlog_bytes for one in read))


def _sources(view: AgentView, moment: Moment) -> Iterator[Sample]:
    for name, state in view.sources.items():
        age_s = source_age_s(state, moment)
        yield Sample("netqos_source_age_seconds", (name,), math.inf if age_s is None else age_s)
        for one in Freshness:
            yield Sample("netqos_source_state", (name, one.value), state.freshness is one)


def _backend(backend: BackendView, moment: Moment) -> Iterator[Sample]:
    able = backend.capabilities
    age_s = moment.age_s(backend.last_applied_s)
    yield Sample("netqos_backend_applied_age_seconds", (backend.name,), math.inf if age_s is None else age_s)
    yield Sample("netqos_drift_repairs", (backend.name,), backend.repairs)
    for state in BACKEND_STATES:
        yield Sample("netqos_backend_state", (backend.name, state), backend.state == state)
    for direction in Direction:
        shapes = able is not None and able.available and direction in able.enforces
        yield Sample("netqos_backend_enforces", (backend.name, direction.value), shapes)
    for verb in Verb:
        for result in ("ok", "error"):
            done = backend.operations.get((verb.value, result), 0)
            yield Sample("netqos_backend_operations", (backend.name, verb.value, result), done)


def _findings(found: tuple[Finding, ...]) -> Iterator[Sample]:
    by_severity = Counter(one.severity for one in found)
    for severity in Severity:
        yield Sample("netqos_findings", (severity.value,), by_severity[severity])
    for labels, count in sorted(Counter((one.code, one.severity.value) for one in found).items()):
        yield Sample("netqos_finding", labels, count)


def _recorded(view: AgentView, recorded: Recorded) -> Iterator[Sample]:
    for reason, count in recorded.rejected.items():
        yield Sample("netqos_rejected_inputs", (reason,), count)
    yield Sample("netqos_ticks", (), view.loop.ticks)
    yield Sample("netqos_tick_writes", (), view.loop.writes)
    yield Sample("netqos_tick_lateness_seconds", (), recorded.tick_lateness)
    yield Sample("netqos_tick_duration_seconds", (), recorded.tick_duration)
    yield Sample("netqos_reconcile_duration_seconds", (), recorded.reconcile_duration)
    yield Sample("netqos_event_to_applied_seconds", (), recorded.event_to_applied)
