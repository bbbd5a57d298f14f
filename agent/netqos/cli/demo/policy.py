"""The policy that the demo shows: its own, or that of a configuration file.

The file is read and checked exactly as the daemon does. Of it the demo takes what concerns the levels; uplinks,
workloads and paths are the demo's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from netqos.engine.bands import resolve_bands
from netqos.engine.policy import policy_in_force
from netqos.engine.totals import SMALLEST_TOTAL_BPS, resolve_totals
from netqos.errors import Rejected
from netqos.model.composed import EMPTY_LAST_GOOD
from netqos.model.desired import Band
from netqos.model.health import Severity
from netqos.model.inputs import NodeFacts
from netqos.model.levels import Direction, PerLevel
from netqos.model.quantities import format_bandwidth
from netqos.settings.file import parse_documents

USUAL_TOTAL_BPS = 200_000_000
"""Little enough for two busy cores to fill: the demo measures the shaper, not the machine."""
_TAKEN = ("policy", "loop")
_OWN = {
    "policy": {
        "enable": True,
        "levels": {"l1": {"txMin": "30%", "rxMin": "30%"}, "l2": {"txMin": "20%", "rxMin": "20%"}},
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPolicy:
    """A total, the levels' bands for egress, and the sections of the daemon's configuration that say so."""

    total_bps: int
    bands: PerLevel[Band]
    sections: Mapping[str, Any]


def own_policy(total_bps: int | None) -> ShownPolicy:
    """Half of the total for L0, 30 percent for L1, 20 for L2; each may use all that is left over."""
    return _shown(_OWN, total_bps or USUAL_TOTAL_BPS, subject="the demo's policy")


def read_policy(text: str, name: str, total_bps: int | None) -> ShownPolicy:
    """The policy of a configuration file; `Rejected` with every problem when it is wrong or switched off.

    A given total wins over the file's, and where neither says one it is `USUAL_TOTAL_BPS`.
    """
    settings = parse_documents([(name, text)])
    totals = resolve_totals(
        settings=settings, slo=None, node=NodeFacts(name=name), last_good=EMPTY_LAST_GOOD.totals
    )
    document = yaml.safe_load(text) or {}
    sections = {key: document[key] for key in _TAKEN if key in document}
    return _shown(sections, total_bps or totals.bps.tx or USUAL_TOTAL_BPS, subject=name)


def _shown(sections: Mapping[str, Any], total_bps: int, *, subject: str) -> ShownPolicy:
    if total_bps < SMALLEST_TOTAL_BPS:
        least = format_bandwidth(SMALLEST_TOTAL_BPS)
        raise Rejected(f"a total of {format_bandwidth(total_bps)} is too small", hint=f"take {least} or more")
    total = format_bandwidth(total_bps)
    complete = {**sections, "node": {"bandwidth": {"tx": total, "rx": total}}}
    settings = parse_documents([(subject, yaml.safe_dump(complete))])
    policy = policy_in_force(settings, None)
    if not policy.enabled:
        raise Rejected("network QoS is off in it", subject=subject, hint="set policy.enable to true")
    bands = resolve_bands(policy, Direction.TX, total_bps)
    problems = tuple(
        f"{finding.subject}: {finding.message}"
        for finding in bands.findings
        if finding.severity is not Severity.INFO
    )
    if problems:
        hint = "choose a total for which the policy holds with --total"
        raise Rejected(f"does not hold for a total of {total}", subject=subject, hint=hint, problems=problems)
    return ShownPolicy(total_bps=total_bps, bands=bands.levels, sections=complete)
