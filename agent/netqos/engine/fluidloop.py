"""The fast loop over fluid units: the real step, in virtual time, with whatever can go wrong with a tick as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

from netqos.engine import pace
from netqos.engine.fluidunit import FluidUnit
from netqos.engine.rounds import Steering, decide
from netqos.engine.unitstate import LoopPolicy, UnitState, initial_state
from netqos.model.traffic import Decision, Unit, UnitSample
from netqos.settings.values import LoopSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """What is wrong with one tick: it comes late, its sample is lost, the clock jumps, or counters begin anew."""

    late_s: float = 0.0
    is_lost: bool = False
    jump_s: float = 0.0
    resets: bool = False


NO_MISHAP = Mishap()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick of the loop: the samples that it took, and what was decided of them."""

    at_s: float
    samples: tuple[UnitSample, ...]
    decisions: tuple[Decision, ...]


@dataclass(slots=True)
class _Reader:
    """Counters as a sampler reads them: from an arbitrary start, by a clock of its own."""

    clock_s: float = 0.0
    bases: dict[Unit, UnitSample] = field(default_factory=dict)

    def read(self, unit: FluidUnit, *, tells_levels: bool) -> UnitSample:
        sample = unit.sample(tells_levels=tells_levels)
        base = self.bases.get(unit.unit)
        counted = [
            now - (0 if base is None else then)
            for now, then in zip(
                sample.level_bytes, base.level_bytes if base else sample.level_bytes, strict=True
            )
        ]
        return replace(
            sample,
            taken_at_s=sample.taken_at_s + self.clock_s,
            level_bytes=type(sample.level_bytes)(*counted),
        )

    def reset(self, unit: FluidUnit) -> None:
        self.bases[unit.unit] = unit.sample()


class FluidLoop:
    """Steers fluid units by policies, tick by tick."""

    def __init__(
        self,
        units: Sequence[FluidUnit],
        policies: Mapping[Unit, LoopPolicy],
        loop: LoopSettings | None = None,
        *,
        states: Mapping[Unit, UnitState] | None = None,
        mishaps: Iterable[Mishap] = (),
        tells_levels: bool = False,
    ) -> None:
        """`policies` may be replaced between ticks. `states` are those to begin with, `mishaps` of the first ticks."""
        self.units = units
        self.policies = policies
        self._loop = loop or LoopSettings()
        begin = {unit.unit: (states or {}).get(unit.unit, initial_state()) for unit in units}
        self.steering = Steering(states=begin)
        self._mishaps: Iterator[Mishap] = _then_none(mishaps)
        self._tells_levels = tells_levels
        self._reader = _Reader()

    def ticks(
        self, end_s: float, *, between: Callable[[float], None] = lambda _now_s: None
    ) -> Iterator[Tick]:
        """Run up to a moment. `between` is called with the time before each tick: the world may change."""
        while self.units[0].now_s < end_s:
            mishap = next(self._mishaps)
            states = self.steering.states.values()
            interval_s = min(pace.interval_s(one, self._loop, woke=False) for one in states)
            due_s = min(self.units[0].now_s + interval_s + mishap.late_s, end_s)
            began_s = self.units[0].now_s
            for unit in self.units:
                unit.run_until(due_s)
            if self.units[0].now_s == began_s:
                return  # what is left is less than a step
            self._reader.clock_s += mishap.jump_s
            if mishap.resets:
                for unit in self.units:
                    self._reader.reset(unit)
            between(due_s)
            if not mishap.is_lost:
                yield self._tick()

    def _tick(self) -> Tick:
        samples = tuple(self._reader.read(unit, tells_levels=self._tells_levels) for unit in self.units)
        self.steering, decisions = decide(self.steering, samples, self.policies)
        by_unit = {unit.unit: unit for unit in self.units}
        for decision in decisions:
            if decision.changed:
                by_unit[decision.unit].apply(decision)
        return Tick(at_s=self.units[0].now_s, samples=samples, decisions=tuple(decisions))


def _then_none(mishaps: Iterable[Mishap]) -> Iterator[Mishap]:
    yield from mishaps
    yield from repeat(NO_MISHAP)
