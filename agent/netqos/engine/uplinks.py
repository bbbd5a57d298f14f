"""Which devices are shaped, each with its total, and what keeps the others from it.

A single uplink has the node's total. Of several, each has its own where it is configured, or where the node's total is
what their speeds add up to; the others share what is left of the node's, of which the fast loop gives each a part
(`netqos.engine.shares`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from netqos.engine.totals import NIC, NIC_PERCENT, SMALLEST_TOTAL_BPS, Totals, far_from_speed
from netqos.model.desired import DesiredState, DesiredUplink
from netqos.model.health import Finding, error, info, warning
from netqos.model.ids import IfName
from netqos.model.inputs import NO_LIMITS, NodeFacts, UplinkFacts
from netqos.model.levels import Direction, PerDirection
from netqos.model.texts import listed


def desired_uplinks(node: NodeFacts, totals: Totals) -> tuple[tuple[DesiredUplink, ...], tuple[Finding, ...]]:
    """The uplinks that are there, in name order."""
    is_only = len(node.uplinks) == 1
    facts = sorted(node.uplinks, key=lambda one: one.name)
    pool = NO_LIMITS if is_only else _pools([one for one in facts if one.present], totals)
    found = _one_alone([_uplink(one, totals, pool, is_only=is_only) for one in facts if one.present])
    findings = [problem for one in facts for problem in _problems(one, found.get(one.name), is_only=is_only)]
    uplinks = tuple(found.values())
    findings += _sharing(uplinks)
    if not node.uplinks:
        findings.append(_no_uplink(node))
    return uplinks, tuple(findings)


def limits_apart(state: DesiredState) -> Iterator[Finding]:
    """What a workload's limit is not, where its packets may leave by several uplinks."""
    limited = sum(pod.limits_bps.tx is not None for pod in state.pods)
    if limited and len(state.uplinks) > 1:
        yield info(
            "limits-by-uplink",
            Direction.TX.value,
            f"egress limits ({limited}) hold on each of the {len(state.uplinks)} uplinks by itself: a workload whose "
            "packets leave by several may send more in all",
        )


def _pools(uplinks: Sequence[UplinkFacts], totals: Totals) -> PerDirection[int | None]:
    """What uplinks without a total of their own share: the node's, less those that others have."""
    own = [totals.own_bps[one.name] for one in uplinks]

    def pool(direction: Direction) -> int | None:
        total_bps = totals.bps[direction]
        if total_bps is None or totals.sources[direction] == NIC:
            return None
        rest_bps = total_bps - sum(one[direction] or 0 for one in own)
        return rest_bps if rest_bps >= min(SMALLEST_TOTAL_BPS, total_bps) else None

    return PerDirection(tx=pool(Direction.TX), rx=pool(Direction.RX))


def _uplink(
    facts: UplinkFacts, totals: Totals, pool: PerDirection[int | None], *, is_only: bool
) -> DesiredUplink:
    own = totals.bps if is_only else totals.own_bps[facts.name]
    shared = PerDirection(tx=pool.tx if own.tx is None else None, rx=pool.rx if own.rx is None else None)
    most = PerDirection(tx=_most_bps(facts, own.tx, shared.tx), rx=_most_bps(facts, own.rx, shared.rx))
    return DesiredUplink(
        name=facts.name,
        index=facts.index,
        mtu=facts.mtu,
        total_bps=most,
        pool_bps=shared,
        egress_program=facts.egress_program,
    )


def _one_alone(uplinks: Sequence[DesiredUplink]) -> dict[IfName, DesiredUplink]:
    """By name; where only one is left to share, it has the pool for itself."""

    def is_shared(direction: Direction) -> bool:
        return sum(one.pool_bps[direction] is not None for one in uplinks) > 1

    kept = PerDirection(tx=is_shared(Direction.TX), rx=is_shared(Direction.RX))
    return {
        one.name: replace(
            one,
            pool_bps=PerDirection(
                tx=one.pool_bps.tx if kept.tx else None, rx=one.pool_bps.rx if kept.rx else None
            ),
        )
        for one in uplinks
    }


def _most_bps(facts: UplinkFacts, own_bps: int | None, pool_bps: int | None) -> int | None:
    """Its own total; of a shared one all that the link can pass."""
    if pool_bps is None:
        return own_bps
    return pool_bps if facts.speed_bps is None else min(pool_bps, facts.speed_bps * NIC_PERCENT // 100)


def _problems(facts: UplinkFacts, found: DesiredUplink | None, *, is_only: bool) -> Iterator[Finding]:
    if found is None:
        yield error(
            "uplink-missing",
            facts.name,
            "no such link, so nothing is shaped on it",
            hint="correct node.uplinks, or create the link; it is taken up when it appears",
        )
        return
    if not facts.is_up:
        yield warning(
            "uplink-down",
            facts.name,
            "the link is down",
            hint="its last known speed counts meanwhile",
        )
    unknown = [direction.value for direction in Direction if found.total_bps[direction] is None]
    if unknown and not is_only:
        yield error(
            "uplink-without-total",
            facts.name,
            f"one of several uplinks without a total for {listed(unknown)}, so that is not shaped: it has none of "
            "its own, and nothing is left of the node's",
            hint="give it one: node.uplinks: [{name: NAME, bandwidth: {tx: 10G, rx: 10G}}], or set node.bandwidth",
        )
    if unknown and is_only and facts.why_no_speed:
        yield info(
            "uplink-speed-unknown",
            facts.name,
            f"{facts.why_no_speed}, and no other source says its total for {listed(unknown)}",
            hint="say the total in node.bandwidth",
        )
    yield from far_from_speed(facts, _alone(found))


def _alone(found: DesiredUplink) -> PerDirection[int | None]:
    """The totals that are its own: a part of a shared one is never more than the link, and may be little."""
    return PerDirection(
        tx=found.total_bps.tx if found.pool_bps.tx is None else None,
        rx=found.total_bps.rx if found.pool_bps.rx is None else None,
    )


def _sharing(uplinks: Sequence[DesiredUplink]) -> Iterator[Finding]:
    """Of egress alone: what is received may be shaped behind all uplinks at once."""
    names = [one.name for one in uplinks if one.pool_bps.tx is not None]
    if names:
        yield info(
            "uplinks-share-total",
            Direction.TX.value,
            f"{', '.join(names)}: they share one total; each has a part of it, moved by what it needs",
        )


def _no_uplink(node: NodeFacts) -> Finding:
    return error(
        "no-uplink",
        f"node {node.name}",
        "there is no default route and no uplink is configured, so nothing is shaped",
        hint="name the device in node.uplinks, or add a default route",
    )
