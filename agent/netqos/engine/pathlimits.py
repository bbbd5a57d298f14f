"""What the path of each unit may be limited to, and the desired state under the limits that were proven. Pure.

Under a limit the node is what it would be with that total: every level's guarantee and ceiling shrink in the same
proportion, for no order of levels says who should lose most of what nobody can have. Pods' limits in percent stay those
of the configured total. Bits per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from netqos.engine.allocate import L0_FLOOR_BPS
from netqos.engine.pathsigns import PathPolicy
from netqos.engine.units import bands_at, loop_policy
from netqos.model.composed import Composition
from netqos.model.desired import DesiredDirection, DesiredState, DesiredUplink
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerDirection
from netqos.model.traffic import Unit
from netqos.settings.values import Settings

TRIM_PERCENT = 93
"""How far down a total is moved that is not `auto`: what other ways of counting, and the margin under it, explain."""

AUTO_PERCENT = 50

MEASURED = "measured"
"""The source of a total that is limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLimit:
    """A limit in the form in which it is remembered."""

    device: IfName
    direction: Direction
    limit_bps: int


Limits = Mapping[Unit, int]
"""What is to be in force in the place of a unit's total."""

NO_PATH_LIMITS: Limits = {}


def remembered(limits: Limits) -> tuple[PathLimit, ...]:
    """Limits to keep over a restart, in an order of their own."""
    found = [
        PathLimit(device=unit.device, direction=unit.direction, limit_bps=bps) for unit, bps in limits.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.device, one.direction.value)))


def recalled(kept: tuple[PathLimit, ...]) -> Limits:
    """What `remembered` gave."""
    return {Unit(one.direction, one.device): one.limit_bps for one in kept}


def path_policy(whole: DesiredState, unit: Unit, settings: Settings) -> PathPolicy | None:
    """How far down the total of a unit may go; None where nothing may be judged by it.

    That is without levels, for an uplink that is none any more, and for those that share one total: each part of it is
    moved anyway.
    """
    if unit.direction is Direction.TX and all(one.name != unit.device for one in whole.uplinks):
        return None
    policy = loop_policy(whole, unit, settings.loop, lends=True)
    if policy is None or policy.is_shared:
        return None
    total_bps, bands = policy.total_bps, policy.bands
    percent = AUTO_PERCENT if follows(unit, settings) else TRIM_PERCENT
    promised_bps = bands.l1.guarantee_bps + bands.l2.guarantee_bps + min(bands.l0.guarantee_bps, L0_FLOOR_BPS)
    return PathPolicy(
        total_bps=total_bps,
        floor_bps=max(total_bps * percent // 100, promised_bps),
        guarantees_bps=bands.map(lambda band: band.guarantee_bps),
    )


def follows(unit: Unit, settings: Settings) -> bool:
    """Whether the unit's total is `auto`: the uplink's own word for it, else the node's."""
    own = next((one for one in settings.uplinks or () if one.name == unit.device), None)
    says_so = own is not None and own.follows[unit.direction]
    has_own = own is not None and own.bandwidth[unit.direction] is not None
    return says_so or (settings.follows[unit.direction] and not has_own)


def limited(composed: Composition, limits: Limits, settings: Settings) -> Composition:
    """The composition under the limits that the configuration allows."""
    desired = within_limits(composed.desired, limits, settings)
    if desired is composed.desired:
        return composed

    def source(way: Direction) -> str:
        is_limited = desired.directions[way].total_bps != composed.desired.directions[way].total_bps
        return MEASURED if is_limited else composed.total_sources[way]

    sources = PerDirection(tx=source(Direction.TX), rx=source(Direction.RX))
    return replace(composed, desired=desired, total_sources=sources)


def within_limits(whole: DesiredState, limits: Limits, settings: Settings) -> DesiredState:
    """The desired state under those limits that the configuration allows; itself where there are none."""
    allowed = {unit: bps for unit, bps in limits.items() if _is_allowed(whole, unit, bps, settings)}
    if not allowed:
        return whole
    uplinks = tuple(_uplink(one, whole, allowed) for one in whole.uplinks)
    directions = {way: _direction(whole, uplinks, way, allowed) for way in Direction}
    return replace(
        whole,
        uplinks=uplinks,
        directions=PerDirection(tx=directions[Direction.TX], rx=directions[Direction.RX]),
    )


def _is_allowed(whole: DesiredState, unit: Unit, bps: int, settings: Settings) -> bool:
    policy = path_policy(whole, unit, settings)
    return policy is not None and policy.floor_bps <= bps < policy.total_bps


def _uplink(uplink: DesiredUplink, whole: DesiredState, limits: Limits) -> DesiredUplink:
    """An uplink's own total is limited by its own unit; a single one's by that of the node's, too."""
    total = {way: uplink.total_bps[way] for way in Direction}
    for unit, bps in limits.items():
        is_its_own = unit.device == uplink.name
        if is_its_own or (len(whole.uplinks) == 1 and unit.direction is Direction.RX):
            total[unit.direction] = bps
    return replace(uplink, total_bps=PerDirection(tx=total[Direction.TX], rx=total[Direction.RX]))


def _direction(
    whole: DesiredState, uplinks: tuple[DesiredUplink, ...], way: Direction, limits: Limits
) -> DesiredDirection:
    """The node's direction: less by what its uplinks are, or what stands for all of them is."""
    found = whole.directions[way]
    names = {one.name for one in whole.uplinks}
    of_all = [bps for unit, bps in limits.items() if unit.direction is way and unit.device not in names]
    lost_bps = sum(
        (before.total_bps[way] or 0) - (after.total_bps[way] or 0)
        for before, after in zip(whole.uplinks, uplinks, strict=True)
    )
    if found.total_bps is None or not (of_all or lost_bps):
        return found
    total_bps = min([*of_all, found.total_bps - lost_bps])
    return DesiredDirection(total_bps=total_bps, levels=bands_at(found, total_bps))
