"""The node's total bandwidth, per direction: the first source that is known (contract 1.5).

The order is: the Node's annotation, the NodeSLO, then the configuration and the uplink's speed. A number that a person
wrote into the configuration of this node beats what its NIC says; on a node that follows Kubernetes the same file is a
default for many nodes, so there the NIC's speed comes first and the configured value is the fallback (contract 1.5,
1.6). Whether the node follows Kubernetes is `kubernetes.enable`: the runtime puts `true` there when `auto` found a
cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from netqos.errors import Rejected
from netqos.model.health import Finding, error, warning
from netqos.model.ids import IfName
from netqos.model.inputs import NodeFacts, NodePolicy, UplinkFacts
from netqos.model.levels import Direction, PerDirection
from netqos.model.quantities import format_bandwidth, parse_bandwidth
from netqos.settings.issues import Code
from netqos.settings.values import Settings, Toggle

ANNOTATION, NODESLO, FILE, NIC, UNKNOWN = "annotation", "nodeslo", "file", "nic", "unknown"

BANDWIDTH_KEY = "node.koordinator.sh/network-bandwidth"
SMALLEST_TOTAL_BPS = 10_000_000
NIC_PERCENT = 98
"""HTB does not see preamble, gap and FCS of a frame (contract 1.5)."""

FAR_PERCENT = 5
"""A total under this share of the NIC's speed is probably in the wrong unit."""

LastTotals = PerDirection[tuple[int, str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The totals in force with their sources (None and `unknown` where there is none), and what was wrong.

    `own_bps` has each uplink's own total, by name, None where it shares the node's or has none.
    """

    bps: PerDirection[int | None]
    sources: PerDirection[str]
    last_good: LastTotals
    findings: tuple[Finding, ...]
    own_bps: Mapping[IfName, PerDirection[int | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What one source says. `bps` None: it was rejected by its parser, which reported it."""

    source: str
    bps: int | None


def resolve_totals(
    *, settings: Settings, slo: NodePolicy | None, node: NodeFacts, last_good: LastTotals
) -> Totals:
    """The total of each direction. A rejected one keeps its source's last good value, else the next source counts.

    An annotation that is no quantity is ignored, whatever it said before.
    """
    annotation_bps, findings = _annotation(node)
    found = []
    for direction in Direction:
        above = () if annotation_bps is None else (Candidate(source=ANNOTATION, bps=annotation_bps),)
        candidates = (*above, *_candidates(direction, settings, slo, node))
        total, problems = _first_good(
            candidates, direction, last_good[direction], is_small_allowed=settings.allow_small_total
        )
        found.append(total or Candidate(source=UNKNOWN, bps=None))
        findings += problems
    tx, rx = found
    return Totals(
        bps=PerDirection(tx=tx.bps, rx=rx.bps),
        sources=PerDirection(tx=tx.source, rx=rx.source),
        last_good=PerDirection(tx=_remembered(tx, last_good.tx), rx=_remembered(rx, last_good.rx)),
        findings=tuple(findings),
        own_bps={uplink.name: _own(uplink, tx, rx) for uplink in node.uplinks}
        if len(node.uplinks) > 1
        else {},
    )


def _own(uplink: UplinkFacts, tx: Candidate, rx: Candidate) -> PerDirection[int | None]:
    """What one of several uplinks has for itself: what is configured; by its speed where the node's total is that."""

    def own(total: Candidate, configured_bps: int | None) -> int | None:
        return _by_speed(uplink) if configured_bps is None and total.source == NIC else configured_bps

    return PerDirection(tx=own(tx, uplink.configured.tx), rx=own(rx, uplink.configured.rx))


def with_last_speeds(node: NodeFacts, last: Mapping[IfName, int]) -> NodeFacts:
    """A link that is down has no speed. Its last one stays, so that a flapping link is not unshaped each time."""
    return replace(node, uplinks=tuple(_with_last_speed(one, last.get(one.name)) for one in node.uplinks))


def known_speeds(node: NodeFacts) -> Mapping[IfName, int]:
    """The speeds of the uplinks that have one."""
    return {one.name: one.speed_bps for one in node.uplinks if one.speed_bps is not None}


def _with_last_speed(uplink: UplinkFacts, last_bps: int | None) -> UplinkFacts:
    is_lost = uplink.present and not uplink.is_up and uplink.speed_bps is None
    return replace(uplink, speed_bps=last_bps) if is_lost else uplink


def configured_total(settings: Settings, direction: Direction) -> int | None:
    """The total that the configuration gives, whatever the uplinks turn out to be; None where it gives none."""
    own = [uplink.bandwidth[direction] for uplink in settings.uplinks or ()]
    return next((candidate.bps for candidate in _given(own, settings, direction)), None)


def far_from_speed(uplink: UplinkFacts, total_bps: PerDirection[int | None]) -> Iterator[Finding]:
    """Loud findings for totals that do not fit the NIC's known speed; they are applied all the same."""
    speed_bps = uplink.speed_bps
    for direction in Direction:
        total = total_bps[direction]
        if speed_bps is None or total is None:
            continue
        met = f"{direction.value} total {format_bandwidth(total)} on a link of {format_bandwidth(speed_bps)}"
        if total > speed_bps:
            yield error(
                "total-above-nic-speed",
                uplink.name,
                f"{met}: guarantees cannot be kept when the link itself is the bottleneck",
                hint="set a total of at most 98% of the link's speed",
            )
        elif total * 100 < speed_bps * FAR_PERCENT:
            yield warning(
                "total-far-below-nic-speed",
                uplink.name,
                f"{met}: under {FAR_PERCENT}% of it",
                hint="check the unit: totals are bits per second, 10G is ten gigabits",
            )


def _annotation(node: NodeFacts) -> tuple[int | None, list[Finding]]:
    if node.bandwidth_annotation is None:
        return None, []
    try:
        return parse_bandwidth(node.bandwidth_annotation), []
    except Rejected as problem:
        message = f"annotation {BANDWIDTH_KEY}: {problem.message}; it is ignored"
        return None, [warning(Code.TOTAL.value, f"node {node.name}", message, hint=problem.hint)]


def _candidates(
    direction: Direction,
    settings: Settings,
    slo: NodePolicy | None,
    node: NodeFacts,
) -> Iterator[Candidate]:
    if slo is not None:
        yield from _said(slo, direction, NODESLO)
    configured = (*_configured(settings, node, direction), *_said(settings.policy, direction, FILE))
    nic = tuple(_nic(node, direction))
    follows_kubernetes = settings.kubernetes.enable is Toggle.ON
    yield from (*nic, *configured) if follows_kubernetes else (*configured, *nic)


def _said(policy: NodePolicy, direction: Direction, source: str) -> Iterator[Candidate]:
    if direction in policy.invalid_total:
        yield Candidate(source=source, bps=None)
    elif policy.total[direction] is not None:
        yield Candidate(source=source, bps=policy.total[direction])


def _configured(settings: Settings, node: NodeFacts, direction: Direction) -> Iterator[Candidate]:
    return _given([uplink.configured[direction] for uplink in node.uplinks], settings, direction)


def _given(own: list[int | None], settings: Settings, direction: Direction) -> Iterator[Candidate]:
    """A single uplink's own value, `node.bandwidth`, else the sum of the uplinks' when each has one."""
    if len(own) == 1 and own[0] is not None:
        yield Candidate(source=FILE, bps=own[0])
    if settings.bandwidth[direction] is not None:
        yield Candidate(source=FILE, bps=settings.bandwidth[direction])
    known = [bps for bps in own if bps is not None]
    if len(known) == len(own) > 1:
        yield Candidate(source=FILE, bps=sum(known))


def _nic(node: NodeFacts, direction: Direction) -> Iterator[Candidate]:
    """What the uplinks' speeds add up to; of several, one's own configured total stands for its speed."""
    is_only = len(node.uplinks) == 1
    counted = [(_by_speed(one), None if is_only else one.configured[direction]) for one in node.uplinks]
    if any(speed is not None and own is None for speed, own in counted):
        yield Candidate(source=NIC, bps=sum((speed if own is None else own) or 0 for speed, own in counted))


def _by_speed(uplink: UplinkFacts) -> int | None:
    return None if uplink.speed_bps is None else uplink.speed_bps * NIC_PERCENT // 100


def _first_good(
    candidates: tuple[Candidate, ...],
    direction: Direction,
    last: tuple[int, str] | None,
    *,
    is_small_allowed: bool,
) -> tuple[Candidate | None, list[Finding]]:
    findings: list[Finding] = []
    for candidate in candidates:
        is_small = candidate.bps is not None and candidate.bps < SMALLEST_TOTAL_BPS
        if candidate.bps is not None and (is_small_allowed or not is_small):
            return candidate, findings
        kept = last if last is not None and last[1] == candidate.source else None
        if candidate.bps is not None:
            findings.append(_too_small(candidate.bps, candidate.source, direction, kept))
        if kept is not None:
            return Candidate(source=candidate.source, bps=kept[0]), findings
    return None, findings


def _too_small(bps: int, source: str, direction: Direction, kept: tuple[int, str] | None) -> Finding:
    instead = f"{format_bandwidth(kept[0])} stays" if kept is not None else "the next source counts"
    return error(
        "total-too-small",
        f"{direction.value} total of {source}",
        f"{format_bandwidth(bps)} is under {format_bandwidth(SMALLEST_TOTAL_BPS)}, on which the node's own traffic "
        f"lives; {instead}",
        hint="totals are bits per second; node.allowSmallTotal: true accepts it",
    )


def _remembered(total: Candidate, last: tuple[int, str] | None) -> tuple[int, str] | None:
    return last if total.bps is None else (total.bps, total.source)
