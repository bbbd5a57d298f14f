"""Why a decision is what it is: which term of the law bound, for every level and for contention, as data. Pure.

Worked out from what the step left behind, when somebody asks or the decision is news: a tick costs nothing for it.
`netqos.engine.whywords` says it in words. Bits per second and seconds.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from netqos.engine.allocate import l0_floor_bps, needs_bps, shares_bps
from netqos.engine.unitstate import LoopPolicy, Onset, UnitState
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import Decision, Unit


class Cause(enum.Enum):
    """What says that a unit is in contention, or is not."""

    BELOW = "below"
    SUM = "sum"
    WAITING = "waiting"
    BETWEEN = "between"
    CALM = "calm"


class Term(enum.Enum):
    """Which term of the law set a level's ceiling."""

    OWN_CEILING = "own-ceiling"
    ROOM = "room"
    GUARANTEE = "guarantee"
    FLOOR = "floor"
    LEFT = "left"


class Share(enum.Enum):
    """Why a unit may pass less than the whole total, if it may."""

    OF_UPLINKS = "uplinks"
    BESIDE_NODE = "node"


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A decision, and what it was made from: the policy that the loop was given and the state after the step."""

    decision: Decision
    policy: LoopPolicy
    state: UnitState


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionWhy:
    """`used_bps` of `total_bps`, and the threshold that counts next (a fraction): of beginning, or of the end.

    `since_s` and `calm_s` are for how long contention lasts, and the load is under the lower threshold of it.
    """

    cause: Cause
    used_bps: int
    total_bps: int
    threshold: float
    waiting: tuple[Level, ...]
    hold_s: float
    since_s: float | None = None
    calm_s: float | None = None
    onset: Onset | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomWhy:
    """What a unit may pass of a total that is not its own alone; `beside_bps` is kept free for what comes beside it."""

    share: Share
    bps: int
    total_bps: int
    beside_bps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelWhy:
    """A level's ceiling: `wanted_bps` is what the law gives, and differs while a little less has not stood for long.

    `kept_bps` is what is kept free of the total for each of the others; `held_s` is for how long the law has given the
    same, `needed_s` how long ago it gave what L0's ceiling was raised to; what is taken away has to stand for `hold_s`.
    """

    term: Term
    ceiling_bps: int
    wanted_bps: int
    kept_bps: PerLevel[int]
    guarantees_bps: PerLevel[int]
    hold_s: float
    held_s: float = 0.0
    needed_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Everything about one decision. `room` is None for a unit whose total is never moved."""

    contention: ContentionWhy
    room: RoomWhy | None
    levels: PerLevel[LevelWhy]


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A decision and its reasons."""

    decision: Decision
    why: Why


def grounds(
    decisions: tuple[Decision, ...], policies: Mapping[Unit, LoopPolicy], states: Mapping[Unit, UnitState]
) -> tuple[Ground, ...]:
    """Each decision of a round with its policy and the state after it."""
    return tuple(Ground(one, policies[one.unit], states[one.unit]) for one in decisions)


def why(ground: Ground) -> Why:
    """The reasons of one decision."""
    assert ground.state.policy is not None
    return Why(
        contention=_contention(ground, ground.state.policy),
        room=_room(ground),
        levels=_levels(ground, ground.state.policy),
    )


def _contention(ground: Ground, policy: LoopPolicy) -> ContentionWhy:
    made, state = ground.decision, ground.state
    calm_s = None if state.calm_since_s is None else made.at_s - state.calm_since_s
    cause, threshold = _cause(ground, policy)
    return ContentionWhy(
        cause=cause,
        used_bps=sum(made.rates_bps),
        total_bps=policy.total_bps,
        threshold=threshold,
        waiting=tuple(level for level in Level if made.backlogged[level]),
        hold_s=policy.hold_s,
        since_s=None if state.onset is None else made.at_s - state.onset.at_s,
        calm_s=calm_s,
        onset=state.onset,
    )


def _cause(ground: Ground, policy: LoopPolicy) -> tuple[Cause, float]:
    made = ground.decision
    load = sum(made.rates_bps) / policy.total_bps
    if not made.contention:
        return Cause.BELOW, policy.enter_backlogged if any(made.backlogged) else policy.enter
    if load >= policy.enter:
        return Cause.SUM, policy.enter
    if any(made.backlogged) and load > policy.enter_backlogged:
        return Cause.WAITING, policy.enter_backlogged
    return (Cause.BETWEEN if load >= policy.leave else Cause.CALM), policy.leave


def _room(ground: Ground) -> RoomWhy | None:
    made, given = ground.decision, ground.policy
    if made.room_bps is None:
        return None
    if given.is_shared:
        return RoomWhy(share=Share.OF_UPLINKS, bps=made.room_bps, total_bps=given.total_bps)
    beside_bps = ground.state.room.kept_bps
    return RoomWhy(
        share=Share.BESIDE_NODE, bps=made.room_bps, total_bps=given.total_bps, beside_bps=beside_bps
    )


def _levels(ground: Ground, policy: LoopPolicy) -> PerLevel[LevelWhy]:
    made, state, bands = ground.decision, ground.state, policy.bands
    kept = _kept(ground, policy) if made.contention else PerLevel(*[PerLevel(0, 0, 0)] * 3)
    wanted = state.wanted_bps or made.ceilings_bps
    guarantees = bands.map(lambda band: band.guarantee_bps)

    def level_why(level: Level) -> LevelWhy:
        left_bps = policy.total_bps - sum(kept[level])
        is_moved = made.contention and (level is Level.L0 or not policy.lends)
        term = _term(level, left_bps, bands[level]) if is_moved else Term.OWN_CEILING
        is_raised = policy.lends and level is Level.L0
        is_cut = bands[level].ceiling_bps < ground.policy.bands[level].ceiling_bps
        return LevelWhy(
            term=Term.ROOM if term is Term.OWN_CEILING and is_cut else term,
            ceiling_bps=made.ceilings_bps[level],
            wanted_bps=wanted[level],
            kept_bps=kept[level],
            guarantees_bps=guarantees,
            hold_s=policy.hold_s,
            held_s=made.at_s - state.wanted_since_s,
            needed_s=made.at_s - state.raised_s if is_raised and state.raised_s is not None else None,
        )

    return PerLevel(*(level_why(level) for level in Level))


def _kept(ground: Ground, policy: LoopPolicy) -> PerLevel[PerLevel[int]]:
    """For each level, what contract 3 keeps free of the total for the others before it."""
    made, bands = ground.decision, policy.bands
    needs = needs_bps(
        bands=bands, rates_bps=made.rates_bps, backlogged=made.backlogged, headroom=policy.headroom
    )
    for_l0 = needs
    if policy.lends:
        for_l0 = PerLevel(*(min(tick[level] for tick in ground.state.needs) for level in Level))
    given = shares_bps(total_bps=policy.total_bps, bands=bands, needs=needs)
    return PerLevel(
        PerLevel(0, min(for_l0.l1, bands.l1.guarantee_bps), min(for_l0.l2, bands.l2.guarantee_bps)),
        PerLevel(given.l0, 0, min(needs.l2, bands.l2.guarantee_bps)),
        PerLevel(given.l0, given.l1, 0),
    )


def _term(level: Level, left_bps: int, band: Band) -> Term:
    least_bps = l0_floor_bps(band) if level is Level.L0 else band.guarantee_bps
    if left_bps >= band.ceiling_bps:
        return Term.OWN_CEILING
    if left_bps > least_bps:
        return Term.LEFT
    return Term.GUARANTEE if least_bps == band.guarantee_bps else Term.FLOOR
