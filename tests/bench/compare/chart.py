"""The comparison's picture: for each enforcer and direction one small panel with the levels over time. Pure SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from netqos.model.levels import Direction, Level
from tests.bench.compare.results import Contestant, Picture, Result
from tests.bench.compare.script import NODE, source_name

WIDTH = 1180
_LEFT, _TOP, _BOTTOM = 150, 74, 34
_PANEL, _ROW, _GAP = 490, 104, 20
_HEADROOM = 1.35
_COLORS = {Level.L0: "#0072b2", Level.L1: "#009e73", Level.L2: "#d55e00"}  # Okabe and Ito, as in the demo
_NODE_COLOR = "#7b8794"
_STYLE = """<style>
text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2933 }
.title { font-size: 17px; font-weight: 600 }
.name { font-weight: 600; font-size: 13px }
.small { font-size: 10.5px; fill: #5f6c7b }
.promise { fill: none; stroke: #1f2933; stroke-width: 1; stroke-dasharray: 4 4; opacity: .55 }
.total { stroke: #9aa5b1; stroke-width: 1 }
.mark { stroke: #cbd2d9; stroke-width: 1 }
.rate { fill: none; stroke-width: 1.8; stroke-linejoin: round }
</style>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """The place of one enforcer's direction, from seconds and bits per second to points."""

    left: float
    top: float
    seconds: float
    most_bps: float

    def x(self, at_s: float) -> float:
        return round(self.left + _PANEL * min(1.0, at_s / self.seconds), 1)

    def y(self, bps: float) -> float:
        return round(self.top + _ROW * (1 - min(1.0, bps / self.most_bps)), 1)


def draw(result: Result) -> str:
    """The whole picture; enforcers without a recorded run are left out."""
    shown = [(one, one.picture) for one in result.contestants if one.picture is not None]
    height = _TOP + len(shown) * (_ROW + _GAP) + _BOTTOM
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>The same traffic under each enforcer</title>",
        _STYLE,
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        *_head(result),
    ]
    for row, (one, picture) in enumerate(shown):
        parts += _row(result.policy, one, picture, top=_TOP + row * (_ROW + _GAP))
    note = "seconds; rates at the receiver, every 100 ms; dashed: each level's guarantee; grey: the total"
    parts += [_text(_LEFT, height - 12, note, kind="small"), "</svg>"]
    return "\n".join(parts) + "\n"


def _head(result: Result) -> Iterator[str]:
    yield _text(24, 30, "One greedy flow a level: the same traffic under each enforcer", kind="title")
    for place, level in enumerate(Level):
        x = 640 + 60 * place
        yield f'<rect x="{x}" y="22" width="18" height="4" rx="2" fill="{_COLORS[level]}"/>'
        yield _text(x + 23, 29, level.name)
    yield f'<rect x="820" y="22" width="18" height="4" rx="2" fill="{_NODE_COLOR}"/>'
    yield _text(843, 29, "the node itself")
    for way in Direction:
        total = result.policy[way.value]["total_bps"] / 1e6
        yield _text(_panel_left(way), _TOP - 14, f"{way.pod_word}, total {total:g} Mbit/s", kind="name")


def _row(policy: Mapping[str, Any], one: Contestant, picture: Picture, *, top: float) -> Iterator[str]:
    yield _text(24, top + 20, one.name, kind="name")
    for way in Direction:
        side = policy[way.value]
        names = [source_name(way, level) for level in Level]
        seconds = max(len(picture.rates_bps[name]) for name in names) * picture.bin_s
        panel = _Panel(
            left=_panel_left(way), top=top, seconds=seconds, most_bps=side["total_bps"] * _HEADROOM
        )
        yield from _frame(panel, picture, side)
        for level in reversed(Level):
            yield _line(panel, picture, source_name(way, level), _COLORS[level])
        if way is Direction.RX:
            yield _line(panel, picture, NODE, _NODE_COLOR)


def _panel_left(way: Direction) -> float:
    return _LEFT + list(Direction).index(way) * (_PANEL + 40)


def _frame(panel: _Panel, picture: Picture, side: Mapping[str, Any]) -> Iterator[str]:
    right, bottom = panel.left + _PANEL, panel.top + _ROW
    yield f'<rect x="{panel.left}" y="{panel.top}" width="{_PANEL}" height="{_ROW}" fill="#f7f9fb"/>'
    for at_s, word in picture.marks:
        yield f'<path class="mark" d="M{panel.x(at_s)} {panel.top}V{bottom}"/>'
        yield _text(panel.x(at_s) + 3, panel.top + 10, word, kind="small")
    yield f'<path class="total" d="M{panel.left} {panel.y(side["total_bps"])}H{right}"/>'
    for level in side["levels"].values():
        yield f'<path class="promise" d="M{panel.left} {panel.y(level["guarantee_bps"])}H{right}"/>'
    for second in range(0, int(panel.seconds) + 1, 2):
        yield _text(panel.x(second), bottom + 12, str(second), kind="small", anchor="middle")


def _line(panel: _Panel, picture: Picture, name: str, color: str) -> str:
    points = " ".join(
        f"{panel.x((place + 0.5) * picture.bin_s)},{panel.y(rate)}"
        for place, rate in enumerate(picture.rates_bps[name])
    )
    return f'<polyline class="rate" points="{points}" stroke="{color}"/>'


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    chosen = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}"{chosen}{placed}>{escape(text)}</text>'
