"""What a replay has come to, as tables for people and as one object for programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from netqos.cli.commands.status import WORDS
from netqos.cli.decisions import clock, short
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import count, span
from netqos.engine.replay import Difference, Replayed, Tally, Unequal
from netqos.engine.why import Ground, why
from netqos.engine.whywords import whole
from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import Decision, Unit

Json = dict[str, Any]

REACTS = (
    "The traffic is the recorded one. Under the other policy senders would have met other ceilings and sent otherwise, "
    "so this tells what would have been decided of these samples, not what would have been sent."
)
OWN = (
    Column(head="level"),
    Column(head="mean ceiling", right=True),
    Column(head="lowest", right=True),
    Column(head="changes", right=True),
)
BOTH = (
    Column(head="level"),
    Column(head="mean ceiling", right=True),
    Column(head="other", right=True),
    Column(head="lowest", right=True),
    Column(head="other", right=True),
    Column(head="changes", right=True),
    Column(head="other", right=True),
)


def show(screen: Screen, found: Replayed, *, compares: bool, most: int) -> None:
    """For people; `compares` with another policy, of whose differences the first `most` are shown."""
    screen.prose(*_source(found), hang=2)
    screen.prose(*_verdict(found), hang=2)
    for one in found.unequal[:most]:
        _show_unequal(screen, one)
    for unit, tally in found.recorded.items():
        screen.line()
        _show_unit(screen, unit, tally, found.other.get(unit) if compares else None)
    if compares and found.decisions:
        screen.line()
        _show_differences(screen, found, most)
        screen.line()
        screen.prose(Span(REACTS, "dim"))


def _source(found: Replayed) -> Iterator[Span | str]:
    head = found.heads[0]
    began = datetime.fromtimestamp(head.unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    yield from (Span(head.node, "head"), f"  recorded with netqos {head.netqos} from {began} UTC on, ")
    yield f"{count(found.rounds, 'round')}, {count(found.decisions, 'decision')}"
    if found.gaps:
        yield Span(f", {count(len(found.gaps), 'gap')}", "warn")


def _verdict(found: Replayed) -> Iterator[Span | str]:
    if found.unequal_count:
        told = f"{count(found.unequal_count, 'decision')} came out otherwise than recorded"
        yield from (Span(told, "bad"), ": the recording was changed, or this netqos decides otherwise")
    elif found.decisions:
        yield from (Span("every decision is the recorded one again", "good"), "")
    else:
        yield Span("nothing was decided in this time, so nothing is run again", "warn")


def _show_unequal(screen: Screen, one: Unequal) -> None:
    recorded, again = (_ceilings(made) for made in (one.recorded, one.again))
    screen.prose(f"  line {one.line}: recorded {recorded}, now {again}", hang=4)


def _ceilings(made: Decision | None) -> str:
    if made is None:
        return "nothing"
    told = ", ".join(f"{level.name} {short(made.ceilings_bps[level])}" for level in Level)
    return f"{told} ({'in' if made.contention else 'no'} contention)"


def _show_unit(screen: Screen, unit: Unit, tally: Tally, other: Tally | None) -> None:
    told = f"  {span(tally.seconds)}, {span(tally.contention_s)} of it in contention"
    told += f", {count(tally.writes, 'change')}"
    if other is not None:
        told += f"; other: {span(other.contention_s)} in contention, {count(other.writes, 'change')}"
    screen.prose(Span(f"{WORDS[unit.direction.value]} {unit.device}", "head"), told, hang=2)
    rows = [[level.name, *_cells(level, tally, other)] for level in Level]
    screen.table(OWN if other is None else BOTH, rows, indent=2)


def _cells(level: Level, tally: Tally, other: Tally | None) -> Iterator[Span | str]:
    place = level.value
    both = [tally] if other is None else [tally, other]
    for figures in (
        [short(one.mean_bps(level)) for one in both],
        [short(one.lowest_bps[place]) for one in both],
        [str(one.changes[place]) for one in both],
    ):
        yield figures[0]
        yield from (Span(one, "warn" if one != figures[0] else "") for one in figures[1:])


def _show_differences(screen: Screen, found: Replayed, most: int) -> None:
    if not found.differing:
        screen.line("the other policy would have decided the same at every tick")
        return
    screen.prose(f"{count(found.differing, 'tick')} would have been decided otherwise, first these:", hang=2)
    for one in found.differences[:most]:
        made = one.one.decision
        when = clock(one.unix_s)
        unit = f"{WORDS[made.unit.direction.value]} {made.unit.device}"
        screen.prose(f"  {when}  ", Span(unit, "head"), f"  (line {one.line})", hang=4)
        screen.prose(f"    recorded  {_told(one.one)}", hang=14)
        screen.prose(f"    other     {_told(one.other)}", hang=14)


def _told(ground: Ground) -> str:
    return f"{_ceilings(ground.decision)}; {whole(why(ground))}"


def as_json(found: Replayed, *, compares: bool) -> Json:
    """For programs."""
    head = found.heads[0]
    return {
        "node": head.node,
        "netqos": head.netqos,
        "unix_s": head.unix_s,
        "rounds": found.rounds,
        "decisions": found.decisions,
        "gaps": [{"why": one.why, "rounds": one.rounds} for one in found.gaps],
        "equal": not found.unequal_count,
        "unequal_decisions": found.unequal_count,
        "unequal": [_unequal_json(one) for one in found.unequal],
        "units": [
            _unit_json(unit, tally, found.other.get(unit) if compares else None)
            for unit, tally in found.recorded.items()
        ],
        "differing_ticks": found.differing if compares else None,
        "differences": [_difference_json(one) for one in found.differences],
        "note": REACTS if compares else "",
    }


def _unequal_json(one: Unequal) -> Json:
    return {"line": one.line, "recorded": _decision_json(one.recorded), "again": _decision_json(one.again)}


def _unit_json(unit: Unit, tally: Tally, other: Tally | None) -> Json:
    return {
        "device": unit.device,
        "direction": unit.direction.value,
        "recorded": _tally_json(tally),
        "other": _tally_json(other) if other is not None else None,
    }


def _tally_json(tally: Tally) -> Json:
    return {
        "decisions": tally.decisions,
        "seconds": round(tally.seconds, 6),
        "contention_s": round(tally.contention_s, 6),
        "changes": tally.writes,
        "levels": {
            level.name: {
                "mean_ceiling_bps": tally.mean_bps(level),
                "lowest_ceiling_bps": tally.lowest_bps[level.value],
                "changes": tally.changes[level.value],
            }
            for level in Level
        },
    }


def _difference_json(one: Difference) -> Json:
    made = one.one.decision
    return {
        "line": one.line,
        "unix_s": round(one.unix_s, 6),
        "device": made.unit.device,
        "direction": made.unit.direction.value,
        "recorded": _ground_json(one.one),
        "other": _ground_json(one.other),
    }


def _ground_json(ground: Ground) -> Json:
    return {**(_decision_json(ground.decision) or {}), "reason_text": whole(why(ground))}


def _decision_json(made: Decision | None) -> Json | None:
    if made is None:
        return None
    return {
        "contention": made.contention,
        "rates_bps": _by_level(made.rates_bps),
        "ceilings_bps": _by_level(made.ceilings_bps),
        "room_bps": made.room_bps,
    }


def _by_level(values: PerLevel[int]) -> dict[str, int]:
    return {level.name: values[level] for level in Level}
