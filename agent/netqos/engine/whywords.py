"""The reasons of a decision as sentences with their figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from netqos.engine.why import Cause, ContentionWhy, LevelWhy, RoomWhy, Share, Term, Why
from netqos.model.levels import Level

FREE = (Term.OWN_CEILING, Term.ROOM)
GIVEN = {
    Term.OWN_CEILING: ", its own ceiling",
    Term.ROOM: ", all of the room",
    Term.GUARANTEE: ", its guarantee",
    Term.FLOOR: ", the least that the node itself needs",
    Term.LEFT: "",
}
_SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def whole(why: Why) -> str:
    """All that counts at this moment: contention, the room, and every level that the law holds below its ceiling."""
    held = [level for level in Level if why.levels[level].term not in FREE]
    told = [level for level in Level if level in held or (level is Level.L0 and is_contention(why))]
    rooms = [of_room(why.room)] if why.room is not None and why.room.bps < why.room.total_bps else []
    return "; ".join(
        [of_contention(why.contention), *rooms, *(of_level(level, why.levels[level]) for level in told)]
    )


def is_contention(why: Why) -> bool:
    """Whether the unit is in contention."""
    return why.contention.cause is not Cause.BELOW


def of_contention(why: ContentionWhy) -> str:
    """`contention: 970M of 1G are used, 97% (from 95% on)`."""
    used = f"{amount(why.used_bps)} of {amount(why.total_bps)} used, {_percent(why.used_bps / why.total_bps)}"
    match why.cause:
        case Cause.BELOW:
            waits = " as packets wait" if why.waiting else ""
            return f"no contention: {used}, it begins at {_percent(why.threshold)}{waits}"
        case Cause.SUM:
            return f"contention{_since(why)}: {used}, from {_percent(why.threshold)} on"
        case Cause.WAITING:
            return (
                f"contention{_since(why)}: {used}, from {_percent(why.threshold)} on as {_waits(why.waiting)}"
            )
        case Cause.BETWEEN:
            return f"contention{_since(why)}: {used}, it ends under {_percent(why.threshold)}"
        case Cause.CALM:
            calm = f"for {_seconds(why.calm_s or 0.0)} of {_seconds(why.hold_s)}"
            return f"contention{_since(why)}: {used}, under {_percent(why.threshold)} {calm}"
        case _:
            assert_never(why.cause)


def of_onset(why: ContentionWhy) -> str:
    """What began the contention that lasts, empty where there is none."""
    if why.onset is None:
        return ""
    used = f"{amount(why.onset.used_bps)} of {amount(why.onset.total_bps)}"
    waited = " while packets waited" if why.onset.waited else ""
    return f"it began with {used}{waited}"


def of_room(why: RoomWhy) -> str:
    """What the unit may pass of the total, and who has the rest."""
    passes = f"room {amount(why.bps)} of {amount(why.total_bps)}"
    if why.share is Share.OF_UPLINKS:
        return f"{passes}: its part by what its traffic needs, the other uplinks have the rest"
    if why.bps > why.total_bps - why.beside_bps:
        least = "but L1 and L2 keep their guarantees and L0 its least"
        return f"{passes}: the node itself receives {amount(why.beside_bps)}, {least}"
    if why.beside_bps:
        return f"{passes}: the node itself receives {amount(why.beside_bps)}"
    return f"{passes}: the node itself receives next to nothing"


def of_level(level: Level, why: LevelWhy) -> str:
    """`L0 may use 800M: L1 uses nothing and L2 keeps its guarantee of 200M`; and why it is more than the law gives."""
    may, given = f"{level.name} may use {amount(why.ceiling_bps)}", GIVEN[why.term]
    kept = "" if why.term in FREE else _kept(level, why)
    if why.wanted_bps < why.ceiling_bps:
        told = f" ({kept})" if kept else ""
        return f"{may}: the law gives {amount(why.wanted_bps)}{given}{told}, but {_stays(why)}"
    return f"{may}{given}: {kept}" if kept else f"{may}{given}"


def _stays(why: LevelWhy) -> str:
    hold = _seconds(why.hold_s)
    if why.needed_s == 0:
        return f"it is raised by whole steps and stays for {hold}"
    if why.needed_s is not None and why.needed_s < why.hold_s:
        return f"this was needed {_seconds(why.needed_s)} ago and stays for {hold}"
    return f"so little less has to stand for {hold}, {_seconds(why.held_s)} so far"


def amount(bps: float) -> str:
    """Bits per second in four digits: `201.5M`, `1G`, `0`."""
    for scale, suffix in _SCALES:
        if bps >= scale * 0.99995:
            return f"{bps / scale:.4g}{suffix}"
    return f"{bps:.0f}"


def _kept(level: Level, why: LevelWhy) -> str:
    others = [one for one in Level if one is not level]
    return " and ".join(_keeps(one, why.kept_bps[one], why.guarantees_bps[one]) for one in others)


def _keeps(level: Level, kept_bps: int, guarantee_bps: int) -> str:
    if kept_bps and kept_bps == guarantee_bps:
        return f"{level.name} keeps its guarantee of {amount(kept_bps)}"
    if kept_bps:
        return f"{level.name} is left {amount(kept_bps)}"
    return f"{level.name} {'uses nothing' if guarantee_bps else 'has no guarantee'}"


def _since(why: ContentionWhy) -> str:
    return "" if not why.since_s else f" for {_seconds(why.since_s)}"


def _waits(levels: Iterable[Level]) -> str:
    return f"packets of {' and '.join(level.name for level in levels)} wait"


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}".rstrip("0").rstrip(".") + "s" if seconds < 10 else f"{seconds:.0f}s"
