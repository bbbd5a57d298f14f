"""Decisions of the loop and steps of totals as lines for people: when and where, from what to what, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from netqos.cli.commands.status import WORDS
from netqos.cli.render import Screen, Span

Json = dict[str, Any]
INDENT = 4

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def show_decision(screen: Screen, made: Json) -> None:
    """One decision: a line with its figures, and its reasons below."""
    screen.prose(*head(made), hang=INDENT)
    screen.prose(" " * INDENT, Span(made["reason_text"], "dim"), hang=INDENT)


def show_step(screen: Screen, made: Json) -> None:
    """A step of the watch of a path: the total in force before and after it, and its reason below."""
    before, after = short(made["before_bps"]), short(made["after_bps"])
    moved = f"total {after} stays" if before == after else f"total {before} -> {after}"
    screen.prose(f"{clock(made['unix_s'])}  ", Span(unit(made), "head"), f"  {moved}", hang=INDENT)
    screen.prose(" " * INDENT, Span(made["reason_text"], "dim"), hang=INDENT)


def head(made: Json) -> list[Span | str]:
    """`22:13:19.900  egress up0  L0 612M of 600M waits, L1 ...`."""
    spans: list[Span | str] = [f"{clock(made['unix_s'])}  ", Span(unit(made), "head"), "  "]
    for place, name in enumerate(made["ceilings_bps"]):
        waits = made["backlogged"][name]
        spans += [
            ", " if place else "",
            f"{name} ",
            Span(short(made["rates_bps"][name]), "warn" if waits else ""),
            f" of {short(made['ceilings_bps'][name])}{' waits' if waits else ''}",
        ]
    return spans


def unit(made: Json) -> str:
    """`egress up0`."""
    return f"{WORDS[made['direction']]} {made['device']}"


def clock(unix_s: float) -> str:
    """The time of the day in UTC, with milliseconds."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%H:%M:%S.%f")[:-3]


def short(bps: float | None) -> str:
    """Bits per second in four digits, as quantities are written: `201.5M`."""
    if bps is None:
        return "-"
    for scale, suffix in _SCALES:
        if bps >= scale * 0.99995:
            return f"{bps / scale:.4g}{suffix}"
    return f"{bps:.0f}"
