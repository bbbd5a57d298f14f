"""What is known of the path behind a unit, and the findings that tell it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from netqos.engine.pathsigns import FLOODED, HEAVY
from netqos.engine.pathstate import Shortfall, Step
from netqos.model.health import Finding, info, warning
from netqos.model.levels import Direction
from netqos.model.quantities import format_bandwidth
from netqos.model.traffic import Unit

_SMALLEST_STEP_BPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PathView:
    """One unit's path: the total that it should carry, the limit that was proven, the shortfall that was seen.

    `follows`: the total is `auto`. `floor_bps` is how far down a limit may go; `steps` are the last ones, oldest first.
    """

    total_bps: int
    floor_bps: int
    follows: bool
    limit_bps: int | None
    shortfall: Shortfall | None
    steps: tuple[Step, ...]

    @property
    def proposed_bps(self) -> int | None:
        """The total that fits the path, as far as is known."""
        if self.limit_bps is not None:
            return self.limit_bps
        return None if self.shortfall is None else _rounded(self.shortfall.proposed_bps)


def path_findings(unit: Unit, view: PathView) -> Iterator[Finding]:
    """A total that is not reached, and one that was lowered."""
    whole, way = format_bandwidth(view.total_bps), unit.direction.value
    if view.limit_bps is not None:
        percent = 100 * view.limit_bps // view.total_bps
        yield info(
            "total-lowered",
            unit.device,
            f"{way} total {format_bandwidth(_rounded(view.limit_bps))} instead of {whole} ({percent}%): the path was "
            "shown to carry no more; every level's guarantee is lower in the same proportion",
            hint="see `netqosctl status`; it is raised again once the path carries more",
        )
    elif view.shortfall is not None:
        yield _not_reached(unit, view, view.shortfall)


def _not_reached(unit: Unit, view: PathView, seen: Shortfall) -> Finding:
    way = unit.direction.value
    percent = 100 * seen.plateau_bps / view.total_bps
    side = "behind" if unit.direction is Direction.TX else "before"
    proposed = format_bandwidth(_rounded(seen.proposed_bps))
    lost = (
        f"the receivers of {seen.workloads} workloads report gaps ({seen.loss_share:.2%} of the packets) that no queue "
        f"of this node made"
    )
    or_less = " or less" if seen.loss_share >= HEAVY else ""
    is_flooded = seen.loss_share >= FLOODED
    how = "is not where packets wait" if is_flooded else "is not reached"
    sums = "come to" if is_flooded else "stand still at"
    hint = f"set node.bandwidth to {{{way}: {proposed}}}{or_less}"
    if not view.follows:
        hint += f", or to {{{way}: auto}}, which follows what the path carries"
    elif seen.proposed_bps < view.floor_bps:
        hint += f"; auto goes no further down than {format_bandwidth(_rounded(view.floor_bps))}"
    return warning(
        "total-not-reached",
        unit.device,
        f"the {way} total of {format_bandwidth(view.total_bps)} {how}: all levels together {sums} "
        f"{format_bandwidth(_rounded(seen.plateau_bps))} ({percent:.0f}%), nothing waits in the node, and {lost}: "
        f"{side} this node the path is narrower, and guarantees do not hold",
        hint=hint,
    )


def _rounded(bps: int) -> int:
    """To three digits, for people."""
    step_bps = _SMALLEST_STEP_BPS
    while step_bps * 1000 <= bps:
        step_bps *= 10
    return bps // step_bps * step_bps
