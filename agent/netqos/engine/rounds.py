"""One round of the fast loop over the units that were sampled together. Pure.

What a round gives depends on nothing but `Steering`, samples and policies: who keeps the `Taken` of each round can run
it again, with these policies or others, and gets the same decisions bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netqos.engine import sharing
from netqos.engine.sharing import Sharing
from netqos.engine.steer import step
from netqos.engine.unitstate import LoopPolicy, UnitState
from netqos.model.traffic import Decision, Unit, UnitSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """What the next round must know: the state of each unit, and the parts of those that share a total."""

    states: Mapping[Unit, UnitState]
    sharing: Sharing = sharing.NOTHING_SHARED


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One round as it was taken: `decide(before, samples, policies)` gave `after` and `decisions`."""

    before: Steering
    after: Steering
    samples: tuple[UnitSample, ...]
    policies: Mapping[Unit, LoopPolicy]
    decisions: tuple[Decision, ...]


def decide(
    steering: Steering, samples: tuple[UnitSample, ...], policies: Mapping[Unit, LoopPolicy]
) -> tuple[Steering, tuple[Decision, ...]]:
    """The decisions of one round, in an order in which they may be put in force.

    A sample of a unit without a policy or a state is passed over. Of the parts of one total those that shrink come
    first, so that they never add up to more than it.
    """
    shared, narrowed = sharing.narrow(steering.sharing, samples, policies)
    states = dict(steering.states)
    decisions = []
    for sample in samples:
        policy, state = narrowed.get(sample.unit), states.get(sample.unit)
        if policy is None or state is None:
            continue
        states[sample.unit], decision = step(state, sample, policy)
        if decision is not None:
            decisions.append(decision)
    return Steering(states=states, sharing=shared), _shrinking_first(decisions, steering.states)


def _shrinking_first(decisions: Iterable[Decision], before: Mapping[Unit, UnitState]) -> tuple[Decision, ...]:
    def growth_bps(decision: Decision) -> int:
        return (decision.room_bps or 0) - (before[decision.unit].room_bps or 0)

    return tuple(sorted(decisions, key=growth_bps))
