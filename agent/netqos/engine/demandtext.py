"""A demand as people write it: `greedy`, `tcp flows=8 rtt=10ms`, `udp 300M from=1s until=3s`. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from netqos.engine.fluidflows import Demand, Kind
from netqos.errors import Rejected
from netqos.model.quantities import parse_bandwidth
from netqos.model.texts import listed, shown
from netqos.settings.durations import parse_duration

FORMS = "greedy, tcp flows=8 rtt=10ms, tcp 50M, udp 300M from=1s until=3s, greedy every=1s on=200ms"
MOST_FLOWS = 10_000
LONGEST_S = 600.0
SHORTEST_S = 0.001


def parse_demand(value: object) -> Demand:
    """A kind, a rate in bits per second where the kind has one, and options; `Rejected` says what is wrong."""
    words = value.split() if isinstance(value, str) else []
    kinds = [kind.value for kind in Kind]
    if not words or words[0].lower() not in kinds:
        raise Rejected(f"{shown(value)} is no demand; allowed: {listed(kinds)}", hint=f"write {FORMS}")
    kind = Kind(words[0].lower())
    rates = [word for word in words[1:] if "=" not in word]
    options = _options([word for word in words[1:] if "=" in word])
    return _checked(Demand(kind=kind, rate_bps=_rate(kind, rates), **options))


def _rate(kind: Kind, words: list[str]) -> int | None:
    if len(words) > 1:
        raise Rejected(f"{shown(words[1])} is too much; allowed: one rate", hint=f"write {FORMS}")
    if not words:
        if kind is Kind.UDP:
            raise Rejected("udp has no rate; allowed: a quantity in bits/s behind it", hint="write udp 300M")
        return None
    if kind is Kind.GREEDY:
        hint = f"write tcp {words[0]} for a source with a steady rate"
        raise Rejected(f"greedy has no rate, but {shown(words[0])} is given", hint=hint)
    return parse_bandwidth(words[0])


def _options(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in _OPTIONS:
            close = difflib.get_close_matches(name, _OPTIONS, n=1)
            guess = f" (did you mean {close[0]}?)" if close else ""
            raise Rejected(
                f"unknown option {shown(name)}{guess}; allowed: {listed(sorted(_OPTIONS))}",
                hint=f"write {FORMS}",
            )
        field, parse = _OPTIONS[name]
        if field in found:
            raise Rejected(f"{name} is given twice", hint="give it once")
        found[field] = parse(name, text)
    return found


def _time(name: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except Rejected as problem:
        raise Rejected(f"{name}: {problem.message}", hint=problem.hint) from None
    least_s = 0.0 if name == "from" else SHORTEST_S
    if not least_s <= seconds <= LONGEST_S:
        raise Rejected(
            f"{name}={text}; allowed: {'0s' if not least_s else '1ms'} to 10m", hint="give a time such as 2s"
        )
    return seconds


def _flows(name: str, text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0
    if not 1 <= number <= MOST_FLOWS:
        raise Rejected(f"{name}={text}; allowed: 1 to {MOST_FLOWS}", hint="give a number of connections")
    return number


_OPTIONS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "flows": ("flows", _flows),
    "rtt": ("rtt_s", _time),
    "from": ("start_s", _time),
    "until": ("end_s", _time),
    "every": ("every_s", _time),
    "on": ("on_s", _time),
}


def _checked(demand: Demand) -> Demand:
    if demand.end_s is not None and demand.end_s <= demand.start_s:
        raise Rejected("until is not after from", hint="give a later until")
    if (demand.every_s is None) != (demand.on_s == 0.0):
        raise Rejected("every and on belong together", hint="write every=1s on=200ms")
    if demand.every_s is not None and demand.on_s > demand.every_s:
        raise Rejected("on is longer than every", hint="write every=1s on=200ms")
    if demand.kind is not Kind.TCP and (demand.flows != 1 or demand.rtt_s != Demand().rtt_s):
        raise Rejected("flows and rtt are of tcp alone", hint="leave them out, or write tcp")
    return demand
