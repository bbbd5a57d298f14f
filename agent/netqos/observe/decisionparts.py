"""From the loop's decisions and their reasons to the wire, each sentence with its figures. Pure."""

from __future__ import annotations

from netqos.engine import whywords
from netqos.engine.why import Cause, ContentionWhy, LevelWhy, Reasoned, RoomWhy, Term, Why
from netqos.model.levels import Level
from netqos.observe import wire
from netqos.observe.moment import Moment
from netqos.observe.wireparts import by_level, level_name, way


def decision(reasoned: Reasoned, moment: Moment, *, missed: int = 0) -> wire.DecisionWire:
    """One tick of one unit."""
    made = reasoned.decision
    return wire.DecisionWire(
        device=made.unit.device,
        direction=way(made.unit.direction),
        at_s=round(made.at_s, 6),
        unix_s=round(moment.unix_s(made.at_s), 6),
        elapsed_s=round(made.elapsed_s, 6),
        contention=made.contention,
        room_bps=made.room_bps,
        rates_bps=by_level(made.rates_bps),
        ceilings_bps=by_level(made.ceilings_bps),
        backlogged=by_level(made.backlogged),
        reason=reason_code(reasoned.why),
        reason_text=whywords.whole(reasoned.why),
        why=_why(reasoned.why),
        changed=made.changed,
        missed=missed,
    )


def reason_code(found: Why) -> str:
    """The stable name of what set L0's ceiling."""
    if found.contention.cause is Cause.BELOW:
        return "no-contention"
    match found.levels.l0.term:
        case Term.OWN_CEILING | Term.ROOM:
            return "own-ceiling"
        case Term.GUARANTEE | Term.FLOOR:
            return "own-guarantee"
        case Term.LEFT:
            return "needs-of-others"


def _why(found: Why) -> wire.WhyWire:
    return wire.WhyWire(
        contention=_contention(found.contention),
        room=_room(found.room) if found.room is not None else None,
        levels={level_name(level): _ceiling(level, found.levels[level]) for level in Level},
    )


def _contention(found: ContentionWhy) -> wire.ContentionWire:
    onset = found.onset
    return wire.ContentionWire(
        cause=found.cause.value,
        used_bps=found.used_bps,
        total_bps=found.total_bps,
        threshold=found.threshold,
        waiting=[level_name(level) for level in found.waiting],
        hold_s=found.hold_s,
        calm_s=None if found.calm_s is None else round(found.calm_s, 6),
        since_s=None if found.since_s is None else round(found.since_s, 6),
        onset_bps=None if onset is None else onset.used_bps,
        onset_waiting=None if onset is None else onset.waited,
        text=whywords.of_contention(found),
    )


def _room(found: RoomWhy) -> wire.RoomWire:
    return wire.RoomWire(
        of=found.share.value,
        bps=found.bps,
        total_bps=found.total_bps,
        beside_bps=found.beside_bps,
        text=whywords.of_room(found),
    )


def _ceiling(level: Level, found: LevelWhy) -> wire.CeilingWire:
    return wire.CeilingWire(
        term=found.term.value,
        ceiling_bps=found.ceiling_bps,
        wanted_bps=found.wanted_bps,
        kept_bps=by_level(found.kept_bps),
        text=whywords.of_level(level, found),
    )
