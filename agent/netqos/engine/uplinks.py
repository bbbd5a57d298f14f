"""Which devices are shaped, each with its total, and what keeps the others from it."""

from __future__ import annotations

from collections.abc import Iterator

from netqos.engine.totals import far_from_speed
from netqos.model.desired import DesiredUplink
from netqos.model.health import Finding, error, info, warning
from netqos.model.inputs import NodeFacts, UplinkFacts
from netqos.model.levels import Direction, PerDirection
from netqos.model.texts import listed


def desired_uplinks(
    node: NodeFacts, total_bps: PerDirection[int | None]
) -> tuple[tuple[DesiredUplink, ...], tuple[Finding, ...]]:
    """The uplinks that are there, in name order. A single one has the node's total, several have each their own."""
    is_only = len(node.uplinks) == 1
    uplinks: list[DesiredUplink] = []
    findings: list[Finding] = []
    for facts in sorted(node.uplinks, key=lambda one: one.name):
        own = total_bps if is_only else facts.configured
        findings += list(_problems(facts, own, is_only=is_only))
        if facts.present:
            uplinks.append(
                DesiredUplink(
                    name=facts.name,
                    index=facts.index,
                    mtu=facts.mtu,
                    total_bps=own,
                    egress_program=facts.egress_program,
                )
            )
    if not node.uplinks:
        findings.append(_no_uplink(node))
    return tuple(uplinks), tuple(findings)


def _problems(facts: UplinkFacts, own: PerDirection[int | None], *, is_only: bool) -> Iterator[Finding]:
    if not facts.present:
        yield error(
            "uplink-missing",
            facts.name,
            "no such link, so nothing is shaped on it",
            hint="correct node.uplinks, or create the link; it is taken up when it appears",
        )
        return
    if not facts.is_up:
        yield warning(
            "uplink-down", facts.name, "the link is down", hint="its speed is unknown while it is down"
        )
    unknown = [direction.value for direction in Direction if own[direction] is None]
    if unknown and not is_only:
        yield error(
            "uplink-without-total",
            facts.name,
            f"one of several uplinks without a total of its own for {listed(unknown)}, so that is not shaped",
            hint="give it one: node.uplinks: [{name: NAME, bandwidth: {tx: 10G, rx: 10G}}]",
        )
    if unknown and is_only and facts.why_no_speed:
        yield info(
            "uplink-speed-unknown",
            facts.name,
            f"{facts.why_no_speed}, and no other source says its total for {listed(unknown)}",
            hint="say the total in node.bandwidth",
        )
    yield from far_from_speed(facts, own)


def _no_uplink(node: NodeFacts) -> Finding:
    return error(
        "no-uplink",
        f"node {node.name}",
        "there is no default route and no uplink is configured, so nothing is shaped",
        hint="name the device in node.uplinks, or add a default route",
    )
