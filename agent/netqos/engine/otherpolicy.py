"""What the loop would have been told under another policy: recorded policies of units, with the amounts of settings.

The node's total stays the recorded one unless the settings give one; each unit keeps its proportion of it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from netqos.engine.bands import resolve_bands
from netqos.engine.policy import policy_in_force
from netqos.engine.totals import configured_total
from netqos.engine.units import bands_at
from netqos.engine.unitstate import LoopPolicy
from netqos.errors import Rejected
from netqos.model.desired import DesiredDirection
from netqos.model.levels import Direction
from netqos.model.quantities import format_bandwidth
from netqos.model.traffic import Unit
from netqos.settings.values import Settings

Policies = Mapping[Unit, LoopPolicy]


def policies_under(settings: Settings, recorded: Policies) -> Policies:
    """The policies of the recorded units; `Rejected` with every problem of a policy that cannot be in force."""
    if not policy_in_force(settings, None).enabled:
        hint = "set policy.enable: true"
        raise Rejected("under this policy network QoS is off: nothing would be decided", hint=hint)
    changed: dict[Unit, LoopPolicy] = {}
    problems: list[str] = []
    for direction in Direction:
        units = {unit: policy for unit, policy in recorded.items() if unit.direction is direction}
        if units:
            found, told = _direction(settings, direction, units)
            changed |= found
            problems += told
    if problems:
        raise Rejected(problems[0], hint="correct the policy", problems=tuple(problems))
    return {unit: changed[unit] for unit in recorded}


def _direction(
    settings: Settings, direction: Direction, units: Policies
) -> tuple[dict[Unit, LoopPolicy], list[str]]:
    recorded_bps = _node_total(units)
    total_bps = configured_total(settings, direction) or recorded_bps
    bands = resolve_bands(policy_in_force(settings, None), direction, total_bps)
    under = f"under the total of {format_bandwidth(total_bps)}"
    told = [
        f"{direction.value} {one.level.name}: {one.message} ({under}); {one.hint}" for one in bands.problems
    ]
    whole = DesiredDirection(total_bps=total_bps, levels=bands.levels)
    scaled = {
        unit: _unit(settings, policy, whole, (total_bps, recorded_bps)) for unit, policy in units.items()
    }
    return scaled, told


def _node_total(units: Policies) -> int:
    """The total of a direction: the one that units share, else what their own add up to."""
    shared = [policy.total_bps for policy in units.values() if policy.is_shared]
    return shared[0] if shared else sum(policy.total_bps for policy in units.values())


def _unit(
    settings: Settings, policy: LoopPolicy, whole: DesiredDirection, proportion: tuple[int, int]
) -> LoopPolicy:
    now_bps, recorded_bps = proportion
    total_bps = policy.total_bps * now_bps // recorded_bps
    bands, loop = bands_at(whole, total_bps), settings.loop
    assert bands is not None
    return replace(
        policy,
        total_bps=total_bps,
        bands=bands,
        enter=loop.enter,
        enter_backlogged=loop.enter_backlogged,
        leave=loop.leave,
        hold_s=loop.hold_s,
        most_bps=None if policy.most_bps is None else policy.most_bps * now_bps // recorded_bps,
    )
