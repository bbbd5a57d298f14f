"""netqosctl top: levels and why they get what they get, the last decisions, and the busiest pods, again and again.

On a terminal the picture is redrawn in place; elsewhere each one is written below the other. Between two pictures the
stream of ticks is followed, so that no decision is lost. Rates of pods are the difference of two readings of the
kernel's counters, so the first picture has none.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from io import StringIO

from netqos.cli.client import Json, Unreachable
from netqos.cli.commands.common import DONE, Call, known_shape
from netqos.cli.commands.pods import full_name
from netqos.cli.commands.status import WORDS, headline, room
from netqos.cli.decisions import short, show_decision
from netqos.cli.render import Column, Screen, Span, can_show
from netqos.cli.ticks import Ticks
from netqos.cli.units import rate, size

BAR = 24
MOST_NEWS = 3
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
TOGETHER, SHOWN = "\x1b[?2026h", "\x1b[?2026l"  # a terminal that knows these shows nothing half drawn
HIDE_CURSOR, SHOW_CURSOR, CLEAR = "\x1b[?25l", "\x1b[?25h", "\x1b[2J"

LEVELS = (
    Column(head="level"),
    Column(head="rate", right=True),
    Column(head="share, | guarantee"),
    Column(head="guarantee", right=True),
    Column(head="ceiling now", right=True),
)
PODS = (
    Column(head="pod", flexible=True),
    Column(head="level"),
    Column(head="egress", right=True),
    Column(head="limit", right=True),
    Column(head="ingress", right=True),
    Column(head="limit", right=True),
    Column(head="dropped", right=True),
    Column(head="waiting", right=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The node at one moment; `at_s` is this process' monotonic time.

    `ticks` are the newest of each device, `news` the last decisions that changed something, the newest last.
    """

    at_s: float
    status: Json
    pods: tuple[Json, ...]
    ticks: tuple[Json, ...] = ()
    news: tuple[Json, ...] = ()
    note: str = ""


def run(call: Call) -> int:
    """Show pictures until interrupted, or as many as --count says."""
    is_live, out = _is_live(call), call.screen.out
    if is_live:
        out.write(HIDE_CURSOR + CLEAR)
    try:
        with closing(Ticks(call.client)) as ticks:
            _watch(call, ticks, is_live=is_live)
    except KeyboardInterrupt:
        pass
    finally:
        if is_live:
            out.write(SHOW_CURSOR)
    return DONE


def _is_live(call: Call) -> bool:
    """Whether a picture can be drawn over the last one."""
    return not call.wants_json and call.screen.out.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _watch(call: Call, ticks: Ticks, *, is_live: bool) -> None:
    """A daemon that was there once is waited for when it goes away."""
    before: Reading | None = None
    news: list[Json] = []
    shown, is_waiting = 0, False
    while True:
        ticks.open()
        call.screen.refit()
        try:
            now = read(call, ticks)
        except Unreachable as problem:
            if before is None:
                raise
            _say_away(call.screen, problem, is_live=is_live, is_told=is_waiting)
            is_waiting = True
        else:
            with known_shape():
                _show(call, before, now, news, is_live=is_live)
            before, shown, is_waiting = now, shown + 1, False
        if shown == call.arguments.count:
            return
        news = ticks.follow(time.monotonic() + call.arguments.interval)


def _say_away(screen: Screen, problem: Unreachable, *, is_live: bool, is_told: bool) -> None:
    text = f"{problem.message}; trying again"
    if is_live:
        _draw(screen, f"{text}\n")
    elif not is_told:
        screen.say(text)


def read(call: Call, ticks: Ticks) -> Reading:
    """Ask for the status and all pods with their counters."""
    status = call.client.get("/v1/status")
    pods = call.client.get("/v1/pods", counters="true")
    with known_shape():
        return Reading(
            at_s=time.monotonic(),
            status=status,
            pods=tuple(pods["pods"]),
            ticks=tuple({**_by_device(status["loop"]["units"]), **ticks.newest}.values()),
            news=tuple(ticks.news),
            note=_note(ticks),
        )


def _by_device(units: list[Json]) -> dict[tuple[str, str], Json]:
    return {(one["direction"], one["device"]): one for one in units}


def _note(ticks: Ticks) -> str:
    if ticks.problem:
        return f"decisions between two pictures are not seen: {ticks.problem}"
    return f"{ticks.missed} ticks were missed: this reader is too slow" if ticks.missed else ""


def _show(call: Call, before: Reading | None, now: Reading, news: list[Json], *, is_live: bool) -> None:
    if call.wants_json:
        rates = {pod["uid"]: pod_rates(before, pod, now.at_s) for pod in now.pods}
        call.screen.json_line("top", {"status": now.status, "pods": rates, "decisions": news})
    elif is_live:
        text = StringIO()
        picture(call.screen.through(text), before, now, most_pods=call.arguments.pods)
        _draw(call.screen, text.getvalue())
    else:
        picture(call.screen, before, now, most_pods=call.arguments.pods)
        call.screen.line()
    call.screen.out.flush()


def _draw(screen: Screen, text: str) -> None:
    """Draw over the last picture, no more lines than the terminal has, in one write."""
    lines = text.splitlines()[: max(5, shutil.get_terminal_size((100, 24)).lines - 1)]
    drawn = "".join(f"{line}{CLEAR_LINE}\n" for line in lines)
    screen.out.write(f"{TOGETHER}{HOME}{drawn}{CLEAR_BELOW}{SHOWN}")
    screen.out.flush()


def picture(screen: Screen, before: Reading | None, now: Reading, *, most_pods: int) -> None:
    """One picture."""
    screen.prose(*headline(now.status), hang=2)
    for way, direction in now.status["directions"].items():
        screen.line()
        contention = [Span("  contention", "warn")] if direction["contention"] else []
        screen.line(
            Span(WORDS[way], "head"), f"  total {rate(direction['total_bps'])}", *room(direction), *contention
        )
        if direction["not_enforced"]:
            screen.prose("  ", Span("not enforced", "warn"), f": {direction['not_enforced']}", hang=4)
        else:
            total = direction["total_bps"] or 0
            rows = [_level(screen, name, one, total) for name, one in direction["levels"].items()]
            screen.table(LEVELS, rows, indent=2)
            _show_why(screen, [one for one in now.ticks if one["direction"] == way])
    _show_news(screen, now)
    _show_pods(screen, before, now, most_pods)


def _show_why(screen: Screen, ticks: list[Json]) -> None:
    """Why each level of a direction gets what it gets, at the newest tick of each of its devices."""
    for one in ticks:
        name: list[Span | str] = [Span(one["device"], "head"), "  "] if len(ticks) > 1 else []
        screen.prose("  ", *name, Span(one["reason_text"], "dim"), hang=2)


def _show_news(screen: Screen, now: Reading) -> None:
    if now.news or now.note:
        screen.line()
        screen.line(Span("last decisions", "head"))
    for made in now.news[-MOST_NEWS:]:
        show_decision(screen, made)
    if now.note:
        screen.prose(Span(now.note, "warn"), hang=2)


def _level(screen: Screen, name: str, level: Json, total_bps: int) -> list[Span | str]:
    style = "warn" if level["backlogged"] else ""
    return [
        name,
        Span(rate(level["rate_bps"]), style),
        bar(level["rate_bps"], level["guarantee_bps"], total_bps, shows_blocks=can_show(screen.shows, "█·")),
        rate(level["guarantee_bps"]),
        rate(level["current_ceiling_bps"]),
    ]


def bar(rate_bps: float, guarantee_bps: float, total_bps: float, *, shows_blocks: bool) -> str:
    """The rate as a part of the total, with a mark where the guarantee is."""
    full, empty = ("█", "·") if shows_blocks else ("#", ".")
    if total_bps <= 0:
        return empty * BAR
    filled = min(BAR, round(BAR * rate_bps / total_bps))
    cells = [full] * filled + [empty] * (BAR - filled)
    mark = min(BAR - 1, round(BAR * guarantee_bps / total_bps))
    cells[mark] = "|"
    return "".join(cells)


def _show_pods(screen: Screen, before: Reading | None, now: Reading, most: int) -> None:
    rated = [(pod, pod_rates(before, pod, now.at_s)) for pod in now.pods]
    rated.sort(key=lambda one: (-(one[1]["tx"] or 0) - (one[1]["rx"] or 0), full_name(one[0])))
    screen.line()
    screen.table(PODS, [_pod(pod, rates) for pod, rates in rated[:most]])
    if len(rated) > most:
        screen.line(Span(f"and {len(rated) - most} more", "dim"))


def pod_rates(before: Reading | None, pod: Json, at_s: float) -> dict[str, float | None]:
    """Bits per second of a pod by direction since the reading before; None where that cannot be told."""
    rates: dict[str, float | None] = {"tx": None, "rx": None}
    if before is None or at_s <= before.at_s:
        return rates
    earlier = next((one for one in before.pods if one["uid"] == pod["uid"]), None)
    for way in rates:
        then, sent = _sent(earlier, way), _sent(pod, way)
        if then is not None and sent is not None and sent >= then:
            rates[way] = (sent - then) * 8 / (at_s - before.at_s)
    return rates


def _sent(pod: Json | None, way: str) -> int | None:
    found = [one["sent_bytes"] for one in (pod or {}).get("counters") or () if one["direction"] == way]
    return sum(found) if found else None


def _pod(pod: Json, rates: dict[str, float | None]) -> list[Span | str]:
    counters = pod["counters"] or []
    drops, waiting = (sum(one[name] for one in counters) for name in ("drops", "backlog_bytes"))
    return [
        full_name(pod),
        pod["level"],
        short(rates["tx"]),
        short(pod["limits"]["egress"]["bps"] or None),
        short(rates["rx"]),
        short(pod["limits"]["ingress"]["bps"] or None),
        Span(str(drops), "warn" if drops else ""),
        size(waiting),
    ]
