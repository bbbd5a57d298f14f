"""The demo's picture: the levels of each direction over time, the phases behind them, promises as dashed lines. Pure.

It is SVG written by hand, light and without fonts or scripts of its own, so that it shows the same in a README, a
browser and a viewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from netqos.cli.demo.scenario import GREEDY, series_name
from netqos.cli.demo.show import UNSTEADY, megabits
from netqos.cli.demo.verdict import Recording, SideResult, Verdict
from netqos.model.levels import Direction, Level

WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 92, 56
_PLOT, _GAP = 270, 40
_BIN_S = 0.1
_HEADROOM = 1.2
_IN_OR_OUT = {Direction.TX: "out", Direction.RX: "in"}
_COLORS = {
    Level.L0: "#0072b2",
    Level.L1: "#009e73",
    Level.L2: "#d55e00",
}  # told apart by every eye (Okabe and Ito)
_INK, _GREY, _GRID = "#1f2933", "#5f6c7b", "#e3e8ee"
_BANDS = ("#f7f9fb", "#eef2f6")

_STYLE = f"""<style>
text {{ font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: {_INK} }}
.title {{ font-size: 18px; font-weight: 600 }}
.small {{ font-size: 11.5px; fill: {_GREY} }}
.phase {{ font-size: 12px; font-weight: 600; fill: {_GREY} }}
.promise {{ fill: none; stroke: {_INK}; stroke-width: 1.3; stroke-dasharray: 5 4; opacity: .8 }}
.number {{ font-weight: 600; text-anchor: middle }}
.halo {{ stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round }}
.rate {{ fill: none; stroke-width: 2.2; stroke-linejoin: round }}
</style>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One direction's place in the picture: from seconds and bits per second to points; `top` is its upper edge."""

    direction: Direction
    total_bps: int
    top: float
    start_s: float
    end_s: float

    @property
    def bottom(self) -> float:
        return self.top + _PLOT

    def x(self, at_s: float) -> float:
        share = (at_s - self.start_s) / (self.end_s - self.start_s)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, bps: float) -> float:
        share = min(1.0, max(0.0, bps / (self.total_bps * _HEADROOM)))
        return round(self.bottom - share * _PLOT, 1)


def height(directions: int) -> int:
    """How high the picture of so many directions is."""
    return _TOP + directions * (_PLOT + _GAP) - _GAP + _BOTTOM


def draw(verdict: Verdict, recording: Recording) -> str:
    """The whole picture, the directions below each other. The recording has at least one phase."""
    panels = [
        _Panel(
            direction=way,
            total_bps=side.total_bps,
            top=_TOP + number * (_PLOT + _GAP),
            start_s=recording.spans[0].start_s,
            end_s=recording.spans[-1].end_s,
        )
        for number, (way, side) in enumerate(verdict.scenario.sides.items())
    ]
    whole = height(len(panels))
    size = f'width="{WIDTH}" height="{whole}" viewBox="0 0 {WIDTH} {whole}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(_title(verdict))}</title>",
        _STYLE,
        f'<rect width="{WIDTH}" height="{whole}" rx="8" fill="#ffffff"/>',
        _text(_LEFT, 30, _title(verdict), kind="title"),
        *_legend(),
        *_phases(verdict, panels),
        *(part for panel in panels for part in _panel(verdict, recording, panel)),
        *_seconds(panels[-1]),
        _text(_LEFT, whole - 14, _request_note(recording), kind="small"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _panel(verdict: Verdict, recording: Recording, panel: _Panel) -> Iterable[str]:
    yield from _axis(panel)
    yield from _rates(recording, panel)
    yield from _promises(verdict, panel)
    yield from _numbers(verdict, panel)


def _title(verdict: Verdict) -> str:
    totals = " and ".join(
        f"{megabits(side.total_bps).removesuffix('.0')} {_IN_OR_OUT[way]}"
        for way, side in verdict.scenario.sides.items()
    )
    return f"Three greedy workloads, one of each level: {totals}, Mbit/s"


def _legend() -> list[str]:
    parts = []
    place = _LEFT
    for level in Level:
        parts.append(f'<rect x="{place}" y="46" width="22" height="4" rx="2" fill="{_COLORS[level]}"/>')
        parts.append(_text(place + 28, 52, f"{level.name}  {GREEDY[level].name}"))
        place += 110
    parts.append(f'<path class="promise" d="M{place} 48h26"/>')
    parts.append(_text(place + 32, 52, "share under the policy"))
    return parts


def _phases(verdict: Verdict, panels: Sequence[_Panel]) -> Iterable[str]:
    """A stripe through all panels for each phase, its name on top, and in each panel when it settled."""
    top, bottom = panels[0].top - 26, panels[-1].bottom
    for number, phase in enumerate(verdict.phases):
        left, right = panels[0].x(phase.span.start_s), panels[0].x(phase.span.end_s)
        yield (
            f'<rect x="{left}" y="{top}" width="{right - left:.1f}" height="{bottom - top}" '
            f'fill="{_BANDS[number % 2]}"/>'
        )
        middle = (left + right) / 2
        yield _text(middle, top + 14, phase.span.phase.title, kind="phase", anchor="middle")
        for panel in panels:
            note = _settled_note(phase.sides[panel.direction])
            yield _text(middle, panel.top + 12, note, kind="small", anchor="middle")


def _settled_note(side: SideResult) -> str:
    if side.settled_after_s is None:
        return UNSTEADY
    return f"settled in {side.settled_after_s:.1f} s" if side.settled_after_s else "settled at once"


def _request_note(recording: Recording) -> str:
    p50, p99 = (recording.delays.percentile_s(percent) * 1000 for percent in (50, 99))
    return f"A 64-byte request of another L0 workload meanwhile: p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def _axis(panel: _Panel) -> Iterable[str]:
    for fifth in range(6):
        bps = panel.total_bps * fifth / 5
        y = panel.y(bps)
        yield f'<path d="M{_LEFT} {y}H{WIDTH - _RIGHT}" stroke="{_GRID}" stroke-width="1"/>'
        yield _text(_LEFT - 8, y + 4, f"{bps / 1e6:g}", kind="small", anchor="end")
    yield _text(_LEFT - 8, panel.top + 8, panel.direction.pod_word, kind="phase", anchor="end")


def _seconds(panel: _Panel) -> Iterable[str]:
    seconds = panel.end_s - panel.start_s
    step = next((step for step in (1, 2, 5, 10, 20, 60) if seconds / step <= 16), 300)
    for second in range(0, int(seconds) + 1, step):
        place = panel.x(panel.start_s + second)
        yield _text(place, panel.bottom + 18, str(second), kind="small", anchor="middle")
    note = "seconds; rates at the receiver, Ethernet bytes, every 100 ms"
    yield _text(WIDTH - _RIGHT, panel.bottom + _BOTTOM - 14, note, kind="small", anchor="end")


def _promises(verdict: Verdict, panel: _Panel) -> Iterable[str]:
    """One dashed line a level and phase."""
    for phase in verdict.phases:
        left, right = panel.x(phase.span.start_s), panel.x(phase.span.end_s)
        for result in phase.sides[panel.direction].levels.values():
            y = panel.y(result.promise.share_bps)
            yield f'<path class="promise" d="M{left} {y}H{right}"/>'


def _rates(recording: Recording, panel: _Panel) -> Iterable[str]:
    for level in reversed(Level):
        name = series_name(panel.direction, level)
        rates = recording.series.bins(name, panel.start_s, panel.end_s, width_s=_BIN_S)
        points = [
            (panel.x(panel.start_s + (number + 0.5) * _BIN_S), panel.y(rate))
            for number, rate in enumerate(rates)
        ]
        if points:
            line = " ".join(f"{x},{y}" for x, y in points)
            floor = panel.y(0)
            area = f"{points[0][0]},{floor} {line} {points[-1][0]},{floor}"
            yield f'<polygon points="{area}" fill="{_COLORS[level]}" opacity=".07"/>'
            yield f'<polyline class="rate" points="{line}" stroke="{_COLORS[level]}"/>'


def _numbers(verdict: Verdict, panel: _Panel) -> Iterable[str]:
    """The measured mean above each level's lines, in the middle of its phase."""
    for phase in verdict.phases:
        middle = panel.x((phase.span.start_s + phase.span.end_s) / 2)
        side = phase.sides[panel.direction]
        for place, (level, result) in zip(_label_places(side, panel), side.levels.items(), strict=True):
            label = megabits(result.measured.mean_bps)
            where = f'x="{middle}" y="{place}"'
            yield f'<text class="number halo" {where}>{label}</text>'
            yield f'<text class="number" {where} style="fill:{_COLORS[level]}">{label}</text>'


def _label_places(side: SideResult, panel: _Panel) -> Sequence[float]:
    """Just above the lines; where two would touch, the one of the lower rate goes under its line."""
    wanted = [(panel.y(result.measured.mean_bps), place) for place, result in enumerate(side.levels.values())]
    places = [0.0] * len(wanted)
    for rank, (y, place) in enumerate(sorted(wanted)):
        above = sorted(wanted)[rank - 1][0] if rank else float("-inf")
        places[place] = round(y - 7 if y - above > 20 else y + 17, 1)
    return places


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    chosen = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}"{chosen}{placed}>{escape(text)}</text>'
