"""A small recording for the demo's tests: every phase lasts 2.5 s and each level gets what `rates` says."""

from __future__ import annotations

from collections.abc import Mapping

from netqos.cli.demo.scenario import GREEDY, Scenario, build_scenario
from netqos.cli.demo.verdict import Recording, Span
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from netqos.testing.analysis import Series
from netqos.testing.probes import Delays

M = 1_000_000
STEP_S = 0.05
BANDS = PerLevel(
    Band(guarantee_bps=500 * M, ceiling_bps=1000 * M),
    Band(guarantee_bps=300 * M, ceiling_bps=800 * M),
    Band(guarantee_bps=200 * M, ceiling_bps=1000 * M),
)
SCENARIO = build_scenario(seconds=12.5, total_bps=1000 * M, bands=BANDS)


def record(
    scenario: Scenario = SCENARIO, scale: Mapping[tuple[int, Level], float] | None = None
) -> Recording:
    """Every level gets exactly its promise, times `scale` for a phase's number and level."""
    moments, start_s = [1000.0], 1000.0
    counts: dict[str, list[float]] = {workload.name: [0.0] for workload in GREEDY}
    spans = []
    for number, phase in enumerate(scenario.phases):
        promises = scenario.promises(phase)
        for step in range(round(phase.seconds / STEP_S)):
            moments.append(start_s + (step + 1) * STEP_S)
            for level in Level:
                share = promises[level].share_bps if level in promises else 0
                rate = share * (scale or {}).get((number, level), 1.0)
                counts[GREEDY[level].name].append(counts[GREEDY[level].name][-1] + rate * STEP_S / 8)
        spans.append(Span(phase=phase, start_s=start_s, end_s=start_s + phase.seconds))
        start_s += phase.seconds
    series = Series(at_s=tuple(moments), counts={name: tuple(column) for name, column in counts.items()})
    asked = [1000.0 + number * 0.01 for number in range(1250)]
    delays = Delays(seconds=tuple([0.0001] * 1249), sent_at_s=tuple(asked[:-1]), lost_at_s=(asked[-1],))
    return Recording(spans=tuple(spans), series=series, delays=delays)
