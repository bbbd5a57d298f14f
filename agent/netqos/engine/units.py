"""From the desired state to the policy of one unit of the fast loop, and the promises of one uplink among several."""

from __future__ import annotations

from dataclasses import replace

from netqos.engine.unitstate import LoopPolicy
from netqos.model.desired import Band, DesiredDirection, DesiredState
from netqos.model.levels import PerLevel
from netqos.model.traffic import Unit
from netqos.settings.values import LoopSettings

HEADROOM = 0.1
"""What a backend that cannot lend keeps above a level's measured rate (contract 3)."""


def loop_policy(desired: DesiredState, unit: Unit, loop: LoopSettings, *, lends: bool) -> LoopPolicy | None:
    """What the loop must keep on one unit, None where nothing is promised (network QoS off, total unknown).

    A unit on an uplink has that uplink's total, or what it shares with others; a unit on any other device (an IFB, a
    backend's own) has the node's.
    """
    direction = desired.directions[unit.direction]
    own = next((uplink for uplink in desired.uplinks if uplink.name == unit.device), None)
    most_bps = own.total_bps[unit.direction] if own is not None else direction.total_bps
    pool_bps = own.pool_bps[unit.direction] if own is not None else None
    total_bps = most_bps if pool_bps is None else pool_bps
    bands = bands_at(direction, total_bps)
    if total_bps is None or bands is None:
        return None
    return LoopPolicy(
        total_bps=total_bps,
        bands=bands,
        lends=lends,
        headroom=0.0 if lends else HEADROOM,
        enter=loop.enter,
        enter_backlogged=loop.enter_backlogged,
        leave=loop.leave,
        hold_s=loop.hold_s,
        is_shared=pool_bps is not None,
        most_bps=None if pool_bps is None else most_bps,
    )


def bands_at(direction: DesiredDirection, total_bps: int | None) -> PerLevel[Band] | None:
    """The node's bands scaled to the total of one uplink; unchanged when that is the node's total.

    Rounded down, so that guarantees never add up to more than the total; L0 is guaranteed what L1 and L2 leave. None
    where the direction is not shaped by level or the total is unknown.
    """
    if direction.levels is None or total_bps is None or direction.total_bps in {None, total_bps}:
        return direction.levels if total_bps is not None else None
    node_bps = direction.total_bps

    def scale(band: Band) -> Band:
        return replace(
            band,
            guarantee_bps=band.guarantee_bps * total_bps // node_bps,
            ceiling_bps=band.ceiling_bps * total_bps // node_bps,
        )

    scaled = direction.levels.map(scale)
    rest_bps = total_bps - scaled.l1.guarantee_bps - scaled.l2.guarantee_bps
    l0 = replace(scaled.l0, guarantee_bps=min(rest_bps, scaled.l0.ceiling_bps))
    return PerLevel(l0, scaled.l1, scaled.l2)
