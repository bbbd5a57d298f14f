"""Recordings of runs that never were, with rates that are known exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from netqos.model.levels import Direction, Level, PerDirection
from netqos.testing.analysis import Series
from netqos.testing.probes import Delays
from tests.bench.compare.script import NODE, NODE_SHARE, Mark, source_name
from tests.bench.compare.session import Cost, Recording
from tests.bench.compare.surface import M, Policy, usual_bands

TOTALS = PerDirection(tx=600 * M, rx=300 * M)
POLICY = Policy(totals_bps=TOTALS, bands=TOTALS.map(usual_bands))
STEP_S = 0.05
FIRST_S = 100.0
END_S = 15.0

MARKS = (
    Mark(kind="join", level=Level.L0, start_s=101.0, end_s=107.0),
    Mark(kind="gone", level=Level.L0, start_s=107.0, end_s=108.0),
    Mark(kind="back", level=Level.L0, start_s=108.0, end_s=109.0),
    Mark(kind="gone", level=Level.L1, start_s=109.0, end_s=110.0),
    Mark(kind="back", level=Level.L1, start_s=110.0, end_s=111.0),
    Mark(kind="gone", level=Level.L2, start_s=111.0, end_s=112.0),
    Mark(kind="back", level=Level.L2, start_s=112.0, end_s=113.0),
)

Rate = Callable[[Direction, Level, float], float]


def series(rate: Rate) -> Series:
    """Counts of a rate that is asked at the middle of each step."""
    steps = round(END_S / STEP_S)
    counts: dict[str, list[float]] = {}
    for way in Direction:
        for level in Level:
            column = counts.setdefault(source_name(way, level), [0.0])
            for step in range(steps):
                at_s = FIRST_S + (step + 0.5) * STEP_S
                column.append(column[-1] + rate(way, level, at_s) * STEP_S / 8)
    counts[NODE] = [max(0.0, step * STEP_S - 13.0) * NODE_SHARE * TOTALS.rx / 8 for step in range(steps + 1)]
    return Series(
        at_s=tuple(FIRST_S + step * STEP_S for step in range(steps + 1)),
        counts={name: tuple(column) for name, column in counts.items()},
    )


def share_of(gone: Level | None, way: Direction) -> Mapping[Level, float]:
    """What the levels get under the usual bands, in bits per second, when one of them does not send."""
    table = {
        None: (1 / 2, 1 / 3, 1 / 6),
        Level.L0: (0, 0.8, 0.2),
        Level.L1: (5 / 6, 0, 1 / 6),
        Level.L2: (2 / 3, 1 / 3, 0),
    }
    return {level: part * TOTALS[way] for level, part in zip(Level, table[gone], strict=True)}


def steady(way: Direction, level: Level, at_s: float) -> float:
    """Everything as promised at once."""
    if at_s < MARKS[0].start_s:
        return share_of(Level.L0, way)[level]
    mark = next((mark for mark in MARKS if at_s < mark.end_s), None)
    gone = mark.level if mark is not None and mark.kind == "gone" else None
    return share_of(gone, way)[level]


def recording(rate: Rate = steady, cost: Cost | None = None) -> Recording:
    """A run with these rates."""
    return Recording(
        series=series(rate),
        marks=MARKS,
        node_s=(113.0, 115.0),
        delays=Delays(seconds=(0.001,) * 989 + (0.02,) * 10, sent_at_s=(100.0,) * 999, lost_at_s=(101.0,)),
        shorts_s=PerDirection(tx=(0.004,) * 9 + (0.05,), rx=(0.003, 0.003, float("inf"))),
        cost=cost or Cost(),
    )
