"""What a scenario comes to: rates by level and workload over time, ceilings, and which term of the law bound. Pure.

The traffic is fluid, the loop is the real one. Between two changes of demand things come to rest; what a phase is said
to give is the mean of its last second (or half of it, where it is shorter). Bits per second, seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from netqos.engine import whywords
from netqos.engine.bands import resolve_bands
from netqos.engine.fluidloop import FluidLoop
from netqos.engine.fluidunit import FluidUnit, Traffic
from netqos.engine.policy import policy_in_force
from netqos.engine.scenario import Scenario, changes_s
from netqos.engine.totals import configured_total
from netqos.engine.unitstate import LoopPolicy
from netqos.engine.why import Ground, Why, why
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit

MEAN_S = 1.0
STEP_S = 0.1
ROUNDING_S = 1e-9

Told = Callable[[Direction, float], None]

UNITS = {
    Direction.TX: Unit(Direction.TX, IfName("uplink")),
    Direction.RX: Unit(Direction.RX, IfName("ingress")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The mean rates of a tenth of a second, and the ceilings at its end."""

    at_s: float
    levels_bps: PerLevel[int]
    ceilings_bps: PerLevel[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A time in which demand does not change, and what it comes to.

    `lost_bps` is what found no place in a workload's queue. `reasons` are those of the last decision, in words;
    `changes` counts the decisions that changed something.
    """

    start_s: float
    end_s: float
    levels_bps: PerLevel[int]
    workloads_bps: Mapping[str, int]
    lost_bps: Mapping[str, int]
    ceilings_bps: PerLevel[int]
    contention: bool
    reasons: tuple[str, ...]
    changes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One direction of a scenario."""

    direction: Direction
    total_bps: int
    bands: PerLevel[Band]
    traffic: Traffic
    phases: tuple[Phase, ...]
    moments: tuple[Moment, ...]


@dataclass(slots=True)
class _Course:
    """What was counted at each tick, and the grounds of its decision."""

    at_s: list[float] = field(default_factory=list)
    counts: list[Sequence[float]] = field(default_factory=list)
    grounds: list[Ground | None] = field(default_factory=list)

    def count(self, at_s: float) -> list[float]:
        """The counts at a moment, in a straight line between the ticks beside it."""
        place = min(max(bisect_right(self.at_s, at_s), 1), len(self.at_s) - 1)
        earlier, later = self.at_s[place - 1], self.at_s[place]
        share = min(max((at_s - earlier) / (later - earlier), 0.0), 1.0)
        return [
            then + share * (now - then)
            for then, now in zip(self.counts[place - 1], self.counts[place], strict=True)
        ]

    def rates_bps(self, start_s: float, end_s: float) -> list[int]:
        """The mean rates between two moments."""
        first, last = self.count(start_s), self.count(end_s)
        return [round((now - then) * 8 / (end_s - start_s)) for then, now in zip(first, last, strict=True)]

    def decided(self, start_s: float, end_s: float) -> list[Ground]:
        """The grounds of the decisions in a time."""
        low, high = bisect_right(self.at_s, start_s), bisect_right(self.at_s, end_s + ROUNDING_S)
        return [one for one in self.grounds[low:high] if one is not None]

    def last(self, end_s: float) -> Ground | None:
        """The grounds of the last decision up to a moment."""
        high = bisect_right(self.at_s, end_s + ROUNDING_S)
        found = (self.grounds[place] for place in range(high - 1, -1, -1))
        return next((one for one in found if one is not None), None)


def predict(scenario: Scenario, told: Told = lambda _direction, _at_s: None) -> tuple[Prediction, ...]:
    """Every direction that has traffic, one after the other. `told` hears again and again how far it has come."""
    return tuple(_predictions(scenario, told))


def _predictions(scenario: Scenario, told: Told) -> Iterator[Prediction]:
    for direction in Direction:
        traffic = scenario.traffic[direction]
        if traffic is not None:
            policy = policy_of(scenario, direction)
            course = _run(scenario, policy, UNITS[direction], traffic, told=told)
            yield Prediction(
                direction=direction,
                total_bps=policy.total_bps,
                bands=policy.bands,
                traffic=traffic,
                phases=tuple(_phases(scenario, traffic, course)),
                moments=tuple(_moments(scenario, course)),
            )


def policy_of(scenario: Scenario, direction: Direction) -> LoopPolicy:
    """The policy of a direction whose total is known, with a backend that lends."""
    settings, loop = scenario.settings, scenario.settings.loop
    total_bps = configured_total(settings, direction)
    assert total_bps is not None
    return LoopPolicy(
        total_bps=total_bps,
        bands=resolve_bands(policy_in_force(settings, None), direction, total_bps).levels,
        lends=True,
        headroom=0.0,
        enter=loop.enter,
        enter_backlogged=loop.enter_backlogged,
        leave=loop.leave,
        hold_s=loop.hold_s,
    )


def _run(scenario: Scenario, policy: LoopPolicy, name: Unit, traffic: Traffic, *, told: Told) -> _Course:
    unit, policies = FluidUnit(name, policy, traffic), {name: policy}
    loop = FluidLoop([unit], policies, scenario.settings.loop)
    course = _Course()
    course.at_s, course.counts, course.grounds = [0.0], [_counts(unit)], [None]
    for tick in loop.ticks(scenario.length_s):
        made = next(iter(tick.decisions), None)
        course.at_s.append(tick.at_s)
        course.counts.append(_counts(unit))
        course.grounds.append(None if made is None else Ground(made, policy, loop.steering.states[name]))
        told(name.direction, tick.at_s)
    return course


def _counts(unit: FluidUnit) -> list[float]:
    """Bytes sent by level and by workload, then bytes lost by workload."""
    return [*unit.sent, *unit.sent_by_member, *unit.lost_by_member]


def _phases(scenario: Scenario, traffic: Traffic, course: _Course) -> Iterator[Phase]:
    moments = {moment for each in traffic.demands.values() for one in each for moment in changes_s(one)}
    bounds = sorted({0.0, *(one for one in moments if one < scenario.length_s), scenario.length_s})
    for start_s, end_s in pairwise(bounds):
        yield _phase(traffic, course, start_s, end_s)


def _phase(traffic: Traffic, course: _Course, start_s: float, end_s: float) -> Phase:
    rates = course.rates_bps(max(end_s - MEAN_S, (start_s + end_s) / 2), end_s)
    names = [one.name for one in traffic.members]
    made, last = course.decided(start_s, end_s), course.last(end_s)
    return Phase(
        start_s=start_s,
        end_s=end_s,
        levels_bps=PerLevel(*rates[:3]),
        workloads_bps=dict(zip(names, rates[3:], strict=False)),
        lost_bps=dict(zip(names, rates[3 + len(names) :], strict=True)),
        ceilings_bps=PerLevel(0, 0, 0) if last is None else last.decision.ceilings_bps,
        contention=last is not None and last.decision.contention,
        reasons=() if last is None else _words(why(last)),
        changes=sum(one.decision.changed for one in made),
    )


def _words(found: Why) -> tuple[str, ...]:
    room = () if found.room is None else (whywords.of_room(found.room),)
    levels = (whywords.of_level(level, found.levels[level]) for level in Level)
    return (whywords.of_contention(found.contention), *room, *levels)


def _moments(scenario: Scenario, course: _Course) -> Iterator[Moment]:
    for number in range(int(scenario.length_s / STEP_S + 1e-9)):
        start_s, end_s = number * STEP_S, (number + 1) * STEP_S
        last = course.last(end_s)
        if last is not None:
            yield Moment(
                at_s=round(end_s, 3),
                levels_bps=PerLevel(*course.rates_bps(start_s, end_s)[:3]),
                ceilings_bps=last.decision.ceilings_bps,
            )
