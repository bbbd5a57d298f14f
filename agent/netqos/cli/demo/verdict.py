"""From what was recorded to whether the promises were kept. Pure.

A guarantee holds in every second. Bandwidth that others leave is lent: that counts on average, since how fast a flow
takes what it is offered is TCP's doing. A ceiling is never passed. When a phase settled is told, and judged by nobody.

A phase is judged from `GRACE_S` after its start: TCP needs a moment to find its new share, and how long it took is told
apart (`settled_after_s`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.cli.demo.scenario import Phase, Promise, Scenario, Side, series_name
from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series, Windows, settled_after_s, summarize
from netqos.testing.probes import Delays

GRACE_S = 1.0
LEAST = 0.95
"""The worst second must reach this part of the guarantee, the mean this part of the share."""
MOST = 1.02
"""The best second may reach this multiple of the ceiling, and a burst of one large packet beside it."""
BURST_BITS = 8 * 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a phase really was; moments are those of time.monotonic."""

    phase: Phase
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything that was measured: bytes by `series_name` at the receivers, and the small requests' delays."""

    spans: tuple[Span, ...]
    series: Series
    delays: Delays


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """What one level was promised in a phase, what it got, and what is wrong with that (empty: kept)."""

    promise: Promise
    measured: Windows
    broken: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideResult:
    """One direction in a phase.

    `settled_after_s` None: some level left its 10 percent again until the end; that breaks no promise.
    """

    levels: Mapping[Level, LevelResult]
    settled_after_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseResult:
    """One phase; the small requests go through both directions."""

    span: Span
    sides: Mapping[Direction, SideResult]
    delays: Delays

    @property
    def broken(self) -> tuple[tuple[Direction, Level], ...]:
        """The levels that did not get what they were promised."""
        return tuple(
            (direction, level)
            for direction, side in self.sides.items()
            for level, result in side.levels.items()
            if result.broken
        )

    @property
    def kept(self) -> bool:
        """Whether every level got what it was promised."""
        return not self.broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The whole demo."""

    scenario: Scenario
    phases: tuple[PhaseResult, ...]

    @property
    def kept(self) -> bool:
        """Whether every promise was kept in every phase."""
        return all(phase.kept for phase in self.phases)


def judge(scenario: Scenario, recording: Recording) -> Verdict:
    """Compare what was measured with what was promised."""
    return Verdict(
        scenario=scenario, phases=tuple(_judge_phase(scenario, recording, span) for span in recording.spans)
    )


def settle_bin_s(smallest_bps: int) -> float:
    """The width of the bins in which a rate is looked at: with one large packet more it stays within 10 percent."""
    if smallest_bps >= 50_000_000:
        return 0.1
    return 0.2 if smallest_bps >= 20_000_000 else 0.5


def _judge_phase(scenario: Scenario, recording: Recording, span: Span) -> PhaseResult:
    return PhaseResult(
        span=span,
        sides={direction: _judge_side(scenario, recording, span, direction) for direction in scenario.sides},
        delays=recording.delays.between(span.start_s, span.end_s),
    )


def _judge_side(scenario: Scenario, recording: Recording, span: Span, direction: Direction) -> SideResult:
    promises = scenario.promises(span.phase, direction)
    shares = {series_name(direction, level): promise.share_bps for level, promise in promises.items()}
    judged = recording.series.between(span.start_s + GRACE_S, span.end_s)
    return SideResult(
        levels={
            level: _judge_level(promise, judged, series_name(direction, level))
            for level, promise in promises.items()
        },
        settled_after_s=settled_after_s(
            recording.series,
            shares,
            start_s=span.start_s,
            end_s=span.end_s,
            width_s=settle_bin_s(min(shares.values())),
        ),
    )


def _judge_level(promise: Promise, judged: Series, name: str) -> LevelResult:
    measured = summarize(judged, name)
    broken = ""
    if measured.worst_bps < LEAST * promise.guarantee_bps:
        broken = f"its worst second is under {LEAST:.0%} of its guarantee"
    elif measured.mean_bps < LEAST * promise.share_bps:
        broken = f"it got under {LEAST:.0%} of its share"
    elif measured.best_bps > MOST * promise.ceiling_bps + BURST_BITS:
        broken = f"its best second is over {MOST:.0%} of its ceiling"
    return LevelResult(promise=promise, measured=measured, broken=broken)


def as_json(verdict: Verdict) -> dict[str, object]:
    """The verdict for programs: bits per second, seconds, milliseconds where the key says so."""
    start_s = verdict.phases[0].span.start_s if verdict.phases else 0.0
    return {
        "version": 2,
        "kept": verdict.kept,
        "directions": {
            direction.value: _side_json(side) for direction, side in verdict.scenario.sides.items()
        },
        "phases": [_phase_json(phase, start_s) for phase in verdict.phases],
    }


def _side_json(side: Side) -> dict[str, object]:
    return {
        "total_bps": side.total_bps,
        "levels": {
            level.name: {"guarantee_bps": band.guarantee_bps, "ceiling_bps": band.ceiling_bps}
            for level, band in zip(Level, side.bands, strict=True)
        },
    }


def _phase_json(phase: PhaseResult, start_s: float) -> dict[str, object]:
    delays = phase.delays
    return {
        "title": phase.span.phase.title,
        "start_s": round(phase.span.start_s - start_s, 3),
        "end_s": round(phase.span.end_s - start_s, 3),
        "kept": phase.kept,
        "directions": {
            direction.value: {
                "settled_after_s": _rounded(side.settled_after_s),
                "levels": {level.name: _level_json(result) for level, result in side.levels.items()},
            }
            for direction, side in phase.sides.items()
        },
        "request_ms": {
            "count": len(delays.seconds),
            "lost": delays.lost,
            **{f"p{rank}": _milliseconds(delays, rank) for rank in (50, 99)},
        },
    }


def _level_json(result: LevelResult) -> dict[str, object]:
    return {
        "guaranteed_bps": result.promise.guarantee_bps,
        "share_bps": result.promise.share_bps,
        "ceiling_bps": result.promise.ceiling_bps,
        "mean_bps": round(result.measured.mean_bps),
        "worst_second_bps": round(result.measured.worst_bps),
        "best_second_bps": round(result.measured.best_bps),
        "broken": result.broken or None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _milliseconds(delays: Delays, percent: float) -> float | None:
    """None where nothing was answered in time: JSON has no infinity."""
    milliseconds = delays.percentile_s(percent) * 1000
    return round(milliseconds, 3) if milliseconds < 1e9 else None
