"""What lies behind the uplinks, on the wire. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from netqos.engine.pathstate import Step
from netqos.model.traffic import Unit
from netqos.observe import wire
from netqos.observe import wireparts as parts
from netqos.observe.moment import Moment
from netqos.observe.pathview import PathView
from netqos.observe.view import AgentView


def paths(view: AgentView, moment: Moment) -> list[wire.UplinkPathWire]:
    """Every path, by device and direction."""
    found = sorted(view.paths.items(), key=lambda one: (one[0].device, one[0].direction.value))
    return [_path(unit, path, moment) for unit, path in found]


def steps(
    known: Mapping[Unit, PathView], moment: Moment, is_wanted: Callable[[Unit, float], bool]
) -> list[wire.PathStepWire]:
    """The last steps of all paths that are wanted by unit and (monotonic) time, oldest first."""
    found = [(unit, one) for unit, path in known.items() for one in path.steps if is_wanted(unit, one.at_s)]
    return [_step(unit, one, moment) for unit, one in sorted(found, key=lambda pair: pair[1].at_s)]


def _path(unit: Unit, path: PathView, moment: Moment) -> wire.UplinkPathWire:
    return wire.UplinkPathWire(
        device=unit.device,
        direction=parts.way(unit.direction),
        configured_bps=path.total_bps,
        follows=path.follows,
        floor_bps=path.floor_bps,
        limit_bps=path.limit_bps,
        measured_bps=path.shortfall.plateau_bps if path.shortfall is not None else None,
        proposed_bps=path.proposed_bps,
        steps=[_step(unit, one, moment) for one in path.steps],
    )


def _step(unit: Unit, step: Step, moment: Moment) -> wire.PathStepWire:
    return wire.PathStepWire(
        device=unit.device,
        direction=parts.way(unit.direction),
        at_s=step.at_s,
        unix_s=moment.unix_s(step.at_s),
        reason=step.reason.name.lower().replace("_", "-"),
        reason_text=step.reason.value,
        before_bps=step.before_bps,
        after_bps=step.after_bps,
    )
