"""The policy that the demo shows: its own, or that of a configuration file.

The file is read and checked exactly as the daemon does. Of it the demo takes what concerns the levels; uplinks,
workloads and paths are the demo's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from netqos.cli.demo.scenario import Side
from netqos.engine.bands import resolve_bands
from netqos.engine.policy import policy_in_force
from netqos.engine.totals import SMALLEST_TOTAL_BPS, resolve_totals
from netqos.errors import Rejected
from netqos.model.composed import EMPTY_LAST_GOOD
from netqos.model.desired import Band
from netqos.model.health import Severity
from netqos.model.inputs import NodeFacts, NodePolicy
from netqos.model.levels import Direction, PerDirection, PerLevel
from netqos.model.quantities import format_bandwidth
from netqos.settings.file import parse_documents

USUAL_TOTAL_BPS = 200_000_000
"""Little enough for two busy cores to fill: the demo measures the shaper, not the machine."""
RX_SHARE = 0.75
"""Of the total for egress ingress gets less, so that the two cannot be taken for each other."""
_TAKEN = ("policy", "loop")
_OWN = {
    "policy": {
        "enable": True,
        "levels": {"l1": {"txMin": "30%", "rxMin": "20%"}, "l2": {"txMin": "20%", "rxMin": "25%"}},
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPolicy:
    """Both directions of a node, and the sections of the daemon's configuration that say so."""

    sides: PerDirection[Side]
    sections: Mapping[str, Any]


def own_policy(total_bps: int | None) -> ShownPolicy:
    """For L0, L1 and L2 50, 30 and 20 percent of egress, 55, 20 and 25 of ingress; each may use all that is left."""
    return _shown(_OWN, _both(total_bps or USUAL_TOTAL_BPS), subject="the demo's policy")


def read_policy(text: str, name: str, total_bps: int | None) -> ShownPolicy:
    """The policy of a configuration file; `Rejected` with every problem when it is wrong or switched off.

    A given total (of egress) wins over the file's, and where neither says one it is `USUAL_TOTAL_BPS`.
    """
    settings = parse_documents([(name, text)])
    totals = resolve_totals(
        settings=settings, slo=None, node=NodeFacts(name=name), last_good=EMPTY_LAST_GOOD.totals
    )
    document = yaml.safe_load(text) or {}
    sections = {key: document[key] for key in _TAKEN if key in document}
    if total_bps is None and totals.bps.tx is not None:
        both = PerDirection(tx=totals.bps.tx, rx=totals.bps.rx or totals.bps.tx)
    else:
        both = _both(total_bps or USUAL_TOTAL_BPS)
    return _shown(sections, both, subject=name)


def _both(total_bps: int) -> PerDirection[int]:
    return PerDirection(tx=total_bps, rx=max(SMALLEST_TOTAL_BPS, round(total_bps * RX_SHARE)))


def _shown(sections: Mapping[str, Any], totals: PerDirection[int], *, subject: str) -> ShownPolicy:
    smallest_bps = min(totals.tx, totals.rx)
    if smallest_bps < SMALLEST_TOTAL_BPS:
        least = format_bandwidth(SMALLEST_TOTAL_BPS)
        raise Rejected(
            f"a total of {format_bandwidth(smallest_bps)} is too small", hint=f"take {least} or more"
        )
    bandwidth = {way.value: format_bandwidth(totals[way]) for way in Direction}
    complete = {**sections, "node": {"bandwidth": bandwidth}}
    settings = parse_documents([(subject, yaml.safe_dump(complete))])
    policy = policy_in_force(settings, None)
    if not policy.enabled:
        raise Rejected("network QoS is off in it", subject=subject, hint="set policy.enable to true")

    def side(way: Direction) -> Side:
        return Side(total_bps=totals[way], bands=_bands(policy, way, totals[way], subject=subject))

    return ShownPolicy(sides=PerDirection(tx=side(Direction.TX), rx=side(Direction.RX)), sections=complete)


def _bands(policy: NodePolicy, way: Direction, total_bps: int, *, subject: str) -> PerLevel[Band]:
    bands = resolve_bands(policy, way, total_bps)
    problems = tuple(
        f"{finding.subject}: {finding.message}"
        for finding in bands.findings
        if finding.severity is not Severity.INFO
    )
    if problems:
        hint = "choose a total for which the policy holds with --total"
        told = f"does not hold for a total of {format_bandwidth(total_bps)}"
        raise Rejected(told, subject=subject, hint=hint, problems=problems)
    return bands.levels
