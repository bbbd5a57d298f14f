"""What the annotation netqos.koordinator.sh/status of a Node says: totals, levels, and what is not right. Pure."""

from __future__ import annotations

import json

from netqos.model.composed import Composition
from netqos.model.desired import Band
from netqos.model.health import Severity
from netqos.model.levels import Direction, Level
from netqos.model.quantities import format_bandwidth

STATUS_EVERY_S = 30.0
"""The shortest time between two writes."""

_MOST_FINDINGS = 10


def status_text(composition: Composition) -> str:
    """One JSON object, bandwidths as quantities in bits per second; the same composition gives the same text."""
    document = {
        "enabled": composition.desired.enabled,
        **{direction.value: _direction(composition, direction) for direction in Direction},
        "pods": len(composition.pods),
        "rejected": sum(1 for pod in composition.pods if pod.findings),
        "findings": sorted({one.code for one in composition.findings if one.severity is not Severity.INFO})[
            :_MOST_FINDINGS
        ],
    }
    return json.dumps(document, separators=(",", ":"))


def _direction(composition: Composition, direction: Direction) -> dict[str, object]:
    desired = composition.desired.directions[direction]
    levels = desired.levels
    bands = {level.name.lower(): _band(levels[level]) for level in Level} if levels is not None else {}
    return {"total": _said(desired.total_bps), **bands}


def _band(band: Band) -> dict[str, str]:
    return {"min": format_bandwidth(band.guarantee_bps), "max": format_bandwidth(band.ceiling_bps)}


def _said(bps: int | None) -> str | None:
    return None if bps is None else format_bandwidth(bps)
