"""onsets: how soon everybody has his share after somebody began or stopped, for many kinds of beginnings.

Two nodes stand side by side, one with netqosd and one with the same tree by hand; each beginning is made on one and
then on the other, so that whatever else the machine does hits both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from netqos.engine.allocate import shares_bps
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.analysis import Series, median, percentile, settled_after_s
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.traffic import Flow, Traffic
from tests.bench.beginnings import Scenario, Step, scenarios
from tests.bench.contention import PODS, sources
from tests.bench.figures import Figure, Target, at_most
from tests.bench.loads import BURST_EVERY_S, BURST_S, Asked, bursts
from tests.bench.moments import STEP_S, arrived_s, departed_s, held_after_s, longest_gap_s
from tests.bench.options import Options, say
from tests.bench.shapers import SHAPERS, Case, M

TOTAL_BPS = 600 * M
_NETQOS, _BY_HAND = "netqosd", "static HTB"
_ALONE_S, _WINDOW_S, _METER_S, _PAUSE_S = 0.7, 1.2, 0.02, 0.3
_STALL_S, _REPEATS = 0.15, 2
"""Seven readings that did not come; and how often such a scenario is run again."""

BURSTS = 3
_FREED = 0.9
_POD = {level: name for name, level in PODS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """Seconds until all that send stay within 10 percent of their shares; inf: not before the next step.

    `freed_s`: of a stop, until the others together stay above 90 percent of what they may have.
    """

    kind: str
    after_s: float
    freed_s: float | None = None


def onsets(options: Options) -> list[Figure]:
    """All scenarios in both directions, netqos and the tree by hand in turns."""
    found: dict[str, list[Onset]] = {_NETQOS: [], _BY_HAND: []}
    for direction in Direction:
        case = Case(total_bps=TOTAL_BPS, pods=PODS, direction=direction)
        with ExitStack() as stack:
            rigs = {shaper: stack.enter_context(Rig(pods=tuple(PODS))) for shaper in found}
            for shaper, rig in rigs.items():
                stack.enter_context(SHAPERS[shaper](rig, case))
            for scenario in scenarios():
                say(f"onsets: {direction.pod_word}, {scenario.kind}")
                for shaper, rig in rigs.items():
                    found[shaper] += measure(rig, case, scenario)
    return figures(found[_NETQOS], found[_BY_HAND])


def figures(ours: Sequence[Onset], by_hand: Sequence[Onset]) -> list[Figure]:
    """The claims over all of them, then each kind's median. Pure."""
    here, there = _after_ms(ours), _after_ms(by_hand)
    freed, freed_there = _freed_ms(ours), _freed_ms(by_hand)
    rows = [
        _figure("all kinds: median", here, there, target=at_most(150)),
        _figure("all kinds: p95", _p95(here), _p95(there), target=at_most(400)),
        _figure("freed bandwidth used: median", freed, freed_there),
        _figure("freed bandwidth used: p95", _p95(freed), _p95(freed_there), target=at_most(200)),
    ]
    kinds = dict.fromkeys(one.kind for one in ours)
    return [*rows, *(_figure(kind, _after_ms(ours, kind), _after_ms(by_hand, kind)) for kind in kinds)]


def _figure(
    what: str, ours: Sequence[float], by_hand: Sequence[float], *, target: Target | None = None
) -> Figure:
    never, never_there = (sum(map(math.isinf, values)) for values in (ours, by_hand))
    note = f"{len(ours)} onsets, never in band {never}, {_BY_HAND} {never_there}" if len(ours) > 1 else ""
    return Figure(
        bench="onsets",
        what=what,
        unit="ms",
        runs=tuple(ours),
        target=target,
        baseline=tuple(by_hand),
        baseline_name=_BY_HAND,
        note=note,
    )


def _after_ms(found: Sequence[Onset], kind: str | None = None) -> list[float]:
    return [1000 * one.after_s for one in found if kind in {None, one.kind}]


def _freed_ms(found: Sequence[Onset]) -> list[float]:
    return [1000 * one.freed_s for one in found if one.freed_s is not None]


def _p95(values: Sequence[float]) -> list[float]:
    return [percentile(values, 95)]


def measure(rig: Rig, case: Case, scenario: Scenario) -> list[Onset]:
    """One scenario on one node; the onsets that count, in their order. Once more where the machine stood still."""
    found, gap_s = _measured(rig, case, scenario)
    for _ in range(_REPEATS):
        if gap_s > _STALL_S:
            say(f"onsets: the machine stood still for {gap_s:.2f} s; once more")
            found, gap_s = _measured(rig, case, scenario)
    return found


def _measured(rig: Rig, case: Case, scenario: Scenario) -> tuple[list[Onset], float]:
    traffic = Traffic(rig)
    flows = {
        step.level: step.load(_asked(rig, traffic, case, step.level)) for step in scenario.steps if step.load
    }
    running: set[Level] = set()
    found: list[Onset] = []
    with Meter(rig.wire, sources(rig, case.direction), interval_s=_METER_S) as meter:
        for step in scenario.steps:
            start_s = time.monotonic()
            _take(step, flows[step.level], running)
            time.sleep(_length_s(step))
            if step.counts:
                seen = Seen(
                    series=meter.series(), case=case, step=step, running=frozenset(running), start_s=start_s
                )
                found.append(judge(seen, scenario.kind))
        gap_s = longest_gap_s(meter.stop())
    for flow in flows.values():
        flow.stop()
    traffic.stop()
    time.sleep(_PAUSE_S)
    return found, gap_s


def _asked(rig: Rig, traffic: Traffic, case: Case, level: Level) -> Asked:
    return Asked(
        rig=rig,
        traffic=traffic,
        pod=_POD[level],
        direction=case.direction,
        share_bps=case.bands[level].guarantee_bps,
        total_bps=case.total_bps,
    )


def _take(step: Step, flow: Flow, running: set[Level]) -> None:
    if step.load is None:
        flow.stop()
        running.discard(step.level)
    else:
        flow.start()
        running.add(step.level)


def _length_s(step: Step) -> float:
    if not step.counts:
        return _ALONE_S
    return _WINDOW_S + 0.2 + (BURSTS - 1) * BURST_EVERY_S * (step.load is bursts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the meter has of one step."""

    series: Series
    case: Case
    step: Step
    running: frozenset[Level]
    start_s: float

    @property
    def shares_bps(self) -> Mapping[str, float]:
        """What each that sends may have, by pod."""
        bands = self.case.bands
        needs = PerLevel(*(bands[level].ceiling_bps if level in self.running else 0 for level in Level))
        shares = shares_bps(total_bps=self.case.total_bps, bands=bands, needs=needs)
        return {_POD[level]: float(shares[level]) for level in self.running}


def judge(seen: Seen, kind: str) -> Onset:
    name, end_s = _POD[seen.step.level], seen.series.at_s[-1]
    if seen.step.load is None:
        gone_s = departed_s(seen.series, name, seen.start_s, end_s)
        freed_s = held_after_s(
            seen.series,
            tuple(seen.shares_bps),
            least_bps=_FREED * sum(seen.shares_bps.values()),
            start_s=gone_s,
            end_s=gone_s + _WINDOW_S,
        )
        return Onset(kind=kind, after_s=_settled(seen, gone_s, _WINDOW_S), freed_s=_or_never(freed_s))
    if seen.step.load is bursts:
        starts = [seen.start_s + number * BURST_EVERY_S for number in range(BURSTS)]
        after = [
            _settled(seen, arrived_s(seen.series, name, one, one + BURST_EVERY_S), BURST_S) for one in starts
        ]
        return Onset(kind=kind, after_s=median(after))
    came_s = arrived_s(seen.series, name, seen.start_s, end_s)
    return Onset(kind=kind, after_s=_settled(seen, came_s, _WINDOW_S))


def _settled(seen: Seen, start_s: float, for_s: float) -> float:
    end_s = start_s + for_s
    return _or_never(
        settled_after_s(seen.series, seen.shares_bps, start_s=start_s, end_s=end_s, step_s=STEP_S)
    )


def _or_never(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds
