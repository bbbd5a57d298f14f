"""A small recording for the demo's tests: every phase lasts 2.5 s and each level gets what `scale` says."""

from __future__ import annotations

from collections.abc import Mapping

from netqos.cli.demo.scenario import Scenario, Side, build_scenario, series_name
from netqos.cli.demo.verdict import Recording, Span
from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.analysis import Series
from netqos.testing.probes import Delays

M = 1_000_000
STEP_S = 0.05
BANDS = PerLevel(
    Band(guarantee_bps=500 * M, ceiling_bps=1000 * M),
    Band(guarantee_bps=300 * M, ceiling_bps=800 * M),
    Band(guarantee_bps=200 * M, ceiling_bps=1000 * M),
)
RX_BANDS = PerLevel(
    Band(guarantee_bps=420 * M, ceiling_bps=600 * M),
    Band(guarantee_bps=60 * M, ceiling_bps=600 * M),
    Band(guarantee_bps=120 * M, ceiling_bps=330 * M),
)
TX, RX = Direction.TX, Direction.RX
SIDES = {TX: Side(total_bps=1000 * M, bands=BANDS), RX: Side(total_bps=600 * M, bands=RX_BANDS)}
SCENARIO = build_scenario(seconds=12.5, sides=SIDES)


def record(
    scenario: Scenario = SCENARIO,
    scale: Mapping[tuple[int, Level], float] | None = None,
    *,
    way: Direction = TX,
) -> Recording:
    """Every level gets exactly its promise, in one direction times `scale` for a phase's number and level."""
    moments, start_s = [1000.0], 1000.0
    counts: dict[str, list[float]] = {
        series_name(side, level): [0.0] for side in scenario.sides for level in Level
    }
    spans = []
    for number, phase in enumerate(scenario.phases):
        steps = round(phase.seconds / STEP_S)
        moments += [start_s + (step + 1) * STEP_S for step in range(steps)]
        for side in scenario.sides:
            promises = scenario.promises(phase, side)
            for level in Level:
                share = promises[level].share_bps if level in promises else 0
                rate = share * ((scale or {}).get((number, level), 1.0) if side is way else 1.0)
                column = counts[series_name(side, level)]
                for _ in range(steps):
                    column.append(column[-1] + rate * STEP_S / 8)
        spans.append(Span(phase=phase, start_s=start_s, end_s=start_s + phase.seconds))
        start_s += phase.seconds
    series = Series(at_s=tuple(moments), counts={name: tuple(column) for name, column in counts.items()})
    asked = [1000.0 + number * 0.01 for number in range(1250)]
    delays = Delays(seconds=tuple([0.0001] * 1249), sent_at_s=tuple(asked[:-1]), lost_at_s=(asked[-1],))
    return Recording(spans=tuple(spans), series=series, delays=delays)
