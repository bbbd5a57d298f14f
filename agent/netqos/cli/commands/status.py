"""netqosctl status: the whole node at a glance."""

from __future__ import annotations

from collections.abc import Iterator

from netqos.cli.client import Json
from netqos.cli.commands.common import Call, joined, show_findings, tell
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import count, milliseconds, rate, span

WORDS = {"tx": "egress", "rx": "ingress"}
STATE_STYLE = {
    "ok": "good",
    "fresh": "good",
    "failing": "bad",
    "backing-off": "bad",
    "degraded": "warn",
    "stale": "warn",
    "waiting": "warn",
}
LEVELS = (
    Column(head="level"),
    Column(head="guarantee", right=True),
    Column(head="ceiling", right=True),
    Column(head="now", right=True),
    Column(head="rate", right=True),
    Column(head="waits"),
    Column(head="pods", right=True),
    Column(head="enforced"),
)


def run(call: Call) -> int:
    """Show the status."""
    return tell(call, "status", call.client.get("/v1/status"), show)


def show(screen: Screen, status: Json) -> None:
    """The status for people."""
    screen.prose(*headline(status), hang=2)
    for line in notes(status):
        screen.prose(*line, hang=10)
    for way, direction in status["directions"].items():
        screen.line()
        show_direction(screen, way, direction)
        for path in status["paths"]:
            if path["direction"] == way:
                show_path(screen, path)
    screen.line()
    sources = [_source(name, one) for name, one in status["sources"].items()]
    screen.prose("sources   ", *joined(sources or ["none"]), hang=10)
    made = [_backend(name, one) for name, one in status["backends"].items()]
    screen.prose("backends  ", *joined(made or ["none"]), hang=10)
    screen.prose("loop      ", _loop(status["loop"]), hang=10)
    backends = [one for backend in status["backends"].values() for one in backend["findings"]]
    show_findings(screen, [*status["findings"], *backends])


def headline(status: Json) -> list[Span | str]:
    """Node, version, and whether it works."""
    ready = Span("ready", "good") if status["ready"] else Span("not ready", "bad")
    enabled = "on" if status["enabled"] else "off"
    pods, overrides = count(status["pods"], "pod"), count(status["overrides"], "override")
    told = f", network QoS {enabled}, up {span(status['uptime_s'])}, {pods}, {overrides}"
    return [Span(status["node"], "head"), f"  netqos {status['version']}  ", ready, told]


def notes(status: Json) -> Iterator[list[Span | str]]:
    """What is waited for, and how much of the pods' inputs is rejected."""
    for name, detail in status["waited_for"].items():
        yield ["waits for ", Span(name, "warn"), f": {detail}"]
    rejected = status["rejected"]
    if rejected["inputs"]:
        told = f"{count(rejected['inputs'], 'input')} of {count(rejected['pods'], 'pod')}"
        yield ["rejected  ", Span(told, "warn"), ": see `netqosctl pods`, `netqosctl explain POD`"]


def show_direction(screen: Screen, way: str, direction: Json) -> None:
    """One direction: its total, then the levels."""
    contention = [Span(", contention", "warn")] if direction["contention"] else []
    devices = " on " + ", ".join(direction["devices"]) if direction["devices"] else ""
    total = f"total {rate(direction['total_bps'])} ({direction['total_source']}){devices}"
    screen.prose(Span(WORDS[way], "head"), f"  {total}", *room(direction), *contention, hang=2)
    if direction["not_enforced"]:
        screen.prose("  ", Span("not enforced", "warn"), f": {direction['not_enforced']}", hang=4)
    by = ", ".join(direction["enforced_by"])
    rows = [_level(name, one, by) for name, one in direction["levels"].items()]
    screen.table(LEVELS, rows, indent=2)
    if direction["contention"]:
        room_bps = direction["room_bps"] or 0
        held = [one for one in direction["levels"].values() if _is_held(one, room_bps)]
        told = [direction["why"], *(one["why"] for one in held)]
        screen.prose("  ", Span("; ".join(told), "dim"), hang=2)


def _is_held(level: Json, room_bps: int) -> bool:
    """Whether contention holds the level below its own ceiling and the room."""
    ceiling_bps = level["current_ceiling_bps"]
    return ceiling_bps is not None and ceiling_bps < min(level["ceiling_bps"], room_bps)


def show_path(screen: Screen, path: Json) -> None:
    """What the path behind a device carries, where that is not its total, and the last change with its reason."""
    if path["proposed_bps"] is None:
        return
    in_force = path["limit_bps"] is not None
    verb = "total lowered to" if in_force else "its path carries about"
    told = f"{path['device']}: {verb} {rate(path['proposed_bps'])} of {rate(path['configured_bps'])}"
    auto = ", auto" if path["follows"] else ""
    last = f": {path['steps'][-1]['reason_text']}" if path["steps"] else ""
    screen.prose("  ", Span(told, "warn"), f"{auto}{last}", hang=4)


def room(direction: Json) -> list[Span | str]:
    """What the pods may use of the total, where that is less."""
    room_bps, total_bps = direction["room_bps"], direction["total_bps"]
    if room_bps is None or room_bps == total_bps:
        return []
    return [Span(f", of which {rate(room_bps)} for the pods now", "warn")]


def _level(name: str, level: Json, by: str) -> list[Span | str]:
    enforced = Span(f"by {by}", "good") if level["enforced"] else Span("no", "warn")
    return [
        name,
        rate(level["guarantee_bps"]),
        rate(level["ceiling_bps"]),
        rate(level["current_ceiling_bps"]),
        rate(level["rate_bps"]),
        Span("yes", "warn") if level["backlogged"] else "",
        str(level["pods"]),
        enforced,
    ]


def _source(name: str, source: Json) -> Span:
    is_aged = source["state"] != "fresh" and source["age_s"] is not None
    age = f" {span(source['age_s'])}" if is_aged else ""
    detail = f" ({source['detail']})" if source["detail"] else ""
    return Span(f"{name} {source['state']}{age}{detail}", STATE_STYLE.get(source["state"], ""))


def _backend(name: str, backend: Json) -> Span:
    shapes = f" ({', '.join(WORDS[way] for way in backend['enforces'])})" if backend["enforces"] else ""
    return Span(f"{name} {backend['state']}{shapes}", STATE_STYLE.get(backend["state"], "dim"))


def _loop(loop: Json) -> str:
    if not loop["ticks"]:
        return "nothing to steer yet"
    late = f"late p99 {milliseconds(loop['late_p99_s'])}, at most {milliseconds(loop['late_max_s'])}"
    return f"{count(loop['ticks'], 'tick')}, {count(loop['writes'], 'write')}, {late}"
