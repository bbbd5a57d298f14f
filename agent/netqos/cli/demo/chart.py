"""The demo's picture: three levels over time, the phases behind them, what was promised as dashed lines. Pure.

It is SVG written by hand, light and without fonts or scripts of its own, so that it shows the same in a README, a
browser and a viewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from netqos.cli.demo.scenario import GREEDY
from netqos.cli.demo.show import UNSTEADY, megabits
from netqos.cli.demo.verdict import PhaseResult, Recording, Verdict
from netqos.model.levels import Level

WIDTH, HEIGHT = 960, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 104, 56
_BIN_S = 0.1
_HEADROOM = 1.1
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
class _Scale:
    """From seconds and bits per second to places in the picture."""

    start_s: float
    end_s: float
    top_bps: float

    def x(self, at_s: float) -> float:
        share = (at_s - self.start_s) / (self.end_s - self.start_s)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, bps: float) -> float:
        share = min(1.0, max(0.0, bps / self.top_bps))
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def draw(verdict: Verdict, recording: Recording) -> str:
    """The whole picture. The recording has at least one phase."""
    scale = _Scale(
        start_s=recording.spans[0].start_s,
        end_s=recording.spans[-1].end_s,
        top_bps=verdict.scenario.total_bps * _HEADROOM,
    )
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(_title(verdict))}</title>",
        _STYLE,
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        _text(_LEFT, 30, _title(verdict), kind="title"),
        *_legend(),
        *_phases(verdict, scale),
        *_axes(verdict, scale),
        *_rates(recording, scale),
        *_promises(verdict, scale),
        *_numbers(verdict, scale),
        _text(_LEFT, HEIGHT - 14, _request_note(recording), kind="small"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _title(verdict: Verdict) -> str:
    total = megabits(verdict.scenario.total_bps).removesuffix(".0")
    return f"Three greedy workloads, one of each level, on an uplink of {total} Mbit/s"


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


def _phases(verdict: Verdict, scale: _Scale) -> Iterable[str]:
    height = HEIGHT - _TOP - _BOTTOM
    for number, phase in enumerate(verdict.phases):
        left, right = scale.x(phase.span.start_s), scale.x(phase.span.end_s)
        yield (
            f'<rect x="{left}" y="{_TOP - 34}" width="{right - left:.1f}" height="{height + 34}" '
            f'fill="{_BANDS[number % 2]}"/>'
        )
        middle = (left + right) / 2
        yield _text(middle, _TOP - 20, phase.span.phase.title, kind="phase", anchor="middle")
        yield _text(middle, _TOP - 6, _phase_note(phase), kind="small", anchor="middle")


def _phase_note(phase: PhaseResult) -> str:
    if phase.settled_after_s is None:
        return UNSTEADY
    return f"settled in {phase.settled_after_s:.1f} s" if phase.settled_after_s else "settled at once"


def _request_note(recording: Recording) -> str:
    p50, p99 = (recording.delays.percentile_s(percent) * 1000 for percent in (50, 99))
    return f"A 64-byte request of another L0 workload meanwhile: p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def _axes(verdict: Verdict, scale: _Scale) -> Iterable[str]:
    total = verdict.scenario.total_bps
    for fifth in range(6):
        bps = total * fifth / 5
        y = scale.y(bps)
        yield f'<path d="M{_LEFT} {y}H{WIDTH - _RIGHT}" stroke="{_GRID}" stroke-width="1"/>'
        tick = f"{bps / 1e6:g}"
        yield _text(_LEFT - 8, y + 4, tick, kind="small", anchor="end")
    yield _text(_LEFT - 8, _TOP - 6, "Mbit/s", kind="small", anchor="end")
    seconds = scale.end_s - scale.start_s
    step = next((step for step in (1, 2, 5, 10, 20, 60) if seconds / step <= 16), 300)
    for second in range(0, int(seconds) + 1, step):
        place = scale.x(scale.start_s + second)
        yield _text(place, HEIGHT - _BOTTOM + 18, str(second), kind="small", anchor="middle")
    note = "seconds; rates at the receiver, Ethernet bytes, every 100 ms"
    yield _text(WIDTH - _RIGHT, HEIGHT - 14, note, kind="small", anchor="end")


def _promises(verdict: Verdict, scale: _Scale) -> Iterable[str]:
    """One dashed line a level and phase."""
    for phase in verdict.phases:
        left, right = scale.x(phase.span.start_s), scale.x(phase.span.end_s)
        for result in phase.levels.values():
            y = scale.y(result.promise.share_bps)
            yield f'<path class="promise" d="M{left} {y}H{right}"/>'


def _rates(recording: Recording, scale: _Scale) -> Iterable[str]:
    for level in reversed(Level):
        rates = recording.series.bins(GREEDY[level].name, scale.start_s, scale.end_s, width_s=_BIN_S)
        points = [
            (scale.x(scale.start_s + (number + 0.5) * _BIN_S), scale.y(rate))
            for number, rate in enumerate(rates)
        ]
        if points:
            line = " ".join(f"{x},{y}" for x, y in points)
            floor = scale.y(0)
            area = f"{points[0][0]},{floor} {line} {points[-1][0]},{floor}"
            yield f'<polygon points="{area}" fill="{_COLORS[level]}" opacity=".07"/>'
            yield f'<polyline class="rate" points="{line}" stroke="{_COLORS[level]}"/>'


def _numbers(verdict: Verdict, scale: _Scale) -> Iterable[str]:
    """The measured mean above each level's lines, in the middle of its phase."""
    for phase in verdict.phases:
        middle = scale.x((phase.span.start_s + phase.span.end_s) / 2)
        for place, (level, result) in zip(_label_places(phase, scale), phase.levels.items(), strict=True):
            label = megabits(result.measured.mean_bps)
            where = f'x="{middle}" y="{place}"'
            yield f'<text class="number halo" {where}>{label}</text>'
            yield f'<text class="number" {where} style="fill:{_COLORS[level]}">{label}</text>'


def _label_places(phase: PhaseResult, scale: _Scale) -> Sequence[float]:
    """Just above the lines; where two would touch, the one of the lower rate goes under its line."""
    wanted = [
        (scale.y(result.measured.mean_bps), place) for place, result in enumerate(phase.levels.values())
    ]
    places = [0.0] * len(wanted)
    for rank, (y, place) in enumerate(sorted(wanted)):
        above = sorted(wanted)[rank - 1][0] if rank else float("-inf")
        places[place] = round(y - 7 if y - above > 20 else y + 17, 1)
    return places


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    chosen = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}"{chosen}{placed}>{escape(text)}</text>'
