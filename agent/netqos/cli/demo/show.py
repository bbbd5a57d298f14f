"""The demo on a terminal: a panel that moves while traffic runs, plain lines elsewhere, and the closing table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TextIO

from netqos.cli.demo.scenario import GREEDY, Phase, Promise, Scenario, Side, short_bps
from netqos.cli.demo.verdict import PhaseResult, SideResult, Verdict
from netqos.model.levels import Direction, Level

_BAR_WIDTH = 44
_LINE_EVERY_S = 1.0
_COLORS = {Level.L0: "34", Level.L1: "32", Level.L2: "33"}
_UP_AND_CLEAR = "\x1b[{}F\x1b[J"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What the panel shows: where in the scenario, and by direction the levels' rates of the last half second."""

    phase: Phase
    number: int
    elapsed_s: float
    promises: Mapping[Direction, Mapping[Level, Promise]]
    rates_bps: Mapping[Direction, Mapping[Level, float]]


def megabits(bps: float) -> str:
    """A rate in Mbit/s for a table; small ones with more digits."""
    digits = 0 if bps >= 1e9 else 1 if bps >= 1e7 else 2
    return f"{bps / 1e6:.{digits}f}"


def bar(bps: float, promise_bps: float, total_bps: int, *, fancy: bool) -> str:
    """A rate as a bar as long as the total, the promise marked in it."""
    full, empty, mark = ("█", "·", "│") if fancy else ("#", ".", "|")
    filled = round(min(1.0, bps / total_bps) * _BAR_WIDTH)
    cells = [full] * filled + [empty] * (_BAR_WIDTH - filled)
    place = round(min(1.0, promise_bps / total_bps) * _BAR_WIDTH)
    return "".join([*cells[:place], mark, *cells[place:]])


def panel(scenario: Scenario, moment: Moment, *, fancy: bool) -> list[str]:
    """The lines of the moving panel, always equally many."""
    number = f"{moment.number}/{len(scenario.phases)}"
    lines = [f"{moment.elapsed_s:5.1f} of {scenario.seconds:.0f} s   {number} {moment.phase.title}"]
    for way, side in scenario.sides.items():
        for level in Level:
            rate, promise = moment.rates_bps[way][level], moment.promises[way].get(level)
            drawn = bar(rate, promise.share_bps if promise else 0, side.total_bps, fancy=fancy)
            told = f"of {megabits(promise.share_bps)}" if promise else "idle"
            name = f"{level.name} {GREEDY[level].name}"
            lines.append(f"  {way.pod_word:7} {name:9} {drawn} {megabits(rate):>7} Mbit/s  {told}")
    return lines


def plain_line(moment: Moment) -> str:
    """One line that says the same as the panel."""
    told = []
    for way, rates in moment.rates_bps.items():
        found = "  ".join(f"{level.name} {megabits(rates[level]):>6}" for level in Level)
        told.append(f"{way.pod_word} {found}")
    return f"{moment.elapsed_s:5.1f} s  {' | '.join(told)} Mbit/s  {moment.phase.title}"


def opening(scenario: Scenario) -> str:
    """What the node promises, a line for each direction."""
    lines = [f"{way.pod_word:7}  {_promised(side)}" for way, side in scenario.sides.items()]
    return "\n".join(["One node, its traffic shaped by netqosd. Guaranteed:", *lines])


def _promised(side: Side) -> str:
    levels = ", ".join(
        f"{level.name} {short_bps(band.guarantee_bps)} (up to {short_bps(band.ceiling_bps)})"
        for level, band in zip(Level, side.bands, strict=True)
    )
    return f"{levels} of {short_bps(side.total_bps)}bit/s"


class Screen:
    """Writes the panel or the lines as time goes on."""

    def __init__(self, out: TextIO, scenario: Scenario, *, colors: bool) -> None:
        """The panel moves on a terminal only; letters it cannot show are replaced by ASCII."""
        self._out = out
        self._scenario = scenario
        self._moves = out.isatty()
        self._colors = colors and self._moves
        self._fancy = (out.encoding or "").lower().replace("-", "") == "utf8"
        self._drawn = 0
        self._next_line_s = 0.0

    def say(self, text: str) -> None:
        """A line that stays, above the panel."""
        self._clear()
        print(text, file=self._out, flush=True)

    def update(self, moment: Moment) -> None:
        """Show a newer moment."""
        if self._moves:
            lines = panel(self._scenario, moment, fancy=self._fancy)
            self._clear()
            print("\n".join(self._painted(lines)), file=self._out, flush=True)
            self._drawn = len(lines)
        elif moment.elapsed_s >= self._next_line_s:
            print(plain_line(moment), file=self._out, flush=True)
            self._next_line_s = moment.elapsed_s // _LINE_EVERY_S * _LINE_EVERY_S + _LINE_EVERY_S

    def close(self) -> None:
        """Take the panel away."""
        self._clear()

    def _clear(self) -> None:
        if self._drawn:
            self._out.write(_UP_AND_CLEAR.format(self._drawn))
            self._drawn = 0

    def _painted(self, lines: Sequence[str]) -> list[str]:
        if not self._colors:
            return list(lines)
        painted = [
            f"\x1b[{_COLORS[level]}m{line}\x1b[0m"
            for level, line in zip(cycle(Level), lines[1:], strict=False)
        ]
        return [f"\x1b[1m{lines[0]}\x1b[0m", *painted]


_COLUMNS = (
    *("phase", "direction", "level", "guaranteed", "share", "measured", "worst 1 s"),
    *("settled", "L0 request p50 / p99", "kept"),
)
_NUMBERS = slice(3, 7)
UNSTEADY = "unsteady"


def table(verdict: Verdict) -> str:
    """Promised and measured, level by level and phase by phase, rates in Mbit/s; the share has what others leave."""
    rows = [_COLUMNS, *(row for phase in verdict.phases for row in _rows(phase))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = [_line(row, widths) for row in rows]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:], "", *_notes(verdict), _closing(verdict)])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    numbers = range(len(_COLUMNS))[_NUMBERS]
    cells = [
        text.rjust(width) if column in numbers else text.ljust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _rows(phase: PhaseResult) -> list[tuple[str, ...]]:
    delays = phase.delays
    request = f"{delays.percentile_s(50) * 1000:.2f} / {delays.percentile_s(99) * 1000:.2f} ms"
    first = (phase.span.phase.title, request)
    rows = []
    for way, side in phase.sides.items():
        rows += _side_rows(side, way, first)
        first = ("", "")
    return rows


def _side_rows(side: SideResult, way: Direction, first: tuple[str, str]) -> list[tuple[str, ...]]:
    settled = UNSTEADY if side.settled_after_s is None else f"{side.settled_after_s:.1f} s"
    title, request, word = *first, way.pod_word
    rows = []
    for level, result in side.levels.items():
        promise, measured = result.promise, result.measured
        numbers = (promise.guarantee_bps, promise.share_bps, measured.mean_bps, measured.worst_bps)
        kept = f"no: {result.broken}" if result.broken else "yes"
        rows.append((title, word, level.name, *map(megabits, numbers), settled, request, kept))
        title = word = settled = request = ""
    return rows


def _notes(verdict: Verdict) -> list[str]:
    """What the word in the column `settled` means, where it is there: it is told, and nothing was promised about it."""
    sides = [side for phase in verdict.phases for side in phase.sides.values()]
    if all(side.settled_after_s is not None for side in sides):
        return []
    return [
        f"{UNSTEADY}: to the phase's end a rate left its share by over 10% for a moment. How fast TCP takes what it is",
        "offered is no promise of the node; a machine with much else to do shows it.",
    ]


def _closing(verdict: Verdict) -> str:
    broken = [
        f"{level.name} {way.pod_word} in {phase.span.phase.title!r}"
        for phase in verdict.phases
        for way, level in phase.broken
    ]
    if broken:
        return f"Not every promise was kept: {', '.join(broken)}."
    return "Every promise was kept: guarantees and ceilings in every second, shares on average."
