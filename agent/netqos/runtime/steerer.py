"""What one tick of the fast loop does: who is due, a glance, a sample, the decisions, what is written.

It has no clock and no thread: the moment of each tick is handed in, and all waiting is `netqos.runtime.fastloop`'s.
Whatever its path raises comes through; the state is then that of the tick before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from netqos.backend import FastPath
from netqos.engine import pace
from netqos.engine.rounds import Steering, Taken, decide
from netqos.engine.unitstate import LoopPolicy, UnitState, in_force, initial_state
from netqos.engine.why import Ground, grounds
from netqos.model.traffic import Unit
from netqos.runtime.turns import Turns
from netqos.settings.values import LoopSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """What the loop holds: a path, and the policy of each unit that it steers."""

    path: FastPath
    policies: Mapping[Unit, LoopPolicy]


class Steerer:
    """Steers the units of one backend. What is known of a unit outlives the grip on it."""

    def __init__(self) -> None:
        """Nothing to steer."""
        self.on_sample: Callable[[Taken], None] | None = None
        self.grip: Grip | None = None
        self.newest: dict[Unit, Ground] = {}
        self.writes = 0
        self._steering = Steering(states={})
        self._turns = Turns()

    @property
    def next_s(self) -> float:
        """When the next tick is due; infinity while there is nothing to steer."""
        return self._turns.next_s

    def hold(self, grip: Grip, now_s: float) -> None:
        """Steer with this; every unit is due now."""
        states = {unit: self._state_on(grip.path, unit, policy) for unit, policy in grip.policies.items()}
        self._steering = Steering(states=states, sharing=self._steering.sharing)
        self._turns.begin(grip.policies, now_s)
        self.grip = grip

    def release(self) -> None:
        """Let go of the path."""
        if self.grip is not None:
            self.grip.path.close()
        self.grip = None
        self._turns.begin({}, 0.0)
        self.newest.clear()

    def tick(self, now_s: float, settings: LoopSettings) -> tuple[Ground, ...] | None:
        """Look at the units whose turn has come; None where there are none, else what was decided and from what."""
        due_s, due, grip = self._turns.next_s, self._turns.due(now_s), self.grip
        if grip is None or not due:
            return None
        quiet = self._quiet(grip, due)
        sampled = [unit for unit in due if unit not in quiet or self._turns.is_sample_due(unit, now_s)]
        decided = self._steer(grip, sampled) if sampled else ()
        self._turns.sampled(sampled, now_s + pace.rest_s(settings))
        woken = self._turns.rest(due, quiet)
        for unit in due:
            wanted_s = pace.interval_s(self._steering.states[unit], settings, woke=unit in woken)
            self._turns.put_off(unit, due_s, now_s, max(grip.path.pace_s(unit), wanted_s))
        return decided

    def _state_on(self, path: FastPath, unit: Unit, policy: LoopPolicy) -> UnitState:
        """What is remembered of a unit, with what is in force now."""
        room_bps = path.current_room(unit)
        known = self._steering.states.get(unit) or initial_state(
            total_bps=policy.total_bps, room_bps=room_bps
        )
        return in_force(known, path.current_ceilings(unit), room_bps)

    def _quiet(self, grip: Grip, due: Sequence[Unit]) -> set[Unit]:
        """Those of which a glance is enough, and at all that share a total with them; in contention nobody is asked."""
        states, quiet = self._steering.states, set()
        for now in grip.path.glance([unit for unit in due if not states[unit].contention]):
            unit, before = now.unit, self._turns.glanced(now)
            if pace.is_quiet(before, now, states[unit], grip.policies[unit]):
                quiet.add(unit)
        return self._turns.altogether(quiet)

    def _steer(self, grip: Grip, units: Sequence[Unit]) -> tuple[Ground, ...]:
        before, samples = self._steering, grip.path.sample(units)
        self._steering, decisions = after, _ = decide(before, samples, grip.policies)
        decided = grounds(decisions, grip.policies, after.states)
        self.newest |= {one.decision.unit: one for one in decided}
        for decision in decisions:
            if decision.changed:
                self.writes += grip.path.adjust(
                    decision.unit,
                    decision.ceilings_bps,
                    room_bps=decision.room_bps,
                    guarantees_bps=decision.guarantees_bps,
                )
        tell = self.on_sample
        if tell is not None:
            policies = grip.policies
            tell(Taken(before=before, after=after, samples=samples, policies=policies, decisions=decisions))
        return decided
