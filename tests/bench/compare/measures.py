"""What one run shows, as numbers by the keys of the rows. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from netqos.engine.allocate import shares_bps
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.analysis import Series, percentile, settled_after_s, summarize
from tests.bench.compare.rows import PERCENTS, SHORT_PERCENTS
from tests.bench.compare.script import NODE, Mark, source_name
from tests.bench.compare.session import Recording
from tests.bench.compare.surface import Policy
from tests.bench.moments import STEP_S, arrived_s, departed_s, held_after_s, steady_after_s

_SETTLE_S = 1.0
_FREED = 0.9


def evaluate(recording: Recording, policy: Policy) -> dict[str, float]:
    """The numbers of one run by the keys of `MEASURES`; inf where a thing never came, none where it cannot be."""
    found: dict[str, float] = {}
    for way in Direction:
        for key, value in _sides(recording, policy, way):
            found[f"{way.value}.{key}"] = value
        for percent in SHORT_PERCENTS:
            found[f"{way.value}.short.p{percent:g}"] = 1000 * percentile(recording.shorts_s[way], percent)
    found["rx.node"] = _with_node(recording, policy)
    for percent in PERCENTS:
        found[f"request.p{percent:g}"] = 1000 * recording.delays.percentile_s(percent)
    found.update(_costs(recording))
    return found


def _with_node(recording: Recording, policy: Policy) -> float:
    """What came to the pods and to the node itself, of the total, after the first third of that time."""
    start_s, end_s = recording.node_s
    names = [NODE, *(source_name(Direction.RX, level) for level in Level)]
    total = recording.series.summed("total", names)
    return 100 * total.rate_bps("total", start_s + (end_s - start_s) / 3, end_s) / policy.totals_bps.rx


def _costs(recording: Recording) -> Iterator[tuple[str, float]]:
    cost = recording.cost
    if cost.cpu_percent is not None and cost.resident_mib is not None:
        yield "agent.cpu", cost.cpu_percent
        yield "agent.rss", cost.resident_mib
    if cost.late_p99_ms is not None:
        yield "agent.late", cost.late_p99_ms
    yield "agent.writes", cost.writes_a_second


def _sides(recording: Recording, policy: Policy, way: Direction) -> Iterator[tuple[str, float]]:
    series, promises = recording.series, _promises(policy, way)
    for mark in recording.marks:
        name = source_name(way, mark.level)
        if mark.kind == "gone":
            yield f"release.{mark.level.name}", _release_ms(series, policy, way, mark)
            continue
        start_s = arrived_s(series, name, mark.start_s, mark.end_s)
        if mark.kind == "back":
            yield f"onset.{mark.level.name}", _settled_ms(series, promises, start_s, mark.end_s)
        else:
            first_s = min(_SETTLE_S, (mark.end_s - start_s) / 3)
            own = {one: series.rate_bps(one, mark.end_s - first_s, mark.end_s) for one in promises}
            yield (
                "settled",
                _ms(steady_after_s(series, own, start_s=start_s, end_s=mark.end_s, for_s=first_s)),
            )
            seen = series.between(start_s + first_s, mark.end_s)
            # A part as short as a stall may have no two readings; a run that long is made again.
            yield from _rates(seen if len(seen.at_s) > 1 else series, policy, way)
    yield from _ceilings(recording, policy, way)


def _settled_ms(series: Series, rates_bps: Mapping[str, float], start_s: float, end_s: float) -> float:
    return _ms(settled_after_s(series, rates_bps, start_s=start_s, end_s=end_s, step_s=STEP_S))


def _release_ms(series: Series, policy: Policy, way: Direction, mark: Mark) -> float:
    start_s = departed_s(series, source_name(way, mark.level), mark.start_s, mark.end_s)
    others = [source_name(way, level) for level in Level if level is not mark.level]
    least_bps = _FREED * _freed_bps(policy, way, mark.level)
    return _ms(held_after_s(series, others, least_bps=least_bps, start_s=start_s, end_s=mark.end_s))


def _promises(policy: Policy, way: Direction) -> dict[str, float]:
    return {source_name(way, level): float(policy.guarantee_bps(way, level)) for level in Level}


def _rates(series: Series, policy: Policy, way: Direction) -> Iterator[tuple[str, float]]:
    """The steady part with all levels: against guarantees and total."""
    promises = _promises(policy, way)
    found = {name: summarize(series, name) for name in promises}
    yield "guarantee.worst", 100 * min(found[name].worst_bps / bps for name, bps in promises.items())
    yield "guarantee.mean", 100 * min(found[name].mean_bps / bps for name, bps in promises.items())
    total = summarize(series.summed("total", tuple(promises)), "total")
    yield "used", 100 * total.mean_bps / policy.totals_bps[way]
    yield "total.best", 100 * total.best_bps / policy.totals_bps[way]


def _ceilings(recording: Recording, policy: Policy, way: Direction) -> Iterator[tuple[str, float]]:
    ceilings = {source_name(way, level): policy.bands[way][level].ceiling_bps for level in Level}
    series = recording.series
    yield "ceiling.best", 100 * max(summarize(series, name).best_bps / bps for name, bps in ceilings.items())
    yield (
        "ceiling.mean",
        100
        * max(
            series.rate_bps(name, mark.start_s, mark.end_s) / bps
            for name, bps in ceilings.items()
            for mark in recording.marks
        ),
    )


def _freed_bps(policy: Policy, way: Direction, gone: Level) -> int:
    """What the two others may have together when they want all they can get."""
    bands = policy.bands[way]
    needs = PerLevel(*(0 if level is gone else bands[level].ceiling_bps for level in Level))
    return sum(shares_bps(total_bps=policy.totals_bps[way], bands=bands, needs=needs))


def _ms(seconds: float | None) -> float:
    return math.inf if seconds is None else round(1000 * seconds, 3)
